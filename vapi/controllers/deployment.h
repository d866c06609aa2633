/* SPDX-License-Identifier: Apache-2.0 */
/* One run over a Deployment: deployment.c reads and writes its sets, rolling.c decides their sizes,
 * rollout_status.c writes the status. Internal to vapi/controllers. */
#pragma once

#include "util.h"

#define POD_TEMPLATE_HASH "pod-template-hash"
#define REVISION          "deployment.kubernetes.io/revision"
#define REVISION_HISTORY  "deployment.kubernetes.io/revision-history"
#define DESIRED_REPLICAS  "deployment.kubernetes.io/desired-replicas"
#define MAX_REPLICAS      "deployment.kubernetes.io/max-replicas"

struct rollout {
    struct reconcile *run;
    struct arena *arena;
    const struct resource *res, *rs_res;
    cJSON *deployment;
    const cJSON *as_read;
    cJSON *new_rs; /* of the current template; NULL: not created yet */
    cJSON **old;   /* sorted by age */
    size_t n_old;
    int64_t wanted, surge, unavailable;
    int64_t deadline; /* seconds without progress; -1: none */
    bool recreate;
};

/* The i-th set, the current one last; i up to and including n_old. May be NULL. */
cJSON *rollout_set(const struct rollout *o, size_t i);
int64_t rollout_rs_wanted(const cJSON *rs);
int64_t rollout_rs_count(const cJSON *rs, const char *field);
int64_t rollout_wanted(const struct rollout *o);                   /* sum of spec.replicas */
int64_t rollout_total(const struct rollout *o, const char *field); /* sum of a status field */
int64_t rollout_annotation(const cJSON *rs, const char *key);      /* -1 when it is no number */
void rollout_create(struct rollout *o, int64_t replicas);
/* Writes the size, and its annotations; true when the size changes. */
bool rollout_scale(struct rollout *o, cJSON *rs, int64_t replicas);

/* rolling.c */
void rollout_bounds(struct rollout *o);        /* surge and unavailable from the strategy */
bool rollout_resized(const struct rollout *o); /* spec.replicas changed since sets were sized */
void rollout_proportional(struct rollout *o);
void rollout_recreate(struct rollout *o);
void rollout_rolling(struct rollout *o);

/* rollout_status.c */
void rollout_condition(struct rollout *o, const char *type, const char *status, const char *reason,
                       struct str message);
void rollout_pause(struct rollout *o);
bool rollout_complete(const struct rollout *o);
/* progress: whether to evaluate it (not while scaling, paused or terminating). */
void rollout_status(struct rollout *o, bool progress);
