/* SPDX-License-Identifier: Apache-2.0 */
/* The host's objects as the rows of share.c. Which pool a pod takes from is a fact of the host: the
 * pool of its node or, before it has one, the pool whose nodeSelector the scheduler obeys; a pod's
 * labels are the tenant's and prove nothing. Must never take what cannot be read for nothing: a
 * binding that makes no sense is refused with the reason, a ResourceQuota without its annotation
 * counts as what it lets through. */
#include "grant_class.h"
#include "grant_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/json_build.h>
#include <sublet/object.h>
#include <sublet/quantity.h>
#include <sublet/vgpu.h>

struct placed {
    struct map_entry by_name;
    struct str name;
    size_t pool;
    bool down, aside;
};

#define MOST_PARTS 10000
#define MOST_GPUS  INT64_C(1000000000)

#define ADD(s, list, n, cap)                                                                       \
    do {                                                                                           \
        if ((n) == (cap)) {                                                                        \
            size_t more = (cap) ? 2 * (cap) : 16;                                                  \
            void *copy = arena_alloc((s)->a, more * sizeof(*(list)));                              \
                                                                                                   \
            if (n)                                                                                 \
                memcpy(copy, (list), (n) * sizeof(*(list)));                                       \
            (list) = copy;                                                                         \
            (cap) = more;                                                                          \
        }                                                                                          \
        (n)++;                                                                                     \
    } while (0)

void grant_state_begin(struct grant_state *s, struct arena *a, const struct grant_times *times)
{
    *s = (struct grant_state){
        .a = a, .now_s = times->now_s, .grace_s = times->grace_s, .pause_s = times->pause_s};
}

void grant_state_end(struct grant_state *s)
{
    map_clear(&s->tenants);
    map_clear(&s->nodes);
    map_clear(&s->queues_by_name);
    map_clear(&s->queues_by_owner);
}

/* --- numbers --- */

/* Of an administrator. Bounded, so that sums of all bindings fit. */
static bool gpus_of(const cJSON *value, struct rational *ret)
{
    int64_t whole;

    *ret = RATIONAL_ZERO;
    if (!value)
        return true;
    if (json_i64(value, &whole))
        *ret = (struct rational){whole, 1};
    else if (!rational_parse(json_str(value), ret))
        return false;
    return ret->num >= 0 && ret->den <= MOST_PARTS && ret->num / ret->den < MOST_GPUS;
}

/* Of a tenant, who may write what it likes: whole GPUs, rounded up. */
static bool wish_of(const cJSON *value, struct rational *ret)
{
    struct rational wish;
    int64_t whole;

    if (!rational_parse(json_str(value), &wish) || wish.num < 0)
        return false;
    whole = wish.num / wish.den + (wish.num % wish.den != 0);
    *ret = (struct rational){whole < MOST_GPUS ? whole : MOST_GPUS, 1};
    return true;
}

/* Any number may be requested: what is beyond the bound is all the same. */
static void add(struct rational *sum, struct rational more)
{
    if (!rational_add(*sum, more, sum) || sum->num / sum->den >= MOST_GPUS)
        *sum = (struct rational){MOST_GPUS, 1};
}

struct rational grant_without(struct rational a, struct rational b)
{
    struct rational left;

    return rational_sub(a, b, &left) && left.num > 0 ? left : RATIONAL_ZERO;
}

/* --- pools --- */

/* The spec as an item of `pools:`. */
static cJSON *item_of(struct grant_state *s, const cJSON *pool)
{
    static const char *const own[] = {"capacity", "maintenance"}; /* of the fleet alone */
    cJSON *item = json_copy(s->a, json_path(pool, "spec"));

    item = item ? item : json_new_object(s->a);
    for (size_t i = 0; i < COUNT(own); i++)
        if (json_get(item, own[i]))
            json_detach(item, json_get(item, own[i]));
    json_set_first(s->a, item, "name", json_new_string(s->a, meta_name(pool)));
    return item;
}

/* The reader's "config: pools[0].mode: ..." and "config: pools[0]: mode: ..." as what is written in
 * the object: "spec.mode: ...". */
static struct str place_in_spec(struct arena *a, struct str message)
{
    const struct str item = STR("config: pools[0]");
    struct str rest = str_from(message, item.n), text = str_from(rest, 2);
    bool has_key = str_has_prefix(rest, STR(": ")) && str_find(text, ':') < str_find(text, ' ');

    if (!str_has_prefix(message, item))
        return arena_str(a, message);
    return has_key ? arena_printf(a, "spec.%.*s", STR_F(text))
                   : arena_printf(a, "spec%.*s", STR_F(rest));
}

/* By the reader of the configuration. */
static bool read_pool(struct grant_state *s, const cJSON *item, struct config_pool *ret,
                      struct str *ret_why)
{
    cJSON *list = json_new_array(s->a), *file = json_new_object(s->a);
    cJSON *host = json_object(s->a, JSON("namespace", "x")); /* of any binding */
    struct config *config = arena_alloc(s->a, sizeof(*config));
    char *const none[] = {NULL};
    struct err err;

    err_init(&err, s->a);
    json_append(list, json_copy(s->a, item));
    json_set(s->a, file, "pools", list);
    json_set(s->a, file, "host", host);
    if (config_load(s->a, json_text(s->a, file), 0, none, none, config, &err)) {
        *ret_why = place_in_spec(s->a, err.message);
        return false;
    }
    *ret = config->pools[0];
    if (ret->mode == POOL_KAI) {
        *ret_why = grant_queue_spec_why(s, item);
        return !ret_why->n;
    }
    if (ret->mode != POOL_DRA)
        return true;
    *ret_why = grant_class_resources(s, ret);
    return !ret_why->n;
}

/* Before a switch to devices that have a name of those in force: nothing is begun that no label of
 * the nodes show apart. While nodes may have what was before those in force, only that may
 * follow. Returns why not; empty: it may. */
static struct str settle_mixed(struct grant_state *s, struct grant_pool *p,
                               const struct config_pool *had, const struct config_pool *next)
{
    struct str mixed = grant_devices_mixed(had, next), strategy = grant_strategy(next->mode);

    if (p->before.n && !str_eq(p->before, grant_devices_text(s->a, next)))
        return arena_printf(s->a,
                            "nodes are converted still, from \"%.*s\": go back to that, or wait "
                            "until the label " GRANT_STRATEGY " of each of them is \"%.*s\"",
                            STR_F(p->before), STR_F(grant_strategy(had->mode)));
    if (mixed.n && (!strategy.n || str_eq(strategy, grant_strategy(had->mode))))
        return arena_printf(s->a,
                            "nothing on a node distinguishes its %.*s from those of before, which "
                            "are other parts of a GPU: give the resource another name, by the "
                            "device plugin and `rename`",
                            STR_F(mixed));
    if (mixed.n)
        p->mixed = str_clip(grant_devices_text(s->a, had), 1000);
    return STR("");
}

/* What is in force stays so while the spec makes no sense, or has other devices. */
static bool settle_item(struct grant_state *s, struct grant_pool *p, struct config_pool *ret,
                        struct rational *ret_declared)
{
    cJSON *before = json_copy(s->a, json_path(p->tree, "status.inForce"));
    struct config_pool had;
    struct str unused;
    bool valid;

    p->before = json_str_at(p->tree, "status.convertsFrom");
    p->item = p->next = item_of(s, p->tree);
    valid = read_pool(s, p->item, ret, &p->why);
    if (!gpus_of(json_path(p->tree, "spec.capacity"), ret_declared)) {
        *ret_declared = RATIONAL_ZERO;
        p->why = STR("capacity is a number of GPUs, of at most 10000 parts");
        valid = false;
    }
    if (!before || (valid && json_equal(before, p->item)) || !read_pool(s, before, &had, &unused) ||
        !str_eq(had.name, p->name) || (valid && grant_devices_stay(&had, ret)))
        return valid;
    p->item = before;
    if (valid)
        p->why = settle_mixed(s, p, &had, ret);
    valid &= !p->why.n;
    p->facts.invalid = !valid;
    p->facts.differs = valid;
    p->next_why = p->why;
    p->why = STR("");
    if (valid)
        p->change = had.mode != ret->mode
                        ? arena_printf(s->a, "from %.*s to %.*s", STR_F(config_mode_name(had.mode)),
                                       STR_F(config_mode_name(ret->mode)))
                        : STR("to other devices");
    *ret = had;
    return true;
}

/* One that makes no sense is none, and a condition says so: an older schema of the kind lets it
 * pass. */
static void settle_wish(struct grant_state *s, struct grant_pool *p)
{
    struct err err;

    err_init(&err, s->a);
    if (config_maintenance_parse(s->a, STR("maintenance"), json_path(p->tree, "spec.maintenance"),
                                 &p->facts.wants, &err))
        p->wish_why = arena_str(s->a, err.message);
    err_clear(&err);
}

/* Has no status of this pool said what is in force? A definition of before status.inForce prunes
 * it, but keeps the condition that is written with it. */
static bool is_unrecorded(const cJSON *tree)
{
    return !json_path(tree, "status.inForce") && !condition_of(tree, GRANT_CONVERTING);
}

/* What a pod holds is a multiple of 1/it; 0: there is no such. */
static int64_t parts_of(const struct config_pool *config)
{
    int64_t parts = 1;

    for (size_t i = 0; i < config->n_resources; i++) {
        int64_t den = config->resources[i].gpu_eq.den, a = parts, b = den, rest;

        for (; b; a = b, b = rest)
            rest = a % b;
        if (__builtin_mul_overflow(parts / a, den, &parts))
            return INT64_MAX; /* refused by share.c */
    }
    return parts;
}

static void add_config(struct grant_state *s, const struct config_pool *config,
                       struct rational declared)
{
    size_t i = s->n_configs, n = i, n_sums = i, cap = s->cap_configs, cap_sums = cap;
    size_t n_selectors = i, cap_selectors = cap;

    ADD(s, s->configs, s->n_configs, s->cap_configs);
    ADD(s, s->shares, n, cap);
    ADD(s, s->sums, n_sums, cap_sums);
    ADD(s, s->selectors, n_selectors, cap_selectors);
    s->configs[i] = *config;
    s->selectors[i] = fact_selector(s->a, config->node_selector);
    s->shares[i] = (struct share_pool){
        .healthy = RATIONAL_ZERO, .parts = parts_of(config), .dedicated = config->dedicated};
    s->sums[i] = (struct grant_sums){.nodes = RATIONAL_ZERO,
                                     .down = RATIONAL_ZERO,
                                     .stranded = RATIONAL_ZERO,
                                     .foreign = RATIONAL_ZERO,
                                     .foreign_up = RATIONAL_ZERO,
                                     .aside = RATIONAL_ZERO,
                                     .aside_held = RATIONAL_ZERO,
                                     .aside_foreign = RATIONAL_ZERO,
                                     .declared = declared};
}

void grant_state_pool(struct grant_state *s, const cJSON *tree)
{
    struct config_pool config;
    struct grant_pool p = {.tree = tree, .name = meta_name(tree), .index = SHARE_NO_POOL};
    struct rational declared;

    if (settle_item(s, &p, &config, &declared)) {
        settle_wish(s, &p);
        p.unrecorded = is_unrecorded(tree);
        p.index = s->n_configs;
        add_config(s, &config, declared);
    }
    ADD(s, s->pools, s->n_pools, s->cap_pools);
    s->pools[s->n_pools - 1] = p;
}

const struct grant_pool *grant_pool_at(const struct grant_state *s, size_t index)
{
    for (size_t i = 0; i < s->n_pools && index != SHARE_NO_POOL; i++)
        if (s->pools[i].index == index)
            return &s->pools[i];
    return NULL;
}

const struct config_pool *grant_shares_resource(const struct grant_state *s, size_t pool)
{
    const struct config_pool *c = &s->configs[pool];

    for (size_t p = 0; p < s->n_configs && !grant_is_queued(s, pool); p++)
        for (size_t i = 0; p != pool && i < s->configs[p].n_resources; i++)
            for (size_t k = 0; k < c->n_resources; k++)
                if (str_eq(s->configs[p].resources[i].host_name, c->resources[k].host_name))
                    return &s->configs[p];
    return NULL;
}

/* Is this what pods of the pool have, as whole GPUs or otherwise? KAI gives no whole ones, but
 * another scheduler would, on its nodes. */
static bool has_units(const struct config_pool *pool, const char *resource)
{
    for (size_t i = 0; i < pool->n_resources; i++)
        if (str_eqc(pool->resources[i].host_name, resource))
            return true;
    return pool->mode == POOL_KAI && str_eqc(STR("nvidia.com/gpu"), resource);
}

/* A hundred shares are a hundred of it, on whatever nodes. */
static struct str shares_why(const struct grant_state *s, size_t pool)
{
    const struct vgpu_system *system = vgpu_system(s->configs[pool].mode);

    for (size_t i = 0; i < s->n_configs; i++)
        if (has_units(&s->configs[i], system->number))
            return arena_printf(s->a,
                                "a share of this pool is one of %s to the host, and so is what "
                                "GPUPool \"%.*s\" hands out: a ResourceQuota that lets the shares "
                                "through would not bound those. Give its devices another name, by "
                                "its device plugin and `rename`",
                                system->number, STR_F(s->configs[i].name));
    return STR("");
}

static size_t pool_index(const struct grant_state *s, struct str name)
{
    for (size_t i = 0; i < s->n_pools; i++)
        if (str_eq(s->pools[i].name, name))
            return s->pools[i].index;
    return SHARE_NO_POOL;
}

/* --- bindings, and whose they are --- */

static struct grant_tenant *tenant_of(const struct grant_state *s, struct str ns)
{
    struct map_entry *e = map_get(&s->tenants, ns);

    return e ? CONTAINER(e, struct grant_tenant, by_ns) : NULL;
}

static struct grant_tenant *add_tenant(struct grant_state *s, struct str ns)
{
    struct grant_tenant *t = tenant_of(s, ns);

    if (t)
        return t;
    t = arena_alloc(s->a, sizeof(*t));
    *t = (struct grant_tenant){.ns = ns, .number = map_count(&s->tenants)};
    t->placed = arena_alloc(s->a, (s->n_configs + 1) * sizeof(*t->placed));
    t->waiting = arena_alloc(s->a, (s->n_configs + 1) * sizeof(*t->waiting));
    for (size_t i = 0; i < s->n_configs; i++)
        t->placed[i] = t->waiting[i] = RATIONAL_ZERO;
    map_put(&s->tenants, &t->by_ns, t->ns);
    return t;
}

static bool was_ready(const cJSON *tree)
{
    return condition_is_true(json_path(tree, "status.conditions"), "Ready") &&
           json_i64_at(tree, "status.observedGeneration", -1) ==
               json_i64_at(tree, "metadata.generation", 0);
}

/* Why its budget has nothing that it could be held against; empty: it has. */
static struct str unpriced(const struct grant_state *s, const struct grant_row *r)
{
    struct str currency = fleet_budget_currency(s->budgets, r->pool);

    if (r->index == SHARE_NO_POOL)
        return STR("");
    if (!currency.n || currency.n > BUDGET_CURRENCY)
        return arena_printf(s->a,
                            "budget needs prices: pool \"%.*s\" has no metering in the "
                            "configuration of the fleet",
                            STR_F(r->pool));
    if (r->budget.currency.n && !str_eq(r->budget.currency, currency))
        return arena_printf(s->a, "budget.currency is \"%.*s\", but pool \"%.*s\" costs %.*s",
                            STR_F(str_clip(r->budget.currency, 16)), STR_F(r->pool),
                            STR_F(currency));
    return STR("");
}

/* Of a binding that counts an edit of its budget, or of prices in the file, must not take the
 * guarantee: the budget is refused, and the one before it stays. */
static void parse_budget(struct grant_state *s, struct grant_row *r)
{
    bool counts = condition_is_true(json_path(r->tree, "status.conditions"), "Ready");
    struct str why = STR("");

    if (fleet_budget_parse(s->a, json_path(r->tree, "spec.budget"), &r->budget, &why) &&
        r->budget.is)
        why = unpriced(s, r);
    if (!why.n)
        return;
    if (counts) {
        r->budget_why = why;
        fleet_budget_recall(s->a, json_path(r->tree, "status.budget"), &r->budget);
    } else {
        r->why = why;
        r->budget.is = false;
    }
}

static void settle_budget(struct grant_state *s, struct grant_row *r)
{
    int64_t now_s = s->budgets && s->budgets->now_s ? s->budgets->now_s : s->now_s, next_s;

    if (!r->why.n)
        parse_budget(s, r);
    r->budget.is = r->budget.is && r->index != SHARE_NO_POOL;
    if (!r->budget.is)
        return;
    fleet_budget_judge(s->a, &r->budget, s->budgets, r->tenant->ns, r->pool,
                       json_path(r->tree, "status.budget"), now_s, &r->spent);
    next_s = s->now_s + r->spent.next_s - now_s;
    if (!s->next_s || next_s < s->next_s)
        s->next_s = next_s;
}

bool grant_is_bounded(const struct grant_row *r, enum budget_enforcement by)
{
    return r->budget.is && r->spent.exceeded && r->budget.enforcement == by;
}

void grant_state_binding(struct grant_state *s, const cJSON *tree)
{
    const cJSON *spec = json_get(tree, "spec");
    struct grant_row r = {.tree = tree,
                          .name = meta_name(tree),
                          .pool = json_str_at(spec, "pool"),
                          .tenant = add_tenant(s, meta_ns(tree)),
                          .created_s = meta_created_s(tree)};

    r.index = pool_index(s, r.pool);
    if (!gpus_of(json_get(spec, "guarantee"), &r.guarantee) ||
        !gpus_of(json_get(spec, "burst"), &r.burst) || !gpus_of(json_get(spec, "lend"), &r.lend))
        r.why = STR("guarantee, burst and lend are numbers of GPUs such as 4, \"0.25\" or \"1/7\", "
                    "of at most 10000 parts");
    else if (rational_cmp(r.lend, r.guarantee) > 0)
        r.why = STR("lend must not exceed guarantee");
    else if (grant_is_claimed(s, r.index))
        r.why = grant_class_binding_why(s, &r);
    else
        r.why = r.index != SHARE_NO_POOL && vgpu_system(s->configs[r.index].mode)
                    ? shares_why(s, r.index)
                    : grant_queue_row_why(s, &r);
    settle_budget(s, &r);
    if (r.why.n)
        r.guarantee = r.burst = r.lend = RATIONAL_ZERO;
    ADD(s, s->rows, s->n_rows, s->cap_rows);
    s->rows[s->n_rows - 1] = r;
}

void grant_state_quota(struct grant_state *s, const cJSON *quota)
{
    add_tenant(s, meta_ns(quota))->quota = quota;
}

void grant_state_namespace(struct grant_state *s, struct str ns)
{
    (void)add_tenant(s, ns);
}

void grant_state_demand(struct grant_state *s, const cJSON *config_map)
{
    struct grant_tenant *t = tenant_of(s, meta_ns(config_map));

    if (t)
        t->demand = config_map;
}

/* --- nodes and pods --- */

static size_t pool_that_selects(const struct grant_state *s, struct str labels)
{
    for (size_t i = 0; i < s->n_configs; i++)
        if (fact_selected(s->selectors[i], labels))
            return i;
    return SHARE_NO_POOL;
}

static bool is_aside(struct grant_state *s, const struct grant_node *node)
{
    if (node->settles_s > s->now_s && (!s->next_s || node->settles_s < s->next_s))
        s->next_s = node->settles_s;
    return node->aside || node->settles_s > s->now_s;
}

static bool has_strategy(struct grant_state *s, enum pool_mode mode, struct str labels)
{
    struct str member =
        arena_printf(s->a, "\"" GRANT_STRATEGY "\":\"%.*s\"", STR_F(grant_strategy(mode)));

    return fact_selected((struct str_list){&member, 1}, labels);
}

/* Is it still shared in another way than is in force, while the pool's nodes are converted? The
 * resource may have one name in both, so the label counts by which the device plugin says so.
 * Without the label the resource counts, unless it is another part of a GPU in both; of a pool that
 * is not converted, the resource alone. */
static bool is_shared_as_before(struct grant_state *s, size_t pool, struct str labels)
{
    static const enum pool_mode modes[] = {POOL_EXCLUSIVE, POOL_TIME_SLICING, POOL_MPS};
    const struct grant_pool *p = grant_pool_at(s, pool);
    enum pool_mode mode =
        s->configs[pool].mode == POOL_MIG ? POOL_EXCLUSIVE : s->configs[pool].mode;
    const cJSON *converting = condition_of(p->tree, GRANT_CONVERTING);
    bool other = false;

    if (mode > POOL_MPS ||
        (!p->before.n && (!str_eqc(json_str_at(converting, "status"), "True") ||
                          str_eqc(json_str_at(converting, "reason"), GRANT_DRAINS))))
        return false;
    for (size_t i = 0; i < COUNT(modes); i++)
        other |= modes[i] != mode && has_strategy(s, modes[i], labels);
    if (other || !p->before.n || has_strategy(s, mode, labels))
        return other;
    s->sums[pool].n_unlabelled++;
    return true;
}

void grant_state_node(struct grant_state *s, const struct grant_node *node)
{
    size_t pool = pool_that_selects(s, node->labels);
    struct rational total = RATIONAL_ZERO, usable = RATIONAL_ZERO;
    struct placed *n;

    if (pool == SHARE_NO_POOL || map_get(&s->nodes, node->name))
        return;
    if (grant_is_claimed(s, pool)) {
        grant_devices_count(s->classes.devices, node->name, &s->configs[pool], &total, &usable);
    } else if (!is_shared_as_before(s, pool, node->labels)) {
        (void)fact_gpus(node->capacity, node->n_capacity, &s->configs[pool], &total);
        (void)fact_gpus(node->allocatable, node->n_allocatable, &s->configs[pool], &usable);
    }
    n = arena_alloc(s->a, sizeof(*n));
    *n = (struct placed){.name = node->name, .pool = pool, .down = node->down};
    n->aside = !node->down && is_aside(s, node);
    map_put(&s->nodes, &n->by_name, n->name);
    s->sums[pool].n_nodes++;
    s->sums[pool].n_changing += !total.num;
    add(&s->sums[pool].nodes, total);
    usable = rational_cmp(usable, total) < 0 ? usable : total;
    add(node->down ? &s->sums[pool].down : &s->shares[pool].healthy, node->down ? total : usable);
    if (n->aside)
        add(&s->sums[pool].aside, usable);
}

static const struct placed *node_named(const struct grant_state *s, struct str name)
{
    struct map_entry *e = map_get(&s->nodes, name);

    return e ? CONTAINER(e, struct placed, by_name) : NULL;
}

static void add_held(struct grant_sums *sums, const struct placed *node, struct rational gpus)
{
    if (node && node->down)
        add(&sums->stranded, gpus);
    else if (node && node->aside)
        add(&sums->aside_held, gpus);
}

/* What no binding can have. */
static void add_foreign(struct grant_sums *sums, const struct placed *node, struct str ns,
                        struct rational gpus)
{
    add(&sums->foreign, gpus);
    sums->foreign_ns = sums->foreign_ns.n ? sums->foreign_ns : ns;
    if (!node->down)
        add(&sums->foreign_up, gpus);
    if (node->aside)
        add(&sums->aside_foreign, gpus);
}

void grant_state_pod(struct grant_state *s, const struct grant_pod *pod)
{
    struct grant_tenant *t = tenant_of(s, pod->ns);
    const struct placed *node = node_named(s, pod->node);
    size_t pool = node ? node->pool : pool_that_selects(s, pod->selector);
    struct rational gpus;

    grant_queue_pod(s, pod);
    if (pool == SHARE_NO_POOL || !fact_gpus(pod->units, pod->n_units, &s->configs[pool], &gpus))
        return;
    /* Evicted from a node that cannot confirm it: its successor is what holds. */
    if (node && node->down && pod->deleting)
        return;
    if (t) {
        add(node ? &t->placed[pool] : &t->waiting[pool], gpus);
        add_held(&s->sums[pool], node, gpus);
    } else if (node) {
        add_foreign(&s->sums[pool], node, pod->ns, gpus);
    }
}

/* Whose class is granted in several pools: that of the node, else the first one that is bound. */
static size_t pool_of_class(const struct grant_state *s, const struct grant_tenant *t,
                            const struct placed *node, const struct fact_units *units)
{
    size_t best = SHARE_NO_POOL;
    struct rational gpus;
    bool bound = false;

    for (size_t p = 0; p < s->n_configs; p++) {
        bool binds = false;

        if (!grant_is_claimed(s, p) || !fact_gpus(units, 1, &s->configs[p], &gpus))
            continue;
        if (node && node->pool == p)
            return p;
        for (size_t i = 0; i < s->n_rows && !binds; i++)
            binds = s->rows[i].tenant == t && s->rows[i].index == p;
        if (best == SHARE_NO_POOL || (binds && !bound))
            best = p;
        bound |= binds;
    }
    return best;
}

/* What admission charges its namespace is held, allocated or not: it may be at any time. */
static void add_charged(struct grant_state *s, struct grant_tenant *t, const struct placed *node,
                        const struct grant_claim *claim)
{
    for (size_t i = 0; i < claim->n_units; i++) {
        size_t pool = pool_of_class(s, t, node, &claim->units[i]);
        struct rational gpus;

        if (pool == SHARE_NO_POOL || !fact_gpus(&claim->units[i], 1, &s->configs[pool], &gpus))
            continue;
        add(&t->placed[pool], gpus);
        if (node && node->pool == pool)
            add_held(&s->sums[pool], node, gpus);
    }
}

static bool has_class(const struct config_pool *pool, struct str key)
{
    for (size_t i = 0; i < pool->n_resources; i++)
        if (str_eq(pool->resources[i].host_name, key))
            return true;
    return false;
}

/* Devices that no bound of the pool counts: of a namespace without a binding, or by a class that
 * the pool does not have. */
void grant_state_claim(struct grant_state *s, const struct grant_claim *claim)
{
    struct grant_tenant *t = tenant_of(s, claim->ns);
    const struct placed *node = node_named(s, claim->node);

    if (t)
        add_charged(s, t, node, claim);
    for (size_t i = 0; i < claim->n_devices && node && grant_is_claimed(s, node->pool); i++) {
        const struct grant_claimed *device = &claim->devices[i];
        struct rational gpus;

        if (t && has_class(&s->configs[node->pool], device->key))
            continue;
        gpus = grant_devices_take(s->classes.devices, node->name, &device->name);
        if (gpus.num)
            add_foreign(&s->sums[node->pool], node, claim->ns, gpus);
    }
}

/* While most of a pool is down it is rather the network than the nodes: all of it counts. */
static void settle_pool(struct grant_state *s, size_t i)
{
    const struct grant_sums *sums = &s->sums[i];
    struct share_pool *p = &s->shares[i];
    struct rational serving = grant_without(p->healthy, sums->aside);
    bool mostly_down = rational_cmp(sums->down, grant_without(sums->nodes, sums->down)) > 0;

    p->total = rational_cmp(sums->declared, sums->nodes) > 0 ? sums->declared : sums->nodes;
    p->capacity = grant_without(p->total, sums->foreign);
    add(&serving, grant_without(p->total, sums->nodes)); /* declared, and made on demand */
    p->serving = grant_without(serving, grant_without(sums->foreign_up, sums->aside_foreign));
    if (rational_cmp(p->serving, p->capacity) > 0)
        p->serving = p->capacity;
    p->stranded = mostly_down ? grant_without(p->capacity, p->serving) : sums->stranded;
    add(&p->stranded, sums->aside_held);
}

static struct rational placed_of(const struct grant_state *s, const struct grant_row *r)
{
    struct rational placed = r->tenant->placed[r->index], total = s->shares[r->index].total;

    return rational_cmp(placed, total) > 0 ? total : placed;
}

/* A pod without a node counts within the limit of its binding: by quota it would not exist. KAI
 * binds it by the limit of its Queue, so that there it holds nothing: else a tenant kept a limit by
 * pods that wait. */
static struct rational holds_of(const struct grant_state *s, const struct grant_row *r)
{
    struct rational placed = placed_of(s, r), both = placed, limit = r->guarantee;

    if (grant_is_queued(s, r->index))
        return placed;
    add(&both, r->tenant->waiting[r->index]);
    add(&limit, r->burst);
    if (rational_cmp(both, limit) <= 0)
        return both;
    return rational_cmp(placed, limit) > 0 ? placed : limit;
}

/* --- quotas --- */

static int64_t units_at(const cJSON *map, struct str resource)
{
    const cJSON *value = json_get_str(map, resource);
    struct quantity q;
    int64_t units;

    if (json_i64(value, &units))
        return units;
    return quantity_parse(json_str(value), &q) ? quantity_units(q) : 0;
}

/* What it lets through, where no annotation says what it is made of. */
static struct rational quota_admits(const struct grant_state *s, const cJSON *quota, size_t pool)
{
    const struct config_pool *c = &s->configs[pool];
    struct rational most = RATIONAL_ZERO, gpus;

    for (size_t i = 0; i < c->n_resources; i++) {
        struct str key = grant_quota_key(s, pool, &c->resources[i]);
        struct rational units = {units_at(json_path(quota, "spec.hard"), key), 1};

        if (rational_mul(units, c->resources[i].gpu_eq, &gpus) && rational_cmp(gpus, most) > 0)
            most = gpus;
    }
    return most;
}

struct rational grant_quota_of(const struct grant_state *s, const struct grant_tenant *t,
                               size_t pool)
{
    struct str text = t->quota ? meta_annotation(t->quota, GRANT_ANNOTATION) : STR("");
    struct rational gpus;
    cJSON *record;

    if (grant_is_queued(s, pool))
        return grant_queue_bound(s, t->ns, pool);
    if (!t->quota || pool == SHARE_NO_POOL)
        return RATIONAL_ZERO;
    if (!text.n || json_parse(s->a, text, &record, NULL))
        return quota_admits(s, t->quota, pool);
    return gpus_of(json_get_str(record, s->configs[pool].name), &gpus) ? gpus : RATIONAL_ZERO;
}

/* --- all of it --- */

/* The oldest first. */
static int by_age(const void *x, const void *y)
{
    const struct grant_row *a = x, *b = y;
    int order;

    if (!a->tree != !b->tree)
        return a->tree ? -1 : 1;
    if (a->created_s != b->created_s)
        return a->created_s < b->created_s ? -1 : 1;
    order = str_cmp(a->tenant->ns, b->tenant->ns);
    return order ? order : str_cmp(a->name, b->name);
}

static void add_orphans(void *ctx, struct map_entry *e)
{
    struct grant_state *s = ctx;
    struct grant_tenant *t = CONTAINER(e, struct grant_tenant, by_ns);
    size_t n = s->n_rows;

    for (size_t p = 0; p < s->n_configs; p++) {
        bool bound = grant_quota_of(s, t, p).num == 0 && t->placed[p].num == 0 &&
                     grant_queue_pending(s, t->ns, p).num == 0;

        for (size_t i = 0; i < n && !bound; i++)
            bound = s->rows[i].tenant == t && s->rows[i].index == p;
        if (bound)
            continue;
        ADD(s, s->rows, s->n_rows, s->cap_rows);
        s->rows[s->n_rows - 1] = (struct grant_row){.tenant = t,
                                                    .pool = s->configs[p].name,
                                                    .index = p,
                                                    .why = STR("its GPUBinding was deleted"),
                                                    .guarantee = RATIONAL_ZERO,
                                                    .burst = RATIONAL_ZERO,
                                                    .lend = RATIONAL_ZERO};
    }
}

/* Several bindings of a tenant may name one pool: the first one that can be read has its quota and
 * its pods. */
bool grant_row_carries(const struct grant_state *s, size_t i)
{
    const struct grant_row *r = &s->rows[i];
    bool first = true;

    for (size_t k = 0; k < s->n_rows; k++) {
        const struct grant_row *other = &s->rows[k];

        if (k == i || other->tenant != r->tenant || other->index != r->index)
            continue;
        if (!other->why.n && (r->why.n || k < i))
            return false;
        first &= k > i;
    }
    return !r->why.n || first;
}

/* Of the status, which this process wrote. */
static void settle_lending(struct grant_state *s, const cJSON *tree, struct share_binding *b)
{
    if (!gpus_of(json_path(tree, "status.lent"), &b->lent))
        b->lent = RATIONAL_ZERO;
    if (gpus_of(json_path(tree, "status.lendPause.lend"), &b->paused_lend))
        b->paused_until_s = object_time_s(tree, "status.lendPause.until");
    share_pause(b, s->now_s, s->pause_s, s->shares[b->pool].parts);
    if (b->paused_until_s && (!s->next_s || b->paused_until_s < s->next_s))
        s->next_s = b->paused_until_s;
}

/* What may be used already, or still, though what is shown does not say so. */
static void settle_pending(struct grant_state *s, const struct grant_row *r,
                           struct share_binding *b)
{
    bool queued = grant_is_queued(s, r->index);
    struct str path =
        queued ? grant_queue_path(s, grant_queue_name(s, r))
               : arena_printf(s->a, "/api/v1/namespaces/%.*s/resourcequotas/" GRANT_QUOTA,
                              STR_F(r->tenant->ns));
    struct str version = queued ? grant_queue_version(s, r)
                                : json_str_at(r->tenant->quota, "metadata.resourceVersion");
    struct rational still = RATIONAL_ZERO;

    if (s->pending)
        b->pending = s->pending(s->ctx, path, version, r->pool);
    if (queued)
        still = grant_queue_pending(s, r->tenant->ns, r->index);
    if (rational_cmp(still, b->pending) > 0)
        b->pending = still;
}

static void settle_row(struct grant_state *s, size_t i)
{
    const struct grant_row *r = &s->rows[i];
    struct share_binding *b = &s->bindings[i];
    const cJSON *wants = json_get_str(json_path(r->tenant->demand, "data"), r->pool);

    *b = (struct share_binding){.pool = r->index,
                                .tenant = r->tenant->number,
                                .invalid = r->why.n > 0,
                                .was_ready = was_ready(r->tree),
                                .guarantee = r->guarantee,
                                .burst =
                                    grant_is_bounded(r, BUDGET_QUEUE) ? RATIONAL_ZERO : r->burst,
                                .closed = grant_is_bounded(r, BUDGET_STOP),
                                .lend = r->lend,
                                .lent = RATIONAL_ZERO,
                                .paused_lend = RATIONAL_ZERO,
                                .wants = RATIONAL_ZERO,
                                .holds = RATIONAL_ZERO,
                                .placed = RATIONAL_ZERO,
                                .quota = RATIONAL_ZERO,
                                .pending = RATIONAL_ZERO};
    b->says = wish_of(wants, &b->wants);
    if (!gpus_of(json_path(r->tree, "status.grant"), &b->grant))
        b->grant = RATIONAL_ZERO;
    if (r->index == SHARE_NO_POOL || !grant_row_carries(s, i))
        return;
    b->holds = holds_of(s, r);
    settle_lending(s, r->tree, b);
    b->placed = placed_of(s, r);
    b->quota = grant_quota_of(s, r->tenant, r->index);
    settle_pending(s, r, b);
}

/* Of what is in force: what its pods hold counts, whether nodes still have it or not. */
static bool is_empty(const struct grant_state *s, size_t pool)
{
    struct str unused;

    if (s->sums[pool].foreign.num || (grant_is_queued(s, pool) && !s->queues_known) ||
        grant_class_is_unknown(s, pool, &unused))
        return false;
    for (size_t i = 0; i < s->n_rows; i++) {
        const struct share_binding *b = &s->bindings[i];

        if (b->pool == pool &&
            (b->grant.num || b->quota.num || b->pending.num || b->holds.num ||
             s->rows[i].tenant->placed[pool].num || s->rows[i].tenant->waiting[pool].num))
            return false;
    }
    return true;
}

static void settle_phase(struct grant_state *s, struct grant_pool *p)
{
    struct grant_phase_facts *f = &p->facts;
    const struct grant_sums *sums = &s->sums[p->index];

    f->empty = is_empty(s, p->index);
    f->was_changing = p->before.n > 0 ||
                      condition_is_true(json_path(p->tree, "status.conditions"), GRANT_CONVERTING);
    f->nodes = sums->n_nodes;
    f->changing = sums->n_changing;
    f->since_s = object_time_s(p->tree, "status.drainSince");
    f->now_s = s->now_s;
    f->grace_s = s->grace_s;
    p->phase = grant_phase_of(f);
    s->shares[p->index].door = p->phase.door;
    if (p->phase.next_s && (!s->next_s || p->phase.next_s < s->next_s))
        s->next_s = p->phase.next_s;
}

void grant_state_settle(struct grant_state *s)
{
    map_each(&s->tenants, add_orphans, s);
    if (s->n_rows)
        qsort(s->rows, s->n_rows, sizeof(*s->rows), by_age);
    s->bindings = arena_alloc(s->a, (s->n_rows + 1) * sizeof(*s->bindings));
    for (size_t p = 0; p < s->n_configs; p++)
        settle_pool(s, p);
    for (size_t i = 0; i < s->n_rows; i++)
        settle_row(s, i);
    for (size_t i = 0; i < s->n_pools; i++)
        if (s->pools[i].index != SHARE_NO_POOL)
            settle_phase(s, &s->pools[i]);
    share_targets(s->bindings, s->n_rows, s->shares, s->n_configs);
    share_writes(s->bindings, s->n_rows, s->shares, s->n_configs);
    for (size_t i = s->n_rows; i-- > 0;)
        for (size_t p = 0; p < s->n_pools && s->bindings[i].state == SHARE_OVERCOMMITTED; p++)
            if (s->pools[p].index == s->rows[i].index)
                s->pools[p].refused = arena_printf(s->a, "%.*s/%.*s", STR_F(s->rows[i].tenant->ns),
                                                   STR_F(s->rows[i].name));
}
