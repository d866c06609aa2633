/* SPDX-License-Identifier: Apache-2.0 */
/* What the plug-ins share: which request it is, and what is stored. Must not call a plug-in. */
#include "plugins.h"

struct str plugin_shown_name(struct str name)
{
    return name.n ? name : STR("Unknown");
}

bool plugin_admits(const struct admission_call *c, const char *group, const char *plural)
{
    return str_eqc(c->resource->group, group) && str_eqc(c->resource->plural, plural);
}

static bool lists(const cJSON *list, struct str item)
{
    return json_list_has(list, STR("*")) || json_list_has(list, item);
}

static bool scope_admits(const cJSON *rule, bool namespaced)
{
    struct str scope = json_str(json_get(rule, "scope"));

    if (str_eqc(scope, "Namespaced"))
        return namespaced;
    return !str_eqc(scope, "Cluster") || !namespaced;
}

static bool resource_admits(const cJSON *rule, const struct resource *r, struct str subresource)
{
    json_each(item, json_get(rule, "resources"))
    {
        struct str sub = json_str(item), plural = str_cut(&sub, '/');

        if ((str_eqc(plural, "*") || str_eq(plural, r->plural)) &&
            (str_eqc(sub, "*") || str_eq(sub, subresource)))
            return true;
    }
    return false;
}

const char *plugin_operation(enum admission_operation operation)
{
    static const char *const operations[] = {[ADMISSION_CREATE] = "CREATE",
                                             [ADMISSION_UPDATE] = "UPDATE",
                                             [ADMISSION_DELETE] = "DELETE",
                                             [ADMISSION_CONNECT] = "CONNECT"};

    return operations[operation];
}

bool plugin_rule_admits(const cJSON *rule, enum admission_operation operation, bool namespaced,
                        const struct resource *r, struct str subresource)
{
    return scope_admits(rule, namespaced) &&
           lists(json_get(rule, "operations"), str_c(plugin_operation(operation))) &&
           lists(json_get(rule, "apiGroups"), r->group) &&
           lists(json_get(rule, "apiVersions"), r->version) &&
           resource_admits(rule, r, subresource);
}

bool plugin_is_create(const struct admission_call *c)
{
    return c->operation == ADMISSION_CREATE;
}

bool plugin_is_new_pod(const struct admission_call *c)
{
    return plugin_is_create(c) && !c->subresource.n && plugin_admits(c, "", "pods");
}

const struct store_object *plugin_stored(const struct admission_call *c, const char *group,
                                         const char *plural, struct str ns, struct str name)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(c->api), str_c(group), str_c(plural));

    return r ? store_latest(vapi_store(c->api), r->storage, ns, name) : NULL;
}

void plugin_each_stored(const struct admission_call *c, const char *group, const char *plural,
                        struct str ns, store_scan_cb each, void *ctx)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(c->api), str_c(group), str_c(plural));

    if (r)
        store_scan_latest(vapi_store(c->api), r->storage, ns, each, ctx);
}
