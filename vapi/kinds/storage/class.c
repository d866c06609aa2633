/* SPDX-License-Identifier: Apache-2.0 */
/* What StorageClasses and VolumeAttributesClasses share. */
#include "../rules/kind.h"
#include "class.h"

#define MAX_PARAMETERS 512

void check_provisioner(const struct check *c)
{
    if (check_given(c->e, c->at, json_str(c->value)))
        check_rule(c->e, c->at, NAME_QUALIFIED, kinds_lower_case(c->e->arena, json_str(c->value)));
}

void check_parameters(const struct check *c, const struct rule *r)
{
    size_t total = 0;

    if (json_count(c->value) > MAX_PARAMETERS) {
        field_too_long(c->e, c->at, MAX_PARAMETERS);
        return;
    }
    json_each(item, c->value)
    {
        if (!*item->string)
            field_invalid_str(c->e, c->at, STR(""), "field can not be empty.");
        total += str_c(item->string).n + json_str(item).n;
    }
    if (total > MAX_SIZE)
        field_too_long(c->e, c->at, MAX_SIZE);
    if (r->words && !json_count(c->value))
        field_required(c->e, c->at, r->words);
}
