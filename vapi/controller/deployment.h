/* SPDX-License-Identifier: Apache-2.0 */
/* One run over a Deployment: what deployment.c reads and writes, and what rolling.c decides with.
 * Internal to vapi/controller. */
#pragma once

#include "util.h"

#define POD_TEMPLATE_HASH "pod-template-hash"
#define REVISION          "deployment.kubernetes.io/revision"

struct rollout {
    struct reconcile *run;
    struct arena *arena;
    const struct resource *res, *rs_res;
    cJSON *deployment;
    cJSON *new_rs; /* of the present template; NULL: not made yet */
    cJSON **old;   /* by age */
    size_t n_old;
    int64_t wanted, surge, unavailable, revision, created_with;
    bool recreate;
};

int64_t rs_wanted(const cJSON *rs);
int64_t rs_count(const cJSON *rs, const char *field);
int64_t revision_of(const cJSON *object);
void rollout_create(struct rollout *o, int64_t replicas);
/* Writes size and annotations where they differ; true when the size does. */
bool rollout_scale(struct rollout *o, cJSON *rs, int64_t replicas);

/* rolling.c */
void rollout_bounds(struct rollout *o); /* surge and unavailable from the strategy */
bool rollout_resized(
    const struct rollout *o); /* spec.replicas changed since the sets were last sized */
void rollout_proportional(struct rollout *o);
void rollout_recreate(struct rollout *o);
void rollout_rolling(struct rollout *o);
bool rollout_complete(const struct rollout *o);
void rollout_status(struct rollout *o);
