/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Events of writes of a status that got no answer: said once it shows that they happened. Pure. */
#pragma once

#include "events.h"

struct unsaid_events {
    struct arena *a; /* of all the others */
    const char *kind;
    cJSON *object; /* as it was to be: metadata of the version that was replaced, and the status */
    struct fleet_event list[FLEET_EVENTS_MOST];
    size_t n;
};

struct unsaid;
struct unsaid *fleet_unsaid_new(void);
struct unsaid *fleet_unsaid_free(struct unsaid *u); /* takes NULL, returns NULL */
/* Takes the arena. False: too many are kept, these are lost. The same write once more is the same
 * Events. */
bool fleet_unsaid_keep(struct unsaid *u, const struct unsaid_events *e);
/* A write that replaced this version of the object was answered: no other one did. */
void fleet_unsaid_drop(struct unsaid *u, const cJSON *object);
/* Looks at those whose object is at another version: says the Events of the one whose status it
 * has. see(): the object as it is now, in the arena; NULL: it is gone. under_way(): a write of the
 * object has no answer yet, which will say or keep its Events itself. */
struct unsaid_look {
    bool (*under_way)(void *ctx, const cJSON *object);
    const cJSON *(*see)(void *ctx, struct arena *a, const char *kind, const cJSON *object);
    void (*say)(void *ctx, const struct unsaid_events *e);
    void *ctx;
};
void fleet_unsaid_settle(struct unsaid *u, const struct unsaid_look *look);
