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
