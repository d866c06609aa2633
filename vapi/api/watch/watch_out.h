/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/watch)
 *
 * The sending half of a watch: its answer begins, carries events in the requested form, ends. */
#pragma once

#include "watch.h"

#include <sublet/store.h>

#define WATCH_BOOKMARK_MS 60000 /* between two bookmarks */

struct watch_out {
    struct call *call;
    struct watch_socket *socket; /* NULL: a stream of HTTP */
    struct arena *scratch;       /* trees of one event; an idle watch keeps nothing of its last */
    bool columns_sent;
    int64_t bookmarked; /* revision of the last bookmark */
};

/* Begins the answer of c. received() gets what the client sends over a WebSocket, with the
 * call_entry. */
void watch_out_begin(struct watch_out *o, struct call *c,
                     void (*received)(void *ctx, struct str bytes));
/* Before call_end(), while the client is there. */
void watch_out_goodbye(struct watch_out *o);
void watch_out_free(struct watch_out *o); /* what it keeps; not o itself */
/* May more be sent, or does the client have too much to read? */
bool watch_out_has_room(const struct watch_out *o);
/* revision: shown in the object; differs from its own when the object left the selector. */
void watch_out_stored(struct watch_out *o, enum store_event_type type,
                      const struct store_object *object, int64_t revision);
/* A tree of o->scratch or of the caller, which is not used afterwards. */
void watch_out_tree(struct watch_out *o, enum store_event_type type, cJSON *object);
/* initial_end: it ends the initial state. */
void watch_out_bookmark(struct watch_out *o, int64_t revision, bool initial_end);
void watch_out_error(struct watch_out *o, const struct err *err);

/* watch.c: how long a watch may last, in seconds: as requested, else as upstream distributes it. */
int64_t watch_seconds(struct call *c);
/* ListOptions and selectors of a watch: 422 or 400. */
int watch_check_options(struct call *c, struct err *err) MUST_CHECK;
/* Does it begin with the present state? */
bool watch_wants_initial(const struct call *c);
