/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/cel
 *
 * The expressions of an admission policy, validating or mutating, compiled: for the validation of
 * the policy, and for requests. Source: k8s.io/apiserver admission/plugin/cel (compile.go,
 * composition.go). */
#pragma once

#include <sublet/cel.h>

struct cel_expression {
    const char *list, *field; /* "validations", "messageExpression" */
    size_t index;             /* in that list */
    struct str name;          /* of a variable or a condition; the key of an annotation */
    struct str source;
    struct cel_program *program; /* NULL: none was given, or it has a problem */
    struct str problem;          /* "compilation failed: ..." */
};
struct cel_expressions {
    struct cel_expression *items;
    size_t n;
};
/* messages has one place for each validation. */
struct cel_policy {
    struct cel_expressions conditions, variables, validations, messages, annotations, mutations;
};

/* Everything but compiled patterns lives in a, which has a limit: expressions beyond it have a
 * problem. */
void cel_policy_compile(struct arena *a, const cJSON *spec, struct cel_policy *ret);
void cel_policy_release(struct cel_policy *p);
