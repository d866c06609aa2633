/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the process knows of now, as metrics. */
#pragma once

#include <sublet/buf.h>
#include <sublet/fleet_ledger.h>

#include "core/watch.h"

struct fleet_now {
    bool leader;
    int64_t now_us, seen_us, unobserved_us; /* seen_us 0: the ledger is not open yet */
    bool remote, trouble;                   /* the ledger is a server's; it cannot be written */
    struct ledger_waiting waiting;
    const struct fleet_records *held; /* of observer_snapshot(); NULL: the host is not read yet */
    size_t refused;                   /* series of the counters */
};
int fleet_metrics(struct arena *a, struct buf *out, const struct fleet_now *now,
                  struct err *err) MUST_CHECK;
void fleet_watch_metrics(struct buf *out, const struct fleet_watch_view *view);
