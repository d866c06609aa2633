/* SPDX-License-Identifier: Apache-2.0 */
/* The set of pools and bindings that GPUBindings of the host make, beside those of the file. Why
 * here: they pass the same readers as the file, so that a pool is as checked when the fleet hands
 * it out as when the admin writes it down. Must never let one that is bad change what the others
 * are, nor raise a limit above guarantee + burst. */

#include <sublet/config_bound.h>

#include <assert.h>
#include <string.h>

#include <sublet/clock.h>

#include "impl.h"

#define BOUND_MAGIC 0x626f756eu

struct config_bound {
    unsigned magic;
    struct arena *arena;
    const struct config *config;
    struct config_pool *pools; /* those of the file first; room for CONFIG_MOST_BOUND more */
    struct config_binding *bindings;
    size_t n_pools, n_bindings;
};

struct config_bound *config_bound_new(const struct config *config)
{
    struct config_bound *set = NEW(struct config_bound);
    size_t pools = config->n_pools + CONFIG_MOST_BOUND;
    size_t bindings = config->n_bindings + CONFIG_MOST_BOUND;

    *set = (struct config_bound){.magic = BOUND_MAGIC, .arena = arena_new(0), .config = config};
    set->pools = arena_alloc(set->arena, pools * sizeof(*set->pools));
    set->bindings = arena_alloc(set->arena, bindings * sizeof(*set->bindings));
    for (size_t i = 0; i < config->n_pools; i++)
        set->pools[set->n_pools++] = config->pools[i];
    for (size_t i = 0; i < config->n_bindings; i++) {
        set->bindings[i] = config->bindings[i];
        set->bindings[i].pool = &set->pools[config->bindings[i].pool - config->pools];
        set->n_bindings++;
    }
    return set;
}

struct config_bound *config_bound_free(struct config_bound *set)
{
    if (!set)
        return NULL;
    assert(set->magic == BOUND_MAGIC);
    set->magic = 0;
    arena_free(set->arena);
    mem_free(set);
    return NULL;
}

/* A tree that lives as long as the set: pools keep parts of theirs. */
static cJSON *own_copy(struct config_bound *set, const cJSON *tree)
{
    return tree ? json_copy(set->arena, tree) : json_new_object(set->arena);
}

/* The spec as an item of `bindings:`. */
static cJSON *own_spec(struct config_bound *set, const cJSON *object)
{
    cJSON *spec = own_copy(set, json_get(object, "spec"));

    json_remove(spec, "budget");
    return spec;
}

static cJSON *own_copy_of(struct config_bound *set, const cJSON *tree)
{
    return tree ? json_copy(set->arena, tree) : NULL;
}

static int read_grant(const struct place *at, const cJSON *value, struct rational *ret)
{
    *ret = RATIONAL_ZERO;
    return value && !json_is_null(value) ? place_rational(at, value, ret) : 0;
}

static int read_reclaimed(const struct place *at, const cJSON *value, void *into)
{
    struct rational unused;

    (void)into;
    return place_rational(at, value, &unused);
}

static int read_not_before(const struct place *at, const cJSON *value, void *into)
{
    struct config_binding *binding = into;
    int64_t us;

    if (!time_parse(json_str(value), &us))
        return place_error(at, "want a time such as 2026-01-31T12:00:00Z");
    binding->reclaim = true;
    binding->reclaim_not_before_s = us / 1000000;
    return 0;
}

static const struct place_key RECLAIM_KEYS[] = {
    {"gpus", read_reclaimed},
    {"notBefore", read_not_before},
    {0},
};

static int read_reclaim(const struct place *at, const cJSON *value, struct config_binding *ret)
{
    return value && !json_is_null(value) ? place_object(at, value, RECLAIM_KEYS, ret) : 0;
}

static int check_name(const struct place *at, const struct config_bound *set,
                      const struct config_pool *pool)
{
    const struct place name = place_member(at, "name");

    if (set->config->nodes_per_pool && str_eqc(pool->name, POOL_NODE_NONE))
        return place_error(&name,
                           "\"%.*s\": with sync.nodes perPool it is the node of pods without "
                           "devices",
                           STR_F(pool->name));
    for (size_t i = 0; i < set->n_pools; i++) {
        if (str_eq(set->pools[i].name, pool->name))
            return place_error(&name, "\"%.*s\": %s", STR_F(pool->name),
                               i < set->config->n_pools
                                   ? "the configuration file has a pool of this name"
                                   : "another GPUBinding has it");
    }
    return 0;
}

static struct place part_of(const struct place *at, const char *part)
{
    struct place ret = *at;

    ret.path = arena_printf(at->arena, "%.*s: %s", STR_F(at->path), part);
    return ret;
}

/* One GPUBinding, by itself: *ret_pool is what ret->pool will be once both are in the set. */
static int read_bound(struct config_bound *set, const struct place *at, const cJSON *object,
                      struct config_pool *ret_pool, struct config_binding *ret)
{
    const struct place spec = part_of(at, "spec"), pool = part_of(at, "status.pool");
    const struct place grant = part_of(at, "status.grant");
    const struct place reclaim = part_of(at, "status.reclaim");
    const struct place maintenance = part_of(at, "status.maintenance");
    struct config alone = *set->config;
    struct rational granted;

    if (config_read_pool(&pool, own_copy(set, json_path(object, "status.pool")), set->config,
                         ret_pool) ||
        check_name(&pool, set, ret_pool))
        return -1;
    alone.pools = ret_pool;
    alone.n_pools = 1;
    if (config_read_binding(&spec, own_spec(set, object), &alone, ret) ||
        config_maintenance_parse(set->arena, maintenance.path,
                                 own_copy_of(set, json_path(object, "status.maintenance")),
                                 &ret_pool->maintenance, at->err) ||
        read_grant(&grant, json_path(object, "status.grant"), &granted) ||
        read_reclaim(&reclaim, json_path(object, "status.reclaim"), ret))
        return -1;
    if (rational_cmp(granted, ret->limit) < 0)
        ret->limit = granted;
    ret->budget = own_copy_of(set, json_path(object, "status.budget"));
    return 0;
}

bool config_bound_has(const struct config_bound *set, struct str pool)
{
    assert(set->magic == BOUND_MAGIC);
    for (size_t i = 0; i < set->n_pools; i++)
        if (str_eq(set->pools[i].name, pool))
            return true;
    return false;
}

static bool has_default(const struct config_bound *set)
{
    for (size_t i = 0; i < set->n_bindings; i++)
        if (set->bindings[i].is_default)
            return true;
    return false;
}

int config_bound_add(struct config_bound *set, const cJSON *object, bool ended,
                     bool *ret_default_lost, struct err *err)
{
    struct place at = {set->arena,
                       arena_printf(set->arena, "GPUBinding \"%.*s\"",
                                    STR_F(json_str_at(object, "metadata.name"))),
                       err};
    struct config_pool pool;
    struct config_binding binding;

    assert(set->magic == BOUND_MAGIC);
    *ret_default_lost = false;
    if (set->n_pools - set->config->n_pools >= CONFIG_MOST_BOUND)
        return place_error(&at, "one virtual cluster has at most %d", CONFIG_MOST_BOUND);
    if (read_bound(set, &at, object, &pool, &binding))
        return -1;
    *ret_default_lost = binding.is_default && !ended && has_default(set);
    if (ended || *ret_default_lost)
        binding.is_default = false;
    binding.ended = ended;
    binding.object = arena_str(set->arena, json_str_at(object, "metadata.name"));
    if (ended)
        binding.limit = binding.most = RATIONAL_ZERO;
    set->pools[set->n_pools] = pool;
    binding.pool = &set->pools[set->n_pools++];
    set->bindings[set->n_bindings++] = binding;
    return 0;
}

void config_bound_install(const struct config_bound *set, struct config *live)
{
    assert(set->magic == BOUND_MAGIC);
    live->pools = set->pools;
    live->n_pools = set->n_pools;
    live->bindings = set->bindings;
    live->n_bindings = set->n_bindings;
}
