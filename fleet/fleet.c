/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the process: Lease, then nodes, then pods, then grants, and a beat that records until
 * when all was observed. What a turn of the loop wrote is one transaction, committed before the
 * loop waits again; it waits for the disk, since no client waits for this loop, but never for a
 * server: a ledger there is opened once the Lease is held, and written by a thread. Must not write
 * while it does not hold the Lease, nor go on after a failed write: the next process repeats what
 * the host shows. It is long because it alone knows every folder of the fleet: most functions hand
 * one event to those that follow from it.
 *
 *   Lease held --> ledger opened --> nodes listed --> pods listed --> ready, beat
 *   Lease lost, write failed, host refuses --> failed(), which closes it
 *   no more can wait for the ledger's server --> what waits is written --> failed()
 *
 *   STARTING --pods listed--> READY --fleet_close()--> CLOSING
 *      |                        |                        ^
 *      '------------------------+--> FAILED -------------'   nothing is written in these two
 *
 *   close: grants stopped -> seen, commit, written or given up -> Lease released
 *          -> page closed -> host stopped -> watches, telemetry, grants closed
 *          -> host closed -> port closed -> freed
 */
#include <assert.h>
#include <unistd.h>

#include <uv.h>

#include <sublet/fleet.h>
#include <sublet/fleet_ledger.h>
#include <sublet/log.h>
#include <sublet/reflector.h>

#include "core/fact_claims.h"
#include "core/facts.h"
#include "core/watch.h"
#include "grants/fairness.h"
#include "grants/grants.h"
#include "grants/pool_gauges.h"
#include "lease.h"
#include "ledger/claim_watch.h"
#include "ledger/disruptions.h"
#include "ledger/guarantees.h"
#include "ledger/observe.h"
#include "ledger/uses.h"
#include "serve/endpoint.h"
#include "serve/metrics.h"
#include "serve/overview.h"
#include "serve/page.h"
#include "telemetry/telemetry.h"
#include "usage/counters.h"
#include "usage/month.h"

#define FLEET_MAGIC  0x666c6565u
#define BEAT_MS      5000
#define FLUSH_MS     8000 /* a pod that ends has 30 s */
#define RECORD_BEATS 12   /* a minute */
#define LEASE_NAME   "sublet-fleet"

#define MONTH_WARNS_MS 3600000 /* between two lines of a month that cannot be read */

enum fleet_phase { FLEET_STARTING, FLEET_READY, FLEET_FAILED, FLEET_CLOSING, N_FLEET_PHASES };

struct fleet {
    unsigned magic;
    enum fleet_phase phase;
    struct fleet_options o;
    struct str location; /* of the ledger, on the heap */
    struct ledger *ledger;
    struct observer *observer; /* NULL: a server's ledger is not open yet, nor what follows */
    struct guarantees *guarantees;
    struct uses *uses;
    unsigned beats; /* since uses and guarantees were recorded */
    struct fleet_watch *watch;
    struct host *host;
    struct fleet_lease *lease;
    struct fleet_endpoint *endpoint; /* NULL: none */
    struct counters *counters;       /* beside the endpoint */
    struct page *page;               /* NULL: none */
    struct month *month;             /* for the page and budgets */
    int64_t month_warned_ms;         /* of one that cannot be read; 0: the last one could */
    struct reflector *nodes, *pods;
    struct claim_watch *claims;  /* NULL: no metered pool is of mode dra */
    bool held;                   /* the Lease */
    struct err full;             /* no more can wait for the ledger's server; then it fails */
    bool warned;                 /* of the ledger's trouble */
    bool claims_wait;            /* one may be in a pool, once more devices or nodes are known */
    struct grants *grants;       /* NULL: not before it is ready, or never */
    bool granted;                /* its view was computed: before, it is empty */
    struct telemetry *telemetry; /* NULL: none */
    struct fleet_disruptions *disruptions;
    uv_timer_t beat;
    uv_prepare_t prepare;
    unsigned open_handles;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static int64_t now_us(const struct fleet *f)
{
    return clock_wall_us(f->o.clock);
}

static void enter(struct fleet *f, enum fleet_phase to)
{
    static const unsigned next[N_FLEET_PHASES] = {
        [FLEET_STARTING] = 1u << FLEET_READY | 1u << FLEET_FAILED | 1u << FLEET_CLOSING,
        [FLEET_READY] = 1u << FLEET_FAILED | 1u << FLEET_CLOSING,
        [FLEET_FAILED] = 1u << FLEET_CLOSING,
        [FLEET_CLOSING] = 0,
    };

    assert(next[f->phase] & 1u << to);
    f->phase = to;
}

/* Is what is observed written? */
static bool writes(const struct fleet *f)
{
    return f->phase == FLEET_STARTING || f->phase == FLEET_READY;
}

/* What was observed before is written now, or can no more be. */
static void on_drained(void *ctx)
{
    struct fleet *f = ctx;

    if (f->phase == FLEET_FAILED)
        f->o.failed(f->o.ctx, &f->full);
}

static void fail(struct fleet *f, const struct err *err)
{
    struct ledger_waiting waiting;

    if (!writes(f))
        return;
    enter(f, FLEET_FAILED);
    grants_stop(f->grants);
    fleet_page_changed(f->page);
    ledger_waiting(f->ledger, &waiting);
    if (!waiting.full) {
        f->o.failed(f->o.ctx, err);
        return;
    }
    log_error("fleet: it stops to observe and to grant until the ledger is written error=\"%.*s\"",
              STR_F(err->message));
    err_init(&f->full, NULL);
    err_set(&f->full, err->kind, "%.*s", STR_F(err->message));
    ledger_flush(f->ledger, INT64_MAX, on_drained, f);
}

/* The result of a function of the observer, whose error ends the process. */
static void check(struct fleet *f, int result, const struct err *err)
{
    if (result)
        fail(f, err);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct fleet *f = prepare->data;
    struct err err;

    assert(f->magic == FLEET_MAGIC);
    err_init(&err, NULL);
    if (writes(f))
        check(f, ledger_commit(f->ledger, &err), &err);
}

static bool is_current(const struct reflector *r)
{
    return reflector_listed_ms(r) != REFLECTOR_NOT_CURRENT;
}

static void show_use(void *ctx, struct str uid, enum activity_state state)
{
    uses_pod(ctx, uid, state);
}

static void record_uses(struct fleet *f)
{
    struct err err;

    err_init(&err, NULL);
    if (!writes(f))
        return;
    uses_begin(f->uses);
    telemetry_each(f->telemetry, show_use, f->uses);
    check(f, uses_end(f->uses, now_us(f), &err), &err);
}

/* Without grants no binding counts, whatever one was worth while there were some. */
static void record_guarantees(struct fleet *f)
{
    const struct grants_view view = grants_view(f->grants);
    struct err err;

    err_init(&err, NULL);
    if (writes(f))
        check(f,
              guarantees_look(f->guarantees, f->o.config->pools, f->o.config->n_pools, &view,
                              now_us(f), &err),
              &err);
}

static void beat(struct fleet *f)
{
    struct err err;

    err_init(&err, NULL);
    if (writes(f) && f->observer && is_current(f->nodes) && is_current(f->pods) &&
        claim_watch_is_current(f->claims))
        check(f, observer_seen(f->observer, now_us(f), &err), &err);
}

/* A binding that has none costs no reading of the ledger. */
static void look_at_month(struct fleet *f)
{
    if (f->phase == FLEET_READY && grants_view(f->grants).budgets)
        fleet_month_ask(f->month);
}

static void on_beat(uv_timer_t *timer)
{
    struct fleet *f = timer->data;

    assert(f->magic == FLEET_MAGIC);
    if (++f->beats >= RECORD_BEATS && f->phase == FLEET_READY) {
        f->beats = 0;
        record_uses(f);
        if (f->granted)
            record_guarantees(f);
    }
    look_at_month(f);
    beat(f);
}

/* --- watches --- */

static void on_refused(void *ctx, const struct err *err)
{
    fail(ctx, err);
}

static cJSON *tree_of(struct arena *a, const struct host_object *o)
{
    cJSON *tree;

    return o && !json_parse(a, o->bytes, &tree, NULL) ? tree : NULL;
}

static void show_telemetry(struct fleet *f, struct str name, cJSON *tree)
{
    struct fleet_hold hold;
    bool holds = tree && observer_held(f->observer, json_str_at(tree, "metadata.uid"), &hold);

    telemetry_pod(f->telemetry, name, tree, holds ? &hold : NULL);
}

static void note_disruption(struct fleet *f, const cJSON *before, const cJSON *now)
{
    struct fleet_hold hold;

    if (now && observer_held(f->observer, json_str_at(now, "metadata.uid"), &hold))
        fleet_disruptions_pod(f->disruptions, before, now, &hold);
}

static void on_pod(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = tree_of(a, now);
    struct err err;

    err_init(&err, NULL);
    if (!writes(f)) {
        arena_free(a);
        return;
    }
    if (fleet_watch_pod(f->watch, tree_of(a, before), tree))
        grants_changed(f->grants);
    note_disruption(f, tree_of(a, before), tree);
    /* Another uid under its name: the pod before is gone, whose deletion no event reported. */
    if (before && (!now || !str_eq(now->uid, before->uid)))
        check(f,
              observer_pod_gone(f->observer, before->uid, !now && is_current(f->pods), now_us(f),
                                &err),
              &err);
    if (tree && writes(f))
        check(f, observer_pod(f->observer, tree, now_us(f), &err), &err);
    show_telemetry(f, (now ? now : before)->name, tree);
    grants_pod(f->grants, (now ? now : before)->name, tree);
    arena_free(a);
    fleet_page_changed(f->page);
}

static void each_pod(void *ctx, const struct host_object *o)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = tree_of(a, o);
    struct err err;

    err_init(&err, NULL);
    if (tree && writes(f))
        check(f, observer_pod(f->observer, tree, now_us(f), &err), &err);
    show_telemetry(f, o->name, tree);
    arena_free(a);
}

static void look_again(struct fleet *f);

static void on_node(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = tree_of(a, now);
    struct err err;

    err_init(&err, NULL);
    if (!writes(f)) {
        arena_free(a);
        return;
    }
    fleet_watch_node(f->watch, (now ? now : before)->name, tree);
    if (!now)
        check(f, observer_node_gone(f->observer, before->name, now_us(f), &err), &err);
    else if (tree)
        check(f, observer_node(f->observer, tree, now_us(f), &err), &err);
    grants_node(f->grants, (now ? now : before)->name, tree);
    arena_free(a);
    fleet_page_changed(f->page);
    look_again(f);
}

/* --- claims of devices --- */

static void see_claim(struct fleet *f, const struct host_object *o)
{
    struct arena *a = arena_new(0);
    cJSON *tree = tree_of(a, o), *user = NULL;
    const struct host_object *pod;
    bool waits = false;
    struct err err;

    err_init(&err, NULL);
    if (tree && writes(f)) {
        pod = reflector_get(f->pods, fact_claim_user(a, tree));
        user = tree_of(a, pod);
        check(f, observer_claim(f->observer, tree, user, now_us(f), &waits, &err), &err);
    }
    f->claims_wait |= waits;
    arena_free(a);
}

static void each_claim(void *ctx, const struct host_object *o)
{
    see_claim(ctx, o);
}

static void on_claim(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct fleet *f = ctx;
    struct err err;

    err_init(&err, NULL);
    if (writes(f) && before && (!now || !str_eq(now->uid, before->uid)))
        check(f,
              observer_claim_gone(f->observer, before->uid,
                                  !now && claim_watch_is_current(f->claims), now_us(f), &err),
              &err);
    if (now)
        see_claim(f, now);
    fleet_page_changed(f->page);
}

/* What a node has, or which it is, has changed. */
static void look_again(struct fleet *f)
{
    if (observer_wants_pods(f->observer) && f->pods)
        reflector_each(f->pods, each_pod, f);
    if (!f->claims_wait)
        return;
    f->claims_wait = false;
    claim_watch_each(f->claims, each_claim, f);
}

static void on_devices(void *ctx, struct str node)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);
    cJSON *tree = tree_of(a, reflector_get(f->nodes, node));
    struct err err;

    err_init(&err, NULL);
    if (tree && writes(f))
        check(f, observer_node(f->observer, tree, now_us(f), &err), &err);
    arena_free(a);
    look_again(f);
    fleet_page_changed(f->page);
}

static void on_went_back(void *ctx)
{
    struct fleet *f = ctx;

    reflector_restart(f->nodes);
    reflector_restart(f->pods);
    claim_watch_restart(f->claims);
    telemetry_restart(f->telemetry);
}

static void on_shown_changed(void *ctx)
{
    struct fleet *f = ctx;

    fleet_page_changed(f->page);
}

/* The first failure in a row is logged, and one an hour: budgets are held against the last one that
 * could be read. */
static void on_month(void *ctx)
{
    struct fleet *f = ctx;
    struct str trouble = fleet_month_trouble(f->month);
    int64_t now = clock_mono_ms(f->o.clock);

    if (!trouble.n && f->month_warned_ms)
        log_info("fleet: what the month costs is known again");
    if (!trouble.n)
        f->month_warned_ms = 0;
    else if (!f->month_warned_ms || now - f->month_warned_ms >= MONTH_WARNS_MS) {
        log_warn("fleet: what the month costs is not known error=\"%.*s\"", STR_F(trouble));
        f->month_warned_ms = now;
    }
    if (grants_view(f->grants).budgets)
        grants_changed(f->grants);
    fleet_page_changed(f->page);
}

static void show_budgets(void *ctx, struct budget_facts *ret)
{
    struct fleet *f = ctx;

    *ret = (struct budget_facts){.pools = f->o.config->pools,
                                 .n_pools = f->o.config->n_pools,
                                 .month = fleet_month_usage(f->month),
                                 .month_us = fleet_month_us(f->month),
                                 .now_s = fleet_month_now_s(f->month),
                                 .day = fleet_month_day(f->month)};
}

static void on_granted(void *ctx)
{
    struct fleet *f = ctx;

    f->granted = true;
    record_guarantees(f);
    look_at_month(f);
    fleet_page_changed(f->page);
}

static void open_grants(struct fleet *f)
{
    const struct grants_options o = {.loop = f->o.loop,
                                     .clock = f->o.clock,
                                     .host = f->host,
                                     .grace_ms = f->o.config->grants_grace_ms,
                                     .pause_ms = f->o.config->grants_pause_ms,
                                     .queues = f->o.config->grants_kai_queues,
                                     .claims = f->o.config->grants_device_claims,
                                     .labels = f->o.config->grants_labels,
                                     .nodes = f->nodes,
                                     .pods = f->pods,
                                     .watch = f->watch,
                                     .budgets = show_budgets,
                                     .refused = on_refused,
                                     .computed = on_granted,
                                     .ctx = f};

    f->grants = grants_open(&o);
}

static void on_all_current(struct fleet *f)
{
    beat(f);
    grants_changed(f->grants);
    if (f->phase != FLEET_STARTING)
        return;
    enter(f, FLEET_READY);
    if (f->o.config->grants)
        open_grants(f);
    else
        record_guarantees(f);
    telemetry_start(f->telemetry);
    fleet_counters_ask(f->counters, ledger_durable_us(f->ledger));
    fleet_page_changed(f->page);
    f->o.ready(f->o.ctx);
}

/* Without a pool of mode dra, what one held ended. */
static void on_claims_current(void *ctx, bool listed)
{
    struct fleet *f = ctx;
    struct err err;

    err_init(&err, NULL);
    if (listed && writes(f))
        check(f, observer_claims_listed(f->observer, now_us(f), &err), &err);
    if (writes(f))
        on_all_current(f);
}

static void on_pods_current(void *ctx, bool listed)
{
    struct fleet *f = ctx;
    struct err err;

    err_init(&err, NULL);
    if (listed && writes(f))
        check(f, observer_pods_listed(f->observer, now_us(f), &err), &err);
    if (!writes(f))
        return;
    if (f->claims)
        claim_watch_claims(f->claims);
    if (!f->claims)
        on_claims_current(f, listed);
    else if (claim_watch_is_current(f->claims))
        on_all_current(f);
}

static struct reflector *open_watch(struct fleet *f, const char *path, bool by_namespace,
                                    const struct reflector_options *how)
{
    struct reflector_options o = *how;

    o.host = f->host;
    o.path = str_c(path);
    o.by_namespace = by_namespace;
    o.refused = on_refused;
    o.went_back = on_went_back;
    o.ctx = f;
    return reflector_open(&o);
}

static void on_nodes_current(void *ctx, bool listed)
{
    static const struct reflector_options how = {
        .reduce = fact_reduce_pod, .changed = on_pod, .current = on_pods_current};
    struct fleet *f = ctx;
    struct err err;

    err_init(&err, NULL);
    grants_changed(f->grants);
    if (listed && writes(f))
        check(f, observer_nodes_listed(f->observer, now_us(f), &err), &err);
    if (!f->pods && writes(f))
        f->pods = open_watch(f, "/api/v1/pods", true, &how);
}

static void watch_nodes(void *ctx)
{
    static const struct reflector_options how = {
        .reduce = fact_reduce_node, .changed = on_node, .current = on_nodes_current};
    struct fleet *f = ctx;

    if (writes(f))
        f->nodes = open_watch(f, "/api/v1/nodes", false, &how);
}

static void open_claims(struct fleet *f)
{
    const struct claim_watch_options o = {.slices_listed = watch_nodes,
                                          .node = on_devices,
                                          .claim = on_claim,
                                          .claims_current = on_claims_current,
                                          .refused = on_refused,
                                          .went_back = on_went_back,
                                          .ctx = f};

    if (claim_watch_is_needed(f->o.config->pools, f->o.config->n_pools))
        f->claims = claim_watch_new(&o);
}

/* --- the Lease --- */

static void observe(struct fleet *f)
{
    struct err err;

    err_init(&err, NULL);
    check(f, uses_forget(f->uses, &err), &err);
    if (writes(f))
        check(f, observer_prices(f->observer, now_us(f), &err), &err);
    if (!writes(f))
        return;
    if (f->claims)
        claim_watch_slices(f->claims, f->host);
    else
        watch_nodes(f);
    uv_timer_start(&f->beat, on_beat, BEAT_MS, BEAT_MS);
    fleet_page_changed(f->page);
}

/* A server's ledger is the Lease holder's: with one that waits for the Lease, it would wait for
 * good. */
static void on_held(void *ctx)
{
    struct fleet *f = ctx;

    f->held = true;
    if (f->observer)
        observe(f);
    else if (writes(f))
        ledger_start(f->ledger);
}

static void on_waiting(void *ctx, struct str holder)
{
    struct fleet *f = ctx;

    f->o.waiting(f->o.ctx, holder);
}

static void on_lost(void *ctx, const struct err *err)
{
    struct fleet *f = ctx;

    ledger_drop(f->ledger);
    fail(f, err);
}

/* Of a server's ledger several processes may be there at once: each is another holder. */
static void open_lease(struct fleet *f)
{
    uint64_t identity = f->observer ? ledger_identity(f->ledger) : rng_u64(f->o.rng);
    struct arena *a = arena_new(0);
    struct fleet_lease_options o = {
        .loop = f->o.loop,
        .clock = f->o.clock,
        .host = f->host,
        .host_namespace = f->o.config->host_namespace,
        .name = STR(LEASE_NAME),
        .identity = arena_printf(a, LEASE_NAME "_%016llx", (unsigned long long)identity),
        .duration_ms = f->o.config->lease_duration_ms,
        .held = on_held,
        .waiting = on_waiting,
        .lost = on_lost,
        .ctx = f,
    };

    f->lease = fleet_lease_new(&o);
    arena_free(a);
}

/* --- metrics and the page --- */

/* held is filled when the host is read. */
static struct fleet_now now_of(struct fleet *f, struct arena *a, struct fleet_records *held)
{
    struct fleet_now now = {.leader = f->held && writes(f),
                            .now_us = now_us(f),
                            .seen_us = ledger_durable_us(f->ledger),
                            .unobserved_us = f->observer ? observer_unobserved_us(f->observer) : 0,
                            .remote = ledger_is_remote(f->location),
                            .trouble = ledger_trouble(f->ledger).n > 0,
                            .refused = fleet_counters_refused(f->counters)};

    assert(f->magic == FLEET_MAGIC);
    ledger_waiting(f->ledger, &now.waiting);
    if (f->phase == FLEET_READY) {
        observer_snapshot(f->observer, a, held);
        now.held = held;
    }
    return now;
}

/* GPUPools first: a node is in the one that grants it. */
static void look(struct fleet *f, struct arena *a, struct fleet_watch_view *ret)
{
    const struct config *c = f->o.config;
    struct grants_view grants = grants_view(f->grants);
    struct fleet_watch_pool *pools =
        arena_alloc(a, (grants.n_pools + c->n_pools + 1) * sizeof(*pools));
    size_t n = 0;

    for (; n < grants.n_pools; n++)
        pools[n] = (struct fleet_watch_pool){grants.pools[n].name, grants.pools[n].selector};
    for (size_t i = 0; i < c->n_pools; i++) {
        bool granted = false;

        for (size_t k = 0; k < grants.n_pools && !granted; k++)
            granted = str_eq(grants.pools[k].name, c->pools[i].name);
        if (!granted)
            pools[n++] = (struct fleet_watch_pool){c->pools[i].name,
                                                   fact_selector(a, c->pools[i].node_selector)};
    }
    fleet_watch_look(f->watch, a, pools, n, ret);
}

/* What overflowed lives in the arena, which ends here. */
static int sum_failed(struct err *err)
{
    return err_set(err, &ERR_INTERNAL, "a sum of what is held does not fit");
}

static int write_metrics(void *ctx, struct buf *out, struct err *err)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);
    struct fleet_records held;
    struct fleet_now now = now_of(f, a, &held);
    int result = fleet_metrics(a, out, &now, NULL) ? sum_failed(err) : 0;
    struct grants_view granted = grants_view(f->grants);
    struct fleet_watch_view watched;

    grants_metrics(f->grants, out);
    if (f->grants)
        fleet_fairness_metrics(out, &granted);
    if (granted.budgets)
        fleet_budget_metrics(out, &granted, fleet_month_unread_s(f->month));
    fleet_disruptions_metrics(f->disruptions, out);
    if (now.held) {
        fleet_price_metrics(out, f->o.config->pools, f->o.config->n_pools);
        look(f, a, &watched);
        fleet_watch_metrics(out, &watched);
    }
    telemetry_metrics(f->telemetry, now.held, out);
    fleet_counters_metrics(f->counters, out);
    if (f->phase == FLEET_READY)
        fleet_counters_ask(f->counters, now.seen_us);
    arena_free(a);
    return result;
}

static int write_state(void *ctx, struct buf *out, struct err *err)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);
    struct fleet_records held;
    struct fleet_now now = now_of(f, a, &held);
    struct fleet_watch_view watched;
    struct activity_view activity;
    struct exporter_nodes_view exporters;
    bool measured = telemetry_look(f->telemetry, a, &activity);
    bool read = now.held && telemetry_nodes(f->telemetry, a, now.held, &exporters);
    const struct overview o = {.now = &now,
                               .watched = &watched,
                               .activity = measured ? &activity : NULL,
                               .exporters = read ? &exporters : NULL,
                               .grants = grants_view(f->grants),
                               .month = fleet_month_usage(f->month),
                               .month_trouble = fleet_month_trouble(f->month)};
    int result;

    look(f, a, &watched);
    result = fleet_overview_write(a, out, &o, NULL) ? sum_failed(err) : 0;
    if (writes(f) && f->observer)
        fleet_month_ask(f->month);
    arena_free(a);
    return result;
}

static void write_seen(void *ctx, struct buf *out)
{
    struct fleet *f = ctx;
    struct arena *a = arena_new(0);

    buf_add(out, time_format_s(a, ledger_durable_us(f->ledger) / 1000000));
    arena_free(a);
}

static int write_tenant(void *ctx, struct str ns, struct buf *out, struct err *err)
{
    struct fleet *f = ctx;

    return telemetry_tenant(f->telemetry, ns, out, err);
}

int fleet_show(struct fleet *f, const struct fleet_page *page, unsigned *ret_port, struct err *err)
{
    const struct page_options o = {.loop = f->o.loop,
                                   .clock = f->o.clock,
                                   .host = f->host,
                                   .address = page->address,
                                   .certificate = page->certificate,
                                   .key = page->key,
                                   .audience = page->audience,
                                   .write_state = write_state,
                                   .write_seen = write_seen,
                                   .write_tenant = write_tenant,
                                   .ctx = f};

    assert(f->magic == FLEET_MAGIC && !f->page);
    if (fleet_page_open(&o, &f->page, err))
        return -1;
    *ret_port = fleet_page_port(f->page);
    return 0;
}

static void open_counters(struct fleet *f)
{
    const struct counters_options o = {.loop = f->o.loop,
                                       .clock = f->o.clock,
                                       .directory = f->o.config->data_dir,
                                       .location = f->location,
                                       .identity = ledger_identity(f->ledger)};

    f->counters = fleet_counters_new(&o);
}

int fleet_listen(struct fleet *f, const struct fleet_scrapes *scrapes, unsigned *ret_port,
                 struct err *err)
{
    const struct fleet_endpoint_options o = {.loop = f->o.loop,
                                             .address = scrapes->address,
                                             .token = scrapes->token,
                                             .certificate = scrapes->certificate,
                                             .key = scrapes->key,
                                             .write = write_metrics,
                                             .ctx = f};

    assert(f->magic == FLEET_MAGIC && !f->endpoint);
    if (fleet_endpoint_open(&o, &f->endpoint, err))
        return -1;
    if (f->observer)
        open_counters(f);
    *ret_port = fleet_endpoint_port(f->endpoint);
    return 0;
}

/* --- life --- */

/* What the ledger has. */
static void begin_with(struct fleet *f, const struct fleet_records *records)
{
    const struct observer_options o = {.ledger = f->ledger,
                                       .records = records,
                                       .pools = f->o.config->pools,
                                       .n_pools = f->o.config->n_pools,
                                       .devices = claim_watch_devices(f->claims)};

    f->observer = observer_new(&o);
    f->guarantees = guarantees_new(f->ledger, records);
    f->uses = uses_new(f->ledger, records);
}

static int open_ledger(struct fleet *f, struct err *err)
{
    struct fleet_records records;
    struct arena *a;
    int result;

    if (ledger_open(f->location, now_us(f) / 1000000 * 1000000, rng_u64(f->o.rng) >> 1, &f->ledger,
                    err))
        return -1;
    a = arena_new(0);
    result = ledger_read(a, f->location, LEDGER_OPEN, INT64_MAX, &records, err);
    if (!result)
        begin_with(f, &records);
    arena_free(a);
    return result;
}

static void open_telemetry(struct fleet *f)
{
    const struct telemetry_options o = {.loop = f->o.loop,
                                        .clock = f->o.clock,
                                        .host = f->host,
                                        .config = f->o.config,
                                        .secret = ledger_identity(f->ledger),
                                        .changed = on_shown_changed,
                                        .ctx = f};

    if (f->o.config->dcgm)
        f->telemetry = telemetry_new(&o);
}

static void on_ledger_opened(void *ctx, const struct fleet_records *records)
{
    struct fleet *f = ctx;

    if (!writes(f))
        return;
    begin_with(f, records);
    if (f->endpoint)
        open_counters(f);
    open_telemetry(f);
    observe(f);
}

/* One line for each trouble, and one for its end. */
static void on_ledger_changed(void *ctx)
{
    struct fleet *f = ctx;
    struct str trouble = ledger_trouble(f->ledger);
    struct ledger_waiting waiting;

    if (trouble.n && !f->warned) {
        ledger_waiting(f->ledger, &waiting);
        log_warn("fleet: the ledger cannot be written, and is tried again error=\"%.*s\" "
                 "waiting=%zu",
                 STR_F(trouble), waiting.rows);
    }
    if (!trouble.n && f->warned)
        log_info("fleet: the ledger is written again");
    f->warned = trouble.n > 0;
}

static void on_ledger_failed(void *ctx, const struct err *err)
{
    fail(ctx, err);
}

static void open_remote_ledger(struct fleet *f)
{
    const struct ledger_remote_options o = {.loop = f->o.loop,
                                            .clock = f->o.clock,
                                            .location = f->location,
                                            .identity = rng_u64(f->o.rng) >> 1,
                                            .opened = on_ledger_opened,
                                            .changed = on_ledger_changed,
                                            .failed = on_ledger_failed,
                                            .ctx = f};

    f->ledger = ledger_open_remote(&o);
}

static void release_all(struct fleet *f)
{
    f->observer = observer_free(f->observer);
    f->guarantees = guarantees_free(f->guarantees);
    f->uses = uses_free(f->uses);
    f->disruptions = fleet_disruptions_free(f->disruptions);
    f->watch = fleet_watch_free(f->watch);
    f->claims = claim_watch_free(f->claims);
    f->ledger = ledger_close(f->ledger);
    mem_free(f->location.p);
    f->magic = 0;
    mem_free(f);
}

static void open_month(struct fleet *f)
{
    const struct month_options o = {.loop = f->o.loop,
                                    .clock = f->o.clock,
                                    .location = f->location,
                                    .changed = on_month,
                                    .ctx = f};

    f->month = fleet_month_new(&o);
}

static struct str location_of(const struct config *c)
{
    struct buf location = BUF_INIT(0);

    buf_addc(&location, c->ledger_postgres.n ? LEDGER_REMOTE : "");
    buf_add(&location, c->ledger_postgres.n ? c->ledger_postgres : c->data_dir);
    return buf_take(&location);
}

int fleet_new(const struct fleet_options *options, struct fleet **ret, struct err *err)
{
    const struct config *c = options->config;
    struct fleet *f = NEW(struct fleet);
    struct host_options host = {.loop = options->loop,
                                .clock = options->clock,
                                .rng = options->rng,
                                .kubeconfig = c->host_kubeconfig,
                                .qps = c->host_qps,
                                .burst = c->host_burst};

    *f = (struct fleet){.magic = FLEET_MAGIC, .o = *options, .watch = fleet_watch_new()};
    f->disruptions = fleet_disruptions_new();
    f->location = location_of(c);
    open_claims(f);
    if (ledger_is_remote(f->location))
        open_remote_ledger(f);
    else if (open_ledger(f, err)) {
        release_all(f);
        return -1;
    }
    if (host_open(&host, &f->host, err)) {
        release_all(f);
        return -1;
    }
    open_month(f);
    uv_timer_init(options->loop, &f->beat);
    uv_prepare_init(options->loop, &f->prepare);
    f->beat.data = f->prepare.data = f;
    uv_prepare_start(&f->prepare, on_prepare);
    open_lease(f);
    if (f->observer)
        open_telemetry(f);
    *ret = f;
    return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct fleet *f = handle->data;
    void (*closed)(void *ctx) = f->closed;
    void *ctx = f->closed_ctx;

    if (--f->open_handles)
        return;
    release_all(f);
    closed(ctx);
}

static void on_endpoint_closed(void *ctx)
{
    struct fleet *f = ctx;

    f->counters = fleet_counters_free(f->counters);
    f->open_handles = 2;
    uv_close((uv_handle_t *)&f->beat, on_handle_closed);
    uv_close((uv_handle_t *)&f->prepare, on_handle_closed);
}

static void on_host_closed(void *ctx)
{
    struct fleet *f = ctx;

    if (f->endpoint)
        fleet_endpoint_close(f->endpoint, on_endpoint_closed, f);
    else
        on_endpoint_closed(f);
}

static void on_grants_closed(void *ctx)
{
    struct fleet *f = ctx;

    host_close(f->host, on_host_closed, f);
}

static void on_telemetry_closed(void *ctx)
{
    struct fleet *f = ctx;
    struct grants *grants = f->grants;

    f->grants = NULL; /* a scrape may still come */
    if (grants)
        grants_close(grants, on_grants_closed, f);
    else
        on_grants_closed(f);
}

static void on_page_closed(void *ctx)
{
    struct fleet *f = ctx;
    struct telemetry *telemetry = f->telemetry;

    f->page = NULL;
    f->month = fleet_month_free(f->month);
    host_stop(f->host);
    f->nodes = reflector_close(f->nodes);
    f->pods = reflector_close(f->pods);
    f->claims = claim_watch_free(f->claims);
    fleet_lease_close(f->lease);
    f->telemetry = NULL;
    if (telemetry)
        telemetry_close(telemetry, on_telemetry_closed, f);
    else
        on_telemetry_closed(f);
}

static void on_released(void *ctx)
{
    struct fleet *f = ctx;

    if (f->page)
        fleet_page_close(f->page, on_page_closed, f);
    else
        on_page_closed(f);
}

/* What a server did not take by then is lost: the next process has a gap there. */
static void on_flushed(void *ctx)
{
    struct fleet *f = ctx;
    struct ledger_waiting waiting;

    ledger_waiting(f->ledger, &waiting);
    if (waiting.rows)
        log_error("fleet: it ends with rows that the ledger has not rows=%zu", waiting.rows);
    ledger_drop(f->ledger);
    fleet_lease_release(f->lease, on_released, f);
}

void fleet_close(struct fleet *f, void (*closed)(void *ctx), void *ctx)
{
    struct err err;

    assert(f->magic == FLEET_MAGIC);
    f->closed = closed;
    f->closed_ctx = ctx;
    uv_timer_stop(&f->beat);
    grants_stop(f->grants);
    beat(f);
    err_init(&err, NULL);
    if (writes(f))
        check(f, ledger_commit(f->ledger, &err), &err);
    enter(f, FLEET_CLOSING);
    ledger_flush(f->ledger, FLUSH_MS, on_flushed, f);
}
