/* SPDX-License-Identifier: Apache-2.0 */
/* The fence of pods without devices, and whether the host's nodes are what their pools say. Why: a
 * taint keeps pods off a node only while it is there, and a tolerated one not at all; labels of
 * pools and of accelerators are what every pod is kept off by, whoever it belongs to. Must never
 * depend on what the tenant wrote. */

#include <string.h>

#include <sublet/object.h>

#include "pool.h"

/* Labels by which discovery and providers mark machines with accelerators; value NULL: any. */
static const struct {
    const char *key, *value;
} ACCELERATORS[] = {
    {"nvidia.com/gpu.present", "true"},         {"feature.node.kubernetes.io/amd-gpu", "true"},
    {"cloud.google.com/gke-accelerator", NULL}, {"cloud.google.com/gke-tpu-accelerator", NULL},
    {"k8s.amazonaws.com/accelerator", NULL},    {"kubernetes.azure.com/accelerator", NULL},
};

/* Extended resources that are no devices of a pool; a trailing slash stands for all of the
 * domain. */
static const char *const PLAIN_RESOURCES[] = {
    "vpc.amazonaws.com/", "networking.gke.io.networks/", "devices.kubevirt.io/", "smarter-devices/",
    "github.com/fuse",
};

static cJSON *expression(struct arena *a, cJSON *list, struct str key, const char *operator_)
{
    cJSON *ret = json_append(list, json_new_object(a));

    add_str(a, ret, "key", key);
    add_str(a, ret, "operator", str_c(operator_));
    return ret;
}

static cJSON *not_in(struct arena *a, cJSON *list, struct str key)
{
    return object_add(a, expression(a, list, key, "NotIn"), STR("values"), json_new_array(a));
}

/* One label may distinguish several pools. */
static void exclude_pools(struct arena *a, const struct config *config, cJSON *list)
{
    for (size_t i = 0; i < config->n_pools; i++) {
        const char *key = config->pools[i].fence_key;
        bool seen = strcmp(key, LABEL_POOL) == 0 || config_cpu_node_value(config, str_c(key)).p;
        cJSON *values;

        for (size_t k = 0; k < i; k++)
            seen |= strcmp(config->pools[k].fence_key, key) == 0;
        if (seen)
            continue;
        values = not_in(a, list, str_c(key));
        for (size_t k = i; k < config->n_pools; k++) {
            const struct config_pool *pool = &config->pools[k];
            struct str value = json_str(json_get(pool->node_selector, key));

            if (strcmp(pool->fence_key, key) == 0 && !json_list_has(values, value))
                json_append(values, json_new_string(a, value));
        }
    }
}

cJSON *translate_pod_fence_expressions(struct arena *a, const struct config *config)
{
    cJSON *ret = json_new_array(a);

    if (!config_cpu_node_value(config, STR(LABEL_POOL)).p)
        expression(a, ret, STR(LABEL_POOL), "DoesNotExist");
    for (size_t i = 0; i < COUNT(ACCELERATORS); i++) {
        struct str key = str_c(ACCELERATORS[i].key);

        if (ACCELERATORS[i].value)
            json_append(not_in(a, ret, key), json_new_string(a, str_c(ACCELERATORS[i].value)));
        else
            expression(a, ret, key, "DoesNotExist");
    }
    exclude_pools(a, config, ret);
    return ret;
}

/* Resources of Kubernetes itself have no domain, or one of its own. */
static bool is_device(const struct config *config, struct str resource)
{
    if (!name_has_domain(resource) || str_contains(resource, STR("kubernetes.io/")))
        return false;
    for (size_t i = 0; i < COUNT(PLAIN_RESOURCES); i++) {
        struct str plain = str_c(PLAIN_RESOURCES[i]);

        if (translate_labels_key_listed(resource, (struct str_list){&plain, 1}))
            return false;
    }
    return !translate_labels_key_listed(resource, config->plain_resources);
}

/* A quantity of 0 counts: a device plugin that restarts reports it. */
static bool has_devices(const struct config *config, const cJSON *host_node)
{
    json_each(quantity, json_path(host_node, "status.capacity"))
    {
        if (is_device(config, json_key(quantity)))
            return true;
    }
    return false;
}

static bool labels_open(struct arena *a, const struct config *config, const cJSON *host_node)
{
    const cJSON *labels = json_path(host_node, "metadata.labels");

    json_each(one, translate_pod_fence_expressions(a, config))
    {
        const cJSON *label = json_get_str(labels, json_str(json_get(one, "key")));
        const cJSON *values = json_get(one, "values");

        if (label && (!values || json_list_has(values, json_str(label))))
            return false;
    }
    for (size_t i = 0; i < config->cpu_nodes.n; i++) {
        struct str value = config->cpu_nodes.items[i], key = str_cut(&value, '=');
        const cJSON *label = json_get_str(labels, key);

        if (!label || !str_eq(json_str(label), value))
            return false;
    }
    return true;
}

bool translate_node_open(struct arena *a, const struct config *config, const cJSON *host_node)
{
    return labels_open(a, config, host_node) &&
           (config->cpu_nodes.n || !has_devices(config, host_node));
}

bool translate_node_unfenced(struct arena *a, const struct config *config, const cJSON *host_node)
{
    return !config->cpu_nodes.n && has_devices(config, host_node) &&
           labels_open(a, config, host_node);
}

/* ---- what the host says of a pool's nodes ---- */

bool pool_has_node(const struct config_pool *pool, const cJSON *host_node)
{
    return json_count(pool->node_selector) > 0 &&
           labels_cover(pool->node_selector, json_path(host_node, "metadata.labels"));
}

/* A toleration with Equal names the taint of one pool; one with Exists follows a convention. */
static bool is_own(const cJSON *toleration)
{
    return !str_eqc(json_str(json_get(toleration, "operator")), "Exists");
}

static bool repels(const cJSON *taint, const cJSON *toleration)
{
    struct str effect = json_str(json_get(taint, "effect"));

    return str_eq(json_str(json_get(taint, "key")), json_str(json_get(toleration, "key"))) &&
           (!is_own(toleration) ||
            str_eq(json_str(json_get(taint, "value")), json_str(json_get(toleration, "value")))) &&
           (str_eqc(effect, "NoSchedule") || str_eqc(effect, "NoExecute"));
}

/* The pool's own taint, or where it has none, any that its pods tolerate. */
static bool is_tainted(const struct config_pool *pool, const cJSON *host_node)
{
    bool own = false;

    json_each(toleration, pool->tolerations)
    {
        own |= is_own(toleration);
    }
    json_each(toleration, pool->tolerations)
    {
        json_each(taint, json_path(host_node, "spec.taints"))
        {
            if ((is_own(toleration) || !own) && repels(taint, toleration))
                return true;
        }
    }
    return false;
}

bool pool_check_nodes(struct arena *a, const struct config_pool *pool, const cJSON *host_nodes,
                      struct pool_problem *ret)
{
    struct str names = STR("");
    size_t n = 0, bare = 0;

    json_each(node, host_nodes)
    {
        if (!pool_has_node(pool, node))
            continue;
        n++;
        if (is_tainted(pool, node))
            continue;
        bare++;
        names = pool_joined(a, names, json_str_at(node, "metadata.name"));
    }
    if (n && !bare)
        return true;
    *ret = (struct pool_problem){
        .reason = n ? "PoolNodesUntainted" : "PoolWithoutNodes",
        .message = n ? arena_printf(a, "%zu of %zu nodes of pool \"%.*s\" lack its taint", bare, n,
                                    STR_F(pool->name))
                     : arena_printf(a, "no node of the host has the labels of pool \"%.*s\"",
                                    STR_F(pool->name)),
        .detail = names,
    };
    return false;
}

/* ---- pods and one node ---- */

static bool is_sent_for(const struct config *config, const struct config_pool *pool,
                        const cJSON *taint)
{
    struct str key = json_str(json_get(taint, "key"));

    if (str_has_prefix(key, STR("node.kubernetes.io/")) ||
        str_eqc(json_str(json_get(taint, "effect")), "PreferNoSchedule"))
        return true;
    for (size_t i = 0; pool && i < pool->n_resources; i++) {
        if (str_eq(pool->resources[i].host_name, key)) /* what the host adds by itself */
            return true;
    }
    json_each(toleration, pool ? pool->tolerations : NULL)
    {
        if (repels(taint, toleration))
            return true;
    }
    return pool_enforced_tolerates(config, taint);
}

bool pool_admits_node(struct arena *a, const struct config *config,
                      const struct pool_choice *choice, const cJSON *host_node)
{
    const struct config_pool *pool = choice->binding ? choice->binding->pool : NULL;

    json_each(taint, json_path(host_node, "spec.taints"))
    {
        if (!is_sent_for(config, pool, taint))
            return false;
    }
    return pool ? pool_has_node(pool, host_node) : translate_node_open(a, config, host_node);
}
