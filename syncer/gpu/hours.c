/* SPDX-License-Identifier: Apache-2.0 */
/* A row "hours/<pool>" of the ledger: until when it was counted, and the sum of that month. A row,
 * so that charges go on while no process runs, and a failed transaction takes back what it counted.
 * Must never count a time twice: a clock that was set back counts nothing until it is where it was.
 */
#include "gpu/hours.h"

#include <assert.h>

#include <sublet/clock.h>

#define MONTH_CHARS 7 /* "2026-11" */

struct counted {
    int64_t until_us;
    struct rational gpu_us;
};

static struct str row_key(struct arena *a, struct str pool)
{
    return arena_printf(a, "hours/%.*s", STR_F(pool));
}

static int64_t month_begin(struct arena *a, int64_t us)
{
    struct str month = str_sub(time_format_us(a, us), 0, MONTH_CHARS);
    int64_t ret = us;
    bool is_time = time_parse(arena_printf(a, "%.*s-01T00:00:00Z", STR_F(month)), &ret);

    assert(is_time);
    return ret;
}

static struct counted recorded(const struct hours_of *h, struct arena *a)
{
    struct counted none = {h->start_us, RATIONAL_ZERO}, c = none;
    struct str row, until;

    if (!store_record_get(h->store, RECORD_LEDGER, row_key(a, h->pool), &row))
        return none;
    until = str_cut(&row, ' ');
    return str_to_i64(until, &c.until_us) && rational_parse(row, &c.gpu_us) ? c : none;
}

static struct counted count(const struct hours_of *h, struct arena *a)
{
    struct counted c = recorded(h, a);
    int64_t begin = month_begin(a, h->now_us);
    struct rational more;

    if (c.until_us < begin)
        c = (struct counted){begin, RATIONAL_ZERO};
    if (c.until_us >= h->now_us)
        return c;
    more = (struct rational){h->now_us - c.until_us, 1};
    if (rational_cmp(h->used, RATIONAL_MOST) == 0) /* it is not known */
        more = RATIONAL_ZERO;
    else if (!rational_mul(more, h->used, &more))
        more = RATIONAL_MOST;
    rational_add_most(&c.gpu_us, more);
    c.until_us = h->now_us;
    return c;
}

struct rational sync_hours_read(const struct hours_of *h)
{
    struct arena *a = arena_new(0);
    struct counted c = count(h, a);

    arena_free(a);
    return c.gpu_us;
}

void sync_hours_span(const struct hours_of *h, int64_t *ret_begin_us, int64_t *ret_until_us)
{
    struct arena *a = arena_new(0);

    *ret_until_us = count(h, a).until_us;
    *ret_begin_us = month_begin(a, *ret_until_us);
    arena_free(a);
}

void sync_hours_note(const struct hours_of *h)
{
    struct arena *a = arena_new(0);
    struct counted c = count(h, a);

    store_record_put(
        h->store, RECORD_LEDGER, row_key(a, h->pool),
        arena_printf(a, "%lld %.*s", (long long)c.until_us, STR_F(rational_format(a, c.gpu_us))));
    arena_free(a);
}

struct rational sync_hours_rounded(struct rational gpu_us)
{
    __int128 milli = (__int128)gpu_us.num / ((__int128)gpu_us.den * HOUR_MILLI_US);
    struct rational ret = RATIONAL_ZERO;
    bool fits =
        rational_mul((struct rational){(int64_t)milli, 1}, (struct rational){1, 1000}, &ret);

    assert(fits);
    return ret;
}
