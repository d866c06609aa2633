/* SPDX-License-Identifier: Apache-2.0 */
/* References to objects of any kind, of Ingresses and their classes. */
#include "../rules/kind.h"
#include "reference.h"

void check_typed_reference(struct field_errors *e, const struct field_path *p, const cJSON *ref)
{
    const cJSON *group = given(ref, "apiGroup");

    if (group)
        check_rule(e, FIELD(p, "apiGroup"), NAME_DNS1123_SUBDOMAIN, json_str(group));
    for (size_t i = 0; i < 2; i++) {
        const char *key = i ? "name" : "kind";
        struct str text = json_str(json_get(ref, key));

        if (check_given(e, FIELD(p, key), text))
            check_rule(e, FIELD(p, key), NAME_PATH_SEGMENT, text);
    }
}
