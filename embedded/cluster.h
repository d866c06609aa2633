/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's view of the cluster, kept by events: nodes and pods as they are, with what was
 * just decided (assumed). */
#pragma once

#include <sys/queue.h>

#include "terms.h"

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
    uint64_t turn;   /* order of arrival */
    bool assumed;    /* placed by us, not yet seen in an event */
    bool hidden;     /* left out of the sums while preemption is tried */
    struct str node; /* of POD_PLACED; in the arena or the object */
    char *nominated; /* node where room is made for it; heap */
    LIST_ENTRY(pod_entry) place_on_node;
};

struct node_entry {
    UT_hash_handle hh;
    struct str name;
    const struct store_object *object;
    struct arena *arena;
    cJSON *spec; /* taints, unschedulable */
    struct quantities allocatable, used;
    int64_t cpu_or_some, memory_or_some; /* sums */
    LIST_HEAD(, pod_entry) pods;
    size_t n_pods, n_hidden;
};

struct cluster {
    struct vapi *api;
    struct pod_entry *pods;   /* by key */
    struct node_entry *nodes; /* by name */
    size_t n_active, n_waiting, n_with_anti, n_nominated;
    uint64_t turns;
};

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
