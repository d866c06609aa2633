/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * The process of a host cluster that sees all tenants: it watches nodes and pods, and keeps the
 * ledger and, where the configuration has it so, grants GPUs by GPUPools and GPUBindings. One
 * process per host acts, by the Lease `sublet-fleet`. */
#pragma once

#include <sublet/clock.h>
#include <sublet/config.h>

struct uv_loop_s;
struct fleet;
struct fleet_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    const struct rng *rng;
    const struct config *config; /* host, store.path, lease.duration, pools; outlives it */
    void (*waiting)(void *ctx, struct str holder); /* another process has the Lease */
    void (*ready)(void *ctx);                      /* the ledger is up to date; once */
    /* It cannot go on: the ledger cannot be written, the Lease was lost, the host refuses. Once. */
    void (*failed)(void *ctx, const struct err *err);
    void *ctx;
};
/* Opens the ledger and reads credentials. Errors name the file. */
int fleet_new(const struct fleet_options *options, struct fleet **ret, struct err *err) MUST_CHECK;
/* Serves /metrics on an address, at most once. token: what a scrape sends as its bearer token; may
 * be empty on a loopback address only. Certificate and key are files, PEM, read again when they
 * change; both empty: unencrypted. */
struct fleet_scrapes {
    struct str address, token, certificate, key;
};
int fleet_listen(struct fleet *f, const struct fleet_scrapes *scrapes, unsigned *ret_port,
                 struct err *err) MUST_CHECK;
/* Serves the page, at most once: to tokens that the host permits to `get` /fleet/state. Certificate
 * and key are files, PEM, read again when they change; both may be empty on a loopback address. */
struct fleet_page {
    struct str address, certificate, key;
    struct str audience; /* that tokens must be for; empty: the host's API server */
};
int fleet_show(struct fleet *f, const struct fleet_page *page, unsigned *ret_port,
               struct err *err) MUST_CHECK;
/* Records until when it observed, releases the Lease; closed() from the loop. */
void fleet_close(struct fleet *f, void (*closed)(void *ctx), void *ctx);
