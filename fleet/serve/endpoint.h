/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The port of `sublet fleet`: GET /metrics, and nothing else. */
#pragma once

#include <sublet/buf.h>
#include <sublet/err.h>

struct uv_loop_s;
struct fleet_endpoint;
struct fleet_endpoint_options {
    struct uv_loop_s *loop;
    struct str address; /* "127.0.0.1:0" */
    struct str token;   /* of the Authorization header; empty: none, on a loopback address only */
    struct str certificate, key; /* file names, PEM; both empty: unencrypted */
    int (*write)(void *ctx, struct buf *out, struct err *err); /* for every scrape */
    void *ctx;
};
int fleet_endpoint_open(const struct fleet_endpoint_options *options, struct fleet_endpoint **ret,
                        struct err *err) MUST_CHECK;
unsigned fleet_endpoint_port(const struct fleet_endpoint *e);
/* closed() from the loop. */
void fleet_endpoint_close(struct fleet_endpoint *e, void (*closed)(void *ctx), void *ctx);
