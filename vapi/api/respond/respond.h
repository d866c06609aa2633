/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Answers: the form a client takes, stored bytes by reference or a tree in that form, lists by
 * rows, and answers that are made while their reader takes them: a piece at a time, a slice of time
 * in each turn of the loop, compressed on the way where the client takes gzip. What is held of one
 * is a piece, and what the kernel has not taken yet.
 *
 *   stream_answer --made within its first slice of time--> a whole answer, its length known
 *        '--> begun --piece, drained, piece, ...--> ended
 *                '--client gone--> cancelled
 */
#pragma once

#include "../../core/calls.h"
#include "../../core/target.h"

#define API_GZIP_FROM (128u * 1024)
#define STREAM_PIECE  (128u * 1024) /* handed to the network at once */
#define STREAM_BATCH  1024          /* slices of an answer by reference, likewise */

/* stream.c */
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

/* negotiate.c */
/* Chooses the form of the answer from Accept, Accept-Encoding, User-Agent and the query. */
int respond_negotiate(struct call *c, const struct query *q, struct err *err) MUST_CHECK;
/* Whether Accept names one of types (NULL-ended) or anything: what upstream's router looks at. */
bool respond_routable(const struct call *c, const char *const *types);
/* 406 in the words of that router. */
int respond_unroutable(struct err *err, const char *available) MUST_CHECK;
/* Tables and partial objects are not for reviews and the like. */
bool respond_forms(const struct call *c);

/* The media types of an Accept header by falling quality; an empty one accepts all. */
size_t respond_accepted(struct str accept, struct str *types, size_t max);

/* respond.c */
void respond_error(struct call *c, const struct err *err);
void respond_give_up(struct call *c, const struct err *err, struct str text);
void respond_tree(struct call *c, int status, cJSON *object);
void respond_raw(struct call *c, int status, struct str content_type, struct str body);
/* Like call_raw(), by reference. */
void respond_slice(struct call *c, int status, struct str content_type, struct net_slice body);
void respond_text(struct call *c, int status, const char *text);
/* An object that is not stored, a dry run's or one that went away, in the form asked for. */
void respond_object(struct call *c, int status, cJSON *object);
/* stream_answer() with the headers every answer has. */
void respond_source(struct call *c, int status, struct str content_type,
                    const struct stream_source *source, int64_t length);

/* list_rows.c */
/* A LIST on its way: what it shows, by reference, from its arena. */
struct list {
    struct call *call;
    int64_t revision;
    size_t n, cap, limit;
    const struct store_object **objects;
    size_t rest; /* objects behind the limit that exist (without selectors: all that match) */
    bool more;
};
/* Answers in the form that was asked for and lets go of the objects. */
void list_answer(struct list *l);
void list_release(struct list *l);

/* list_token.c */
struct list_position {
    int64_t revision; /* 0: now; -1: wherever we are (an inconsistent continuation) */
    struct str ns, name;
};
struct str list_token(const struct call *c, int64_t revision, struct str ns, struct str name);
/* c->options.cont; 400 when it is no token. */
int list_token_read(struct call *c, struct list_position *ret, struct err *err) MUST_CHECK;
/* Whether a list of that revision began five minutes ago or before. */
bool list_token_expired(const struct call *c, int64_t revision);

/* table.c: a Table or PartialObjectMetadata(List) in the version the client asked for. */
void form_version(struct arena *a, const struct call *c, cJSON *form);
