/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that validate custom resources. Internal to vapi/crd. */
#pragma once

#include "version.h"

/* Limit of nodes times values for one object: alternatives multiply the work. */
#define JUDGE_STEPS 4000000

struct judge_work {
    size_t steps;     /* remaining */
    unsigned pattern; /* budget, see pattern_holds() */
    size_t used;      /* of the errors' arena, before the first message */
    bool spent, told; /* no steps were left for something; an error says so */
};

struct judge {
    const struct crd_version *v;
    struct field_errors *errors;
    struct arena *arena; /* scratch */
    struct judge_work *work;
    size_t matched; /* checks that held: finds the closest alternative */
    bool silent;    /* errors are counted, none is said */
};

/* Validates one value against one node, with paths from there; crd_prune_value: without unknown
 * fields. */
void crd_judge_part(const struct crd_version *v, struct field_errors *e, uint32_t node,
                    const cJSON *value);
void crd_prune_value(const struct crd_version *v, struct arena *a, uint32_t node, cJSON *value);
/* After the schema: x-kubernetes-embedded-resource, and lists that are sets or maps. */
void crd_judge_embedded(struct judge *j, const cJSON *object);
void crd_judge_lists(struct judge *j, const cJSON *object);
/* Validates the values at the paths of the scale subresource, unless they are the same in old (may
 * be NULL). */
void crd_judge_replicas(const struct crd_version *v, struct field_errors *e, const cJSON *object,
                        const cJSON *old);
