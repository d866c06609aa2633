/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the host's API: a queue with a rate and a limit of requests in flight, deadlines,
 * retries of 429, and whether the host is reachable. Must never call back before the function that
 * was called has returned, and never retry a request that may have been executed.
 *
 *   QUEUED --tick--> RUNNING --answer--> done()
 *     ^                 | 429                        any state --cancel--> freed
 *     '--- SLEEPING <---'          any state --deadline, stop--> FINISHED --next turn--> done() */
#include <sublet/host.h>

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <uv.h>

#include <sublet/call.h>
#include <sublet/token_bucket.h>

#include "host_impl.h"
#include "kubeconfig.h"
#include "transport.h"

#define HOST_MAGIC   0x686f7374u
#define CALL_MAGIC   0x63616c6cu
#define LINE_LIMIT   (16u << 20)
#define SLEEP_MAX_MS 10000

/* Of dry runs. */
#define DRY_BURST     4 /* seconds of their rate */
#define DRY_IN_FLIGHT 16

/* Of what nothing waits for: a part of the rate, beside it. */
#define ASIDE_PART      4
#define ASIDE_IN_FLIGHT 4

enum call_state { CALL_QUEUED, CALL_RUNNING, CALL_SLEEPING, CALL_FINISHED };

TAILQ_HEAD(call_list, host_call);

const struct host_trouble_text HOST_TROUBLES[N_HOST_TROUBLES] = {
#define HOST_TROUBLE(name, reason, message) [HOST_##name] = {reason, message},
#include <sublet/tbl/host_troubles.h>
#undef HOST_TROUBLE
};

#define BARRED "nothing is changed there until this process has confirmed that it holds the Lease"

#define ERRORS_IN_A_ROW 3 /* of 5xx, before it is reported */

/* Requests that share one rate and one bound. Dry runs, and what nothing waits for, have lanes of
 * their own, so that they never delay writes, however slow the host answers them. */
enum lane_id { LANE_WORK, LANE_DRY, LANE_ASIDE, LANES };

struct lane {
    struct call_list urgent, queued;
    struct token_rate rate; /* n 0: no limit */
    int64_t reserve;        /* tokens for urgent ones only */
    struct token_bucket tokens;
    unsigned in_flight, max_in_flight;
    size_t n_queued;
};

struct host_call {
    unsigned magic;
    enum call_state state;
    struct host *host;
    struct lane *lane;
    struct call_list *in;
    TAILQ_ENTRY(host_call) place; /* in `in` */
    const char *content_type, *accept;
    char method[8];
    char *path, *request_body;
    size_t request_n;
    int64_t deadline_ms, wake_ms;
    bool urgent, stream, got_data;
    bool changes; /* it changes the host: sent only while the gate is open */
    bool waited;  /* in the queue: is_outdated() decides whether it is sent */
    bool (*is_outdated)(void *ctx);
    void *wire;
    struct buf body; /* of a stream: the incomplete last line */
    host_line_cb line;
    host_done_cb done;
    void *ctx;
    const struct err_kind *failure; /* when FINISHED */
    const char *failure_text;
};

struct host {
    unsigned magic;
    struct host_options o;
    struct arena *arena; /* credentials */
    struct kubeconfig kubeconfig;
    struct transport *transport;
    uv_timer_t timer, probe_timer;
    struct lane lanes[LANES];
    struct call_list running, sleeping, finished;
    unsigned n_pipes;
    bool stopped, up, reached, delivering;
    unsigned probes;
    struct host_call *probe, *current; /* current: the stream whose line() is being called */
    bool current_cancelled;
    void (*on_up)(void *ctx);
    void *on_up_ctx;
    enum host_trouble trouble;
    unsigned errors; /* answers of 5xx in a row */
    void (*on_trouble)(void *ctx, enum host_trouble now, struct str detail);
    void *on_trouble_ctx;
    void (*on_broken)(void *ctx);
    void *on_broken_ctx;
    enum host_gate (*gate)(void *ctx); /* NULL: always open */
    void *gate_ctx;
    struct rights rights;
    void (*on_right)(void *ctx, struct str right, bool granted, struct str detail);
    void *on_right_ctx;
    unsigned closing_parts;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void tick(struct host *h);

static int64_t now_ms(const struct host *h)
{
    return clock_mono_ms(h->o.clock);
}

/* --- states --- */

static void move(struct host_call *c, enum call_state state, struct call_list *list)
{
    if (c->in) {
        if (c->state == CALL_QUEUED)
            c->lane->n_queued--;
        if (c->state == CALL_RUNNING && !c->stream)
            c->lane->in_flight--;
        TAILQ_REMOVE(c->in, c, place);
    }
    c->state = state;
    c->in = list;
    if (!list)
        return;
    if (state == CALL_QUEUED)
        c->lane->n_queued++;
    if (state == CALL_RUNNING && !c->stream)
        c->lane->in_flight++;
    TAILQ_INSERT_TAIL(list, c, place);
}

static void call_free(struct host_call *c)
{
    move(c, CALL_FINISHED, NULL);
    mem_free(c->path);
    mem_free(c->request_body);
    buf_fini(&c->body);
    c->magic = 0;
    mem_free(c);
}

/* --- reachability --- */

static void send_probe(struct host *h);

static void on_probe_timer(uv_timer_t *timer)
{
    send_probe(timer->data);
}

static void schedule_probe(struct host *h)
{
    int64_t delay = h->o.backoff_ms;

    if (h->stopped || h->probe)
        return;
    for (unsigned i = 0; i < h->probes && delay < h->o.backoff_max_ms; i++)
        delay *= 2;
    if (delay > h->o.backoff_max_ms)
        delay = h->o.backoff_max_ms;
    delay = delay / 2 + (int64_t)(rng_u64(h->o.rng) % (uint64_t)(delay / 2 + 1));
    uv_update_time(h->o.loop);
    uv_timer_start(&h->probe_timer, on_probe_timer, (uint64_t)delay, 0);
}

/* One transport failure makes the host down; any answer makes it up. */
static void note_reachable(struct host *h, bool answered)
{
    bool was_up = h->up;

    h->up = answered;
    if (answered) {
        h->probes = 0;
        uv_timer_stop(&h->probe_timer);
        h->reached = true;
        if (!was_up && h->on_up)
            h->on_up(h->on_up_ctx);
    } else if (was_up || !uv_is_active((uv_handle_t *)&h->probe_timer)) {
        schedule_probe(h);
    }
}

/* --- health: credentials, rights, 5xx --- */

static void set_trouble(struct host *h, enum host_trouble now, struct str detail)
{
    if (h->trouble == now || h->stopped)
        return;
    h->trouble = now;
    if (h->on_trouble)
        h->on_trouble(h->on_trouble_ctx, now, detail);
}

/* One 401 is reported: all requests share the same credentials. */
static void note_status(struct host *h, int status)
{
    h->errors = status >= 500 ? h->errors + 1 : 0;
    if (status == 401)
        set_trouble(h, HOST_UNAUTHORIZED, STR("401 Unauthorized"));
    else if (status < 500)
        set_trouble(h, HOST_FINE, STR_NULL);
    else if (h->errors >= ERRORS_IN_A_ROW)
        set_trouble(h, HOST_ERRORS, str_c(status == 503 ? "503 Service Unavailable" : "5xx"));
    else if (h->trouble != HOST_UNAUTHORIZED && h->trouble != HOST_ERRORS)
        set_trouble(h, HOST_FINE, STR_NULL); /* it is reachable again */
}

void host_note_right(struct host *h, const char *method, struct str path, const struct err *err)
{
    char right[96];
    bool denied = host_rights_is_denial(err);

    assert(h->magic == HOST_MAGIC);
    if (h->stopped || (!denied && !h->rights.n) || (err && !denied) ||
        !host_rights_name(method, path, right))
        return;
    if ((denied ? host_rights_deny : host_rights_grant)(&h->rights, right) && h->on_right)
        h->on_right(h->on_right_ctx, str_c(right), !denied, denied ? err->message : STR_NULL);
}

static void on_probed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct host *h = ctx;

    (void)answer;
    (void)err;
    h->probe = NULL;
    if (h->up || h->stopped)
        return;
    h->probes++;
    schedule_probe(h);
}

static void send_probe(struct host *h)
{
    struct host_request q = {.method = "GET", .path = STR("/version"), .urgent = true};

    q.timeout_ms = h->o.backoff_max_ms;
    if (!h->probe && !h->stopped)
        h->probe = host_send(h, &q, on_probed, h);
}

/* --- answers --- */

static void finish_later(struct host_call *c, const struct err_kind *kind, const char *text)
{
    c->failure = kind;
    c->failure_text = text;
    move(c, CALL_FINISHED, &c->host->finished);
}

static void call_done(struct host_call *c, const struct host_answer *answer, const struct err *err)
{
    host_done_cb done = c->done;
    void *ctx = c->ctx;

    move(c, CALL_FINISHED, NULL);
    done(ctx, answer, err);
    call_free(c);
}

static const struct err_kind *kind_of_code(int code)
{
    static const struct err_kind *const kinds[] = {
        &ERR_BAD_REQUEST, &ERR_UNAUTHORIZED, &ERR_FORBIDDEN,         &ERR_NOT_FOUND,
        &ERR_CONFLICT,    &ERR_GONE,         &ERR_TOO_LARGE,         &ERR_INVALID,
        &ERR_INTERNAL,    &ERR_UNAVAILABLE,  &ERR_TOO_MANY_REQUESTS, &ERR_TIMEOUT};

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i]->code == code)
            return kinds[i];
    return code >= 500 ? &ERR_INTERNAL : &ERR_BAD_REQUEST;
}

/* An error answer: a metav1.Status, or any other body. */
static void read_refusal(struct arena *a, int status, struct str body, struct err *err)
{
    struct err ignored;
    cJSON *tree = NULL;

    err_init(&ignored, a);
    if (!json_parse(a, body, &tree, &ignored) &&
        str_eqc(json_str(json_get(tree, "kind")), "Status") && status_parse(a, tree, err) &&
        err->kind)
        return;
    err_set(err, kind_of_code(status), "the host answered %d: %.*s", status,
            STR_F(str_sub(body, 0, 200)));
}

static void call_answered(struct host_call *c, int status)
{
    struct host_answer answer = {status, buf_str(&c->body)};
    struct arena *a;
    struct err err;

    if (status >= 200 && status < 300) {
        host_note_right(c->host, c->method, str_c(c->path), NULL);
        call_done(c, &answer, NULL);
        return;
    }
    a = arena_new(0);
    err_init(&err, a);
    read_refusal(a, status, answer.body, &err);
    host_note_right(c->host, c->method, str_c(c->path), &err);
    call_done(c, &answer, &err);
    arena_free(a);
}

static void call_failed(struct host_call *c, const struct err_kind *kind, const char *text)
{
    struct arena *a = arena_new(0);
    struct err err;

    err_init(&err, a);
    err_set(&err, kind, "the host cluster: %s", text);
    call_done(c, NULL, &err);
    arena_free(a);
}

/* 429: the request was not executed, and Retry-After says when to retry. */
static bool sleep_and_repeat(struct host_call *c, int64_t retry_after_s)
{
    struct host *h = c->host;
    int64_t delay = retry_after_s > 0 ? retry_after_s * 1000 : h->o.backoff_ms;

    if (delay > SLEEP_MAX_MS)
        delay = SLEEP_MAX_MS;
    delay += (int64_t)(rng_u64(h->o.rng) % (uint64_t)(delay / 4 + 1));
    if (c->stream || h->stopped || now_ms(h) + delay >= c->deadline_ms)
        return false;
    buf_clear(&c->body);
    c->wake_ms = now_ms(h) + delay;
    move(c, CALL_SLEEPING, &h->sleeping);
    return true;
}

static void give_lines(struct host_call *c, struct str bytes)
{
    struct host *h = c->host;
    size_t end;

    h->current = c;
    h->current_cancelled = false;
    while (!h->current_cancelled && (end = str_find(bytes, '\n')) < bytes.n) {
        struct str line = str_sub(bytes, 0, end);

        bytes = str_from(bytes, end + 1);
        if (c->body.n) {
            buf_add(&c->body, line);
            line = buf_str(&c->body);
        }
        host_note_right(h, c->method, str_c(c->path), NULL);
        c->line(c->ctx, line);
        if (!h->current_cancelled)
            buf_clear(&c->body);
    }
    if (h->current_cancelled)
        call_free(c);
    else
        buf_add(&c->body, bytes);
    h->current = NULL;
}

static void on_data(void *ctx, struct str bytes)
{
    struct host_call *c = ctx;

    assert(c->magic == CALL_MAGIC && c->state == CALL_RUNNING);
    c->got_data = true;
    /* The answer to a refused stream is one Status without a newline: it stays in the body. */
    if (c->stream)
        give_lines(c, bytes);
    else
        buf_add(&c->body, bytes);
}

/* A stream that breaks and a short deadline that passes do not prove the host down: the next
 * request, or a probe, decides. */
static void note_outcome(struct host_call *c, int status, const struct wire_failure *failure)
{
    struct host *h = c->host;
    bool decides = c == h->probe || !c->stream || !c->got_data;

    if (failure && h->on_broken && (failure->trouble != HOST_TIMEOUT || c == h->probe))
        h->on_broken(h->on_broken_ctx);
    if (status) {
        note_status(h, status);
        note_reachable(h, true);
    } else if (failure->trouble == HOST_TIMEOUT && c != h->probe) {
        send_probe(h);
    } else if (decides) {
        set_trouble(h, failure->trouble, failure->detail);
        note_reachable(h, false);
    }
}

static void on_end(void *ctx, int status, int64_t retry_after_s, const struct wire_failure *failure)
{
    struct host_call *c = ctx;
    struct host *h = c->host;
    bool timed_out = failure && failure->trouble == HOST_TIMEOUT;

    assert(c->magic == CALL_MAGIC && c->state == CALL_RUNNING);
    c->wire = NULL;
    note_outcome(c, status, failure);
    if (c->body.failed)
        call_failed(c, &ERR_TOO_LARGE, "the answer is too large");
    else if (!status)
        call_failed(c, timed_out ? &ERR_TIMEOUT : &ERR_UNAVAILABLE, failure->text);
    else if (status != 429 || !sleep_and_repeat(c, retry_after_s))
        call_answered(c, status);
    tick(h);
}

/* --- sending --- */

static bool has_tokens(struct lane *lane, int64_t now, int64_t n)
{
    return !lane->rate.n || token_bucket_has(&lane->tokens, &lane->rate, now, n);
}

/* There is one. */
static void take_token(struct lane *lane, int64_t now)
{
    if (lane->rate.n)
        (void)token_bucket_take(&lane->tokens, &lane->rate, now);
}

static void call_start(struct host_call *c)
{
    struct host *h = c->host;
    int64_t left = c->deadline_ms - now_ms(h);
    struct wire_handler handler = {on_data, on_end, c};
    struct wire_request q = {.method = c->method,
                             .path = str_c(c->path),
                             .body = {c->request_body, c->request_n},
                             .content_type = c->content_type,
                             .accept = c->accept,
                             .timeout_ms = c->stream ? 0 : left};

    take_token(c->lane, now_ms(h));
    move(c, CALL_RUNNING, &h->running);
    c->wire = h->transport->ops->start(h->transport, &q, &handler);
}

static void drop_wire(struct host_call *c)
{
    if (c->wire)
        c->host->transport->ops->cancel(c->host->transport, c->wire);
    c->wire = NULL;
}

/* The tokens that must be there before a request of the lane starts. */
static int64_t price(const struct lane *lane, bool urgent)
{
    return urgent ? 1 : 1 + lane->reserve;
}

static bool may_start(struct lane *lane, const struct host_call *c)
{
    if (!has_tokens(lane, now_ms(c->host), price(lane, c->in == &lane->urgent)))
        return false;
    return c->stream || lane->in_flight < lane->max_in_flight;
}

static enum host_gate gate_of(const struct host *h)
{
    return h->gate ? h->gate(h->gate_ctx) : HOST_GATE_OPEN;
}

/* The gate is closed: requests that change the host fail at once. */
static void bar(struct call_list *list)
{
    struct host_call *next;

    for (struct host_call *c = TAILQ_FIRST(list); c; c = next) {
        next = TAILQ_NEXT(c, place);
        if (c->changes)
            finish_later(c, &ERR_UNAVAILABLE, BARRED);
    }
}

static void start_from(struct lane *lane, struct call_list *list)
{
    enum host_gate gate = TAILQ_EMPTY(list) ? HOST_GATE_OPEN : gate_of(TAILQ_FIRST(list)->host);
    struct host_call *next;

    if (gate == HOST_GATE_CLOSED)
        bar(list);
    for (struct host_call *c = TAILQ_FIRST(list); c; c = next) {
        next = TAILQ_NEXT(c, place);
        if (c->changes && gate == HOST_GATE_WAIT)
            continue;
        if (!may_start(lane, c))
            break;
        if (c->waited && c->is_outdated && c->is_outdated(c->ctx))
            finish_later(c, &ERR_CONFLICT, "out of date before it was sent");
        else
            call_start(c);
    }
}

static void start_all(struct host *h)
{
    for (size_t i = 0; i < LANES; i++) {
        start_from(&h->lanes[i], &h->lanes[i].urgent);
        start_from(&h->lanes[i], &h->lanes[i].queued);
    }
}

static void expire(struct call_list *list, int64_t now)
{
    struct host_call *next;

    for (struct host_call *c = TAILQ_FIRST(list); c; c = next) {
        next = TAILQ_NEXT(c, place);
        if (!c->stream && c->deadline_ms <= now)
            finish_later(
                c, c->lane == &c->host->lanes[LANE_DRY] ? &ERR_TOO_MANY_REQUESTS : &ERR_TIMEOUT,
                "no turn within the deadline");
        else if (c->state == CALL_SLEEPING && c->wake_ms <= now)
            move(c, CALL_QUEUED, c->urgent ? &c->lane->urgent : &c->lane->queued);
    }
}

static int64_t earliest(const struct call_list *list, int64_t soonest)
{
    const struct host_call *c;

    TAILQ_FOREACH(c, list, place)
    {
        int64_t at = c->state == CALL_SLEEPING ? c->wake_ms : c->deadline_ms;

        if (c->stream)
            continue;
        soonest = at < soonest ? at : soonest;
        if (c->state == CALL_QUEUED)
            break; /* in order of arrival, so roughly in order of deadlines */
    }
    return soonest;
}

/* The transport has the deadline too, but libcurl ignores it for requests that wait for another
 * one's connection to show whether they can be multiplexed (CURLOPT_PIPEWAIT). */
static void expire_running(struct host *h)
{
    static const struct wire_failure late = {
        HOST_TIMEOUT, "Timeout was reached", {"no answer within the deadline", 29}};
    int64_t now = now_ms(h);
    struct host_call *next;

    for (struct host_call *c = TAILQ_FIRST(&h->running); c; c = next) {
        next = TAILQ_NEXT(c, place);
        if (c->stream || c->deadline_ms > now)
            continue;
        drop_wire(c);
        note_outcome(c, 0, &late);
        finish_later(c, &ERR_TIMEOUT, late.text);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct host *h = timer->data;

    assert(h->magic == HOST_MAGIC);
    expire_running(h);
    tick(h);
}

static int64_t next_token(struct lane *lane, const struct call_list *list, int64_t now,
                          int64_t soonest)
{
    int64_t at;

    if (TAILQ_EMPTY(list) || !lane->rate.n)
        return soonest;
    at = token_bucket_when(&lane->tokens, &lane->rate, now, price(lane, list == &lane->urgent));
    return at > now && at < soonest ? at : soonest;
}

static int64_t lane_earliest(struct lane *lane, int64_t now, int64_t soonest)
{
    soonest = next_token(lane, &lane->urgent, now, soonest);
    soonest = next_token(lane, &lane->queued, now, soonest);
    return earliest(&lane->urgent, earliest(&lane->queued, soonest));
}

/* The timer is for the next token, retry or deadline, and for results to be delivered. */
static void arm(struct host *h)
{
    int64_t now = now_ms(h), at = INT64_MAX, delay;

    if (!TAILQ_EMPTY(&h->finished))
        at = now;
    for (size_t i = 0; i < LANES; i++)
        at = lane_earliest(&h->lanes[i], now, at);
    at = earliest(&h->sleeping, at);
    at = earliest(&h->running, at);
    if (at == INT64_MAX) {
        uv_timer_stop(&h->timer);
        return;
    }
    delay = at > now ? at - now : 0;
    uv_update_time(h->o.loop);
    uv_timer_start(&h->timer, on_timer, (uint64_t)delay, 0);
}

/* From the timer only: no caller is inside host_send() then. */
static void deliver(struct host *h)
{
    struct host_call *last = TAILQ_LAST(&h->finished, call_list), *c;

    while (last && (c = TAILQ_FIRST(&h->finished))) {
        if (c == last)
            last = NULL; /* later failures wait for the next turn of the loop */
        call_failed(c, c->failure, c->failure_text);
    }
}

static void tick(struct host *h)
{
    int64_t now = now_ms(h);

    if (h->delivering)
        return;
    expire(&h->sleeping, now);
    for (size_t i = 0; i < LANES; i++) {
        expire(&h->lanes[i].urgent, now);
        expire(&h->lanes[i].queued, now);
    }
    start_all(h);
    h->delivering = true;
    deliver(h);
    h->delivering = false;
    arm(h);
}

static bool changes(const char *method)
{
    return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

static enum lane_id lane_of(const struct host_request *q)
{
    return q->dry_run ? LANE_DRY : q->aside ? LANE_ASIDE : LANE_WORK;
}

static struct host_call *call_new(struct host *h, const struct host_request *q, host_done_cb done,
                                  void *ctx)
{
    struct host_call *c = NEW(struct host_call);
    int64_t timeout = q->timeout_ms ? q->timeout_ms : h->o.timeout_ms;

    assert(h->magic == HOST_MAGIC && strlen(q->method) < sizeof(c->method));
    *c = (struct host_call){.magic = CALL_MAGIC,
                            .host = h,
                            .lane = &h->lanes[lane_of(q)],
                            .content_type = q->content_type ? q->content_type : "application/json",
                            .accept = q->accept ? q->accept : "application/json",
                            .path = mem_strdup(q->path),
                            .request_n = q->body.n,
                            .deadline_ms = now_ms(h) + timeout,
                            .urgent = q->urgent,
                            .changes = !q->dry_run && !q->passes_gate && changes(q->method),
                            .is_outdated = q->is_outdated,
                            .body = BUF_INIT(LINE_LIMIT),
                            .done = done,
                            .ctx = ctx};
    memcpy(c->method, q->method, strlen(q->method) + 1);
    if (q->body.n)
        c->request_body = mem_strdup(q->body);
    return c;
}

/* Starts at once where the rate allows: the transport never answers from within start(). */
static void enqueue(struct host *h, struct host_call *c)
{
    if (h->stopped) {
        finish_later(c, &ERR_UNAVAILABLE, "closing");
    } else if (c->lane->n_queued >= h->o.max_queued) {
        finish_later(c, &ERR_TOO_MANY_REQUESTS, "too many requests wait for it");
    } else {
        move(c, CALL_QUEUED, c->urgent ? &c->lane->urgent : &c->lane->queued);
        start_all(h);
        c->waited = true; /* in the queue, now or after a 429 */
    }
    if (!h->delivering)
        arm(h);
}

struct host_call *host_send(struct host *h, const struct host_request *q, host_done_cb done,
                            void *ctx)
{
    struct host_call *c = call_new(h, q, done, ctx);

    enqueue(h, c);
    return c;
}

struct host_call *host_stream(struct host *h, const struct host_request *q, host_line_cb line,
                              host_done_cb done, void *ctx)
{
    struct host_call *c = call_new(h, q, done, ctx);

    c->stream = true;
    c->line = line;
    enqueue(h, c);
    return c;
}

void host_cancel(struct host_call *c)
{
    if (!c)
        return;
    struct host *h = c->host;

    assert(c->magic == CALL_MAGIC);
    drop_wire(c);
    if (h->current == c) {
        h->current_cancelled = true; /* give_lines() frees it */
        return;
    }
    call_free(c);
    if (!h->delivering)
        arm(h);
}

const struct host_options *host_get_options(const struct host *h)
{
    return &h->o;
}

struct transport *host_pipe_enter(struct host *h, bool reads, struct err *err)
{
    struct lane *work = &h->lanes[LANE_WORK];

    assert(h->magic == HOST_MAGIC);
    if (h->stopped || !h->transport->ops->raw)
        err_set(err, &ERR_UNAVAILABLE, "the host cluster: no connection is to be had");
    else if (!reads && gate_of(h) == HOST_GATE_CLOSED)
        err_set(err, &ERR_UNAVAILABLE, "the host cluster: " BARRED);
    else if (h->n_pipes >= h->o.max_pipes || !has_tokens(work, now_ms(h), 1))
        err_set(err, &ERR_TOO_MANY_REQUESTS, "the host cluster: too many %s",
                h->n_pipes >= h->o.max_pipes ? "streams are open" : "requests at once");
    if (err->kind) {
        err->retry_after = err->kind == &ERR_TOO_MANY_REQUESTS;
        return NULL;
    }
    h->n_pipes++;
    take_token(work, now_ms(h));
    return h->transport;
}

void host_pipe_left(struct host *h)
{
    assert(h->n_pipes > 0);
    h->n_pipes--;
}

bool host_has_dry_turn(struct host *h)
{
    struct lane *dry = &h->lanes[LANE_DRY];

    assert(h->magic == HOST_MAGIC);
    return has_tokens(dry, now_ms(h), 1) && dry->in_flight < dry->max_in_flight &&
           TAILQ_EMPTY(&dry->urgent);
}

void host_pipe_failed(struct host *h)
{
    assert(h->magic == HOST_MAGIC);
    send_probe(h);
}

void host_set_gate(struct host *h, enum host_gate (*gate)(void *ctx), void *ctx)
{
    assert(h->magic == HOST_MAGIC);
    h->gate = gate;
    h->gate_ctx = ctx;
}

void host_gate_changed(struct host *h)
{
    assert(h->magic == HOST_MAGIC);
    if (gate_of(h) == HOST_GATE_CLOSED)
        bar(&h->sleeping);
    start_all(h);
    if (!h->delivering)
        arm(h);
}

void host_on_broken(struct host *h, void (*broken)(void *ctx), void *ctx)
{
    assert(h->magic == HOST_MAGIC);
    h->on_broken = broken;
    h->on_broken_ctx = ctx;
}

void host_on_trouble(struct host *h,
                     void (*trouble)(void *ctx, enum host_trouble now, struct str detail),
                     void *ctx)
{
    h->on_trouble = trouble;
    h->on_trouble_ctx = ctx;
}

void host_on_right(struct host *h,
                   void (*right)(void *ctx, struct str right, bool granted, struct str detail),
                   void *ctx)
{
    h->on_right = right;
    h->on_right_ctx = ctx;
}

bool host_is_up(const struct host *h)
{
    return h->up;
}

bool host_was_reached(const struct host *h)
{
    return h->reached;
}

void host_on_up(struct host *h, void (*up)(void *ctx), void *ctx)
{
    h->on_up = up;
    h->on_up_ctx = ctx;
}

/* --- life --- */

static void set_defaults(struct host_options *o)
{
    if (!o->max_in_flight)
        o->max_in_flight = 64;
    if (!o->max_pipes)
        o->max_pipes = 256;
    if (!o->max_queued)
        o->max_queued = 20000;
    if (!o->timeout_ms)
        o->timeout_ms = 30000;
    if (!o->backoff_ms)
        o->backoff_ms = 200;
    if (!o->backoff_max_ms)
        o->backoff_max_ms = 5000;
    if (o->burst < 1)
        o->burst = 1;
}

static struct lane lane_new(int64_t qps, int64_t burst, unsigned max_in_flight)
{
    return (struct lane){.rate = {.burst = burst, .n = qps, .period = 1000},
                         .max_in_flight = max_in_flight};
}

static void open_lanes(struct host *h)
{
    struct call_list *const lists[] = {&h->running, &h->sleeping, &h->finished};
    int64_t dry_burst = h->o.dry_qps * DRY_BURST;

    h->lanes[LANE_WORK] = lane_new(h->o.qps, h->o.burst, h->o.max_in_flight);
    h->lanes[LANE_DRY] = lane_new(h->o.dry_qps, dry_burst, DRY_IN_FLIGHT);
    h->lanes[LANE_DRY].reserve = dry_burst / 2;
    h->lanes[LANE_ASIDE] = lane_new(h->o.qps ? (h->o.qps + ASIDE_PART - 1) / ASIDE_PART : 0,
                                    ASIDE_IN_FLIGHT, ASIDE_IN_FLIGHT);
    for (size_t i = 0; i < LANES; i++) {
        TAILQ_INIT(&h->lanes[i].urgent);
        TAILQ_INIT(&h->lanes[i].queued);
    }
    for (size_t i = 0; i < COUNT(lists); i++)
        TAILQ_INIT(lists[i]);
}

int host_open(const struct host_options *options, struct host **ret, struct err *err)
{
    struct host *h = NEW(struct host);

    *h = (struct host){.magic = HOST_MAGIC, .o = *options, .arena = arena_new(0), .up = true};
    set_defaults(&h->o);
    if (!options->transport &&
        host_kubeconfig_load(h->arena, options->kubeconfig, &h->kubeconfig, err)) {
        arena_free(h->arena);
        mem_free(h);
        return -1;
    }
    h->transport = options->transport
                       ? options->transport
                       : host_curl_transport_new(options->loop, options->clock, &h->kubeconfig);
    open_lanes(h);
    uv_timer_init(h->o.loop, &h->timer);
    uv_timer_init(h->o.loop, &h->probe_timer);
    h->timer.data = h;
    h->probe_timer.data = h;
    *ret = h;
    return 0;
}

static void fail_all(struct call_list *list)
{
    struct host_call *c;

    while ((c = TAILQ_FIRST(list))) {
        drop_wire(c);
        finish_later(c, &ERR_UNAVAILABLE, "closing");
    }
}

void host_stop(struct host *h)
{
    assert(h->magic == HOST_MAGIC);
    h->stopped = true;
    uv_timer_stop(&h->probe_timer);
    for (size_t i = 0; i < LANES; i++) {
        fail_all(&h->lanes[i].urgent);
        fail_all(&h->lanes[i].queued);
    }
    fail_all(&h->running);
    fail_all(&h->sleeping);
    if (!h->delivering)
        arm(h);
}

static void part_closed(struct host *h)
{
    if (--h->closing_parts)
        return;
    void (*closed)(void *ctx) = h->closed;
    void *ctx = h->closed_ctx;

    arena_free(h->arena);
    host_rights_fini(&h->rights);
    h->magic = 0;
    mem_free(h);
    closed(ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void on_transport_closed(void *ctx)
{
    part_closed(ctx);
}

void host_flush(struct host *h)
{
    assert(h->stopped && !h->delivering);
    h->delivering = true;
    deliver(h);
    h->delivering = false;
}

void host_close(struct host *h, void (*closed)(void *ctx), void *ctx)
{
    host_flush(h);
    assert(TAILQ_EMPTY(&h->running) && TAILQ_EMPTY(&h->finished) && !h->n_pipes);
    h->delivering = true; /* no timer is armed from here on */
    h->closed = closed;
    h->closed_ctx = ctx;
    h->closing_parts = 3;
    uv_close((uv_handle_t *)&h->timer, on_handle_closed);
    uv_close((uv_handle_t *)&h->probe_timer, on_handle_closed);
    h->transport->ops->close(h->transport, on_transport_closed, h);
}
