/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Fairness between users. Why: requests run one after another on one loop, so a client that sends a
 * hundred lists in one packet occupies it for all of them. Upstream limits seats; here time is
 * limited: a flow may use a slice of it per turn of the loop, its other requests wait, and waiting
 * flows take turns, levels by their shares. Seats (requests whose answers wait for the disk or the
 * host) are limited as well. The usual case, a flow with an empty queue and time left, costs one
 * look-up and reads the clock. It must never make a flow wait for itself alone, and never queue
 * without a bound. Source for names and limits: k8s.io/apiserver pkg/util/flowcontrol. */
#include "flow.h"

#include <assert.h>
#include <string.h>

#include <sublet/metrics.h>
#include <sublet/net.h>

#define SLICE_US        2000 /* of the loop, per flow and turn */
#define TURN_US         8000 /* for all queued requests, before the loop polls its sockets again */
#define MOST_WAITING    1500 /* over all flows; below net's own limit of requests in progress */
#define MOST_BYTES      (64u << 20) /* of answers of one flow that are not sent */
#define MOST_BODIES     (16u << 20) /* of queued requests of one flow; net holds 64 MiB in all */
#define IDLE_FLOWS      256         /* kept for their next request */
#define DEFAULT_WRITES  200
#define DEFAULT_READS   400
#define DEFAULT_STREAMS 2000 /* of one user */
#define DEFAULT_ALL     4000 /* streams of all users */
#define WAIT_PART       4    /* the longest wait is this part of the deadline, as upstream */

struct flows {
    struct vapi *api;
    struct flow_levels levels;
    struct flow_rules *rules;
    struct flow_keep *keep;
    struct flow *all;
    uv_idle_t idle;
    unsigned running[2], waiting; /* reads, writes */
    unsigned most_running[2], most_streams, most_streams_all, streams;
    uint64_t rejected[4], queued_us, n_queued;
    bool pumping;
};

enum why { WHY_QUEUE_FULL, WHY_STREAMS, WHY_TIME_OUT, WHY_MEMORY };
static const char *const WHYS[] = {"queue-full", "concurrency-limit", "time-out", "memory"};

static uint64_t now_us(void)
{
    return uv_hrtime() / 1000;
}

/* ---- open and close ---- */

static unsigned limit_of(int64_t configured, unsigned otherwise)
{
    return configured > 0 ? (unsigned)configured : otherwise;
}

void flow_open(struct vapi *api)
{
    const struct config *config = vapi_config(api);
    struct flows *f = NEW(struct flows);

    f->api = api;
    f->most_running[0] = limit_of(config ? config->max_reading : 0, DEFAULT_READS);
    f->most_running[1] = limit_of(config ? config->max_mutating : 0, DEFAULT_WRITES);
    f->most_streams = limit_of(config ? config->max_watches : 0, DEFAULT_STREAMS);
    f->most_streams_all = limit_of(config ? config->max_watches_all : 0, DEFAULT_ALL);
    uv_idle_init(api->o.loop, &f->idle);
    f->idle.data = f;
    api->open_handles++;
    api->flows = f;
}

void flow_start(struct vapi *api)
{
    struct flows *f = api->flows;

    f->keep = flow_keep_start(api);
    f->rules = flow_rules_load(api, &f->levels);
}

static void on_closed(uv_handle_t *handle)
{
    struct flows *f = handle->data;

    api_handle_closed(f->api);
}

void flow_close(struct vapi *api)
{
    struct flows *f = api->flows;

    flow_keep_close(f->keep);
    f->keep = NULL;
    uv_close((uv_handle_t *)&f->idle, on_closed);
}

static void free_flow(struct flows *f, struct flow *flow)
{
    assert(!flow->refs && !flow->waiting);
    HASH_DEL(f->all, flow);
    flow->level->refs--;
    mem_free(flow->key);
    mem_free(flow);
}

void flow_free(struct vapi *api)
{
    struct flows *f = api->flows;
    struct flow *flow, *next;

    HASH_ITER(hh, f->all, flow, next)
    {
        free_flow(f, flow);
    }
    flow_rules_free(f->rules);
    while (!SLIST_EMPTY(&f->levels)) {
        struct flow_level *l = SLIST_FIRST(&f->levels);

        SLIST_REMOVE_HEAD(&f->levels, place);
        mem_free(l->name);
        mem_free(l);
    }
    api->flows = mem_free(f);
}

/* ---- flow of a request ---- */

static void sweep_idle(struct flows *f)
{
    struct flow *flow, *next;

    if (HASH_COUNT(f->all) < IDLE_FLOWS)
        return;
    HASH_ITER(hh, f->all, flow, next)
    {
        if (!flow->refs)
            free_flow(f, flow);
    }
}

static struct flow *new_flow(struct flows *f, struct str key, struct flow_level *level)
{
    struct flow *flow;

    sweep_idle(f);
    flow = NEW(struct flow);
    flow->key = mem_strdup(key);
    flow->n_key = key.n;
    flow->level = level;
    level->refs++;
    TAILQ_INIT(&flow->queue);
    HASH_ADD_KEYPTR(hh, f->all, flow->key, flow->n_key, flow);
    return flow;
}

static struct str distinguish(const struct flow_schema *s, const struct call *c,
                              const struct attributes *what)
{
    if (s->by == FLOW_BY_NAMESPACE)
        return what->ns;
    return s->by == FLOW_BY_USER ? c->user.name : STR("");
}

/* One look-up, no allocation. Reads and writes of a user are two flows: a read that waits for a
 * seat must not block a write, nor the reverse. */
static struct flow *find_flow(struct flows *f, struct call *c, const struct flow_schema *s,
                              const struct attributes *what)
{
    struct str name = str_c(s->name), by = distinguish(s, c, what);
    char room[320];
    struct flow *flow;
    size_t n;

    name = str_sub(name, 0, 64);
    by = str_sub(by, 0, sizeof(room) - 1 - name.n);
    memcpy(room, name.p, name.n);
    room[name.n] = call_entry(c)->mutating ? '!' : '/';
    n = name.n + 1;
    if (by.n)
        memcpy(room + n, by.p, by.n);
    n += by.n;
    HASH_FIND(hh, f->all, room, n, flow);
    if (!flow)
        return new_flow(f, (struct str){room, n}, s->level);
    if (flow->level != s->level && !flow->refs) {
        flow->level->refs--;
        flow->level = s->level;
        flow->level->refs++;
    }
    return flow;
}

/* ---- stages ---- */

static void enter(struct call_entry *e, enum flow_stage to)
{
    static const unsigned next[] = {
        [FLOW_OUTSIDE] = 1u << FLOW_WAITING | 1u << FLOW_SEATED,
        [FLOW_WAITING] = 1u << FLOW_SEATED | 1u << FLOW_LEFT,
        [FLOW_SEATED] = 1u << FLOW_LEFT,
        [FLOW_LEFT] = 0,
    };

    assert(next[e->flow_stage] & 1u << to);
    e->flow_stage = to;
}

/* ---- seats ---- */

static unsigned kind_of(const struct call_entry *e)
{
    return e->mutating ? 1 : 0;
}

static bool has_seat(const struct flows *f, const struct flow *flow, unsigned kind)
{
    return flow->level->exempt || f->running[kind] < f->most_running[kind];
}

static bool has_time(const struct flows *f, struct flow *flow)
{
    uint64_t turn = uv_now(f->api->o.loop);

    if (flow->turn_ms != turn) {
        flow->turn_ms = turn;
        flow->spent_us = 0;
    }
    return flow->spent_us < SLICE_US;
}

/* ---- running ---- */

static void charge(struct flow *flow, uint64_t us)
{
    struct flow_level *level = flow->level;

    flow->spent_us += us;
    level->virtual_us += us * 100 / (uint64_t)(level->shares ? level->shares : 1);
}

static void run_now(struct flows *f, struct call_entry *e)
{
    struct flow *flow = e->flow;
    struct flow_level *level = flow->level;
    uint64_t began = now_us();

    enter(e, FLOW_SEATED);
    f->running[kind_of(e)]++;
    flow->running++;
    level->running++;
    level->dispatched++;
    flow->refs++; /* keeps the flow, whatever happens to the call */
    e->run(e->run_ctx);
    charge(flow, now_us() - began);
    flow->refs--;
}

void flow_hold(struct flow *flow)
{
    if (flow)
        flow->refs++;
}

void flow_spend(struct vapi *api, struct flow *flow, uint64_t us)
{
    if (!flow)
        return;
    (void)has_time(api->flows, flow); /* of this turn of the loop */
    charge(flow, us);
    flow->refs--;
}

static void wake(struct flows *f);

void flow_leave(struct call *c)
{
    struct call_entry *e = call_entry(c);
    struct flows *f = c->api->flows;

    if (e->flow_stage != FLOW_SEATED)
        return;
    enter(e, FLOW_LEFT);
    f->running[kind_of(e)]--;
    e->flow->running--;
    e->flow->level->running--;
    if (f->waiting)
        wake(f);
}

void flow_stream(struct call *c)
{
    flow_leave(c);
    budget_leave(c); /* from here on its memory is counted by the heap */
}

void flow_answer_bytes(struct call *c, size_t n)
{
    struct call_entry *e = call_entry(c);

    if (!e->flow)
        return;
    e->answer_bytes += n;
    e->flow->answer_bytes += n;
}

/* ---- waiting ---- */

static void unqueue(struct flows *f, struct call_entry *e)
{
    struct flow *flow = e->flow;

    TAILQ_REMOVE(&flow->queue, e, in_queue);
    flow->waiting--;
    flow->waiting_bytes -= e->body_bytes;
    flow->level->waiting--;
    f->waiting--;
    if (!flow->waiting)
        TAILQ_REMOVE(&flow->level->ring, flow, in_ring);
}

static void cancel_wait(struct call *c)
{
    unqueue(c->api->flows, call_entry(c));
    enter(call_entry(c), FLOW_LEFT);
}

static void enqueue(struct flows *f, struct call_entry *e)
{
    struct flow *flow = e->flow;

    if (!flow->level->waiting) {
        /* A level that was idle does not receive its unused share. */
        uint64_t least = UINT64_MAX;
        const struct flow_level *l;

        SLIST_FOREACH(l, &f->levels, place)
        {
            if (l->waiting && l->virtual_us < least)
                least = l->virtual_us;
        }
        if (least != UINT64_MAX && flow->level->virtual_us < least)
            flow->level->virtual_us = least;
    }
    if (!flow->waiting)
        TAILQ_INSERT_TAIL(&flow->level->ring, flow, in_ring);
    TAILQ_INSERT_TAIL(&flow->queue, e, in_queue);
    enter(e, FLOW_WAITING);
    e->queued_us = now_us();
    flow->waiting++;
    e->body_bytes = e->call.request->body.n;
    flow->waiting_bytes += e->body_bytes;
    flow->level->waiting++;
    f->waiting++;
    f->n_queued++;
    e->call.cancel = cancel_wait;
    deadline_shorten(&e->call, WAIT_PART);
    wake(f);
}

static void refuse(struct call *c, enum why why)
{
    struct err err;

    c->api->flows->rejected[why]++;
    call_entry(c)->flow->level->rejected++;
    err_init(&err, c->arena);
    if (flow_too_many(&err))
        call_error(c, &err);
}

int flow_too_many(struct err *err)
{
    err_set(err, &ERR_TOO_MANY_REQUESTS, "Too many requests, please try again later.");
    err->retry_after = 1;
    return -1;
}

void flow_timed_out(struct call *c)
{
    c->api->flows->rejected[WHY_TIME_OUT]++;
    call_entry(c)->flow->level->rejected++;
}

/* The first call of a level that may run now; *ret_soon: another only lacks time. */
static struct call_entry *next_in_level(struct flows *f, struct flow_level *l, bool *ret_soon)
{
    struct flow *flow;

    TAILQ_FOREACH(flow, &l->ring, in_ring)
    {
        struct call_entry *e = TAILQ_FIRST(&flow->queue);

        if (!has_seat(f, flow, kind_of(e)) || flow->answer_bytes > MOST_BYTES)
            continue;
        if (!has_time(f, flow)) {
            *ret_soon = true;
            continue;
        }
        TAILQ_REMOVE(&l->ring, flow, in_ring);
        TAILQ_INSERT_TAIL(&l->ring, flow, in_ring);
        return e;
    }
    return NULL;
}

/* Picks the level with the least time by its share; within it, the next flow in turn. */
static struct call_entry *next_entry(struct flows *f, bool *ret_soon)
{
    struct call_entry *best = NULL;
    struct flow_level *l;

    SLIST_FOREACH(l, &f->levels, place)
    {
        struct call_entry *e;

        if (!l->waiting || (best && best->flow->level->virtual_us <= l->virtual_us))
            continue;
        e = next_in_level(f, l, ret_soon);
        if (e)
            best = e;
    }
    return best;
}

static void on_idle(uv_idle_t *handle)
{
    struct flows *f = handle->data;
    uint64_t began = now_us();
    struct call_entry *e = NULL;
    bool soon = false;

    while (now_us() - began < TURN_US && (e = next_entry(f, &soon)) != NULL) {
        struct call *c = &e->call;

        unqueue(f, e);
        e->queued_us = now_us() - e->queued_us;
        f->queued_us += e->queued_us;
        c->cancel = NULL;
        deadline_restore(c);
        run_now(f, e);
        deadline_watch(c);
    }
    if (!e && !soon)
        uv_idle_stop(&f->idle);
}

static void wake(struct flows *f)
{
    if (!uv_is_closing((uv_handle_t *)&f->idle))
        uv_idle_start(&f->idle, on_idle);
}

/* ---- entering and leaving ---- */

static void know_rules(struct flows *f)
{
    if (!f->keep || !flow_keep_changed(f->keep))
        return;
    flow_rules_free(f->rules);
    f->rules = flow_rules_load(f->api, &f->levels);
}

static bool waits_too_many(const struct flows *f, const struct flow *flow, size_t body)
{
    const struct flow_level *l = flow->level;

    if (f->waiting >= MOST_WAITING || flow->waiting_bytes + body > MOST_BODIES)
        return true;
    return !l->exempt && (l->reject || (int64_t)flow->waiting >= l->most_waiting);
}

void flow_enter(struct call *c, const struct attributes *what, void (*run)(void *ctx), void *ctx)
{
    struct flows *f = c->api->flows;
    struct call_entry *e = call_entry(c);
    const struct flow_schema *s;
    struct flow *flow;

    know_rules(f);
    s = flow_rules_match(f->rules, &c->user, what);
    e->mutating = c->request->method != NET_GET && c->request->method != NET_HEAD;
    flow = find_flow(f, c, s, what);
    e->flow = flow;
    e->flow_uid = arena_str(c->arena, str_c(s->uid));
    e->level_uid = arena_str(c->arena, str_c(s->level->uid));
    e->run = run;
    e->run_ctx = ctx;
    flow->refs++;
    flow->streams += e->long_running;
    f->streams += e->long_running;
    if (e->long_running && (flow->streams > f->most_streams || f->streams > f->most_streams_all))
        refuse(c, WHY_STREAMS);
    else if (!budget_enter(c, what))
        refuse(c, WHY_MEMORY);
    else if (!flow->waiting && has_seat(f, flow, kind_of(e)) && flow->answer_bytes <= MOST_BYTES &&
             has_time(f, flow))
        run_now(f, e);
    else if (waits_too_many(f, flow, c->request->body.n))
        refuse(c, WHY_QUEUE_FULL);
    else
        enqueue(f, e);
}

void flow_end(struct call *c)
{
    struct call_entry *e = call_entry(c);
    struct flows *f = c->api->flows;
    struct flow *flow = e->flow;

    if (!flow)
        return;
    if (e->flow_stage == FLOW_WAITING)
        cancel_wait(c);
    flow_leave(c);
    budget_leave(c);
    flow->streams -= e->long_running;
    f->streams -= e->long_running;
    flow->answer_bytes -= e->answer_bytes;
    flow->refs--;
    e->flow = NULL;
    if (f->waiting)
        wake(f);
}

/* ---- metrics ---- */

static void write_levels(const struct flows *f, struct buf *out, enum metric metric,
                         uint64_t (*value)(const struct flow_level *l))
{
    struct buf labels = BUF_INIT(0);
    const struct flow_level *l;

    metrics_family(out, metric);
    SLIST_FOREACH(l, &f->levels, place)
    {
        buf_clear(&labels);
        metrics_label(&labels, "priority_level", str_c(l->name));
        metrics_sample_u64(out, metric, buf_str(&labels), value(l));
    }
    buf_fini(&labels);
}

static uint64_t running_of(const struct flow_level *l)
{
    return l->running;
}

static uint64_t waiting_of(const struct flow_level *l)
{
    return l->waiting;
}

static uint64_t dispatched_of(const struct flow_level *l)
{
    return l->dispatched;
}

static uint64_t rejected_of(const struct flow_level *l)
{
    return l->rejected;
}

void flow_metrics(struct vapi *api, struct buf *out)
{
    const struct flows *f = api->flows;
    struct buf labels = BUF_INIT(0);

    metrics_family(out, METRIC_INFLIGHT);
    metrics_sample_u64(out, METRIC_INFLIGHT, STR("request_kind=\"mutating\""), f->running[1]);
    metrics_sample_u64(out, METRIC_INFLIGHT, STR("request_kind=\"readOnly\""), f->running[0]);

    write_levels(f, out, METRIC_LEVEL_EXECUTING, running_of);
    write_levels(f, out, METRIC_LEVEL_QUEUED, waiting_of);
    write_levels(f, out, METRIC_LEVEL_DISPATCHED, dispatched_of);
    write_levels(f, out, METRIC_LEVEL_REJECTED, rejected_of);
    metrics_family(out, METRIC_REFUSED);
    for (size_t i = 0; i < COUNT(WHYS); i++) {
        buf_clear(&labels);
        metrics_label(&labels, "reason", str_c(WHYS[i]));
        metrics_sample_u64(out, METRIC_REFUSED, buf_str(&labels), f->rejected[i]);
    }
    buf_fini(&labels);
    metrics_single_u64(out, METRIC_QUEUED, f->n_queued);
    metrics_single(out, METRIC_QUEUED_SECONDS, (double)f->queued_us / 1e6);
}
