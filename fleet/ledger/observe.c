/* SPDX-License-Identifier: Apache-2.0 */
/* From observations to records. What a process remembers is only a cache of the ledger: pods whose
 * hold is open, and each node's last capacity. A process that starts reads both back, and repeats
 * what the host shows. Must not invent a time: where nothing was observed the record is
 * `estimated`, and an end is then the last moment at which the pod was seen. */
#include "observe.h"

#include "core/fact_claims.h"
#include "core/facts.h"

#include <assert.h>

#include <sublet/hash.h>

#define OBSERVER_MAGIC 0x6f627376u
#define GAP_US         INT64_C(30000000) /* the host is seen more often while it is watched */

struct node {
    struct map_entry by_name;
    struct fleet_capacity last; /* strings on the heap; total 0: it is in no pool, or gone */
    struct str name;
    bool seen; /* by this process */
};
#define CLAIM_KEY "claim/" /* ... UID/MICROSECONDS: the key of an allocation's hold is its own */
/* Or an allocation of a claim. */
struct pod {
    struct map_entry by_uid, by_claim;
    struct str uid;                /* the key of its hold */
    struct str claim;              /* uid of the claim, in the key; empty: it is a pod's */
    struct str resources;          /* of a claim; heap */
    struct str tenant, node, pool; /* on the heap */
    struct str disrupted;          /* why the host is about to end it; heap */
    struct rational gpu_eq;
    bool seen, ended;
};
struct observer {
    unsigned magic;
    struct ledger *ledger;
    const struct config_pool *pools;
    size_t n_pools;
    struct grant_devices *devices;
    struct map nodes, pods, claims;
    int64_t unobserved_us;
    int64_t before_us; /* until then another process observed the host */
    bool fresh;        /* none did: the ledger begins */
    bool nodes_listed, pods_listed, claims_listed, seen, wants_pods;
};

/* --- nodes --- */

static struct node *node_of(struct observer *o, struct str name)
{
    struct map_entry *e = map_get(&o->nodes, name);
    struct node *n;

    if (e)
        return CONTAINER(e, struct node, by_name);
    n = NEW(struct node);
    *n = (struct node){.name = mem_str(name)};
    n->last = (struct fleet_capacity){.total = RATIONAL_ZERO, .unhealthy = RATIONAL_ZERO};
    map_put(&o->nodes, &n->by_name, n->name);
    return n;
}

static void replace(struct str *at, struct str value)
{
    struct str copy = mem_str(value);

    mem_free(at->p);
    *at = copy;
}

static void remember(struct node *n, const struct fleet_capacity *c)
{
    replace(&n->last.pool, c->pool);
    replace(&n->last.product, c->product);
    n->last.from_us = c->from_us;
    n->last.total = c->total;
    n->last.unhealthy = c->unhealthy;
    n->last.down = c->down;
}

static int write_capacity(struct observer *o, struct node *n, struct fleet_capacity c,
                          struct err *err)
{
    c.node = n->name;
    if (c.from_us < n->last.from_us) /* a clock went back: records of a node are in order */
        c.from_us = n->last.from_us;
    if (ledger_add_capacity(o->ledger, &c, err))
        return -1;
    remember(n, &c);
    return 0;
}

/* It has nothing for its pool any more. gone: it does not exist, so its pods do not run on it,
 * although the host's objects of them stay until the host collects them. */
static int leave_pool(struct observer *o, struct node *n, int64_t at, bool gone, bool estimated,
                      struct err *err)
{
    struct arena *a = arena_new(0);
    struct fleet_capacity c = {.pool = arena_str(a, n->last.pool),
                               .product = arena_str(a, n->last.product),
                               .from_us = at,
                               .total = RATIONAL_ZERO,
                               .unhealthy = RATIONAL_ZERO,
                               .down = gone,
                               .estimated = estimated};
    bool writes = n->last.total.num || (gone && n->last.pool.n && !n->last.down);
    int result = writes ? write_capacity(o, n, c, err) : 0;

    arena_free(a);
    return result;
}

static bool is_same(const struct fleet_capacity *a, const struct fleet_capacity *b)
{
    return str_eq(a->pool, b->pool) && str_eq(a->product, b->product) && a->down == b->down &&
           !rational_cmp(a->total, b->total) && !rational_cmp(a->unhealthy, b->unhealthy);
}

/* Since when a node is as it is: as the host says, where it says so of what was observed. */
static int64_t changed_at(const struct observer *o, const struct node *n,
                          const struct fact_node *fact, int64_t now_us)
{
    int64_t at = now_us;

    if (o->fresh && !o->nodes_listed)
        return ledger_begin_us(o->ledger);
    if (n->last.total.num && n->last.down != fact->down && fact->ready_us)
        at = fact->ready_us;
    else if (!n->seen && o->nodes_listed && fact->created_us)
        at = fact->created_us;
    return at < now_us ? at : now_us;
}

static void count_devices(const struct observer *o, struct fact_node *fact)
{
    struct rational healthy;

    if (!fact->pool || fact->pool->mode != POOL_DRA)
        return;
    grant_devices_count(o->devices, fact->name, fact->pool, &fact->total, &healthy);
    if (!rational_sub(fact->total, healthy, &fact->unhealthy))
        fact->unhealthy = fact->total;
}

int observer_node(struct observer *o, const cJSON *tree, int64_t now_us, struct err *err)
{
    struct fact_node fact;
    struct fleet_capacity now;
    struct node *n;
    bool moved;

    fact_node(tree, o->pools, o->n_pools, &fact);
    count_devices(o, &fact);
    n = node_of(o, fact.name);
    now = (struct fleet_capacity){.pool = fact.pool ? fact.pool->name : STR(""),
                                  .product = fact.product,
                                  .from_us = changed_at(o, n, &fact, now_us),
                                  .total = fact.total,
                                  .unhealthy = fact.unhealthy,
                                  .down = fact.down,
                                  .estimated = !o->fresh && !o->nodes_listed};
    moved = !str_eq(n->last.pool, now.pool) && n->last.total.num;
    n->seen = true;
    if (moved && leave_pool(o, n, now.from_us, false, now.estimated, err))
        return -1;
    if (!now.total.num)
        return leave_pool(o, n, now.from_us, false, now.estimated, err);
    if (is_same(&n->last, &now))
        return 0;
    o->wants_pods |= !n->last.total.num;
    return write_capacity(o, n, now, err);
}

static void node_free(struct observer *o, struct node *n)
{
    map_remove(&o->nodes, &n->by_name);
    mem_free(n->last.pool.p);
    mem_free(n->last.product.p);
    mem_free(n->name.p);
    mem_free(n);
}

int observer_node_gone(struct observer *o, struct str name, int64_t now_us, struct err *err)
{
    struct node *n = node_of(o, name);
    int result = leave_pool(o, n, now_us, true, false, err);

    node_free(o, n);
    return result;
}

struct walk {
    struct observer *o;
    struct err *err;
    int result;
};

static void node_unseen(void *ctx, struct map_entry *e)
{
    struct walk *w = ctx;
    struct node *n = CONTAINER(e, struct node, by_name);

    if (n->seen || w->result)
        return;
    w->result = leave_pool(w->o, n, w->o->before_us, true, true, w->err);
    node_free(w->o, n);
}

int observer_nodes_listed(struct observer *o, int64_t now_us, struct err *err)
{
    struct walk w = {o, err, 0};

    (void)now_us;
    if (!o->nodes_listed)
        map_each(&o->nodes, node_unseen, &w);
    o->nodes_listed = true;
    return w.result;
}

/* --- pods --- */

/* The pod of a hold on record. */
static void remember_pod(struct observer *o, const struct fleet_hold *h)
{
    struct pod *p = NEW(struct pod);

    *p = (struct pod){.uid = mem_str(h->pod_uid),
                      .tenant = mem_str(h->tenant),
                      .node = mem_str(h->node),
                      .pool = mem_str(h->pool),
                      .gpu_eq = h->gpu_eq};
    map_put(&o->pods, &p->by_uid, p->uid);
    if (!str_has_prefix(p->uid, STR(CLAIM_KEY)))
        return;
    p->claim = str_from(p->uid, sizeof(CLAIM_KEY) - 1);
    p->claim = str_sub(p->claim, 0, str_find(p->claim, '/'));
    p->resources = mem_str(h->resources);
    map_put(&o->claims, &p->by_claim, p->claim);
}

static void pod_free(struct observer *o, struct pod *p)
{
    map_remove(&o->pods, &p->by_uid);
    if (p->claim.n)
        map_remove(&o->claims, &p->by_claim);
    mem_free(p->uid.p);
    mem_free(p->resources.p);
    mem_free(p->tenant.p);
    mem_free(p->node.p);
    mem_free(p->pool.p);
    mem_free(p->disrupted.p);
    mem_free(p);
}

static const struct config_pool *pool_of(const struct observer *o, struct str name)
{
    for (size_t i = 0; i < o->n_pools; i++)
        if (str_eq(o->pools[i].name, name))
            return &o->pools[i];
    return NULL;
}

static const struct node *known_node(const struct observer *o, struct str name,
                                     const struct config_pool **ret_pool)
{
    struct map_entry *e = map_get(&o->nodes, name);
    const struct node *n = e ? CONTAINER(e, struct node, by_name) : NULL;

    *ret_pool = n ? pool_of(o, n->last.pool) : NULL;
    return n;
}

/* h->gpu_eq and h->resources are known. */
static int record(struct observer *o, const struct node *n, const struct config_pool *pool,
                  struct fleet_hold *h, struct err *err)
{
    h->pool = pool->name;
    h->product = n->last.product;
    h->mode = config_mode_name(pool->mode);
    if (ledger_add_hold(o->ledger, h, err))
        return -1;
    remember_pod(o, h);
    return 0;
}

static int record_hold(struct observer *o, struct arena *a, const cJSON *tree,
                       struct fact_pod *fact, struct err *err)
{
    const struct config_pool *pool;
    const struct node *n = known_node(o, fact->hold.node, &pool);
    struct fleet_hold *h = &fact->hold;

    if (!pool || !fact_pod_devices(a, tree, pool, &h->gpu_eq, &h->resources))
        return 0;
    return record(o, n, pool, h, err);
}

static int record_end(struct observer *o, struct pod *p, const struct fact_pod *fact,
                      int64_t now_us, struct err *err)
{
    bool known = fact->end_us != 0;

    p->ended = true;
    return ledger_end_hold(o->ledger, p->uid, known ? fact->end_us : now_us, fact->reason, !known,
                           err);
}

int observer_pod(struct observer *o, const cJSON *tree, int64_t now_us, struct err *err)
{
    struct arena *a = arena_new(0);
    struct fact_pod fact;
    struct map_entry *e;
    int result = 0;

    fact_pod(a, tree, &fact);
    e = map_get(&o->pods, fact.hold.pod_uid);
    if (!e && fact.on_node) {
        result = record_hold(o, a, tree, &fact, err);
        e = map_get(&o->pods, fact.hold.pod_uid);
    }
    if (e && !result) {
        struct pod *p = CONTAINER(e, struct pod, by_uid);

        p->seen = true;
        if (!str_eq(p->disrupted, fact.disrupted))
            replace(&p->disrupted, fact.disrupted);
        if (fact.ended && !p->ended)
            result = record_end(o, p, &fact, now_us, err);
    }
    arena_free(a);
    return result;
}

int observer_pod_gone(struct observer *o, struct str uid, bool certain, int64_t now_us,
                      struct err *err)
{
    struct map_entry *e = map_get(&o->pods, uid);
    struct pod *p = e ? CONTAINER(e, struct pod, by_uid) : NULL;
    int64_t seen_us = ledger_seen_us(o->ledger);
    int result = 0;

    if (!p)
        return 0;
    certain = certain && now_us - seen_us <= GAP_US; /* else the event waited for a connection */
    if (!p->ended)
        result = ledger_end_hold(o->ledger, uid, certain ? now_us : seen_us,
                                 p->disrupted.n ? p->disrupted : STR("Deleted"), !certain, err);
    pod_free(o, p);
    return result;
}

static void end_unseen(struct walk *w, struct pod *p)
{
    if (p->seen || w->result)
        return;
    w->result =
        ledger_end_hold(w->o->ledger, p->uid, w->o->before_us, STR("Unobserved"), true, w->err);
    pod_free(w->o, p);
}

static void pod_unseen(void *ctx, struct map_entry *e)
{
    struct pod *p = CONTAINER(e, struct pod, by_uid);

    if (!p->claim.n)
        end_unseen(ctx, p);
}

int observer_pods_listed(struct observer *o, int64_t now_us, struct err *err)
{
    struct walk w = {o, err, 0};

    (void)now_us;
    if (!o->pods_listed)
        map_each(&o->pods, pod_unseen, &w);
    o->pods_listed = true;
    return w.result;
}

/* --- claims --- */

static struct pod *held_by(const struct observer *o, struct str claim)
{
    struct map_entry *e = map_get(&o->claims, claim);

    return e ? CONTAINER(e, struct pod, by_claim) : NULL;
}

/* certain: when it ended is when its event came, which did not wait for a connection. */
static int end_claim(struct observer *o, struct pod *p, struct str reason, bool certain,
                     int64_t now_us, struct err *err)
{
    int64_t seen_us = o->claims_listed ? ledger_seen_us(o->ledger) : o->before_us;
    int result;

    certain = certain && o->claims_listed && now_us - seen_us <= GAP_US;
    result = ledger_end_hold(o->ledger, p->uid, certain ? now_us : seen_us, reason, !certain, err);
    pod_free(o, p);
    return result;
}

static int record_claim(struct observer *o, struct arena *a, struct fact_claim *fact,
                        const cJSON *user, int64_t now_us, struct err *err)
{
    const struct config_pool *pool;
    const struct node *n = known_node(o, fact->claim.node, &pool);
    struct fleet_hold *h = &fact->hold;
    struct fact_pod used;

    if (!pool || pool->mode != POOL_DRA || !fact_claim_gpus(fact, pool, o->devices, &h->gpu_eq))
        return 0;
    if (user) {
        fact_pod(a, user, &used);
        h->owner = used.hold.owner;
    }
    h->begin_us = h->begin_us && h->begin_us < now_us ? h->begin_us : now_us;
    h->pod_uid = arena_printf(a, CLAIM_KEY "%.*s/%lld", STR_F(fact->uid), (long long)now_us);
    return record(o, n, pool, h, err);
}

/* Is it the allocation on record? */
static bool is_held(const struct pod *p, const struct fact_claim *fact)
{
    return str_eq(p->node, fact->claim.node) && str_eq(p->resources, fact->hold.resources);
}

int observer_claim(struct observer *o, const cJSON *tree, const cJSON *user, int64_t now_us,
                   bool *ret_waits, struct err *err)
{
    struct arena *a = arena_new(0);
    struct fact_claim fact;
    struct pod *p;
    int result = 0;

    fact_claim(a, tree, &fact);
    p = held_by(o, fact.uid);
    if (p && !is_held(p, &fact)) {
        result = end_claim(o, p, STR("Deallocated"), true, now_us, err);
        p = NULL;
    }
    if (!p && !result && fact.uid.n && fact.claim.n_devices)
        result = record_claim(o, a, &fact, user, now_us, err);
    p = held_by(o, fact.uid);
    if (p)
        p->seen = true;
    *ret_waits = !p && fact.claim.n_devices;
    arena_free(a);
    return result;
}

int observer_claim_gone(struct observer *o, struct str uid, bool certain, int64_t now_us,
                        struct err *err)
{
    struct pod *p = held_by(o, uid);

    return p ? end_claim(o, p, STR("Deleted"), certain, now_us, err) : 0;
}

static void claim_unseen(void *ctx, struct map_entry *e)
{
    end_unseen(ctx, CONTAINER(e, struct pod, by_claim));
}

int observer_claims_listed(struct observer *o, int64_t now_us, struct err *err)
{
    struct walk w = {o, err, 0};

    (void)now_us;
    if (!o->claims_listed)
        map_each(&o->claims, claim_unseen, &w);
    o->claims_listed = true;
    return w.result;
}

bool observer_wants_pods(struct observer *o)
{
    bool wanted = o->wants_pods;

    o->wants_pods = false;
    return wanted;
}

/* --- prices, time --- */

int observer_prices(struct observer *o, int64_t now_us, struct err *err)
{
    for (size_t i = 0; i < o->n_pools; i++) {
        const struct config_pool *pool = &o->pools[i];
        struct fleet_price price = {.pool = pool->name, .currency = pool->currency};

        price.from_us = o->fresh ? ledger_begin_us(o->ledger) : now_us;
        if (!pool->price.n || !rational_parse(pool->price, &price.price))
            continue;
        if (pool->borrow_factor.n && !rational_parse(pool->borrow_factor, &price.borrow))
            continue;
        if (ledger_add_price(o->ledger, &price, err))
            return -1;
    }
    return 0;
}

int observer_seen(struct observer *o, int64_t now_us, struct err *err)
{
    struct fleet_gap gap = {ledger_seen_us(o->ledger), now_us};
    bool first = !o->seen && !o->fresh;

    if (now_us <= gap.from_us)
        return 0;
    o->seen = true;
    if (first || gap.until_us - gap.from_us > GAP_US) {
        if (ledger_add_gap(o->ledger, &gap, err))
            return -1;
        o->unobserved_us += gap.until_us - gap.from_us;
    }
    return ledger_set_seen(o->ledger, now_us, err);
}

int64_t observer_unobserved_us(const struct observer *o)
{
    return o->unobserved_us;
}

/* --- now --- */

struct snapshot {
    struct observer *o;
    struct fleet_records *records;
};

static void show_node(void *ctx, struct map_entry *e)
{
    const struct snapshot *s = ctx;
    const struct node *n = CONTAINER(e, struct node, by_name);
    struct fleet_capacity *c = &s->records->capacities[s->records->n_capacities];

    if (!n->last.total.num)
        return;
    *c = n->last;
    c->node = n->name;
    c->from_us = 0;
    s->records->n_capacities++;
}

static struct fleet_hold hold_of(const struct pod *p)
{
    return (struct fleet_hold){.pod_uid = p->uid,
                               .tenant = p->tenant,
                               .node = p->node,
                               .pool = p->pool,
                               .gpu_eq = p->gpu_eq,
                               .end_us = FLEET_OPEN};
}

static void show_pod(void *ctx, struct map_entry *e)
{
    const struct snapshot *s = ctx;
    const struct pod *p = CONTAINER(e, struct pod, by_uid);

    if (p->ended || !map_get(&s->o->nodes, p->node))
        return;
    s->records->holds[s->records->n_holds++] = hold_of(p);
}

bool observer_held(const struct observer *o, struct str uid, struct fleet_hold *ret)
{
    struct map_entry *e = map_get(&o->pods, uid);
    const struct pod *p = e ? CONTAINER(e, struct pod, by_uid) : NULL;

    if (!p || p->ended)
        return false;
    *ret = hold_of(p);
    return true;
}

void observer_snapshot(struct observer *o, struct arena *a, struct fleet_records *ret)
{
    struct snapshot s = {o, ret};
    size_t most = o->n_pools + map_count(&o->nodes);

    *ret = (struct fleet_records){.seen_us = 1};
    ret->capacities = arena_alloc(a, (most + 1) * sizeof(*ret->capacities));
    ret->holds = arena_alloc(a, (map_count(&o->pods) + 1) * sizeof(*ret->holds));
    for (size_t i = 0; i < o->n_pools; i++)
        ret->capacities[ret->n_capacities++] = (struct fleet_capacity){
            .pool = o->pools[i].name, .total = RATIONAL_ZERO, .unhealthy = RATIONAL_ZERO};
    map_each(&o->nodes, show_node, &s);
    map_each(&o->pods, show_pod, &s);
}

/* --- life --- */

struct observer *observer_new(const struct observer_options *options)
{
    struct observer *o = NEW(struct observer);
    const struct fleet_records *r = options->records;

    *o = (struct observer){.magic = OBSERVER_MAGIC,
                           .ledger = options->ledger,
                           .pools = options->pools,
                           .n_pools = options->n_pools,
                           .devices = options->devices,
                           .before_us = ledger_seen_us(options->ledger),
                           .fresh = !r->n_capacities && !r->n_holds};
    for (size_t i = 0; i < r->n_capacities; i++)
        remember(node_of(o, r->capacities[i].node), &r->capacities[i]);
    for (size_t i = 0; i < r->n_holds; i++)
        if (r->holds[i].end_us == FLEET_OPEN)
            remember_pod(o, &r->holds[i]);
    for (size_t i = 0; i < r->n_gaps; i++)
        o->unobserved_us += r->gaps[i].until_us - r->gaps[i].from_us;
    return o;
}

static void free_node(void *ctx, struct map_entry *e)
{
    node_free(ctx, CONTAINER(e, struct node, by_name));
}

static void free_pod(void *ctx, struct map_entry *e)
{
    pod_free(ctx, CONTAINER(e, struct pod, by_uid));
}

struct observer *observer_free(struct observer *o)
{
    if (!o)
        return NULL;
    assert(o->magic == OBSERVER_MAGIC);
    map_each(&o->nodes, free_node, o);
    map_each(&o->pods, free_pod, o);
    o->magic = 0;
    return mem_free(o);
}
