/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the GPUBindings of the host namespace. Why a record of each: a process that starts while
 * the host is away must neither refuse what was granted nor allow more. Must never let a binding
 * that cannot be read change anything, nor end one that a complete list does not lack. */

#include "grants/grants.h"
#include "core/leader.h"
#include "core/life.h"
#include "gpu/ledger.h"
#include "grants/demand.h"
#include "nodes/nodes.h"
#include "objects/objects.h"
#include "pods/pods.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/config_bound.h>
#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/notice.h>

#define GRANTS_MAGIC 0x6772616eu
#define RECORD       "gpu-binding/" /* NAME/POOL: "bound JSON", "ended JSON" */
#define BOUND        STR("bound")
#define ENDED        STR("ended")

/* A GPUBinding of one pool, by both names: one that is replaced by a binding of another pool ends,
 * and its name goes on with that. Of a name one at most has not ended. Strings are on the heap. */
struct known {
    TAILQ_ENTRY(known) place;
    struct str name, pool; /* pool is empty: none was ever good */
    struct str bytes;      /* the last good one: metadata, spec, status: grant, pool, reclaim */
    bool ended, seen;
    bool heard; /* it is not Ready, and its reclaim is that of the object there is */
    bool bad;   /* the newest is not what bytes has */
};

/* One that makes part of a set. */
struct member {
    struct known *known;
    struct str created;
};

struct grants {
    unsigned magic;
    struct syncer *syncer;
    const struct config *base; /* the configuration as it was loaded */
    struct config live;        /* with the set */
    struct config_bound *set;
    struct reflector *reflector;
    TAILQ_HEAD(, known) known; /* by name, then by pool */
    size_t n_known;
    bool due, changed, reshaped; /* reshaped: more than grants changed */
};

/* --- notices --- */

static void say(struct grants *g, struct str name, const char *reason, const char *what,
                struct str detail)
{
    struct arena *a = arena_new(0);
    struct vapi_notice n = {.topic = NOTICE_GRANTS,
                            .subject = name,
                            .reason = reason,
                            .message = arena_printf(a, "GPUBinding \"%.*s\" %s", STR_F(name), what),
                            .detail = detail};

    vapi_notice(g->syncer->api, &n);
    arena_free(a);
}

static void say_over(struct grants *g, struct str name)
{
    vapi_notice_over(g->syncer->api, NOTICE_GRANTS, name);
}

/* --- what is known --- */

static struct known *find(struct grants *g, struct str name, struct str pool)
{
    struct known *k;

    TAILQ_FOREACH(k, &g->known, place)
    {
        if (str_eq(k->name, name) && str_eq(k->pool, pool))
            return k;
    }
    return NULL;
}

/* The one of this name that has not ended. */
static struct known *find_live(struct grants *g, struct str name)
{
    struct known *k;

    TAILQ_FOREACH(k, &g->known, place)
    {
        if (str_eq(k->name, name) && !k->ended)
            return k;
    }
    return NULL;
}

static bool is_after(const struct known *k, struct str name, struct str pool)
{
    int order = str_cmp(k->name, name);

    return order > 0 || (!order && str_cmp(k->pool, pool) > 0);
}

/* NULL: there are too many. */
static struct known *add(struct grants *g, struct str name, struct str pool)
{
    struct known *k, *behind;

    if (g->n_known >= CONFIG_MOST_BOUND)
        return NULL;
    TAILQ_FOREACH(behind, &g->known, place)
    {
        if (is_after(behind, name, pool))
            break;
    }
    k = NEW(struct known);
    k->name = mem_str(name);
    k->pool = mem_str(pool);
    if (behind)
        TAILQ_INSERT_BEFORE(behind, k, place);
    else
        TAILQ_INSERT_TAIL(&g->known, k, place);
    g->n_known++;
    return k;
}

static void known_free(struct grants *g, struct known *k)
{
    TAILQ_REMOVE(&g->known, k, place);
    g->n_known--;
    mem_free(k->name.p);
    mem_free(k->pool.p);
    mem_free(k->bytes.p);
    mem_free(k);
}

static struct str record_key(struct arena *a, const struct known *k)
{
    return arena_printf(a, RECORD "%.*s/%.*s", STR_F(k->name), STR_F(k->pool));
}

static void keep(struct grants *g, const struct known *k)
{
    struct arena *a = arena_new(0);

    if (k->bytes.n)
        store_record_put(
            g->syncer->store, RECORD_META, record_key(a, k),
            arena_printf(a, "%.*s %.*s", STR_F(k->ended ? ENDED : BOUND), STR_F(k->bytes)));
    arena_free(a);
}

static void forget(struct grants *g, struct known *k)
{
    struct arena *a = arena_new(0);

    if (!k->ended)
        say_over(g, k->name);
    if (k->bytes.n) {
        store_record_delete(g->syncer->store, RECORD_META, record_key(a, k));
        g->changed = g->reshaped = true;
    }
    known_free(g, k);
    arena_free(a);
}

static bool on_record(void *ctx, struct str key, struct str value)
{
    struct str pool = str_from(key, strlen(RECORD)), name = str_cut(&pool, '/');
    struct known *k = add(ctx, name, pool);
    struct str word = str_cut(&value, ' ');

    if (!k)
        return false;
    k->ended = str_eq(word, ENDED);
    k->bytes = mem_str(value);
    return true;
}

/* --- what is on record, for a reader --- */

struct reading {
    struct config_bound *set;
    struct arena *arena;
    bool ended;
};

/* One that cannot be followed binds nothing here, either. */
static bool on_recorded(void *ctx, struct str key, struct str value)
{
    struct reading *r = ctx;
    struct str word = str_cut(&value, ' ');
    cJSON *object = NULL;
    bool unused;
    struct err err;

    (void)key;
    err_init(&err, r->arena);
    if (str_eq(word, ENDED) == r->ended && !json_parse(r->arena, value, &object, &err) &&
        config_bound_add(r->set, object, r->ended, &unused, &err))
        err_clear(&err); /* a process that starts reports it */
    return true;
}

/* As in a set of the process, those that have ended come last. */
struct config_bound *sync_grants_recorded(struct store *store, const struct config *base,
                                          struct config *live)
{
    struct reading r = {config_bound_new(base), arena_new(0), false};

    *live = *base;
    for (int pass = 0; pass < 2 && base->fleet_bindings; pass++) {
        r.ended = pass > 0;
        store_record_each(store, RECORD_META, STR(RECORD), on_recorded, &r);
    }
    config_bound_install(r.set, live);
    arena_free(r.arena);
    return r.set;
}

/* --- what the host has --- */

static bool same_shape(struct arena *a, struct str before, const cJSON *now)
{
    cJSON *tree = NULL;

    return before.n && !json_parse(a, before, &tree, NULL) &&
           json_equal(json_get(tree, "metadata"), json_get(now, "metadata")) &&
           json_equal(json_get(tree, "spec"), json_get(now, "spec")) &&
           json_equal(json_path(tree, "status.pool"), json_path(now, "status.pool"));
}

static void end(struct grants *g, struct known *k)
{
    k->bad = false;
    if (!k->bytes.n || k->ended)
        return;
    k->ended = true;
    g->changed = g->reshaped = true;
    say_over(g, k->name);
    log_info("syncer: GPUBinding \"%.*s\" has ended: pool \"%.*s\" grants nothing new",
             STR_F(k->name), STR_F(k->pool));
    keep(g, k);
}

static void update(struct grants *g, struct arena *a, struct known *k, const cJSON *now)
{
    struct str bytes = json_text(a, now);

    if (k->bad)
        say_over(g, k->name);
    k->bad = false;
    if (!k->ended && str_eq(k->bytes, bytes))
        return;
    g->reshaped |= k->ended || !same_shape(a, k->bytes, now);
    g->changed = true;
    k->ended = false;
    mem_free(k->bytes.p);
    k->bytes = mem_str(bytes);
    keep(g, k);
}

/* What an object that grants nothing takes back from the pods that run by it. NULL: nothing, as
 * where there is no object any more. */
static void set_reclaim(struct grants *g, struct arena *a, struct known *k, const cJSON *reclaim)
{
    cJSON *tree = NULL, *status;
    struct str bytes;

    if (json_parse(a, k->bytes, &tree, NULL))
        return;
    status = json_ensure_object(a, tree, "status");
    json_remove(status, "reclaim");
    if (reclaim)
        json_set(a, status, "reclaim", json_copy(a, reclaim));
    bytes = json_text(a, tree);
    if (str_eq(bytes, k->bytes))
        return;
    mem_free(k->bytes.p);
    k->bytes = mem_str(bytes);
    g->changed = true;
    keep(g, k);
}

/* Neither Ready nor a pool yet: as if it were not bound. */
static bool grants_nothing(const cJSON *object)
{
    const cJSON *ready = condition_get(json_path(object, "status.conditions"), "Ready");

    return !json_path(object, "status.pool") ||
           str_eqc(json_str(json_get(ready, "status")), "False");
}

static cJSON *reduced(struct arena *a, const cJSON *object)
{
    const cJSON *status = json_get(object, "status");

    return json_object(
        a,
        JSON("metadata", json_object(a, JSON("name", json_str_at(object, "metadata.name")),
                                     JSON("creationTimestamp",
                                          json_str_at(object, "metadata.creationTimestamp")))),
        JSON("spec", json_copy(a, json_get(object, "spec"))),
        JSON("status",
             json_object(a, JSON("grant", json_copy(a, json_get(status, "grant"))),
                         JSON("pool", json_copy(a, json_get(status, "pool"))),
                         JSON("reclaim", json_copy(a, json_get(status, "reclaim"))),
                         JSON("maintenance", json_copy(a, json_get(status, "maintenance"))),
                         JSON("budget", json_copy(a, json_get(status, "budget"))))));
}

/* Is it what the configuration file might have, by itself? */
static int check(struct grants *g, struct arena *a, const cJSON *object, struct err *err)
{
    struct config_bound *alone;
    bool unused;
    int ret;

    err_init(err, a);
    if (json_text(a, object).n > CONFIG_BOUND_BYTES)
        return err_set(err, &ERR_BAD_REQUEST, "it has more than %d bytes", CONFIG_BOUND_BYTES);
    alone = config_bound_new(g->base);
    ret = config_bound_add(alone, object, false, &unused, err);
    config_bound_free(alone);
    return ret;
}

static void too_many(struct grants *g, struct str name)
{
    say(g, STR(""), "TooManyGPUBindings", "and others are more than a virtual cluster may have",
        name);
}

/* What it granted before holds, if it did. */
static void take_bad(struct grants *g, struct str name, struct str why)
{
    struct known *k = find_live(g, name);

    k = k ? k : add(g, name, STR(""));
    if (!k) {
        too_many(g, name);
        return;
    }
    k->seen = k->bad = true;
    say(g, name, "InvalidGPUBinding",
        k->bytes.n ? "cannot be followed: what it granted before holds"
                   : "cannot be followed: it grants nothing",
        why);
}

/* Of another pool than before: that one is not seen, and ends. */
static void take_good(struct grants *g, struct arena *a, struct str name, const cJSON *now)
{
    struct str pool = json_str_at(now, "status.pool.name");
    struct known *k = find(g, name, pool);

    k = k ? k : add(g, name, pool);
    if (!k) {
        too_many(g, name);
        return;
    }
    k->seen = true;
    update(g, a, k, now);
}

/* It ends, or has ended, but for what it takes back. One that cannot be read takes nothing. */
static void take_ended(struct grants *g, struct arena *a, struct str name, const cJSON *object)
{
    struct known *k = find(g, name, json_str_at(object, "spec.pool"));
    cJSON *now = reduced(a, object), *status = json_ensure_object(a, now, "status");
    cJSON *before = NULL;
    struct err err;

    if (!k || json_parse(a, k->bytes, &before, NULL))
        return;
    json_remove(status, "pool"); /* as it was bound, whatever the spec says now */
    json_set(a, status, "pool", json_copy(a, json_path(before, "status.pool")));
    json_remove(now, "spec");
    json_set(a, now, "spec", json_copy(a, json_get(before, "spec")));
    if (check(g, a, now, &err))
        return;
    k->heard = true;
    set_reclaim(g, a, k, json_get(status, "reclaim"));
}

static void take_tree(struct grants *g, struct arena *a, struct str name, const cJSON *object)
{
    cJSON *now;
    struct err err;

    if (grants_nothing(object)) {
        take_ended(g, a, name, object);
        return;
    }
    now = reduced(a, object);
    if (check(g, a, now, &err))
        take_bad(g, name, err.message);
    else
        take_good(g, a, name, now);
}

static void on_binding(void *ctx, const struct host_object *o)
{
    struct grants *g = ctx;
    struct arena *a = arena_new(0);
    cJSON *object = NULL;
    struct err err;

    err_init(&err, a);
    if (json_parse(a, o->bytes, &object, &err))
        take_bad(g, o->name, err.message);
    else
        take_tree(g, a, o->name, object);
    arena_free(a);
}

/* --- the set --- */

/* Of ended ones those that nothing is charged to; of all those that the host lacks and that never
 * were any good. Before the pods on the host were counted, all may be charged. */
static void forget_unused(struct grants *g)
{
    struct known *next;

    for (struct known *k = TAILQ_FIRST(&g->known); k; k = next) {
        next = TAILQ_NEXT(k, place);
        if (k->bytes.n
                ? k->ended && g->syncer->compared && !sync_ledger_has(g->syncer->ledger, k->pool)
                : !k->seen)
            forget(g, k);
    }
}

static int add_known(struct config_bound *set, struct arena *a, const struct known *k,
                     bool *ret_default_lost, struct err *err)
{
    cJSON *object = NULL;

    err_init(err, a);
    return json_parse(a, k->bytes, &object, err) ||
                   config_bound_add(set, object, k->ended, ret_default_lost, err)
               ? -1
               : 0;
}

static void add_live(struct grants *g, struct config_bound *set, struct known *k)
{
    struct arena *a = arena_new(0);
    bool default_lost = false;
    struct err err;

    if (add_known(set, a, k, &default_lost, &err))
        say(g, k->name, "PoolTaken", "is not followed: its pool has another binding", err.message);
    else if (default_lost)
        say(g, k->name, "DefaultTaken", "is not the default: another binding is", STR_NULL);
    else if (!k->bad)
        say_over(g, k->name);
    arena_free(a);
}

/* One whose pool has a successor is forgotten: what is charged, is charged to the pool. */
static void add_ended(struct grants *g, struct config_bound *set, struct known *k)
{
    struct arena *a = arena_new(0);
    bool unused;
    struct err err;

    if (config_bound_has(set, k->pool))
        forget(g, k);
    else if (add_known(set, a, k, &unused, &err))
        log_warn("syncer: what GPUBinding \"%.*s\" granted cannot be followed: %.*s",
                 STR_F(k->name), STR_F(err.message));
    arena_free(a);
}

/* The older one before the other: it has the pool, and is the default. */
static int by_age(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    int order = str_cmp(a->created, b->created);

    return order ? order : str_cmp(a->known->name, b->known->name);
}

static size_t members(struct grants *g, struct arena *a, struct member *ret)
{
    struct known *k;
    size_t n = 0;

    TAILQ_FOREACH(k, &g->known, place)
    {
        cJSON *tree = NULL;

        if (!k->bytes.n || json_parse(a, k->bytes, &tree, NULL))
            continue;
        ret[n++] = (struct member){k, json_str_at(tree, "metadata.creationTimestamp")};
    }
    qsort(ret, n, sizeof(*ret), by_age);
    return n;
}

/* Those that have ended come last: they give way to all others. */
static struct config_bound *make_set(struct grants *g)
{
    struct config_bound *set = config_bound_new(g->base);
    struct arena *a = arena_new(0);
    struct member all[CONFIG_MOST_BOUND];
    size_t n = members(g, a, all);

    for (size_t i = 0; i < n; i++)
        if (!all[i].known->ended)
            add_live(g, set, all[i].known);
    for (size_t i = 0; i < n; i++)
        if (all[i].known->ended)
            add_ended(g, set, all[i].known);
    arena_free(a);
    return set;
}

static void install(struct grants *g)
{
    struct config_bound *before = g->set;

    g->set = make_set(g);
    config_bound_install(g->set, &g->live);
    config_bound_free(before);
}

static void rescan_claims(struct syncer *s)
{
    enum sync_id id = sync_kind_of_ref(s, REF_DEVICE_CLAIM);

    if (id != SYNC_NONE)
        syncer_rescan(s, id);
}

/* What is known so late was not charged when it was seen. */
static void compare(struct syncer *s, enum sync_id id)
{
    if (id != SYNC_NONE && reflector_synced(s->watches[id].reflector))
        sync_life_listed(s, id);
}

/* Everything that was decided by the previous set and may be otherwise now. */
static void take_effect(struct grants *g, bool reshaped)
{
    struct syncer *s = g->syncer;

    if (reshaped) {
        compare(s, SYNC_PODS);
        compare(s, sync_kind_of_ref(s, REF_DEVICE_CLAIM));
        if (config_has_tiers(s->config))
            syncer_watch(s, SYNC_PRIORITY_CLASSES);
        sync_runtime_classes_publish(s);
        s->parts->rescan(s);
    }
    sync_ledger_limits_changed(s->ledger);
    if (reshaped)
        sync_ledger_pools_changed(s->ledger);
    sync_demand_look(s->demand);
    vapi_gpu_usage_changed(s->api);
    sync_reclaims_look(s->reclaims, true);
    syncer_rescan(s, SYNC_NODES);
    sync_nodes_recheck(s->nodes);
    rescan_claims(s);
}

/* A list of before the Lease was confirmed may come from a host that was restored a moment ago. */
static void end_missing(struct grants *g)
{
    struct known *k;

    TAILQ_FOREACH(k, &g->known, place)
    {
        if (!k->seen && !k->ended &&
            sync_lease_confirmed_since(g->syncer->lease, reflector_listed_ms(g->reflector)))
            end(g, k);
    }
}

/* Of a binding that was deleted nothing is taken back: no object says so any more. */
static void forget_reclaims(struct grants *g)
{
    struct arena *a = arena_new(0);
    struct known *k;

    TAILQ_FOREACH(k, &g->known, place)
    {
        if (k->ended && !k->heard && k->bytes.n)
            set_reclaim(g, a, k, NULL);
    }
    arena_free(a);
}

/* From now on pods are judged: what is bound is known, or that nothing is. */
static void know_pools(struct grants *g)
{
    struct syncer *s = g->syncer;

    if (s->pools_known || !(reflector_synced(g->reflector) || reflector_refused(g->reflector)))
        return;
    s->pools_known = true;
    compare(s, SYNC_PODS);
    syncer_rescan(s, SYNC_PODS);
    sync_ledger_pools_changed(s->ledger);
}

/* From the loop itself: nothing that reads the set is under way. */
static void settle(void *ctx)
{
    struct grants *g = ctx;
    struct known *k;
    bool reshaped;

    assert(g->magic == GRANTS_MAGIC);
    g->due = false;
    if (syncer_is_closing(g->syncer))
        return;
    if (reflector_synced(g->reflector)) {
        TAILQ_FOREACH(k, &g->known, place) k->seen = k->heard = false;
        reflector_each(g->reflector, on_binding, g);
        end_missing(g);
        forget_reclaims(g);
    }
    forget_unused(g);
    if (g->changed) {
        install(g);
        reshaped = g->reshaped;
        g->changed = g->reshaped = false;
        take_effect(g, reshaped);
    }
    know_pools(g);
}

static void look(struct grants *g)
{
    if (g->due || syncer_is_closing(g->syncer))
        return;
    g->due = true;
    syncer_defer(g->syncer, settle, g);
}

void sync_grants_look(struct grants *g)
{
    if (g)
        look(g);
}

void sync_grants_released(struct grants *g)
{
    if (g)
        look(g);
}

void sync_grants_keep(struct grants *g)
{
    struct known *k;

    if (!g)
        return;
    TAILQ_FOREACH(k, &g->known, place) keep(g, k);
}

/* --- the watch --- */

static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    (void)now;
    (void)before;
    look(ctx);
}

static void on_current(void *ctx, bool listed)
{
    struct grants *g = ctx;

    (void)listed;
    sync_dialogue_note(g->syncer, "follow GPUBindings", NULL, STR_NULL, STR_NULL);
    look(g);
}

/* A missing right is reported by dialogue.c. */
static void on_refused(void *ctx, const struct err *err)
{
    struct grants *g = ctx;

    look(g);
    if (err->kind != &ERR_FORBIDDEN)
        sync_dialogue_note(g->syncer, "follow GPUBindings", "NotServed",
                           STR("the host cluster does not serve GPUBindings: what was granted last "
                               "holds"),
                           err->message);
}

static void on_failing(void *ctx, const struct err *err)
{
    struct grants *g = ctx;

    if (!err)
        sync_dialogue_note(g->syncer, "follow GPUBindings", NULL, STR_NULL, STR_NULL);
    else if (host_is_up(g->syncer->host))
        sync_dialogue_note(
            g->syncer, "follow GPUBindings", "WatchFailed",
            STR("GPUBindings cannot be watched on the host cluster: what was granted "
                "last holds"),
            err->message);
}

static void on_went_back(void *ctx)
{
    reflector_restart(((struct grants *)ctx)->reflector);
}

void sync_grants_start(struct grants *g)
{
    struct reflector_options o = {.changed = on_changed,
                                  .current = on_current,
                                  .refused = on_refused,
                                  .failing = on_failing,
                                  .went_back = on_went_back,
                                  .ctx = g};
    struct arena *a;

    if (!g)
        return;
    a = arena_new(0);
    o.host = g->syncer->host;
    o.path = arena_printf(a, CONFIG_GPU_BINDINGS, STR_F(g->base->host_namespace));
    g->reflector = reflector_open(&o);
    arena_free(a);
}

void sync_grants_stop(struct grants *g)
{
    if (g)
        g->reflector = reflector_close(g->reflector);
}

void sync_grants_kick(struct grants *g)
{
    if (g)
        reflector_kick(g->reflector);
}

void sync_grants_restart(struct grants *g)
{
    if (g)
        reflector_restart(g->reflector);
}

/* --- life --- */

struct grants *sync_grants_new(struct syncer *s)
{
    struct grants *g;

    s->pools_known = true;
    if (!s->config->fleet_bindings)
        return NULL;
    g = NEW(struct grants);
    g->magic = GRANTS_MAGIC;
    g->syncer = s;
    g->base = s->config;
    g->live = *s->config;
    TAILQ_INIT(&g->known);
    store_record_each(s->store, RECORD_META, STR(RECORD), on_record, g);
    s->pools_known = g->n_known > 0;
    install(g);
    s->config = &g->live;
    return g;
}

struct grants *sync_grants_free(struct grants *g)
{
    struct known *k;

    if (!g)
        return NULL;
    assert(g->magic == GRANTS_MAGIC);
    while ((k = TAILQ_FIRST(&g->known)))
        known_free(g, k);
    config_bound_free(g->set);
    g->magic = 0;
    mem_free(g);
    return NULL;
}
