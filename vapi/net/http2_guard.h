/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * Checks of an HTTP/2 peer beyond nghttp2's: how many cheap frames it may send, and that nothing
 * follows on a stream it ended itself. Why: nghttp2 forgets a stream when it closes, and does not
 * report frames that it ignores. Must never need memory per stream. */
#pragma once

#include <sublet/str.h>
#include <sublet/token_bucket.h>

#define GUARD_STREAMS 64 /* newest streams whose end is remembered */
#define GUARD_HEAD    9  /* bytes of a frame header */
#define GUARD_PEEK    14 /* of a frame header with the body of PRIORITY */

struct guard {
    struct token_bucket cheap; /* ms */
    int32_t newest;            /* newest stream of the peer; -1 before the first */
    uint64_t opened, ended;    /* bit i is about stream newest - 2i; ended: by the peer */
    unsigned char peek[GUARD_PEEK];
    size_t peeked;
    size_t skip; /* bytes until the next frame */
};

void guard_init(struct guard *g);
/* Charges one frame that costs us more than the peer. False when it has sent too many. */
bool guard_charge(struct guard *g, int64_t now);
/* Reads all bytes of the peer in order, from the preface on. Returns 0, or the error code (RFC 9113
 * 7) that ends the connection; then *bytes is cut before the offending frame. Must not be called
 * again after an error. */
uint32_t guard_scan(struct guard *g, struct str *bytes, int64_t now);
