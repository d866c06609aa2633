/* SPDX-License-Identifier: Apache-2.0 */
/* Pods leave machines that they do not tolerate (NoExecute), at once or when their toleration runs
 * out, and pods of machines that no longer exist are removed. Must never remove a pod for a taint
 * that was removed meanwhile: each run decides anew. Source: k8s.io/kubernetes
 * pkg/controller/tainteviction, pkg/controller/podgc. */
#include "impl.h"

#include <assert.h>

#include <sublet/object.h>

#define EVICTIONS_MAGIC 0x65766963u

/* Nodes with a NoExecute taint: only their pods are looked at. */
struct tainted {
    UT_hash_handle hh;
    char *name;
};
struct evictions {
    unsigned magic;
    struct tainted *map;
};

struct evictions *evictions_new(void)
{
    struct evictions *v = NEW(struct evictions);

    v->magic = EVICTIONS_MAGIC;
    return v;
}

static void forget(struct evictions *v, struct tainted *t)
{
    HASH_DEL(v->map, t);
    mem_free(t->name);
    mem_free(t);
}

struct evictions *evictions_free(struct evictions *v)
{
    if (!v)
        return NULL;
    assert(v->magic == EVICTIONS_MAGIC);
    while (v->map)
        forget(v, v->map);
    v->magic = 0;
    return mem_free(v);
}

static struct tainted *find(const struct evictions *v, struct str name)
{
    struct tainted *t;

    HASH_FIND(hh, v->map, name.p, name.n, t);
    return t;
}

static void note(struct evictions *v, struct str name, bool tainted)
{
    struct tainted *t = find(v, name);

    if (t && !tainted)
        forget(v, t);
    if (t || !tainted)
        return;
    t = NEW(struct tainted);
    t->name = mem_strdup(name);
    HASH_ADD_KEYPTR(hh, v->map, t->name, name.n, t);
}

static struct evictions *of_controller(const struct controller *c)
{
    struct embedded *e = controller_state(c);

    return e->evictions;
}

static void map_node(struct controller *c, const struct store_event *e)
{
    struct evictions *v = of_controller(c);
    bool was = find(v, e->object->name) != NULL;
    bool gone = e->type == STORE_DELETED;
    bool is = !gone && str_contains(e->object->bytes, STR("\"NoExecute\""));

    note(v, e->object->name, is);
    if (was || is || gone)
        embedded_add_pods_of_node(c, e->object->name);
}

static bool node_exists(struct controller *c, struct str name)
{
    struct vapi *api = controller_api(c);

    return store_get(vapi_store(api), embedded_resource(api, "", "nodes")->storage, STR(""), name);
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    struct str node = embedded_pod_node(e->object);

    if (node.n && e->type != STORE_DELETED &&
        (find(of_controller(c), node) || !node_exists(c, node)))
        controller_map_self(c, e);
}

/* Seconds since 1970 at which the pod must go; INT64_MAX: never. */
static int64_t eviction_due(const cJSON *node, const cJSON *pod, int64_t now_s)
{
    int64_t due = INT64_MAX;

    json_each(taint, json_path(node, "spec.taints"))
    {
        if (!str_eqc(json_str_at(taint, "effect"), "NoExecute"))
            continue;
        const cJSON *t = toleration_find(json_path(pod, "spec.tolerations"), taint);
        const cJSON *seconds = json_get(t, "tolerationSeconds");
        int64_t since = object_time_s(taint, "timeAdded"), at = now_s;
        if (t && !seconds)
            continue;
        if (t)
            at = (since ? since : now_s) + json_i64_at(t, "tolerationSeconds", 0);
        due = at < due ? at : due;
    }
    return due;
}

struct removal {
    const struct resource *res;
    struct str ns, name, uid;
    bool force;
};

static void on_removed(struct reconcile *r, void *ctx, const struct err *err,
                       const struct store_object *object)
{
    (void)ctx;
    (void)object;
    if (err && err->kind != &ERR_NOT_FOUND)
        reconcile_take(r, err);
}

static void on_force_done(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)object;
    reconcile_release(ctx, err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT ? err
                                                                                            : NULL);
}

static void remove_pod(struct reconcile *r, void *ctx)
{
    struct removal *w = ctx;
    struct vapi_delete options = {.grace_seconds = 0, .uid = w->uid};

    if (!w->force) {
        reconcile_delete(r, w->res, w->ns, w->name, w->uid, NULL);
        reconcile_then(r, on_removed, w);
        return;
    }
    reconcile_hold(r);
    vapi_delete(reconcile_api(r), w->res, w->ns, w->name, &options, on_force_done, r);
}

/* Says why first, then removes. */
static void evict(struct reconcile *r, const struct resource *res, cJSON *pod, bool orphan)
{
    struct arena *a = reconcile_arena(r);
    struct removal *w = ARENA_NEW(a, struct removal);
    bool said = !condition_set(a, pod, "DisruptionTarget", "True",
                               orphan ? "DeletionByPodGC" : "DeletionByTaintManager",
                               str_c(orphan ? "PodGC: node no longer exists"
                                            : "Taint manager: deleting due to NoExecute taint"),
                               reconcile_now_s(r));

    *w = (struct removal){res, meta_ns(pod), meta_name(pod), meta_uid(pod), orphan};
    if (orphan && !pod_is_finished(pod)) {
        json_set_str(a, json_ensure_object(a, pod, "status"), "phase", STR("Failed"));
        said = false;
    }
    if (said) {
        remove_pod(r, w);
        return;
    }
    if (!orphan)
        reconcile_event(r, pod, "Normal", "TaintManagerEviction",
                        "Marking for deletion Pod %.*s/%.*s", STR_F(w->ns), STR_F(w->name));
    reconcile_update_status(r, res, pod);
    reconcile_next(r, remove_pod, w);
}

static void evict_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "", "pods");
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    cJSON *pod = reconcile_get(r, res, ns, name);
    struct str on = json_str_at(pod, "spec.nodeName");
    if (!pod || !on.n)
        return;
    const cJSON *node = reconcile_get(r, reconcile_resource(r, "", "nodes"), STR(""), on);
    if (!node) {
        evict(r, res, pod, true);
        return;
    }
    int64_t now_s = reconcile_now_s(r), due = eviction_due(node, pod, now_s);
    if (pod_is_finished(pod) || object_is_terminating(pod) || due == INT64_MAX)
        return;
    if (due > now_s)
        reconcile_again_after(r, (due - now_s) * 1000);
    else
        evict(r, res, pod, false);
}

static const struct controller_source EVICT_SOURCES[] = {
    {"", "nodes", map_node},
    {"", "pods", map_pod},
    {NULL, NULL, NULL},
};

const struct controller_def EVICT_PART = {
    .name = "taint-eviction-controller",
    .sources = EVICT_SOURCES,
    .reconcile = evict_reconcile,
};
