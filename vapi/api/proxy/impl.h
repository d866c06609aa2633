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
    struct watch_socket *socket; /* the log goes as messages */
    bool base64;
};

/* log_socket.c: a log over a WebSocket, as apiserver's StreamObject sends one. */
bool proxy_socket_requested(const struct proxy *p);
bool proxy_socket_refused(struct call *c); /* it is answered */
/* False: the connection cannot become one. */
bool proxy_socket_open(struct proxy *p, void (*received)(void *ctx, struct str bytes)) MUST_CHECK;
size_t proxy_socket_write(struct proxy *p, struct str bytes); /* as proxy_write() */
/* True: the client closed it, or violated the protocol. */
bool proxy_socket_received(struct proxy *p, struct str bytes);

static inline bool proxy_is_http(enum proxy_kind kind)
{
    return kind == PROXY_POD || kind == PROXY_SERVICE || kind == PROXY_NODE;
}

/* target.c: the object in the URL. Fills kind, ns, name, scheme, port and path. */
int proxy_read_target(struct call *c, struct proxy_request *r, struct err *err) MUST_CHECK;

/* Of a node: its kubelet's /containerLogs/NAMESPACE/POD/CONTAINER. */
bool proxy_is_container_log(const struct proxy_request *r);
/* Makes it a PROXY_LOG: fills kind, ns, name and container. */
int proxy_read_container_log(struct proxy_request *r, struct err *err) MUST_CHECK;

/* A proxy's path as admission sees it; then what admission left, which may be another one: 400. */
struct str proxy_shown_path(const struct proxy_request *r);
int proxy_set_path(struct proxy_request *r, struct str path, struct err *err) MUST_CHECK;

/* options.c */
/* The options of a connection as an object without its kind (PodExecOptions, ...), from the query
 * and the path; not of a log. */
int proxy_connect_options(struct call *c, struct proxy_request *r, cJSON **ret,
                          struct err *err) MUST_CHECK;
/* Options, validated and re-encoded for forwarding: of a connection, or (NULL) those of a log in
 * the query. Needs r->object. */
int proxy_read_options(struct call *c, const cJSON *connection, struct proxy_request *r,
                       struct err *err) MUST_CHECK;

/* headers.c: selects the client's headers to forward. */
void proxy_read_headers(struct call *c, struct proxy_request *r);
/* Selects the headers of an answer to send; *ret_n of them in c's arena. */
const struct net_header *proxy_answer_headers(struct call *c, const struct net_header *headers,
                                              size_t n, bool upgrade, size_t *ret_n);
