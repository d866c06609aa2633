/* SPDX-License-Identifier: Apache-2.0 */
/* What ResourceSlices say, as the scheduler takes it: it allocates from the newest generation of a
 * pool alone, and only once all of its slices are there. A driver that updates several slices does
 * so one by one; what was complete before is kept for that time, as capacity that is not healthy,
 * so that no grant goes down and up again. Must never count a device twice, nor more devices than
 * could be allocated at once. */
#include "grant_devices.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <sublet/hash.h>
#include <sublet/object.h>
#include <sublet/quantity.h>

#define DEVICES_MAGIC 0x67646576u

struct attribute {
    struct str name, value; /* name: with its domain */
};
struct counter {
    struct str set, name;
    int64_t units;
};
struct device {
    struct str name;
    struct attribute *attributes;
    struct counter *consumes;
    size_t n_attributes, n_consumes;
    bool tainted; /* of its own */
    /* Of the last count of its node. */
    bool repels;          /* by whichever taint */
    struct rational gpus; /* 0: it did not count, or was taken */
};
struct slice {
    unsigned refs; /* of the list of slices, and of the devices that a driver's pool has */
    struct arena *a;
    struct map_entry by_name;
    STAILQ_ENTRY(slice) all;
    struct group *group;
    struct str name;
    int64_t generation, count;
    struct device *devices;
    struct counter *shared;
    size_t n_devices, n_shared;
};
/* A driver's pool on a node. */
struct group {
    struct map_entry by_key;
    struct str key, driver, pool; /* key on the heap, and the others in it */
    struct node *node;
    STAILQ_ENTRY(group) all;
    STAILQ_HEAD(, slice) slices;
    size_t n_slices;
    struct slice **has; /* what was last complete; heap */
    size_t n_has;
    bool stale; /* it is not now */
};
struct node {
    struct map_entry by_name;
    struct str name;
    STAILQ_HEAD(, group) groups;
};
/* A DeviceTaintRule that repels: those of its driver, pool and device; one without bytes: any. */
struct rule {
    struct map_entry by_name;
    STAILQ_ENTRY(rule) all;
    struct arena *a;
    struct str name, driver, pool, device;
};
struct grant_devices {
    unsigned magic;
    struct map slices, groups, nodes, rules;
    STAILQ_HEAD(, rule) all_rules;
    size_t n_rules;
};

/* --- of a tree --- */

static struct str qualified(struct arena *a, struct str driver, struct str name)
{
    return str_find(name, '/') < name.n ? arena_str(a, name)
                                        : arena_printf(a, "%.*s/%.*s", STR_F(driver), STR_F(name));
}

/* {"string": "x"}, {"bool": true}, {"int": 1}, {"version": "1.2.3"} */
static struct str text_of_value(struct arena *a, const cJSON *value)
{
    const cJSON *one = json_first(value);

    return json_is_string(one) ? arena_str(a, json_str(one)) : one ? json_text(a, one) : STR("");
}

static void read_attributes(struct arena *a, const cJSON *tree, struct str driver, struct device *d)
{
    const cJSON *map = json_get(tree, "attributes");
    size_t n = json_count(map);

    n = n < GRANT_DEVICE_NOTES ? n : GRANT_DEVICE_NOTES;
    d->attributes = arena_alloc(a, (n + 1) * sizeof(*d->attributes));
    json_each(one, map)
    {
        if (d->n_attributes < n)
            d->attributes[d->n_attributes++] =
                (struct attribute){qualified(a, driver, json_key(one)), text_of_value(a, one)};
    }
}

/* What is no number is none of it that is there, and all of it that is consumed. */
static int64_t units_of(const cJSON *counter, bool consumed)
{
    struct quantity q;

    if (!quantity_parse(json_str(json_get(counter, "value")), &q))
        return consumed ? INT64_MAX : 0;
    return quantity_units(q);
}

/* Of sets [{key, counters}]. */
static size_t read_counters(struct arena *a, const cJSON *sets, const char *key, bool consumed,
                            struct counter **ret)
{
    size_t n = 0, cap = 0, most = consumed ? GRANT_DEVICE_NOTES : GRANT_NODE_DEVICES;

    *ret = NULL;
    json_each(set, sets)
    {
        json_each(one, json_get(set, "counters"))
        {
            if (n == most)
                return n;
            ARENA_GROW(a, *ret, n, cap);
            (*ret)[n++] = (struct counter){arena_str(a, json_str(json_get(set, key))),
                                           arena_str(a, json_key(one)), units_of(one, consumed)};
        }
    }
    return n;
}

static bool repels(const cJSON *taint)
{
    struct str effect = json_str(json_get(taint, "effect"));

    return str_eqc(effect, "NoSchedule") || str_eqc(effect, "NoExecute");
}

static bool is_tainted(const cJSON *device)
{
    json_each(taint, json_get(device, "taints"))
    {
        if (repels(taint))
            return true;
    }
    return false;
}

static void read_device(struct arena *a, const cJSON *tree, struct str driver, struct device *d)
{
    *d = (struct device){.name = arena_str(a, json_str(json_get(tree, "name"))),
                         .tainted = is_tainted(tree),
                         .gpus = RATIONAL_ZERO};
    read_attributes(a, tree, driver, d);
    d->n_consumes =
        read_counters(a, json_get(tree, "consumesCounters"), "counterSet", true, &d->consumes);
}

static struct slice *slice_of(struct str name, const cJSON *tree)
{
    const cJSON *spec = json_get(tree, "spec"), *devices = json_get(spec, "devices");
    struct slice *s = NEW(struct slice);
    size_t n = json_count(devices);

    *s = (struct slice){.refs = 1, .a = arena_new(0)};
    s->name = arena_str(s->a, name);
    s->generation = json_i64_at(spec, "pool.generation", 0);
    s->count = json_i64_at(spec, "pool.resourceSliceCount", 1);
    n = n < GRANT_NODE_DEVICES ? n : GRANT_NODE_DEVICES;
    s->devices = arena_alloc(s->a, (n + 1) * sizeof(*s->devices));
    json_each(one, devices)
    {
        if (s->n_devices < n)
            read_device(s->a, one, json_str_at(spec, "driver"), &s->devices[s->n_devices++]);
    }
    s->n_shared = read_counters(s->a, json_get(spec, "sharedCounters"), "name", false, &s->shared);
    return s;
}

static void slice_unref(struct slice *s)
{
    if (--s->refs)
        return;
    arena_free(s->a);
    mem_free(s);
}

/* --- a driver's pool --- */

static void let_go(struct group *g)
{
    for (size_t i = 0; i < g->n_has; i++)
        slice_unref(g->has[i]);
    mem_free(g->has);
    g->has = NULL;
    g->n_has = 0;
}

static int by_generation(const void *x, const void *y)
{
    const struct slice *const *a = x, *const *b = y;

    return (*a)->generation > (*b)->generation ? -1 : (*a)->generation < (*b)->generation;
}

static int by_device(const void *x, const void *y)
{
    const struct str *a = x, *b = y;

    return str_cmp(*a, *b);
}

static bool has_a_name_twice(struct slice *const *slices, size_t n)
{
    struct arena *a = arena_new(0);
    struct str *names;
    size_t n_names = 0;
    bool twice = false;

    for (size_t i = 0; i < n; i++)
        n_names += slices[i]->n_devices;
    names = arena_alloc(a, (n_names + 1) * sizeof(*names));
    n_names = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < slices[i]->n_devices; k++)
            names[n_names++] = slices[i]->devices[k].name;
    if (n_names)
        qsort(names, n_names, sizeof(*names), by_device);
    for (size_t i = 1; i < n_names && !twice; i++)
        twice = str_eq(names[i], names[i - 1]);
    arena_free(a);
    return twice;
}

static bool is_complete(struct slice *const *slices, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slices[i]->count != (int64_t)n)
            return false;
    return n && !has_a_name_twice(slices, n);
}

/* The scheduler uses no generation but the newest one; an older one that is complete is what nodes
 * had, and have again. */
static void settle(struct group *g)
{
    struct slice *list[GRANT_POOL_SLICES], *s;
    size_t n = 0, from = 0, to = 0;

    g->stale = true;
    if (g->n_slices > GRANT_POOL_SLICES)
        return;
    STAILQ_FOREACH(s, &g->slices, all)
    list[n++] = s;
    qsort(list, n, sizeof(*list), by_generation);
    for (; from < n; from = to) {
        for (to = from; to < n && list[to]->generation == list[from]->generation;)
            to++;
        if (is_complete(list + from, to - from))
            break;
    }
    if (from == n)
        return;
    for (size_t i = from; i < to; i++)
        list[i]->refs++;
    let_go(g);
    g->n_has = to - from;
    g->has = mem_alloc(g->n_has * sizeof(struct slice *));
    for (size_t i = from; i < to; i++)
        g->has[i - from] = list[i];
    g->stale = from > 0;
}

static struct node *node_named(struct grant_devices *d, struct str name, bool make)
{
    struct map_entry *e = map_get(&d->nodes, name);
    struct node *n = e ? CONTAINER(e, struct node, by_name) : NULL;

    if (n || !make)
        return n;
    n = NEW(struct node);
    *n = (struct node){.name = mem_str(name)};
    STAILQ_INIT(&n->groups);
    map_put(&d->nodes, &n->by_name, n->name);
    return n;
}

/* No name of the three has a '\n'. */
static struct group *group_of(struct grant_devices *d, const cJSON *spec)
{
    struct str node = json_str_at(spec, "nodeName"), driver = json_str_at(spec, "driver");
    struct str pool = json_str_at(spec, "pool.name");
    struct arena *a = arena_new(0);
    struct str key = arena_printf(a, "%.*s\n%.*s\n%.*s", STR_F(node), STR_F(driver), STR_F(pool));
    struct map_entry *e = map_get(&d->groups, key);
    struct group *g = e ? CONTAINER(e, struct group, by_key) : NULL;

    if (!g) {
        g = NEW(struct group);
        *g = (struct group){.key = mem_str(key), .node = node_named(d, node, true)};
        g->driver = str_sub(g->key, node.n + 1, driver.n);
        g->pool = str_from(g->key, node.n + driver.n + 2);
        STAILQ_INIT(&g->slices);
        STAILQ_INSERT_TAIL(&g->node->groups, g, all);
        map_put(&d->groups, &g->by_key, g->key);
    }
    arena_free(a);
    return g;
}

static void drop_group(struct grant_devices *d, struct group *g)
{
    struct node *n = g->node;

    let_go(g);
    map_remove(&d->groups, &g->by_key);
    STAILQ_REMOVE(&n->groups, g, group, all);
    mem_free(g->key.p);
    mem_free(g);
    if (!STAILQ_EMPTY(&n->groups))
        return;
    map_remove(&d->nodes, &n->by_name);
    mem_free(n->name.p);
    mem_free(n);
}

static struct group *drop_slice(struct grant_devices *d, struct slice *s)
{
    struct group *g = s->group;

    map_remove(&d->slices, &s->by_name);
    STAILQ_REMOVE(&g->slices, s, slice, all);
    g->n_slices--;
    slice_unref(s);
    return g;
}

static void settle_or_drop(struct grant_devices *d, struct group *g)
{
    if (STAILQ_EMPTY(&g->slices))
        drop_group(d, g);
    else
        settle(g);
}

/* Which node a device of all nodes, or of a selector's, is of, no one can say. */
static bool is_of_a_node(const cJSON *spec)
{
    return json_str_at(spec, "nodeName").n > 0 &&
           !json_true(json_get(spec, "perDeviceNodeSelection"));
}

void grant_devices_slice(struct grant_devices *d, struct str name, const cJSON *tree)
{
    const cJSON *spec = json_get(tree, "spec");
    struct map_entry *e = map_get(&d->slices, name);
    struct group *before = e ? drop_slice(d, CONTAINER(e, struct slice, by_name)) : NULL;
    struct group *now = NULL;

    assert(d->magic == DEVICES_MAGIC);
    if (is_of_a_node(spec)) {
        struct slice *s = slice_of(name, tree);

        now = s->group = group_of(d, spec);
        map_put(&d->slices, &s->by_name, s->name);
        STAILQ_INSERT_TAIL(&now->slices, s, all);
        now->n_slices++;
    }
    if (before && before != now)
        settle_or_drop(d, before);
    if (now)
        settle(now);
}

/* --- rules --- */

static void drop_rule(struct grant_devices *d, struct rule *r)
{
    map_remove(&d->rules, &r->by_name);
    STAILQ_REMOVE(&d->all_rules, r, rule, all);
    d->n_rules--;
    arena_free(r->a);
    mem_free(r);
}

/* One without a selector matches none, an empty selector all. */
static struct rule *rule_of(struct str name, const cJSON *tree)
{
    const cJSON *selector = json_path(tree, "spec.deviceSelector");
    struct rule *r;

    if (!json_is_object(selector) || !repels(json_path(tree, "spec.taint")))
        return NULL;
    r = NEW(struct rule);
    *r = (struct rule){.a = arena_new(0)};
    r->name = arena_str(r->a, name);
    r->driver = arena_str(r->a, json_str_at(selector, "driver"));
    r->pool = arena_str(r->a, json_str_at(selector, "pool"));
    r->device = arena_str(r->a, json_str_at(selector, "device"));
    return r;
}

static bool is_same_rule(const struct rule *a, const struct rule *b)
{
    return a && b ? str_eq(a->driver, b->driver) && str_eq(a->pool, b->pool) &&
                        str_eq(a->device, b->device)
                  : !a && !b;
}

bool grant_devices_rule(struct grant_devices *d, struct str name, const cJSON *tree)
{
    struct map_entry *e = map_get(&d->rules, name);
    struct rule *before = e ? CONTAINER(e, struct rule, by_name) : NULL;
    struct rule *now = rule_of(name, tree);
    bool same = is_same_rule(before, now);

    assert(d->magic == DEVICES_MAGIC);
    if (before)
        drop_rule(d, before);
    if (now) {
        map_put(&d->rules, &now->by_name, now->name);
        STAILQ_INSERT_TAIL(&d->all_rules, now, all);
        d->n_rules++;
    }
    return !same;
}

static bool selects(struct str want, struct str is)
{
    return !want.n || str_eq(want, is);
}

static bool is_ruled(const struct grant_devices *d, const struct group *g, struct str device)
{
    const struct rule *r;

    if (d->n_rules > GRANT_DEVICE_RULES)
        return true;
    STAILQ_FOREACH(r, &d->all_rules, all)
    {
        if (selects(r->driver, g->driver) && selects(r->pool, g->pool) &&
            selects(r->device, device))
            return true;
    }
    return false;
}

/* --- what they are --- */

static bool has_attribute(const struct device *d, struct str driver, const cJSON *want)
{
    struct str key = json_key(want), value = json_str(want);

    for (size_t i = 0; i < d->n_attributes; i++) {
        struct str name = d->attributes[i].name;
        bool same = str_find(key, '/') < key.n
                        ? str_eq(name, key)
                        : name.n == driver.n + 1 + key.n && str_has_prefix(name, driver) &&
                              name.p[driver.n] == '/' && str_eq(str_from(name, driver.n + 1), key);

        if (same)
            return str_eq(d->attributes[i].value, value);
    }
    return false;
}

static bool is_of_class(const struct group *g, const struct device *d,
                        const struct pool_device_class *class)
{
    if (!str_eq(g->driver, class->driver))
        return false;
    json_each(want, class->attributes)
    {
        if (!has_attribute(d, g->driver, want))
            return false;
    }
    return true;
}

static struct rational weight_of(const struct group *g, const struct device *d,
                                 const struct config_pool *pool)
{
    struct rational most = RATIONAL_ZERO;

    for (size_t i = 0; i < pool->n_device_classes; i++) {
        const struct pool_device_class *class = &pool->device_classes[i];

        if (rational_cmp(class->gpu_eq, most) > 0 && is_of_class(g, d, class))
            most = class->gpu_eq;
    }
    return most;
}

/* --- a count --- */

struct candidate {
    struct device *device;
    struct group *group;
    struct rational gpus;
};
struct counting {
    struct candidate *list;
    size_t n, cap;
};

static void collect(struct counting *c, const struct grant_devices *all, struct group *g,
                    const struct config_pool *pool)
{
    for (size_t i = 0; i < g->n_has; i++)
        for (size_t k = 0; k < g->has[i]->n_devices; k++) {
            struct device *d = &g->has[i]->devices[k];
            struct rational gpus = weight_of(g, d, pool);

            d->gpus = RATIONAL_ZERO;
            d->repels = d->tainted || is_ruled(all, g, d->name);
            if (gpus.num && c->n < c->cap)
                c->list[c->n++] = (struct candidate){d, g, gpus};
        }
}

static size_t most_of(const struct node *n)
{
    struct group *g;
    size_t most = 0;

    STAILQ_FOREACH(g, &n->groups, all)
    {
        for (size_t i = 0; i < g->n_has; i++)
            most += g->has[i]->n_devices;
    }
    return most < GRANT_NODE_DEVICES ? most : GRANT_NODE_DEVICES;
}

static int heaviest_first(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    int order = rational_cmp(b->gpus, a->gpus);

    if (!order)
        order = a->device->repels - b->device->repels;
    if (!order)
        order = str_cmp(a->group->key, b->group->key);
    return order ? order : str_cmp(a->device->name, b->device->name);
}

/* What is left of a counter; NULL: there is none of the name. */
static int64_t *left_of(const struct group *g, const struct counter *c, int64_t *left)
{
    for (size_t i = 0, at = 0; i < g->n_has; i++)
        for (size_t k = 0; k < g->has[i]->n_shared; k++, at++)
            if (str_eq(g->has[i]->shared[k].set, c->set) &&
                str_eq(g->has[i]->shared[k].name, c->name))
                return &left[at];
    return NULL;
}

static bool consume(const struct candidate *c, int64_t *left)
{
    const struct device *d = c->device;

    for (size_t i = 0; i < d->n_consumes; i++) {
        const int64_t *l = left_of(c->group, &d->consumes[i], left);

        if (!l || *l < d->consumes[i].units)
            return false;
    }
    for (size_t i = 0; i < d->n_consumes; i++) {
        int64_t *l = left_of(c->group, &d->consumes[i], left);

        *l = *l > d->consumes[i].units ? *l - d->consumes[i].units : 0;
    }
    return true;
}

/* Of one group, or the heaviest devices of others would have its counters. */
static void count_group(struct arena *a, const struct counting *c, const struct group *g,
                        struct rational *total, struct rational *healthy)
{
    size_t n = 0, at = 0;
    int64_t *left;

    for (size_t i = 0; i < g->n_has; i++)
        n += g->has[i]->n_shared;
    left = arena_alloc(a, (n + 1) * sizeof(*left));
    for (size_t i = 0; i < g->n_has; i++)
        for (size_t k = 0; k < g->has[i]->n_shared; k++)
            left[at++] = g->has[i]->shared[k].units;
    for (size_t i = 0; i < c->n; i++) {
        struct device *d = c->list[i].device;

        if (c->list[i].group != g || !consume(&c->list[i], left))
            continue;
        d->gpus = c->list[i].gpus;
        rational_add_most(total, d->gpus);
        if (!d->repels && !g->stale)
            rational_add_most(healthy, d->gpus);
    }
}

void grant_devices_count(struct grant_devices *d, struct str node, const struct config_pool *pool,
                         struct rational *ret_total, struct rational *ret_healthy)
{
    struct node *n = d ? node_named(d, node, false) : NULL;
    struct arena *a = arena_new(0);
    struct counting c = {.list = NULL};
    struct group *g;

    *ret_total = *ret_healthy = RATIONAL_ZERO;
    if (n) {
        c.cap = most_of(n);
        c.list = arena_alloc(a, (c.cap + 1) * sizeof(*c.list));
        STAILQ_FOREACH(g, &n->groups, all)
        collect(&c, d, g, pool);
        if (c.n)
            qsort(c.list, c.n, sizeof(*c.list), heaviest_first);
        STAILQ_FOREACH(g, &n->groups, all)
        count_group(a, &c, g, ret_total, ret_healthy);
    }
    arena_free(a);
}

/* --- what another component holds --- */

static bool shares_counters(const struct device *a, const struct device *b)
{
    for (size_t i = 0; i < a->n_consumes; i++)
        for (size_t k = 0; k < b->n_consumes; k++)
            if (str_eq(a->consumes[i].set, b->consumes[k].set))
                return true;
    return false;
}

static struct device *device_named(const struct group *g, struct str name)
{
    for (size_t i = 0; i < g->n_has; i++)
        for (size_t k = 0; k < g->has[i]->n_devices; k++)
            if (str_eq(g->has[i]->devices[k].name, name))
                return &g->has[i]->devices[k];
    return NULL;
}

static struct device *heaviest_beside(const struct group *g, const struct device *of)
{
    struct device *best = NULL;

    for (size_t i = 0; i < g->n_has; i++)
        for (size_t k = 0; k < g->has[i]->n_devices; k++) {
            struct device *d = &g->has[i]->devices[k];

            if (d->gpus.num && shares_counters(d, of) &&
                (!best || rational_cmp(d->gpus, best->gpus) > 0))
                best = d;
        }
    return best;
}

static struct group *group_named(struct grant_devices *d, struct str node,
                                 const struct grant_device_name *name)
{
    struct node *n = d ? node_named(d, node, false) : NULL;
    struct group *g = NULL;

    if (n)
        STAILQ_FOREACH(g, &n->groups, all)
        {
            if (str_eq(g->driver, name->driver) && str_eq(g->pool, name->pool))
                break;
        }
    return g;
}

bool grant_devices_weight(struct grant_devices *d, struct str node, const struct config_pool *pool,
                          const struct grant_device_name *name, struct rational *ret)
{
    const struct group *g = group_named(d, node, name);
    const struct device *device = g ? device_named(g, name->device) : NULL;

    *ret = device ? weight_of(g, device, pool) : RATIONAL_ZERO;
    return ret->num > 0;
}

struct str grant_devices_node_of(const struct grant_devices *d, struct str slice)
{
    struct map_entry *e = map_get(&d->slices, slice);

    return e ? CONTAINER(e, struct slice, by_name)->group->node->name : STR("");
}

struct rational grant_devices_take(struct grant_devices *d, struct str node,
                                   const struct grant_device_name *name)
{
    struct rational gpus = RATIONAL_ZERO;
    struct group *g = group_named(d, node, name);
    struct device *device = g ? device_named(g, name->device) : NULL;

    if (device && !device->gpus.num && device->n_consumes)
        device = heaviest_beside(g, device);
    if (!device)
        return gpus;
    gpus = device->gpus;
    device->gpus = RATIONAL_ZERO;
    return gpus;
}

/* --- life --- */

void grant_devices_reduce(struct arena *a, cJSON *slice)
{
    static const char *const unread[] = {"capacity", "bindsToNode", "bindingConditions",
                                         "bindingFailureConditions"};
    cJSON *metadata = json_get(slice, "metadata");

    (void)a;
    json_remove(metadata, "labels");
    json_remove(metadata, "annotations");
    json_remove(metadata, "ownerReferences");
    json_each(device, json_path(slice, "spec.devices"))
    {
        for (size_t i = 0; i < COUNT(unread); i++)
            json_remove(device, unread[i]);
    }
}

struct grant_devices *grant_devices_new(void)
{
    struct grant_devices *d = NEW(struct grant_devices);

    d->magic = DEVICES_MAGIC;
    STAILQ_INIT(&d->all_rules);
    return d;
}

static void forget_rule(void *ctx, struct map_entry *e)
{
    drop_rule(ctx, CONTAINER(e, struct rule, by_name));
}

struct each_node {
    void (*each)(void *ctx, struct str node);
    void *ctx;
};

static void pass_node(void *ctx, struct map_entry *e)
{
    const struct each_node *to = ctx;

    to->each(to->ctx, CONTAINER(e, struct node, by_name)->name);
}

void grant_devices_each_node(struct grant_devices *d, void (*each)(void *ctx, struct str node),
                             void *ctx)
{
    struct each_node to = {each, ctx};

    map_each(&d->nodes, pass_node, &to);
}

static void forget(void *ctx, struct map_entry *e)
{
    struct grant_devices *d = ctx;

    settle_or_drop(d, drop_slice(d, CONTAINER(e, struct slice, by_name)));
}

struct grant_devices *grant_devices_free(struct grant_devices *d)
{
    if (!d)
        return NULL;
    assert(d->magic == DEVICES_MAGIC);
    map_each(&d->slices, forget, d);
    map_each(&d->rules, forget_rule, d);
    d->magic = 0;
    return mem_free(d);
}
