/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules of CronJobs: eight bytes of time, then the schedule. What is accepted is due after the
 * time it was computed for and again at that time, and never where it says it is not. */

#include <assert.h>
#include <string.h>

#include "../../vapi/controllers/cron_schedule.h"

#define YEARS_4 ((int64_t)4 * 366 * 86400)
#define YEARS_5 ((int64_t)5 * 366 * 86400)
#define LATEST  ((int64_t)253402300799) /* the last second of the year 9999 */

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_times(const struct cron_schedule *s, int64_t start, int64_t t)
{
    int64_t next = cron_next(s, start, t), last = cron_last(s, start, t);

    assert(!next || next > t);
    assert(!last || last <= t);
    if (s->every_s)
        return;
    assert(!next || next <= t + YEARS_5);
    assert(!last || last >= t - YEARS_5);
    /* What is next is the last one then, and nothing lies between. */
    assert(!next || cron_last(s, start, next) == next);
    assert(!next || next % 60 == 0);
    assert(!last || cron_next(s, start, last - 1) == last);
    /* Over a century without a leap day there may be none in reach. */
    assert(!last || !next || next - last > YEARS_4 || cron_next(s, start, last) == next);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct cron_schedule s;
    uint64_t t;

    if (size < sizeof(t))
        return 0;
    memcpy(&t, data, sizeof(t));
    t = t % (uint64_t)(LATEST - YEARS_5);
    if (cron_parse((struct str){(const char *)data + sizeof(t), size - sizeof(t)}, &s))
        check_times(&s, (int64_t)(t / 2), (int64_t)t);
    return 0;
}
