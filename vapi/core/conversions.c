/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of conversion webhooks, a bounded number at once. What was converted is pruned by the
 * schema of its new version before anyone sees it. Must never call back before a start returned,
 * nor touch the descriptor of a conversion that was cancelled.
 *
 *   start -> WAITING -> SENT -> answered -> done()
 *       '--> FAILED (deferred) -------------^     cancelled: freed in its place, without done() */
#include "../crd/conversion.h"
#include "core.h"
#include "meta.h"

#include <assert.h>

#include <sublet/conversion.h>
#include <sublet/encode.h>

#define CONVERSION_MAGIC 0x636f6e76u

enum conversion_stage { CONVERSION_WAITING, CONVERSION_SENT, CONVERSION_FAILED };

struct conversion {
    unsigned magic;
    enum conversion_stage stage;
    TAILQ_ENTRY(conversion) place;
    struct vapi *api; /* NULL: closed meanwhile */
    const struct resource *r;
    struct str to, kind; /* kind: the resource and its group, which outlive r */
    struct arena *arena;
    cJSON **objects;
    size_t n, bytes;
    char uid[37];
    struct err err;
    conversion_done done; /* NULL: cancelled */
    void *ctx;
};

struct conversions {
    size_t under_way, bytes_sent, n_waiting, bytes_waiting;
    TAILQ_HEAD(conversion_list, conversion) waiting, sent;
};

static struct conversions *conversions_of(struct vapi *api)
{
    struct conversions *c = api->conversions;

    if (c)
        return c;
    c = api->conversions = NEW(struct conversions);
    TAILQ_INIT(&c->waiting);
    TAILQ_INIT(&c->sent);
    return c;
}

struct conversions *conversions_free(struct conversions *c)
{
    struct conversion *x;

    assert(!c || (!c->n_waiting && !c->bytes_waiting));
    if (c)
        TAILQ_FOREACH(x, &c->sent, place)
        {
            assert(!x->done);
            x->api = NULL;
        }
    mem_free(c);
    return NULL;
}

/* ---- end ---- */

static void conversion_free(struct conversion *x)
{
    x->magic = 0;
    arena_free(x->arena);
    mem_free(x);
}

static void finish(struct conversion *x, const struct err *err)
{
    if (x->done)
        x->done(x->ctx, x->objects, err);
    conversion_free(x);
}

static void on_failed(void *ctx)
{
    struct conversion *x = ctx;

    assert(x->magic == CONVERSION_MAGIC && x->stage == CONVERSION_FAILED);
    finish(x, &x->err);
}

static void fail_later(struct conversion *x)
{
    x->stage = CONVERSION_FAILED;
    api_defer(x->api, on_failed, x);
}

/* ---- sending ---- */

static void on_answer(void *ctx, int status, struct str body, const struct err *err);

static void not_reached(struct conversion *x, struct str why)
{
    struct str url = crd_conversion_url(x->arena, x->r->conversion);

    crd_conversion_fail(
        x->objects[0],
        arena_printf(x->arena, "Post %.*s: %.*s", STR_F(go_quote(x->arena, url)), STR_F(why)),
        &x->err);
}

static void send_now(struct conversion *x)
{
    const struct crd_conversion *w = x->r->conversion;
    const struct vapi_hooks *h = vapi_get_hooks(x->api);
    struct conversions *c = conversions_of(x->api);
    struct buf body = BUF_INIT(0);
    struct vapi_webhook q = {.ns = w->ns,
                             .service = w->service,
                             .port = w->port,
                             .url = w->url,
                             .path = w->path,
                             .ca = w->ca,
                             .timeout_ms = CONVERSION_TIMEOUT_MS,
                             .most = CONVERSION_MOST_ANSWER};

    if (!h->webhook) {
        not_reached(x, STR("this virtual cluster has no host cluster"));
        fail_later(x);
        return;
    }
    x->stage = CONVERSION_SENT;
    c->under_way++;
    c->bytes_sent += x->bytes;
    TAILQ_INSERT_TAIL(&c->sent, x, place);
    rng_uuid(vapi_rng(x->api), x->uid);
    crd_conversion_print(w, str_c(x->uid), x->to, x->objects, x->n, &body);
    q.body = buf_str(&body);
    h->webhook(h->ctx, &q, on_answer, x);
    buf_fini(&body);
}

static void leave_queue(struct conversions *c, struct conversion *x)
{
    TAILQ_REMOVE(&c->waiting, x, place);
    c->n_waiting--;
    c->bytes_waiting -= x->bytes;
}

/* One more, however large, where there is no other. A webhook that hangs leaves turns to those of
 * other kinds. */
static bool has_turn(const struct conversions *c, const struct conversion *x)
{
    const struct conversion *other;
    size_t same = 0;

    TAILQ_FOREACH(other, &c->sent, place) same += str_eq(other->kind, x->kind);
    return !c->under_way ||
           (c->under_way < CONVERSION_MOST_CALLS && same < CONVERSION_MOST_CALLS_EACH &&
            c->bytes_sent + x->bytes <= CONVERSION_MOST_BYTES);
}

static struct conversion *find_next(const struct conversions *c)
{
    struct conversion *x;

    if (c->under_way < CONVERSION_MOST_CALLS)
        TAILQ_FOREACH(x, &c->waiting, place)
        {
            if (has_turn(c, x))
                return x;
        }
    return NULL;
}

static void send_next(struct vapi *api)
{
    struct conversions *c = conversions_of(api);
    struct conversion *x;

    while ((x = find_next(c))) {
        leave_queue(c, x);
        send_now(x);
    }
}

/* ---- the answer ---- */

const struct crd_version *conversion_schema(const struct vapi *api, const struct resource *r,
                                            struct str api_version)
{
    struct str version = str_from(api_version, r->group.n + 1);
    const struct resource *other;

    if (str_eq(api_version, r->api_version))
        return r->crd;
    other = registry_find(api->registry, r->group, version, r->plural);
    if (other && other->storage == r->storage)
        return other->crd;
    return str_eq(api_version, r->storage_version) ? crd_stored(r->crd) : NULL;
}

static int read_answer(struct conversion *x, int status, struct str body)
{
    const struct crd_version *v = conversion_schema(x->api, x->r, x->to);

    if (crd_conversion_read(x->r->conversion, x->arena, str_c(x->uid), x->to, status, body,
                            x->objects, x->n, &x->err))
        return -1;
    for (size_t i = 0; i < x->n; i++) {
        if (v)
            crd_prune(v, x->arena, x->objects[i], NULL);
        vapi_meta_canonical(x->arena, x->r, x->objects[i]);
    }
    return 0;
}

static void on_answer(void *ctx, int status, struct str body, const struct err *err)
{
    struct conversion *x = ctx;
    struct vapi *api = x->api;

    assert(x->magic == CONVERSION_MAGIC && x->stage == CONVERSION_SENT);
    if (!api) {
        conversion_free(x);
        return;
    }
    TAILQ_REMOVE(&conversions_of(api)->sent, x, place);
    conversions_of(api)->under_way--;
    conversions_of(api)->bytes_sent -= x->bytes;
    send_next(api);
    if (x->done && err)
        not_reached(x, err->message);
    else if (x->done && read_answer(x, status, body))
        assert(x->err.kind);
    finish(x, x->err.kind ? &x->err : NULL);
}

/* ---- begin ---- */

static int check_start(struct conversion *x)
{
    const struct crd_conversion *w = x->r->conversion;
    const struct conversions *c = conversions_of(x->api);

    if (!crd_conversion_has(w, x->to))
        return err_set(&x->err, &ERR_UNKNOWN,
                       "request to convert CR to an invalid group/version: %.*s", STR_F(x->to));
    for (size_t i = 0; i < x->n; i++) {
        struct str from = json_str(json_get(x->objects[i], "apiVersion"));

        if (!crd_conversion_has(w, from))
            return err_set(&x->err, &ERR_UNKNOWN,
                           "request to convert CR from an invalid group/version: %.*s",
                           STR_F(from));
    }
    if (!w->review)
        return err_set(&x->err, &ERR_UNKNOWN, "no supported conversion review versions");
    if (!c->n_waiting || (c->n_waiting < CONVERSION_MOST_WAITING &&
                          c->bytes_waiting + x->bytes <= CONVERSION_MOST_BYTES))
        return 0;
    x->err.retry_after = 1;
    return err_set(&x->err, &ERR_TOO_MANY_REQUESTS,
                   "too many objects are waiting for conversion webhooks");
}

struct conversion *conversion_start(struct vapi *api, const struct resource *r, struct str to,
                                    struct arena *a, cJSON **objects, size_t n,
                                    conversion_done done, void *ctx)
{
    struct conversions *c = conversions_of(api);
    struct conversion *x = NEW(struct conversion);

    assert(n && r->conversion);
    *x = (struct conversion){.magic = CONVERSION_MAGIC,
                             .api = api,
                             .r = r,
                             .to = arena_str(a, to),
                             .kind = arena_str(a, r->group_resource),
                             .arena = a,
                             .objects = objects,
                             .n = n,
                             .bytes = arena_used(a),
                             .done = done,
                             .ctx = ctx};
    err_init(&x->err, a);
    if (check_start(x)) {
        fail_later(x);
        return x;
    }
    c->n_waiting++;
    c->bytes_waiting += x->bytes;
    TAILQ_INSERT_TAIL(&c->waiting, x, place);
    send_next(api);
    return x;
}

struct conversion *conversion_start_one(struct vapi *api, const struct resource *r, struct str to,
                                        const cJSON *object, conversion_done done, void *ctx)
{
    struct arena *a = arena_new(CONVERSION_MOST_ARENA);
    cJSON **objects = arena_alloc(a, sizeof(*objects));

    objects[0] = json_copy(a, object);
    return conversion_start(api, r, to, a, objects, 1, done, ctx);
}

void conversion_cancel(struct conversion *x)
{
    if (!x)
        return;
    assert(x->magic == CONVERSION_MAGIC);
    x->done = NULL;
    if (x->stage != CONVERSION_WAITING)
        return; /* its end frees it */
    leave_queue(conversions_of(x->api), x);
    conversion_free(x);
}
