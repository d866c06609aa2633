/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMap `sublet-gpu-demand` of the host namespace: for each pool of a GPUBinding the whole GPUs
 * that are charged or waited for. More is reported at once, less only after it stayed less for
 * `fleet.lendAfter`: each way costs those who borrow a notice. A pod that was refused and has no
 * controller wants its GPUs at that moment, so for that long. Must never report less than what is
 * charged, nor write while nothing changes.
 *
 *   charge, line, refusal, binding --look, one a second--> goal --changed--> publish.c --> host
 *                                     ^                      |
 *                                     '--- lendAfter --------' less than the goal, or owners lack
 *
 * What a tenant does can only recall what is its own: beyond its guarantee the report is a wish
 * among others, and no report counts as wanting everything (fleet/grants/share.c). */

#include "grants/demand.h"
#include "gpu/ledger.h"
#include "objects/objects.h"

#include <assert.h>

#include <sublet/config_bound.h>

#define DEMAND_MAGIC 0x64656d61u
#define APART_MS     1000 /* looks */
#define SOON_MS      50   /* one for all that is written in a moment */
#define UNKNOWN      (-1) /* the host was not read yet */

/* Of a pool. */
struct wish {
    TAILQ_ENTRY(wish) place;
    struct str pool;          /* heap */
    int64_t goal;             /* what the host is to have, or UNKNOWN */
    int64_t now, turned_away; /* at the last look; and at most what was refused since */
    int64_t less_since_ms;    /* now was less than the goal all the time; 0: it is not */
    int64_t peak;             /* of now since then */
    bool lacks;               /* owners, pods turned away: what ends that is no ledger event */
    bool bound;
};

struct demand {
    unsigned magic;
    struct syncer *syncer;
    struct publisher *publisher;
    TAILQ_HEAD(, wish) wishes;
    bool due, later; /* a look is under way, and one after lendAfter */
    int64_t looked_ms;
};

static void look(void *ctx);

static int64_t whole(struct rational gpus)
{
    return gpus.num / gpus.den + (gpus.num % gpus.den != 0);
}

static struct wish *find(struct demand *d, struct str pool)
{
    struct wish *w;

    TAILQ_FOREACH(w, &d->wishes, place)
    {
        if (str_eq(w->pool, pool))
            return w;
    }
    return NULL;
}

static void forget(struct demand *d, struct wish *w)
{
    TAILQ_REMOVE(&d->wishes, w, place);
    mem_free(w->pool.p);
    mem_free(w);
}

/* --- when --- */

static void look_soon(struct demand *d)
{
    int64_t wait = d->looked_ms + APART_MS - syncer_mono_ms(d->syncer);

    if (d->due || syncer_is_closing(d->syncer))
        return;
    d->due = true;
    syncer_defer_for(d->syncer, look, d, wait > SOON_MS ? wait : SOON_MS);
}

static void on_later(void *ctx)
{
    struct demand *d = ctx;

    assert(d->magic == DEMAND_MAGIC);
    d->later = false;
    look_soon(d);
}

static void look_later(struct demand *d, int64_t wait_ms)
{
    if (d->later || syncer_is_closing(d->syncer))
        return;
    d->later = true;
    syncer_defer_for(d->syncer, on_later, d, wait_ms);
}

/* --- what --- */

/* True: the goal changed. */
static bool follow(struct demand *d, struct wish *w)
{
    int64_t after = d->syncer->config->lend_after_ms, now = syncer_mono_ms(d->syncer);
    int64_t before = w->goal;

    if (w->goal == UNKNOWN)
        return true;
    if (w->now >= w->goal) {
        w->goal = w->now;
        w->less_since_ms = 0;
        return w->goal != before;
    }
    if (!w->less_since_ms) {
        w->less_since_ms = now;
        w->peak = w->now;
    }
    w->peak = w->now > w->peak ? w->now : w->peak;
    if (now - w->less_since_ms >= after) {
        w->goal = w->peak;
        w->less_since_ms = w->now < w->goal ? now : 0;
        w->peak = w->now;
    }
    return w->goal != before;
}

static void take_binding(struct demand *d, const struct config_binding *b)
{
    struct ledger *l = d->syncer->ledger;
    struct rational wants = sync_ledger_wants(l, b);
    struct wish *w = find(d, b->pool->name);

    if (!w) {
        w = NEW(struct wish);
        *w = (struct wish){.pool = mem_str(b->pool->name), .goal = UNKNOWN};
        TAILQ_INSERT_TAIL(&d->wishes, w, place);
    }
    w->bound = true;
    w->now = whole(wants);
    w->lacks = rational_cmp(wants, sync_ledger_used(l, b->pool)) > 0 || w->turned_away > w->now;
    w->now = w->turned_away > w->now ? w->turned_away : w->now;
    if (w->goal != UNKNOWN)
        w->turned_away = 0;
}

/* Those that are granted by the fleet and have not ended. */
static void take_bindings(struct demand *d)
{
    const struct config *c = d->syncer->config;
    struct wish *w;

    TAILQ_FOREACH(w, &d->wishes, place) w->bound = false;
    for (size_t i = 0; i < c->n_bindings; i++)
        if (c->bindings[i].object.n && !c->bindings[i].ended)
            take_binding(d, &c->bindings[i]);
}

static bool forget_unbound(struct demand *d)
{
    struct wish *next;
    bool any = false;

    for (struct wish *w = TAILQ_FIRST(&d->wishes); w; w = next) {
        next = TAILQ_NEXT(w, place);
        if (w->bound)
            continue;
        forget(d, w);
        any = true;
    }
    return any;
}

static void look(void *ctx)
{
    struct demand *d = ctx;
    int64_t now = syncer_mono_ms(d->syncer), after = d->syncer->config->lend_after_ms, left = -1;
    struct wish *w;
    bool changed;

    assert(d->magic == DEMAND_MAGIC);
    d->due = false;
    if (syncer_is_closing(d->syncer))
        return;
    d->looked_ms = now;
    take_bindings(d);
    changed = forget_unbound(d);
    TAILQ_FOREACH(w, &d->wishes, place)
    {
        changed |= follow(d, w);
        if (w->less_since_ms && (left < 0 || w->less_since_ms + after - now < left))
            left = w->less_since_ms + after - now;
        else if (w->lacks && left < 0)
            left = after;
    }
    if (changed)
        sync_publisher_want(d->publisher);
    if (left >= 0)
        look_later(d, left);
}

/* --- on the host --- */

/* What another process of this virtual cluster reported last is what is wanted less than now. */
static void take_reported(struct demand *d, struct wish *w, const cJSON *existing)
{
    const struct config_binding *b = config_binding_of(d->syncer->config, w->pool);
    int64_t most = b ? whole(b->most) : 0, said = 0;

    (void)str_to_i64(json_str(json_get_str(existing, w->pool)), &said);
    said = said < most ? said : most;
    w->goal = said > w->now ? said : w->now;
    look_soon(d);
}

static cJSON *data_of(void *ctx, struct arena *a, const cJSON *existing)
{
    struct demand *d = ctx;
    cJSON *data = json_new_object(a);
    struct wish *w;

    assert(d->magic == DEMAND_MAGIC);
    TAILQ_FOREACH(w, &d->wishes, place)
    {
        if (w->goal == UNKNOWN)
            take_reported(d, w, existing);
        json_set_str(a, data, arena_cstr(a, w->pool), arena_printf(a, "%lld", (long long)w->goal));
    }
    return data;
}

static const struct publication DEMAND = {
    .id = SYNC_CONFIG_MAPS,
    .kind = "ConfigMap",
    .whole = true,
    .data = data_of,
    .duty = "report GPU demand",
    .failed = "GPUDemandNotReported",
    .failed_message = "the ConfigMap " CONFIG_GPU_DEMAND " cannot be written on the host cluster: "
                      "what the fleet lends follows what was reported last",
    .foreign = "GPUDemandExists",
    .foreign_message = "the ConfigMap " CONFIG_GPU_DEMAND " exists on the host cluster and is not "
                       "this virtual cluster's: the fleet takes from it what this one wants"};

/* --- life --- */

void sync_demand_look(struct demand *d)
{
    if (d)
        look_soon(d);
}

void sync_demand_kick(struct demand *d)
{
    if (d)
        sync_publisher_kick(d->publisher);
    sync_demand_look(d);
}

void sync_demand_renew(struct demand *d)
{
    if (d)
        sync_publisher_renew(d->publisher);
}

void sync_demand_turned_away(struct demand *d, const struct config_binding *binding,
                             struct rational sum)
{
    struct wish *w = d ? find(d, binding->pool->name) : NULL;

    if (rational_cmp(sum, binding->most) > 0)
        sum = binding->most;
    if (!w)
        return;
    w->turned_away = whole(sum) > w->turned_away ? whole(sum) : w->turned_away;
    look_soon(d);
}

struct demand *sync_demand_new(struct syncer *s)
{
    struct demand *d;

    if (!s->config->fleet_bindings)
        return NULL;
    d = NEW(struct demand);
    *d = (struct demand){.magic = DEMAND_MAGIC, .syncer = s, .looked_ms = -APART_MS};
    TAILQ_INIT(&d->wishes);
    d->publisher = sync_publisher_new(s, &DEMAND, STR(""), STR(CONFIG_GPU_DEMAND), d);
    return d;
}

void sync_demand_close(struct demand *d)
{
    if (d)
        sync_publisher_close(d->publisher);
}

struct demand *sync_demand_free(struct demand *d)
{
    if (!d)
        return NULL;
    while (!TAILQ_EMPTY(&d->wishes))
        forget(d, TAILQ_FIRST(&d->wishes));
    d->magic = 0;
    mem_free(d);
    return NULL;
}
