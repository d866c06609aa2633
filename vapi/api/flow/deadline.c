/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The deadline of a request. Why: a request that waits (for the host, for a slow disk, in a queue)
 * must not wait for ever, and its client must be answered while it still listens. One timer serves
 * all calls, and only those that outlive the turn of the loop they arrived in: the others never
 * touch it. It must never withdraw an answer, nor undo a write: that continues, and its answer is
 * dropped. Source: k8s.io/apiserver pkg/endpoints/filters/request_deadline.go. */
#include "flow.h"

#include <assert.h>
#include <string.h>

#include <sublet/net.h>

#define DEFAULT_MS 60000

static int64_t now_ms(struct vapi *api)
{
    return clock_mono_ms(vapi_clock(api));
}

/* ---- ?timeout= ---- */

static size_t digits(struct str *rest)
{
    size_t n = 0;

    while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9')
        n++;
    *rest = str_from(*rest, n);
    return n;
}

/* The error of Go's time.ParseDuration about an invalid string. */
static struct str duration_problem(struct arena *a, struct str value)
{
    static const char *const units[] = {"ns", "us", "\xc2\xb5s", "\xce\xbcs", "ms", "s", "m", "h"};
    struct str rest = value;

    if (rest.n && (rest.p[0] == '-' || rest.p[0] == '+'))
        rest = str_from(rest, 1);
    while (rest.n) {
        size_t n = digits(&rest), end = 0, i = 0;

        if (rest.n && rest.p[0] == '.') {
            rest = str_from(rest, 1);
            n += digits(&rest);
        }
        if (!n)
            break;
        while (end < rest.n && rest.p[end] != '.' && (rest.p[end] < '0' || rest.p[end] > '9'))
            end++;
        if (!end)
            return arena_printf(a, "missing unit in duration \"%.*s\"", STR_F(value));
        while (i < COUNT(units) && !str_eqc(str_sub(rest, 0, end), units[i]))
            i++;
        if (i == COUNT(units))
            return arena_printf(a, "unknown unit \"%.*s\" in duration \"%.*s\"",
                                STR_F(str_sub(rest, 0, end)), STR_F(value));
        rest = str_from(rest, end);
    }
    return arena_printf(a, "invalid duration \"%.*s\"", STR_F(value));
}

/* *ret_ms is 0 when there is none, or it is empty. */
static int asked_ms(struct arena *a, const struct query *q, int64_t *ret_ms, struct err *err)
{
    struct str value = query_get(q, "timeout");
    int64_t ns = 0;

    *ret_ms = 0;
    if (!value.n)
        return 0;
    if (!duration_parse(value, &ns))
        return err_set(err, &ERR_BAD_REQUEST,
                       "invalid timeout specified in the request URL - time: %.*s",
                       STR_F(duration_problem(a, value)));
    if (ns > 0)
        *ret_ms = ns < 1000000 ? 1 : ns / 1000000;
    return 0;
}

/* ---- expiry ---- */

/* As upstream prints it: a Status without its kind, as a string. */
static const char LATE[] =
    "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete "
    "within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n";

static int expired(struct err *err)
{
    return err_set(err, &ERR_TIMEOUT,
                   "Timeout: request did not complete within the allotted timeout");
}

static void expire(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    if (call_entry(c)->flow_stage == FLOW_WAITING) {
        flow_timed_out(c);
        if (flow_too_many(&err))
            call_give_up(c, &err, STR_NULL);
    } else if (expired(&err)) {
        call_give_up(c, &err, str_c(LATE));
    }
}

static bool waits(const struct call_entry *e)
{
    return e->due_ms && e->stage != CALL_ANSWERED && !e->observed && !e->stream_code &&
           !e->streaming && e->exchange_open;
}

static void on_deadline(uv_timer_t *timer);

/* Sets the timer to the earliest deadline; calls are in order of arrival, not of deadline. */
static void arm(struct vapi *api)
{
    int64_t next = INT64_MAX, now = now_ms(api);
    const struct call_entry *e;

    TAILQ_FOREACH(e, &api->calls, place)
    {
        if (waits(e) && e->due_ms < next)
            next = e->due_ms;
    }
    api->deadline_ms = next;
    if (next == INT64_MAX)
        uv_timer_stop(&api->deadline);
    else
        uv_timer_start(&api->deadline, on_deadline, next > now ? (uint64_t)(next - now) : 0, 0);
}

static void on_deadline(uv_timer_t *timer)
{
    struct vapi *api = timer->data;
    struct call_entry *e = TAILQ_FIRST(&api->calls);
    int64_t now = now_ms(api);

    assert(api->magic == VAPI_MAGIC);
    while (e) {
        struct call_entry *next = TAILQ_NEXT(e, place);

        if (waits(e) && e->due_ms <= now) {
            e->due_ms = 0;
            expire(&e->call);
        }
        e = next;
    }
    arm(api);
}

int deadline_set(struct call *c, const struct query *q, struct err *err)
{
    struct vapi *api = c->api;
    const struct config *config = vapi_config(api);
    int64_t most = config && config->request_timeout_ms ? config->request_timeout_ms : DEFAULT_MS;
    int64_t requested;

    if (call_entry(c)->long_running)
        return 0;
    if (asked_ms(c->arena, q, &requested, err))
        return -1;
    call_entry(c)->due_ms = now_ms(api) + (requested && requested < most ? requested : most);
    return 0;
}

void deadline_shorten(struct call *c, int64_t part)
{
    struct call_entry *e = call_entry(c);
    int64_t now = now_ms(c->api);

    e->final_due_ms = e->due_ms;
    if (e->due_ms)
        e->due_ms = now + (e->due_ms - now) / part;
}

void deadline_restore(struct call *c)
{
    call_entry(c)->due_ms = call_entry(c)->final_due_ms;
}

/* Called after c's first turn without an answer. */
void deadline_watch(struct call *c)
{
    struct vapi *api = c->api;
    struct call_entry *e = call_entry(c);

    if (!waits(e) || e->due_ms >= api->deadline_ms)
        return;
    uv_update_time(api->o.loop);
    api->deadline_ms = e->due_ms;
    uv_timer_start(&api->deadline, on_deadline,
                   e->due_ms > now_ms(api) ? (uint64_t)(e->due_ms - now_ms(api)) : 0, 0);
}
