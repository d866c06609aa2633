/* SPDX-License-Identifier: Apache-2.0 */
/* What ports of Services and of Endpoints share. */
#include "../rules/kind.h"
#include "port.h"

void check_named_port(const struct check *c)
{
    if (json_str(c->value).n)
        check_rule(c->e, c->at, NAME_DNS1123_LABEL, json_str(c->value));
    else if (json_count(c->list) > 1)
        field_required(c->e, c->at, "");
}
