/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSet: one pod on each matching node. Must never create a pod for a node that still has one,
 * even a terminating one. Source of the rules: pkg/controller/daemon of Kubernetes 1.36. */
#include "daemonset.h"

#define TEMPLATE_LABEL "pod-template-generation"
#define GENERATION     "deprecated.daemonset.template.generation"

/* --- nodes and pods --- */

bool ds_is_new(const struct ds *s, const cJSON *pod)
{
    return str_eq(revision_of_pod(pod), s->hash);
}

bool ds_is_available(struct ds *s, const cJSON *pod)
{
    int64_t wait;
    bool available =
        !object_is_terminating(pod) &&
        controller_pod_is_available(pod, json_i64_at(s->owner, "spec.minReadySeconds", 0),
                                    reconcile_now_s(s->run), &wait);

    if (!available && !object_is_terminating(pod) && wait)
        reconcile_again_after(s->run, wait * 1000);
    return available;
}

static void make_template(struct ds *s)
{
    struct arena *a = reconcile_arena(s->run);
    cJSON *pod =
        controller_pod_from_template(a, s->res, s->owner, json_path(s->owner, "spec.template"));
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
    size_t low = 0, high = s->n_nodes; /* nodes are sorted by name */

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

/* A pod for a node it may not run on would stay pending for ever. */
static bool is_admitted(const struct ds *s, struct str node)
{
    const struct vapi_hooks *h = vapi_get_hooks(reconcile_api(s->run));

    return !h->node_admits || h->node_admits(h->ctx, reconcile_arena(s->run), meta_ns(s->owner),
                                             s->template_pod, node);
}

static void list_nodes(struct ds *s)
{
    struct arena *a = reconcile_arena(s->run);
    size_t n;
    cJSON **nodes = controller_items(
        a, reconcile_list(s->run, reconcile_resource(s->run, "", "nodes"), STR(""), NULL), &n);

    s->nodes = arena_alloc(a, (n + 1) * sizeof(*s->nodes));
    s->n_nodes = n;
    for (size_t i = 0; i < n; i++) {
        s->nodes[i].name = meta_name(nodes[i]);
        ds_node_fits(s->template_pod, nodes[i], &s->nodes[i].run, &s->nodes[i].stay);
        s->nodes[i].run = s->nodes[i].run && is_admitted(s, s->nodes[i].name);
    }
}

void ds_drop(struct ds *s, const cJSON *pod)
{
    if (object_is_terminating(pod) || s->n_deleted == DS_BURST)
        return;
    s->n_deleted++;
    reconcile_delete(s->run, s->pods_res, meta_ns(pod), meta_name(pod), meta_uid(pod), NULL);
    reconcile_event(s->run, s->owner, "Normal", "SuccessfulDelete", "Deleted pod: %.*s",
                    STR_F(meta_name(pod)));
}

void ds_make(struct ds *s, const struct ds_node *node)
{
    if (s->batch.wanted < DS_BURST)
        s->make[s->batch.wanted++] = node->name;
}

/* Each node gets its part of one array, as long as its count. Pods of nodes that no longer exist
 * are deleted. */
static void assign_pods(struct ds *s)
{
    cJSON **places = arena_alloc(reconcile_arena(s->run), (s->n_pods + 1) * sizeof(*places));

    for (size_t i = 0; i < s->n_pods; i++) {
        struct str name = ds_node_of(s->pods[i]);
        struct ds_node *node = node_find(s, name);

        if (node)
            node->n++;
        else if (name.n)
            ds_drop(s, s->pods[i]);
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
        c.available += ds_is_available(s, pod);
        c.updated += ds_is_new(s, pod);
    }
    return c;
}

static void finish(struct reconcile *r, void *ctx)
{
    struct ds *s = ctx;
    struct arena *a = reconcile_arena(r);
    cJSON *status = json_ensure_object(a, s->owner, "status");
    struct ds_counts c = count(s);

    controller_status_set(a, status, "desiredNumberScheduled", c.desired, true);
    controller_status_set(a, status, "currentNumberScheduled", c.current, true);
    controller_status_set(a, status, "numberMisscheduled", c.misplaced, true);
    controller_status_set(a, status, "numberReady", c.ready, true);
    controller_status_set(a, status, "numberAvailable", c.available, false);
    controller_status_set(a, status, "numberUnavailable", c.desired - c.available, false);
    controller_status_set(a, status, "updatedNumberScheduled", c.updated, false);
    controller_status_set(a, status, "observedGeneration",
                          json_i64_at(s->owner, "metadata.generation", 0), false);
    controller_status_commit(r, s->res, s->owner, s->as_read);
    revisions_prune(&s->revisions, NULL, s->pods, s->n_pods);
}

/* --- reconcile --- */

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
    s->pods =
        controller_items(a, objects_claim(r, s->pods_res, s->res, s->owner, &selector), &s->n_pods);
    if (!reconcile_error(r)) {
        s->batch = (struct pod_batch){
            .run = s->run, .owner = s->owner, .make = make_pod, .ctx = s, .done = finish};
        make_template(s);
        list_nodes(s);
        assign_pods(s);
        ds_bounds(s);
        for (size_t i = 0; i < s->n_nodes; i++)
            ds_tend(s, &s->nodes[i]);
        if (!s->n_deleted && !s->batch.wanted)
            ds_renew(s);
        pods_create(&s->batch);
    }
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    controller_map_dependent(c, e, "apps", "daemonsets", STR("DaemonSet"));
}

static void map_revision(struct controller *c, const struct store_event *e)
{
    controller_map_owner(c, e, STR("DaemonSet"));
}

/* A heartbeat does not matter; labels and spec do. */
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

static void *start(struct controller *c)
{
    (void)c;
    return NEW(struct ds_failures);
}

static void stop(struct controller *c, void *state)
{
    (void)c;
    mem_free(state);
}

static const struct controller_source SOURCES[] = {{"apps", "daemonsets", controller_map_self},
                                                   {"", "pods", map_pod},
                                                   {"", "nodes", map_node},
                                                   {"apps", "controllerrevisions", map_revision},
                                                   {NULL, NULL, NULL}};

const struct controller_def DAEMON_SET_CONTROLLER = {
    .name = "daemonset-controller",
    .account = "daemon-set-controller",
    .retries = "DaemonSet",
    .sources = SOURCES,
    .reconcile = ds_reconcile,
    .start = start,
    .stop = stop,
};
