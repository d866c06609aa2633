/* SPDX-License-Identifier: Apache-2.0 */
/* The month, by a clock that may be set. Why: the budget of a month is lifted when the next one
 * begins, so that a clock which jumps there and back would lift it although the month goes on. Must
 * never hold back a month that begins by time that passes, nor depend on a jump within a month. */
#include "month_clock.h"

#include <stdlib.h>
#include <time.h>

#define TOLERANCE_MS INT64_C(300000) /* of a clock that is corrected, or stood still */

bool fleet_is_one_month(int64_t a_s, int64_t b_s)
{
    time_t times[] = {(time_t)a_s, (time_t)b_s};
    struct tm a, b;

    return gmtime_r(&times[0], &a) && gmtime_r(&times[1], &b) && a.tm_year == b.tm_year &&
           a.tm_mon == b.tm_mon;
}

static int64_t believe(struct month_clock *c, int64_t wall_ms)
{
    c->wall_ms = wall_ms;
    c->since_ms = c->off_ms = 0;
    return wall_ms / 1000;
}

int64_t fleet_month_clock(struct month_clock *c, int64_t wall_ms, int64_t mono_ms)
{
    bool first = !c->wall_ms;
    int64_t off;

    c->wall_ms += mono_ms - c->mono_ms;
    c->mono_ms = mono_ms;
    off = wall_ms - c->wall_ms;
    if (first || llabs(off) <= TOLERANCE_MS ||
        fleet_is_one_month(wall_ms / 1000, c->wall_ms / 1000))
        return believe(c, wall_ms);
    if (!c->since_ms || llabs(off - c->off_ms) > TOLERANCE_MS) {
        c->off_ms = off;
        c->since_ms = mono_ms;
    }
    if (mono_ms - c->since_ms >= MONTH_CLOCK_SETTLES_MS)
        return believe(c, wall_ms);
    return c->wall_ms / 1000;
}
