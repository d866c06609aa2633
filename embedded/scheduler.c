/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: pods without a node, the most important first, get the best node that may run
 * them, or a condition that says why there is none. One run decides for all that wait at that
 * moment, so that their bindings share one commit; what it decided is assumed at once. Pods that
 * wait are tried again when something changed that may help, never by the clock. Must never bind a
 * pod of another scheduler, nor one that is gated.
 *
 *   event -> ACTIVE -> run: fits -> assumed -> bound
 *               ^        '- none -> WAITING (condition and Event; victims, if any, terminate)
 *               '---- a node or pod changed ----'
 */
#include "scheduler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/json_build.h>
#include <sublet/object.h>

#define SCHEDULER_MAGIC 0x73636864u
#define MAX_A_RUN       500u
#define MANY_WAIT       64u
#define CALM_MS         200
#define RETRY_MS        1000
#define RUN_KEY         STR("/pods")

struct scheduler {
    unsigned magic;
    struct cluster cluster;
};

struct scheduler *scheduler_new(struct embedded *e)
{
    struct scheduler *s = NEW(struct scheduler);

    s->magic = SCHEDULER_MAGIC;
    cluster_init(&s->cluster, e->api);
    return s;
}

struct scheduler *scheduler_free(struct scheduler *s)
{
    if (!s)
        return NULL;
    assert(s->magic == SCHEDULER_MAGIC);
    cluster_fini(&s->cluster);
    s->magic = 0;
    return mem_free(s);
}

static struct cluster *cluster_of(const struct controller *c)
{
    struct embedded *e = controller_state(c);

    assert(e->scheduler->magic == SCHEDULER_MAGIC);
    return &e->scheduler->cluster;
}

/* --- events --- */

/* With many pending pods, they are tried again only now and then. */
static void wake(struct controller *c, bool helps)
{
    struct cluster *k = cluster_of(c);
    bool many = k->n_waiting > MANY_WAIT;

    if (helps)
        cluster_wake(k);
    if (k->n_active)
        controller_add_after(c, RUN_KEY, helps && many ? CALM_MS : 0);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    wake(c, cluster_pod_event(cluster_of(c), e));
}

static void map_node(struct controller *c, const struct store_event *e)
{
    wake(c, cluster_node_event(cluster_of(c), e));
}

/* Claims, volumes and classes: a pod may wait for them. */
static void map_other(struct controller *c, const struct store_event *e)
{
    (void)e;
    wake(c, cluster_of(c)->n_waiting > 0);
}

/* --- binding --- */

/* A pod whose binding is under way, by name: it may be deleted when the answer arrives. */
struct bound {
    struct str key, uid, node;
    cJSON *pod;
};

static void on_bound(struct reconcile *r, void *ctx, const struct err *err,
                     const struct store_object *object)
{
    struct bound *b = ctx;
    struct cluster *c = cluster_of(reconcile_controller(r));
    struct pod_entry *p = cluster_pod(c, b->key);

    (void)object;
    if (!err) {
        reconcile_event(r, b->pod, "Normal", "Scheduled", "Successfully assigned %.*s to %.*s",
                        STR_F(b->key), STR_F(b->node));
        return;
    }
    if (p && str_eq(p->uid, b->uid) && p->place == POD_PLACED && p->assumed) {
        cluster_forget(c, p);
        reconcile_again_after(r, RETRY_MS);
    }
}

static void bind_pod(struct reconcile *r, struct attempt *t, struct node_entry *n)
{
    struct arena *a = reconcile_arena(r);
    struct bound *b = ARENA_NEW(a, struct bound);
    cJSON *metadata, *target;

    *b = (struct bound){arena_str(a, t->entry->key), arena_str(a, t->entry->uid),
                        arena_str(a, n->name), t->pod};
    metadata = json_object(a, JSON("name", meta_name(t->pod)), JSON("namespace", meta_ns(t->pod)),
                           JSON("uid", b->uid));
    target = json_object(a, JSON("kind", "Node"), JSON("name", n->name));
    cluster_nominate(t->cluster, t->entry, STR_NULL);
    cluster_assume(t->cluster, t->entry, n);
    reconcile_create(r, reconcile_resource(r, "", "bindings"), meta_ns(t->pod),
                     json_object(a, JSON("metadata", metadata), JSON("target", target)));
    reconcile_then(r, on_bound, b);
}

/* --- what is reported of a pod that fits nowhere --- */

static void on_told(struct reconcile *r, void *ctx, const struct err *err,
                    const struct store_object *object)
{
    struct str *key = ctx;
    struct cluster *c = cluster_of(reconcile_controller(r));
    struct pod_entry *p = cluster_pod(c, *key);

    (void)object;
    if (!err || err->kind != &ERR_CONFLICT || !p || p->place != POD_WAITING)
        return;
    /* Another client wrote to the pod: the condition is written again, to its present state. */
    cluster_set_place(c, p, POD_ACTIVE);
    reconcile_again_after(r, CALM_MS);
}

static void report(struct reconcile *r, struct pod_entry *entry, const cJSON *pod,
                   const char *reason, struct str message)
{
    struct arena *a = reconcile_arena(r);
    cJSON *status = json_new_object(a), *patch = json_new_object(a), *list;
    const cJSON *was = condition_get(json_path(pod, "status.conditions"), "PodScheduled");
    struct str nominated = str_c(entry->nominated), *key;
    bool reported =
        str_eq(json_str_at(was, "message"), message) && str_eqc(json_str_at(was, "reason"), reason);

    if (reported && str_eq(json_str_at(pod, "status.nominatedNodeName"), nominated))
        return;
    list = json_is_array(json_path(pod, "status.conditions"))
               ? json_copy(a, json_path(pod, "status.conditions"))
               : json_new_array(a);
    json_set(a, status, "conditions", list);
    json_set(a, patch, "status", status);
    condition_set(a, patch, "PodScheduled", "False", reason, message, reconcile_now_s(r));
    json_set(a, status, "nominatedNodeName",
             nominated.n ? json_new_string(a, nominated) : json_new_null(a));
    json_set_str(a, json_ensure_object(a, patch, "metadata"), "resourceVersion",
                 json_str_at(pod, "metadata.resourceVersion"));
    reconcile_patch(r, reconcile_resource(r, "", "pods"), STR("status"), meta_ns(pod),
                    meta_name(pod), patch);
    key = ARENA_NEW(a, struct str);
    *key = arena_str(a, entry->key);
    reconcile_then(r, on_told, key);
    if (!reported && !strcmp(reason, "Unschedulable"))
        reconcile_event(r, pod, "Warning", "FailedScheduling", "%.*s", STR_F(message));
}

/* --- victims --- */

struct victim {
    struct str ns, name, uid;
};

static void on_marked(struct reconcile *r, void *ctx, const struct err *err,
                      const struct store_object *object)
{
    struct victim *v = ctx;

    (void)object;
    if (err && err->kind == &ERR_NOT_FOUND)
        return;
    reconcile_delete(r, reconcile_resource(r, "", "pods"), v->ns, v->name, v->uid, NULL);
}

static void evict_victims(struct reconcile *r, struct attempt *t, const struct victims *victims)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *pods = reconcile_resource(r, "", "pods");

    for (size_t i = 0; i < victims->n; i++) {
        cJSON *pod = vapi_tree(a, victims->list[i]->object);
        struct victim *v = ARENA_NEW(a, struct victim);
        cJSON *patch = json_new_object(a);

        *v = (struct victim){meta_ns(pod), meta_name(pod), meta_uid(pod)};
        json_set(a, json_ensure_object(a, patch, "status"), "conditions",
                 json_is_array(json_path(pod, "status.conditions"))
                     ? json_copy(a, json_path(pod, "status.conditions"))
                     : json_new_array(a));
        condition_set(a, patch, "DisruptionTarget", "True", "PreemptionByScheduler",
                      STR(DEFAULT_SCHEDULER ": preempting to accommodate a higher priority pod"),
                      reconcile_now_s(r));
        json_set_str(a, json_ensure_object(a, patch, "metadata"), "resourceVersion",
                     json_str_at(pod, "metadata.resourceVersion"));
        reconcile_event(r, pod, "Normal", "Preempted", "Preempted by pod %.*s on node %.*s",
                        STR_F(t->entry->uid), STR_F(victims->node->name));
        reconcile_patch(r, pods, STR("status"), v->ns, v->name, patch);
        reconcile_then(r, on_marked, v);
    }
    cluster_nominate(t->cluster, t->entry, victims->node->name);
}

/* --- one pod --- */

struct fit {
    struct node_entry **fitting, **helpful;
    size_t n_fitting, n_helpful;
    struct histogram reasons;
};

static void try_nodes(struct attempt *t, struct fit *f)
{
    size_t all = HASH_COUNT(t->cluster->nodes);
    struct node_entry *n, *tmp;
    struct verdict v;

    *f = (struct fit){.reasons = {.arena = t->arena}};
    f->fitting = arena_alloc(t->arena, (all + 1) * sizeof(*f->fitting));
    f->helpful = arena_alloc(t->arena, (all + 1) * sizeof(*f->helpful));
    HASH_ITER(hh, t->cluster->nodes, n, tmp)
    {
        if (filter_node(t, n, &v)) {
            f->fitting[f->n_fitting++] = n;
            continue;
        }
        if (!v.hopeless)
            f->helpful[f->n_helpful++] = n;
        for (size_t i = 0; i < v.n; i++)
            histogram_add(&f->reasons, v.reasons[i]);
    }
}

static void no_node(struct reconcile *r, struct attempt *t, struct fit *f)
{
    struct victims victims;
    struct str more = STR("");
    size_t all = HASH_COUNT(t->cluster->nodes);
    struct str text;

    cluster_set_place(t->cluster, t->entry, POD_WAITING);
    if (!all) {
        report(r, t->entry, t->pod, "Unschedulable", STR("no nodes available to schedule pods"));
        return;
    }
    bool found = preempt_find(t, f->helpful, f->n_helpful, &victims, &more);
    text = arena_printf(t->arena, "0/%zu nodes are available: %.*s.%s%.*s", all,
                        STR_F(histogram_text(&f->reasons)), more.n ? " " : "", STR_F(more));
    if (found)
        evict_victims(r, t, &victims);
    else if (!str_contains(more, STR("terminating pod")))
        cluster_nominate(t->cluster, t->entry, STR_NULL);
    report(r, t->entry, t->pod, "Unschedulable", text);
}

static void place_pod(struct reconcile *r, struct cluster *c, struct pod_entry *entry)
{
    struct attempt t;
    struct fit f;

    attempt_init(&t, c, reconcile_arena(r), entry);
    try_nodes(&t, &f);
    if (!f.n_fitting) {
        no_node(r, &t, &f);
    } else {
        struct node_entry *n = score_best(&t, f.fitting, f.n_fitting);

        if (volumes_pending(r, t.pod, n->name))
            cluster_set_place(c, entry, POD_WAITING); /* the claim's event brings it back */
        else
            bind_pod(r, &t, n);
    }
    attempt_fini(&t);
}

/* Of another scheduler, not ready to be scheduled, or final; reported where upstream reports it. */
static bool is_held(struct reconcile *r, struct pod_entry *entry, const cJSON *pod)
{
    struct str scheduler = json_str_at(pod, "spec.schedulerName"), why;

    if ((scheduler.n && !str_eqc(scheduler, DEFAULT_SCHEDULER)) || entry->deleting ||
        json_count(json_path(pod, "spec.schedulingGates")))
        return true; /* the API says SchedulingGated itself */
    why = volumes_missing(r, pod);
    if (why.n) {
        size_t all = HASH_COUNT(cluster_of(reconcile_controller(r))->nodes);

        report(
            r, entry, pod, "Unschedulable",
            arena_printf(reconcile_arena(r),
                         "0/%zu nodes are available: %.*s. preemption: 0/%zu nodes are available: "
                         "%zu Preemption is not helpful for scheduling.",
                         all, STR_F(why), all, all));
    }
    return why.n > 0;
}

/* --- a run --- */

static int by_turn(const void *x, const void *y)
{
    const struct pod_entry *a = *(struct pod_entry *const *)x, *b = *(struct pod_entry *const *)y;

    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    return a->turn < b->turn ? -1 : a->turn > b->turn;
}

static struct pod_entry **active_pods(struct reconcile *r, struct cluster *c, size_t *ret_n)
{
    struct pod_entry **list = arena_alloc(reconcile_arena(r), (c->n_active + 1) * sizeof(*list));
    struct pod_entry *p, *tmp;
    size_t n = 0;

    HASH_ITER(hh, c->pods, p, tmp)
    {
        if (p->place == POD_ACTIVE)
            list[n++] = p;
    }
    assert(n == c->n_active);
    qsort(list, n, sizeof(*list), by_turn);
    *ret_n = n;
    return list;
}

static void schedule(struct reconcile *r)
{
    struct cluster *c = cluster_of(reconcile_controller(r));
    size_t n;

    cluster_prune(c);
    struct pod_entry **list = active_pods(r, c, &n);
    for (size_t i = 0; i < n && i < MAX_A_RUN; i++) {
        struct arena *scratch = arena_new(0);
        bool held = is_held(r, list[i], vapi_tree(scratch, list[i]->object));

        arena_free(scratch);
        if (held)
            cluster_set_place(c, list[i], POD_WAITING);
        else
            place_pod(r, c, list[i]);
    }
    if (n > MAX_A_RUN)
        reconcile_again_after(r, 0);
}

static const struct controller_source SCHEDULER_SOURCES[] = {
    {"", "nodes", map_node},
    {"", "pods", map_pod},
    {"", "persistentvolumeclaims", map_other},
    {"", "persistentvolumes", map_other},
    {"storage.k8s.io", "storageclasses", map_other},
    {NULL, NULL, NULL},
};

const struct controller_def SCHEDULER_PART = {
    .name = DEFAULT_SCHEDULER,
    .sources = SCHEDULER_SOURCES,
    .reconcile = schedule,
    .workers = 1,
};
