/* SPDX-License-Identifier: Apache-2.0 */
/* The EndpointSlices of a service's pods: all with an address, terminating ones too, each with its
 * conditions, zone and hints. Must never set a terminating pod ready, unless the service publishes
 * unready addresses. */
#include "endpoints.h"

#include "slices.h"

#include <sublet/json_build.h>

#define PER_SLICE 100

const struct str ENDPOINT_SLICE_MANAGER = {"endpointslice-controller.k8s.io", 31};

static cJSON *types_of(const struct service_run *s)
{
    cJSON *types = json_new_array(s->arena);
    const char *of_ip = slices_address_type(json_str_at(s->service, "spec.clusterIP"));

    json_each(family, json_path(s->service, "spec.ipFamilies"))
        json_append(types, json_new_string(s->arena, json_str(family)));
    if (json_count(types))
        return types;
    if (of_ip) {
        json_append(types, json_new_string(s->arena, str_c(of_ip)));
        return types;
    }
    json_append(types, json_new_string(s->arena, STR("IPv4")));
    json_append(types, json_new_string(s->arena, STR("IPv6")));
    return types;
}

static struct str zone_of(const struct service_run *s, struct str node)
{
    const struct resource *res = reconcile_resource(s->run, "", "nodes");
    const struct store_object *o =
        node.n ? store_get(vapi_store(reconcile_api(s->run)), res->storage, STR(""), node) : NULL;
    struct str zone = STR_NULL;

    if (o)
        labels_get(o->labels, STR("topology.kubernetes.io/zone"), &zone);
    return zone;
}

static cJSON *addresses_of(struct service_run *s, const cJSON *pod, struct str type)
{
    cJSON *addresses = json_new_array(s->arena);

    json_each(item, json_path(pod, "status.podIPs"))
    {
        struct str ip = json_str_at(item, "ip");
        const char *its = slices_address_type(ip);

        if (its && str_eqc(type, its))
            json_append(addresses, json_new_string(s->arena, ip));
    }
    return addresses;
}

static void add_hint(struct arena *a, cJSON *hints, const char *key, struct str name)
{
    json_set(a, hints, key, json_array(a, json_object(a, JSON("name", name))));
}

/* Where the service prefers close traffic, each ready endpoint gets a hint for its own zone and
 * node. */
static void set_hints(struct service_run *s, cJSON *endpoint, struct str zone, struct str node)
{
    struct str near = json_str_at(s->service, "spec.trafficDistribution");
    bool same_node = str_eqc(near, "PreferSameNode");
    bool same_zone = same_node || str_eqc(near, "PreferClose") || str_eqc(near, "PreferSameZone");
    cJSON *hints;

    if (!same_zone || (!zone.n && !(same_node && node.n)))
        return;
    hints = json_ensure_object(s->arena, endpoint, "hints");
    if (zone.n)
        add_hint(s->arena, hints, "forZones", zone);
    if (same_node && node.n)
        add_hint(s->arena, hints, "forNodes", node);
}

static cJSON *make_endpoint(struct service_run *s, const cJSON *pod, cJSON *addresses)
{
    struct arena *a = s->arena;
    bool serving = pod_is_ready(pod), terminating = object_is_terminating(pod);
    bool ready = s->publish_unready || (serving && !terminating);
    struct str node = json_str_at(pod, "spec.nodeName"), zone = zone_of(s, node);
    struct str hostname =
        endpoints_service_names_host(s, pod) ? json_str_at(pod, "spec.hostname") : STR("");
    cJSON *conditions = json_object(a, JSON_BOOL("ready", ready), JSON_BOOL("serving", serving),
                                    JSON_BOOL("terminating", terminating));
    cJSON *endpoint = json_object(a, JSON("addresses", addresses), JSON("conditions", conditions),
                                  JSON_NONEMPTY("hostname", hostname),
                                  JSON("targetRef", endpoints_pod_reference(a, pod)),
                                  JSON_NONEMPTY("nodeName", node), JSON_NONEMPTY("zone", zone));

    if (ready)
        set_hints(s, endpoint, zone, node);
    return endpoint;
}

void endpoint_slices_write(struct service_run *s)
{
    struct slice_plan p = {.run = s->run,
                           .owner_res = s->res,
                           .owner = s->service,
                           .manager = ENDPOINT_SLICE_MANAGER,
                           .max = PER_SLICE};
    cJSON *labels = endpoints_service_labels(s);

    json_set_str(s->arena, labels, SLICE_SERVICE, meta_name(s->service));
    json_set_str(s->arena, labels, SLICE_MANAGED_BY, ENDPOINT_SLICE_MANAGER);
    p.labels = labels;
    p.keep_types = types_of(s);
    for (size_t i = 0; i < s->n_pods; i++) {
        const cJSON *pod = s->pods[i];
        cJSON *ports = endpoints_ports_of(s, pod, true);

        json_each(type, p.keep_types)
        {
            cJSON *addresses = addresses_of(s, pod, json_str(type));

            if (json_count(addresses))
                json_append(
                    slice_group_get(&p, arena_cstr(s->arena, json_str(type)), ports)->endpoints,
                    make_endpoint(s, pod, addresses));
        }
    }
    slices_write(&p);
}
