/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's view of the cluster, kept by events, and one attempt to place a pod in it.
 *
 *   cluster.c   nodes and pods as they are, with what was just decided (assumed)
 *   incoming.c  a pod that wants a node: its requests and terms, read once per attempt
 *   filter.c    may it run on a node; affinity.c: by the pods that are there
 *   score.c     where it runs best
 *   preempt.c   who would have to go
 *   scheduler.c the queue, the binding, what is said to the pod */
#pragma once

#include "impl.h"

/* CPU in thousandths, everything else in units. */
struct named_quantity {
    struct str name;
    int64_t value;
};
struct quantities {
    struct named_quantity *list;
    size_t n;
};
#define MAX_QUANTITIES 64

struct host_port {
    struct str ip, protocol;
    int64_t port;
};
/* A term of (anti-)affinity between pods. */
struct pod_term {
    struct selector selector, ns_selector;
    bool has_ns_selector;
    struct str topology;
    const struct str *namespaces;
    size_t n_namespaces;
    int64_t weight;
};
struct pod_terms {
    struct pod_term *list;
    size_t n;
};

enum pod_place { POD_NEW, POD_ACTIVE, POD_WAITING, POD_PLACED };

/* A pod that is not terminal. Owned by the cluster. */
struct pod_entry {
    UT_hash_handle hh;
    struct str key; /* "ns/name" */
    const struct store_object *object;
    struct arena *arena; /* of what follows */
    struct str uid;
    int64_t priority, created, generation;
    struct quantities requests;
    int64_t cpu_or_some, memory_or_some; /* what spreading counts where nothing is requested */
    struct host_port *ports;
    size_t n_ports;
    struct pod_terms anti; /* required */
    bool deleting;
    bool wants_company; /* other pods decide where it may be */
    enum pod_place place;
    uint64_t turn;          /* order of arrival */
    bool assumed;           /* placed by us, not yet seen in an event */
    bool hidden;            /* left out of the sums while preemption is tried */
    struct str node;        /* of POD_PLACED; in the arena or the object */
    char *nominated;        /* node where room is made for it; heap */
    struct pod_entry *next; /* on its node */
};

struct node_entry {
    UT_hash_handle hh;
    struct str name;
    const struct store_object *object;
    struct arena *arena;
    cJSON *spec; /* taints, unschedulable */
    struct quantities allocatable, used;
    int64_t cpu_or_some, memory_or_some; /* sums */
    struct pod_entry *pods;
    size_t n_pods, n_hidden;
};

struct cluster {
    struct vapi *api;
    struct pod_entry *pods;   /* by key */
    struct node_entry *nodes; /* by name */
    size_t n_active, n_waiting, n_with_anti, n_nominated;
    uint64_t turns;
};

/* --- cluster.c --- */

void cluster_init(struct cluster *c, struct vapi *api);
void cluster_fini(struct cluster *c);
/* True when the change may help a pod that waits. */
bool cluster_node_event(struct cluster *c, const struct store_event *e);
bool cluster_pod_event(struct cluster *c, const struct store_event *e);
struct pod_entry *cluster_pod(const struct cluster *c, struct str key);
struct node_entry *cluster_node(const struct cluster *c, struct str name);
/* POD_ACTIVE or POD_WAITING -> POD_PLACED on n, before it is so in the API; and back. */
void cluster_assume(struct cluster *c, struct pod_entry *p, const struct node_entry *n);
void cluster_forget(struct cluster *c, struct pod_entry *p);
void cluster_set_place(struct cluster *c, struct pod_entry *p, enum pod_place place);
void cluster_nominate(struct cluster *c, struct pod_entry *p, struct str node); /* empty: none */
/* All pending pods are tried again. */
void cluster_wake(struct cluster *c);
/* Removes what the store no longer holds. */
void cluster_prune(struct cluster *c);
void cluster_hide(struct cluster *c, struct pod_entry *p, bool hidden);
int64_t quantities_get(const struct quantities *list, struct str name);

/* --- incoming.c --- */

struct quantities quantities_of_pod(struct arena *a, const cJSON *pod);
struct quantities quantities_read(struct arena *a, const cJSON *map);
struct host_port *pod_host_ports(struct arena *a, const cJSON *pod, size_t *ret_n);
/* kind: "podAffinity" or "podAntiAffinity"; required, else preferred with weights. */
struct pod_terms pod_terms_read(struct arena *a, const cJSON *pod, const char *kind, bool required);
bool pod_term_matches(struct vapi *api, const struct pod_term *t, const struct store_object *pod);
/* A v1.NodeSelector; NULL matches everything. */
bool node_selector_matches(struct arena *a, const cJSON *selector, const struct node_entry *n);
bool node_term_matches(struct arena *a, const cJSON *term, const struct node_entry *n);

/* (topology key, value) -> count, for one term. */
struct pair {
    UT_hash_handle hh;
    char *text; /* "term\0key\0value" */
    int64_t count;
};
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

/* --- score.c --- */

/* The best of the nodes that fit. */
struct node_entry *score_best(struct attempt *t, struct node_entry **fitting, size_t n);
int64_t attempt_pair_count(const struct attempt *t, size_t term, struct str key, struct str value);

/* --- preempt.c --- */

struct victims {
    struct node_entry *node;
    struct pod_entry **list;
    size_t n;
    size_t violations;
};
/* Nodes whose failure could be helped are in `helpful`. *ret_text: the message when no pod can be
 * preempted. False then. */
bool preempt_find(struct attempt *t, struct node_entry **helpful, size_t n, struct victims *ret,
                  struct str *ret_text);
