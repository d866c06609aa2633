/* SPDX-License-Identifier: Apache-2.0 */
/* The network of wire.h: lines, wires and what becomes of them. The verbs are in server.c. */
#include "wire_impl.h"

#include <assert.h>
#include <string.h>

enum { LEAST_US = 200 }; /* from sending a request to its execution */

static const char *const COUNTED = "fault";

bool wire_fault(struct wires *w, unsigned of_thousand, enum wire_count which)
{
    static const char *const names[N_WIRE_COUNTS] = {
        "refused", "lost",    "late", "duplicated", "truncated", "hung",    "busy",
        "failed",  "expired", "cut",  "pages",      "down",      "requests"};

    if (!of_thousand || !dice_chance(w->o.moment, DICE_WIRE, of_thousand))
        return false;
    w->counts[which]++;
    w->o.trace(w->o.ctx, COUNTED, names[which], "", 0);
    return true;
}

static int64_t delay_us(struct wires *w)
{
    return LEAST_US +
           (int64_t)dice_below(w->o.moment, DICE_WIRE, w->faults.max_delay_ms * 1000u + 1);
}

/* --- ends --- */

static void wire_unlink(struct wire *wire)
{
    struct wire **at = &wire->line->wires_first;

    while (*at != wire)
        at = &(*at)->next;
    *at = wire->next;
    wire->next = NULL;
}

static void request_unref(struct request *q)
{
    if (--q->refs)
        return;
    mem_free(q->path);
    mem_free(q->query);
    mem_free(q->body.p);
    mem_free(q);
}

/* Its client no longer waits. */
static void wire_close(struct wire *wire)
{
    wire_unlink(wire);
    moment_forget(wire->line->wires->o.moment, wire);
    wire->request->wire = NULL;
    request_unref(wire->request);
    mem_free(wire->plural);
    mem_free(wire);
}

void wire_end(struct wire *wire, int status, enum host_trouble trouble, const char *failure)
{
    struct wire_handler handler = wire->handler;
    struct wire_failure why = {trouble, failure, str_c(failure)};
    int64_t retry = status == 429 ? 1 : 0;

    wire_close(wire);
    handler.end(handler.ctx, status, retry, status ? NULL : &why);
}

/* Half of it, or all: false when the wire is gone by now. */
static bool deliver(struct request *q, struct str body)
{
    if (body.n && q->wire)
        q->wire->handler.data(q->wire->handler.ctx, body);
    return q->wire != NULL;
}

void request_answer(struct request *q, int status, struct str body)
{
    struct wires *w = q->wires;

    if (!q->wire || q->answered)
        return;
    q->answered = true;
    if (q->lose) {
        wire_end(q->wire, 0, HOST_BROKEN, "connection reset");
        return;
    }
    if (q->truncate) {
        if (deliver(q, str_sub(body, 0, body.n / 2)))
            wire_end(q->wire, 0, HOST_BROKEN, "connection reset");
        return;
    }
    w->o.trace(w->o.ctx, "answer", q->method, q->path, status);
    if (deliver(q, body))
        wire_end(q->wire, status, HOST_FINE, NULL);
}

/* --- on the way --- */

static void on_execute(void *arg)
{
    struct request *q = arg;

    if (q->wires->faults.down && !q->is_late) {
        if (q->wire)
            wire_end(q->wire, 0, HOST_REFUSED, "connection refused");
    } else {
        q->wires->o.trace(q->wires->o.ctx, "execute", q->method, q->path, 0);
        server_execute(q);
    }
    request_unref(q);
}

static void on_refused(void *arg)
{
    struct wire *wire = arg;

    wire_end(wire, 0, HOST_REFUSED, "connection refused");
}

static void on_timeout(void *arg)
{
    struct wire *wire = arg;

    wire_end(wire, 0, HOST_TIMEOUT, "timed out");
}

static void execute_after(struct request *q, int64_t us)
{
    q->refs++;
    moment_at(q->wires->o.moment, us, q->wires, on_execute, q);
}

static struct str status_text(struct request *q, int status, const char *reason)
{
    snprintf(q->status_text, sizeof(q->status_text),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
             "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%d}",
             reason, reason, status);
    return str_c(q->status_text);
}

void request_refuse(struct request *q, int status, const char *reason)
{
    request_answer(q, status, status_text(q, status, reason));
}

static void on_busy(void *arg)
{
    request_refuse(arg, 429, "TooManyRequests");
    request_unref(arg);
}

static void on_failed(void *arg)
{
    request_refuse(arg, 500, "InternalError");
    request_unref(arg);
}

static void answer_after(struct request *q, int64_t us, void (*run)(void *arg))
{
    q->refs++;
    moment_at(q->wires->o.moment, us, q->wires, run, q);
}

/* What becomes of a request is decided when it is sent. */
static void send(struct wires *w, struct request *q, bool is_stream)
{
    const struct wire_faults *f = &w->faults;
    int64_t us = delay_us(w);

    w->counts[COUNT_REQUESTS]++;
    if (f->down)
        w->counts[COUNT_DOWN]++;
    if (f->down || wire_fault(w, f->refuse, COUNT_REFUSED)) {
        moment_at(w->o.moment, us, q->wire, on_refused, q->wire);
        return;
    }
    if (is_stream) {
        if (!wire_fault(w, f->hang, COUNT_HUNG))
            execute_after(q, us);
        return;
    }
    if (wire_fault(w, f->hang, COUNT_HUNG))
        return;
    if (wire_fault(w, f->busy, COUNT_BUSY)) {
        answer_after(q, us, on_busy);
        return;
    }
    if (wire_fault(w, f->fail, COUNT_FAILED)) {
        q->lose = dice_chance(w->o.moment, DICE_WIRE, 500);
        if (q->lose)
            execute_after(q, us);
        else
            answer_after(q, us, on_failed);
        return;
    }
    q->lose = wire_fault(w, f->lose, COUNT_LOST);
    q->truncate = wire_fault(w, f->truncate, COUNT_TRUNCATED);
    q->is_late = wire_fault(w, f->late, COUNT_LATE);
    if (q->is_late)
        us += (int64_t)dice_below(w->o.moment, DICE_WIRE, 60000) * 1000;
    execute_after(q, us);
    /* A proxy repeats what had no answer yet: nothing that the sender does on the answer to the
     * first is executed before the second. */
    if (wire_fault(w, f->duplicate, COUNT_DUPLICATED))
        execute_after(q, us + 1 + (int64_t)dice_below(w->o.moment, DICE_WIRE, LEAST_US - 1));
}

/* --- the transport --- */

static struct request *request_new(struct wires *w, const struct wire_request *from)
{
    struct request *q = NEW(struct request);
    size_t mark = str_find(from->path, '?');

    q->wires = w;
    q->refs = 1;
    q->age = w->age;
    q->sent_us = w->o.moment->now_us;
    q->metadata_only = from->accept && strstr(from->accept, "PartialObjectMetadata");
    snprintf(q->method, sizeof(q->method), "%s", from->method);
    q->path = mem_strdup(str_sub(from->path, 0, mark));
    q->query = mem_strdup(mark < from->path.n ? str_from(from->path, mark + 1) : STR(""));
    q->body = from->body.n ? mem_str(from->body) : STR_NULL;
    return q;
}

static void *line_start(struct transport *base, const struct wire_request *from,
                        const struct wire_handler *handler)
{
    struct line *line = (struct line *)(void *)base;
    struct wires *w = line->wires;
    struct wire *wire = NEW(struct wire);

    *wire = (struct wire){.line = line, .handler = *handler, .next = line->wires_first};
    line->wires_first = wire;
    wire->request = request_new(w, from);
    wire->request->wire = wire;
    wire->request->sender = line->sender;
    if (from->timeout_ms > 0)
        moment_at(w->o.moment, from->timeout_ms * 1000, wire, on_timeout, wire);
    send(w, wire->request, strstr(wire->request->query, "watch=1") != NULL);
    return wire;
}

static void line_cancel(struct transport *base, void *wire)
{
    (void)base;
    wire_close(wire);
}

static void on_line_closed(void *arg)
{
    struct line *line = arg;
    void (*closed)(void *ctx) = line->closed;
    void *ctx = line->ctx;

    line->dead = true;
    closed(ctx);
}

static void line_close(struct transport *base, void (*closed)(void *ctx), void *ctx)
{
    struct line *line = (struct line *)(void *)base;

    assert(!line->wires_first);
    line->closed = closed;
    line->ctx = ctx;
    moment_at(line->wires->o.moment, 1, line, on_line_closed, line);
}

struct transport *wires_line(struct wires *w, unsigned sender)
{
    static const struct transport_ops ops = {line_start, line_cancel, line_close, NULL};
    struct line *line = NEW(struct line);

    *line = (struct line){.base = {&ops}, .wires = w, .sender = sender, .next = w->lines};
    w->lines = line;
    return &line->base;
}

void wires_abandon(struct wires *w, struct transport *base)
{
    struct line *line = (struct line *)(void *)base;

    while (line->wires_first)
        wire_close(line->wires_first);
    moment_forget(w->o.moment, line);
    line->dead = true;
}

/* --- watches --- */

static void send_event(struct wire *wire, const struct host_event *e)
{
    struct wires *w = wire->line->wires;
    struct arena *a = arena_new(0);
    struct buf b = BUF_INIT(0);

    w->sender = wire->line->sender;
    w->o.told(w->o.ctx, e->plural, host_parse(a, e->bytes));
    buf_printf(&b, "{\"type\":\"%s\",\"object\":", e->type);
    buf_add(&b, request_form(wire->request, a, e->bytes));
    arena_free(a);
    buf_addc(&b, "}\n");
    wire->handler.data(wire->handler.ctx, buf_str(&b));
    buf_fini(&b);
}

static void send_bookmark(struct wire *wire)
{
    struct buf b = BUF_INIT(0);

    buf_printf(&b,
               "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%llu\"}}}\n",
               (unsigned long long)host_model_revision(wire->line->wires->o.host));
    wire->handler.data(wire->handler.ctx, buf_str(&b));
    buf_fini(&b);
}

static bool concerns(const struct wire *wire, const struct host_event *e)
{
    return e->revision > wire->from && !strcmp(e->plural, wire->plural) &&
           (!wire->labelled || e->ours);
}

static void on_feed(void *arg)
{
    struct wire *wire = arg;
    struct request *q = wire->request; /* freed when the wire was closed meanwhile */
    struct wires *w = wire->line->wires;
    const struct host_event *e;

    wire->feeding = false;
    q->refs++;
    while (q->wire && (e = host_model_event(w->o.host, wire->position))) {
        wire->position++;
        if (!concerns(wire, e))
            continue;
        if (w->faults.down || wire_fault(w, w->faults.cut, COUNT_CUT))
            wire_end(wire, 0, HOST_BROKEN, "connection reset");
        else
            send_event(wire, e);
    }
    if (q->wire && dice_chance(w->o.moment, DICE_WIRE, 100))
        send_bookmark(wire);
    request_unref(q);
}

void wire_feed_soon(struct wire *wire)
{
    if (wire->feeding)
        return;
    wire->feeding = true;
    moment_at(wire->line->wires->o.moment, delay_us(wire->line->wires), wire, on_feed, wire);
}

void wires_changed(struct wires *w)
{
    for (struct line *line = w->lines; line; line = line->next)
        for (struct wire *wire = line->wires_first; wire; wire = wire->next)
            if (wire->watching)
                wire_feed_soon(wire);
}

static void on_cut(void *arg)
{
    wire_end(arg, 0, HOST_BROKEN, "connection reset");
}

void wires_cut_all(struct wires *w)
{
    for (struct line *line = w->lines; line; line = line->next) {
        for (struct wire *wire = line->wires_first; wire; wire = wire->next) {
            moment_forget(w->o.moment, wire);
            wire->watching = false;
            moment_at(w->o.moment, 1, wire, on_cut, wire);
        }
    }
}

/* --- life --- */

struct wire_faults *wires_faults(struct wires *w)
{
    return &w->faults;
}

int64_t wires_sent_us(const struct wires *w)
{
    return w->sent_us;
}

unsigned wires_sender(const struct wires *w)
{
    return w->sender;
}

void wires_next_age(struct wires *w)
{
    w->age++;
}

bool wires_is_of_earlier_age(const struct wires *w)
{
    return w->earlier;
}

const unsigned *wires_counts(const struct wires *w)
{
    return w->counts;
}

struct wires *wires_new(const struct wires_options *o)
{
    struct wires *w = NEW(struct wires);

    w->o = *o;
    w->faults.max_delay_ms = 5;
    return w;
}
