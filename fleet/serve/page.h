/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * A live page for people: GET / is a page without data, GET /fleet/state one JSON object of now,
 * GET /fleet/events the same as server-sent events (`state`, a JSON line, whenever it changes, at
 * most once a second; `seen`, every 15 seconds). The last two need a bearer token that the host
 * accepts and permits to `get` the non-resource path /fleet/state. GET /tenants/NAMESPACE/dcgm is
 * what its tenant may see of its GPUs, for a token whose user may create pods there. Read-only. */
#pragma once

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/err.h>

struct host;
struct page;
struct uv_loop_s;
struct page_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct host *host;      /* outlives it */
    struct str address;     /* "127.0.0.1:8081" */
    struct str certificate; /* file names, PEM; both empty: unencrypted, */
    struct str key;         /* on a loopback address only */
    struct str audience;    /* that tokens must be for; empty: the host's API server */
    /* A JSON object in one line. For every push, and only while a client looks. */
    int (*write_state)(void *ctx, struct buf *out, struct err *err);
    void (*write_seen)(void *ctx, struct buf *out); /* a time: until then all was observed */
    /* What the tenant of a host namespace may see, in Prometheus' text format. */
    int (*write_tenant)(void *ctx, struct str ns, struct buf *out, struct err *err);
    void *ctx;
};
int fleet_page_open(const struct page_options *options, struct page **ret,
                    struct err *err) MUST_CHECK;
unsigned fleet_page_port(const struct page *p);
/* The state may differ from the one sent last. Takes NULL. */
void fleet_page_changed(struct page *p);
/* Before host_stop(). closed() from the loop. */
void fleet_page_close(struct page *p, void (*closed)(void *ctx), void *ctx);
