/* SPDX-License-Identifier: Apache-2.0 */
/* The templates a StatefulSet or DaemonSet had: its ControllerRevisions. Internal to
 * vapi/controller. */
#pragma once

#include "util.h"

struct revisions {
    struct reconcile *run;
    const struct resource *res, *owner_res;
    cJSON *owner;
    cJSON **all; /* oldest first */
    size_t n;
    const cJSON *update; /* that of today's template */
    const char *hash_label;
};

/* Finds the owner's revisions and that of its template. False: it had to be made (or the run
 * failed); the run must end, and the next one finds it. hash_label: the label that keeps a
 * revision's hash. */
bool revisions_sync(struct revisions *v, const struct selector *selector);
const cJSON *revision_find(const struct revisions *v, struct str name);
struct str revision_hash(const struct revisions *v, const cJSON *revision);
const cJSON *revision_template(const cJSON *revision);
/* Deletes the oldest beyond spec.revisionHistoryLimit that neither `kept` nor today's template nor
 * a pod's label (a revision's name or its hash) names. */
void revisions_prune(struct revisions *v, const cJSON *kept, cJSON *const *pods, size_t n_pods);
