/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * POSTs to servers that are not the host's API: a tenant's webhooks. Over libcurl on the loop, with
 * kept connections, and never with credentials. */
#pragma once

#include <sublet/clock.h>
#include <sublet/err.h>

struct uv_loop_s;
struct host_posts;

struct host_post {
    struct str name;    /* of the server, as its certificate has it: "hook.ns.svc" */
    struct str address; /* where it is reached: "10.0.0.7", "fd00::7"; empty: name is resolved */
    /* Of a name that is resolved: judges each address that a connection would be made to,
     * after the name was resolved. NULL: any. */
    bool (*may_connect)(struct str address);
    unsigned port;
    struct str path; /* with its query, encoded */
    struct str ca;   /* PEM, alone trusted; empty: what libcurl trusts */
    struct str body; /* JSON */
    int64_t timeout_ms;
    size_t most; /* bytes of the answer */
};
/* err NULL: the server answered; body is good until this returns. Otherwise why it did not, in the
 * words of Go's client, with the server's address. No redirect is followed, no proxy used. */
typedef void (*host_post_cb)(void *ctx, int status, struct str body, const struct err *err);

struct host_posts *host_posts_new(struct uv_loop_s *loop, const struct clock *clock);
/* Copies p. done() exactly once, from the loop. */
void host_posts_send(struct host_posts *h, const struct host_post *p, host_post_cb done, void *ctx);
/* Answers everything under way now, from inside this call, with UNAVAILABLE; nothing is sent after
 * it. */
void host_posts_stop(struct host_posts *h);
/* After host_posts_stop(). */
void host_posts_close(struct host_posts *h, void (*closed)(void *ctx), void *ctx);
