/* SPDX-License-Identifier: Apache-2.0 */
/* `bindings:` of the configuration: what of which pool this virtual cluster may have. Why apart
 * from the pools: the same list of pools is handed to every tenant of an admin. Must never bind
 * what does not exist, nor lend what is not guaranteed. */

#include "impl.h"

enum { DEFAULT_HOLD_S = 600 };

struct binding_draft {
    struct config_binding binding;
    const struct config *config;
    bool limited;
};

static int read_binding_pool(const struct place *at, const cJSON *value, void *into)
{
    struct binding_draft *d = into;
    struct str name;

    if (place_string(at, value, &name))
        return -1;
    for (size_t i = 0; i < d->config->n_pools; i++) {
        if (str_eq(d->config->pools[i].name, name)) {
            d->binding.pool = &d->config->pools[i];
            return 0;
        }
    }
    return place_error(at, "no pool is called \"%.*s\"", STR_F(name));
}

static int read_guarantee(const struct place *at, const cJSON *value, void *into)
{
    struct binding_draft *d = into;

    d->limited = true;
    return place_rational(at, value, &d->binding.guarantee);
}

static int read_burst(const struct place *at, const cJSON *value, void *into)
{
    struct binding_draft *d = into;

    d->limited = true;
    return place_rational(at, value, &d->binding.burst);
}

static int read_lend(const struct place *at, const cJSON *value, void *into)
{
    return place_rational(at, value, &((struct binding_draft *)into)->binding.lend);
}

static int read_over_quota(const struct place *at, const cJSON *value, void *into)
{
    struct binding_draft *d = into;
    int word;

    if (place_word(at, value, "reject|queue", &word))
        return -1;
    d->binding.over_quota = (enum over_quota)word;
    return 0;
}

static int read_order(const struct place *at, const cJSON *value, void *into)
{
    struct binding_draft *d = into;
    int word;

    if (place_word(at, value, "backfill|strict", &word))
        return -1;
    d->binding.strict = word == 1;
    return 0;
}

static int read_hold(const struct place *at, const cJSON *value, void *into)
{
    struct binding_draft *d = into;

    if (place_seconds(at, value, &d->binding.hold_s))
        return -1;
    return d->binding.hold_s ? 0 : place_error(at, "want a duration of at least 1s, such as 10m");
}

static int read_default(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct binding_draft *)into)->binding.is_default);
}

static const struct place_key BINDING_KEYS[] = {
    {"pool", read_binding_pool}, {"guarantee", read_guarantee},  {"burst", read_burst},
    {"lend", read_lend},         {"overQuota", read_over_quota}, {"queueOrder", read_order},
    {"queueHold", read_hold},    {"default", read_default},      {0},
};

/* By the file alone; of a GPUBinding the fleet says it. */
static void drain(struct config_binding *b)
{
    const struct config_maintenance *m = &b->pool->maintenance;

    if (m->state != MAINTENANCE_DRAIN)
        return;
    b->limit = RATIONAL_ZERO;
    b->reclaim = true;
    b->reclaim_not_before_s = m->start_s + (m->grace_s ? m->grace_s : CONFIG_DRAIN_GRACE_S);
}

int config_read_binding(const struct place *at, const cJSON *value, const struct config *config,
                        struct config_binding *ret)
{
    struct binding_draft d = {.config = config, .binding.hold_s = DEFAULT_HOLD_S};

    d.binding.guarantee = d.binding.burst = d.binding.lend = RATIONAL_ZERO;
    if (place_object(at, value, BINDING_KEYS, &d))
        return -1;
    if (!d.binding.pool)
        return place_error(at, "pool is needed");
    if (!d.limited)
        return place_error(at, "guarantee or burst is needed");
    if (!rational_add(d.binding.guarantee, d.binding.burst, &d.binding.most))
        return place_error(at, "guarantee + burst is out of range");
    if (rational_cmp(d.binding.lend, d.binding.guarantee) > 0)
        return place_error(at, "lend must not exceed guarantee");
    if (d.binding.pool->adversarial && config->pod_security == POD_SECURITY_PRIVILEGED)
        return place_error(at, "policy.podSecurity privileged voids the trust of pool \"%.*s\"",
                           STR_F(d.binding.pool->name));
    if (d.binding.pool->mode == POOL_DRA && d.binding.over_quota == OVER_QUOTA_QUEUE)
        return place_error(at,
                           "overQuota queue is for pods: a claim in pool \"%.*s\" is charged when "
                           "it is created, or refused",
                           STR_F(d.binding.pool->name));
    d.binding.limit = d.binding.most;
    drain(&d.binding);
    *ret = d.binding;
    return 0;
}

int config_load_bindings(const struct place *at, const cJSON *list, struct config *config)
{
    struct config_binding *bindings =
        arena_alloc(at->arena, (json_count(list) + 1) * sizeof *bindings);
    size_t n = 0;

    config->bindings = bindings;
    json_each(item, list)
    {
        struct place inner = place_item(at, n);

        if (config_read_binding(&inner, item, config, &bindings[n]))
            return -1;
        for (size_t i = 0; i < n; i++) {
            if (bindings[i].pool == bindings[n].pool)
                return place_error(&inner, "pool is bound by bindings[%zu] already", i);
            if (bindings[i].is_default && bindings[n].is_default)
                return place_error(&inner, "default is bindings[%zu] already", i);
        }
        config->n_bindings = ++n;
    }
    return 0;
}
