/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of strategic merge patch. Names follow apimachinery
 * pkg/util/strategicpatch. */
#pragma once

#include <sublet/schema.h>

#include "tree.h"

#define DIRECTIVE         "$patch"
#define RETAIN_KEYS       "$retainKeys"
#define DELETE_FROM_LIST  "$deleteFromPrimitiveList"
#define SET_ELEMENT_ORDER "$setElementOrder"

struct strategic {
    struct arena *arena;
    const struct schema *schema;
    struct err *err;
};

/* Merge properties of a field, from its type. */
struct patch_meta {
    uint32_t node;   /* of the field; of the items when it was looked up as a list */
    uint8_t patch;   /* schema_patch bits */
    const char *key; /* merge key, "" for none */
};

struct items {
    cJSON **v;
    size_t n;
};

/* Merges patch into original; consumes both. */
int strategic_map(struct strategic *s, uint32_t node, cJSON *original, cJSON *patch, unsigned depth,
                  cJSON **ret) MUST_CHECK;
/* Merges two lists by the field's strategy. is_delete: patch lists the scalars to remove. */
int strategic_list(struct strategic *s, const struct patch_meta *meta, struct items original,
                   struct items patch, bool is_delete, unsigned depth,
                   struct items *ret) MUST_CHECK;
/* Looks a field up; for lists `node` becomes that of the items. */
int strategic_meta(struct strategic *s, uint32_t node, const char *name, bool list,
                   struct patch_meta *ret) MUST_CHECK;

/* strategic_order.c */
/* Checks that the items of a patch are in the order of its $setElementOrder. */
int strategic_check_order(struct strategic *s, struct items patch, struct items order,
                          const char *key) MUST_CHECK;
/* Orders a merged list: items named in `by` follow `order`, the others keep the server's order. */
int strategic_order(struct strategic *s, struct items merged, struct items by, struct items order,
                    struct items server, const char *key, bool maps, struct items *ret) MUST_CHECK;

/* strategic_value.c */
/* A key that two values share when Go's == holds for them. */
struct str value_key(struct arena *a, const cJSON *value);
/* fmt's %v, truncated when long. */
struct str value_print(struct arena *a, const cJSON *value);
struct items value_items(struct arena *a, const cJSON *array);
cJSON *value_array(struct arena *a, struct items items); /* a new array of the items */
/* Removes null members below value. */
void value_drop_nulls(cJSON *value, unsigned depth);
/* Removes objects that are directives; false when value itself is one. */
bool value_drop_directives(cJSON *value, unsigned depth);
/* Removes directives that upstream takes for unknown fields of value's type and drops. */
void value_strip(struct strategic *s, uint32_t node, cJSON *value, unsigned depth);

int strategic_bad_type(struct strategic *s, const char *expected, const cJSON *actual) MUST_CHECK;
int strategic_no_key(struct strategic *s, const cJSON *map, const char *key) MUST_CHECK;
int strategic_bad_directive(struct strategic *s, const cJSON *directive,
                            const cJSON *map) MUST_CHECK;
int strategic_bad_order(struct strategic *s) MUST_CHECK;
