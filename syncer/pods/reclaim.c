/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that the fleet takes back. The GPUBinding says how many may be held and from when on: until
 * then the pods that will end carry condition DisruptionTarget, and an Event says so; afterwards
 * they are deleted as by a preemption, with their grace period, and their controllers replace them.
 * Must never end a pod by what is cached or was stored: the binding is the admin's word, so it is
 * read from the host once more before each deletion, and the choice is made again with what it
 * says. Nor by the answer of a host that was restored: a renewal of the Lease sent after the answer
 * proves that it was not, and after a restore the fleet has a minute to correct what came back. */
#include "core/lease.h"
#include "gpu/ledger.h"
#include "gpu/reclaim.h"
#include "pods/pods.h"

#include <string.h>

#include <sublet/config_bound.h>
#include <sublet/json_build.h>
#include <sublet/metrics.h>

#define REASON "ReclaimedByFleet"
/* Why the process ends a host pod: REASON, else absent. */
#define ANNOTATION_ENDED "sublet.dev/ended"

enum {
    LOOK_AGAIN_MS = 10000,
    CORRECTED_MS = 60000,
    DEFAULT_GRACE_S = 30,
    MARK_AGAIN_MS = 1000,
    MOST_POOLS = 1024
};

/* What the host's binding says, read for one pod. */
struct word {
    struct rational limit;
    int64_t life;        /* in which it was requested */
    int64_t answered_ms; /* 0: it is not known */
};

/* A pod that is to end, while the cached binding says so. Its strings are on the heap. */
struct mark {
    struct str uid, ns, name;
    struct word word;
    bool unsaid;  /* the host did not take the mark of its pod: it ends without */
    bool counted; /* as ended */
};

/* What was taken back of a pool since the process began. */
struct taken {
    struct str pool; /* on the heap */
    uint64_t pods;
    struct rational gpu_s;
};

struct reclaims {
    struct syncer *syncer;
    struct mark *marks;
    size_t n, cap;
    struct taken *taken;
    size_t n_taken, cap_taken;
    int64_t host_changed_ms; /* 0: it did not */
    bool due, all;           /* all: what was marked before is looked at again as well */
};

/* --- the choice --- */

struct gather {
    struct syncer *syncer;
    struct arena *arena;
    const struct config_binding *binding;
    struct reclaim_pod *pods;
    struct mark *whose; /* by their index */
    size_t n, cap, cap_whose;
};

static void on_host_pod(void *ctx, const struct host_object *o)
{
    struct gather *g = ctx;
    struct str pool = g->binding->pool->name;
    struct reclaim_pod pod = {.gpu_eq = RATIONAL_ZERO};
    struct mark whose;
    cJSON *host = NULL;

    if (!str_contains(o->bytes, pool) || json_parse(g->arena, o->bytes, &host, NULL) ||
        !str_eq(meta_label(host, LABEL_POOL), pool) || pod_is_finished(host) ||
        !translate_owner(&g->syncer->tenant, host, &whose.ns, &whose.name, &whose.uid) ||
        !sync_ledger_charge_of(g->syncer->ledger, pool, whose.uid, &pod.gpu_eq))
        return;
    pod.uid = whose.uid;
    pod.index = g->n;
    pod.created = json_str_at(host, "metadata.creationTimestamp");
    pod.priority = json_i64_at(host, "spec.priority", 0);
    pod.leaving = object_is_terminating(host);
    ARENA_GROW(g->arena, g->pods, g->n, g->cap);
    ARENA_GROW(g->arena, g->whose, g->n, g->cap_whose);
    g->pods[g->n] = pod;
    g->whose[g->n++] = whose;
}

/* The pods of the binding's pool that end if no more than the limit may be held. What counts is
 * what the host has: a pod that is charged and not there yet gives way by itself. */
static struct gather choose(struct syncer *s, struct arena *a, const struct config_binding *b,
                            struct rational limit)
{
    struct gather g = {.syncer = s, .arena = a, .binding = b};
    struct rational held = RATIONAL_ZERO;

    reflector_each(s->watches[SYNC_PODS].reflector, on_host_pod, &g);
    for (size_t i = 0; i < g.n; i++)
        if (!rational_add(held, g.pods[i].gpu_eq, &held))
            return g;
    sync_reclaim_choose(g.pods, g.n, held, limit);
    return g;
}

static bool is_chosen(const struct gather *g, struct str uid)
{
    for (size_t i = 0; i < g->n; i++)
        if (str_eq(g->pods[i].uid, uid))
            return g->pods[i].chosen;
    return false;
}

/* --- the marks --- */

static struct mark *find_mark(struct mark *marks, size_t n, struct str uid)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(marks[i].uid, uid))
            return &marks[i];
    return NULL;
}

static void marks_free(struct mark *marks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mem_free(marks[i].uid.p);
        mem_free(marks[i].ns.p);
        mem_free(marks[i].name.p);
    }
    mem_free(marks);
}

static void add_marks(struct reclaims *r, const struct gather *g, struct mark *before,
                      size_t n_before)
{
    const struct mark *was;

    for (size_t i = 0; i < g->n; i++) {
        const struct mark *w = &g->whose[g->pods[i].index];

        if (!g->pods[i].chosen)
            continue;
        GROW(r->marks, r->n, r->cap);
        was = find_mark(before, n_before, w->uid);
        r->marks[r->n++] = (struct mark){.uid = mem_str(w->uid),
                                         .ns = mem_str(w->ns),
                                         .name = mem_str(w->name),
                                         .word = was ? was->word : (struct word){.life = 0},
                                         .unsaid = was && was->unsaid,
                                         .counted = was && was->counted};
    }
}

/* The keys of those that are in one list and not in the other; of all, if so requested. */
static void add_keys(struct syncer *s, const struct mark *of, size_t n, struct mark *than,
                     size_t n_than, bool all)
{
    for (size_t i = 0; i < n; i++)
        if (all || !find_mark(than, n_than, of[i].uid))
            syncer_add(s, SYNC_PODS, of[i].ns, of[i].name);
}

static void look(void *ctx)
{
    struct reclaims *r = ctx;
    struct syncer *s = r->syncer;
    struct mark *before = r->marks;
    size_t n_before = r->n;
    bool all = r->all;

    r->due = r->all = false;
    if (syncer_is_closing(s))
        return;
    r->marks = NULL;
    r->n = r->cap = 0;
    for (size_t i = 0; i < s->config->n_bindings; i++) {
        const struct config_binding *b = &s->config->bindings[i];
        struct arena *a;
        struct gather g;

        if (!b->reclaim)
            continue;
        a = arena_new(0);
        g = choose(s, a, b, b->limit);
        add_marks(r, &g, before, n_before);
        arena_free(a);
    }
    add_keys(s, r->marks, r->n, before, n_before, all);
    add_keys(s, before, n_before, r->marks, r->n, false);
    marks_free(before, n_before);
}

static bool has_reclaim(const struct syncer *s)
{
    for (size_t i = 0; i < s->config->n_bindings; i++)
        if (s->config->bindings[i].reclaim)
            return true;
    return false;
}

void sync_reclaims_look(struct reclaims *r, bool all)
{
    if (!r) /* of a plan, which has no host */
        return;
    r->all |= all;
    if (r->due || syncer_is_closing(r->syncer) || (!r->n && !has_reclaim(r->syncer)))
        return;
    r->due = true;
    syncer_defer(r->syncer, look, r);
}

/* --- the mark of the host pod --- */

static bool is_marked(const cJSON *host)
{
    return str_eqc(meta_annotation(host, ANNOTATION_ENDED), REASON);
}

static bool is_refusal(const struct err *err)
{
    return !sync_is_uncertain(err) && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT &&
           err->kind != &ERR_TOO_MANY_REQUESTS;
}

static void on_marked(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    struct reclaims *r = run->syncer->reclaims;
    struct mark *mark = find_mark(r->marks, r->n, run->uid);

    if (!err) {
        sync_patched(run, answer, NULL);
        return;
    }
    if (mark && is_refusal(err))
        mark->unsaid = true;
    reconcile_again_after(run->reconcile, MARK_AGAIN_MS);
}

/* The fleet counts by this annotation, since the deletion of the host pod names no reason. True: a
 * request is pending, after which the choice is made again. */
static bool write_mark(struct sync_run *run, bool on)
{
    struct arena *a = run->arena;
    cJSON *value = on ? json_new_string(a, STR(REASON)) : json_new_null(a);
    cJSON *metadata =
        json_object(a, JSON("annotations", json_object(a, JSON(ANNOTATION_ENDED, value))));
    struct sync_change change = {.patch = json_object(a, JSON("metadata", metadata)),
                                 .type = PATCH_MERGE,
                                 .subresource = "",
                                 .then = on ? on_marked : NULL};

    return sync_patch(run, &change);
}

/* --- the condition --- */

static bool is_ours(const cJSON *condition)
{
    return str_eqc(json_str(json_get(condition, "reason")), REASON) &&
           str_eqc(json_str(json_get(condition, "status")), "True");
}

/* Why GPUs go back, as far as it is the tenant's own budget; empty: it is not. */
static struct str spent_budget(struct arena *a, const struct config_binding *b)
{
    struct str enforcement = json_str_at(b->budget, "enforcement");

    if (!b->budget || str_eqc(enforcement, "Warn") || json_i64_at(b->budget, "percent", 0) < 100)
        return STR("");
    return arena_printf(
        a, "the budget of %.*s %.*s for %.*s is spent", STR_F(json_str_at(b->budget, "amount")),
        STR_F(json_str_at(b->budget, "currency")), STR_F(json_str_at(b->budget, "month")));
}

/* True: a write is pending. */
static bool announce(struct sync_run *run, const struct config_binding *b)
{
    struct arena *a = run->arena;
    struct str pool = b->pool->name, when = time_format_s(a, b->reclaim_not_before_s);
    struct str why = config_maintenance_text(a, b->pool), spent = spent_budget(a, b);
    struct str text =
        arena_printf(a,
                     "pool %.*s takes GPUs back: %.*s may be held now, and this pod ends after "
                     "%.*s%s%.*s%s%.*s",
                     STR_F(pool), STR_F(rational_format(a, b->limit)), STR_F(when),
                     why.n ? "; " : "", STR_F(why), spent.n ? "; " : "", STR_F(spent));

    if (!condition_set(a, run->virtual_, "DisruptionTarget", "True", REASON, text,
                       reconcile_now_s(run->reconcile)))
        return false;
    reconcile_event(run->reconcile, run->virtual_, "Warning", REASON, "%.*s", STR_F(text));
    sync_pod_write_status(run);
    return true;
}

/* The fleet has taken its word back, or others have ended: as upstream ends a stale disruption. */
static bool withdraw(struct sync_run *run)
{
    if (!is_ours(condition_of(run->virtual_, "DisruptionTarget")))
        return is_marked(run->host) && write_mark(run, false);
    if (run->syncer->reclaims->due) { /* it is chosen again in a moment */
        reconcile_again_after(run->reconcile, LOOK_AGAIN_MS);
        return false;
    }
    condition_set(run->arena, run->virtual_, "DisruptionTarget", "False", REASON,
                  STR("its pool takes no GPUs of this pod back any more"),
                  reconcile_now_s(run->reconcile));
    sync_pod_write_status(run);
    return true;
}

/* --- the end --- */

/* What the host's binding says now; false: it is no proof that the pod may be ended. */
static bool read_answer(struct sync_run *run, const struct host_answer *answer,
                        const struct config_binding *b, struct rational *ret_limit)
{
    cJSON *object = NULL;
    int64_t after_us;

    if (json_parse(run->arena, answer->body, &object, NULL) ||
        !str_eq(json_str_at(object, "metadata.name"), b->object) ||
        !str_eq(json_str_at(object, "spec.pool"), b->pool->name) ||
        !time_parse(json_str_at(object, "status.reclaim.notBefore"), &after_us) ||
        !rational_parse(json_str_at(object, "status.grant"), ret_limit))
        return false;
    if (rational_cmp(b->most, *ret_limit) < 0)
        *ret_limit = b->most;
    return after_us / 1000000 < syncer_now_s(run->syncer);
}

/* Was the host that gave this word not restored until then? If that is not known yet, the Lease is
 * renewed, and its answer adds the key. */
static bool is_proven(struct syncer *s, const struct word *w)
{
    return w->answered_ms && w->life == s->life &&
           syncer_mono_ms(s) - w->answered_ms < LOOK_AGAIN_MS &&
           sync_lease_confirmed_since(s->lease, w->answered_ms);
}

/* -1: as the pod says. A drain gives a pod no longer than its own grace. */
static int64_t drain_grace_s(const struct config_binding *b, int64_t own_s)
{
    const struct config_maintenance *m = &b->pool->maintenance;
    int64_t most_s = m->grace_s ? m->grace_s : CONFIG_DRAIN_GRACE_S;

    return m->state == MAINTENANCE_DRAIN && own_s > most_s ? most_s : -1;
}

/* --- what is counted --- */

static struct taken *taken_of(struct reclaims *r, struct str pool)
{
    for (size_t i = 0; i < r->n_taken; i++)
        if (str_eq(r->taken[i].pool, pool))
            return &r->taken[i];
    if (r->n_taken == MOST_POOLS)
        return NULL;
    GROW(r->taken, r->n_taken, r->cap_taken);
    r->taken[r->n_taken] = (struct taken){.pool = mem_str(pool), .gpu_s = RATIONAL_ZERO};
    return &r->taken[r->n_taken++];
}

/* A pod without a node held GPUs of the quota, and no device. */
static void count_end(struct sync_run *run, struct mark *mark, struct str pool)
{
    const cJSON *scheduled = condition_of(run->host, "PodScheduled");
    struct taken *t = taken_of(run->syncer->reclaims, pool);
    int64_t now_s = syncer_now_s(run->syncer),
            since_s = object_time_s(scheduled, "lastTransitionTime");
    struct rational gpus;

    if (!t || mark->counted)
        return;
    mark->counted = true;
    t->pods++;
    if (json_str_at(run->host, "spec.nodeName").n && since_s && now_s > since_s &&
        sync_ledger_charge_of(run->syncer->ledger, pool, run->uid, &gpus) &&
        rational_mul(gpus, (struct rational){now_s - since_s, 1}, &gpus))
        rational_add_most(&t->gpu_s, gpus);
}

/* By a word that is proven. */
static void end_pod(struct sync_run *run, const struct config_binding *b, struct rational limit)
{
    struct mark *mark = find_mark(run->syncer->reclaims->marks, run->syncer->reclaims->n, run->uid);
    struct gather g = choose(run->syncer, run->arena, b, limit);

    if (!mark || !is_chosen(&g, run->uid)) {
        reconcile_again_after(run->reconcile, LOOK_AGAIN_MS);
        return;
    }
    if (!mark->unsaid && !is_marked(run->host) && write_mark(run, true))
        return;
    count_end(run, mark, b->pool->name);
    reconcile_event(run->reconcile, run->virtual_, "Warning", REASON,
                    "ended: pool %.*s has taken its GPUs back", STR_F(b->pool->name));
    sync_pod_remove_virtual(
        run, drain_grace_s(
                 b, json_i64_at(run->host, "spec.terminationGracePeriodSeconds", DEFAULT_GRACE_S)));
}

/* A pod that was deleted already ends with the drain as well, whatever it was given. True: a write
 * is pending. */
static bool shorten(struct sync_run *run, const struct config_binding *b)
{
    int64_t grace = json_i64_at(run->virtual_, "metadata.deletionGracePeriodSeconds", 0), left;

    if (!b || !b->reclaim || b->pool->maintenance.state != MAINTENANCE_DRAIN ||
        pod_is_finished(run->host) || drain_grace_s(b, grace) < 0)
        return false;
    left = b->reclaim_not_before_s + 1 - syncer_now_s(run->syncer);
    if (left > 0) {
        reconcile_again_after(run->reconcile, left * 1000);
        return false;
    }
    sync_pod_remove_virtual(run, drain_grace_s(b, grace));
    return true;
}

static void on_binding(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    const struct config_binding *b = sync_binding_of(run->syncer, run->host);
    struct reclaims *r = run->syncer->reclaims;
    struct mark *mark = find_mark(r->marks, r->n, run->uid);

    if (!err && b && mark && mark->word.life == run->syncer->life &&
        read_answer(run, answer, b, &mark->word.limit)) {
        mark->word.answered_ms = syncer_mono_ms(run->syncer);
        if (is_proven(run->syncer, &mark->word)) {
            end_pod(run, b, mark->word.limit);
            return;
        }
    }
    reconcile_again_after(run->reconcile, LOOK_AGAIN_MS);
}

static void read_binding(struct sync_run *run, const struct config_binding *b, struct mark *mark)
{
    struct host_request q = {.method = "GET"};

    mark->word = (struct word){.life = run->syncer->life};

    q.path = arena_printf(run->arena, CONFIG_GPU_BINDINGS "/%.*s",
                          STR_F(run->syncer->tenant.host_namespace), STR_F(b->object));
    sync_send(run, &q, on_binding);
}

static int64_t corrected_in_ms(const struct reclaims *r)
{
    return r->host_changed_ms ? r->host_changed_ms + CORRECTED_MS - syncer_mono_ms(r->syncer) : 0;
}

void sync_reclaims_host_changed(struct reclaims *r)
{
    if (r)
        r->host_changed_ms = syncer_mono_ms(r->syncer);
}

bool sync_pod_reclaim(struct sync_run *run)
{
    const struct reclaims *r = run->syncer->reclaims;
    const struct config_binding *b = sync_binding_of(run->syncer, run->host);
    struct mark *mark = find_mark(r->marks, r->n, run->uid);
    int64_t left;

    if (object_is_terminating(run->virtual_))
        return shorten(run, b);
    if (pod_is_finished(run->host) || object_is_terminating(run->host))
        return false;
    if (!b || !b->reclaim || !mark)
        return withdraw(run);
    if (announce(run, b))
        return true;
    left = b->reclaim_not_before_s + 1 - syncer_now_s(run->syncer);
    left = left > 0 ? left * 1000 : corrected_in_ms(r);
    if (left > 0) {
        reconcile_again_after(run->reconcile, left);
        return false;
    }
    if (!b->object.n) /* of the file: no host has another word */
        end_pod(run, b, b->limit);
    else if (is_proven(run->syncer, &mark->word))
        end_pod(run, b, mark->word.limit);
    else
        read_binding(run, b, mark);
    return true;
}

/* --- metrics --- */

static void write_taken(const struct reclaims *r, struct buf *out, enum metric metric)
{
    metrics_family(out, metric);
    for (size_t i = 0; i < r->n_taken; i++) {
        const struct taken *t = &r->taken[i];
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "pool", t->pool);
        if (metric == METRIC_GPU_RECLAIMED)
            metrics_sample_u64(out, metric, buf_str(&labels), t->pods);
        else
            metrics_sample(out, metric, buf_str(&labels),
                           (double)t->gpu_s.num / (double)t->gpu_s.den);
        buf_fini(&labels);
    }
}

void sync_reclaims_metrics(void *syncer, struct buf *out)
{
    const struct syncer *s = syncer;

    if (!s->reclaims || !s->config->n_bindings)
        return;
    for (size_t i = 0; i < s->config->n_bindings; i++)
        (void)taken_of(s->reclaims, s->config->bindings[i].pool->name); /* 0 is said as well */
    write_taken(s->reclaims, out, METRIC_GPU_RECLAIMED);
    write_taken(s->reclaims, out, METRIC_GPU_RECLAIMED_SECONDS);
}

/* --- life --- */

struct reclaims *sync_reclaims_new(struct syncer *s)
{
    struct reclaims *r = NEW(struct reclaims);

    r->syncer = s;
    return r;
}

struct reclaims *sync_reclaims_free(struct reclaims *r)
{
    if (!r)
        return NULL;
    marks_free(r->marks, r->n);
    for (size_t i = 0; i < r->n_taken; i++)
        mem_free(r->taken[i].pool.p);
    mem_free(r->taken);
    mem_free(r);
    return NULL;
}
