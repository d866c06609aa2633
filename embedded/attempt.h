/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to place a pod: what it requires, read once, and which nodes may run it. */
#pragma once

#include "cluster.h"

/* --- incoming.c --- */

struct pair;
struct spread {
    struct str topology;
    struct selector selector;
    int64_t max_skew, min_domains, minimum, self;
    bool honour_affinity, honour_taints;
};

struct attempt {
    struct cluster *cluster;
    struct arena *arena;
    struct pod_entry *entry;
    cJSON *pod;
    struct pod_terms affinity, anti;
    struct spread *spreads;
    size_t n_spreads;
    const cJSON **volume_selectors; /* nodeAffinity.required of its volumes */
    size_t n_volume_selectors;
    bool affinity_found, matches_itself;
    struct pair *pairs; /* heap: attempt_fini() */
};
void attempt_init(struct attempt *t, struct cluster *c, struct arena *a, struct pod_entry *entry);
void attempt_fini(struct attempt *t);

/* --- affinity.c --- */

/* Counts the pods that matter to the attempt; again after pods were hidden. */
void attempt_count(struct attempt *t);
bool attempt_counts_pods(const struct attempt *t);

/* --- filter.c --- */

#define MAX_REASONS 8
struct verdict {
    struct str reasons[MAX_REASONS];
    size_t n;
    bool hopeless; /* preemption cannot change it */
};
bool filter_node(struct attempt *t, const struct node_entry *n, struct verdict *ret);
/* NULL: it fits; else upstream's words. */
const char *filter_affinity(const struct attempt *t, const struct node_entry *n,
                            bool *ret_hopeless);
const char *filter_spread(const struct attempt *t, const struct node_entry *n, bool *ret_hopeless);
bool filter_untolerated(const struct attempt *t, const struct node_entry *n);
bool filter_node_wanted(const struct attempt *t,
                        const struct node_entry *n); /* selector and affinity */

/* How often each reason was given: "2 Insufficient cpu, 1 node(s) ...". */
struct histogram {
    struct arena *arena;
    struct {
        struct str reason;
        size_t n;
    } rows[64];
    size_t n;
};
void histogram_add(struct histogram *h, struct str reason);
struct str histogram_text(struct histogram *h);
