/* SPDX-License-Identifier: Apache-2.0 */
/* The templates a StatefulSet or DaemonSet had: its ControllerRevisions. Internal to
 * vapi/controllers. */
#pragma once

#include "util.h"

struct revisions {
    struct reconcile *run;
    const struct resource *res, *owner_res;
    cJSON *owner, *as_read;
    cJSON **all; /* oldest first */
    size_t n;
    const cJSON *update; /* that of today's template */
    const char *hash_label;
};

/* Reads the owner of the run's key (of apps), its selector, its revisions and that of its template.
 * False: there is nothing to do, the run failed, or the template's revision had to be made: the run
 * must end, and the next one finds it. hash_label: the label that keeps a revision's hash. */
bool revisions_load(struct revisions *v, struct reconcile *r, const char *plural,
                    const char *hash_label, struct selector *selector);
/* What a pod's label says of its revision: a name (StatefulSet) or a hash (DaemonSet). */
#define REVISION_LABEL "controller-revision-hash"
struct str revision_of_pod(const cJSON *pod);
const cJSON *revision_find(const struct revisions *v, struct str name);
struct str revision_hash(const struct revisions *v, const cJSON *revision);
const cJSON *revision_template(const cJSON *revision);
/* Deletes the oldest beyond spec.revisionHistoryLimit that neither `kept` nor today's template nor
 * a pod's label (a revision's name or its hash) names. */
void revisions_prune(struct revisions *v, const cJSON *kept, cJSON *const *pods, size_t n_pods);
