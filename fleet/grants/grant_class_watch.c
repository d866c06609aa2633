/* SPDX-License-Identifier: Apache-2.0 */
/* Reflectors whose objects are forgotten once their facts are kept. Must never take a list that
 * is not complete for all that there is. */
#include "grant_class_watch.h"

#include <assert.h>

#include <sublet/log.h>
#include <sublet/mem.h>

#define WATCH_MAGIC 0x67636c77u
#define MOST_WHY    500

struct grant_class_watch {
    unsigned magic;
    struct grant_class_watch_options o;
    struct reflector *slices, *claims, *rules;
    struct grant_devices *devices;
    struct grant_claims *kept;
    struct str why; /* what the host has against it; heap */
};

/* NULL where it is gone; false: it cannot be read, and what is kept of it stays. */
static bool tree_of(struct arena *a, const struct host_object *now, cJSON **ret)
{
    *ret = NULL;
    return !now || !json_parse(a, now->bytes, ret, NULL);
}

static void on_slice(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct grant_class_watch *w = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree;

    assert(w->magic == WATCH_MAGIC);
    if (tree_of(a, now, &tree))
        grant_devices_slice(w->devices, (now ? now : before)->name, tree);
    arena_free(a);
    w->o.changed(w->o.ctx);
}

static void on_rule(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct grant_class_watch *w = ctx;
    struct arena *a = arena_new(0);
    bool otherwise = false;
    cJSON *tree;

    assert(w->magic == WATCH_MAGIC);
    if (tree_of(a, now, &tree))
        otherwise = grant_devices_rule(w->devices, (now ? now : before)->name, tree);
    arena_free(a);
    if (otherwise)
        w->o.changed(w->o.ctx);
}

static void on_claim(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct grant_class_watch *w = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree;

    assert(w->magic == WATCH_MAGIC);
    if (tree_of(a, now, &tree))
        grant_claims_set(w->kept, (now ? now : before)->name, tree);
    arena_free(a);
    w->o.changed(w->o.ctx);
}

static void on_current(void *ctx, bool listed)
{
    struct grant_class_watch *w = ctx;

    (void)listed;
    w->o.changed(w->o.ctx);
}

static void on_refused(void *ctx, const struct err *err)
{
    struct grant_class_watch *w = ctx;

    assert(w->magic == WATCH_MAGIC);
    mem_free(w->why.p);
    w->why = mem_str(str_clip(err->message, MOST_WHY));
    log_warn("grants: GPUPools of mode dra cannot be granted: %.*s", STR_F(w->why));
    w->o.changed(w->o.ctx);
}

/* Most hosts have none: their API is off by default. */
static void on_rules_refused(void *ctx, const struct err *err)
{
    struct grant_class_watch *w = ctx;

    log_info("grants: taints of DeviceTaintRules are not known: %.*s",
             STR_F(str_clip(err->message, MOST_WHY)));
    w->o.changed(w->o.ctx);
}

static void on_went_back(void *ctx)
{
    struct grant_class_watch *w = ctx;

    w->o.went_back(w->o.ctx);
}

struct grant_class_watch *grant_class_watch_open(const struct grant_class_watch_options *options)
{
    struct grant_class_watch *w = NEW(struct grant_class_watch);
    struct reflector_options slices = {.host = options->host,
                                       .path = STR("/apis/resource.k8s.io/v1/resourceslices"),
                                       .forget = true,
                                       .reduce = grant_devices_reduce,
                                       .changed = on_slice,
                                       .current = on_current,
                                       .refused = on_refused,
                                       .went_back = on_went_back,
                                       .ctx = w};
    struct reflector_options claims = slices, rules = slices;

    *w = (struct grant_class_watch){.magic = WATCH_MAGIC,
                                    .o = *options,
                                    .devices = grant_devices_new(),
                                    .kept = grant_claims_new()};
    claims.path = STR("/apis/resource.k8s.io/v1/resourceclaims");
    claims.by_namespace = true;
    claims.reduce = grant_claims_reduce;
    claims.changed = on_claim;
    w->slices = reflector_open(&slices);
    w->claims = reflector_open(&claims);
    rules.path = STR(GRANT_RULES_PATH);
    rules.reduce = NULL;
    rules.changed = on_rule;
    rules.refused = on_rules_refused;
    w->rules = reflector_open(&rules);
    return w;
}

struct grant_class_watch *grant_class_watch_close(struct grant_class_watch *w)
{
    if (!w)
        return NULL;
    assert(w->magic == WATCH_MAGIC);
    reflector_close(w->slices);
    reflector_close(w->claims);
    reflector_close(w->rules);
    grant_devices_free(w->devices);
    grant_claims_free(w->kept);
    mem_free(w->why.p);
    w->magic = 0;
    return mem_free(w);
}

void grant_class_watch_restart(struct grant_class_watch *w)
{
    if (!w)
        return;
    reflector_restart(w->slices);
    reflector_restart(w->claims);
    reflector_restart(w->rules);
}

static bool is_listed(const struct reflector *f)
{
    return reflector_listed_ms(f) != REFLECTOR_NOT_CURRENT;
}

static bool is_settled(const struct reflector *f)
{
    return is_listed(f) || reflector_refused(f);
}

bool grant_class_watch_is_settled(const struct grant_class_watch *w)
{
    return !w || (is_settled(w->slices) && is_settled(w->claims) && is_settled(w->rules));
}

struct grant_class_source grant_class_watch_source(const struct grant_class_watch *w)
{
    if (!w)
        return (struct grant_class_source){.enabled = false};
    return (struct grant_class_source){.enabled = true,
                                       .known = is_listed(w->slices) && is_listed(w->claims),
                                       .why = w->why,
                                       .devices = w->devices};
}

void grant_class_watch_each(struct grant_class_watch *w,
                            void (*each)(void *ctx, const struct grant_claim *claim), void *ctx)
{
    if (w)
        grant_claims_each(w->kept, each, ctx);
}
