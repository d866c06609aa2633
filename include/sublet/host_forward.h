/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * Exchanges with servers of a tenant (forward.h) over libcurl on the loop: HTTP/1.1, so that one
 * that is paused holds no other up and buffers no more than a piece, with kept connections, and
 * never with credentials of the host. */
#pragma once

#include <sublet/clock.h>
#include <sublet/forward.h>

struct uv_loop_s;
struct host_forwards;

struct host_forwards *host_forwards_new(struct uv_loop_s *loop, const struct clock *clock);
/* name: of the server, as its certificate has it; address: where it is reached. Copies all. */
struct forward *host_forward_open(struct host_forwards *h, struct str name, struct str address,
                                  const struct forward_request *q,
                                  const struct forward_events *events, void *ctx);
void host_forward_pause(struct forward *f, bool pause);
void host_forward_close(struct forward *f);
/* Ends everything under way now, from inside this call, with UNAVAILABLE; nothing is opened after
 * it. */
void host_forwards_stop(struct host_forwards *h);
/* After host_forwards_stop(). */
void host_forwards_close(struct host_forwards *h, void (*closed)(void *ctx), void *ctx);
