/* SPDX-License-Identifier: Apache-2.0 */
/* One run over a DaemonSet: daemonset.c finds nodes and pods and writes the status,
 * daemonset_roll.c decides which pods to delete and where to create pods. Internal to
 * vapi/controllers. */
#pragma once

#include "daemonset_nodes.h"
#include "revisions.h"

#define DS_BURST 250

/* Recent failures of a set's pods per node: the controller's state. */
#define DS_FAILURES 256u
struct ds_failures {
    struct ds_failure {
        uint64_t key;
        int64_t last_s;
        unsigned n;
    } slots[DS_FAILURES];
};

struct ds_node {
    struct str name;
    bool run, stay;
    cJSON **pods; /* the set's pods, `n` of them */
    size_t n;
};

struct ds {
    struct reconcile *run;
    const struct resource *res, *pods_res;
    cJSON *owner, *as_read;
    struct revisions revisions;
    struct str hash;
    const cJSON *template_pod;
    struct ds_node *nodes;
    size_t n_nodes, n_deleted;
    int64_t desired; /* nodes that should have a pod */
    int64_t surge, unavailable;
    cJSON **pods;
    size_t n_pods;
    struct str make[DS_BURST]; /* names of nodes */
    struct pod_batch batch;    /* .wanted: of `make` */
};

bool ds_is_new(const struct ds *s, const cJSON *pod);
bool ds_is_available(struct ds *s, const cJSON *pod);
void ds_drop(struct ds *s, const cJSON *pod);
void ds_make(struct ds *s, const struct ds_node *node);

/* daemonset_roll.c */
void ds_bounds(struct ds *s);
void ds_tend(struct ds *s, struct ds_node *node);
void ds_renew(struct ds *s);
