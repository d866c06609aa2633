/* SPDX-License-Identifier: Apache-2.0 */
/* EndpointSlices of Services without a selector: a tenant names addresses to which the host's
 * proxies send its pods. Only addresses inside the admin's ranges go down; slices of other Services
 * are the host's own. Must never send a slice for a Service of another name than our own host
 * Service's, nor a node, a zone or a pod of the tenant's. */

#include <sublet/cidr.h>

#include "kind_impl.h"

#define OPTION        "sync.toHost.endpointSlices.allowedCIDRs"
#define LABEL_SERVICE "kubernetes.io/service-name"
#define LABEL_MANAGER "endpointslice.kubernetes.io/managed-by"
#define MIRRORING     "endpointslicemirroring-controller.k8s.io"
#define MANAGED_BY_US "sublet.dev"

static struct str label_of(const cJSON *v, const char *key)
{
    return json_str(json_get(json_path(v, "metadata.labels"), key));
}

static bool goes_down(const struct kind_call *c)
{
    const struct translate_related *related = c->tenant->related;
    struct str service = label_of(c->object, LABEL_SERVICE);

    return service.n && related && related->bare_service &&
           related->bare_service(related->ctx, c->ns, service);
}

static bool is_made(const cJSON *v)
{
    return str_eqc(label_of(v, LABEL_MANAGER), MIRRORING);
}

static int check_address(const struct kind_call *c, struct str text)
{
    struct str_list listed = c->tenant->config->to_host->slice_cidrs;
    struct cidr address, allowed;

    if (str_find(text, '/') < text.n || !cidr_parse(text, &address))
        return translate_kind_refuse(c, "\"%.*s\" is not an IP address", STR_F(text));
    for (size_t i = 0; i < listed.n; i++)
        if (cidr_parse(listed.items[i], &allowed) && cidr_within(&address, &allowed))
            return 0;
    return translate_kind_refuse(c, "%.*s is not inside a range of " OPTION, STR_F(text));
}

static int address_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    if (check_address(c, json_str(value)))
        return -1;
    *ret = json_new_string(c->arena, json_str(value));
    return 0;
}

static int type_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str type = json_str(value);

    if (!str_eqc(type, "IPv4") && !str_eqc(type, "IPv6"))
        return translate_kind_refuse(c, "only IPv4 and IPv6 go down");
    *ret = json_new_string(c->arena, type);
    return 0;
}

static const struct kind_rule DOWN[] = {
    {"addressType", KIND_CALL, .call = type_down},
    {"endpoints[*].addresses[*]", KIND_CALL, .call = address_down},
    {"endpoints[*].conditions.ready", KIND_KEEP},
    {"endpoints[*].conditions.serving", KIND_KEEP},
    {"endpoints[*].conditions.terminating", KIND_KEEP},
    {"ports[*].name", KIND_KEEP},
    {"ports[*].protocol", KIND_KEEP},
    {"ports[*].port", KIND_KEEP},
    {"ports[*].appProtocol", KIND_KEEP},
    {0},
};

static void name_service(const struct kind_call *c, cJSON *host)
{
    cJSON *labels = json_ensure_path(c->arena, host, "metadata.labels");
    char name[64];

    translate_name(c->tenant, c->ns, label_of(c->object, LABEL_SERVICE), name);
    json_set_str(c->arena, labels, LABEL_SERVICE, str_c(name));
    json_set_str(c->arena, labels, LABEL_MANAGER, STR(MANAGED_BY_US));
    if (!json_get(host, "endpoints"))
        object_add(c->arena, host, STR("endpoints"), json_new_array(c->arena));
}

const struct kind_rules TRANSLATE_RULES_ENDPOINT_SLICE = {.api_version = "discovery.k8s.io/v1",
                                                          .kind = "EndpointSlice",
                                                          .group = "discovery.k8s.io",
                                                          .plural = "endpointslices",
                                                          .down = DOWN,
                                                          .goes_down = goes_down,
                                                          .is_made = is_made,
                                                          .finish = name_service};
