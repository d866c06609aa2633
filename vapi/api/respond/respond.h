/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Answers: the form a client accepts, stored bytes by reference or a tree in that form, lists by
 * rows, and streamed answers: produced while the client reads, a piece at a time, with a slice of
 * time in each turn of the loop, compressed if the client accepts gzip. Memory holds only one
 * piece, and the bytes the kernel has not accepted yet.
 *
 *   stream_answer --complete within its first slice of time--> a whole answer, with its length
 *        '--> begun --piece, drained, piece, ...--> ended
 *                '--client gone--> cancelled */
#pragma once

#include "../../core/calls.h"
#include "../../core/target.h"

#define API_GZIP_FROM (128u * 1024)
#define STREAM_PIECE  (128u * 1024) /* passed to the network at once */
#define STREAM_BATCH  1024          /* slices of an answer by reference, likewise */

/* stream.c */
struct stream_source {
    /* Exactly one of the two is set. next() appends some bytes, at least one object's; false: they
     * were the last. slices() returns pieces by reference, at most STREAM_BATCH; 0: there are no
     * more. */
    bool (*next)(void *ctx, struct buf *out);
    size_t (*slices)(void *ctx, struct net_slice *ret);
    void (*release)(void *ctx); /* called once, last */
    void *ctx;
    size_t piece; /* next() may append this much at once; 0: about STREAM_PIECE */
};

void streaming_open(struct vapi *api);
void streaming_close(struct vapi *api); /* its handle counts in api->open_handles */
void streaming_free(struct vapi *api);

/* Takes over the call, as call_tree() does. headers: all but those of compression, copied. length:
 * the total of slices(), -1 with next(). */
void stream_answer(struct call *c, int status, const struct net_header *headers, size_t n,
                   const struct stream_source *source, int64_t length);

/* negotiate.c */
/* Chooses the form of the answer from Accept, Accept-Encoding, User-Agent and the query. */
int respond_negotiate(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* Whether Accept lists one of types (NULL-ended) or a wildcard: the check of upstream's router. */
bool respond_routable(const struct call *c, const char *const *types);
/* 406 with the message of that router. */
int respond_unroutable(struct err *err, const char *available) MUST_CHECK;
/* Reviews and similar kinds have no tables and partial objects. */
bool respond_forms(const struct call *c);

/* The media types of an Accept header by descending quality; an empty one accepts all. */
size_t respond_accepted(struct str accept, struct str *types, size_t max);

/* respond.c */
void respond_error(struct call *c, const struct err *err);
void respond_give_up(struct call *c, const struct err *err, struct str text);
void respond_tree(struct call *c, int status, cJSON *object);
void respond_raw(struct call *c, int status, struct str content_type, struct str body);
/* Like call_raw(), by reference. */
void respond_slice(struct call *c, int status, struct str content_type, struct net_slice body);
void respond_text(struct call *c, int status, const char *text);
/* An object that is not stored, a dry run's or a deleted one, in the requested form. */
void respond_object(struct call *c, int status, cJSON *object);
/* Likewise, with the columns of r in a Table: what a subresource makes is of another kind. */
void respond_object_as(struct call *c, const struct resource *r, int status, cJSON *object);
/* stream_answer() with the headers every answer has. */
void respond_source(struct call *c, int status, struct str content_type,
                    const struct stream_source *source, int64_t length);

/* list_rows.c */
/* A LIST being answered: its objects, by reference, in its arena. */
struct list {
    struct call *call;
    int64_t revision;
    size_t n, cap, limit;
    const struct store_object **objects;
    size_t rest; /* objects beyond the limit (without selectors: all that match) */
    bool more;
};
/* Answers in the requested form and releases the objects. */
void list_answer(struct list *l);
void list_release(struct list *l);

/* list_token.c */
struct list_position {
    int64_t revision; /* 0: the latest; -1: any (an inconsistent continuation) */
    struct str ns, name;
};
struct str list_token(const struct call *c, int64_t revision, struct str ns, struct str name);
/* Parses c->options.cont; 400 when it is invalid. */
int list_token_read(struct call *c, struct list_position *ret, struct err *err) MUST_CHECK;
/* Whether a list of that revision began at least five minutes ago. */
bool list_token_expired(const struct call *c, int64_t revision);

/* table.c: a Table or PartialObjectMetadata(List) in the version the client accepts. */
void respond_table_form_version(struct arena *a, const struct call *c, cJSON *form);
