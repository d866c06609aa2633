/* SPDX-License-Identifier: Apache-2.0 */
/* Which tolerations of a pod are granted, which have no effect, and which are refused. Why: a
 * toleration opens nodes, so only those of the pool are sent to the host (pod_affinity.c).
 * Manifests are full of others, and dropping them is safe, but a toleration of another pool or of
 * the host's control plane is an error its author must see. The wildcard (no key) is dropped like
 * any other: agents that run everywhere carry it. Must never decide what is sent. */

#include <sublet/config_sync.h>

#include "pool.h"

const char *const POOL_TOLERATED_KEYS[] = {
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    /* What the DaemonSet controller adds to its pods; accepted and not sent. */
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
    NULL,
};

enum fate { GRANTED, DROPPED, REFUSED };

static bool has_operator(const cJSON *toleration, const char *operator_)
{
    struct str is = json_str(json_get(toleration, "operator"));

    return str_eqc(is.n ? is : STR("Equal"), operator_);
}

static bool same_key(const cJSON *toleration, struct str key)
{
    return str_eq(json_str(json_get(toleration, "key")), key);
}

static bool is_common(struct str key)
{
    for (size_t i = 0; POOL_TOLERATED_KEYS[i]; i++) {
        if (str_eqc(key, POOL_TOLERATED_KEYS[i]))
            return true;
    }
    return false;
}

/* ---- of every pod ---- */

bool pool_enforces(const struct config *config, const cJSON *toleration)
{
    return !config_pools_tolerate(config, json_str(json_get(toleration, "key")));
}

static bool same_value(const cJSON *toleration, struct str value)
{
    return has_operator(toleration, "Exists") ||
           str_eq(json_str(json_get(toleration, "value")), value);
}

bool pool_enforced_tolerates(const struct config *config, const cJSON *taint)
{
    struct str key = json_str(json_get(taint, "key"));

    json_each(one, config->to_host->tolerations)
    {
        struct str effect = json_str(json_get(one, "effect"));

        if (same_key(one, key) && same_value(one, json_str(json_get(taint, "value"))) &&
            (!effect.n || str_eq(effect, json_str(json_get(taint, "effect")))) &&
            pool_enforces(config, one))
            return true;
    }
    return false;
}

/* Does every pod tolerate at least what this toleration does? */
static bool enforced_grants(const struct config *config, const cJSON *toleration)
{
    struct str effect = json_str(json_get(toleration, "effect"));

    json_each(one, config->to_host->tolerations)
    {
        struct str own = json_str(json_get(one, "effect"));

        if (same_key(one, json_str(json_get(toleration, "key"))) &&
            (has_operator(one, "Exists") ||
             (has_operator(toleration, "Equal") &&
              same_value(one, json_str(json_get(toleration, "value"))))) &&
            (!own.n || str_eq(own, effect)) && pool_enforces(config, one))
            return true;
    }
    return false;
}

/* Does the pod's pool tolerate at least what this toleration does? */
static bool pool_grants(const struct resolve *r, const cJSON *toleration, struct str key)
{
    struct str value = json_str(json_get(toleration, "value"));

    for (size_t i = 0; i < r->counts.n; i++) {
        if (str_eq(r->counts.items[i].name, key)) /* what the host adds to such a pod by itself */
            return true;
    }
    json_each(own, r->pool ? r->pool->tolerations : NULL)
    {
        if (same_key(own, key) &&
            (has_operator(own, "Exists") || (has_operator(toleration, "Equal") &&
                                             str_eq(json_str(json_get(own, "value")), value))))
            return true;
    }
    return false;
}

/* Taints that are one pool's or the control plane's. What a pool tolerates with Exists marks a kind
 * of machine, by convention; it keeps no tenant off a pool. */
static bool is_protected(const struct config *config, struct str key)
{
    if (str_has_prefix(key, STR("sublet.dev/")) ||
        str_eqc(key, "node-role.kubernetes.io/control-plane") ||
        str_eqc(key, "node-role.kubernetes.io/master"))
        return true;
    for (size_t i = 0; i < config->n_pools; i++) {
        json_each(own, config->pools[i].tolerations)
        {
            if (same_key(own, key) && has_operator(own, "Equal"))
                return true;
        }
    }
    return false;
}

static enum fate fate_of(const struct resolve *r, const cJSON *toleration)
{
    struct str key = json_str(json_get(toleration, "key"));

    if (is_common(key) || pool_grants(r, toleration, key) || enforced_grants(r->config, toleration))
        return GRANTED;
    if (is_protected(r->config, key) || r->config->tolerations == TOLERATIONS_REFUSE)
        return REFUSED;
    return DROPPED;
}

/* ---- words ---- */

static struct str tolerated_text(const struct resolve *r)
{
    struct str text = STR("");

    for (size_t i = 0; i < TOLERATED_DOWN; i++)
        text = pool_joined(r->arena, text, str_c(POOL_TOLERATED_KEYS[i]));
    json_each(toleration, r->pool ? r->pool->tolerations : NULL)
    {
        text = pool_joined(r->arena, text, json_str(json_get(toleration, "key")));
    }
    json_each(one, r->config->to_host->tolerations)
    {
        if (pool_enforces(r->config, one))
            text = pool_joined(r->arena, text, json_str(json_get(one, "key")));
    }
    return text;
}

static struct str toleration_text(const struct resolve *r, const cJSON *toleration)
{
    struct str key = json_str(json_get(toleration, "key"));
    struct str value = json_str(json_get(toleration, "value"));
    struct str effect = json_str(json_get(toleration, "effect"));

    if (!key.n)
        return STR("Exists, all keys");
    return arena_printf(r->arena, "%.*s%s%.*s%s%.*s", STR_F(key), value.n ? "=" : "", STR_F(value),
                        effect.n ? ":" : "", STR_F(effect));
}

int pool_guard_tolerations(const struct resolve *r)
{
    json_each(toleration, json_get(r->spec, "tolerations"))
    {
        if (fate_of(r, toleration) == REFUSED)
            return pool_refuse(r,
                               "toleration [%.*s] is not allowed; tenant may tolerate only: %.*s",
                               STR_F(toleration_text(r, toleration)), STR_F(tolerated_text(r)));
    }
    return 0;
}

void pool_warnings(struct arena *a, const struct config *config, const struct pool_choice *choice,
                   const cJSON *pod, void (*warn)(void *ctx, struct str text), void *ctx)
{
    struct resolve r = {.arena = a, .config = config, .pod = pod, .spec = json_get(pod, "spec")};
    size_t i = 0;

    r.pool = choice->binding ? choice->binding->pool : NULL;
    if (r.pool && config_maintenance_text(a, r.pool).n)
        warn(ctx,
             arena_printf(a, "PoolUnavailable: %.*s", STR_F(config_maintenance_text(a, r.pool))));
    if (gpu_count_pod(a, pod, &r.counts, NULL))
        return;
    json_each(toleration, json_get(r.spec, "tolerations"))
    {
        if (fate_of(&r, toleration) == DROPPED)
            warn(ctx, arena_printf(a,
                                   "spec.tolerations[%zu]: [%.*s] has no effect: this virtual "
                                   "cluster grants only %.*s",
                                   i, STR_F(toleration_text(&r, toleration)),
                                   STR_F(tolerated_text(&r))));
        i++;
    }
    pool_queue_warnings(&r, warn, ctx);
}
