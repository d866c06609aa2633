/* SPDX-License-Identifier: Apache-2.0 */
/* Reflectors of the ledger's own: grants read the same collections only where they are enabled,
 * and go on without them. */
#include "claim_watch.h"

#include "core/facts.h"

#include <assert.h>

#define WATCH_MAGIC 0x636c7774u

struct claim_watch {
    unsigned magic;
    struct claim_watch_options o;
    struct host *host;
    struct reflector *slices, *claims, *rules;
    struct grant_devices *devices;
    bool slices_listed, rules_known, begun;
};

bool claim_watch_is_needed(const struct config_pool *pools, size_t n_pools)
{
    bool needed = false;

    for (size_t i = 0; i < n_pools; i++)
        needed |= pools[i].mode == POOL_DRA;
    return needed;
}

static void on_slice(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct claim_watch *w = ctx;
    struct str name = (now ? now : before)->name, was, is;
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;

    assert(w->magic == WATCH_MAGIC);
    was = arena_str(a, grant_devices_node_of(w->devices, name));
    if (now && json_parse(a, now->bytes, &tree, NULL)) {
        arena_free(a); /* what is known of it stays */
        return;
    }
    grant_devices_slice(w->devices, name, tree);
    is = grant_devices_node_of(w->devices, name);
    if (w->begun && was.n && !str_eq(was, is))
        w->o.node(w->o.ctx, was);
    if (w->begun && is.n)
        w->o.node(w->o.ctx, is);
    arena_free(a);
}

/* Not before the rules: a restart would count tainted devices as healthy ones for a while. */
static void begin(struct claim_watch *w)
{
    if (w->begun || !w->slices_listed || !w->rules_known)
        return;
    w->begun = true;
    w->o.slices_listed(w->o.ctx);
}

static void on_slices_current(void *ctx, bool listed)
{
    struct claim_watch *w = ctx;

    (void)listed;
    w->slices_listed = true;
    begin(w);
}

static void on_node(void *ctx, struct str node)
{
    struct claim_watch *w = ctx;

    w->o.node(w->o.ctx, node);
}

static void on_rule(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct claim_watch *w = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;

    assert(w->magic == WATCH_MAGIC);
    if ((!now || !json_parse(a, now->bytes, &tree, NULL)) &&
        grant_devices_rule(w->devices, (now ? now : before)->name, tree) && w->begun)
        grant_devices_each_node(w->devices, on_node, w);
    arena_free(a);
}

static void on_rules_current(void *ctx, bool listed)
{
    struct claim_watch *w = ctx;

    (void)listed;
    w->rules_known = true;
    begin(w);
}

static void on_rules_refused(void *ctx, const struct err *err)
{
    (void)err;
    on_rules_current(ctx, false);
}

static void on_claim(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct claim_watch *w = ctx;

    w->o.claim(w->o.ctx, now, before);
}

static void on_claims_current(void *ctx, bool listed)
{
    struct claim_watch *w = ctx;

    w->o.claims_current(w->o.ctx, listed);
}

static void on_refused(void *ctx, const struct err *err)
{
    struct claim_watch *w = ctx;

    w->o.refused(w->o.ctx, err);
}

static void on_went_back(void *ctx)
{
    struct claim_watch *w = ctx;

    w->o.went_back(w->o.ctx);
}

struct claim_watch *claim_watch_new(const struct claim_watch_options *options)
{
    struct claim_watch *w = NEW(struct claim_watch);

    *w = (struct claim_watch){.magic = WATCH_MAGIC, .o = *options, .devices = grant_devices_new()};
    return w;
}

struct claim_watch *claim_watch_free(struct claim_watch *w)
{
    if (!w)
        return NULL;
    assert(w->magic == WATCH_MAGIC);
    reflector_close(w->slices);
    reflector_close(w->claims);
    reflector_close(w->rules);
    grant_devices_free(w->devices);
    w->magic = 0;
    return mem_free(w);
}

static struct reflector_options options_of(struct claim_watch *w)
{
    return (struct reflector_options){
        .host = w->host, .refused = on_refused, .went_back = on_went_back, .ctx = w};
}

void claim_watch_slices(struct claim_watch *w, struct host *host)
{
    struct reflector_options o;

    w->host = host;
    o = options_of(w);
    o.path = STR("/apis/resource.k8s.io/v1/resourceslices");
    o.forget = true;
    o.reduce = grant_devices_reduce;
    o.changed = on_slice;
    o.current = on_slices_current;
    w->slices = reflector_open(&o);
    o.path = STR(GRANT_RULES_PATH);
    o.reduce = NULL;
    o.changed = on_rule;
    o.current = on_rules_current;
    o.refused = on_rules_refused;
    w->rules = reflector_open(&o);
}

void claim_watch_claims(struct claim_watch *w)
{
    struct reflector_options o = options_of(w);

    if (w->claims)
        return;
    o.path = STR("/apis/resource.k8s.io/v1/resourceclaims");
    o.by_namespace = true;
    o.reduce = fact_reduce_claim;
    o.changed = on_claim;
    o.current = on_claims_current;
    w->claims = reflector_open(&o);
}

static bool is_listed(const struct reflector *r)
{
    return r && reflector_listed_ms(r) != REFLECTOR_NOT_CURRENT;
}

bool claim_watch_is_current(const struct claim_watch *w)
{
    return !w || (is_listed(w->slices) && is_listed(w->claims));
}

void claim_watch_restart(struct claim_watch *w)
{
    if (!w)
        return;
    reflector_restart(w->slices);
    reflector_restart(w->claims);
    reflector_restart(w->rules);
}

void claim_watch_each(struct claim_watch *w, void (*each)(void *ctx, const struct host_object *o),
                      void *ctx)
{
    if (w && w->claims)
        reflector_each(w->claims, each, ctx);
}

struct grant_devices *claim_watch_devices(struct claim_watch *w)
{
    return w ? w->devices : NULL;
}
