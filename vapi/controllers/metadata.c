/* SPDX-License-Identifier: Apache-2.0 */
/* Writes to the metadata of objects that others write too: owners and finalizers. Every write names
 * the version that was read: a concurrent change must never be lost, the decision is repeated. */
#include "util.h"

#include <sublet/json_build.h>

void metadata_write(struct reconcile *r, const struct resource *res, const cJSON *object,
                    const char *key, cJSON *value)
{
    struct arena *a = reconcile_arena(r);
    cJSON *meta =
        json_object(a, JSON("uid", meta_uid(object)),
                    JSON("resourceVersion", json_str_at(object, "metadata.resourceVersion")));

    json_set(a, meta, key, value);
    reconcile_patch(r, res, STR_NULL, meta_ns(object), meta_name(object),
                    json_object(a, JSON("metadata", meta)));
}

/* --- finalizers --- */

static cJSON *finalizers_without(struct arena *a, const cJSON *object, const char *name)
{
    cJSON *list = json_new_array(a);

    json_each(item, json_path(object, "metadata.finalizers"))
    {
        if (!str_eqc(json_str(item), name))
            json_append(list, json_copy(a, item));
    }
    return list;
}

void metadata_finalizer_add(struct reconcile *r, const struct resource *res, const cJSON *object,
                            const char *name)
{
    struct arena *a = reconcile_arena(r);
    cJSON *list = finalizers_without(a, object, name);

    json_append(list, json_new_string(a, str_c(name)));
    metadata_write(r, res, object, "finalizers", list);
}

void metadata_finalizer_drop(struct reconcile *r, const struct resource *res, const cJSON *object,
                             const char *name)
{
    metadata_write(r, res, object, "finalizers",
                   finalizers_without(reconcile_arena(r), object, name));
}

/* --- owners --- */

bool metadata_owner_is(const cJSON *object, struct str uid)
{
    return str_eq(json_str_at(owner_controller(object), "uid"), uid) && uid.n;
}

cJSON *metadata_owner_ref(struct arena *a, const struct resource *r, const cJSON *owner)
{
    return json_put(a, owner_reference(a, r->api_version, r->kind, owner),
                    JSON_BOOL("controller", true), JSON_BOOL("blockOwnerDeletion", true));
}

cJSON *owner_refs_copy(struct arena *a, const cJSON *object)
{
    const cJSON *refs = json_path(object, "metadata.ownerReferences");

    return json_is_array(refs) ? json_copy(a, refs) : json_new_array(a);
}

void owner_refs_drop(cJSON *refs, struct str uid)
{
    json_each(ref, refs)
    {
        if (str_eq(json_str_at(ref, "uid"), uid)) {
            json_detach(refs, ref);
            return;
        }
    }
}

void owner_refs_write(struct reconcile *r, const struct resource *res, const cJSON *object,
                      cJSON *refs)
{
    metadata_write(r, res, object, "ownerReferences", refs);
}
