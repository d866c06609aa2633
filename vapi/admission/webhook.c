/* SPDX-License-Identifier: Apache-2.0 */
/* The pause of a write: its webhooks are called, mutating ones one after another and validating
 * ones all at once. Must never store anything, block the loop, call more servers at once than the
 * bound, or go on with a write whose client has gone.
 *
 *   run -> post -> [waiting for a turn] -> sent -> answered -> next post -> ... -> done()
 *    '-> [waiting for a version of the object] -^
 *
 * Source: apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go. */
#include "plugins.h"
#include "webhook_impl.h"

#include "../core/calls.h"

#include <assert.h>

#include <sublet/encode.h>
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
    struct compiled **held; /* the configurations of the hooks */
    size_t n_held;
    struct webhook_hook *hooks;
    size_t n, cap, next, pending;
    int64_t left;   /* of POLICY_REQUEST_LIMIT, for matchConditions */
    unsigned round; /* 1: hooks that asked for it are called again */
    bool changed, mutates_again;
    struct webhook_form form;
    bool waits;                /* for a version of the object */
    size_t chosen;             /* validating hooks that apply, of those before `next` */
    const struct post *failed; /* the first of its hooks' */
    struct err refusal;        /* before any hook was called */
};

struct webhooks {
    struct vapi *api;
    struct compiled_budget budget;
    struct compiled_list lists[2]; /* by phase */
    size_t under_way, n_waiting;
    STAILQ_HEAD(, post) waiting;
};

struct webhooks *webhooks_new(struct vapi *api)
{
    struct webhooks *w = NEW(struct webhooks);

    w->api = api;
    w->budget = COMPILED_BUDGET;
    STAILQ_INIT(&w->waiting);
    for (size_t i = 0; i < COUNT(w->lists); i++)
        compiled_list_init(&w->lists[i], api, &WEBHOOK_CONFIGURATIONS[i], &w->budget);
    return w;
}

struct webhooks *webhooks_free(struct webhooks *w)
{
    assert(!w || (!w->under_way && !w->n_waiting));
    for (size_t i = 0; w && i < COUNT(w->lists); i++)
        compiled_list_fini(&w->lists[i]);
    assert(!w || !w->budget.used);
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

static void add_hooks(struct run *run, const struct webhook_configuration *w)
{
    struct arena *a = run->review.call->arena;
    const struct webhook_parts *parts = w->parts;

    json_each(spec, w->hooks)
    {
        ARENA_GROW(a, run->hooks, run->n, run->cap);
        run->hooks[run->n] = (struct webhook_hook){
            .configuration = w->head.name,
            .name = json_str(json_get(spec, "name")),
            .spec = spec,
            .parts = parts++,
            .index = run->n,
            .ignores = str_eqc(json_str(json_get(spec, "failurePolicy")), "Ignore"),
            .again = str_eqc(json_str(json_get(spec, "reinvocationPolicy")), "IfNeeded"),
        };
        run->n++;
    }
}

/* In the order of their names. What is held does not change while the write pauses. -1: one that
 * is left out says so. */
static int hold_configurations(struct run *run, const struct compiled_list *l, struct err *err)
{
    run->held = arena_alloc(run->review.call->arena, l->n * sizeof(struct compiled *));
    for (size_t i = 0; i < l->n; i++) {
        const struct webhook_configuration *w = (struct webhook_configuration *)l->items[i];

        if (!w->head.arena && !w->ignores)
            return err_set(err, &ERR_INTERNAL,
                           "Internal error occurred: %s %.*s is left out: all together are too "
                           "large, or too many",
                           l->kind->plural, STR_F(go_quote(run->review.call->arena, w->head.name)));
        run->held[run->n_held++] = compiled_ref(l->items[i]);
        add_hooks(run, w);
    }
    return 0;
}

static void release_configurations(struct run *run)
{
    while (run->n_held)
        compiled_unref(run->held[--run->n_held]);
}

/* ---- the request ---- */

/* What its conditions say, it fails by. False: it does not apply, with err, or run->waits for the
 * version that it reads. */
static bool applies(struct run *run, struct webhook_pass *pass, struct webhook_hook *h,
                    struct err *err)
{
    int ready;

    if (webhook_pass_matches(pass, h, err) <= 0)
        return false;
    ready = webhook_form_open(&run->form, run->phase, &run->review, h->as, err);
    run->waits = !ready;
    return ready > 0 && webhook_pass_admits(pass, h, err) > 0;
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
        struct str url = json_str(json_get(client, "url")), rest = str_from(url, 8);

        q->url = arena_printf(a, "%.*s%s?timeout=%llds", STR_F(url),
                              str_find(rest, '/') < rest.n ? "" : "/", (long long)timeout_of(h));
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

/* Versions that hooks of one phase read are kept until its end. */
static void open_again(const struct post *p)
{
    struct run *run = p->run;
    struct err err;
    int ready;

    err_init(&err, NULL);
    ready = webhook_form_open(&run->form, run->phase, &run->review, p->hook->as, &err);
    assert(ready > 0);
}

static cJSON *seen(struct arena *a, const struct post *p, bool old)
{
    const struct run *run = p->run;

    return webhook_shown(a, run->phase, &run->review, &run->form, p->hook->as, old);
}

static void send_post(struct post *p)
{
    struct run *run = p->run;
    struct vapi *api = run->review.call->api;
    const struct vapi_hooks *h = vapi_get_hooks(api);
    struct buf body = BUF_INIT(0);
    struct vapi_webhook q = {0};
    struct policy_request request = {0};
    struct admission_call call;
    struct arena *a;

    webhooks_of(api)->under_way++;
    if (!h->webhook) {
        api_defer(api, on_unreachable, p);
        return;
    }
    a = arena_new(0);
    describe(a, p->hook, &q);
    rng_uuid(vapi_rng(api), p->uid);
    webhook_request(run->phase, &run->review, a, &call, &request);
    open_again(p);
    webhook_print(&request, p->hook->as, str_c(p->uid), seen(a, p, false), seen(a, p, true), &body);
    q.body = buf_str(&body);
    h->webhook(h->ctx, &q, on_answer, p);
    buf_fini(&body);
    arena_free(a);
}

/* ---- turns ---- */

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
    if (call_check_over(p->run->review.call, NULL))
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

/* The object as hooks that read its own version see it. */
static cJSON *own(struct arena *a, const struct run *run)
{
    return webhook_shown(a, run->phase, &run->review, &run->form, run->review.call->resource,
                         false);
}

/* Upstream converts back whatever a patch leaves. */
static void put(struct run *run, cJSON *made, bool changed)
{
    if (run->form.as) {
        run->form.object = made;
        run->form.changed = true;
    } else if (changed) {
        webhook_unhide(&run->review, made);
        run->review.object = made;
    }
}

static int apply_patch(struct post *p, const cJSON *patch, struct err *err)
{
    struct run *run = p->run;
    struct call *c = run->review.call;
    cJSON *before, *made = NULL;
    bool changed;

    if (!run->review.object) {
        err_set(err, &ERR_INTERNAL,
                "admission webhook %.*s attempted to modify the object, which is not supported for "
                "this operation",
                STR_F(go_quote(c->arena, p->hook->name)));
        return refuse_internal(run, err);
    }
    if (arena_left(c->arena) < LEAST_ARENA)
        return err_set(err, &ERR_TOO_LARGE, "the patches of admission webhooks are too large");
    before = seen(c->arena, p, false);
    if (patch_json(c->arena, json_copy(c->arena, before), json_copy(c->arena, patch), &made, err))
        return refuse_internal(run, err);
    changed = !json_equal(before, made);
    if (json_deeper(made, JSON_LIMITS.depth) || run->decode(c, p->hook->as, made, err)) {
        if (!err->kind)
            err_set(err, &ERR_INTERNAL, "the patched object is nested too deeply");
        return refuse_internal(run, err);
    }
    if (!c->resource->crd || run->review.apart) /* upstream compares what it decoded */
        changed = !json_equal(made, own(c->arena, run));
    put(run, made, changed);
    if (changed)
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
    release_configurations(run);
    run->done(run->ctx, run->review.object, run->changed || run->form.replaced, err);
}

/* A hook changed the object: the built-in plug-ins see it once more. A policy among them may wait
 * for another version; then all are repeated. */
static int mutate_again(struct run *run, struct err *err)
{
    struct call *c = run->review.call;
    cJSON *before = json_copy(c->arena, run->review.object), *replaced = NULL;
    struct admission_call admission;

    call_admission(c, run->review.operation, &admission);
    admission.apart = run->review.apart;
    admission.decode = run->decode;
    admission.replaced = &replaced;
    admission.again = true;
    if (admission_mutate(&admission, run->review.object, run->review.old, err)) {
        run->waits = versions_wanted(&call_entry(c)->of_admission);
        if (run->waits) {
            err_clear(err);
            run->review.object->child = before->child;
        }
        return -1;
    }
    run->mutates_again = false;
    if (!json_equal(before, run->review.object))
        note_change(run, NULL);
    return 0;
}

/* The next mutating hook of this round; NULL: none is left, it waits, or err. */
static struct webhook_hook *next_hook(struct run *run, struct err *err)
{
    struct webhook_hook *found = NULL;
    struct webhook_pass pass;

    webhook_pass_begin(&pass, run->phase, &run->review, &run->form, run->left);
    while (!found && !err->kind && !run->waits && run->next < run->n) {
        struct webhook_hook *h = &run->hooks[run->next];

        if ((!run->round || h->due) && applies(run, &pass, h, err))
            found = h;
        run->next += !run->waits;
    }
    run->left = webhook_pass_end(&pass);
    return found;
}

/* True: the object has its own version, and the second round begins. */
static bool next_round(struct run *run, struct err *err)
{
    int ready = webhook_form_close(&run->form, &run->review, err);

    run->waits = !ready;
    if (ready <= 0 || run->round || !run->changed || !run->review.object)
        return false;
    run->round = 1;
    run->next = 0;
    run->mutates_again = true;
    return true;
}

static void on_versions(void *ctx, const struct err *err);

/* True: the run goes on when what it waits for is made. */
static bool await(struct run *run)
{
    if (!run->waits)
        return false;
    run->waits = false;
    return versions_make(&call_entry(run->review.call)->of_admission, on_versions, run);
}

/* Starts the next mutating hook, or waits. False: none is left, or with err. */
static bool go_on(struct run *run, struct err *err)
{
    struct webhook_hook *h = NULL;

    do {
        if (!run->mutates_again || !mutate_again(run, err))
            h = next_hook(run, err);
    } while (!h && !err->kind && !run->waits && next_round(run, err));
    if (h)
        start_post(run, h);
    return h || await(run);
}

static void on_answer(void *ctx, int status, struct str body, const struct err *err)
{
    struct post *p = ctx;
    struct run *run = p->run;
    struct webhooks *w = webhooks_of(run->review.call->api);
    struct arena *scratch = arena_new(0);
    struct err failure;
    bool over;

    assert(run->magic == RUN_MAGIC && run->pending && w->under_way);
    run->pending--;
    w->under_way--;
    next_turn(w);
    err_init(&failure, run->review.call->arena);
    over = call_check_over(run->review.call, &failure);
    if (!over && judge(p, status, body, err, scratch) &&
        (!run->failed || p->hook->index < run->failed->hook->index))
        run->failed = p;
    arena_free(scratch);
    if (run->pending)
        return;
    if (over)
        end_run(run, &failure);
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

/* By a configuration that is left out, or by conditions, before any hook was called. */
static void on_refused(void *ctx)
{
    struct run *run = ctx;

    end_run(run, &run->refusal);
}

/* Decides about all hooks before the first is called. */
static bool start_all(struct run *run, struct err *err)
{
    struct webhook_pass pass;

    webhook_pass_begin(&pass, run->phase, &run->review, &run->form, run->left);
    while (run->next < run->n && !err->kind && !run->waits) {
        if (applies(run, &pass, &run->hooks[run->next], err))
            run->hooks[run->chosen++] = run->hooks[run->next];
        run->next += !run->waits;
    }
    run->left = webhook_pass_end(&pass);
    if (err->kind || run->waits)
        return await(run);
    if (run->chosen > WEBHOOK_MOST_HOOKS)
        api_defer(run->review.call->api, on_too_many, run);
    for (size_t i = 0; i < run->chosen && run->chosen <= WEBHOOK_MOST_HOOKS; i++)
        start_post(run, &run->hooks[i]);
    return run->chosen > 0;
}

static bool advance(struct run *run, struct err *err)
{
    return run->phase == WEBHOOKS_MUTATING ? go_on(run, err) : start_all(run, err);
}

static void on_versions(void *ctx, const struct err *err)
{
    struct run *run = ctx;
    struct err failure;

    assert(run->magic == RUN_MAGIC && !run->pending && !err);
    err_init(&failure, run->review.call->arena);
    if (call_check_over(run->review.call, &failure) || !advance(run, &failure))
        end_run(run, failure.kind ? &failure : NULL);
}

/* False: no hook is called. */
static bool start(struct run *run, struct webhooks *w)
{
    struct err *err = &run->refusal;
    bool mutates = run->phase == WEBHOOKS_MUTATING;

    if (hold_configurations(run, &w->lists[run->phase], err)) {
        api_defer(w->api, on_refused, run);
        return true;
    }
    if (w->n_waiting >= WEBHOOK_MOST_WAITING || (mutates && run->n > WEBHOOK_MOST_HOOKS * 8)) {
        api_defer(w->api, on_too_many, run);
        return true;
    }
    if (advance(run, err))
        return true;
    if (err->kind)
        api_defer(w->api, on_refused, run);
    else
        release_configurations(run);
    return err->kind != NULL;
}

bool webhooks_run(enum webhook_phase phase, const struct webhook_review *r, webhook_decode decode,
                  webhook_done done, void *ctx)
{
    struct vapi *api = r->call->api;
    struct webhooks *w = webhooks_of(api);
    struct run *run;

    if (webhook_is_exempt(r))
        return false;
    compiled_refresh(api, &w->lists[phase]);
    if (!w->lists[phase].n)
        return false;
    run = ARENA_NEW(r->call->arena, struct run);
    *run = (struct run){.magic = RUN_MAGIC,
                        .phase = phase,
                        .review = *r,
                        .decode = decode,
                        .done = done,
                        .ctx = ctx,
                        .left = POLICY_REQUEST_LIMIT};
    err_init(&run->refusal, r->call->arena);
    return start(run, w);
}
