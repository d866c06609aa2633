/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api)
 *
 * Answers that are made while their reader takes them: a piece at a time, a slice of time in each
 * turn of the loop, compressed on the way where the client takes gzip. What is held of one is a
 * piece, and what the kernel has not taken yet.
 *
 *   stream_answer --made within its first slice of time--> a whole answer, its length known
 *        '--> begun --piece, drained, piece, ...--> ended
 *                '--client gone--> cancelled */
#pragma once

#include "api.h"

#define STREAM_PIECE (128u * 1024) /* handed to the network at once */
#define STREAM_BATCH 1024          /* slices of an answer by reference, likewise */

struct stream_source {
    /* One of the two. next() appends some bytes, at least one object's; false: they were the last.
     * slices() gives pieces by reference, at most STREAM_BATCH; 0: there are no more. */
    bool (*next)(void *ctx, struct buf *out);
    size_t (*slices)(void *ctx, struct net_slice *ret);
    void (*release)(void *ctx); /* once: nothing more is asked of it */
    void *ctx;
    size_t piece; /* next() may append as much at once; 0: about STREAM_PIECE */
};

void streaming_open(struct vapi *api);
void streaming_close(struct vapi *api); /* its handle counts in api->open_handles */
void streaming_free(struct vapi *api);

/* Takes the call over, as call_tree() does. headers: all but those of compression, copied. length:
 * of all that slices() gives, -1 with next(). */
void stream_answer(struct call *c, int status, const struct net_header *headers, size_t n,
                   const struct stream_source *source, int64_t length);

/* respond.c: the same with the headers every answer has. */
void respond_source(struct call *c, int status, struct str content_type,
                    const struct stream_source *source, int64_t length);
