/* SPDX-License-Identifier: Apache-2.0 */
/* What ports of Services and of Endpoints share. */
#include "../rules/kind.h"
#include "port.h"

void check_named_port(struct field_errors *e, const struct field_path *p, const cJSON *port,
                      bool name_needed)
{
    struct str name = json_str(json_get(port, "name"));

    if (name.n)
        check_rule(e, FIELD(p, "name"), NAME_DNS1123_LABEL, name);
    else if (name_needed)
        field_required(e, FIELD(p, "name"), "");
}
