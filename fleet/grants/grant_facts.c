/* SPDX-License-Identifier: Apache-2.0 */
/* A node or pod is one block on the heap: the struct, its quantities, its strings. A pod without
 * devices has none, so that those cost nothing here, however many there are. Must never
 * keep what an object said before: each change replaces all of its fact. */
#include "grant_facts.h"

#include <assert.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/config_pool.h>
#include <sublet/fraction.h>
#include <sublet/hash.h>
#include <sublet/object.h>

#define FACTS_MAGIC 0x67666163u

struct kept {
    struct map_entry by_name;
    struct str name;
    union {
        struct grant_node node;
        struct grant_pod pod;
    };
};
struct grant_facts {
    unsigned magic;
    const struct clock *clock; /* NULL: nodes do not settle */
    struct map nodes, pods;
};

/* --- of a tree --- */

/* By NVIDIA's MIG manager and the driver's upgrade of its operator, which label the node. */
static bool is_being_changed(const cJSON *labels)
{
    static const char *const mig[] = {"pending", "rebooting", "failed"};
    static const char *const done[] = {"", "unknown", "upgrade-required", "upgrade-done"};
    struct str config = json_str(json_get(labels, "nvidia.com/mig.config.state"));
    struct str driver = json_str(json_get(labels, "nvidia.com/gpu-driver-upgrade-state"));
    bool upgrades = true;

    for (size_t i = 0; i < COUNT(mig); i++)
        if (str_eqc(config, mig[i]))
            return true;
    for (size_t i = 0; i < COUNT(done); i++)
        upgrades &= !str_eqc(driver, done[i]);
    return upgrades;
}

/* As a resource of its own: a pool of parts counts that, and another one what it is of. */
static void add_parts(struct arena *a, int64_t parts, struct fact_units **units, size_t *n)
{
    struct fact_units *all;

    if (!parts)
        return;
    all = arena_alloc(a, (*n + 1) * sizeof(*all));
    if (*n)
        memcpy(all, *units, *n * sizeof(*all));
    all[(*n)++] = (struct fact_units){STR(FRACTION_RESOURCE), parts};
    *units = all;
}

void grant_node_of(struct arena *a, const cJSON *tree, struct grant_node *ret)
{
    const cJSON *labels = json_path(tree, "metadata.labels");
    struct fact_units *capacity, *allocatable;

    *ret = (struct grant_node){.name = meta_name(tree),
                               .down = fact_node_is_down(tree),
                               .aside = json_true(json_path(tree, "spec.unschedulable")) ||
                                        is_being_changed(labels)};
    ret->n_capacity = fact_node_units(a, json_path(tree, "status.capacity"), &capacity);
    ret->n_allocatable = fact_node_units(a, json_path(tree, "status.allocatable"), &allocatable);
    add_parts(a, fraction_of_node(json_path(tree, "status.capacity")), &capacity, &ret->n_capacity);
    add_parts(a, fraction_of_node(json_path(tree, "status.allocatable")), &allocatable,
              &ret->n_allocatable);
    ret->capacity = capacity;
    ret->allocatable = allocatable;
    ret->labels = labels ? json_text(a, labels) : STR("");
}

bool grant_pod_of(struct arena *a, const cJSON *tree, struct grant_pod *ret)
{
    const cJSON *selector = json_path(tree, "spec.nodeSelector");
    struct fact_units *units;

    *ret = (struct grant_pod){.ns = meta_ns(tree),
                              .node = json_str_at(tree, "spec.nodeName"),
                              .deleting = json_str_at(tree, "metadata.deletionTimestamp").n > 0};
    if (pod_is_finished(tree) || (!ret->node.n && !selector))
        return false;
    ret->selector = selector ? json_text(a, selector) : STR("");
    ret->queue = meta_label(tree, config_queue_system(SCHEDULER_KAI)->key);
    ret->n_units = fact_pod_units(a, tree, &units);
    add_parts(a, fact_pod_parts(tree), &units, &ret->n_units);
    ret->units = units;
    return ret->n_units > 0;
}

/* --- blocks --- */

static struct str copy_str(char **at, struct str s)
{
    struct str copy = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

static size_t size_of(const struct fact_units *units, size_t n)
{
    size_t size = n * sizeof(*units);

    for (size_t i = 0; i < n; i++)
        size += units[i].resource.n;
    return size;
}

/* The quantities into `to`, their names at *at. */
static const struct fact_units *copy_units(struct fact_units *to, char **at,
                                           const struct fact_units *units, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (struct fact_units){copy_str(at, units[i].resource), units[i].units};
    return to;
}

static struct kept *keep_node(struct str name, const struct grant_node *n)
{
    size_t units = n->n_capacity + n->n_allocatable;
    struct kept *k =
        mem_alloc(sizeof(*k) + name.n + n->labels.n + n->name.n +
                  size_of(n->capacity, n->n_capacity) + size_of(n->allocatable, n->n_allocatable));
    struct fact_units *to = (void *)(k + 1);
    char *at = (char *)(to + units);

    k->name = copy_str(&at, name);
    k->node = *n;
    k->node.name = copy_str(&at, n->name);
    k->node.labels = copy_str(&at, n->labels);
    k->node.capacity = copy_units(to, &at, n->capacity, n->n_capacity);
    k->node.allocatable = copy_units(to + n->n_capacity, &at, n->allocatable, n->n_allocatable);
    return k;
}

static struct kept *keep_pod(struct str name, const struct grant_pod *p)
{
    struct kept *k = mem_alloc(sizeof(*k) + name.n + p->ns.n + p->node.n + p->selector.n +
                               p->queue.n + size_of(p->units, p->n_units));
    struct fact_units *to = (void *)(k + 1);
    char *at = (char *)(to + p->n_units);

    k->name = copy_str(&at, name);
    k->pod = *p;
    k->pod.ns = copy_str(&at, p->ns);
    k->pod.node = copy_str(&at, p->node);
    k->pod.selector = copy_str(&at, p->selector);
    k->pod.queue = copy_str(&at, p->queue);
    k->pod.units = copy_units(to, &at, p->units, p->n_units);
    return k;
}

/* --- what is kept --- */

static void drop(struct map *m, struct map_entry *e)
{
    struct kept *k = CONTAINER(e, struct kept, by_name);

    map_remove(m, e);
    mem_free(k);
}

static bool replace(struct map *m, struct str name, struct kept *with)
{
    struct map_entry *e = map_get(m, name);
    bool any = e || with;

    if (e)
        drop(m, e);
    if (with)
        map_put(m, &with->by_name, with->name);
    return any;
}

/* A label that comes and goes would take GPUs back each time. */
static void settle(const struct grant_facts *f, struct map_entry *before, struct grant_node *node)
{
    const struct grant_node *was = before ? &CONTAINER(before, struct kept, by_name)->node : NULL;
    int64_t now_s = f->clock ? clock_wall_s(f->clock) : 0;

    if (!was || node->aside || !f->clock)
        return;
    if (was->aside)
        node->settles_s = now_s + GRANT_SETTLES_S;
    else if (was->settles_s > now_s && was->settles_s <= now_s + GRANT_SETTLES_S)
        node->settles_s = was->settles_s;
}

void grant_facts_settle(struct grant_facts *f, const struct clock *clock)
{
    assert(f->magic == FACTS_MAGIC);
    f->clock = clock;
}

bool grant_facts_node(struct grant_facts *f, struct str name, const cJSON *tree)
{
    struct arena *a = arena_new(0);
    struct grant_node node;
    bool any;

    assert(f->magic == FACTS_MAGIC);
    grant_node_of(a, tree, &node);
    settle(f, map_get(&f->nodes, name), &node);
    any = replace(&f->nodes, name, tree ? keep_node(name, &node) : NULL);
    arena_free(a);
    return any;
}

bool grant_facts_pod(struct grant_facts *f, struct str name, const cJSON *tree)
{
    struct arena *a = arena_new(0);
    struct grant_pod pod;
    bool any;

    assert(f->magic == FACTS_MAGIC);
    any = replace(&f->pods, name, grant_pod_of(a, tree, &pod) ? keep_pod(name, &pod) : NULL);
    arena_free(a);
    return any;
}

static void visit_node(void *ctx, struct map_entry *e)
{
    const struct grant_facts_visit *v = ctx;

    v->node(v->ctx, &CONTAINER(e, struct kept, by_name)->node);
}

static void visit_pod(void *ctx, struct map_entry *e)
{
    const struct grant_facts_visit *v = ctx;

    v->pod(v->ctx, &CONTAINER(e, struct kept, by_name)->pod);
}

void grant_facts_each(struct grant_facts *f, const struct grant_facts_visit *visit)
{
    struct grant_facts_visit v = *visit;

    assert(f->magic == FACTS_MAGIC);
    map_each(&f->nodes, visit_node, &v);
    map_each(&f->pods, visit_pod, &v);
}

/* --- life --- */

struct grant_facts *grant_facts_new(void)
{
    struct grant_facts *f = NEW(struct grant_facts);

    f->magic = FACTS_MAGIC;
    return f;
}

static void drop_from(void *ctx, struct map_entry *e)
{
    drop(ctx, e);
}

struct grant_facts *grant_facts_free(struct grant_facts *f)
{
    if (!f)
        return NULL;
    assert(f->magic == FACTS_MAGIC);
    map_each(&f->nodes, drop_from, &f->nodes);
    map_each(&f->pods, drop_from, &f->pods);
    f->magic = 0;
    return mem_free(f);
}
