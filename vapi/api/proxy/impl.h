/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/proxy)
 *
 * One proxied request, between its call and whoever answers it. */
#pragma once

#include <sublet/call.h>
#include <sublet/proxy.h>

#define PROXY_MAGIC 0x70726f78u

struct proxy {
    unsigned magic;
    struct call *call;
    struct proxy_request request;
    const struct proxy_events *events;
    void *ctx;
    bool begun;
};

/* target.c: what the URL names. Fills kind, ns, name, scheme, port and path. */
int proxy_read_target(struct call *c, struct proxy_request *r, struct err *err) MUST_CHECK;

/* options.c: the query's options, checked, and written anew as they go on. Needs r->object. */
int proxy_read_options(struct call *c, struct proxy_request *r, struct err *err) MUST_CHECK;

/* headers.c: which of the client's headers go on. */
void proxy_read_headers(struct call *c, struct proxy_request *r);
/* Those of an answer that may go out; *ret_n of them in c's arena. */
const struct net_header *proxy_answer_headers(struct call *c, const struct net_header *headers,
                                              size_t n, bool upgrade, size_t *ret_n);
