/* SPDX-License-Identifier: Apache-2.0 */
/* References to objects of any kind, of Ingresses and their classes. */
#include "../rules/kind.h"
#include "reference.h"

static const struct rule REFERENCE[] = {
    NAME_IF_GIVEN("apiGroup", DNS1123_SUBDOMAIN),
    NAME("kind", PATH_SEGMENT),
    NAME("name", PATH_SEGMENT),
};

void check_typed_reference(struct field_errors *e, const struct field_path *p, const cJSON *ref)
{
    rules_check_value(e, p, ref, NULL, REFERENCE, COUNT(REFERENCE));
}
