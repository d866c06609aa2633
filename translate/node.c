/* SPDX-License-Identifier: Apache-2.0 */
/* A host node as a tenant may see it. Why: workloads and people look at nodes for sizes, zones and
 * products; other tenants' traces (device inventories, images, pool resources, volumes) are on the
 * same object. Must be built by allow-list, like everything that goes down. */

#include <string.h>

#include "node.h"
#include "pool.h"

#include <sublet/fraction.h>
#include <sublet/json_build.h>
#include <sublet/quantity.h>
#include <sublet/translate_from_host.h>

#define KUBELET_PORT 10250

/* A trailing slash or dash stands for all that begin so. */
static const char *const LABELS[] = {
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "nvidia.com/cuda.driver-version.full",
    "nvidia.com/cuda.driver-version.major",
    "nvidia.com/cuda.driver-version.minor",
    "nvidia.com/cuda.runtime-version.full",
    "nvidia.com/gpu.compute.major",
    "nvidia.com/gpu.compute.minor",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.mode",
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.capable",
    "nvidia.com/mig.strategy",
    "nvidia.com/mps.capable",
    "topology.kubernetes.io/",
};

static bool label_shown(const struct translate_tenant *t, struct str key)
{
    for (size_t i = 0; i < COUNT(LABELS); i++) {
        struct str entry = str_c(LABELS[i]);

        if (entry.p[entry.n - 1] == '/' ? str_has_prefix(key, entry) : str_eq(key, entry))
            return true;
    }
    return translate_labels_key_listed(key, t->config->node_labels);
}

cJSON *translate_node_labels_up(struct arena *a, const struct translate_tenant *t,
                                const cJSON *labels)
{
    cJSON *ret = json_new_object(a);

    json_each(label, labels)
    {
        if (json_is_object(labels) && json_is_string(label) && label_shown(t, json_key(label)))
            object_add(a, ret, json_key(label), json_copy(a, label));
    }
    return ret;
}

/* ---- capacity ---- */

/* Is the node one of the pool's, by its labels? */
static bool in_pool(const struct config_pool *pool, const cJSON *labels)
{
    struct str product = json_str(json_get(labels, "nvidia.com/gpu.product"));

    json_each(member, pool->node_selector)
    {
        if (!str_eq(json_str(json_get(labels, member->string)), json_str(member)))
            return false;
    }
    return config_pool_has_product(pool, product);
}

/* No pod of the tenant can have more of it than its limit, whatever the machine has. */
static cJSON *within_limit(struct arena *a, const struct config_binding *binding,
                           const struct pool_resource *r, const cJSON *device)
{
    struct rational units;
    struct quantity has, most;

    if (r->gpu_eq.num <= 0 || !quantity_parse(json_str(device), &has) ||
        !rational_mul(binding->limit, (struct rational){r->gpu_eq.den, r->gpu_eq.num}, &units))
        return json_copy(a, device);
    most = quantity_from_i64(units.num / units.den, QUANTITY_DECIMAL_SI);
    return quantity_cmp(most, has) < 0 ? json_new_string(a, quantity_format(a, most))
                                       : json_copy(a, device);
}

/* Devices under the tenant's names, as far as a bound pool offers them on this node. */
static void devices_up(struct arena *a, const struct translate_tenant *t, const cJSON *labels,
                       const cJSON *device, bool allocatable, cJSON *to)
{
    for (size_t i = 0; i < t->config->n_bindings; i++) {
        const struct config_binding *binding = &t->config->bindings[i];
        const struct config_pool *pool = binding->pool;

        if (!in_pool(pool, labels))
            continue;
        for (size_t k = 0; k < pool->n_resources; k++) {
            const struct pool_resource *r = &pool->resources[k];

            if (str_eqc(r->host_name, device->string) && !json_get_str(to, r->name))
                object_add(a, to, r->name,
                           allocatable ? within_limit(a, binding, r, device)
                                       : json_copy(a, device));
        }
    }
}

/* Parts of GPUs, which no node shows by itself. */
static void parts_up(struct arena *a, const struct translate_tenant *t, const cJSON *labels,
                     const cJSON *quantities, bool allocatable, cJSON *to)
{
    int64_t parts = fraction_of_node(quantities);
    cJSON *shown = json_new_object(a);

    if (!parts)
        return;
    add_str(a, shown, FRACTION_RESOURCE, arena_printf(a, "%lld", (long long)parts));
    devices_up(a, t, labels, json_first(shown), allocatable, to);
}

static cJSON *quantities_up(struct arena *a, const struct translate_tenant *t, const cJSON *labels,
                            const cJSON *quantities, bool allocatable)
{
    cJSON *ret = json_new_object(a);

    if (!json_is_object(quantities))
        return ret;
    json_each(member, quantities)
    {
        if (name_has_domain(json_key(member)))
            devices_up(a, t, labels, member, allocatable, ret);
        else if (!json_get(ret, member->string))
            object_add(a, ret, json_key(member), json_copy(a, member));
    }
    parts_up(a, t, labels, quantities, allocatable, ret);
    return ret;
}

/* ---- maintenance ---- */

cJSON *translate_node_taint(struct arena *a, const char *key, struct str value, const char *effect)
{
    return json_object(a, JSON("key", key), JSON_NONEMPTY("value", value), JSON("effect", effect));
}

cJSON *translate_node_maintenance(struct arena *a, const struct config_pool *pool)
{
    struct str text = pool ? config_maintenance_text(a, pool) : STR("");
    const char *reason = "Converting";

    if (!text.n)
        return NULL;
    if (pool->maintenance.state)
        reason = pool->maintenance.state == MAINTENANCE_DRAIN ? "Draining" : "Cordoned";
    return json_object(a, JSON("type", "PoolMaintenance"), JSON("status", "True"),
                       JSON("reason", reason), JSON("message", text));
}

bool translate_node_is_closed(const struct config_pool *pool)
{
    return pool && pool->maintenance.state != MAINTENANCE_NONE;
}

/* The bound pool of these labels that is out of use; NULL: there is none. */
static const struct config_pool *unavailable_pool(struct arena *a, const struct translate_tenant *t,
                                                  const cJSON *labels)
{
    for (size_t i = 0; i < t->config->n_bindings; i++) {
        const struct config_pool *pool = t->config->bindings[i].pool;

        if (in_pool(pool, labels) && config_maintenance_text(a, pool).n)
            return pool;
    }
    return NULL;
}

/* ---- the status ---- */

static cJSON *addresses_up(struct arena *a, const cJSON *addresses)
{
    cJSON *ret = json_new_array(a);

    json_each(address, addresses)
    {
        struct str type = json_str(json_get(address, "type"));

        if (str_eqc(type, "Hostname") || str_eqc(type, "InternalIP"))
            json_append(ret, json_copy(a, address));
    }
    return ret;
}

/* The ids of the machine are cleared, not left out: the fields are required. */
cJSON *translate_node_info_up(struct arena *a, const cJSON *info)
{
    static const char *const ids[] = {"machineID", "systemUUID", "bootID"};
    static const char *const keys[] = {
        "kernelVersion",  "osImage",          "containerRuntimeVersion",
        "kubeletVersion", "kubeProxyVersion", "operatingSystem",
        "architecture"};
    cJSON *ret = json_new_object(a);

    for (size_t i = 0; i < COUNT(ids); i++)
        add_str(a, ret, ids[i], STR(""));
    for (size_t i = 0; i < COUNT(keys); i++)
        add_str(a, ret, keys[i], json_str(json_get(info, keys[i])));
    return ret;
}

/* NULL, for a member to be left out, unless it is an array. */
static cJSON *array_up(struct arena *a, const cJSON *list)
{
    return json_is_array(list) ? json_copy(a, list) : NULL;
}

/* Agents of the host report devices, programs and other tenants' pods in messages of theirs; a
 * reason of theirs is shown if it is one word. */
static cJSON *condition_up(struct arena *a, const cJSON *condition)
{
    static const char *const kubelets[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure",
                                           "NetworkUnavailable"};
    static const char *const fields[] = {
        "type", "status", "lastHeartbeatTime", "lastTransitionTime", "reason", "message"};
    cJSON *ret = json_new_object(a);
    bool own = false;

    for (size_t i = 0; i < COUNT(kubelets); i++)
        own |= str_eqc(json_str(json_get(condition, "type")), kubelets[i]);
    for (size_t i = 0; i < COUNT(fields); i++) {
        const cJSON *value = json_get(condition, fields[i]);

        if (json_is_string(value))
            add_str(a, ret, fields[i], json_str(value));
    }
    if (own)
        return ret;
    if (name_check_label_value(json_str(json_get(ret, "reason"))))
        json_remove(ret, "reason");
    if (json_str(json_get(ret, "message")).n)
        json_set_str(a, ret, "message", STR(FROM_HOST_MESSAGE));
    return ret;
}

/* One of that type of the host's own would be a second one. */
static cJSON *conditions_up(struct arena *a, const cJSON *conditions, cJSON *maintenance)
{
    cJSON *ret = json_new_array(a);

    if (!json_is_array(conditions))
        return maintenance ? json_array(a, maintenance) : NULL;
    json_each(condition, conditions)
    {
        if (json_is_object(condition) &&
            !(maintenance &&
              json_equal(json_get(condition, "type"), json_get(maintenance, "type"))))
            json_append(ret, condition_up(a, condition));
    }
    if (maintenance)
        json_append(ret, maintenance);
    return ret;
}

static cJSON *status_up(struct arena *a, const struct translate_tenant *t, const cJSON *labels,
                        const cJSON *status, const struct config_pool *unavailable)
{
    const cJSON *capacity = json_get(status, "capacity");
    const cJSON *allocatable = json_get(status, "allocatable");

    return json_object(
        a, JSON("capacity", quantities_up(a, t, labels, capacity, false)),
        JSON("allocatable", quantities_up(a, t, labels, allocatable, true)),
        JSON("conditions", conditions_up(a, json_get(status, "conditions"),
                                         translate_node_maintenance(a, unavailable))),
        JSON("addresses", addresses_up(a, json_get(status, "addresses"))),
        JSON("nodeInfo", translate_node_info_up(a, json_get(status, "nodeInfo"))),
        JSON("declaredFeatures", array_up(a, json_get(status, "declaredFeatures"))));
}

/* A taint that every pod of the tenant tolerates on the host keeps none off, so none is shown:
 * schedulers and DaemonSets of the tenant judge by what they see. */
static cJSON *taints_up(struct arena *a, const struct translate_tenant *t, const cJSON *taints)
{
    cJSON *ret = json_new_array(a);

    json_each(taint, taints)
    {
        if (!pool_enforced_tolerates(t->config, taint))
            json_append(ret, json_copy(a, taint));
    }
    return json_count(ret) ? ret : NULL;
}

static bool has_taint(const cJSON *taints, const char *key)
{
    json_each(taint, taints)
    {
        if (str_eqc(json_str(json_get(taint, "key")), key))
            return true;
    }
    return false;
}

static cJSON *spec_up(struct arena *a, const struct translate_tenant *t, const cJSON *spec,
                      bool closed)
{
    cJSON *ret = json_new_object(a), *taints = taints_up(a, t, json_get(spec, "taints"));

    if (closed && !has_taint(taints, TAINT_CLOSED)) {
        taints = taints ? taints : json_new_array(a);
        json_append(taints, translate_node_taint(a, TAINT_CLOSED, STR_NULL, "NoSchedule"));
    }
    if (taints)
        object_add(a, ret, STR("taints"), taints);
    if (closed || json_true(json_get(spec, "unschedulable")))
        object_add(a, ret, STR("unschedulable"), json_new_bool(a, true));
    return ret;
}

/* Prometheus and metrics-server read the port beside the address. */
void translate_node_address(struct arena *a, cJSON *node, struct str ip)
{
    cJSON *status = json_ensure_object(a, node, "status");
    const cJSON *before = json_get(status, "addresses");
    cJSON *addresses = json_new_array(a), *endpoint;

    if (ip.n)
        json_append(addresses, json_object(a, JSON("type", "InternalIP"), JSON("address", ip)));
    json_each(address, before)
    {
        if (!str_eqc(json_str(json_get(address, "type")), "InternalIP"))
            json_append(addresses, json_copy(a, address));
    }
    json_set(a, status, "addresses", addresses);
    if (!ip.n)
        return;
    endpoint =
        json_ensure_object(a, json_ensure_object(a, status, "daemonEndpoints"), "kubeletEndpoint");
    json_set_i64(a, endpoint, "Port", KUBELET_PORT);
}

cJSON *translate_node_up(struct arena *a, const struct translate_tenant *t, const cJSON *host_node)
{
    const cJSON *labels = json_path(host_node, "metadata.labels");
    const struct config_pool *unavailable = unavailable_pool(a, t, labels);
    cJSON *metadata = json_object(a, JSON("name", json_str_at(host_node, "metadata.name")),
                                  JSON("labels", translate_node_labels_up(a, t, labels)));

    return json_object(
        a, JSON("apiVersion", "v1"), JSON("kind", "Node"), JSON("metadata", metadata),
        JSON("spec",
             spec_up(a, t, json_get(host_node, "spec"), translate_node_is_closed(unavailable))),
        JSON("status", status_up(a, t, labels, json_get(host_node, "status"), unavailable)));
}
