/* SPDX-License-Identifier: Apache-2.0 */
/* What the files share that judge a custom resource. Internal to vapi/crd. */
#pragma once

#include "version.h"

/* Nodes times values that one object may cost: alternatives multiply. */
#define JUDGE_STEPS 4000000

struct judge_work {
    size_t steps;     /* left */
    unsigned pattern; /* budget, see pattern_holds() */
};

struct judge {
    const struct crd_version *v;
    struct field_errors *errors;
    struct arena *arena; /* of the words in between; that of errors, or of an alternative */
    struct judge_work *work;
    size_t matched; /* checks that held: which alternative came closest */
};

/* One value by one node, with paths from there; prune_value: without unknown fields. */
void judge_part(const struct crd_version *v, struct field_errors *e, uint32_t node,
                const cJSON *value);
void prune_value(const struct crd_version *v, struct arena *a, uint32_t node, cJSON *value);
/* After the schema: x-kubernetes-embedded-resource, and lists that are sets or maps. */
void judge_embedded(struct judge *j, const cJSON *object);
void judge_lists(struct judge *j, const cJSON *object);
/* What the paths of the subresource scale lead to, unless it is the same in old (may be NULL). */
void judge_replicas(const struct crd_version *v, struct field_errors *e, const cJSON *object,
                    const cJSON *old);
