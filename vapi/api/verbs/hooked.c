/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * What an object is after a mutating webhook changed it. It must never keep what only the server
 * sets, nor anything that a client's body could not have. */
#include "verbs.h"

#include "../request/request.h"
#include "../review/review.h"
#include "../../core/meta.h"

#include <sublet/kinds.h>

/* The tree is of another version than the call's resource. */
int write_decode_hooked(struct call *c, const struct resource *as, cJSON *object, struct err *err)
{
    const struct resource *kept = c->resource;
    const char *why;
    int failed;

    if (!json_is_object(object)) /* a JSON patch may replace all of it */
        return err_set(err, &ERR_INTERNAL, "%.*s", STR_F(body_not_object(c, object)));
    c->resource = as;
    body_set_kind(c, object);
    failed = body_normalise(c, object, err);
    why = failed ? NULL : kinds_unreadable(c->arena, as, object);
    if (failed)
        reviewed_unwrap(err);
    else if (why)
        failed = err_set(err, &ERR_INTERNAL, "%s", why);
    else if (kept->conversion)
        failed = write_set_defaults(c, object, err);
    c->resource = kept;
    if (failed || kept->conversion) /* which a webhook converts */
        return failed;
    if (kept->crd)
        json_set_str(c->arena, object, "apiVersion", kept->api_version);
    else
        kinds_convert_to_storage(c->arena, as, object);
    return write_set_defaults(c, object, err);
}

static void keep_member(struct arena *a, cJSON *metadata, const cJSON *before, const char *key)
{
    const cJSON *value = json_get(json_get(before, "metadata"), key);

    if (value)
        json_set(a, metadata, key, json_copy(a, value));
    else
        json_remove(metadata, key);
}

int write_keep_identity(struct call *c, cJSON *object, const cJSON *before,
                        const struct store_object *base, struct err *err)
{
    static const char *const own[] = {"uid", "creationTimestamp", "generation", "deletionTimestamp",
                                      "deletionGracePeriodSeconds"};
    cJSON *metadata = vapi_meta_of(c->arena, object);

    for (size_t i = 0; i < COUNT(own); i++)
        keep_member(c->arena, metadata, before, own[i]);
    if (base) {
        vapi_meta_set_revision(c->arena, object, base->revision);
        return write_check_name(c, object, err);
    }
    json_remove(metadata, "resourceVersion");
    if (c->verb != CALL_CREATE && write_check_name(c, object, err))
        return -1;
    if (!json_str(json_get(metadata, "name")).n)
        keep_member(c->arena, metadata, before, "name");
    c->name = json_str(json_get(metadata, "name"));
    return vapi_meta_check_namespace(c, c->arena, object, err);
}

int write_check_served(const struct call *c, const struct resource *r, struct err *err)
{
    if (registry_find(vapi_registry(c->api), r->group, r->version, r->plural) == r)
        return 0;
    return err_not_found(err, r->group, r->plural, c->name);
}
