/* SPDX-License-Identifier: Apache-2.0
 *
 * What the generated table shares with schema.c beyond the contract in sublet/schema.h. */
#pragma once

#include <sublet/schema.h>

/* A kind that may stand in a body; sorted by group, version, kind (offsets into the strings). */
struct schema_root {
    uint32_t group, version, kind;
    uint32_t node;
};

/* schema_node for inner loops. */
static inline const struct schema_node *node_at(const struct schema *s, uint32_t node)
{
    return &s->nodes[node];
}

/* schema_field for a NUL-terminated key. hint: the row looked at first; the members of most bodies
 * are sorted like the table, so that it is the next one. */
const struct schema_field *field_of(const struct schema *s, const struct schema_node *n,
                                    const char *key, size_t hint);

extern const struct schema_root SCHEMA_ROOTS[];
extern const uint32_t SCHEMA_N_ROOTS;

/* ANY with a message (JSONSchemaPropsOrBool, ...): the field of that message, `wire`, that holds a
 * value of this JSON type; NULL when none does. *flag tells whether the message has a bool. */
const struct schema_field *schema_either(const struct schema *s, uint32_t wire, const cJSON *value,
                                         bool *flag);
