/* SPDX-License-Identifier: Apache-2.0 */
/* The pause of a write: its webhooks are called, mutating ones one after another and validating
 * ones all at once. Must never store anything, block the loop, call more servers at once than the
 * bound, or go on with a write whose client has gone.
 *
 *   run -> post -> [waiting for a turn] -> sent -> answered -> next post -> ... -> done()
 *
 * Source: apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go. */
#include "plugins.h"
#include "webhook_impl.h"

#include "../core/calls.h"

#include <assert.h>

#include <sublet/encode.h>
#include <sublet/kinds.h>
#include <sublet/patch.h>

#define RUN_MAGIC   0x77686f6bu
#define LEAST_ARENA ((size_t)64 << 20) /* of the call's, for one more patch */

struct run;

/* One call of one hook. Lives in the arena of the write. */
struct post {
    STAILQ_ENTRY(post) place;
    struct run *run;
    struct webhook_hook *hook;
    char uid[37];
    struct err err;
};

struct run {
    unsigned magic;
    enum webhook_phase phase;
    struct webhook_review review;
    webhook_decode decode;
    webhook_done done;
    void *ctx;
    struct webhook_hook *hooks;
    size_t n, cap, next, pending;
    unsigned round; /* 1: hooks that asked for it are called again */
    bool changed;
    const struct post *failed; /* the first of its hooks' */
    struct err refusal;        /* by matchConditions, before any hook was called */
};

struct webhooks {
    struct vapi *api;
    unsigned storage[2];
    size_t under_way, n_waiting;
    STAILQ_HEAD(, post) waiting;
};

struct webhooks *webhooks_new(struct vapi *api)
{
    static const char *const plurals[] = {"mutatingwebhookconfigurations",
                                          "validatingwebhookconfigurations"};
    struct webhooks *w = NEW(struct webhooks);

    w->api = api;
    STAILQ_INIT(&w->waiting);
    for (size_t i = 0; i < COUNT(plurals); i++) {
        const struct resource *r = registry_find_group_resource(
            api->registry, STR("admissionregistration.k8s.io"), str_c(plurals[i]));

        w->storage[i] = r ? r->storage : 0;
    }
    return w;
}

struct webhooks *webhooks_free(struct webhooks *w)
{
    assert(!w || (!w->under_way && !w->n_waiting));
    mem_free(w);
    return NULL;
}

static struct webhooks *webhooks_of(struct vapi *api)
{
    if (!api->webhooks)
        api->webhooks = webhooks_new(api);
    return api->webhooks;
}

/* ---- which ---- */

static void add_hooks(struct run *run, struct str configuration, const cJSON *list)
{
    struct arena *a = run->review.call->arena;

    json_each(spec, list)
    {
        ARENA_GROW(a, run->hooks, run->n, run->cap);
        run->hooks[run->n] = (struct webhook_hook){
            .configuration = configuration,
            .name = json_str(json_get(spec, "name")),
            .spec = spec,
            .index = run->n,
            .ignores = str_eqc(json_str(json_get(spec, "failurePolicy")), "Ignore"),
            .again = str_eqc(json_str(json_get(spec, "reinvocationPolicy")), "IfNeeded"),
        };
        run->n++;
    }
}

/* In the order of their names, as the store has them. */
static bool on_configuration(void *ctx, const struct store_object *o)
{
    struct run *run = ctx;
    struct arena *a = run->review.call->arena;

    add_hooks(run, arena_str(a, o->name), json_get(vapi_tree(a, o), "webhooks"));
    return true;
}

/* ---- the request ---- */

/* A copy in the version that the hook reads. */
static cJSON *in_version(struct arena *a, const struct webhook_hook *h, const cJSON *tree)
{
    cJSON *copy = tree ? json_copy(a, tree) : NULL;

    if (copy && h->as->crd)
        json_set_str(a, copy, "apiVersion", h->as->api_version);
    else if (copy)
        kinds_convert(a, h->as, copy);
    return copy;
}

/* What the server sets after mutating admission is not shown to it. */
static void hide(const struct run *run, cJSON *object)
{
    static const char *const set[] = {"uid", "creationTimestamp", "generation"};
    cJSON *metadata = json_get(object, "metadata");

    if (run->phase != WEBHOOKS_MUTATING || run->review.operation != ADMISSION_CREATE)
        return;
    for (size_t i = 0; i < COUNT(set); i++)
        json_remove(metadata, set[i]);
    if (run->review.unnamed)
        json_remove(metadata, "name");
}

static cJSON *shown(struct arena *a, const struct run *run, const struct webhook_hook *h)
{
    cJSON *object = in_version(a, h, run->review.object);

    hide(run, object);
    return object;
}

/* 1, 0, or -1 with err: what its conditions say, it fails by. */
static int applies(struct run *run, struct webhook_hook *h, struct err *err)
{
    struct arena *a;
    int ret;

    if (!webhook_matches(run->review.call->arena, h->spec, &run->review, &h->as))
        return 0;
    if (!json_count(json_get(h->spec, "matchConditions")))
        return 1;
    a = arena_new(0);
    ret = webhook_conditions(&run->review, h, shown(a, run, h), in_version(a, h, run->review.old),
                             err);
    arena_free(a);
    return ret;
}

static int64_t timeout_of(const struct webhook_hook *h)
{
    return json_i64_at(h->spec, "timeoutSeconds", 10);
}

static void describe(struct arena *a, const struct webhook_hook *h, struct vapi_webhook *q)
{
    const cJSON *client = json_get(h->spec, "clientConfig"), *service = json_get(client, "service");
    struct str path = json_str(json_get(service, "path")), ca;

    q->timeout_ms = timeout_of(h) * 1000;
    q->most = WEBHOOK_MOST_ANSWER;
    if (base64_decode(a, json_str(json_get(client, "caBundle")), &ca))
        q->ca = ca;
    if (!service) {
        q->url = json_str(json_get(client, "url"));
        return;
    }
    q->ns = json_str(json_get(service, "namespace"));
    q->service = json_str(json_get(service, "name"));
    q->port = json_i64_at(service, "port", 443);
    q->path = arena_printf(a, "%s%.*s?timeout=%llds", str_has_prefix(path, STR("/")) ? "" : "/",
                           STR_F(path), (long long)timeout_of(h));
}

static struct str url_of(struct arena *a, const struct vapi_webhook *q)
{
    if (!q->service.n)
        return q->url;
    return arena_printf(a, "https://%.*s.%.*s.svc:%lld%.*s", STR_F(q->service), STR_F(q->ns),
                        (long long)q->port, STR_F(q->path));
}

static void on_answer(void *ctx, int status, struct str body, const struct err *err);

static void on_unreachable(void *ctx)
{
    struct err err;

    err_init(&err, NULL);
    err_set(&err, &ERR_UNAVAILABLE, "this virtual cluster has no host cluster");
    on_answer(ctx, 0, STR(""), &err);
}

static void send_post(struct post *p)
{
    struct run *run = p->run;
    struct vapi *api = run->review.call->api;
    const struct vapi_hooks *h = vapi_get_hooks(api);
    struct buf body = BUF_INIT(0);
    struct vapi_webhook q = {0};
    struct arena *a;

    webhooks_of(api)->under_way++;
    if (!h->webhook) {
        api_defer(api, on_unreachable, p);
        return;
    }
    a = arena_new(0);
    describe(a, p->hook, &q);
    rng_uuid(vapi_rng(api), p->uid);
    webhook_print(a, &run->review, p->hook->as, str_c(p->uid), shown(a, run, p->hook),
                  in_version(a, p->hook, run->review.old), &body);
    q.body = buf_str(&body);
    h->webhook(h->ctx, &q, on_answer, p);
    buf_fini(&body);
    arena_free(a);
}

/* ---- turns ---- */

static bool is_over(const struct run *run)
{
    const struct call *c = run->review.call;

    return c->gone || c->api->state >= API_DRAINING;
}

static void on_dropped(void *ctx)
{
    struct post *p = ctx;

    webhooks_of(p->run->review.call->api)->under_way++;
    on_unreachable(p);
}

static void start_post(struct run *run, struct webhook_hook *h)
{
    struct vapi *api = run->review.call->api;
    struct webhooks *w = webhooks_of(api);
    struct post *p = ARENA_NEW(run->review.call->arena, struct post);

    *p = (struct post){.run = run, .hook = h};
    err_init(&p->err, run->review.call->arena);
    h->called = true;
    h->due = false;
    run->pending++;
    if (w->under_way < WEBHOOK_MOST_CALLS) {
        send_post(p);
    } else {
        w->n_waiting++;
        STAILQ_INSERT_TAIL(&w->waiting, p, place);
    }
}

static void next_turn(struct webhooks *w)
{
    struct post *p = STAILQ_FIRST(&w->waiting);

    if (!p || w->under_way >= WEBHOOK_MOST_CALLS)
        return;
    STAILQ_REMOVE_HEAD(&w->waiting, place);
    w->n_waiting--;
    if (is_over(p->run))
        api_defer(w->api, on_dropped, p);
    else
        send_post(p);
}

/* ---- the answer ---- */

static int fail_call(const struct post *p, struct err *err, struct str why)
{
    struct arena *a = p->run->review.call->arena;
    struct str text = arena_printf(a, "failed calling webhook %.*s: %.*s",
                                   STR_F(go_quote(a, p->hook->name)), STR_F(why));

    err_clear(err);
    err_set(err, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(text));
    err_cause(err, STR(""), STR(""), text);
    return -1;
}

static int not_reached(const struct post *p, const struct err *why, struct err *err)
{
    struct arena *a = p->run->review.call->arena;
    struct vapi_webhook q = {0};

    describe(a, p->hook, &q);
    return err_set(err, &ERR_INTERNAL, "failed to call webhook: Post %.*s: %.*s",
                   STR_F(go_quote(a, url_of(a, &q))), STR_F(why->message));
}

static void take_notes(const struct post *p, const struct webhook_verdict *v)
{
    struct call *c = p->run->review.call;

    json_each(item, v->annotations)
    {
        if (json_is_string(item))
            call_audit_annotate(
                c, arena_printf(c->arena, "%.*s/%.*s", STR_F(p->hook->name), STR_F(json_key(item))),
                json_str(item));
    }
    json_each(item, v->warnings) call_warn(c, json_str(item));
}

/* Every hook that was called before sees the object again, if its policy says so. */
static void note_change(struct run *run, const struct webhook_hook *by)
{
    run->changed = true;
    for (size_t i = 0; i < run->n; i++)
        run->hooks[i].due |= &run->hooks[i] != by && run->hooks[i].called && run->hooks[i].again;
}

static int refuse_internal(struct run *run, struct err *err)
{
    struct str why = arena_str(run->review.call->arena, err->message);

    err_clear(err);
    err_set(err, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(why));
    err_cause(err, STR(""), STR(""), why);
    return -1;
}

static int apply_patch(struct post *p, const cJSON *patch, struct err *err)
{
    struct run *run = p->run;
    struct call *c = run->review.call;
    cJSON *before, *made = NULL;

    if (!run->review.object) {
        err_set(err, &ERR_INTERNAL,
                "admission webhook %.*s attempted to modify the object, which is not supported for "
                "this operation",
                STR_F(go_quote(c->arena, p->hook->name)));
        return refuse_internal(run, err);
    }
    if (arena_left(c->arena) < LEAST_ARENA)
        return err_set(err, &ERR_TOO_LARGE, "the patches of admission webhooks are too large");
    before = shown(c->arena, run, p->hook);
    if (patch_json(c->arena, json_copy(c->arena, before), json_copy(c->arena, patch), &made, err) ||
        json_deeper(made, JSON_LIMITS.depth) || run->decode(c, p->hook->as, made, err)) {
        if (!err->kind)
            err_set(err, &ERR_INTERNAL, "the patched object is nested too deeply");
        return refuse_internal(run, err);
    }
    if (json_equal(made, run->review.object))
        return 0;
    run->review.object = made;
    note_change(run, p->hook);
    return 0;
}

/* -1: the request is refused by p->err; *ret_ignored: the call failed, and that is ignored. */
static int judge(struct post *p, int status, struct str body, const struct err *problem,
                 struct arena *scratch)
{
    struct run *run = p->run;
    struct call *c = run->review.call;
    struct webhook_verdict v = {0};
    struct err why;

    err_init(&why, scratch);
    if (problem         ? not_reached(p, problem, &why)
        : status != 200 ? webhook_refused(status, body, &why)
                        : webhook_read(scratch, run->phase, body, str_c(p->uid), &v, &why)) {
        if (!p->hook->ignores)
            return fail_call(p, &p->err, why.message);
        call_audit_annotate(
            c,
            arena_printf(c->arena, "failed-open.%s.webhook.admission.k8s.io/round_%u_index_%zu",
                         run->phase == WEBHOOKS_MUTATING ? "mutation" : "validating", run->round,
                         p->hook->index),
            p->hook->name);
        return 0;
    }
    take_notes(p, &v);
    if (!v.allowed)
        return webhook_denied(c, p->hook->name, v.result, &p->err);
    return v.patch ? apply_patch(p, v.patch, &p->err) : 0;
}

/* ---- the run ---- */

static void end_run(struct run *run, const struct err *err)
{
    run->magic = 0;
    run->done(run->ctx, run->review.object, run->changed, err);
}

static void end_over(struct run *run)
{
    struct call *c = run->review.call;
    struct err err;

    err_init(&err, c->arena);
    if (c->gone)
        err_set(&err, &ERR_TIMEOUT,
                "Timeout: request did not complete within requested timeout - context canceled");
    else
        err_set(&err, &ERR_UNAVAILABLE, "the API server is shutting down");
    end_run(run, &err);
}

/* A hook changed the object: the built-in plug-ins see it once more. */
static int mutate_again(struct run *run, struct err *err)
{
    struct call *c = run->review.call;
    cJSON *before = json_copy(c->arena, run->review.object), *replaced = NULL;
    struct admission_call admission;

    call_admission(c, run->review.operation, &admission);
    admission.call = c;
    admission.decode = run->decode;
    admission.replaced = &replaced;
    admission.again = true;
    if (admission_mutate(&admission, run->review.object, run->review.old, err))
        return -1;
    if (!json_equal(before, run->review.object))
        note_change(run, NULL);
    return 0;
}

/* Starts the next mutating hook. False: none is left, or with err. */
static bool go_on(struct run *run, struct err *err)
{
    for (;;) {
        while (run->next < run->n) {
            struct webhook_hook *h = &run->hooks[run->next++];
            int applied = run->round && !h->due ? 0 : applies(run, h, err);

            if (applied < 0)
                return false;
            if (!applied)
                continue;
            start_post(run, h);
            return true;
        }
        if (run->round || !run->changed || !run->review.object)
            return false;
        run->round = 1;
        run->next = 0;
        if (mutate_again(run, err))
            return false;
    }
}

static void on_answer(void *ctx, int status, struct str body, const struct err *err)
{
    struct post *p = ctx;
    struct run *run = p->run;
    struct webhooks *w = webhooks_of(run->review.call->api);
    struct arena *scratch = arena_new(0);
    struct err failure;

    assert(run->magic == RUN_MAGIC && run->pending && w->under_way);
    run->pending--;
    w->under_way--;
    next_turn(w);
    if (!is_over(run) && judge(p, status, body, err, scratch) &&
        (!run->failed || p->hook->index < run->failed->hook->index))
        run->failed = p;
    arena_free(scratch);
    if (run->pending)
        return;
    err_init(&failure, run->review.call->arena);
    if (is_over(run))
        end_over(run);
    else if (run->failed)
        end_run(run, &run->failed->err);
    else if (run->phase == WEBHOOKS_VALIDATING || !go_on(run, &failure))
        end_run(run, failure.kind ? &failure : NULL);
}

/* Too many for one write, or for the queue: refused, whatever their policies say. */
static void on_too_many(void *ctx)
{
    struct run *run = ctx;
    struct err err;

    err_init(&err, run->review.call->arena);
    err_set(&err, &ERR_TOO_MANY_REQUESTS,
            "more than %d admission webhooks for one request, or %d calls of them are waiting",
            WEBHOOK_MOST_HOOKS, WEBHOOK_MOST_WAITING);
    err.retry_after = 1;
    end_run(run, &err);
}

/* What the conditions of a hook say, before any was called. */
static void on_refused(void *ctx)
{
    struct run *run = ctx;

    end_run(run, &run->refusal);
}

static bool start_all(struct run *run)
{
    size_t n = 0;

    for (size_t i = 0; i < run->n; i++) {
        int applied = applies(run, &run->hooks[i], &run->refusal);

        if (applied < 0) {
            api_defer(run->review.call->api, on_refused, run);
            return true;
        }
        if (applied)
            run->hooks[n++] = run->hooks[i];
    }
    if (n > WEBHOOK_MOST_HOOKS)
        api_defer(run->review.call->api, on_too_many, run);
    for (size_t i = 0; i < n && n <= WEBHOOK_MOST_HOOKS; i++)
        start_post(run, &run->hooks[i]);
    return n > 0;
}

bool webhooks_run(enum webhook_phase phase, const struct webhook_review *r, webhook_decode decode,
                  webhook_done done, void *ctx)
{
    struct vapi *api = r->call->api;
    struct webhooks *w = webhooks_of(api);
    struct run *run;
    struct err none;

    if (!w->storage[phase] || !store_count(api->o.store, w->storage[phase]) ||
        str_eqc(r->requested->group, "admissionregistration.k8s.io"))
        return false;
    run = ARENA_NEW(r->call->arena, struct run);
    *run = (struct run){.magic = RUN_MAGIC,
                        .phase = phase,
                        .review = *r,
                        .decode = decode,
                        .done = done,
                        .ctx = ctx};
    err_init(&none, r->call->arena);
    err_init(&run->refusal, r->call->arena);
    if (store_scan(api->o.store, w->storage[phase], STR_NULL, STR_NULL, STR_NULL, 0,
                   on_configuration, run, &none) ||
        w->n_waiting >= WEBHOOK_MOST_WAITING ||
        (phase == WEBHOOKS_MUTATING && run->n > WEBHOOK_MOST_HOOKS * 8)) {
        api_defer(api, on_too_many, run);
        return true;
    }
    if (phase == WEBHOOKS_VALIDATING)
        return start_all(run);
    if (go_on(run, &run->refusal))
        return true;
    if (run->refusal.kind)
        api_defer(api, on_refused, run);
    return run->refusal.kind != NULL;
}
