/* SPDX-License-Identifier: Apache-2.0 */
/* The status of both kinds of flow control. */
#include "../rules/kind.h"
#include "status.h"

void validate_flow_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *p = FIELD(FIELD(NULL, "status"), "conditions");
    struct names seen = {.arena = e->arena};
    size_t i = 0;

    (void)old;
    json_each(condition, json_path(object, "status.conditions"))
    {
        const struct field_path *at = FIELD(FIELD_INDEX(p, i++), "type");
        struct str type = json_str(json_get(condition, "type"));

        if (!names_add(&seen, type, condition))
            field_duplicate(e, at, json_new_string(e->arena, type));
        check_given(e, at, type);
    }
}

void flow_prepare_create(struct arena *a, cJSON *object)
{
    set_status(a, object, "{}");
}
