/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a schema is structural. Internal to vapi/crd. */
#pragma once

#include <sublet/crd.h>

/* What validating the defaults of one CRD may take, in all its versions: a default without any left
 * is an error. */
struct crd_effort {
    int64_t cost;     /* of rules */
    size_t steps;     /* of schemas */
    unsigned pattern; /* see pattern_holds() */
};
struct crd_effort crd_effort_new(void);

/* path: of openAPIV3Schema. Bounded: schemas deeper or larger than the compiler's limits are
 * errors. has_status: the version has a status subresource. effort: NULL: the CRD had this schema
 * before the update; rules and defaults are not judged again, whatever an earlier release let
 * through, so that status and finalizers can be written. */
void crd_check_schema(struct field_errors *e, const struct field_path *path, const cJSON *schema,
                      bool has_status, struct crd_effort *effort);
/* The checks of lists and maps, for one schema; schema_lists.c. */
void crd_check_lists(struct field_errors *e, const struct field_path *path, const cJSON *schema);
/* What can be checked of a schema that passed the other checks, once it is compiled: every default
 * is valid for its schema, and rules compile. defaults.c */
void crd_check_compiled(struct field_errors *e, const struct field_path *path, const cJSON *schema,
                        struct crd_effort *effort);
/* spec.conversion. old: the CRD before the update, or NULL. conversion_checks.c */
void crd_check_conversion(struct field_errors *e, const cJSON *spec, const cJSON *old);
