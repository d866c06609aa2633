/* SPDX-License-Identifier: Apache-2.0 */
/* Sets ServiceCIDRs Ready; the host assigns the real service addresses (in host role, the allocator
 * does). Must never block the deletion of one: no address depends on it here. Source:
 * pkg/controller/servicecidrs of Kubernetes 1.36. */
#include "util.h"

static void cidr_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "networking.k8s.io", "servicecidrs");
    struct str ns, name;
    cJSON *cidr;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    cidr = reconcile_get(r, res, STR(""), name);
    if (!cidr || object_is_terminating(cidr))
        return;
    if (condition_set(reconcile_arena(r), cidr, "Ready", "True", "",
                      STR("Kubernetes Service CIDR is ready"), reconcile_now_s(r)))
        reconcile_update_status(r, res, cidr);
}

static const struct controller_source SOURCES[] = {
    {"networking.k8s.io", "servicecidrs", controller_map_self},
    {NULL, NULL, NULL},
};

const struct controller_def SERVICE_CIDR_CONTROLLER = {
    .name = "service-cidr-controller",
    .sources = SOURCES,
    .reconcile = cidr_reconcile,
};
