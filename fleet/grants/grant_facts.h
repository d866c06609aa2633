/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What grants read of nodes and pods, kept as these change, so that a turn parses none of them. It
 * follows from each object alone, never from pools: those may change without any of it. Pure. */
#pragma once

#include "core/facts.h"

struct clock;

/* Strings are the caller's, or grant_facts'. `labels` and `selector` are compact JSON. */
struct grant_node {
    struct str name, labels;
    const struct fact_units *capacity, *allocatable;
    size_t n_capacity, n_allocatable;
    bool down;         /* not Ready */
    bool aside;        /* cordoned, or its devices or driver are being changed */
    int64_t settles_s; /* it was so a moment ago, and counts as such until then; 0: it was not */
};
#define GRANT_SETTLES_S 60 /* what flaps within it changes no grant */
struct grant_pod {
    struct str ns, node, selector; /* node, selector: may be empty */
    struct str queue;              /* of KAI, that its label names; the same */
    const struct fact_units *units;
    size_t n_units;
    bool deleting;
};
/* Of a tree. False: nothing of it counts, as of a pod without devices, or one that has finished. */
void grant_node_of(struct arena *a, const cJSON *tree, struct grant_node *ret);
bool grant_pod_of(struct arena *a, const cJSON *tree, struct grant_pod *ret);

struct grant_facts;
struct grant_facts *grant_facts_new(void);
/* From now on nodes settle; without a clock they are as their objects say. */
void grant_facts_settle(struct grant_facts *f, const struct clock *clock);
struct grant_facts *grant_facts_free(struct grant_facts *f); /* takes NULL, returns NULL */
/* An object as it is now, under a name of its own. NULL: it is gone. False: no fact was or is kept
 * of it. */
bool grant_facts_node(struct grant_facts *f, struct str name, const cJSON *tree);
bool grant_facts_pod(struct grant_facts *f, struct str name, const cJSON *tree);
/* All that is kept, the nodes first. */
struct grant_facts_visit {
    void (*node)(void *ctx, const struct grant_node *node);
    void (*pod)(void *ctx, const struct grant_pod *pod);
    void *ctx;
};
void grant_facts_each(struct grant_facts *f, const struct grant_facts_visit *visit);
