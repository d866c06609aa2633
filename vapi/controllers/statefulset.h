/* SPDX-License-Identifier: Apache-2.0 */
/* One run for a StatefulSet, shared by statefulset.c (decisions) and statefulset_pods.c (creation
 * and deletion of its pods and claims). Internal to vapi/controllers. */
#pragma once

#include "revisions.h"

#define STS_BURST 500

struct sts_pod {
    cJSON *pod;
    int64_t ordinal;
};

struct sts {
    struct reconcile *run;
    const struct resource *res, *pods_res, *claims_res;
    cJSON *owner, *as_read;
    struct revisions revisions;
    const cJSON *current; /* revision */
    int64_t start, wanted, partition;
    bool ordered; /* OrderedReady: one at a time */
    bool on_delete, retain;
    struct sts_pod *pods; /* sorted by ordinal */
    size_t n_pods;
    /* The actions of this run. */
    int64_t make[STS_BURST]; /* ordinals */
    size_t n_make, made, batch;
    size_t n_drop;
    const cJSON *drop[STS_BURST];
    void (*done)(struct sts *s);
};

bool sts_in_range(const struct sts *s, int64_t ordinal);
/* The ordinal in a pod's name; false when the name is not of this set's form. */
bool sts_ordinal(const struct sts *s, struct str pod_name, int64_t *ret);
/* The pods of the set, by ordinal; those without a controller that have its labels and one of its
 * names are adopted. */
void sts_find_pods(struct sts *s, const struct selector *selector);
/* Creates claims first, then deletes and creates pods; done() last. */
void sts_carry_out(struct sts *s);
