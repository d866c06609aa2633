/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSet: one pod on each node that it fits. Must never make a pod for a node that still has
 * one, even one that is going. Source of the rules: pkg/controller/daemon of Kubernetes 1.36. */
#include "daemonset_nodes.h"
#include "revisions.h"

#define DS_BURST       250
#define TEMPLATE_LABEL "pod-template-generation"
#define GENERATION     "deprecated.daemonset.template.generation"

struct ds_node {
    struct str name;
    bool run, stay;
    cJSON **pods; /* the set's, of `n` */
    size_t n;
};

struct ds {
    struct reconcile *run;
    const struct resource *res, *pods_res;
    cJSON *owner, *as_read;
    struct revisions revisions;
    struct str hash;
    const cJSON *template_pod;
    struct ds_node *nodes;
    size_t n_nodes, n_deleted;
    cJSON **pods;
    size_t n_pods;
    struct str make[DS_BURST]; /* names of nodes */
    struct pod_batch batch;
};

/* --- nodes and pods --- */

static bool is_new(const struct ds *s, const cJSON *pod)
{
    return str_eq(revision_of_pod(pod), s->hash);
}

static bool is_available(struct ds *s, const cJSON *pod)
{
    int64_t wait;
    bool available =
        !is_going(pod) && pod_is_available(pod, json_i64_at(s->owner, "spec.minReadySeconds", 0),
                                           reconcile_now_s(s->run), &wait);

    if (!available && !is_going(pod) && wait)
        reconcile_again_after(s->run, wait * 1000);
    return available;
}

static void make_template(struct ds *s)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *pod = pod_from_template(a, s->res, s->owner, json_path(s->owner, "spec.template"));
    cJSON *labels = json_ensure_path(a, pod, "metadata.labels");
    struct str generation =
        json_str(json_get(json_path(s->owner, "metadata.annotations"), GENERATION));

    json_set_str(a, labels, REVISION_LABEL, s->hash);
    if (generation.n)
        json_set_str(a, labels, TEMPLATE_LABEL, generation);
    ds_tolerate(a, pod);
    s->template_pod = pod;
}

static struct ds_node *node_find(struct ds *s, struct str name)
{
    size_t low = 0, high = s->n_nodes; /* nodes are listed by name */

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(name, s->nodes[middle].name);

        if (!order)
            return &s->nodes[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static void list_nodes(struct ds *s)
{
    struct arena *a = reconcile_arena(s->run);
    size_t n;
    cJSON **nodes = json_items(
        a, reconcile_list(s->run, reconcile_resource(s->run, "", "nodes"), STR(""), NULL), &n);

    s->nodes = arena_alloc(a, (n + 1) * sizeof(*s->nodes));
    s->n_nodes = n;
    for (size_t i = 0; i < n; i++) {
        s->nodes[i].name = meta_name(nodes[i]);
        ds_node_fits(s->template_pod, nodes[i], &s->nodes[i].run, &s->nodes[i].stay);
    }
}

static void drop(struct ds *s, const cJSON *pod, bool failed)
{
    if (is_going(pod) || s->n_deleted == DS_BURST)
        return;
    s->n_deleted++;
    reconcile_delete(s->run, s->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod), NULL);
    if (failed)
        reconcile_event(s->run, s->owner, "Warning", "FailedDaemonPod",
                        "Found failed daemon pod %.*s/%.*s on node %.*s, will try to kill it",
                        STR_F(meta_ns(pod)), STR_F(meta_name(pod)), STR_F(ds_node_of(pod)));
    reconcile_event(s->run, s->owner, "Normal", "SuccessfulDelete", "Deleted pod: %.*s",
                    STR_F(meta_name(pod)));
}

/* Each node gets its part of one array, as large as its count. Pods for a node that is not there
 * any more go. */
static void assign_pods(struct ds *s)
{
    cJSON **places = arena_alloc(reconcile_arena(s->run), (s->n_pods + 1) * sizeof(*places));

    for (size_t i = 0; i < s->n_pods; i++) {
        struct str name = ds_node_of(s->pods[i]);
        struct ds_node *node = node_find(s, name);

        if (node)
            node->n++;
        else if (name.n)
            drop(s, s->pods[i], false);
    }
    for (size_t i = 0; i < s->n_nodes; i++) {
        s->nodes[i].pods = places;
        places += s->nodes[i].n;
        s->nodes[i].n = 0;
    }
    for (size_t i = 0; i < s->n_pods; i++) {
        struct ds_node *node = node_find(s, ds_node_of(s->pods[i]));

        if (node)
            node->pods[node->n++] = s->pods[i];
    }
}

static cJSON *oldest(const struct ds_node *node)
{
    cJSON *found = NULL;

    for (size_t i = 0; i < node->n; i++) {
        if (!found || meta_created_s(node->pods[i]) < meta_created_s(found))
            found = node->pods[i];
    }
    return found;
}

/* --- one pod on each --- */

static void tend(struct ds *s, struct ds_node *node)
{
    cJSON *kept = NULL;

    for (size_t i = 0; i < node->n; i++) {
        cJSON *pod = node->pods[i];

        if (!node->stay || pod_is_finished(pod)) {
            drop(s, pod, node->stay);
        } else if (pod_is_active(pod) && kept) {
            bool older = meta_created_s(pod) < meta_created_s(kept);

            drop(s, older ? kept : pod, false);
            kept = older ? pod : kept;
        } else if (pod_is_active(pod))
            kept = pod;
    }
    if (node->run && !node->n && s->batch.wanted < DS_BURST)
        s->make[s->batch.wanted++] = node->name;
}

/* What is old and not available goes at once, what is available only as far as allowed. */
static void renew(struct ds *s)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON **old = arena_alloc(a, (s->n_nodes + 1) * sizeof(*old));
    size_t n_old = 0;
    int64_t desired = 0, away = 0;

    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct ds_node *node = &s->nodes[i];

        desired += node->run;
        if (!node->run)
            continue;
        if (node->n != 1 || !is_available(s, node->pods[0])) {
            away++;
            if (node->n == 1 && pod_is_active(node->pods[0]) && !is_new(s, node->pods[0]))
                drop(s, node->pods[0], false);
        } else if (!is_new(s, node->pods[0]))
            old[n_old++] = node->pods[0];
    }
    int64_t allowed = scaled_value(
        json_path(s->owner, "spec.updateStrategy.rollingUpdate.maxUnavailable"), desired, true, 1);
    if (allowed < 1)
        allowed = 1;
    for (size_t i = 0; i < n_old && away < allowed; i++, away++)
        drop(s, old[i], false);
}

static cJSON *make_pod(void *ctx, size_t i)
{
    struct ds *s = ctx;
    struct arena *a = reconcile_arena(s->run);
    cJSON *pod = json_copy(a, s->template_pod);

    ds_bind(a, pod, s->make[i]);
    return pod;
}

/* --- status --- */

struct ds_counts {
    int64_t desired, current, ready, available, misplaced, updated;
};

static struct ds_counts count(struct ds *s)
{
    struct ds_counts c = {0};

    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct ds_node *node = &s->nodes[i];
        const cJSON *pod = oldest(node);

        c.desired += node->run;
        c.misplaced += !node->run && pod;
        if (!node->run || !pod)
            continue;
        c.current++;
        c.ready += pod_is_ready(pod);
        c.available += is_available(s, pod);
        c.updated += is_new(s, pod);
    }
    return c;
}

static void finish(struct reconcile *r, void *ctx)
{
    struct ds *s = ctx;
    struct arena *a = reconcile_arena(r);
    cJSON *status = json_ensure_object(a, s->owner, "status");
    struct ds_counts c = count(s);

    status_set(a, status, "desiredNumberScheduled", c.desired, true);
    status_set(a, status, "currentNumberScheduled", c.current, true);
    status_set(a, status, "numberMisscheduled", c.misplaced, true);
    status_set(a, status, "numberReady", c.ready, true);
    status_set(a, status, "numberAvailable", c.available, false);
    status_set(a, status, "numberUnavailable", c.desired - c.available, false);
    status_set(a, status, "updatedNumberScheduled", c.updated, false);
    status_set(a, status, "observedGeneration", json_i64_at(s->owner, "metadata.generation", 0),
               false);
    status_commit(r, s->res, s->owner, s->as_read);
    revisions_prune(&s->revisions, NULL, s->pods, s->n_pods);
}

/* --- reconcile --- */

static void manage(struct ds *s)
{
    s->batch = (struct pod_batch){
        .run = s->run, .owner = s->owner, .make = make_pod, .ctx = s, .done = finish};
    make_template(s);
    list_nodes(s);
    assign_pods(s);
    for (size_t i = 0; i < s->n_nodes; i++)
        tend(s, &s->nodes[i]);
    if (!s->n_deleted && !s->batch.wanted &&
        !str_eqc(json_str_at(s->owner, "spec.updateStrategy.type"), "OnDelete"))
        renew(s);
    pods_create(&s->batch);
}

static void ds_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    struct ds *s = ARENA_NEW(a, struct ds);
    struct selector selector;

    s->run = r;
    s->pods_res = reconcile_resource(r, "", "pods");
    if (!revisions_load(&s->revisions, r, "daemonsets", REVISION_LABEL, &selector))
        return;
    s->res = s->revisions.owner_res;
    s->owner = s->revisions.owner;
    s->as_read = s->revisions.as_read;
    s->hash = revision_hash(&s->revisions, s->revisions.update);
    s->pods = json_items(a, objects_claim(r, s->pods_res, s->res, s->owner, &selector), &s->n_pods);
    if (!reconcile_error(r))
        manage(s);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    map_dependent(c, e, "apps", "daemonsets", STR("DaemonSet"));
}

static void map_revision(struct controller *c, const struct store_event *e)
{
    controller_map_owner(c, e, STR("DaemonSet"));
}

/* A heartbeat changes nothing here; labels and spec do. */
static bool node_changed(const struct store_event *e)
{
    if (!e->previous || e->type == STORE_DELETED || !str_eq(e->previous->labels, e->object->labels))
        return true;
    struct arena *a = arena_new(0);
    bool changed = !json_equal(json_get(vapi_tree(a, e->object), "spec"),
                               json_get(vapi_tree(a, e->previous), "spec"));

    arena_free(a);
    return changed;
}

static bool on_set(void *ctx, const struct store_object *o)
{
    struct arena *a = arena_new(0);

    controller_add(ctx, key_join(a, o->ns, o->name));
    arena_free(a);
    return true;
}

static void map_node(struct controller *c, const struct store_event *e)
{
    struct vapi *api = controller_api(c);
    const struct resource *sets =
        registry_find_group_resource(vapi_registry(api), STR("apps"), STR("daemonsets"));

    if (node_changed(e))
        store_scan_latest(vapi_store(api), sets->storage, STR_NULL, on_set, c);
}

static const struct controller_source SOURCES[] = {{"apps", "daemonsets", controller_map_self},
                                                   {"", "pods", map_pod},
                                                   {"", "nodes", map_node},
                                                   {"apps", "controllerrevisions", map_revision},
                                                   {NULL, NULL, NULL}};

const struct controller_def DAEMON_SET_CONTROLLER = {
    .name = "daemonset-controller",
    .sources = SOURCES,
    .reconcile = ds_reconcile,
};
