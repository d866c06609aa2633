/* SPDX-License-Identifier: Apache-2.0 */
/* The status of both kinds of flow control. */
#include "../rules/kind.h"
#include "status.h"

static void check_types(const struct check *c)
{
    struct names seen = {.arena = c->e->arena};
    size_t i = 0;

    json_each(condition, c->value)
    {
        const struct field_path *at = FIELD(FIELD_INDEX(c->at, i++), "type");
        struct str type = json_str(json_get(condition, "type"));

        if (!names_add(&seen, type, condition))
            field_duplicate(c->e, at, json_new_string(c->e->arena, type));
        check_given(c->e, at, type);
    }
}

const struct rule FLOW_STATUS_RULES[1] = {CALL("status.conditions", check_types)};
