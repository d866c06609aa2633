/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The host's descriptions of built-in types, through the hook the syncer registered: its index of
 * OpenAPI documents, and those documents a request needs. Only the index is kept; a document is
 * used once, while ours is built. Must never request a document of a tenant's groups, nor let a
 * request wait for long: after one failure the host gets no request for a while.
 *
 *   index   NONE -> REQUESTED -> KNOWN (for INDEX_MS) | FAILED (for RETRY_MS) -> REQUESTED
 *   wanted  queued -> requested (at most MAX_REQUESTED) -> delivered */
#include "openapi.h"
#include "openapi_source.h"

#include <assert.h>
#include <string.h>

#define DESCRIPTIONS_MAGIC 0x7E875000u
#define INDEX_MS           (5 * 60 * 1000)
#define RETRY_MS           10000
#define INDEX_WAIT         1000
#define DOCUMENT_WAIT      2000
#define MAX_REQUESTED      2
#define MAX_ROOTS          128
#define MAX_HASH           256

/* Custom resources have metadata too: this small document describes it. */
#define META_ROOT "apis/scheduling.k8s.io/v1"

enum index_state { INDEX_NONE, INDEX_REQUESTED, INDEX_KNOWN, INDEX_FAILED };

struct host_document {
    struct str root, url, hash; /* heap */
};

struct index_waiter {
    SLIST_ENTRY(index_waiter) place;
    void (*done)(void *ctx);
    void *ctx;
};

struct description_waiter {
    SLIST_ENTRY(description_waiter) place;
    descriptions_cb done;
    void *ctx;
};

struct wanted {
    TAILQ_ENTRY(wanted) place;
    struct descriptions *descriptions;
    struct str root; /* heap; of the host */
    bool requested;
    SLIST_HEAD(, description_waiter) waiters;
};

struct descriptions {
    unsigned magic;
    struct vapi *api;
    enum index_state state;
    int64_t until_ms; /* of KNOWN and FAILED */
    struct host_document documents[MAX_ROOTS];
    size_t n_documents;
    SLIST_HEAD(, index_waiter) waiters;
    TAILQ_HEAD(, wanted) wanted; /* in order of arrival */
    unsigned n_requested;
};

static int64_t now_ms(const struct descriptions *t)
{
    return clock_mono_ms(vapi_clock(t->api));
}

static const struct vapi_hooks *hooks_of(const struct descriptions *t)
{
    return vapi_get_hooks(t->api);
}

/* ---- the index ---- */

static void forget_index(struct descriptions *t)
{
    for (size_t i = 0; i < t->n_documents; i++) {
        mem_free(t->documents[i].root.p);
        mem_free(t->documents[i].url.p);
        mem_free(t->documents[i].hash.p);
    }
    t->n_documents = 0;
}

/* Only groups that the built-in table serves: other names belong to tenants. */
static void learn(struct descriptions *t, struct str root, struct str url)
{
    struct str rest = url, hash;

    str_cut(&rest, '?');
    if (!rest.p || !str_has_prefix(rest, STR("hash=")) || t->n_documents == MAX_ROOTS ||
        !str_has_prefix(url, STR("/openapi/v3/")) || !openapi_is_builtin(t->api, root))
        return;
    hash = str_from(rest, sizeof("hash=") - 1);
    if (hash.n && hash.n <= MAX_HASH)
        t->documents[t->n_documents++] =
            (struct host_document){mem_str(root), mem_str(url), mem_str(hash)};
}

static void on_index(void *ctx, struct str body, const struct err *failure)
{
    struct descriptions *t = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;
    struct err err;
    bool known;
    struct index_waiter *w;

    assert(t->magic == DESCRIPTIONS_MAGIC);
    err_init(&err, a);
    forget_index(t);
    known =
        !failure && !json_parse(a, body, &tree, &err) && json_is_object(json_get(tree, "paths"));
    if (known) {
        json_each(one, json_get(tree, "paths"))
            learn(t, str_c(one->string), json_str_at(one, "serverRelativeURL"));
    }
    arena_free(a);
    t->state = known ? INDEX_KNOWN : INDEX_FAILED;
    t->until_ms = now_ms(t) + (known ? INDEX_MS : RETRY_MS);
    while ((w = SLIST_FIRST(&t->waiters))) {
        SLIST_REMOVE_HEAD(&t->waiters, place);
        w->done(w->ctx);
        mem_free(w);
    }
}

static bool index_usable(const struct descriptions *t)
{
    return !hooks_of(t)->openapi ||
           ((t->state == INDEX_KNOWN || t->state == INDEX_FAILED) && now_ms(t) < t->until_ms);
}

void openapi_descriptions_want_index(struct descriptions *t, void (*done)(void *ctx), void *ctx)
{
    const struct vapi_hooks *hooks = hooks_of(t);
    struct index_waiter *w;

    assert(t->magic == DESCRIPTIONS_MAGIC);
    if (index_usable(t)) {
        done(ctx);
        return;
    }
    w = NEW(struct index_waiter);
    *w = (struct index_waiter){.done = done, .ctx = ctx};
    SLIST_INSERT_HEAD(&t->waiters, w, place);
    if (t->state == INDEX_REQUESTED)
        return;
    t->state = INDEX_REQUESTED;
    hooks->openapi(hooks->ctx, STR("/openapi/v3"), INDEX_WAIT, on_index, t);
}

static struct str host_root(const struct descriptions *t, struct str root)
{
    return openapi_is_builtin(t->api, root) ? root : STR(META_ROOT);
}

static const struct host_document *document_of(const struct descriptions *t, struct str root)
{
    for (size_t i = 0; i < t->n_documents; i++)
        if (str_eq(t->documents[i].root, root))
            return &t->documents[i];
    return NULL;
}

struct str openapi_descriptions_hash(const struct descriptions *t, struct str root)
{
    const struct host_document *documents;

    if (t->state != INDEX_KNOWN)
        return STR("");
    documents = document_of(t, host_root(t, root));
    return documents ? documents->hash : STR("");
}

/* ---- documents ---- */

static void request_next(struct descriptions *t);

static void wanted_done(struct wanted *w, const cJSON *schemas)
{
    struct descriptions *t = w->descriptions;
    struct description_waiter *x;

    TAILQ_REMOVE(&t->wanted, w, place);
    while ((x = SLIST_FIRST(&w->waiters))) {
        SLIST_REMOVE_HEAD(&w->waiters, place);
        x->done(x->ctx, schemas);
        mem_free(x);
    }
    mem_free(w->root.p);
    mem_free(w);
}

static void on_text(void *ctx, struct str body, const struct err *failure)
{
    struct wanted *w = ctx;
    struct descriptions *t = w->descriptions;
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;
    struct err err;

    assert(t->magic == DESCRIPTIONS_MAGIC && w->requested);
    err_init(&err, a);
    t->n_requested--;
    if (failure || json_parse(a, body, &tree, &err)) {
        t->state = INDEX_FAILED;
        t->until_ms = now_ms(t) + RETRY_MS;
    }
    wanted_done(w, json_path(tree, "components.schemas"));
    arena_free(a);
    request_next(t);
}

/* Requests the next queued document; those that became unavailable are delivered without one. */
static void request_next(struct descriptions *t)
{
    const struct vapi_hooks *hooks = hooks_of(t);
    struct wanted *w = TAILQ_FIRST(&t->wanted);

    while (w && t->n_requested < MAX_REQUESTED) {
        const struct host_document *documents =
            t->state != INDEX_FAILED ? document_of(t, w->root) : NULL;

        if (w->requested) {
            w = TAILQ_NEXT(w, place);
            continue;
        }
        if (documents && hooks->openapi) {
            w->requested = true;
            t->n_requested++;
            hooks->openapi(hooks->ctx, documents->url, DOCUMENT_WAIT, on_text, w);
        } else {
            wanted_done(w, NULL);
        }
        w = TAILQ_FIRST(&t->wanted);
    }
}

static struct wanted *wanted_of(struct descriptions *t, struct str root)
{
    struct wanted *w;

    TAILQ_FOREACH(w, &t->wanted, place)
    {
        if (str_eq(w->root, root))
            return w;
    }
    w = NEW(struct wanted);
    w->descriptions = t;
    w->root = mem_str(root);
    TAILQ_INSERT_TAIL(&t->wanted, w, place);
    return w;
}

void openapi_descriptions_want(struct descriptions *t, struct str root, descriptions_cb done,
                               void *ctx)
{
    struct description_waiter *x = NEW(struct description_waiter);
    struct wanted *w = wanted_of(t, host_root(t, root));

    assert(t->magic == DESCRIPTIONS_MAGIC);
    *x = (struct description_waiter){.done = done, .ctx = ctx};
    SLIST_INSERT_HEAD(&w->waiters, x, place);
    request_next(t);
}

/* ---- lifecycle ---- */

struct descriptions *openapi_descriptions_new(struct vapi *api)
{
    struct descriptions *t = NEW(struct descriptions);

    t->magic = DESCRIPTIONS_MAGIC;
    t->api = api;
    TAILQ_INIT(&t->wanted);
    return t;
}

struct descriptions *openapi_descriptions_free(struct descriptions *t)
{
    if (!t)
        return NULL;
    assert(t->magic == DESCRIPTIONS_MAGIC && SLIST_EMPTY(&t->waiters) && TAILQ_EMPTY(&t->wanted));
    forget_index(t);
    t->magic = 0;
    return mem_free(t);
}
