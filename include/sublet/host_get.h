/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * One GET of a server that is not the host's API: an exporter on a pod's address, the fleet. Over
 * libcurl on the loop, on a connection of its own. */
#pragma once

#include <sublet/clock.h>
#include <sublet/host_trouble.h>

struct uv_loop_s;
struct host_get;
/* Bytes of answers that several requests hold together. The caller's, and outlives them. */
struct host_get_budget {
    size_t most, used;
};
struct host_get_options {
    struct uv_loop_s *loop;
    const struct clock *clock; /* outlives the loop's last turn */
    struct str server;         /* "http://10.0.0.7:9400", "https://name"; no path */
    struct str path;           /* with its query, encoded */
    const char *accept;
    struct str ca_file;             /* PEM, alone trusted; empty: what libcurl trusts */
    struct str token_file;          /* of the bearer token; empty: none */
    size_t max_bytes;               /* of the answer; beyond them TOO_LARGE */
    struct host_get_budget *budget; /* beyond it TOO_MANY_REQUESTS; NULL: none */
    int64_t timeout_ms;             /* connecting included */
};
/* err NULL: status 200, the body is good until done() returns. Otherwise UNAVAILABLE, TIMEOUT,
 * TOO_LARGE, TOO_MANY_REQUESTS; no address is in the message. Another status is UNAVAILABLE, too,
 * with `status` and the body. No redirect is followed, no proxy used. */
struct host_get_answer {
    int status; /* 0: none */
    struct str body;
    enum host_trouble trouble; /* why there is no status; HOST_FINE: there is, or it is too large */
};
typedef void (*host_get_cb)(void *ctx, const struct host_get_answer *answer, const struct err *err);
/* Copies the options. done() comes once, from the loop, unless cancelled. Handles of it stay in the
 * loop for a few turns longer, and close by themselves. */
struct host_get *host_get_send(const struct host_get_options *options, host_get_cb done, void *ctx);
void host_get_cancel(struct host_get *g); /* takes NULL; no callback after it */
/* Does a file have certificates, all of them readable? BAD_REQUEST names the problem. */
int host_get_check_ca(struct str file, struct err *err) MUST_CHECK;
