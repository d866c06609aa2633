/* SPDX-License-Identifier: Apache-2.0
 *
 * Upstream does not decode the result of a strategic patch but converts it from a map into its
 * type: other errors, another order of unknown fields, and truncated numbers. Source: apimachinery
 * pkg/runtime/converter.go. Must never be used for values decoded directly from JSON. */

#include <stdlib.h>

#include "tree.h"
#include "walk.h"

static const char *const KINDS[] = {
    [VALUE_NIL] = "invalid",   [VALUE_BOOL] = "bool",     [VALUE_INT] = "int64",
    [VALUE_FLOAT] = "float64", [VALUE_STRING] = "string", [VALUE_MAP] = "map",
    [VALUE_LIST] = "slice",
};

/* Go can convert integers to strings, as code points; the converter refuses that with a message of
 * its own. */
static bool is_convertible(enum value_type from, uint8_t to)
{
    bool numeric = to >= SCHEMA_INT32 && to <= SCHEMA_DOUBLE;

    return (from == VALUE_INT && (numeric || to == SCHEMA_STRING)) ||
           (from == VALUE_FLOAT && numeric);
}

struct str convert_text(struct walk *w, uint32_t node, const cJSON *value)
{
    uint8_t kind = schema_node(w->schema, node)->kind;
    enum value_type type = value_type(w->arena, value);

    switch (kind) {
    case SCHEMA_OBJECT:
        return arena_printf(w->arena, "cannot restore struct from: %s", KINDS[type]);
    case SCHEMA_MAP:
        return arena_printf(w->arena, "cannot restore map from %s", KINDS[type]);
    case SCHEMA_LIST:
    case SCHEMA_BYTES:
        return arena_printf(w->arena, "cannot restore slice from %s", KINDS[type]);
    default:
        break;
    }
    if (is_convertible(type, kind))
        return arena_printf(w->arena, "cannot convert %s to %.*s", KINDS[type],
                            STR_F(go_type(w->arena, w->schema, node)));
    return arena_printf(w->arena, "unrecognized type: %s", go_scalar(kind));
}
