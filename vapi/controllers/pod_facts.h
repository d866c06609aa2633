/* SPDX-License-Identifier: Apache-2.0 */
/* The properties of pods that controllers read in every run, parsed once per version of a pod.
 * Internal to vapi/controllers. */
#pragma once

#include "util.h"

struct pod_facts {
    int64_t revision; /* of the cached version; 0: empty */
    bool owned;       /* has a controller: */
    char owner[40];   /* its uid ("" when it is too long for a uid) */
    bool terminating, finished, ready;
    int64_t ready_since_s; /* 0: unknown */
};

/* A table of a fixed size: an entry replaces the one it collides with. */
struct pod_facts_table;
struct pod_facts_table *pod_facts_new(void);
/* Of a committed version (a revision identifies it); valid until the next call. */
const struct pod_facts *pod_facts_of(struct pod_facts_table *t, const struct store_object *pod);
void *pod_facts_start(struct controller *c); /* for controllers whose state the table is */
void pod_facts_stop(struct controller *c, void *state);
