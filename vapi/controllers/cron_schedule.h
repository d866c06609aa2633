/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a CronJob: five fields or a descriptor, in a time zone. Internal to
 * vapi/controllers. */
#pragma once

#include <sublet/mem.h>

#include <stdbool.h>

struct time_zone;

struct cron_schedule {
    uint64_t minutes, hours, days, months, weekdays; /* bit n: the schedule includes n */
    bool any_day, any_weekday;                       /* the field was "*": the other one decides */
    int64_t every_s;                                 /* "@every": seconds; 0 otherwise */
    const struct time_zone *zone;                    /* NULL: UTC */
};

/* False when the string is no schedule (validation has reported why). */
bool cron_parse(struct str text, struct cron_schedule *ret);
/* The first scheduled time after, or the last one not after, unix second t; 0 when there is none in
 * the next (last) five years. start: where "@every" counts from. A time that a clock change skips
 * is not scheduled, one that it repeats is scheduled twice: as upstream. */
int64_t cron_next(const struct cron_schedule *s, int64_t start, int64_t t);
int64_t cron_last(const struct cron_schedule *s, int64_t start, int64_t t);
