/* SPDX-License-Identifier: Apache-2.0 */
/* PriorityClasses of a tenant as classes of the host, by the admin's names and ranges of values.
 * The value is the one that admission put into the pod. Must never give a class that the
 * configuration does not name. */

#include <sublet/config_sync.h>

#include "impl.h"

bool translate_priority_map(const struct config *config, const cJSON *spec, struct str *ret)
{
    const struct config_to_host *to = config->to_host;
    struct str name = json_str(json_get(spec, "priorityClassName")), class;
    int64_t value;

    *ret = STR("");
    if (!to->priorities || !name.n || str_has_prefix(name, STR("system-")))
        return true;
    class = json_str(json_get_str(to->priority_names, name));
    if (class.n) {
        *ret = class;
        return true;
    }
    if (!json_i64(json_get(spec, "priority"), &value))
        return true; /* a template: its pods are judged */
    for (size_t i = 0; i < to->n_ranges; i++) {
        if (value > to->ranges[i].up_to)
            continue;
        *ret = to->ranges[i].host_class;
        return true;
    }
    return false;
}

/* The highest tier whose value the pod's reaches; below all of them, the lowest. */
static struct str tier_by_rank(const struct translate_tenant *t, const struct config_pool *pool,
                               int64_t value)
{
    struct str best = STR(""), lowest = STR("");
    int64_t best_value = INT64_MIN, lowest_value = INT64_MAX, of_tier;

    json_each(tier, pool->priority_tiers)
    {
        if (!t->host_priority || !t->host_priority(t->host_priority_ctx, json_str(tier), &of_tier))
            continue;
        if (of_tier <= value && of_tier > best_value) {
            best = json_str(tier);
            best_value = of_tier;
        }
        if (of_tier < lowest_value) {
            lowest = json_str(tier);
            lowest_value = of_tier;
        }
    }
    return best.n ? best : lowest;
}

struct str translate_priority_tier(const struct translate_tenant *t, const struct config_pool *pool,
                                   const cJSON *spec)
{
    struct str name = json_str(json_get(spec, "priorityClassName"));
    struct str class = json_str(json_get_str(pool->priority_tiers, name));
    int64_t value;

    if (!class.n && name.n && !str_has_prefix(name, STR("system-")) &&
        json_i64(json_get(spec, "priority"), &value))
        class = tier_by_rank(t, pool, value);
    return class.n ? class : json_str(json_get_str(pool->priority_tiers, pool->default_tier));
}

int translate_priority_check(const struct config *config, const cJSON *pod, struct err *err)
{
    const struct config_to_host *to = config->to_host;
    const cJSON *spec = json_get(pod, "spec");
    struct str class, name = json_str(json_get(spec, "priorityClassName"));

    if (translate_priority_map(config, spec, &class))
        return 0;
    if (!to->n_ranges)
        return err_forbidden(err, STR_NULL, STR("pods"), json_str_at(pod, "metadata.name"),
                             "spec.priorityClassName: \"%.*s\" is not one of "
                             "sync.toHost.priorityClasses.mappings.byName",
                             STR_F(name));
    return err_forbidden(err, STR_NULL, STR("pods"), json_str_at(pod, "metadata.name"),
                         "spec.priorityClassName: \"%.*s\" has the value %lld; the most that "
                         "sync.toHost.priorityClasses grants is %lld",
                         STR_F(name), (long long)json_i64_at(spec, "priority", 0),
                         (long long)to->ranges[to->n_ranges - 1].up_to);
}
