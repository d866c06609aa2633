/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of GPU nodes, and who uses them for something else. A node has one block of facts and a
 * list of namespaces with pods that hold no GPUs; a pod leaves what it brought, which its object of
 * before says. Must bound what it shows, however many pods tenants make: rows are of nodes, and of
 * a pool and a namespace. */
#include "watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/hash.h>
#include <sublet/object.h>

#define WATCH_MAGIC 0x77617463u
#define MOST_NAMES  5 /* in a list of some */

const char *const FLEET_WATCH_STATES[N_FLEET_WATCH_STATES] = {
    [FLEET_WATCH_DOWN] = "not-ready",      [FLEET_WATCH_UNHEALTHY] = "unhealthy",
    [FLEET_WATCH_CORDONED] = "cordoned",   [FLEET_WATCH_UNTAINTED] = "untainted",
    [FLEET_WATCH_UNMATCHED] = "unmatched",
};

struct user {
    LIST_ENTRY(user) all;
    struct str ns;
    size_t pods;
    __int128 cpu_milli, memory; /* exact: what was added is taken away again */
};
struct node {
    struct map_entry by_name;
    struct str name, labels, conditions; /* heap */
    bool exists, gpus, down, cordoned, fenced, short_of;
    LIST_HEAD(, user) users;
};
struct fleet_watch {
    unsigned magic;
    struct map nodes;
};

/* --- nodes --- */

static struct node *node_of(struct fleet_watch *w, struct str name)
{
    struct map_entry *e = map_get(&w->nodes, name);
    struct node *n;

    if (e)
        return CONTAINER(e, struct node, by_name);
    n = NEW(struct node);
    n->name = mem_str(name);
    map_put(&w->nodes, &n->by_name, n->name);
    return n;
}

/* One that does not exist stays while pods are on it. */
static void drop_unused(struct fleet_watch *w, struct node *n)
{
    if (n->exists || !LIST_EMPTY(&n->users))
        return;
    map_remove(&w->nodes, &n->by_name);
    mem_free(n->name.p);
    mem_free(n->labels.p);
    mem_free(n->conditions.p);
    mem_free(n);
}

static bool has_word(struct str text, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = 0; i + n <= text.n; i++)
        if (str_eq_nocase(str_sub(text, i, n), str_c(word)))
            return true;
    return false;
}

static bool ends_with_one_of(struct str type, const char *const *suffixes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_has_suffix(type, str_c(suffixes[i])))
            return true;
    return false;
}

/* Of the kubelet, or of what watches GPUs, such as node-problem-detector. A type that ends with
 * Healthy or Ready is a fault when it is False, another one, as NotReady, when it is True. */
static bool is_fault(struct str type, struct str status)
{
    static const char *const words[] = {"gpu",      "xid",      "nvlink",
                                        "nvswitch", "Pressure", "NetworkUnavailable"};
    static const char *const good[] = {"Healthy", "Ready"};
    static const char *const bad[] = {"NotHealthy", "NotReady",  "UnHealthy",
                                      "UnReady",    "Unhealthy", "Unready"};
    bool known = false, is_good;

    for (size_t i = 0; i < COUNT(words) && !known; i++)
        known = has_word(type, words[i]);
    is_good = ends_with_one_of(type, good, COUNT(good)) && !ends_with_one_of(type, bad, COUNT(bad));
    return known && str_eqc(status, is_good ? "False" : "True");
}

static struct str faults_of(const cJSON *tree)
{
    struct buf b = BUF_INIT(0);
    struct str all;
    size_t n = 0;

    json_each(c, json_path(tree, "status.conditions"))
    {
        struct str type = json_str_at(c, "type");

        if (n < MOST_NAMES && is_fault(type, json_str_at(c, "status")))
            buf_printf(&b, "%s%.*s", n++ ? ", " : "", STR_F(str_clip(type, 63)));
    }
    all = mem_str(buf_str(&b));
    buf_fini(&b);
    return all;
}

/* Taints of the host's own controllers come and go: they keep nothing for a pool. */
static bool is_fenced(const cJSON *tree)
{
    json_each(t, json_path(tree, "spec.taints"))
    {
        if (!str_has_prefix(json_str_at(t, "key"), STR("node.kubernetes.io/")) &&
            (str_eqc(json_str_at(t, "effect"), "NoSchedule") ||
             str_eqc(json_str_at(t, "effect"), "NoExecute")))
            return true;
    }
    return false;
}

static bool is_gpu(struct str resource)
{
    size_t slash = str_find(resource, '/');
    struct str name = str_from(resource, slash + 1);

    return slash < resource.n &&
           (str_has_prefix(resource, STR("gpu.")) || str_has_prefix(name, STR("gpu")) ||
            str_has_prefix(name, STR("mig-")));
}

static void read_gpus(const cJSON *tree, struct node *n)
{
    struct arena *a = arena_new(0);
    struct fact_units *have, *usable;
    size_t n_have = fact_node_units(a, json_path(tree, "status.capacity"), &have);
    size_t n_usable = fact_node_units(a, json_path(tree, "status.allocatable"), &usable);

    n->gpus = n->short_of = false;
    for (size_t i = 0; i < n_have; i++) {
        int64_t left = 0;

        if (!is_gpu(have[i].resource))
            continue;
        for (size_t k = 0; k < n_usable; k++)
            if (str_eq(usable[k].resource, have[i].resource))
                left = usable[k].units;
        n->gpus = true;
        n->short_of |= left < have[i].units;
    }
    arena_free(a);
}

void fleet_watch_node(struct fleet_watch *w, struct str name, const cJSON *tree)
{
    struct node *n = node_of(w, name);
    struct arena *a = arena_new(0);
    const cJSON *labels = json_path(tree, "metadata.labels");

    assert(w->magic == WATCH_MAGIC);
    n->exists = tree != NULL;
    mem_free(n->labels.p);
    mem_free(n->conditions.p);
    n->labels = labels ? mem_str(json_text(a, labels)) : STR_NULL;
    n->conditions = faults_of(tree);
    n->down = fact_node_is_down(tree);
    n->cordoned = json_true(json_path(tree, "spec.unschedulable"));
    n->fenced = is_fenced(tree);
    read_gpus(tree, n);
    drop_unused(w, n);
    arena_free(a);
}

/* --- pods --- */

static int64_t plus(int64_t a, __int128 b)
{
    return b > INT64_MAX - a ? INT64_MAX : (int64_t)(a + b);
}

static struct user *user_of(struct node *n, struct str ns)
{
    struct user *u;

    LIST_FOREACH(u, &n->users, all)
    {
        if (str_eq(u->ns, ns))
            return u;
    }
    u = NEW(struct user);
    u->ns = mem_str(ns);
    LIST_INSERT_HEAD(&n->users, u, all);
    return u;
}

/* True: the first, or the last one of its namespace on a node with GPUs. */
static bool count(struct fleet_watch *w, const cJSON *pod, bool comes)
{
    struct fact_asked asked;
    struct node *n;
    struct user *u;
    bool has_gpus;

    if (!fact_asked(pod, &asked))
        return false;
    n = node_of(w, asked.node);
    u = user_of(n, meta_ns(pod));
    if (comes) {
        u->pods++;
        u->cpu_milli += asked.cpu_milli;
        u->memory += asked.memory;
        return u->pods == 1 && n->gpus;
    }
    assert(u->pods);
    u->pods--;
    u->cpu_milli -= asked.cpu_milli;
    u->memory -= asked.memory;
    if (u->pods)
        return false;
    LIST_REMOVE(u, all);
    mem_free(u->ns.p);
    mem_free(u);
    has_gpus = n->gpus;
    drop_unused(w, n);
    return has_gpus;
}

bool fleet_watch_pod(struct fleet_watch *w, const cJSON *before, const cJSON *now)
{
    bool first, last;

    assert(w->magic == WATCH_MAGIC);
    first = count(w, now, true); /* before the other: its node stays */
    last = count(w, before, false);
    return first || last;
}

/* --- a look --- */

struct misuse {
    struct map_entry by_key;
    struct fleet_watch_misuse row;
};
struct look {
    struct arena *a;
    const struct fleet_watch_pool *pools;
    size_t n_pools;
    struct fleet_watch_sums *sums;
    struct fleet_watch_node *nodes;
    size_t n_nodes, more;
    struct map misuse;
};

static size_t pool_of(const struct look *l, const struct node *n)
{
    for (size_t i = 0; i < l->n_pools; i++)
        if (fact_selected(l->pools[i].selector, n->labels))
            return i;
    return l->n_pools;
}

static unsigned states_of(const struct node *n, bool pooled)
{
    return (unsigned)n->down << FLEET_WATCH_DOWN |
           (unsigned)(n->conditions.n > 0 || n->short_of) << FLEET_WATCH_UNHEALTHY |
           (unsigned)n->cordoned << FLEET_WATCH_CORDONED |
           (unsigned)(pooled && !n->fenced) << FLEET_WATCH_UNTAINTED |
           (unsigned)!pooled << FLEET_WATCH_UNMATCHED;
}

static void add_sums(struct look *l, struct fleet_watch_sums *s, const struct node *n,
                     unsigned states)
{
    s->nodes++;
    for (size_t i = 0; i < N_FLEET_WATCH_STATES; i++) {
        if (!(states & 1u << i))
            continue;
        if (s->states[i]++ < MOST_NAMES)
            s->first[i] = arena_printf(l->a, "%.*s%s%.*s", STR_F(s->first[i]),
                                       s->first[i].n ? ", " : "", STR_F(n->name));
    }
}

static void add_misuse(struct look *l, size_t pool, const struct node *n)
{
    const struct user *u;

    LIST_FOREACH(u, &n->users, all)
    {
        struct str key = arena_printf(l->a, "%zu/%.*s", pool, STR_F(u->ns));
        struct map_entry *e = map_get(&l->misuse, key);
        struct misuse *m = e ? CONTAINER(e, struct misuse, by_key) : NULL;

        if (!m) {
            m = ARENA_NEW(l->a, struct misuse);
            m->row = (struct fleet_watch_misuse){.pool = l->pools[pool].name, .tenant = u->ns};
            map_put(&l->misuse, &m->by_key, key);
        }
        m->row.pods += u->pods;
        m->row.cpu_milli = plus(m->row.cpu_milli, u->cpu_milli);
        m->row.memory = plus(m->row.memory, u->memory);
    }
}

static void look_at(void *ctx, struct map_entry *e)
{
    struct look *l = ctx;
    const struct node *n = CONTAINER(e, struct node, by_name);
    size_t pool = n->exists ? pool_of(l, n) : l->n_pools;
    bool pooled = pool < l->n_pools;
    unsigned states = states_of(n, pooled);

    if (!n->exists || (!pooled && !n->gpus))
        return;
    add_sums(l, &l->sums[pool], n, states);
    if (pooled) {
        l->sums[pool].misused += n->gpus && !LIST_EMPTY(&n->users);
        if (n->gpus)
            add_misuse(l, pool, n);
    }
    if (!states)
        return;
    if (l->n_nodes == FLEET_WATCH_ROWS) {
        l->more++;
        return;
    }
    l->nodes[l->n_nodes++] =
        (struct fleet_watch_node){.node = n->name,
                                  .pool = pooled ? l->pools[pool].name : STR(""),
                                  .states = states,
                                  .conditions = n->conditions};
}

struct gathering {
    struct fleet_watch_misuse *rows;
    size_t n;
};

static void gather(void *ctx, struct map_entry *e)
{
    struct gathering *g = ctx;

    g->rows[g->n++] = CONTAINER(e, struct misuse, by_key)->row;
}

static int by_pods(const void *x, const void *y)
{
    const struct fleet_watch_misuse *a = x, *b = y;
    int order = str_cmp(a->pool, b->pool);

    if (a->pods != b->pods)
        return a->pods > b->pods ? -1 : 1;
    return order ? order : str_cmp(a->tenant, b->tenant);
}

void fleet_watch_look(struct fleet_watch *w, struct arena *a, const struct fleet_watch_pool *pools,
                      size_t n_pools, struct fleet_watch_view *ret)
{
    struct look l = {.a = a, .pools = pools, .n_pools = n_pools};
    struct gathering g = {0};

    assert(w->magic == WATCH_MAGIC);
    l.sums = arena_alloc(a, (n_pools + 1) * sizeof(*l.sums));
    l.nodes = arena_alloc(a, FLEET_WATCH_ROWS * sizeof(*l.nodes));
    map_each(&w->nodes, look_at, &l);
    g.rows = arena_alloc(a, (map_count(&l.misuse) + 1) * sizeof(*g.rows));
    map_each(&l.misuse, gather, &g);
    map_clear(&l.misuse);
    qsort(g.rows, g.n, sizeof(*g.rows), by_pods);
    if (g.n > FLEET_WATCH_ROWS) {
        l.more += g.n - FLEET_WATCH_ROWS;
        g.n = FLEET_WATCH_ROWS;
    }
    *ret = (struct fleet_watch_view){.nodes = l.nodes,
                                     .misuse = g.rows,
                                     .n_nodes = l.n_nodes,
                                     .n_misuse = g.n,
                                     .n_not_shown = l.more,
                                     .pools = pools,
                                     .sums = l.sums,
                                     .n_pools = n_pools};
}

/* --- life --- */

struct fleet_watch *fleet_watch_new(void)
{
    struct fleet_watch *w = NEW(struct fleet_watch);

    w->magic = WATCH_MAGIC;
    return w;
}

static void free_node(void *ctx, struct map_entry *e)
{
    struct node *n = CONTAINER(e, struct node, by_name);

    while (!LIST_EMPTY(&n->users)) {
        struct user *u = LIST_FIRST(&n->users);

        LIST_REMOVE(u, all);
        mem_free(u->ns.p);
        mem_free(u);
    }
    n->exists = false;
    drop_unused(ctx, n);
}

struct fleet_watch *fleet_watch_free(struct fleet_watch *w)
{
    if (!w)
        return NULL;
    assert(w->magic == WATCH_MAGIC);
    map_each(&w->nodes, free_node, w);
    w->magic = 0;
    return mem_free(w);
}
