/* SPDX-License-Identifier: Apache-2.0 */
/* NamespaceLifecycle: nothing is created in a namespace that does not exist or is terminating, and
 * required namespaces cannot be deleted. */
#include "plugins.h"

#include <sublet/object.h>

static const char *const IMMORTAL[] = {"default", "kube-system", "kube-public"};

static int delete_namespace(const struct admission_call *c, struct err *err)
{
    for (size_t i = 0; i < COUNT(IMMORTAL); i++) {
        if (str_eqc(c->name, IMMORTAL[i]))
            return err_forbidden(err, STR(""), STR("namespaces"), c->name,
                                 "this namespace may not be deleted");
    }
    return 0;
}

static int terminating(const struct admission_call *c, const cJSON *object, struct err *err)
{
    struct str name = c->name.n ? c->name : json_str_at(object, "metadata.name");

    err_forbidden(err, c->resource->group, c->resource->plural, name,
                  "unable to create new content in namespace %.*s because it is being terminated",
                  STR_F(c->ns));
    err_cause(err, STR("NamespaceTerminating"), STR("metadata.namespace"),
              arena_printf(c->arena, "namespace %.*s is being terminated", STR_F(c->ns)));
    return -1;
}

int lifecycle_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                    struct err *err)
{
    (void)old;
    if (!object)
        return plugin_admits(c, "", "namespaces") && !c->subresource.n ? delete_namespace(c, err)
                                                                       : 0;
    if (!plugin_is_create(c) || !resource_namespaced(c->resource) ||
        (c->resource->flags & (RES_REVIEW | RES_BINDING)) == RES_REVIEW)
        return 0;
    const struct store_object *ns = plugin_stored(c, "", "namespaces", STR(""), c->ns);
    if (!ns)
        return err_not_found(err, STR(""), STR("namespaces"), c->ns);
    /* Without the key in the bytes no tree is built. */
    if (!object_may_be_terminating(ns->bytes))
        return 0;
    cJSON *tree = vapi_tree(c->arena, ns);
    return object_is_terminating(tree) ? terminating(c, object, err) : 0;
}
