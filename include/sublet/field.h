/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * Field paths and lists of field errors, for validation in upstream's words (apimachinery
 * pkg/util/validation/field): one list becomes one 422 Invalid whose causes carry reason, message,
 * field. */
#pragma once

#include <sublet/json.h>

/* A path is a chain on the stack: FIELD(parent, "spec"), FIELD_INDEX(parent, 3), FIELD_KEY(parent,
 * key). */
struct field_path {
    const struct field_path *parent;
    const char *name; /* NULL for an index or key */
    struct str key;
    size_t index;
    bool is_index;
};
#define FIELD(up, text) (&(const struct field_path){.parent = (up), .name = (text)})
#define FIELD_INDEX(up, i)                                                                         \
    (&(const struct field_path){.parent = (up), .index = (i), .is_index = true})
#define FIELD_KEY(up, k) (&(const struct field_path){.parent = (up), .key = (k)})
struct str field_path_text(struct arena *a,
                           const struct field_path *p); /* spec.a[0].b, labels[x.y] */

struct field_errors {
    struct arena *arena;
    struct err_cause *first, **last;
    size_t n; /* at most 256 are kept */
};
void field_errors_init(struct field_errors *e, struct arena *a);
void field_required(struct field_errors *e, const struct field_path *p, const char *detail);
void field_invalid(struct field_errors *e, const struct field_path *p, const cJSON *value,
                   const char *detail);
void field_invalid_str(struct field_errors *e, const struct field_path *p, struct str value,
                       const char *detail);
void field_not_supported(struct field_errors *e, const struct field_path *p, struct str value,
                         const char *const *supported); /* NULL-ended */
void field_duplicate(struct field_errors *e, const struct field_path *p, const cJSON *value);
void field_forbidden(struct field_errors *e, const struct field_path *p, const char *detail);
void field_too_long(struct field_errors *e, const struct field_path *p, size_t max);
void field_too_many(struct field_errors *e, const struct field_path *p, size_t actual, size_t max);
void field_type_invalid(struct field_errors *e, const struct field_path *p, struct str value,
                        const char *detail);
void field_not_found(struct field_errors *e, const struct field_path *p, const cJSON *value);
void field_not_found_because(struct field_errors *e, const struct field_path *p, const cJSON *value,
                             const char *detail);
/* An internal error of the server. */
void field_internal(struct field_errors *e, const struct field_path *p, const char *detail);
/* Without the value; with a value that is no string. */
void field_invalid_bare(struct field_errors *e, const struct field_path *p, const char *detail);
void field_duplicate_bare(struct field_errors *e, const struct field_path *p);
void field_not_supported_value(struct field_errors *e, const struct field_path *p,
                               const cJSON *value, const char *const *supported);
void field_duplicate_because(struct field_errors *e, const struct field_path *p, const cJSON *value,
                             const char *detail);
void field_too_few(struct field_errors *e, const struct field_path *p, size_t actual, size_t min);
void field_too_long_chars(struct field_errors *e, const struct field_path *p, size_t max);
/* more, whose arena is the same, after those of e. */
void field_errors_append(struct field_errors *e, const struct field_errors *more);
/* -1 and 422 `Deployment.apps "x" is invalid: [...]` when there are errors, else 0. */
int field_errors_to_err(const struct field_errors *e, struct str group, struct str kind,
                        struct str name, struct err *err) MUST_CHECK;
