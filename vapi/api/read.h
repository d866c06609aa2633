/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the API (GET, LIST, WATCH) share among themselves. Internal to vapi/api. */
#pragma once

#include <sublet/call.h>

/* Goes on with next(c) once the committed revision is at least `revision`: at once, or after at
 * most three seconds; then 504 Timeout with cause ResourceVersionTooLarge. The call may be
 * cancelled meanwhile. */
void read_when(struct call *c, int64_t revision, void (*next)(struct call *c));
/* The same, where late gets the error of a revision that did not come. */
void read_when_else(struct call *c, int64_t revision, void (*next)(struct call *c),
                    void (*late)(struct call *c, const struct err *err));
/* Goes on with next(c) once the state of an older revision of c's resource can be scanned, or it is
 * known that it cannot: store_scan() says which. */
void read_past(struct call *c, int64_t revision, void (*next)(struct call *c));
/* 504 as clients recognise it. */
int read_too_large(struct err *err, int64_t wanted, int64_t current);
/* ListOptions and field selector of a list: 422 or 400. */
int read_check_options(struct call *c, struct err *err) MUST_CHECK;

/* A LIST on its way: what it shows, by reference, from its arena. */
struct list {
    struct call *call;
    int64_t revision;
    size_t n, cap, limit;
    const struct store_object **objects;
    size_t rest; /* objects behind the limit that exist (without selectors: all that match) */
    bool more;
};
/* Checks the options of a list and goes on with next(c) when its revision is there; else answers.
 */
void read_list_when(struct call *c, void (*next)(struct call *c));
/* What c's options choose, now. NULL with err when they cannot be met. */
struct list *list_scan(struct call *c, struct err *err) MUST_CHECK;
/* list_rows.c: answers in the form that was asked for and lets go of the objects. */
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

/* Checks c's field selector, 400 `field label not supported: x`, and turns its names into those the
 * index has: the stored version's. */
int index_select(struct call *c, struct err *err) MUST_CHECK;
/* A Table or PartialObjectMetadata(List) in the version the client asked for. */
void form_version(struct arena *a, const struct call *c, cJSON *form);
/* Stored bytes are what this version answers with. */
bool convert_is_identity(const struct resource *r, const struct store_object *o);
