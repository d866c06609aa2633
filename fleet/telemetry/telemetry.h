/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What pods do with the GPUs they hold, as the exporters of the nodes say (`telemetry.dcgm`): as
 * metrics, and as rows of the page. */
#pragma once

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/config.h>

#include "activity.h"

struct exporter_nodes_view;
struct fleet_hold;
struct fleet_records;
struct host;
struct telemetry;
struct uv_loop_s;
struct telemetry_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct host *host;           /* outlives it */
    const struct config *config; /* telemetry_dcgm, pools; outlives it */
    uint64_t secret;             /* telemetry_series_new() */
    void (*changed)(void *ctx);  /* an exporter answered */
    void *ctx;
};
struct telemetry *telemetry_new(const struct telemetry_options *options);
/* Reads exporters from now on; once. Takes NULL. */
void telemetry_start(struct telemetry *t);
void telemetry_restart(struct telemetry *t); /* the host went back; takes NULL */
/* closed() from the loop. */
void telemetry_close(struct telemetry *t, void (*closed)(void *ctx), void *ctx);

/* A pod of the host as it is now, "namespace/name". hold: what the ledger has open of it; NULL: it
 * holds nothing. Takes t NULL. */
void telemetry_pod(struct telemetry *t, struct str name, const cJSON *pod,
                   const struct fleet_hold *hold);
/* now: of observer_snapshot(); NULL: the host is not read yet. Takes t NULL. */
void telemetry_metrics(struct telemetry *t, const struct fleet_records *now, struct buf *out);
/* The nodes of which no exporter answers. False: there is no telemetry. */
bool telemetry_nodes(struct telemetry *t, struct arena *a, const struct fleet_records *now,
                     struct exporter_nodes_view *ret);
/* What a tenant, a host namespace, may see, in Prometheus' text format. NOT_FOUND: there is no
 * telemetry (takes t NULL); TOO_MANY_REQUESTS; TOO_LARGE. */
int telemetry_tenant(struct telemetry *t, struct str tenant, struct buf *out,
                     struct err *err) MUST_CHECK;
/* As activity_each(); none where there is no telemetry (takes t NULL). */
void telemetry_each(struct telemetry *t,
                    void (*visit)(void *ctx, struct str uid, enum activity_state state), void *ctx);
/* False: there is no telemetry. */
bool telemetry_look(struct telemetry *t, struct arena *a, struct activity_view *ret);
