/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the process knows of now, as one JSON object for the page. Quantities of GPUs, hours and
 * costs are decimal strings, rounded once; docs/usage.md has the members. */
#pragma once

#include <sublet/buf.h>

#include "telemetry/activity.h"
#include "telemetry/exporter_nodes.h"
#include "grants/grants.h"
#include "metrics.h"

struct overview {
    const struct fleet_now *now;
    struct grants_view grants;
    const struct fleet_watch_view *watched;      /* NULL: nothing */
    const struct activity_view *activity;        /* NULL: no telemetry */
    const struct exporter_nodes_view *exporters; /* NULL: the same */
    const struct usage *month;                   /* by tenant and pool; NULL: not known yet */
    struct str month_trouble;                    /* why not; may be empty */
};
int fleet_overview_write(struct arena *a, struct buf *out, const struct overview *o,
                         struct err *err) MUST_CHECK;
