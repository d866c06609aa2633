/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance and conversion of a pool. Why the end of a drain is counted from its beginning, and
 * not from what a binding holds: nothing that a tenant does may move it. Must never drain a pool by
 * a spec that makes no sense, nor put devices in force while others are promised. */
#include "grant_phase.h"

static enum grant_maintenance maintenance_of(const struct grant_phase_facts *f)
{
    if (f->wants.state == MAINTENANCE_NONE)
        return GRANT_OPEN;
    if (f->wants.start_s > f->now_s)
        return GRANT_PLANNED;
    if (f->wants.state == MAINTENANCE_CORDON)
        return GRANT_CORDONED;
    return f->empty ? GRANT_DRAINED : GRANT_DRAINING;
}

static enum grant_conversion conversion_of(const struct grant_phase_facts *f)
{
    if (f->invalid)
        return GRANT_REFUSED;
    if (f->differs)
        return f->empty ? GRANT_WAITS_FOR_NODES : GRANT_CONVERTS;
    return f->was_changing && f->changing ? GRANT_WAITS_FOR_NODES : GRANT_AS_IT_IS;
}

static void earliest(int64_t *next, int64_t at_s, int64_t now_s)
{
    if (at_s > now_s && (!*next || at_s < *next))
        *next = at_s;
}

struct grant_phase grant_phase_of(const struct grant_phase_facts *f)
{
    struct grant_phase p = {.maintenance = maintenance_of(f), .conversion = conversion_of(f)};
    bool drains = f->differs || p.maintenance >= GRANT_DRAINING;
    int64_t grace_s = f->wants.state && f->wants.grace_s ? f->wants.grace_s : f->grace_s;

    p.switches = f->differs && !f->invalid && f->empty;
    p.door = drains ? SHARE_DRAINED : p.maintenance == GRANT_CORDONED ? SHARE_CLOSED : SHARE_OPEN;
    if (drains) { /* a clock that was set back prolongs none */
        p.since_s = f->since_s && f->since_s < f->now_s ? f->since_s : f->now_s;
        p.not_before_s = p.since_s + grace_s;
    }
    p.overdue = p.maintenance && f->wants.until_s && f->wants.until_s <= f->now_s;
    if (p.maintenance) {
        earliest(&p.next_s, f->wants.start_s, f->now_s);
        earliest(&p.next_s, f->wants.until_s, f->now_s);
    }
    return p;
}

const char *grant_phase_state(const struct grant_phase *p)
{
    static const char *const maintenance[] = {
        [GRANT_CORDONED] = "cordoned", [GRANT_DRAINING] = "draining", [GRANT_DRAINED] = "drained"};

    if (p->conversion == GRANT_CONVERTS)
        return "converting";
    if (p->conversion == GRANT_WAITS_FOR_NODES)
        return "waiting-for-nodes";
    return p->maintenance >= GRANT_CORDONED ? maintenance[p->maintenance] : NULL;
}

static const struct pool_resource *same_resource(const struct config_pool *pool,
                                                 const struct pool_resource *r)
{
    const struct pool_resource *other = config_pool_resource(pool, r->name);

    return other && str_eq(other->host_name, r->host_name) &&
                   rational_cmp(other->gpu_eq, r->gpu_eq) == 0
               ? other
               : NULL;
}

bool grant_devices_stay(const struct config_pool *now, const struct config_pool *next)
{
    if (now->mode != next->mode || now->gpu_memory_mib != next->gpu_memory_mib)
        return false;
    for (size_t i = 0; i < now->n_resources; i++)
        if (!same_resource(next, &now->resources[i]))
            return false;
    return true;
}

/* A slice of MIG is by its name what it is, whatever part of a GPU it is counted as. */
struct str grant_devices_mixed(const struct config_pool *now, const struct config_pool *next)
{
    for (size_t i = 0; i < now->n_resources; i++)
        for (size_t k = 0; k < next->n_resources; k++) {
            const struct pool_resource *a = &now->resources[i], *b = &next->resources[k];

            if (str_eq(a->host_name, b->host_name) && rational_cmp(a->gpu_eq, b->gpu_eq) != 0 &&
                (now->mode != POOL_MIG || next->mode != POOL_MIG || !str_eq(a->name, b->name)))
                return a->host_name;
        }
    return STR("");
}

struct str grant_strategy(enum pool_mode mode)
{
    if (mode == POOL_EXCLUSIVE || mode == POOL_MIG)
        return STR("none");
    return mode == POOL_TIME_SLICING || mode == POOL_MPS ? config_mode_name(mode) : STR("");
}

struct str grant_devices_text(struct arena *a, const struct config_pool *pool)
{
    struct str text = config_mode_name(pool->mode);

    for (size_t i = 0; i < pool->n_resources; i++)
        text = arena_printf(a, "%.*s %.*s=%.*s", STR_F(text), STR_F(pool->resources[i].host_name),
                            STR_F(rational_format(a, pool->resources[i].gpu_eq)));
    return text;
}
