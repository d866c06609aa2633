/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceCIDRs. The object `kubernetes` is there, as in every cluster, and all are Ready; which
 * addresses services really get is the host's, or in host role the allocator's, to say. Must hold
 * nobody back from deleting one: no address hangs on it here. Source: pkg/controlplane/controller/
 * defaultservicecidr, pkg/controller/servicecidrs of Kubernetes 1.36. */
#include "util.h"

#define DEFAULT_NAME STR("kubernetes")
#define DEFAULT_CIDR STR("10.96.0.0/12")

static void make_default(struct reconcile *r, const struct resource *res)
{
    struct arena *a = reconcile_arena(r);
    cJSON *o = json_new_object(a), *cidrs;

    json_set_str(a, json_ensure_object(a, o, "metadata"), "name", DEFAULT_NAME);
    cidrs = json_set(a, json_ensure_object(a, o, "spec"), "cidrs", json_new_array(a));
    json_append(cidrs, json_new_string(a, DEFAULT_CIDR));
    reconcile_create(r, res, STR(""), o);
}

static void cidr_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "networking.k8s.io", "servicecidrs");
    struct str ns, name;
    cJSON *cidr;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    cidr = reconcile_get(r, res, STR(""), name);
    if (!cidr && str_eq(name, DEFAULT_NAME))
        make_default(r, res);
    if (!cidr || is_going(cidr))
        return;
    if (condition_set(reconcile_arena(r), cidr, "Ready", "True", "",
                      STR("Kubernetes Service CIDR is ready"), reconcile_now_s(r)))
        reconcile_update_status(r, res, cidr);
}

static void *start(struct controller *c)
{
    controller_add_name(c, STR(""), DEFAULT_NAME);
    return NULL;
}

static const struct controller_source SOURCES[] = {
    {"networking.k8s.io", "servicecidrs", controller_map_self},
    {NULL, NULL, NULL},
};

const struct controller_def SERVICE_CIDR_CONTROLLER = {
    .name = "service-cidr-controller",
    .sources = SOURCES,
    .reconcile = cidr_reconcile,
    .start = start,
};
