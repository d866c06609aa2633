/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Events of the host on GPUBindings and GPUPools: which ones follow from a change of a status, how
 * many are written, and the requests for them. Pure. */
#pragma once

#include <sublet/hash.h>
#include <sublet/json.h>

struct fleet_event {
    const char *type, *reason; /* "Normal" or "Warning"; a literal */
    struct str message;
};
#define FLEET_EVENTS_MOST 16 /* of one change */
/* What is worth an Event of a change of the status of an object of this kind; returns how many.
 * Messages live in the arena. */
size_t fleet_events_of(struct arena *a, const char *kind, const cJSON *before, const cJSON *now,
                       struct fleet_event *ret);

/* Remembers what was said, so that a repeat raises a count and the rate is bounded: of an object 20
 * at once and one a minute, of all 1,000 at once and 10 a second. Of at most 2,000 objects. */
struct event_book;
struct event_book *fleet_event_book_new(void);
struct event_book *fleet_event_book_free(struct event_book *b); /* takes NULL, returns NULL */

struct fleet_event_request {
    const char *method, *content_type;
    struct str path, body; /* in the arena */
    struct str event;      /* the path of the Event itself; in the arena */
};
/* The request that says it of the object. False: too many were said; it is counted. */
bool fleet_event_request(struct event_book *b, struct arena *a, const char *kind,
                         const cJSON *object, const struct fleet_event *event, int64_t now_us,
                         struct fleet_event_request *ret);
/* The host has no such Event, or not any more: the next one is another. */
void fleet_event_expired(struct event_book *b, struct str path);
uint64_t fleet_event_book_dropped(const struct event_book *b);
