/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the generated table and schema.c, beyond the contract in sublet/schema.h. */
#pragma once

#include <sublet/schema.h>

/* A kind that may be a request body; sorted by group, version, kind (offsets into the strings). */
struct schema_root {
    uint32_t group, version, kind;
    uint32_t node;
};

/* schema_node for inner loops. */
static inline const struct schema_node *node_at(const struct schema *s, uint32_t node)
{
    return &s->nodes[node];
}

/* schema_field for a NUL-terminated key. hint: the row tried first. The members of most bodies are
 * sorted like the table, so the hint is usually the next row. */
const struct schema_field *schema_field_of(const struct schema *s, const struct schema_node *n,
                                           const char *key, size_t hint);

extern const struct schema_root SCHEMA_ROOTS[];
extern const uint32_t SCHEMA_N_ROOTS;

/* ANY with a message (JSONSchemaPropsOrBool, ...): the field of that message, `wire`, that holds a
 * value of this JSON type; NULL when none does. Sets *flag when the message has a bool. */
const struct schema_field *schema_either(const struct schema *s, uint32_t wire, const cJSON *value,
                                         bool *flag);
