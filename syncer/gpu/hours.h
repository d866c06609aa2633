/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * How long GPUs of a pool were charged in this month of UTC: sum of GPUs x time, exactly, in GPU
 * microseconds. It is the tenant's own measure, from admission to release, and no bill. */
#pragma once

#include <sublet/rational.h>
#include <sublet/store.h>

struct hours_of {
    struct store *store;
    struct str pool;
    struct rational used;     /* since the last change of it, and now */
    int64_t now_us, start_us; /* start: what is counted from where nothing is on record */
};
#define HOUR_MILLI_US INT64_C(3600000) /* a thousandth of an hour */
/* The month that is counted: from when, and until when, which is never before what was counted. */
void sync_hours_span(const struct hours_of *h, int64_t *ret_begin_us, int64_t *ret_until_us);
struct rational sync_hours_read(const struct hours_of *h);
/* Before the sum changes, in the same transaction. */
void sync_hours_note(const struct hours_of *h);
/* In hours, rounded down to thousandths. */
struct rational sync_hours_rounded(struct rational gpu_us);
