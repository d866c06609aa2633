/* SPDX-License-Identifier: Apache-2.0 */
/* Guardrails: what the author of a pod may not request, in the words of the pool model. Why:
 * whatever a tenant writes may only narrow; what contradicts the pool, tolerates taints, exceeds a
 * cap or reaches devices in an uncounted way is a 403 at apply time. Must never rewrite a pod. */

#include <stdarg.h>
#include <string.h>

#include "pool.h"

static const char PRODUCT_LABEL[] = "nvidia.com/gpu.product";

int pool_refuse(const struct resolve *r, const char *format, ...)
{
    struct str message;
    va_list args;

    va_start(args, format);
    message = str_clip(arena_vprintf(r->arena, format, args), REFUSAL_BYTES);
    va_end(args);
    return err_forbidden(r->err, STR_NULL, STR("pods"), r->name, "%.*s", STR_F(message));
}

/* "a, b" of the names of a list, as far as a message needs them. */
struct str pool_joined(struct arena *a, struct str so_far, struct str next)
{
    if (so_far.n > 512)
        return so_far;
    return arena_printf(a, "%.*s%s%.*s", STR_F(so_far), so_far.n ? ", " : "", STR_F(next));
}

/* ---- guardrails: where ---- */

static struct str products_text(const struct resolve *r)
{
    struct str text = STR("");

    for (size_t i = 0; i < r->pool->products.n; i++)
        text = pool_joined(r->arena, text, r->pool->products.items[i]);
    return text;
}

static int check_node_selector(const struct resolve *r)
{
    const cJSON *selector = json_get(r->spec, "nodeSelector");

    if (!json_is_object(selector))
        return 0;
    json_each(member, selector)
    {
        struct str key = json_key(member), value = json_str(member);
        struct str fixed = json_str(json_get(r->pool->node_selector, member->string));
        struct str allowed = fixed;

        if (str_eqc(key, PRODUCT_LABEL) && !config_pool_has_product(r->pool, value))
            allowed = products_text(r);
        else if (!fixed.p || str_eq(fixed, value))
            continue;
        return pool_refuse(r, "nodeSelector %.*s=%.*s contradicts pool \"%.*s\": allowed [%.*s]",
                           STR_F(key), STR_F(value), STR_F(r->pool->name), STR_F(allowed));
    }
    return 0;
}

/* The same for the nodes that the administrator gives pods without devices. */
static int check_cpu_nodes(const struct resolve *r)
{
    const cJSON *selector = json_get(r->spec, "nodeSelector");

    if (r->pool || !json_is_object(selector))
        return 0;
    json_each(member, selector)
    {
        struct str fixed = config_cpu_node_value(r->config, json_key(member));

        if (fixed.p && !str_eq(fixed, json_str(member)))
            return pool_refuse(r,
                               "nodeSelector %s=%.*s contradicts the nodes of this virtual "
                               "cluster: allowed [%.*s]",
                               member->string, STR_F(json_str(member)), STR_F(fixed));
    }
    return 0;
}

/* Does the expression exclude all nodes of the pool? True only when that is certain. */
static bool contradicts(const struct resolve *r, const cJSON *expression)
{
    const char *key = arena_cstr(r->arena, json_str(json_get(expression, "key")));
    struct str op = json_str(json_get(expression, "operator"));
    struct str fixed = json_str(json_get(r->pool->node_selector, key));
    bool product = strcmp(key, PRODUCT_LABEL) == 0 && r->pool->products.n, found = false;

    if (!fixed.p && !product)
        return false;
    json_each(value, json_get(expression, "values"))
    {
        found |= product ? config_pool_has_product(r->pool, json_str(value))
                         : str_eq(json_str(value), fixed);
    }
    if (str_eqc(op, "In"))
        return !found;
    return str_eqc(op, "DoesNotExist") || (str_eqc(op, "NotIn") && found && !product);
}

/* Terms are ORed: only when every one of them contradicts is there no node left. */
static int check_affinity(const struct resolve *r)
{
    const cJSON *terms = json_path(r->spec, "affinity.nodeAffinity."
                                            "requiredDuringSchedulingIgnoredDuringExecution."
                                            "nodeSelectorTerms");
    const cJSON *first = NULL;
    struct str key, value;

    json_each(term, terms)
    {
        const cJSON *bad = NULL;

        json_each(expression, json_get(term, "matchExpressions"))
        {
            if (!bad && contradicts(r, expression))
                bad = expression;
        }
        if (!bad)
            return 0;
        first = first ? first : bad;
    }
    if (!first)
        return 0;
    key = json_str(json_get(first, "key"));
    value = json_str(json_at(json_get(first, "values"), 0));
    if (str_eqc(key, PRODUCT_LABEL))
        return pool_refuse(r, "gpu product \"%.*s\" is not offered by pool \"%.*s\": offered %.*s",
                           STR_F(value), STR_F(r->pool->name), STR_F(products_text(r)));
    return pool_refuse(r, "nodeAffinity %.*s %.*s [%.*s] contradicts pool \"%.*s\"", STR_F(key),
                       STR_F(json_str(json_get(first, "operator"))), STR_F(value),
                       STR_F(r->pool->name));
}

/* ---- guardrails: how many ---- */

static int check_container(const struct resolve *r, const cJSON *container)
{
    struct str name = json_str(json_get(container, "name"));
    struct device_counts own;

    if (gpu_count_container(r->arena, container, &own, r->err))
        return pool_refuse(r, "%.*s", STR_F(arena_str(r->arena, r->err->message)));
    for (size_t i = 0; i < own.n; i++) {
        struct str what = own.items[i].name;
        int64_t units = own.items[i].units;
        const struct pool_resource *resource = config_pool_resource(r->pool, what);

        if (!resource || resource->gpu_eq.num == 0)
            continue;
        if ((r->pool->mode == POOL_TIME_SLICING || r->pool->mode == POOL_MPS) && units > 1)
            return pool_refuse(r, "a shared GPU request must be 1 per container, got %lld",
                               (long long)units);
        if (r->pool->per_container && units > r->pool->per_container)
            return pool_refuse(r,
                               "guardrail max-gpus-per-container: container \"%.*s\" requested "
                               "%.*s=%lld, pool \"%.*s\" allows %lld",
                               STR_F(name), STR_F(what), (long long)units, STR_F(r->pool->name),
                               (long long)r->pool->per_container);
    }
    return 0;
}

static int check_pod_cap(const struct resolve *r)
{
    struct str text = STR("");
    int64_t sum = 0;

    for (size_t i = 0; i < r->counts.n; i++) {
        const struct device_count *count = &r->counts.items[i];
        const struct pool_resource *resource = config_pool_resource(r->pool, count->name);

        if (!resource || resource->gpu_eq.num == 0)
            continue;
        sum = i64_add_most(sum, count->units);
        text = pool_joined(
            r->arena, text,
            arena_printf(r->arena, "%.*s=%lld", STR_F(count->name), (long long)count->units));
    }
    if (!r->pool->per_pod || sum <= r->pool->per_pod)
        return 0;
    return pool_refuse(r, "guardrail max-gpus-per-pod: requested %.*s, pool \"%.*s\" allows %lld",
                       STR_F(text), STR_F(r->pool->name), (long long)r->pool->per_pod);
}

/* A cap of the resource itself: the only bound of one that has no weight. */
static int check_resource_caps(const struct resolve *r)
{
    for (size_t i = 0; i < r->counts.n; i++) {
        const struct device_count *count = &r->counts.items[i];
        const struct pool_resource *resource = config_pool_resource(r->pool, count->name);

        if (resource && resource->per_pod && count->units > resource->per_pod)
            return pool_refuse(
                r, "guardrail max-devices-per-pod: requested %.*s=%lld, pool \"%.*s\" allows %lld",
                STR_F(count->name), (long long)count->units, STR_F(r->pool->name),
                (long long)resource->per_pod);
    }
    return 0;
}

/* Two resources with one host resource cannot be distinguished there. */
static int check_renames(const struct resolve *r)
{
    for (size_t i = 0; i < r->counts.n; i++) {
        const struct pool_resource *one = config_pool_resource(r->pool, r->counts.items[i].name);

        for (size_t k = 0; k < i; k++) {
            const struct pool_resource *two =
                config_pool_resource(r->pool, r->counts.items[k].name);

            if (str_eq(one->host_name, two->host_name))
                return pool_refuse(r,
                                   "%.*s and %.*s cannot be asked for in one pod of pool \"%.*s\"",
                                   STR_F(two->name), STR_F(one->name), STR_F(r->pool->name));
        }
    }
    return 0;
}

/* ---- guardrails: everything else ---- */

static int check_scheduler(const struct resolve *r)
{
    struct str wanted = json_str(json_get(r->spec, "schedulerName"));
    struct str uses =
        r->pool && r->pool->scheduler.n ? r->pool->scheduler : STR("default-scheduler");

    if (!wanted.n || str_eqc(wanted, "default-scheduler") || str_eq(wanted, uses))
        return 0;
    return pool_refuse(r, "schedulerName \"%.*s\" is not allowed; %s uses \"%.*s\"", STR_F(wanted),
                       r->pool ? "pool" : "this virtual cluster", STR_F(uses));
}

static int check_container_reach(const struct resolve *r, const cJSON *container)
{
    enum pool_mode mode = r->pool ? r->pool->mode : POOL_EXCLUSIVE;
    struct str name = json_str(json_get(container, "name"));

    json_each(env, json_get(container, "env"))
    {
        if (gpu_env_refused(r->config, env, mode))
            return pool_refuse(
                r,
                "env %.*s of container \"%.*s\" is not allowed: devices are given by the "
                "scheduler, not by variables",
                STR_F(json_str(json_get(env, "name"))), STR_F(name));
    }
    json_each(from, json_get(container, "envFrom"))
    {
        struct str prefix = json_str(json_get(from, "prefix"));

        if (gpu_env_prefix_refused(r->config, prefix, mode))
            return pool_refuse(
                r,
                "envFrom prefix \"%.*s\" of container \"%.*s\" is not allowed: it could "
                "name a variable that gives devices",
                STR_F(prefix), STR_F(name));
    }
    json_each(mount, json_get(container, "volumeMounts"))
    {
        struct str path = json_str(json_get(mount, "mountPath"));

        if (gpu_mount_refused(path))
            return pool_refuse(
                r,
                "mountPath %.*s of container \"%.*s\" is not allowed: mounts there give "
                "devices",
                STR_F(path), STR_F(name));
        if (gpu_mount_unlimits(path, mode))
            return pool_refuse(r,
                               "mountPath %.*s of container \"%.*s\" is not allowed: the library "
                               "that limits it to its part of a GPU is there",
                               STR_F(path), STR_F(name));
    }
    return 0;
}

/* Devices where no scheduler counts them: for the pod as a whole, or in a debug container. */
int pool_guard_side_doors(const struct resolve *r)
{
    const cJSON *pod_level = json_get(r->spec, "resources");
    cJSON *wrapped = json_new_object(r->arena);
    struct device_counts counts;
    int rc;

    if (pod_level)
        json_set(r->arena, wrapped, "resources", json_copy(r->arena, pod_level));
    rc = gpu_count_container(r->arena, wrapped, &counts, r->err);
    if (rc == 0 && counts.n == 0) {
        json_each(container, json_get(r->spec, POD_CONTAINER_LISTS[2]))
        {
            rc = rc ? rc : gpu_count_container(r->arena, container, &counts, r->err);
            if (rc || counts.n)
                break;
        }
    }
    if (rc)
        return pool_refuse(r, "%.*s", STR_F(arena_str(r->arena, r->err->message)));
    if (counts.n)
        return pool_refuse(r, "%.*s must be asked for by a container or init container",
                           STR_F(counts.items[0].name));
    return 0;
}

/* ---- all of them ---- */

int pool_guard_pool(const struct resolve *r)
{
    if (check_node_selector(r) || check_affinity(r) || check_renames(r))
        return -1;
    for (size_t i = 0; i < 2; i++) {
        json_each(container, json_get(r->spec, POD_CONTAINER_LISTS[i]))
        {
            if (check_container(r, container))
                return -1;
        }
    }
    return gpu_fraction_guard(r) || check_resource_caps(r) || check_pod_cap(r)
               ? -1
               : pool_guard_queue(r);
}

int pool_guard_pod(const struct resolve *r)
{
    if (check_cpu_nodes(r) || pool_guard_tolerations(r) || check_scheduler(r))
        return -1;
    for (size_t i = 0; i < 3; i++) {
        json_each(container, json_get(r->spec, POD_CONTAINER_LISTS[i]))
        {
            if (check_container_reach(r, container))
                return -1;
        }
    }
    return 0;
}
