/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Watches, also over a WebSocket (RFC 6455) for consoles in browsers, and reads that wait for a
 * revision. */
#pragma once

#include "../../core/calls.h"

/* watch.c */
void call_watch(struct call *c);
void watch_registry_changed(void *ctx); /* the vapi; for registry_on_change() */

/* read_wait.c */
/* Calls next(c) once the committed revision is at least `revision`: at once, or after at most three
 * seconds; then 504 Timeout with cause ResourceVersionTooLarge. The call may be cancelled
 * meanwhile. */
void read_when(struct call *c, int64_t revision, void (*next)(struct call *c));
/* The same, but late() receives the error of a revision that did not come. */
void read_when_else(struct call *c, int64_t revision, void (*next)(struct call *c),
                    void (*late)(struct call *c, const struct err *err));
/* Calls next(c) once an older revision of c's resource can be scanned, or it is known that it
 * cannot: store_scan() reports which. */
void read_past(struct call *c, int64_t revision, void (*next)(struct call *c));
/* 504 as clients recognise it. */
int read_too_large(struct err *err, int64_t wanted, int64_t current);

/* watch_socket.c: what a server sends as messages; what the client sends is ignored */
#define WATCH_SOCKET_HEAD 10 /* maximal length of the bytes before a message */

enum socket_next { SOCKET_GO_ON, SOCKET_CLOSE };

struct watch_socket;
/* Is a WebSocket requested, and can the connection become one? */
bool watch_socket_requested(const struct call *c);
/* True when the request for a WebSocket is invalid: it is answered. protocols: the subprotocols
 * that may be chosen, ending in NULL, for any origin; NULL: as for a watch, at most one. */
bool watch_socket_refused(struct call *c, const char *const *protocols);
/* In place of call_begin(), after watch_socket_refused() with the same protocols. NULL when none is
 * requested, or it is not possible (HTTP/2). received() gets the call_entry. */
struct watch_socket *watch_socket_open(struct call *c, const char *const *protocols,
                                       void (*received)(void *ctx, struct str bytes));
/* The chosen subprotocol; empty when the client named none. */
struct str watch_socket_protocol(const struct call *c, const char *const *protocols);
/* The bytes before a message of n bytes; returns their length. */
size_t watch_socket_head(bool binary, size_t n, unsigned char ret[WATCH_SOCKET_HEAD]);
/* Bytes from the client. The socket must be closed when it is done or violated the protocol. */
enum socket_next watch_socket_receive(struct watch_socket *s, struct call *c, struct str bytes);
/* The closing frame, before call_end(). */
void watch_socket_goodbye(struct call *c);
