/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes pods without another deleter: finished ones beyond a threshold, the oldest first, and
 * those whose node was deleted. Must never treat a node as deleted unless its deletion was observed
 * and it is still missing after a while: where the host shows no nodes, pods run all the same.
 * Source of the rules: pkg/controller/podgc of Kubernetes 1.36.
 *
 * Keys: "/ended", and "node/<name>" of a deleted node. */
#include "util.h"

#include <stdlib.h>

#define ENDED_MOST    12500
#define COALESCE_MS   20000
#define QUARANTINE_MS 40000
#define ENDED         STR("ended")
#define NODE_SPACE    STR("node")
#define BURST         500

/* --- finished pods --- */

struct ended {
    int64_t created;
    struct str ns, name, uid;
    bool evicted;
};

struct ended_list {
    struct arena *arena;
    struct ended *items;
    size_t n, room;
};

static bool phase_is_last(struct str bytes)
{
    return str_contains(bytes, STR("\"phase\":\"Succeeded\"")) ||
           str_contains(bytes, STR("\"phase\":\"Failed\""));
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct ended_list *l = ctx;
    struct arena *scratch;
    const cJSON *pod;

    if (!phase_is_last(o->bytes) || l->n == l->room)
        return true;
    scratch = arena_new(0);
    pod = vapi_tree(scratch, o);
    if (pod_is_finished(pod))
        l->items[l->n++] = (struct ended){meta_created_s(pod), arena_str(l->arena, o->ns),
                                          arena_str(l->arena, o->name), arena_str(l->arena, o->uid),
                                          str_eqc(json_str_at(pod, "status.reason"), "Evicted")};
    arena_free(scratch);
    return true;
}

/* Evicted ones first, then the oldest. */
static int compare(const void *pa, const void *pb)
{
    const struct ended *a = pa, *b = pb;

    if (a->evicted != b->evicted)
        return a->evicted ? -1 : 1;
    if (a->created != b->created)
        return a->created < b->created ? -1 : 1;
    return str_cmp(a->name, b->name);
}

static void collect_ended(struct reconcile *r, const struct resource *pods)
{
    struct store *store = vapi_store(reconcile_api(r));
    struct ended_list l = {.arena = reconcile_arena(r), .room = store_count(store, pods->storage)};
    struct err err;

    if (l.room <= ENDED_MOST)
        return;
    l.items = arena_alloc(l.arena, l.room * sizeof(*l.items));
    err_init(&err, l.arena);
    if (store_scan(store, pods->storage, STR_NULL, STR_NULL, STR_NULL, 0, on_pod, &l, &err))
        reconcile_fail(r, &err);
    if (l.n <= ENDED_MOST)
        return;
    qsort(l.items, l.n, sizeof(*l.items), compare);
    for (size_t i = 0; i < l.n - ENDED_MOST && i < BURST; i++)
        reconcile_delete_now(r, pods, l.items[i].ns, l.items[i].name, l.items[i].uid);
    if (l.n - ENDED_MOST > BURST)
        reconcile_again_after(r, 0);
}

/* --- pods of a deleted node --- */

static void on_marked(struct reconcile *r, void *ctx, const struct err *err,
                      const struct store_object *object)
{
    const cJSON *pod = ctx;

    (void)object;
    if (err)
        reconcile_take(r, err);
    else
        reconcile_delete_now(r, reconcile_resource(r, "", "pods"), meta_ns(pod), meta_name(pod),
                             meta_uid(pod));
}

/* Marks it Failed, with the reason, before deleting it: its owner may read that. */
static void collect_orphan(struct reconcile *r, const struct resource *pods, cJSON *pod)
{
    struct arena *a = reconcile_arena(r);
    int64_t now = reconcile_now_s(r);

    if (pod_is_finished(pod)) {
        reconcile_delete_now(r, pods, meta_ns(pod), meta_name(pod), meta_uid(pod));
        return;
    }
    json_set_str(a, json_ensure_object(a, pod, "status"), "phase", STR("Failed"));
    condition_set(a, pod, "DisruptionTarget", "True", "DeletionByPodGC",
                  STR("PodGC: node no longer exists"), now);
    reconcile_update_status(r, pods, pod);
    reconcile_then(r, on_marked, pod);
}

static void collect_of_node(struct reconcile *r, const struct resource *pods, struct str node)
{
    if (reconcile_get(r, reconcile_resource(r, "", "nodes"), STR(""), node))
        return; /* it exists again */
    json_each(pod, reconcile_list(r, pods, STR_NULL, NULL))
    {
        if (str_eq(json_str_at(pod, "spec.nodeName"), node))
            collect_orphan(r, pods, pod);
    }
}

static void gc_reconcile(struct reconcile *r)
{
    const struct resource *pods = reconcile_resource(r, "", "pods");
    struct str space, name;

    if (!key_split(reconcile_key(r), &space, &name))
        return;
    if (str_eq(space, NODE_SPACE))
        collect_of_node(r, pods, name);
    else
        collect_ended(r, pods);
}

/* --- events --- */

static void map_pod(struct controller *c, const struct store_event *e)
{
    struct arena *a;

    if (e->type == STORE_DELETED ||
        store_count(vapi_store(controller_api(c)), e->object->resource) <= ENDED_MOST ||
        !phase_is_last(e->object->bytes))
        return;
    a = arena_new(0);
    controller_add_after(c, key_join(a, STR(""), ENDED), COALESCE_MS);
    arena_free(a);
}

static void map_node(struct controller *c, const struct store_event *e)
{
    struct arena *a;

    if (e->type != STORE_DELETED)
        return;
    a = arena_new(0);
    controller_add_after(c, key_join(a, NODE_SPACE, e->object->name), QUARANTINE_MS);
    arena_free(a);
}

static const struct controller_source SOURCES[] = {
    {"", "pods", map_pod},
    {"", "nodes", map_node},
    {NULL, NULL, NULL},
};

const struct controller_def POD_GC_CONTROLLER = {
    .name = "pod-garbage-collector-controller",
    .sources = SOURCES,
    .reconcile = gc_reconcile,
    .workers = 1,
};
