/* SPDX-License-Identifier: Apache-2.0 */
/* What StorageClasses and VolumeAttributesClasses share. */
#include "../rules/kind.h"
#include "class.h"

#define MAX_PARAMETERS 512

void check_provisioner(const struct check *c)
{
    if (check_given(c->e, c->at, json_str(c->value)))
        check_rule(c->e, c->at, NAME_QUALIFIED, lower_case(c->e->arena, json_str(c->value)));
}

void check_parameters(struct field_errors *e, const struct field_path *p, const cJSON *parameters,
                      bool may_be_empty)
{
    size_t total = 0;

    if (json_count(parameters) > MAX_PARAMETERS) {
        field_too_long(e, p, MAX_PARAMETERS);
        return;
    }
    json_each(item, parameters)
    {
        if (!*item->string)
            field_invalid_str(e, p, STR(""), "field can not be empty.");
        total += str_c(item->string).n + json_str(item).n;
    }
    if (total > MAX_SIZE)
        field_too_long(e, p, MAX_SIZE);
    if (!may_be_empty && !json_count(parameters))
        field_required(e, p, "must contain at least one key/value pair");
}
