/* SPDX-License-Identifier: Apache-2.0 */
/* The template history of a StatefulSet or DaemonSet: its ControllerRevisions. Internal to
 * vapi/controllers. */
#pragma once

#include "util.h"

struct revisions {
    struct reconcile *run;
    const struct resource *res, *owner_res;
    cJSON *owner, *as_read;
    cJSON **all; /* oldest first */
    size_t n;
    const cJSON *update; /* that of the current template */
    const char *hash_label;
};

/* Reads the owner of the run's key (in apps), its selector, its revisions and that of its template.
 * False: there is nothing to do, the run failed, or the template's revision had to be created: the
 * run must end, and the next one finds it. hash_label: the label that holds a revision's hash. */
bool revisions_load(struct revisions *v, struct reconcile *r, const char *plural,
                    const char *hash_label, struct selector *selector);
/* The pod label that identifies its revision: by name (StatefulSet) or by hash (DaemonSet). */
#define REVISION_LABEL "controller-revision-hash"
struct str revision_of_pod(const cJSON *pod);
const cJSON *revision_find(const struct revisions *v, struct str name);
struct str revision_hash(const struct revisions *v, const cJSON *revision);
const cJSON *revision_template(const cJSON *revision);
/* Deletes the oldest revisions beyond spec.revisionHistoryLimit that neither `kept` nor the current
 * template nor a pod's label (by name or hash) refers to. */
void revisions_prune(struct revisions *v, const cJSON *kept, cJSON *const *pods, size_t n_pods);
