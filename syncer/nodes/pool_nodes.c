/* SPDX-License-Identifier: Apache-2.0 */
/* One Node for each bound pool and one for pods without devices, from the host's nodes, the host
 * pods of the tenant and the ResourceQuotas of its namespace. Sums of what pods hold follow each
 * change of a pod, so that no change reads them all. Must never read or show another tenant's
 * pods. */

#include "nodes/pool_nodes.h"
#include "gpu/ledger.h"

#include <sublet/hash.h>
#include <sublet/translate_pool_node.h>

/* Changes within this time cause one computation. */
#define SETTLE_MS 1000

/* What pods of one of these nodes hold on one host node. */
struct share {
    struct map_entry entry; /* "pool/host node" */
    char *key;
    struct str pool, host_node; /* in key */
    size_t pods;
    struct held {
        char *resource;
        __int128 nano;
    } *held;
    size_t n, cap;
};

struct pool_nodes {
    struct syncer *syncer;
    struct map shares;
    bool due;
};

/* --- what pods hold --- */

static void share_free(struct pool_nodes *p, struct share *s)
{
    map_remove(&p->shares, &s->entry);
    for (size_t i = 0; i < s->n; i++)
        mem_free(s->held[i].resource);
    mem_free(s->held);
    mem_free(s->key);
    mem_free(s);
}

static struct share *share_get(struct pool_nodes *p, struct arena *a, struct str pool,
                               struct str host_node)
{
    struct str key = arena_printf(a, "%.*s/%.*s", STR_F(pool), STR_F(host_node));
    struct map_entry *e = map_get(&p->shares, key);
    struct share *s;

    if (e)
        return CONTAINER(e, struct share, entry);
    s = NEW(struct share);
    s->key = mem_strdup(key);
    s->pool = (struct str){s->key, pool.n};
    s->host_node = (struct str){s->key + pool.n + 1, host_node.n};
    map_put(&p->shares, &s->entry, str_c(s->key));
    return s;
}

static void add(struct share *s, struct str resource, __int128 nano)
{
    size_t i = 0;

    while (i < s->n && !str_eqc(resource, s->held[i].resource))
        i++;
    if (i == s->n) {
        GROW(s->held, s->n, s->cap);
        s->held[s->n++] = (struct held){mem_strdup(resource), 0};
    }
    s->held[i].nano += nano;
}

/* Pods that are finished hold nothing, and those without a node hold nothing of one. */
static void count(struct pool_nodes *p, const cJSON *pod, int sign)
{
    struct str node = json_str_at(pod, "spec.nodeName");
    struct pod_requests requests;
    struct share *s;
    struct arena *a;

    if (!node.n || pod_is_finished(pod))
        return;
    a = arena_new(0);
    s = share_get(p, a, translate_pool_node_of(pod), node);
    translate_pod_requests(a, pod, &requests);
    for (size_t i = 0; i < requests.n; i++)
        add(s, requests.items[i].resource, sign * requests.items[i].nano);
    s->pods = sign > 0 ? s->pods + 1 : s->pods - 1;
    if (!s->pods)
        share_free(p, s);
    arena_free(a);
}

void sync_pool_nodes_pod_changed(struct pool_nodes *p, const cJSON *now, const cJSON *before)
{
    if (now)
        count(p, now, 1); /* first: a share that stays in use keeps its memory */
    if (before)
        count(p, before, -1);
    sync_pool_nodes_changed(p);
}

struct question {
    struct str pool, host_node, resource;
    bool pods;
    __int128 sum;
};

static void on_share(void *ctx, struct map_entry *e)
{
    const struct share *s = CONTAINER(e, struct share, entry);
    struct question *q = ctx;

    if (!str_eq(s->pool, q->pool) || (q->host_node.p && !str_eq(s->host_node, q->host_node)))
        return;
    if (q->pods)
        q->sum += (__int128)s->pods * 1000000000;
    for (size_t i = 0; i < s->n && !q->pods; i++)
        if (str_eqc(q->resource, s->held[i].resource))
            q->sum += s->held[i].nano;
}

struct asked {
    struct pool_nodes *p;
    struct str pool;
};

static __int128 held(void *ctx, struct str host_node, struct str resource)
{
    const struct asked *of = ctx;
    struct question q = {of->pool, host_node, resource, str_eqc(resource, "pods"), 0};

    map_each(&of->p->shares, on_share, &q);
    return q.sum;
}

/* --- the nodes --- */

static void on_key(void *ctx, struct map_entry *e)
{
    struct syncer *s = ((struct pool_nodes *)ctx)->syncer;

    syncer_add(s, SYNC_NODES, STR(""), CONTAINER(e, struct share, entry)->pool);
}

static void add_keys(void *ctx)
{
    struct pool_nodes *p = ctx;
    struct syncer *s = p->syncer;

    p->due = false;
    if (syncer_is_closing(s))
        return;
    syncer_add(s, SYNC_NODES, STR(""), STR(POOL_NODE_NONE));
    for (size_t i = 0; i < s->config->n_bindings; i++)
        syncer_add(s, SYNC_NODES, STR(""), s->config->bindings[i].pool->name);
    map_each(&p->shares, on_key, p);
}

void sync_pool_nodes_changed(struct pool_nodes *p)
{
    if (p->due || syncer_is_closing(p->syncer))
        return;
    p->due = true;
    syncer_defer_for(p->syncer, add_keys, p, SETTLE_MS);
}

struct gather {
    struct pool_nodes *p;
    struct arena *arena;
    const struct config_pool *pool;
    cJSON *list;
};

static void on_host_node(void *ctx, const struct host_object *o)
{
    struct gather *g = ctx;
    struct arena *scratch = arena_new(0);
    cJSON *node = NULL;

    if (!json_parse(scratch, o->bytes, &node, NULL) &&
        translate_pool_node_has(scratch, g->p->syncer->config, g->pool, node))
        json_append(g->list, json_copy(g->arena, node));
    arena_free(scratch);
}

static void on_quota(void *ctx, const struct host_object *o)
{
    struct gather *g = ctx;
    cJSON *quota = NULL;

    if (!json_parse(g->arena, o->bytes, &quota, NULL))
        json_append(g->list, quota);
}

static cJSON *gathered(struct gather *g, enum sync_id id,
                       void (*each)(void *ctx, const struct host_object *o))
{
    g->list = json_new_array(g->arena);
    reflector_each(g->p->syncer->watches[id].reflector, each, g);
    return g->list;
}

cJSON *sync_pool_node(struct pool_nodes *p, struct arena *a, struct str name)
{
    struct syncer *s = p->syncer;
    struct pool_node_facts facts = {.name = name, .held = held};
    struct asked of = {p, name};
    struct gather g = {p, a, NULL, NULL};

    if (!translate_pool_node_find(s->config, name, &facts.pool))
        return NULL;
    facts.binding = facts.pool ? config_binding_of(s->config, facts.pool->name) : NULL;
    facts.ctx = &of;
    if (facts.pool && !facts.binding && !held(&of, STR_NULL, STR("pods")))
        return NULL; /* not bound, and nothing is left of when it was */
    g.pool = facts.pool;
    if (reflector_synced(s->watches[SYNC_NODES].reflector))
        facts.nodes = gathered(&g, SYNC_NODES, on_host_node);
    facts.quotas = gathered(&g, SYNC_QUOTAS, on_quota);
    facts.used = facts.pool ? sync_ledger_used(s->ledger, facts.pool) : RATIONAL_ZERO;
    return translate_pool_node_up(a, &s->tenant, &facts);
}

struct str sync_pool_node_up(struct pool_nodes *p, struct str host_node)
{
    struct syncer *s = p->syncer;
    const struct host_object *o = reflector_get(s->watches[SYNC_NODES].reflector, host_node);
    struct str ret = STR_NULL;
    struct arena *a;
    cJSON *node = NULL;

    if (!o)
        return ret;
    ret = STR("");
    a = arena_new(0);
    if (!json_parse(a, o->bytes, &node, NULL)) {
        for (size_t i = 0; i < s->config->n_bindings && !ret.n; i++)
            if (pool_has_node(s->config->bindings[i].pool, node))
                ret = s->config->bindings[i].pool->name;
        if (!ret.n && translate_node_open(a, s->config, node))
            ret = STR(POOL_NODE_NONE);
    }
    arena_free(a);
    return ret;
}

/* --- life --- */

struct pool_nodes *sync_pool_nodes_new(struct syncer *s)
{
    struct pool_nodes *p = NEW(struct pool_nodes);

    p->syncer = s;
    return p;
}

static void on_free(void *ctx, struct map_entry *e)
{
    share_free(ctx, CONTAINER(e, struct share, entry));
}

struct pool_nodes *sync_pool_nodes_free(struct pool_nodes *p)
{
    if (!p)
        return NULL;
    map_each(&p->shares, on_free, p);
    mem_free(p);
    return NULL;
}
