/* SPDX-License-Identifier: Apache-2.0 */
/* A terminating namespace may have objects that extension API servers store: they are deleted one
 * collection after another, as the namespace controller's own account, and counted. While a server
 * does not say what it serves, it may have anything: the namespace waits for it, or for the end of
 * its APIService, as upstream. Must never take a server that is away for one without objects, nor
 * send more than one request at once. Source: pkg/controller/namespace/deletion.
 *
 *   next resource -> DELETE collection -> LIST -> count     without deletecollection:
 *        '---------> LIST -> DELETE each -> LIST -> count   at most DELETES of a list */
#include "namespace_extension.h"

#include "../extension/extension.h"

#include <sublet/encode.h>

#define TIMEOUT_MS 30000
#define MOST_LIST  (3u * 1024 * 1024)
#define DELETES    500
#define ACCOUNT    "system:serviceaccount:kube-system:namespace-controller"
#define DISCOVERING                                                                                \
    "Discovery failed for some groups, %zu failing: unable to retrieve the complete "              \
    "list of server APIs: "

struct target {
    const struct extension *x;
    struct str resource; /* plural */
    bool whole, listed;  /* deletecollection, list */
};

enum step { STEP_FIRST, STEP_LISTED, STEP_DELETED, STEP_COUNTED };

struct elsewhere {
    struct reconcile *run;
    struct str ns;
    struct namespace_elsewhere *ret;
    reconcile_phase done;
    void *ctx;
    struct target *targets;
    size_t n, cap, at; /* at: the one in progress */
    enum step step;
    const cJSON *item; /* the next one to delete */
    size_t deleted;
    int status;
    struct buf body;
};

static void proceed(struct elsewhere *e);

/* ---- requests ---- */

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    struct elsewhere *e = ctx;

    (void)headers;
    (void)n;
    e->status = status;
}

static void on_data(void *ctx, struct str bytes)
{
    struct elsewhere *e = ctx;

    buf_add(&e->body, bytes);
}

static void fail(struct elsewhere *e, struct str why)
{
    if (!e->ret->failure.n)
        e->ret->failure = arena_str(reconcile_arena(e->run), why);
    e->step = STEP_COUNTED;
}

static void judge(struct elsewhere *e, const struct err *err)
{
    struct arena *a = reconcile_arena(e->run);

    if (err)
        fail(e, err->message);
    else if (e->body.failed)
        fail(e, arena_printf(a, "the answer has more than %u bytes", MOST_LIST));
    else if (e->status >= 300 && e->status != 404 && e->status != 405)
        fail(e, arena_printf(a, "an answer with status %d", e->status));
}

static void on_end(void *ctx, const struct err *err)
{
    struct elsewhere *e = ctx;
    struct reconcile *r = e->run;

    judge(e, err);
    proceed(e);
    reconcile_release(r, NULL);
}

static void ask(struct elsewhere *e, const char *method, struct str name)
{
    static const struct forward_events events = {on_head, on_data, on_end};
    const struct net_header accept = {STR("accept"), STR("application/json")};
    const struct str groups[] = {STR("system:serviceaccounts"),
                                 STR("system:serviceaccounts:kube-system"),
                                 STR("system:authenticated")};
    const struct user user = {.name = STR(ACCOUNT), .groups = groups, .n_groups = COUNT(groups)};
    struct arena *a = reconcile_arena(e->run);
    const struct target *t = &e->targets[e->at];
    const struct extension_request q = {
        .method = method,
        .path = arena_printf(a, "/apis/%.*s/%.*s/namespaces/%.*s/%.*s%s%.*s", STR_F(t->x->group),
                             STR_F(t->x->version), STR_F(e->ns), STR_F(url_encode(a, t->resource)),
                             name.n ? "/" : "", STR_F(url_encode(a, name))),
        .user = &user,
        .headers = &accept,
        .n_headers = 1,
        .timeout_ms = TIMEOUT_MS};
    struct err err;

    err_init(&err, a);
    buf_fini(&e->body);
    e->body = BUF_INIT(MOST_LIST);
    e->status = 0;
    reconcile_hold(e->run);
    if (extension_open(reconcile_api(e->run), t->x, &q, &events, e, &err))
        return;
    fail(e, err.message);
    proceed(e);
    reconcile_release(e->run, NULL);
}

/* ---- steps ---- */

static const cJSON *items_of(struct elsewhere *e)
{
    cJSON *list = NULL;
    struct err ignored;

    err_init(&ignored, reconcile_arena(e->run));
    if (e->status >= 300 || json_parse(reconcile_arena(e->run), buf_str(&e->body), &list, &ignored))
        return NULL;
    return json_get(list, "items");
}

static void count(struct elsewhere *e)
{
    struct arena *a = reconcile_arena(e->run);
    struct namespace_elsewhere *ret = e->ret;
    const struct target *t = &e->targets[e->at];
    size_t n = json_count(items_of(e));

    if (!n)
        return;
    ARENA_GROW(a, ret->remaining, ret->n_remaining, ret->cap_remaining);
    ret->remaining[ret->n_remaining++] = (struct namespace_remaining){
        arena_concat(a, 3, (struct str[]){t->resource, STR("."), t->x->group}), n};
}

static void delete_next(struct elsewhere *e)
{
    const cJSON *item = e->item;

    e->item = item->next;
    e->deleted++;
    ask(e, "DELETE", json_str_at(item, "metadata.name"));
}

/* The answer of the step is there, unless the resource has only begun. */
static void advance(struct elsewhere *e)
{
    const struct target *t = &e->targets[e->at];

    switch (e->step) {
    case STEP_FIRST:
        e->step = t->whole ? STEP_DELETED : STEP_LISTED;
        e->deleted = 0;
        e->item = NULL;
        ask(e, t->whole ? "DELETE" : "GET", STR(""));
        return;
    case STEP_LISTED:
        if (!e->deleted)
            e->item = json_first(items_of(e));
        if (e->item && e->deleted < DELETES) {
            delete_next(e);
            return;
        }
        e->step = STEP_DELETED;
        proceed(e);
        return;
    case STEP_DELETED:
        e->step = STEP_COUNTED;
        if (t->listed) {
            ask(e, "GET", STR(""));
            return;
        }
        break;
    case STEP_COUNTED:
        if (!e->ret->failure.n)
            count(e);
        break;
    }
    e->at++;
    e->step = STEP_FIRST;
    proceed(e);
}

/* After a failure nothing more is asked in this run. */
static void proceed(struct elsewhere *e)
{
    if (e->at < e->n && !e->ret->failure.n) {
        advance(e);
        return;
    }
    buf_fini(&e->body);
    e->done(e->run, e->ctx);
}

/* ---- what there may be ---- */

static void add_resources(struct elsewhere *e, const struct extension *x, struct str text)
{
    struct arena *a = reconcile_arena(e->run);
    cJSON *resources = NULL;
    struct err ignored;

    err_init(&ignored, a);
    if (json_parse(a, text, &resources, &ignored))
        return;
    json_each(item, resources)
    {
        const cJSON *verbs = json_get(item, "verbs");

        if (!str_eqc(json_str(json_get(item, "scope")), "Namespaced") ||
            !json_list_has(verbs, STR("delete")))
            continue;
        ARENA_GROW(a, e->targets, e->n, e->cap);
        e->targets[e->n++] = (struct target){
            .x = x,
            .resource = json_str(json_get(item, "resource")),
            .whole = json_list_has(verbs, STR("deletecollection")),
            .listed = json_list_has(verbs, STR("list")),
        };
    }
}

static void find_targets(struct elsewhere *e)
{
    struct arena *a = reconcile_arena(e->run);
    struct buf failing = BUF_INIT(8192);
    struct extension *list;
    size_t n = extension_list(reconcile_api(e->run), a, &list), failed = 0;

    for (size_t i = 0; i < n; i++) {
        bool stale;
        struct str text = extension_kept(reconcile_api(e->run), &list[i], &stale);

        if (!stale) {
            add_resources(e, &list[i], text);
            continue;
        }
        buf_printf(&failing, "%s%.*s/%.*s: stale GroupVersion discovery: %.*s/%.*s",
                   failed++ ? ", " : "", STR_F(list[i].group), STR_F(list[i].version),
                   STR_F(list[i].group), STR_F(list[i].version));
    }
    if (failed)
        e->ret->undiscovered =
            arena_printf(a, DISCOVERING "%.*s", failed, STR_F(buf_str(&failing)));
    buf_fini(&failing);
}

void namespace_sweep_elsewhere(struct reconcile *r, struct str ns, struct namespace_elsewhere *ret,
                               reconcile_phase done, void *ctx)
{
    struct elsewhere *e = ARENA_NEW(reconcile_arena(r), struct elsewhere);

    *e = (struct elsewhere){
        .run = r, .ns = ns, .ret = ret, .done = done, .ctx = ctx, .body = BUF_INIT(MOST_LIST)};
    find_targets(e);
    proceed(e);
}
