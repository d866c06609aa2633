/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * What an HTTP/2 peer may send beyond what nghttp2 judges: how many cheap frames, and nothing more
 * on a stream it ended itself. Why: nghttp2 forgets a stream when it closes, and shows us no frame
 * that it ignores. Must never need memory per stream. */
#pragma once

#include <sublet/str.h>

#define GUARD_STREAMS 64 /* the newest ones, whose end is remembered */
#define GUARD_HEAD    9  /* bytes of a frame's header */
#define GUARD_PEEK    14 /* and of a whole PRIORITY */

struct guard {
    int64_t tokens, refilled_at; /* in thousandths; ms */
    int32_t newest;              /* stream of the peer; -1 before the first */
    uint64_t opened, ended;      /* bit i is about stream newest - 2i; ended: by the peer */
    unsigned char peek[GUARD_PEEK];
    size_t peeked;
    size_t skip; /* bytes until the next frame */
};

void guard_init(struct guard *g, int64_t now);
/* One frame that costs us more than the peer. False when it has sent too many. */
bool guard_charge(struct guard *g, int64_t now);
/* All bytes of the peer in order, from the preface on. Returns the error code (RFC 9113 7) that
 * ends the connection, and then takes the bytes from the offending frame on away; 0 when all is
 * well. Not to be called again after an error. */
uint32_t guard_scan(struct guard *g, struct str *bytes, int64_t now);
