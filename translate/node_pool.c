/* SPDX-License-Identifier: Apache-2.0 */
/* One Node of the tenant in place of a pool's host nodes (sync.nodes: perPool). Why: its schedulers
 * and autoscalers compute with allocatable, which on a shared host is not what this tenant can get;
 * and names and addresses of machines are the admin's. Must never show a quantity that the tenant
 * cannot have, nor anything that names a machine. */

#include <string.h>

#include "node.h"

#include <sublet/fraction.h>
#include <sublet/json_build.h>
#include <sublet/translate_pool_node.h>

#define NANO ((__int128)1000000000)

/* ---- names ---- */

struct str translate_pool_node_name(const struct config_pool *pool)
{
    return pool ? pool->name : STR(POOL_NODE_NONE);
}

bool translate_pool_node_find(const struct config *config, struct str name,
                              const struct config_pool **ret)
{
    *ret = NULL;
    for (size_t i = 0; i < config->n_pools && !*ret; i++)
        if (str_eq(config->pools[i].name, name))
            *ret = &config->pools[i];
    return *ret || str_eqc(name, POOL_NODE_NONE);
}

struct str translate_pool_node_of(const cJSON *host_pod)
{
    struct str label = json_str(json_get(json_path(host_pod, "metadata.labels"), LABEL_POOL));

    return label.n ? label : STR(POOL_NODE_NONE);
}

bool translate_pool_node_has(struct arena *a, const struct config *config,
                             const struct config_pool *pool, const cJSON *host_node)
{
    const cJSON *labels = json_path(host_node, "metadata.labels");
    struct config_binding binding = {.pool = pool};
    struct pool_choice choice = {.binding = pool ? &binding : NULL};
    const char *sharing = "nvidia.com/gpu.sharing-strategy";

    if (!pool_admits_node(a, config, &choice, host_node))
        return false;
    if (!pool)
        return true;
    if ((pool->mode == POOL_TIME_SLICING || pool->mode == POOL_MPS) &&
        !json_get(pool->node_selector, sharing) &&
        !str_eq(json_str(json_get(labels, sharing)), config_mode_name(pool->mode)))
        return false;
    return !pool->products.n ||
           config_pool_has_product(pool, json_str(json_get(labels, "nvidia.com/gpu.product")));
}

int translate_check_pool_node(const struct translate_tenant *t, const struct pool_choice *choice,
                              const cJSON *pod, struct str node, struct err *err)
{
    const struct config_pool *own = choice->binding ? choice->binding->pool : NULL, *named;

    if (!node.n || translate_pod_node_meaning(t, node) != NODE_POOL ||
        !translate_pool_node_find(t->config, node, &named) || named == own)
        return 0;
    return err_forbidden(err, STR_NULL, STR("pods"), json_str_at(pod, "metadata.name"),
                         "spec.nodeName: \"%.*s\": this pod runs on node \"%.*s\": the devices it "
                         "requests decide its pool",
                         STR_F(node), STR_F(translate_pool_node_name(own)));
}

/* ---- the host's nodes ---- */

static bool is_ready(const cJSON *host_node)
{
    return condition_is_true(json_path(host_node, "status.conditions"), "Ready");
}

static bool is_usable(const cJSON *host_node)
{
    return is_ready(host_node) && !json_true(json_path(host_node, "spec.unschedulable"));
}

static bool any(const cJSON *nodes, bool (*is)(const cJSON *node))
{
    json_each(node, nodes)
    {
        if (is(node))
            return true;
    }
    return false;
}

static __int128 quantity_at(const cJSON *map, struct str key)
{
    struct quantity q;

    if (str_eqc(key, FRACTION_RESOURCE))
        return fraction_of_node(map) * NANO;
    return quantity_parse(json_str(json_get_str(map, key)), &q) ? q.nano : 0;
}

/* ---- quantities ---- */

/* A resource of the node. */
struct stock {
    const struct pool_node_facts *facts;
    struct str host_name;
    const struct pool_resource *device; /* NULL: no device */
};

static __int128 held(const struct stock *s, struct str host_node)
{
    return s->facts->held(s->facts->ctx, host_node, s->host_name);
}

static void lower(__int128 *limit, bool *known, __int128 to)
{
    if (!*known || to < *limit)
        *limit = to;
    *known = true;
}

/* allocatable: what usable nodes have, and what the tenant's pods hold elsewhere; capacity: of
 * all. */
static void bound_by_nodes(const struct stock *s, bool allocatable, __int128 *limit, bool *known)
{
    __int128 sum = allocatable ? held(s, STR_NULL) : 0;

    if (!s->facts->nodes)
        return;
    json_each(node, s->facts->nodes)
    {
        const char *list = allocatable ? "status.allocatable" : "status.capacity";

        if (allocatable && !is_usable(node))
            continue;
        sum += quantity_at(json_path(node, list), s->host_name);
        if (allocatable)
            sum -= held(s, json_str_at(node, "metadata.name"));
    }
    lower(limit, known, sum);
}

/* Does one resource alone count against the limit? Then the limit by itself says what is left. */
static bool is_only_one(const struct config_pool *pool)
{
    size_t n = 0;

    for (size_t i = 0; i < pool->n_resources; i++)
        n += pool->resources[i].gpu_eq.num > 0;
    return n == 1;
}

/* Whole units that the binding grants, with those that the tenant's pods hold. */
static bool units_granted(const struct stock *s, int64_t units_held, int64_t *ret)
{
    const struct config_binding *b = s->facts->binding;
    struct rational eq = s->device->gpu_eq, left = b->limit, own, units;

    if (!is_only_one(s->facts->pool) &&
        (!rational_sub(left, s->facts->used, &left) ||
         !rational_mul(eq, (struct rational){units_held, 1}, &own) ||
         !rational_add(left, own, &left)))
        return false;
    if (!rational_mul(left, (struct rational){eq.den, eq.num}, &units))
        return false;
    *ret = units.num > 0 ? units.num / units.den : 0;
    return true;
}

static void bound_by_binding(const struct stock *s, __int128 *limit, bool *known)
{
    int64_t has = (int64_t)(held(s, STR_NULL) / NANO), units = has;

    if (!s->device || (s->facts->binding && s->device->gpu_eq.num <= 0))
        return;
    if (s->facts->binding && !units_granted(s, has, &units))
        units = has;
    lower(limit, known, units * NANO);
}

/* Which member of a quota's status counts the resource; every pod has a limit that is no less than
 * its request where limits are bounded. */
static void bound_by_quota(const struct stock *s, const cJSON *quota, __int128 *limit, bool *known)
{
    static const char *const leads[] = {"", "requests.", "limits.", "count/"};

    if (json_count(json_path(quota, "spec.scopes")) || json_path(quota, "spec.scopeSelector"))
        return; /* it counts some pods only */
    for (size_t i = 0; i < COUNT(leads); i++) {
        char key[384];
        struct str lead = str_c(leads[i]);
        const cJSON *hard;

        if (s->host_name.n > 320)
            return;
        memcpy(key, lead.p, lead.n);
        memcpy(key + lead.n, s->host_name.p, s->host_name.n);
        hard = json_get_str(json_path(quota, "status.hard"),
                            (struct str){key, lead.n + s->host_name.n});
        if (hard && (!s->device || i == 1))
            lower(limit, known,
                  held(s, STR_NULL) +
                      quantity_at(json_path(quota, "status.hard"),
                                  (struct str){key, lead.n + s->host_name.n}) -
                      quantity_at(json_path(quota, "status.used"),
                                  (struct str){key, lead.n + s->host_name.n}));
    }
}

static bool quantity_up(const struct stock *s, bool allocatable, __int128 *ret)
{
    bool known = false;
    __int128 has = held(s, STR_NULL);

    *ret = 0;
    bound_by_nodes(s, allocatable, ret, &known);
    bound_by_binding(s, ret, &known);
    json_each(quota, s->facts->quotas) bound_by_quota(s, quota, ret, &known);
    if (known && *ret < has)
        *ret = has;
    return known;
}

/* Rounded down: cpu to a thousandth, other resources to a whole. */
static struct str written(struct arena *a, const struct stock *s, __int128 nano)
{
    __int128 unit = str_eqc(s->host_name, "cpu") ? NANO / 1000 : NANO;
    bool binary = str_eqc(s->host_name, "memory") || str_eqc(s->host_name, "ephemeral-storage");
    struct quantity q = {nano - nano % unit, binary ? QUANTITY_BINARY_SI : QUANTITY_DECIMAL_SI};

    return quantity_format(a, q);
}

static void add_quantity(struct arena *a, const struct stock *s, struct str name, cJSON *capacity,
                         cJSON *allocatable)
{
    __int128 can, has;

    if (!quantity_up(s, true, &can) || !quantity_up(s, false, &has))
        return;
    object_add(a, allocatable, name, json_new_string(a, written(a, s, can)));
    object_add(a, capacity, name, json_new_string(a, written(a, s, has > can ? has : can)));
}

static void add_quantities(struct arena *a, const struct pool_node_facts *facts, cJSON *capacity,
                           cJSON *allocatable)
{
    static const char *const plain[] = {"cpu", "ephemeral-storage", "memory", "pods"};

    for (size_t i = 0; i < COUNT(plain); i++) {
        struct stock s = {facts, str_c(plain[i]), NULL};

        add_quantity(a, &s, s.host_name, capacity, allocatable);
    }
    for (size_t i = 0; facts->pool && i < facts->pool->n_resources; i++) {
        const struct pool_resource *r = &facts->pool->resources[i];
        struct stock s = {facts, r->host_name, r};

        add_quantity(a, &s, r->name, capacity, allocatable);
    }
}

/* ---- what its machines have in common ---- */

/* Removes the members that the other object does not have with the same value. */
static void keep_common(cJSON *map, const cJSON *other)
{
    for (cJSON *one = json_first(map), *next; one; one = next) {
        const cJSON *same = json_get(other, one->string);

        next = one->next;
        if (!same || !json_equal(one, same))
            json_remove(map, one->string);
    }
}

static cJSON *labels_up(struct arena *a, const struct translate_tenant *t,
                        const struct pool_node_facts *facts)
{
    cJSON *ret = NULL;

    json_each(node, facts->nodes)
    {
        cJSON *labels = translate_node_labels_up(a, t, json_path(node, "metadata.labels"));

        if (ret)
            keep_common(ret, labels);
        else
            ret = labels;
    }
    ret = ret ? ret : json_new_object(a);
    json_remove(ret, "nvidia.com/gpu.count"); /* of one machine */
    json_put(a, ret, JSON("kubernetes.io/hostname", facts->name));
    if (facts->pool)
        json_put(a, ret, JSON(LABEL_POOL, facts->name));
    return ret;
}

/* Where machines differ nothing is said, but for the kubelet's version: the lowest. */
static cJSON *info_of(struct arena *a, const struct pool_node_facts *facts)
{
    cJSON *ret = NULL;

    json_each(node, facts->nodes)
    {
        cJSON *info = translate_node_info_up(a, json_path(node, "status.nodeInfo"));

        if (!ret) {
            ret = info;
            continue;
        }
        json_each(one, info)
        {
            struct str had = json_str(json_get(ret, one->string)), has = json_str(one);
            bool version = strcmp(one->string, "kubeletVersion") == 0;

            if (!str_eq(had, has))
                json_set_str(a, ret, one->string,
                             !version                ? STR("")
                             : str_cmp(has, had) < 0 ? has
                                                     : had);
        }
    }
    return ret ? ret : translate_node_info_up(a, NULL);
}

/* ---- the node ---- */

/* Devices take no toleration here: the pool's are Sublet's to add. Schedulers of the tenant keep
 * other pods off where they can. */
static cJSON *spec_of(struct arena *a, const struct pool_node_facts *facts, bool ready)
{
    bool cordoned = translate_node_is_closed(facts->pool) ||
                    (ready && facts->nodes && !any(facts->nodes, is_usable));
    cJSON *spec = json_new_object(a), *taints = json_new_array(a);

    if (facts->pool)
        json_append(taints, translate_node_taint(a, LABEL_POOL, facts->name, "PreferNoSchedule"));
    if (!ready)
        json_append(taints, translate_node_taint(a, "node.kubernetes.io/not-ready", STR_NULL,
                                                 "NoSchedule"));
    if (cordoned)
        json_append(taints, translate_node_taint(a, TAINT_CLOSED, STR_NULL, "NoSchedule"));
    if (json_count(taints))
        json_set(a, spec, "taints", taints);
    if (cordoned)
        json_set(a, spec, "unschedulable", json_new_bool(a, true));
    return spec;
}

static cJSON *ready_condition(struct arena *a, const struct pool_node_facts *facts, bool ready)
{
    const char *reason = "NodesReady", *message = "nodes of the host are ready";

    if (!facts->nodes) {
        reason = "NodesNotReadable";
        message = "the host does not let its nodes be read: their state is not known";
    } else if (!json_count(facts->nodes)) {
        reason = "NoNodes";
        message = "the host has no node for these pods";
    } else if (!ready) {
        reason = "NodesNotReady";
        message = "no node of the host for these pods is ready";
    }
    return json_object(a, JSON("type", "Ready"), JSON("status", ready ? "True" : "False"),
                       JSON("reason", reason), JSON("message", message));
}

cJSON *translate_pool_node_up(struct arena *a, const struct translate_tenant *t,
                              const struct pool_node_facts *facts)
{
    bool ready = !facts->nodes || any(facts->nodes, is_ready);
    cJSON *capacity = json_new_object(a), *allocatable = json_new_object(a);
    cJSON *metadata =
        json_object(a, JSON("name", facts->name), JSON("labels", labels_up(a, t, facts)));
    cJSON *address = json_object(a, JSON("type", "Hostname"), JSON("address", facts->name));
    cJSON *conditions = json_array(a, ready_condition(a, facts, ready));
    cJSON *maintenance = translate_node_maintenance(a, facts->pool);

    if (maintenance)
        json_append(conditions, maintenance);
    add_quantities(a, facts, capacity, allocatable);
    return json_object(
        a, JSON("apiVersion", "v1"), JSON("kind", "Node"), JSON("metadata", metadata),
        JSON("spec", spec_of(a, facts, ready)),
        JSON("status",
             json_object(a, JSON("capacity", capacity), JSON("allocatable", allocatable),
                         JSON("conditions", conditions), JSON("addresses", json_array(a, address)),
                         JSON("nodeInfo", info_of(a, facts)))));
}
