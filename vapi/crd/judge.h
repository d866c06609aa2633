/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that validate custom resources. Internal to vapi/crd. */
#pragma once

#include <sublet/hash.h>

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
void crd_judge_part(const struct crd_version *v, struct field_errors *e, struct judge_work *work,
                    uint32_t node, const cJSON *value);
void crd_prune_value(const struct crd_version *v, struct arena *a, uint32_t node, cJSON *value);
/* After the schema: x-kubernetes-embedded-resource, and lists that are sets or maps. */
void crd_judge_embedded(struct judge *j, const cJSON *object);
void crd_judge_lists(struct judge *j, const cJSON *object);
/* Validates the values at the paths of the scale subresource, unless they are the same in old (may
 * be NULL). */
void crd_judge_replicas(const struct crd_version *v, struct field_errors *e, const cJSON *object,
                        const cJSON *old);

/* Looks up members of one object. A large one is looked up in a map, made when one is not where it
 * is expected: behind the last one that was found. */
struct lookup {
    struct arena *arena; /* of the map; NULL: there is none */
    const cJSON *object, *next;
    struct map map;
};
struct lookup crd_lookup(const cJSON *object);
void crd_lookup_end(struct lookup *l);
size_t crd_lookup_steps(const struct lookup *l, struct str key); /* the next one: to make the map */
const cJSON *crd_look_up(struct lookup *l, struct str key);
/* The previous version of an item: only items of a map can be matched. hint: where it is expected.
 * steps counts down; at 0 nothing is found. */
const cJSON *crd_old_item(const struct schema *s, const struct schema_node *n, const cJSON *item,
                          const cJSON *old, const cJSON *hint, size_t *steps);
