/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What an administrator must see of GPU nodes: those that are not Ready, cordoned, not healthy, in
 * a pool without a taint, or in no pool, and pods on nodes of a pool that hold none of its GPUs.
 * Kept as nodes and pods change, against any list of pools. Pure. */
#pragma once

#include "facts.h"

enum fleet_watch_state {
    FLEET_WATCH_DOWN,      /* not Ready, or lost */
    FLEET_WATCH_UNHEALTHY, /* a condition says so, or fewer GPUs are allocatable than there are */
    FLEET_WATCH_CORDONED,
    FLEET_WATCH_UNTAINTED, /* of a pool: pods of others can land there */
    FLEET_WATCH_UNMATCHED, /* a node with GPUs that is in no pool */
    N_FLEET_WATCH_STATES
};
extern const char *const FLEET_WATCH_STATES[N_FLEET_WATCH_STATES]; /* "not-ready" ... */

struct fleet_watch_pool {
    struct str name;
    struct str_list selector; /* of fact_selector() */
};
/* Strings are the watch's, the pools', or the arena's. */
struct fleet_watch_node {
    struct str node, pool; /* pool empty: none */
    unsigned states;       /* 1 << state */
    struct str conditions; /* types of those that say so, parted by commas */
};
struct fleet_watch_misuse {
    struct str pool, tenant; /* tenant: the namespace */
    size_t pods;
    int64_t cpu_milli, memory; /* requested; at most INT64_MAX */
};
struct fleet_watch_sums {
    size_t nodes, states[N_FLEET_WATCH_STATES];
    size_t misused;                         /* nodes with pods that hold no GPUs */
    struct str first[N_FLEET_WATCH_STATES]; /* some names, parted by commas */
};
struct fleet_watch_view {
    const struct fleet_watch_node *nodes;    /* with a state; at most FLEET_WATCH_ROWS */
    const struct fleet_watch_misuse *misuse; /* the most pods first; the same */
    size_t n_nodes, n_misuse, n_not_shown;
    const struct fleet_watch_pool *pools;
    const struct fleet_watch_sums *sums; /* of each pool, then of nodes in none */
    size_t n_pools;
};
#define FLEET_WATCH_ROWS 2000

struct fleet_watch;
struct fleet_watch *fleet_watch_new(void);
struct fleet_watch *fleet_watch_free(struct fleet_watch *w); /* takes NULL, returns NULL */
/* Trees as fact_reduce_*() left them; NULL: there is none. fleet_watch_pod(): true where a
 * namespace has pods on a node now that had none, or none any more. */
void fleet_watch_node(struct fleet_watch *w, struct str name, const cJSON *tree);
bool fleet_watch_pod(struct fleet_watch *w, const cJSON *before, const cJSON *now);
/* Good until the next change. */
void fleet_watch_look(struct fleet_watch *w, struct arena *a, const struct fleet_watch_pool *pools,
                      size_t n_pools, struct fleet_watch_view *ret);
