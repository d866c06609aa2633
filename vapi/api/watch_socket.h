/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api)
 *
 * A watch over a WebSocket (RFC 6455), as consoles in browsers ask for it: one event a message. */
#pragma once

#include "api.h"

#define WATCH_SOCKET_HEAD 10 /* bytes a message begins with, at most */

enum socket_next { SOCKET_GO_ON, SOCKET_CLOSE };

struct watch_socket;
/* True when the request asks for one in a wrong way: it is answered. */
bool watch_socket_refused(struct call *c);
/* In place of call_begin(). NULL when none was asked for, or cannot be had (HTTP/2). received()
 * gets the call_entry. */
struct watch_socket *watch_socket_open(struct call *c,
                                       void (*received)(void *ctx, struct str bytes));
/* What stands before a message of n bytes; returns its length. */
size_t watch_socket_head(const struct call *c, size_t n, unsigned char ret[WATCH_SOCKET_HEAD]);
/* What the client sent. It is to be closed when nothing more is wanted, or it made no sense. */
enum socket_next watch_socket_receive(struct watch_socket *s, struct call *c, struct str bytes);
/* The last words, before call_end(). */
void watch_socket_goodbye(struct call *c);
