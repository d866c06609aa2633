/* SPDX-License-Identifier: Apache-2.0 */
/* Events on their way to the host. What they say is in a status as well, so that one which is lost
 * is no harm: must never delay a grant, nor end the process, for a host that takes no Events. */
#include "event_writer.h"

#include <assert.h>
#include <sys/queue.h>

#include <sublet/log.h>
#include <sublet/metrics.h>

#define WRITER_MAGIC   0x65767772u
#define MOST_UNDER_WAY 32
#define REFUSED_MS     300000

struct writing {
    LIST_ENTRY(writing) all;
    struct event_writer *w;
    struct host_call *call;
    struct str path; /* heap */
};
struct event_writer {
    unsigned magic;
    struct host *host;
    const struct clock *clock;
    struct event_book *book;
    LIST_HEAD(, writing) under_way;
    unsigned n_under_way;
    uint64_t n_failed;
    int64_t refused_until_ms;
    bool warned, stopped;
};

static void writing_free(struct writing *t)
{
    LIST_REMOVE(t, all);
    t->w->n_under_way--;
    mem_free(t->path.p);
    mem_free(t);
}

/* A chart that is older than the process gives no right to write Events. */
static void refused(struct event_writer *w, const struct err *err)
{
    w->refused_until_ms = clock_mono_ms(w->clock) + REFUSED_MS;
    if (!w->warned)
        log_warn("grants: no Events are written: %.*s", STR_F(err->message));
    w->warned = true;
}

static void on_written(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct writing *t = ctx;
    struct event_writer *w = t->w;

    (void)answer;
    assert(w->magic == WRITER_MAGIC);
    w->n_failed += err != NULL;
    if (err)
        fleet_event_expired(w->book, t->path);
    if (host_err_is_permanent(err))
        refused(w, err);
    writing_free(t);
}

void fleet_event_write(struct event_writer *w, const char *kind, const cJSON *object,
                       const struct fleet_event *event)
{
    struct fleet_event_request request;
    struct host_request q = {0};
    struct arena *a;
    struct writing *t;

    assert(w->magic == WRITER_MAGIC);
    if (w->stopped || clock_mono_ms(w->clock) < w->refused_until_ms)
        return;
    if (w->n_under_way >= MOST_UNDER_WAY) {
        w->n_failed++;
        return;
    }
    a = arena_new(0);
    if (fleet_event_request(w->book, a, kind, object, event, clock_wall_us(w->clock), &request)) {
        t = NEW(struct writing);
        *t = (struct writing){.w = w, .path = mem_str(request.event)};
        LIST_INSERT_HEAD(&w->under_way, t, all);
        w->n_under_way++;
        q = (struct host_request){.method = request.method,
                                  .path = request.path,
                                  .content_type = request.content_type,
                                  .body = request.body,
                                  .aside = true};
        t->call = host_send(w->host, &q, on_written, t);
    }
    arena_free(a);
}

void fleet_event_lost(struct event_writer *w, size_t n)
{
    w->n_failed += n;
}

void fleet_event_writer_metrics(const struct event_writer *w, struct buf *out)
{
    metrics_single_u64(out, METRIC_FLEET_EVENTS_DROPPED,
                       w->n_failed + fleet_event_book_dropped(w->book));
}

struct event_writer *fleet_event_writer_new(struct host *host, const struct clock *clock)
{
    struct event_writer *w = NEW(struct event_writer);

    *w = (struct event_writer){
        .magic = WRITER_MAGIC, .host = host, .clock = clock, .book = fleet_event_book_new()};
    return w;
}

void fleet_event_writer_stop(struct event_writer *w)
{
    assert(w->magic == WRITER_MAGIC);
    w->stopped = true;
    while (!LIST_EMPTY(&w->under_way)) {
        struct writing *t = LIST_FIRST(&w->under_way);

        host_cancel(t->call);
        writing_free(t);
    }
}

struct event_writer *fleet_event_writer_free(struct event_writer *w)
{
    if (!w)
        return NULL;
    assert(w->magic == WRITER_MAGIC && LIST_EMPTY(&w->under_way));
    fleet_event_book_free(w->book);
    w->magic = 0;
    return mem_free(w);
}
