/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers ask of every pod of an owner again and again, read once for each version of a
 * pod. Internal to vapi/controllers. */
#pragma once

#include "util.h"

struct pod_facts {
    int64_t revision; /* of the version they are of; 0: none */
    bool owned;       /* has a controller: */
    char owner[40];   /* its uid ("" when longer than any of ours) */
    bool going, finished, ready;
    int64_t ready_since_s; /* 0: unknown */
};

/* A table of a fixed size: a newcomer takes the place of what collides with it. */
struct pod_facts_table;
struct pod_facts_table *pod_facts_new(void);
/* Of a committed version (no two have one revision); good until the next call. */
const struct pod_facts *pod_facts_of(struct pod_facts_table *t, const struct store_object *pod);
void *pod_facts_start(struct controller *c); /* for controllers whose state the table is */
void pod_facts_stop(struct controller *c, void *state);
