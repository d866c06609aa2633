/* SPDX-License-Identifier: Apache-2.0 */
/* The month to date. A ledger of many pods takes seconds to read: the loop must not wait for it,
 * and it is not read again before ten times as long has passed, but for the first look at another
 * month. */
#include "month.h"

#include <assert.h>

#include <uv.h>

#include <sublet/fleet_ledger.h>
#include <sublet/fleet_report.h>

#include "month_clock.h"

#define MONTH_MAGIC 0x6d6f6e74u
#define PAUSE_MS    60000
#define DAY_US      INT64_C(86400000000)
#define MOST_MEMORY ((size_t)192 << 20) /* of records, while they are summed */

/* One computation; the thread has it alone until on_computed(). */
struct job {
    uv_work_t work;
    struct month *month; /* NULL: it was freed */
    struct arena *a;     /* of what stays: the result, not the records */
    struct str location;
    int64_t now_s;
    struct usage usage, day;
    bool failed;
    struct err err;
};
struct month {
    unsigned magic;
    struct month_options o;
    struct job *job;    /* under way, or NULL */
    struct job *last;   /* that did not fail, or NULL */
    struct str trouble; /* on the heap */
    int64_t next_ms, began_ms;
    int64_t began_s; /* a time of the month that was read last, or was to be */
    int64_t read_ms; /* when one was read, or it was made */
    struct month_clock month_clock;
};

static struct job *job_free(struct job *job)
{
    if (job)
        arena_free(job->a);
    return mem_free(job);
}

struct month *fleet_month_new(const struct month_options *options)
{
    struct month *m = NEW(struct month);

    *m = (struct month){.magic = MONTH_MAGIC, .o = *options};
    m->o.location = mem_str(options->location);
    m->read_ms = clock_mono_ms(m->o.clock);
    return m;
}

struct month *fleet_month_free(struct month *m)
{
    if (!m)
        return NULL;
    assert(m->magic == MONTH_MAGIC);
    if (m->job) {
        m->job->month = NULL;
        (void)uv_cancel((uv_req_t *)&m->job->work); /* unless its thread began */
    }
    job_free(m->last);
    mem_free(m->trouble.p);
    mem_free(m->o.location.p);
    m->magic = 0;
    return mem_free(m);
}

static int compute_period(struct job *job, int64_t from_us, int64_t until_us, struct usage *ret)
{
    struct arena *a = arena_new(MOST_MEMORY);
    const struct ledger_usage_request request = {.a = a,
                                                 .location = job->location,
                                                 .from_us = from_us,
                                                 .until_us = until_us,
                                                 .columns = 1u << USAGE_TENANT | 1u << USAGE_POOL};
    struct usage usage;
    int result = ledger_usage(&request, &usage, &job->err);

    if (!result)
        *ret = fleet_usage_copy(job->a, &usage);
    arena_free(a);
    return result;
}

static int compute(struct job *job)
{
    const int64_t now_us = job->now_s * 1000000;
    struct str month = str_sub(time_format_s(job->a, job->now_s), 0, 7);
    int64_t from_us, until_us;

    if (report_month(job->a, month, &from_us, &until_us, &job->err) ||
        compute_period(job, from_us, until_us, &job->usage) ||
        compute_period(job, now_us - DAY_US, now_us, &job->day))
        return -1;
    return 0;
}

static void work(uv_work_t *work)
{
    struct job *job = work->data;

    job->failed = compute(job) != 0;
    mem_trim();
}

static void on_computed(uv_work_t *work, int status)
{
    struct job *job = work->data;
    struct month *m = job->month;
    int64_t now;

    (void)status; /* cancelled: only when the month was freed */
    if (!m) {
        job_free(job);
        return;
    }
    assert(m->magic == MONTH_MAGIC && m->job == job);
    now = clock_mono_ms(m->o.clock);
    m->job = NULL;
    m->next_ms = now + PAUSE_MS;
    if ((now - m->began_ms) * 10 > PAUSE_MS)
        m->next_ms = now + (now - m->began_ms) * 10;
    mem_free(m->trouble.p);
    m->trouble = job->failed ? mem_str(job->err.message) : STR_NULL;
    if (job->failed) {
        job_free(job);
    } else {
        job_free(m->last);
        m->last = job;
        m->read_ms = now;
    }
    m->o.changed(m->o.ctx);
}

int64_t fleet_month_now_s(struct month *m)
{
    return fleet_month_clock(&m->month_clock, clock_wall_us(m->o.clock) / 1000,
                             clock_mono_ms(m->o.clock));
}

void fleet_month_ask(struct month *m)
{
    int64_t now_s = fleet_month_now_s(m);
    struct job *job;
    int failed;

    assert(m->magic == MONTH_MAGIC);
    if (m->job || (m->next_ms && clock_mono_ms(m->o.clock) < m->next_ms &&
                   fleet_is_one_month(m->began_s, now_s)))
        return;
    job = NEW(struct job);
    *job = (struct job){.month = m, .a = arena_new(0), .now_s = now_s};
    m->began_s = now_s;
    job->location = arena_str(job->a, m->o.location);
    job->work.data = job;
    err_init(&job->err, job->a);
    m->job = job;
    m->began_ms = clock_mono_ms(m->o.clock);
    failed = uv_queue_work(m->o.loop, &job->work, work, on_computed);
    assert(!failed); /* only without a function */
}

const struct usage *fleet_month_usage(const struct month *m)
{
    return m->last ? &m->last->usage : NULL;
}

const struct usage *fleet_month_day(const struct month *m)
{
    return m->last ? &m->last->day : NULL;
}

int64_t fleet_month_us(const struct month *m)
{
    return m->last ? m->last->now_s * 1000000 : 0;
}

int64_t fleet_month_unread_s(const struct month *m)
{
    return (clock_mono_ms(m->o.clock) - m->read_ms) / 1000;
}

struct str fleet_month_trouble(const struct month *m)
{
    return m->trouble;
}
