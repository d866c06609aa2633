/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/types/fields
 *
 * Field ownership: sets of paths, and the structured merge they control (server-side apply). Pure:
 * trees in, trees and sets out, everything in the caller's arena. Source:
 * sigs.k8s.io/structured-merge-diff, apimachinery pkg/util/managedfields. */
#pragma once

#include <sublet/schema.h>

/* ---- paths and sets ---- */

enum element_kind { ELEMENT_FIELD, ELEMENT_KEY, ELEMENT_VALUE, ELEMENT_INDEX }; /* in this order */

struct element_part {
    struct str name;
    const cJSON *value;
};
/* One step of a path: `.name`, `[a=1,b="x"]`, `[="x"]`, `[3]`. Borrows names and values. */
struct element {
    enum element_kind kind;
    uint32_t n; /* ELEMENT_KEY: parts, sorted by name */
    union {
        struct str name;
        const struct element_part *parts;
        const cJSON *value;
        int64_t index;
    };
};
int element_cmp(const struct element *a, const struct element *b);

struct field_set;
/* A step, whether the path up to here is in the set, and its children. */
struct field_item {
    struct element element;
    bool member;
    struct field_set *below; /* NULL or not empty */
};
/* Sorted by element. Immutable: sets share common subtrees. */
struct field_set {
    struct field_item *items;
    uint32_t n, cap;
};

/* NULL is the empty set, for all of these; results are NULL when empty. */
struct field_set *set_union(struct arena *a, struct field_set *x, struct field_set *y);
struct field_set *set_intersection(struct arena *a, struct field_set *x, struct field_set *y);
/* Paths of x that are not in y; a parent does not include its children. */
struct field_set *set_difference(struct arena *a, struct field_set *x, struct field_set *y);
/* The same, but a path of y also removes its children. */
struct field_set *set_without(struct arena *a, struct field_set *x, struct field_set *y);
const struct field_item *set_find(const struct field_set *x, const struct element *e);
/* A set of dotted field names, {"spec", "metadata.labels", NULL}. */
struct field_set *set_of(struct arena *a, const char *const *paths);
bool set_has_path(const struct field_set *x, const char *dotted);
typedef void (*set_path_cb)(void *ctx, struct str path, const struct element *const *steps,
                            size_t n);
/* Each path, parents first, as a string. */
void set_each(struct arena *a, const struct field_set *x, set_path_cb each, void *ctx);
bool set_has(const struct field_set *x, const struct element *const *steps, size_t n);

/* fieldsV1: {"f:spec":{"f:replicas":{}}}. Reading: -1 when it is invalid. */
cJSON *set_to_json(struct arena *a, const struct field_set *x);
int set_from_json(struct arena *a, const cJSON *fields, struct field_set **ret);

/* ---- values by their type ---- */

/* A type: a node of a schema, or deduced from a value without one. */
enum type_form { TYPE_NODE, TYPE_DEDUCED, TYPE_UNTYPED, TYPE_NONE };
struct field_type {
    const struct schema *schema;
    uint32_t node;
    uint8_t form;
    bool preserve; /* below x-kubernetes-preserve-unknown-fields */
    bool root;     /* of a custom resource: apiVersion, kind and metadata are known */
};

struct field_diff {
    struct field_set *removed, *modified, *added;
};

/* Errors are `.spec.ports: element 0: ...`, BAD_REQUEST by kind (callers may replace it). */
/* Checks that value has its type; duplicates in lists that are sets or maps are errors. */
int typed_validate(struct arena *a, struct field_type t, const cJSON *value,
                   struct err *err) MUST_CHECK;
/* Paths in value of lists, maps and structs that only a whole can replace; false: there are none.
 */
bool typed_atomics(struct field_type t, const cJSON *value, struct buf *paths);
/* Leaves and items present in value. */
struct field_set *typed_set(struct arena *a, struct field_type t, const cJSON *value);
int typed_compare(struct arena *a, struct field_type t, const cJSON *old, const cJSON *now,
                  struct field_diff *ret, struct err *err) MUST_CHECK;
/* Merges config, which passed typed_validate(), into live. Consumes both. */
int typed_merge(struct arena *a, struct field_type t, cJSON *live, cJSON *config, cJSON **ret,
                struct err *err) MUST_CHECK;
/* Removes the items of x from value, which is consumed. */
cJSON *typed_remove(struct arena *a, struct field_type t, cJSON *value, const struct field_set *x);
/* x, and the named fields of structs on the paths to its members. */
struct field_set *typed_ensure_named(struct arena *a, struct field_type t, struct field_set *x);
/* x after lists or maps of its type became atomic. */
struct field_set *typed_reconcile(struct arena *a, struct field_type t, struct field_set *x);

/* ---- managers ---- */

struct manager {
    struct str name, subresource, api_version;
    bool applied;
    struct field_set *set;
    const cJSON *time; /* from the entry; NULL: none */
};
/* metadata.managedFields. At most MANAGERS_MAX entries are read. */
#define MANAGERS_MAX 1024
struct managers {
    struct manager *at;
    size_t n, cap;
};

/* The versions of a resource, for a merge. */
struct field_versions {
    void *ctx;
    /* object (whose version is its apiVersion) in `to`, as a tree of its own; NULL: no such
     * version. */
    cJSON *(*convert)(void *ctx, struct arena *a, const cJSON *object, struct str to);
    bool (*type_of)(void *ctx, struct str version, struct field_type *ret);
    /* Removes paths a write through this endpoint cannot change; may be NULL. */
    struct field_set *(*filter)(void *ctx, struct arena *a, struct field_set *x);
};

struct field_write {
    struct arena *arena;
    const struct field_versions *versions;
    struct str version; /* of the request */
    struct str manager; /* empty: "unknown" */
    struct str subresource;
    struct str now; /* RFC 3339 */
};

/* Reads {..., "managedFields": [...]}; of equal identities the last entry counts. -1: invalid. */
int managers_read(struct arena *a, const cJSON *entries, struct managers *ret,
                  struct str *ret_why) MUST_CHECK;
cJSON *managers_write(struct arena *a, struct managers *m); /* sorted; NULL when there are none */
/* After an update other than apply: now against old (both in w->version). Caps the updaters. */
int managers_update(const struct field_write *w, struct managers *m, const cJSON *old,
                    const cJSON *now, struct err *err) MUST_CHECK;
/* Server-side apply of config onto live (consumed). *ret is NULL when nothing changed. Errors:
 * CONFLICT with its causes, BAD_REQUEST, UNKNOWN. */
int managers_apply(const struct field_write *w, struct managers *m, const cJSON *live,
                   const cJSON *config, bool force, cJSON **ret, struct err *err) MUST_CHECK;
