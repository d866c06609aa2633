/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet of all machines: pods that have a node run, end and leave, as far as the API shows.
 * No container exists. Must do nothing for pods of a machine that is down, and must remove a pod
 * only as a kubelet does: by a deletion without grace, of that uid.
 *
 *   bound -> (its references exist) -> running -> ended
 *   deletion requested -> stopped -> deleted with grace 0
 */
#include "pod_status.h"

#include <assert.h>

#include <sublet/object.h>

#define KUBELET_MAGIC  0x6b62656cu
#define NODE_IS_NEW_MS 50 /* it has no address yet */

/* Pods whose containers wait for an object, not for time. */
struct waiter {
    UT_hash_handle hh;
    char *key;
};
struct kubelet {
    unsigned magic;
    struct embedded *embedded;
    struct numbers *ips;
    uint32_t next_ip;
    struct waiter *waiters;
};

struct kubelet *kubelet_new(struct embedded *e)
{
    struct kubelet *k = NEW(struct kubelet);

    *k = (struct kubelet){.magic = KUBELET_MAGIC, .embedded = e};
    k->ips = numbers_new(POD_NET + 2, POD_NET + (1u << POD_BITS) - 2);
    return k;
}

static void forget_waiter(struct kubelet *k, struct waiter *w)
{
    HASH_DEL(k->waiters, w);
    mem_free(w->key);
    mem_free(w);
}

struct kubelet *kubelet_free(struct kubelet *k)
{
    if (!k)
        return NULL;
    assert(k->magic == KUBELET_MAGIC);
    while (k->waiters)
        forget_waiter(k, k->waiters);
    k->ips = numbers_free(k->ips);
    k->magic = 0;
    return mem_free(k);
}

static struct kubelet *kubelet_of(const struct controller *c)
{
    struct embedded *e = controller_state(c);

    assert(e->kubelet->magic == KUBELET_MAGIC);
    return e->kubelet;
}

/* --- waiting for objects --- */

static void note_waiter(struct kubelet *k, struct str key, bool waits)
{
    struct waiter *w;

    HASH_FIND(hh, k->waiters, key.p, key.n, w);
    if (w && !waits)
        forget_waiter(k, w);
    if (w || !waits)
        return;
    w = NEW(struct waiter);
    w->key = mem_strdup(key);
    HASH_ADD_KEYPTR(hh, k->waiters, w->key, key.n, w);
}

static void map_reference(struct controller *c, const struct store_event *e)
{
    struct waiter *w, *tmp;

    HASH_ITER(hh, kubelet_of(c)->waiters, w, tmp)
    {
        struct str key = str_c(w->key);

        if (e->type != STORE_DELETED && str_eq(str_sub(key, 0, str_find(key, '/')), e->object->ns))
            controller_add(c, key);
    }
}

/* --- addresses --- */

/* At start, addresses of running pods are taken before any is given out. */
static void take_address(struct kubelet *k, const struct store_object *o)
{
    struct arena *a = arena_new(0);
    uint32_t ip;

    if (str_contains(o->bytes, STR("\"podIP\"")) &&
        numbers_ip_parse(json_str_at(vapi_tree(a, o), "status.podIP"), &ip))
        numbers_take(k->ips, ip, o->uid);
    arena_free(a);
}

static void drop_address(struct kubelet *k, const struct store_object *o)
{
    struct arena *a = arena_new(0);
    uint32_t ip;

    if (numbers_ip_parse(json_str_at(vapi_tree(a, o), "status.podIP"), &ip))
        numbers_drop(k->ips, ip, o->uid);
    arena_free(a);
}

static struct str pod_address(struct kubelet *k, struct arena *a, const cJSON *pod,
                              struct str host_ip)
{
    struct str ip = json_str_at(pod, "status.podIP");
    uint32_t number;

    if (ip.n)
        return ip;
    if (json_true(json_path(pod, "spec.hostNetwork")))
        return host_ip;
    if (!numbers_find(k->ips, k->next_ip, &number))
        return STR_NULL;
    numbers_take(k->ips, number, meta_uid(pod));
    k->next_ip = number - (POD_NET + 2) + 1;
    return numbers_ip_format(a, number);
}

/* --- events --- */

static bool is_over(const struct store_object *o)
{
    return pod_phase_is_final(embedded_pod_phase(o));
}

static void map_pod(struct controller *c, const struct store_event *e)
{
    struct kubelet *k = kubelet_of(c);
    bool gone = e->type == STORE_DELETED;

    if (e->type == STORE_ADDED)
        take_address(k, e->object);
    if (gone || (is_over(e->object) && e->previous && !is_over(e->previous)))
        drop_address(k, e->object);
    logs_pod_changed(k->embedded->logs, e->object, gone);
    if (gone || embedded_pod_node(e->object).n)
        controller_map_self(c, e);
}

static bool hint_changed(const struct store_event *e)
{
    struct arena *a = arena_new(0);
    bool now = e->type != STORE_DELETED && embedded_node_is_down(vapi_tree(a, e->object));
    bool before = e->previous && embedded_node_is_down(vapi_tree(a, e->previous));

    arena_free(a);
    return now != before;
}

static void map_node(struct controller *c, const struct store_event *e)
{
    if (e->type == STORE_ADDED || hint_changed(e))
        embedded_add_pods_of_node(c, e->object->name);
}

/* --- one pod --- */

struct visit {
    struct kubelet *kubelet;
    struct reconcile *run;
    const struct resource *res;
    cJSON *pod;
};

static void on_let_go(void *ctx, const struct err *err, const struct store_object *object)
{
    bool fine = !err || err->kind == &ERR_NOT_FOUND || err->kind == &ERR_CONFLICT;

    (void)object;
    reconcile_release(ctx, fine ? NULL : err);
}

static void write_status(struct visit *v, cJSON *status)
{
    if (json_equal(status, json_get(v->pod, "status")))
        return;
    json_set(reconcile_arena(v->run), v->pod, "status", status);
    reconcile_update_status(v->run, v->res, v->pod);
}

static struct str host_address(const cJSON *node)
{
    json_each(address, json_path(node, "status.addresses"))
    {
        if (str_eqc(json_str_at(address, "type"), "InternalIP"))
            return json_str_at(address, "address");
    }
    return STR_NULL;
}

/* Deletion was requested. A pod that may end first reports how its containers ended. */
static void end_pod(struct visit *v, struct pod_view *view)
{
    struct reconcile *r = v->run;
    int64_t grace = json_i64_at(v->pod, "metadata.deletionGracePeriodSeconds", 0);
    int64_t requested = object_time_s(v->pod, "metadata.deletionTimestamp") - grace;
    int64_t due = requested + embedded_pod_stop_seconds(v->pod);
    bool running = embedded_pod_has_running(v->pod) && !pod_is_finished(v->pod);
    bool reports = !str_eqc(json_str_at(v->pod, "spec.restartPolicy"), "Always") || !grace;

    if (running && due > view->now_s) {
        reconcile_again_after(r, (due - view->now_s) * 1000);
    } else if (running && reports) {
        write_status(v, embedded_pod_status_stopped(reconcile_arena(r), view));
    } else if (grace) {
        struct vapi_delete options = {.grace_seconds = 0, .uid = meta_uid(v->pod)};

        reconcile_hold(v->run);
        vapi_delete(reconcile_api(v->run), v->res, meta_ns(v->pod), meta_name(v->pod), &options,
                    on_let_go, v->run);
    } /* else: only finalizers hold it */
}

static void run_pod(struct visit *v, struct pod_view *view)
{
    struct reconcile *r = v->run;
    struct arena *a = reconcile_arena(r);
    int64_t due;

    if (!embedded_pod_has_running(v->pod))
        embedded_pod_refs_check(r, v->pod, &view->blockage);
    note_waiter(v->kubelet, reconcile_key(r), view->blockage.reason != NULL);
    if (!view->blockage.reason)
        view->pod_ip = pod_address(v->kubelet, a, v->pod, view->host_ip);
    cJSON *status = embedded_pod_status_next(a, view, &due);
    if (view->blockage.reason && view->blockage.event &&
        !json_equal(status, json_get(v->pod, "status")))
        reconcile_event(r, v->pod, "Warning", view->blockage.event, "%.*s",
                        STR_F(view->blockage.event_message));
    write_status(v, status);
    if (due != FOREVER)
        reconcile_again_after(r, due > view->now_s ? (due - view->now_s) * 1000 : 0);
}

/* The condition that the node controller sets on pods of a silent machine. */
static void mark_unready(struct visit *v)
{
    struct arena *a = reconcile_arena(v->run);
    cJSON *status = json_copy(a, json_get(v->pod, "status")), *object = json_new_object(a);
    cJSON *ready = condition_get(json_get(status, "conditions"), "Ready");

    if (!ready || !str_eqc(json_str_at(ready, "status"), "True"))
        return;
    json_set(a, object, "status", status);
    condition_set(a, object, "Ready", "False", "NodeNotReady",
                  STR("the node of this pod is not ready"), reconcile_now_s(v->run));
    write_status(v, status);
}

static void visit_pod(struct visit *v)
{
    struct reconcile *r = v->run;
    const cJSON *node = reconcile_get(r, reconcile_resource(r, "", "nodes"), STR(""),
                                      json_str_at(v->pod, "spec.nodeName"));
    struct pod_view view = {
        .pod = v->pod,
        .now_s = reconcile_now_s(r),
        .host_ip = host_address(node),
        .pod_ip = json_str_at(v->pod, "status.podIP"),
    };

    if (!node)
        return; /* evict.c removes it, or the node is about to come */
    if (!view.host_ip.n && !embedded_node_is_down(node)) {
        reconcile_again_after(r, NODE_IS_NEW_MS);
        return;
    }
    if (embedded_node_is_down(node) && v->kubelet->embedded->external_controllers)
        return; /* silent: the node lifecycle controller judges the node */
    if (embedded_node_is_down(node))
        mark_unready(v);
    else if (object_is_terminating(v->pod))
        end_pod(v, &view);
    else if (!pod_is_finished(v->pod))
        run_pod(v, &view);
}

static void kubelet_reconcile(struct reconcile *r)
{
    struct kubelet *k = kubelet_of(reconcile_controller(r));
    const struct resource *res = reconcile_resource(r, "", "pods");
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    struct visit v = {k, r, res, reconcile_get(r, res, ns, name)};
    if (!v.pod || pod_is_finished(v.pod) || object_is_terminating(v.pod))
        note_waiter(k, reconcile_key(r), false);
    if (v.pod && json_str_at(v.pod, "spec.nodeName").n)
        visit_pod(&v);
}

static const struct controller_source KUBELET_SOURCES[] = {
    {"", "nodes", map_node},
    {"", "pods", map_pod},
    {"", "configmaps", map_reference},
    {"", "secrets", map_reference},
    {"", "persistentvolumeclaims", map_reference},
    {NULL, NULL, NULL},
};

const struct controller_def KUBELET_PART = {
    .name = "kubelet",
    .sources = KUBELET_SOURCES,
    .reconcile = kubelet_reconcile,
    .workers = 256,
};
