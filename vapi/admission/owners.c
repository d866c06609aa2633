/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins that call the authorizer: setting ownerReferences with blockOwnerDeletion, and
 * escalating roles. */
#include "plugins.h"

#include <sublet/api_version.h>

static bool had(const cJSON *old, const cJSON *ref)
{
    json_each(other, json_path(old, "metadata.ownerReferences"))
    {
        if (json_equal(other, ref))
            return true;
    }
    return false;
}

static int check_owner(const struct admission_call *c, const cJSON *ref, struct err *err)
{
    struct api_version v = api_version_read(json_str_at(ref, "apiVersion"));
    const struct resource *r =
        registry_find_kind(vapi_registry(c->api), v.group, v.version, json_str_at(ref, "kind"));
    struct attributes what = {.verb = "update",
                              .group = v.group,
                              .version = v.version,
                              .subresource = STR("finalizers"),
                              .name = json_str_at(ref, "name")};

    if (r) {
        what.resource = r->plural;
        what.ns = resource_namespaced(r) ? c->ns : STR("");
        if (auth_authorize(vapi_auth(c->api), c->arena, c->user, &what, NULL))
            return 0;
    }
    return err_forbidden(
        err, c->resource->group, c->resource->plural, c->name,
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you "
        "can't set finalizers on: %s",
        r ? "you may not update its finalizers" : "no RESTMapping found");
}

int owner_references_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                              struct err *err)
{
    struct attributes what = {.verb = "update",
                              .group = STR("*"),
                              .version = STR("*"),
                              .resource = STR("*"),
                              .subresource = STR("finalizers"),
                              .name = STR("*")};

    json_each(ref, json_path(object, "metadata.ownerReferences"))
    {
        if (!json_true(json_get(ref, "blockOwnerDeletion")) || had(old, ref))
            continue;
        /* A user who may update finalizers of all resources needs no check of each owner. */
        if (auth_authorize(vapi_auth(c->api), c->arena, c->user, &what, NULL))
            return 0;
        if (check_owner(c, ref, err))
            return -1;
    }
    return 0;
}

int escalation_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                     struct err *err)
{
    bool role =
        str_eqc(c->resource->plural, "roles") || str_eqc(c->resource->plural, "clusterroles");
    /* A created role may have no name yet, unless the path names it. Source:
     * pkg/registry/rbac/escalation_check.go. */
    struct attributes what = {.verb = "escalate",
                              .group = c->resource->group,
                              .version = STR("*"),
                              .resource = c->resource->plural,
                              .subresource = STR(""),
                              .ns = c->ns,
                              .name = c->path_name};

    if (!object || !str_eqc(c->resource->group, "rbac.authorization.k8s.io") ||
        (role && auth_authorize(vapi_auth(c->api), c->arena, c->user, &what, NULL)))
        return 0;
    return auth_check_escalation(vapi_auth(c->api), c->arena, c->user, c->resource, object, old,
                                 err);
}
