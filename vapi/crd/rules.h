/* SPDX-License-Identifier: Apache-2.0 */
/* The x-kubernetes-validations of one schema, compiled: a tree of the nodes that have rules at or
 * below them. Internal to vapi/crd. Source: apiextensions-apiserver pkg/apiserver/schema/cel. */
#pragma once

#include <sublet/cel_shape.h>

#include "version.h"

/* Upstream estimates the cost of each rule; here the source of all is bounded, and every
 * evaluation. */
#define RULES_MOST        2000
#define RULES_BYTES       ((size_t)512 << 10)
#define RULES_MEMORY      ((size_t)16 << 20) /* of their programs */
#define RULES_BUDGET      CEL_POLICY_LIMIT   /* upstream's RuntimeCELCostBudget: of one request */
#define RULE_MOST_MESSAGE 5120               /* of an evaluated message */

struct crd_rule {
    struct crd_rule *next; /* of all */
    const cJSON *source;
    struct cel_program *program, *message; /* NULL: not given, or a problem */
    struct str problem, message_problem;   /* empty: none */
    struct str field_path;                 /* of fieldPath, as errors print it; empty: none */
    bool uses_old, optional_old;
};

struct crd_rule_node {
    struct str key;       /* in the node above */
    uint32_t node, shape; /* shape 0: expressions cannot see it */
    const cJSON *schema;
    struct crd_rule *rules;
    size_t n_rules;
    bool uses_old;                             /* one of its rules does */
    const struct crd_rule_node *items, *more;  /* of a list, of a map; or NULL */
    const struct crd_rule_node *const *fields; /* in order of keys */
    size_t n_fields;
};

struct crd_rules {
    struct cel_shapes shapes;
    const struct crd_rule_node *root;
    struct crd_rule *first;
    size_t n, bytes;
    bool too_large; /* there are more rules than are compiled: each of those has a problem */
};

/* shapes.c: of a whole schema; returns the number of its shape, 0 if expressions cannot see it. */
struct shaping {
    struct arena *arena;
    struct cel_shape *items;
    uint32_t n, cap;
};
void crd_shapes_init(struct shaping *s, struct arena *a);
uint32_t crd_shape(struct shaping *s, const cJSON *schema, bool is_resource, unsigned depth);

/* NULL when there are no rules. All but compiled patterns lives in v->compiled. */
struct crd_rules *crd_rules_compile(struct arena *a, const struct schema *s, uint32_t root,
                                    const cJSON *openapi);
void crd_rules_release(struct crd_rules *r); /* takes NULL */
const struct crd_rule_node *crd_rule_field(const struct crd_rule_node *n, struct str key);
/* rule_path.c: a fieldPath as errors print it; false: it is not a path of the schema. */
bool crd_rule_path(struct arena *a, const cJSON *schema, struct str text, struct str *ret);

/* rule_checks.c: the problems of the rules of a CRD that is written. */
void crd_check_rules(struct field_errors *e, const struct field_path *path,
                     const struct crd_rules *r);

/* rule_judge.c: evaluates the rules at and below n on a value. Errors of values that did not change
 * go to kept (may be NULL). left counts down; negative: it is spent. */
void crd_judge_rules(const struct crd_version *v, const struct crd_rule_node *n,
                     struct field_errors *e, struct field_errors *kept,
                     const struct field_path *path, const cJSON *value, const cJSON *old,
                     int64_t *left);
