/* SPDX-License-Identifier: Apache-2.0 */
/* Between the version an object is stored in and another that serves it. Must lose nothing: what a
 * version cannot say goes where upstream puts it. */
#include "rules/kind.h"

void kinds_convert(struct arena *a, const struct resource *r, cJSON *object)
{
    if (r->built_in && r->built_in->from_storage)
        r->built_in->from_storage(a, object);
    json_set_str(a, object, "apiVersion", r->api_version);
}

void kinds_convert_to_storage(struct arena *a, const struct resource *r, cJSON *object)
{
    if (r->built_in && r->built_in->to_storage)
        r->built_in->to_storage(a, object);
    json_set_str(a, object, "apiVersion", r->storage_version);
}

const char *kinds_unreadable(struct arena *a, const struct resource *r, const cJSON *body)
{
    return r->built_in && r->built_in->unreadable ? r->built_in->unreadable(a, body) : NULL;
}
