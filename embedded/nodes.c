/* SPDX-License-Identifier: Apache-2.0 */
/* The machines: made from the nodes file when they do not exist, Ready unless a hint says that
 * they are down, with address, lease and the taints that evict pods. A Node added through the API
 * gets a machine as well. Must never change what an administrator set on a Node.
 *
 *   hint "down": Ready Unknown, taint unreachable (as a node whose kubelet went silent)
 *
 * Where upstream's manager judges nodes, there are only kubelets: short leases, no taints, silence
 * of those that are down.
 *
 * Source: k8s.io/kubernetes pkg/controller/nodelifecycle. */
#include "impl.h"

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/object.h>

#define LEASE_NS      "kube-node-lease"
#define LEASE_SECONDS 3600
#define LEASE_RENEW_S 1200
#define JUDGED_SECONDS                                                                             \
    40 /* as a kubelet's: upstream's controller watches how often the lease is renewed */
#define JUDGED_RENEW_S  10
#define UNREACHABLE     "node.kubernetes.io/unreachable"
#define NOT_READY       "node.kubernetes.io/not-ready"
#define SILENT          "Kubelet stopped posting node status."
#define KUBELET_VERSION "v1.36.3"

/* --- the file --- */

static void on_seeded(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)object;
    if (err && err->kind != &ERR_ALREADY_EXISTS)
        log_error("embedded host: node not made: %.*s", STR_F(err->message));
}

void nodes_seed(struct embedded *e)
{
    struct arena *a = arena_new(0);
    const struct resource *res = embedded_resource(e->api, "", "nodes");
    cJSON *nodes;
    struct err err;

    err_init(&err, a);
    int failed = node_file_parse(a, e->nodes, &nodes, &err);
    assert(!failed); /* embedded_new() read it */
    json_each(node, nodes)
    {
        if (!store_latest(vapi_store(e->api), res->storage, STR(""), meta_name(node)))
            vapi_create(e->api, res, STR(""), node, on_seeded, e);
    }
    arena_free(a);
}

/* --- conditions --- */

static const struct {
    const char *type, *up, *reason, *message;
} CONDITIONS[] = {
    {"MemoryPressure", "False", "KubeletHasSufficientMemory",
     "kubelet has sufficient memory available"},
    {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
    {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
    {"Ready", "True", "KubeletReady", "simulated kubelet is posting ready status"},
};
#define N_CONDITIONS COUNT(CONDITIONS)

static bool set_conditions(struct arena *a, cJSON *node, bool down, int64_t now_s)
{
    struct str now = time_format_s(a, now_s);
    bool changed = false;

    for (size_t i = 0; i < N_CONDITIONS; i++) {
        const char *status = down ? "Unknown" : CONDITIONS[i].up;

        if (!condition_set(a, node, CONDITIONS[i].type, status,
                           down ? "NodeStatusUnknown" : CONDITIONS[i].reason,
                           str_c(down ? SILENT : CONDITIONS[i].message), now_s))
            continue;
        cJSON *c = condition_get(json_path(node, "status.conditions"), CONDITIONS[i].type);
        json_set_str(a, c, "lastHeartbeatTime", now);
        if (!json_get(c, "lastTransitionTime"))
            json_set_str(a, c, "lastTransitionTime", now);
        changed = true;
    }
    return changed;
}

/* --- address, versions --- */

static struct str address_of(const cJSON *node, const char *type)
{
    json_each(address, json_path(node, "status.addresses"))
    {
        if (str_eqc(json_str_at(address, "type"), type))
            return json_str_at(address, "address");
    }
    return STR_NULL;
}

struct search {
    struct arena *arena;
    struct numbers *taken;
};

static bool on_node(void *ctx, const struct store_object *o)
{
    struct search *s = ctx;
    uint32_t ip;

    if (numbers_ip_parse(address_of(vapi_tree(s->arena, o), "InternalIP"), &ip))
        numbers_take(s->taken, ip, o->name);
    return true;
}

/* An address of no other machine, from the hash of the name: stable as far as possible. */
static struct str free_address(struct reconcile *r, const struct resource *res, struct str name)
{
    struct arena *a = reconcile_arena(r);
    struct search s = {a, numbers_new(CONTROL_PLANE + 1, NODE_NET + (1u << NODE_BITS) - 2)};
    unsigned char digest[32];
    uint32_t from, ip = 0;

    store_scan_latest(vapi_store(reconcile_api(r)), res->storage, STR_NULL, on_node, &s);
    sha256(name, digest);
    memcpy(&from, digest, sizeof from);
    bool found = numbers_find(s.taken, from, &ip);
    numbers_free(s.taken);
    return found ? numbers_ip_format(a, ip) : STR_NULL;
}

static bool set_addresses(struct reconcile *r, const struct resource *res, cJSON *node)
{
    struct arena *a = reconcile_arena(r);
    cJSON *list = json_path(node, "status.addresses");
    bool has_ip = address_of(node, "InternalIP").n, has_name = address_of(node, "Hostname").n;
    struct str ip = has_ip ? STR_NULL : free_address(r, res, meta_name(node));

    if (has_name && !ip.n)
        return false;
    if (!json_is_array(list))
        list = json_set(a, json_ensure_object(a, node, "status"), "addresses", json_new_array(a));
    if (ip.n)
        json_append(list, json_object(a, JSON("type", "InternalIP"), JSON("address", ip)));
    if (!has_name)
        json_append(list,
                    json_object(a, JSON("type", "Hostname"), JSON("address", meta_name(node))));
    return true;
}

static bool set_node_info(struct arena *a, cJSON *node)
{
    cJSON *status = json_ensure_object(a, node, "status");

    if (json_str_at(status, "nodeInfo.kubeletVersion").n)
        return false;
    json_set(a, status, "nodeInfo",
             json_object(a, JSON("architecture", "amd64"),
                         JSON("bootID", "00000000-0000-0000-0000-000000000000"),
                         JSON("containerRuntimeVersion", "simulated://1.0"),
                         JSON("kernelVersion", "simulated"), JSON("kubeProxyVersion", ""),
                         JSON("kubeletVersion", KUBELET_VERSION),
                         JSON("machineID", "00000000000000000000000000000000"),
                         JSON("operatingSystem", "linux"), JSON("osImage", "Simulated machine"),
                         JSON("systemUUID", "00000000-0000-0000-0000-000000000000")));
    json_set_i64(a, json_ensure_path(a, status, "daemonEndpoints.kubeletEndpoint"), "Port", 10250);
    return true;
}

static bool set_capacity(struct arena *a, cJSON *node)
{
    cJSON *status = json_ensure_object(a, node, "status");

    if (json_count(json_get(status, "allocatable")))
        return false;
    if (!json_count(json_get(status, "capacity")))
        json_set(a, status, "capacity",
                 json_object(a, JSON("cpu", "32"), JSON("memory", "256Gi"),
                             JSON("ephemeral-storage", "1Ti"), JSON("pods", "110")));
    json_set(a, status, "allocatable", json_copy(a, json_get(status, "capacity")));
    return true;
}

/* --- taints --- */

static bool set_taint(struct arena *a, cJSON *node, const char *key, bool wanted, int64_t now_s)
{
    cJSON *spec = json_ensure_object(a, node, "spec"), *list = json_get(spec, "taints");
    cJSON *taint = taint_find(list, key, "NoExecute");

    if ((taint != NULL) == wanted)
        return false;
    if (!wanted) {
        json_detach(list, taint);
        return true;
    }
    if (!json_is_array(list))
        list = json_set(a, spec, "taints", json_new_array(a));
    json_append(list, json_object(a, JSON("key", key), JSON("effect", "NoExecute"),
                                  JSON("timeAdded", time_format_s(a, now_s))));
    return true;
}

/* Taints that evict pods. Those that repel pods follow the conditions: node_taint.c of the API's
 * controllers. */
static bool set_taints(struct arena *a, cJSON *node, bool down, int64_t now_s)
{
    bool changed = set_taint(a, node, UNREACHABLE, down, now_s);

    return set_taint(a, node, NOT_READY, false, now_s) || changed;
}

/* --- lease --- */

static bool is_judged(struct reconcile *r)
{
    const struct embedded *e = controller_state(reconcile_controller(r));

    return e->external_controllers;
}

/* Long leases, rarely renewed, unless a client watches them: an idle host is to cost nothing. */
static void renew_lease(struct reconcile *r, const cJSON *node)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, "coordination.k8s.io", "leases");
    cJSON *lease = reconcile_get(r, res, STR(LEASE_NS), meta_name(node));
    int64_t every = is_judged(r) ? JUDGED_RENEW_S : LEASE_RENEW_S;
    int64_t now_s = reconcile_now_s(r), left = object_time_s(lease, "spec.renewTime") + every;
    bool fresh = !lease;

    if (fresh) {
        cJSON *owner = owner_reference(a, STR("v1"), STR("Node"), node);
        cJSON *metadata = json_object(a, JSON("name", meta_name(node)), JSON("namespace", LEASE_NS),
                                      JSON("ownerReferences", json_array(a, owner)));
        cJSON *spec = json_object(
            a, JSON("holderIdentity", meta_name(node)),
            JSON_I64("leaseDurationSeconds", is_judged(r) ? JUDGED_SECONDS : LEASE_SECONDS));

        lease = json_object(a, JSON("metadata", metadata), JSON("spec", spec));
    }
    if (!fresh && left > now_s) {
        reconcile_again_after(r, (left - now_s) * 1000);
        return;
    }
    json_set_str(a, json_ensure_object(a, lease, "spec"), "renewTime",
                 time_format_us(a, now_s * 1000000));
    if (fresh)
        reconcile_create(r, res, STR(LEASE_NS), lease);
    else
        reconcile_update(r, res, lease);
    reconcile_again_after(r, every * 1000);
}

/* --- a run --- */

static void node_reconcile(struct reconcile *r)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, "", "nodes");
    struct str ns, name;
    int64_t now_s = reconcile_now_s(r);

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    cJSON *node = reconcile_get(r, res, STR(""), name);
    if (!node || object_is_terminating(node))
        return;
    bool down = embedded_node_is_down(node), judged = is_judged(r), changed;
    if (down && judged)
        return;
    changed = set_conditions(a, node, down, now_s);
    if (!down) {
        changed |= set_addresses(r, res, node);
        changed |= set_node_info(a, node);
        changed |= set_capacity(a, node);
        renew_lease(r, node);
    }
    if (changed) {
        reconcile_update_status(r, res, node); /* its event brings the taints */
        if (down)
            reconcile_event(r, node, "Normal", "NodeNotReady",
                            "Node %.*s status is now: NodeNotReady", STR_F(name));
        return;
    }
    if (!judged && set_taints(a, node, down, now_s))
        reconcile_update(r, res, node);
}

static const struct controller_source NODE_SOURCES[] = {
    {"", "nodes", controller_map_self},
    {NULL, NULL, NULL},
};

const struct controller_def NODE_PART = {
    .name = "node-controller",
    .sources = NODE_SOURCES,
    .reconcile = node_reconcile,
};
