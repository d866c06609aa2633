/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The requests that follow from what the host shows of pools and bindings. Pure. */
#pragma once

#include "grant_state.h"

/* A request to the host. Its version is that of the object as it was seen; empty: it is created. */
struct grant_write {
    const char *method;
    struct str path, version; /* path of the object, also where it is created */
    struct str collection;    /* of a POST; else empty */
    struct str part;          /* of a ResourceQuota: the pool whose share changes; or empty */
    struct str pool;          /* what it raises, where it raises */
    struct rational value;
    cJSON *body;
    const char *kind; /* of a status, whose change is worth Events; else NULL */
    const cJSON *before;
};
/* The next write after the given one, in a stable order; starts at *at 0. False: there is none. */
bool grant_next_write(struct grant_state *s, size_t *at, struct grant_write *ret);
/* The reason of condition Ready for each state of a binding. */
extern const char *const GRANT_REASONS[N_SHARE_STATES];
