/* SPDX-License-Identifier: Apache-2.0 */
/* Reads exporters. Why over their pods' addresses: there is no right for it that the fleet lacks,
 * and no Service that would answer for another node. Must never block the loop, have more than a
 * few requests and bytes of answers under way, let servers that hang delay those that answer, read
 * at an address that is not one of a Ready pod, or read a server again at once because it fails.
 *
 *   pods (reflector) -> turns.c: who is next -> host_get -> answered()
 *                        ^---- after the interval, longer after failures ----'
 */
#include "exporters.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#include <arpa/inet.h>
#include <uv.h>

#include <sublet/hash.h>
#include <sublet/host_get.h>
#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/object.h>
#include <sublet/reflector.h>

#include "dcgm.h"
#include "turns.h"

#define EXPORTERS_MAGIC 0x65787073u
#define TIMEOUT_MS      10000
#define MOST_HELD       ((size_t)16 << 20) /* bytes of answers under way, in each lane */
#define SPREAD_MS       10000 /* over which a process that starts spreads its first requests */
#define MOST_BACKOFF    8     /* intervals */
#define ACCEPT          "text/plain;version=0.0.4"

const char *const EXPORTER_STATES[N_EXPORTER_STATES] = {"answering", "failing", "new"};
const char *const EXPORTER_FAILURES[N_EXPORTER_FAILURES] = {
    [EXPORTER_TIMEOUT] = "timeout", [EXPORTER_UNREACHABLE] = "unreachable",
    [EXPORTER_BROKEN] = "broken",   [EXPORTER_TLS] = "tls",
    [EXPORTER_STATUS] = "status",   [EXPORTER_TOO_LARGE] = "too-large",
    [EXPORTER_MEMORY] = "memory",   [EXPORTER_PARSE] = "parse",
};

struct exporter {
    struct map_entry by_name;
    struct turn turn;
    struct exporters *all;
    struct str name, node, server; /* on the heap */
    enum exporter_state state;
    enum exporter_failure why; /* of one that is failing */
    int64_t since_ms;          /* of its last answer, or of its begin */
    unsigned failures;         /* in a row, as far as they count */
    struct host_get *get;      /* NULL: none is under way */
};
struct exporters {
    unsigned magic;
    struct exporters_options o;
    struct str path; /* on the heap */
    struct reflector *pods;
    struct map by_name;
    uv_timer_t timer;
    struct turns turns;
    struct host_get_budget budgets[N_TURN_LANES];
    uint64_t failures[N_EXPORTER_FAILURES];
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void step(struct exporters *e);

static void on_went_back(void *ctx)
{
    exporters_restart(ctx);
}

static int64_t now_ms(const struct exporters *e)
{
    return clock_mono_ms(e->o.clock);
}

/* --- one exporter --- */

static void free_exporter(struct exporter *x)
{
    struct exporters *e = x->all;

    host_get_cancel(x->get);
    exporter_turns_remove(&e->turns, &x->turn);
    map_remove(&e->by_name, &x->by_name);
    mem_free(x->name.p);
    mem_free(x->node.p);
    mem_free(x->server.p);
    mem_free(x);
}

/* What Go's server answers to a request in the clear. */
static bool wants_tls(const struct host_get_answer *answer)
{
    return answer->status == 400 && str_contains(answer->body, STR("to an HTTPS server"));
}

static enum exporter_failure why_of(const struct host_get_answer *answer, const struct err *err)
{
    if (!err)
        return EXPORTER_PARSE;
    if (err->kind == &ERR_TOO_LARGE)
        return EXPORTER_TOO_LARGE;
    if (err->kind == &ERR_TOO_MANY_REQUESTS)
        return EXPORTER_MEMORY;
    if (answer->status)
        return wants_tls(answer) ? EXPORTER_TLS : EXPORTER_STATUS;
    return answer->trouble == HOST_TIMEOUT   ? EXPORTER_TIMEOUT
           : answer->trouble == HOST_REFUSED ? EXPORTER_UNREACHABLE
                                             : EXPORTER_BROKEN;
}

/* The first failure of a row is logged, and another reason. */
static void note_failure(struct exporter *x, enum exporter_failure why, const struct err *err)
{
    if (x->state != EXPORTER_FAILING || x->why != why)
        log_warn("fleet: an exporter fails node=\"%.*s\" reason=%s error=\"%.*s\"", STR_F(x->node),
                 EXPORTER_FAILURES[why], STR_F(err ? err->message : STR("")));
    x->state = EXPORTER_FAILING;
    x->why = why;
    x->all->failures[why]++;
    x->failures = x->failures * 2 + 1;
    if (x->failures >= MOST_BACKOFF)
        x->failures = MOST_BACKOFF - 1;
}

static void on_answer(void *ctx, const struct host_get_answer *answer, const struct err *err)
{
    struct exporter *x = ctx;
    struct exporters *e = x->all;
    bool good;

    assert(e->magic == EXPORTERS_MAGIC && x->get);
    x->get = NULL;
    good = !err && e->o.answered(e->o.ctx, x->node, answer->body);
    if (good) {
        x->state = EXPORTER_ANSWERING;
        x->since_ms = now_ms(e);
        x->failures = 0;
    } else {
        note_failure(x, why_of(answer, err), err);
    }
    exporter_turns_end(&e->turns, &x->turn, good,
                       now_ms(e) + e->o.interval_ms * (1 + (int64_t)x->failures));
    step(e);
}

static void read_exporter(struct exporter *x)
{
    struct exporters *e = x->all;
    const struct host_get_options o = {.loop = e->o.loop,
                                       .clock = e->o.clock,
                                       .server = x->server,
                                       .path = e->path,
                                       .accept = ACCEPT,
                                       .max_bytes = DCGM_MOST_BYTES,
                                       .budget = &e->budgets[x->turn.lane],
                                       .timeout_ms = TIMEOUT_MS};

    x->get = host_get_send(&o, on_answer, x);
}

/* --- which is next --- */

static void on_timer(uv_timer_t *timer)
{
    struct exporters *e = timer->data;

    assert(e->magic == EXPORTERS_MAGIC);
    step(e);
}

/* Sends what is due, as far as may be under way, and waits for the next one. */
static void step(struct exporters *e)
{
    struct turn *turn;
    int64_t wait = 0;

    uv_timer_stop(&e->timer);
    while ((turn = exporter_turns_next(&e->turns, now_ms(e), &wait)) != NULL)
        read_exporter(CONTAINER(turn, struct exporter, turn));
    if (wait != INT64_MAX)
        uv_timer_start(&e->timer, on_timer, (uint64_t)wait, 0);
}

/* --- pods --- */

static void reduce(struct arena *a, cJSON *pod)
{
    cJSON *conditions = json_copy(a, json_path(pod, "status.conditions"));

    json_set(a, pod, "spec", json_object(a, JSON("nodeName", json_str_at(pod, "spec.nodeName"))));
    json_set(a, pod, "status",
             json_object(a, JSON("podIP", json_str_at(pod, "status.podIP")),
                         JSON("conditions", conditions)));
}

/* STR(""): it has no address. */
static struct str server_of(const struct exporters *e, struct arena *a, const cJSON *pod)
{
    const char *address = arena_cstr(a, json_str_at(pod, "status.podIP"));
    unsigned char out[sizeof(struct in6_addr)];

    if (inet_pton(AF_INET, address, out) == 1)
        return arena_printf(a, "http://%s:%u", address, e->o.port);
    if (inet_pton(AF_INET6, address, out) == 1)
        return arena_printf(a, "http://[%s]:%u", address, e->o.port);
    return STR("");
}

static void add_exporter(struct exporters *e, struct str name, struct str node, struct str server)
{
    int64_t spread = e->o.interval_ms < SPREAD_MS ? e->o.interval_ms : SPREAD_MS;
    struct exporter *x;

    if (map_count(&e->by_name) >= EXPORTERS_MOST) {
        log_warn("fleet: more than %d exporters: the others are not read", EXPORTERS_MOST);
        return;
    }
    x = NEW(struct exporter);
    *x = (struct exporter){.all = e,
                           .name = mem_str(name),
                           .node = mem_str(node),
                           .server = mem_str(server),
                           .state = EXPORTER_NEW,
                           .since_ms = now_ms(e)};
    exporter_turns_add(&e->turns, &x->turn, x->node,
                       now_ms(e) + (int64_t)(str_hash(name, hash_seed()) % (uint64_t)spread));
    map_put(&e->by_name, &x->by_name, x->name);
}

static void on_pod(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct exporters *e = ctx;
    struct str name = (now ? now : before)->name, node = STR(""), server = STR("");
    struct map_entry *entry = map_get(&e->by_name, name);
    struct exporter *x = entry ? CONTAINER(entry, struct exporter, by_name) : NULL;
    struct arena *a = arena_new(0);
    cJSON *pod = NULL;

    assert(e->magic == EXPORTERS_MAGIC);
    if (now && !json_parse(a, now->bytes, &pod, NULL) && pod_is_ready(pod)) {
        node = json_str_at(pod, "spec.nodeName");
        server = server_of(e, a, pod);
    }
    if (x && (!str_eq(x->server, server) || !str_eq(x->node, node))) {
        free_exporter(x);
        x = NULL;
    }
    if (!x && server.n && node.n)
        add_exporter(e, name, node, server);
    arena_free(a);
    step(e);
}

/* --- what follows, life --- */

struct look {
    struct exporters_view view;
    int64_t since_ms;
};

static void count(void *ctx, struct map_entry *entry)
{
    const struct exporter *x = CONTAINER(entry, struct exporter, by_name);
    struct look *l = ctx;

    l->view.n[x->state]++;
    l->since_ms = x->since_ms < l->since_ms ? x->since_ms : l->since_ms;
}

struct exporters_view exporters_look(const struct exporters *e)
{
    struct look l = {.since_ms = now_ms(e)};
    struct map all = e->by_name;

    memcpy(l.view.failures, e->failures, sizeof(e->failures));
    map_each(&all, count, &l);
    l.view.age_ms = now_ms(e) - l.since_ms;
    return l.view;
}

struct visit {
    void (*visit)(void *ctx, const struct exporter_row *row);
    void *ctx;
    int64_t now_ms;
};

static void show(void *ctx, struct map_entry *entry)
{
    const struct exporter *x = CONTAINER(entry, struct exporter, by_name);
    const struct visit *v = ctx;
    const struct exporter_row row = {x->node, x->state, x->why, v->now_ms - x->since_ms};

    v->visit(v->ctx, &row);
}

void exporters_each(const struct exporters *e,
                    void (*visit)(void *ctx, const struct exporter_row *row), void *ctx)
{
    struct visit v = {visit, ctx, now_ms(e)};
    struct map all = e->by_name;

    map_each(&all, show, &v);
}

struct exporters *exporters_open(const struct exporters_options *options)
{
    struct exporters *e = NEW(struct exporters);
    struct arena *a = arena_new(0);
    struct reflector_options pods = {
        .host = options->host,
        .path = arena_printf(a, "/api/v1/namespaces/%.*s/pods", STR_F(options->host_namespace)),
        .label_selector = options->selector,
        .reduce = reduce,
        .changed = on_pod,
        .went_back = on_went_back,
        .ctx = e};

    *e =
        (struct exporters){.magic = EXPORTERS_MAGIC, .o = *options, .path = mem_str(options->path)};
    exporter_turns_init(&e->turns);
    for (size_t i = 0; i < N_TURN_LANES; i++)
        e->budgets[i].most = MOST_HELD;
    uv_timer_init(options->loop, &e->timer);
    e->timer.data = e;
    e->pods = reflector_open(&pods);
    arena_free(a);
    return e;
}

void exporters_restart(struct exporters *e)
{
    if (e)
        reflector_restart(e->pods);
}

static void drop(void *ctx, struct map_entry *entry)
{
    (void)ctx;
    free_exporter(CONTAINER(entry, struct exporter, by_name));
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct exporters *e = handle->data;
    void (*closed)(void *ctx) = e->closed;
    void *ctx = e->closed_ctx;

    mem_free(e->path.p);
    e->magic = 0;
    mem_free(e);
    closed(ctx);
}

void exporters_close(struct exporters *e, void (*closed)(void *ctx), void *ctx)
{
    assert(e->magic == EXPORTERS_MAGIC);
    e->closed = closed;
    e->closed_ctx = ctx;
    e->pods = reflector_close(e->pods);
    map_each(&e->by_name, drop, e);
    uv_timer_stop(&e->timer);
    uv_close((uv_handle_t *)&e->timer, on_timer_closed);
}
