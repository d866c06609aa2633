/* SPDX-License-Identifier: Apache-2.0 */
/* Leader election among processes of the fleet. Must not act on a Lease that may have expired: the
 * last quarter of its duration is for requests under way. Clocks of two machines are never
 * compared: another holder's Lease expires when it did not change for its duration by our own
 * clock.
 *
 *   READ --ours, free, expired--> WRITE --answered--> held, WRITE again after a third of the time
 *    ^ '----- of another -----.     '--- conflict, failure ---> READ
 *    '---- after a while -----'
 */
#include "lease.h"

#include <assert.h>

#include <uv.h>

#include <sublet/json_build.h>

#define LEASE_MAGIC     0x666c6561u
#define RELEASE_MS      1000
#define RETRY_MS        500
#define LONGEST_POLL_MS 5000

/* SEEKING --written--> HELD --another has it, not renewed in time--> LOST --close--> CLOSED
 *    |                   '---------------------close-----------------------------------^
 *    '---no right to it--> LOST
 * The release (released is set) may come in any of them before CLOSED. */
enum lease_phase { LEASE_SEEKING, LEASE_HELD, LEASE_LOST, LEASE_CLOSED, N_LEASE_PHASES };
enum lease_request { REQUEST_NONE, REQUEST_READ, REQUEST_WRITE, REQUEST_RELEASE };

struct fleet_lease {
    unsigned magic;
    enum lease_phase phase;
    struct fleet_lease_options o;
    struct arena *seen; /* of the Lease as last read */
    struct str version, holder;
    int64_t transitions;
    int64_t since_ms, seen_duration_ms; /* since when it is at this version */
    struct host_call *call;
    enum lease_request request;
    int64_t sent_ms, confirmed_ms;
    uv_timer_t timer;
    void (*released)(void *ctx);
    void *released_ctx;
};

static void send_read(struct fleet_lease *l);
static void send_write(struct fleet_lease *l, bool release);

static int64_t now_ms(const struct fleet_lease *l)
{
    return clock_mono_ms(l->o.clock);
}

static int64_t acts_until(const struct fleet_lease *l)
{
    return l->confirmed_ms + l->o.duration_ms - l->o.duration_ms / 4;
}

static void enter(struct fleet_lease *l, enum lease_phase to)
{
    static const unsigned next[N_LEASE_PHASES] = {
        [LEASE_SEEKING] = 1u << LEASE_HELD | 1u << LEASE_LOST | 1u << LEASE_CLOSED,
        [LEASE_HELD] = 1u << LEASE_LOST | 1u << LEASE_CLOSED,
        [LEASE_LOST] = 1u << LEASE_CLOSED,
        [LEASE_CLOSED] = 0,
    };

    assert(next[l->phase] & 1u << to);
    l->phase = to;
}

static void end_release(struct fleet_lease *l)
{
    void (*done)(void *ctx) = l->released;

    l->released = NULL;
    uv_timer_stop(&l->timer);
    if (done)
        done(l->released_ctx);
}

static void lose(struct fleet_lease *l, const struct err *err)
{
    if (l->phase == LEASE_LOST)
        return;
    enter(l, LEASE_LOST);
    uv_timer_stop(&l->timer);
    l->o.lost(l->o.ctx, err);
}

static void on_timer(uv_timer_t *timer)
{
    struct fleet_lease *l = timer->data;
    struct err err;

    assert(l->magic == LEASE_MAGIC);
    if (l->released) {
        end_release(l);
    } else if (l->phase == LEASE_HELD && now_ms(l) >= acts_until(l)) {
        err_init(&err, NULL);
        err_set(&err, &ERR_TIMEOUT, "the Lease was not renewed in time");
        lose(l, &err);
    } else if (l->phase == LEASE_HELD && l->version.n) {
        send_write(l, false);
    } else {
        send_read(l);
    }
}

static void again_in(struct fleet_lease *l, int64_t ms)
{
    int64_t left = l->phase == LEASE_HELD ? acts_until(l) - now_ms(l) : ms;

    uv_update_time(l->o.loop);
    uv_timer_start(&l->timer, on_timer, (uint64_t)(left < ms ? (left > 0 ? left : 0) : ms), 0);
}

/* --- the Lease on the host --- */

static void forget(struct fleet_lease *l)
{
    arena_free(l->seen);
    l->seen = NULL;
    l->version = l->holder = STR_NULL;
    l->transitions = 0;
}

static bool learn(struct fleet_lease *l, struct str body)
{
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;
    struct str version;

    if (json_parse(a, body, &tree, NULL) || !json_str_at(tree, "metadata.resourceVersion").n) {
        arena_free(a);
        return false;
    }
    version = json_str_at(tree, "metadata.resourceVersion");
    if (!str_eq(version, l->version))
        l->since_ms = now_ms(l);
    arena_free(l->seen);
    l->seen = a;
    l->version = version;
    l->holder = json_str_at(tree, "spec.holderIdentity");
    l->transitions = json_i64_at(tree, "spec.leaseTransitions", 0);
    l->seen_duration_ms = json_i64_at(tree, "spec.leaseDurationSeconds", 0) * 1000;
    return true;
}

static struct str lease_body(const struct fleet_lease *l, struct arena *a, bool release)
{
    bool ours = str_eq(l->holder, l->o.identity);
    struct str now = time_format_us(a, clock_wall_us(l->o.clock));
    int64_t seconds = release ? 1 : l->o.duration_ms / 1000;

    return json_text(
        a,
        json_object(
            a, JSON("apiVersion", "coordination.k8s.io/v1"), JSON("kind", "Lease"),
            JSON("metadata",
                 json_object(a, JSON("name", l->o.name), JSON("namespace", l->o.host_namespace),
                             JSON_NONEMPTY("resourceVersion", l->version))),
            JSON("spec", json_object(a, JSON("holderIdentity", release ? STR("") : l->o.identity),
                                     JSON_I64("leaseDurationSeconds", seconds),
                                     JSON_I64("leaseTransitions", l->transitions + !ours),
                                     JSON("acquireTime", now), JSON("renewTime", now)))));
}

/* --- requests --- */

static void decide(struct fleet_lease *l)
{
    int64_t left = l->since_ms + l->seen_duration_ms - now_ms(l);
    struct err err;

    if (!l->holder.n || str_eq(l->holder, l->o.identity) || left <= 0) {
        send_write(l, false);
    } else if (l->phase == LEASE_HELD) {
        err_init(&err, NULL);
        err_set(&err, &ERR_CONFLICT, "another process has the Lease: \"%.*s\"", STR_F(l->holder));
        lose(l, &err);
    } else {
        l->o.waiting(l->o.ctx, l->holder);
        again_in(l, left < LONGEST_POLL_MS ? left : LONGEST_POLL_MS);
    }
}

static void on_written(struct fleet_lease *l, const struct host_answer *answer)
{
    bool first = l->phase == LEASE_SEEKING;

    if (!learn(l, answer->body))
        forget(l);
    if (first)
        enter(l, LEASE_HELD);
    l->confirmed_ms = l->sent_ms;
    again_in(l, l->o.duration_ms / 3);
    if (first)
        l->o.held(l->o.ctx);
}

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct fleet_lease *l = ctx;
    enum lease_request request = l->request;

    assert(l->magic == LEASE_MAGIC);
    l->call = NULL;
    l->request = REQUEST_NONE;
    if (l->phase >= LEASE_LOST)
        return;
    if (l->released) {
        if (request == REQUEST_WRITE && !err && learn(l, answer->body))
            send_write(l, true);
        else
            end_release(l);
    } else if (host_err_is_permanent(err)) {
        lose(l, err);
    } else if (request == REQUEST_READ && err && err->kind == &ERR_NOT_FOUND) {
        forget(l);
        send_write(l, false);
    } else if (err) { /* read again: a write may have arrived */
        l->version = STR_NULL;
        again_in(l, RETRY_MS);
    } else if (request == REQUEST_WRITE) {
        on_written(l, answer);
    } else if (learn(l, answer->body)) {
        decide(l);
    } else {
        again_in(l, RETRY_MS);
    }
}

static void send_request(struct fleet_lease *l, enum lease_request what, const char *method,
                         bool named, struct str body)
{
    struct arena *a = arena_new(0);
    struct host_request q = {.method = method, .body = body, .urgent = true, .passes_gate = true};

    q.path = arena_printf(a, "/apis/coordination.k8s.io/v1/namespaces/%.*s/leases%s%.*s",
                          STR_F(l->o.host_namespace), named ? "/" : "",
                          STR_F(named ? l->o.name : STR("")));
    q.timeout_ms = l->o.duration_ms / 4;
    l->request = what;
    l->sent_ms = now_ms(l);
    l->call = host_send(l->o.host, &q, on_answer, l);
    arena_free(a);
}

static void send_read(struct fleet_lease *l)
{
    send_request(l, REQUEST_READ, "GET", true, STR(""));
}

static void send_write(struct fleet_lease *l, bool release)
{
    struct arena *a = arena_new(0);
    bool exists = l->version.n > 0;

    send_request(l, release ? REQUEST_RELEASE : REQUEST_WRITE, exists ? "PUT" : "POST", exists,
                 lease_body(l, a, release));
    arena_free(a);
}

/* --- life --- */

struct fleet_lease *fleet_lease_new(const struct fleet_lease_options *options)
{
    struct fleet_lease *l = NEW(struct fleet_lease);

    *l = (struct fleet_lease){.magic = LEASE_MAGIC, .o = *options};
    l->o.host_namespace = mem_str(options->host_namespace);
    l->o.name = mem_str(options->name);
    l->o.identity = mem_str(options->identity);
    uv_timer_init(l->o.loop, &l->timer);
    l->timer.data = l;
    send_read(l);
    return l;
}

void fleet_lease_release(struct fleet_lease *l, void (*done)(void *ctx), void *ctx)
{
    bool held = l->phase == LEASE_HELD && now_ms(l) < acts_until(l);

    l->released = done;
    l->released_ctx = ctx;
    uv_update_time(l->o.loop);
    uv_timer_start(&l->timer, on_timer, held ? RELEASE_MS : 0, 0);
    if (held && !l->call && l->version.n)
        send_write(l, true);
}

static void on_closed(uv_handle_t *handle)
{
    struct fleet_lease *l = handle->data;

    assert(!l->call);
    forget(l);
    mem_free(l->o.host_namespace.p);
    mem_free(l->o.name.p);
    mem_free(l->o.identity.p);
    l->magic = 0;
    mem_free(l);
}

void fleet_lease_close(struct fleet_lease *l)
{
    assert(l->magic == LEASE_MAGIC);
    enter(l, LEASE_CLOSED);
    host_cancel(l->call);
    l->call = NULL;
    uv_close((uv_handle_t *)&l->timer, on_closed);
}
