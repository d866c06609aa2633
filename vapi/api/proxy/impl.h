/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/proxy)
 *
 * One proxied request, between its call and the hook that answers it. */
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

/* target.c: the object in the URL. Fills kind, ns, name, scheme, port and path. */
int proxy_read_target(struct call *c, struct proxy_request *r, struct err *err) MUST_CHECK;

/* options.c: the query's options, validated and re-encoded for forwarding. Needs r->object. */
int proxy_read_options(struct call *c, struct proxy_request *r, struct err *err) MUST_CHECK;

/* headers.c: selects the client's headers to forward. */
void proxy_read_headers(struct call *c, struct proxy_request *r);
/* Selects the headers of an answer to send; *ret_n of them in c's arena. */
const struct net_header *proxy_answer_headers(struct call *c, const struct net_header *headers,
                                              size_t n, bool upgrade, size_t *ret_n);
