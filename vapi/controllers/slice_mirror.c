/* SPDX-License-Identifier: Apache-2.0 */
/* Mirrors Endpoints that a user wrote for a service without a selector into EndpointSlices, which
 * clients read. Must never mirror Endpoints that the endpoint controller created. Source of the
 * rules: pkg/controller/endpointslicemirroring of Kubernetes 1.36. */
#include "slices.h"

#include <sublet/json_build.h>

#define PER_SUBSET 1000

static const struct str MANAGER = {"endpointslicemirroring-controller.k8s.io", 40};

struct mirror {
    struct slice_plan plan;
    struct arena *arena;
    size_t invalid, skipped;
};

static bool is_mirrored(const cJSON *endpoints)
{
    const cJSON *annotations = json_path(endpoints, "metadata.annotations");

    return endpoints &&
           !str_eqc(json_str(json_get(json_path(endpoints, "metadata.labels"),
                                      "endpointslice.kubernetes.io/skip-mirror")),
                    "true") &&
           !json_get(annotations, "control-plane.alpha.kubernetes.io/leader");
}

static void add_addresses(struct mirror *m, const cJSON *list, const cJSON *ports, bool ready,
                          size_t *added)
{
    json_each(address, list)
    {
        const char *type = slices_address_type(json_str_at(address, "ip"));

        if (*added >= PER_SUBSET) {
            m->skipped++;
        } else if (!type) {
            m->invalid++;
        } else {
            struct arena *a = m->arena;
            cJSON *ip = json_new_string(a, json_str_at(address, "ip"));

            json_append(
                slice_group_get(&m->plan, type, ports)->endpoints,
                json_object(a, JSON("addresses", json_array(a, ip)),
                            JSON("conditions", json_object(a, JSON_BOOL("ready", ready))),
                            JSON("hostname", json_copy(a, json_get(address, "hostname"))),
                            JSON("nodeName", json_copy(a, json_get(address, "nodeName"))),
                            JSON("targetRef", json_copy(a, json_get(address, "targetRef")))));
            (*added)++;
        }
    }
}

static void add_subset(struct mirror *m, const cJSON *subset)
{
    cJSON *ports = json_new_array(m->arena);
    size_t added = 0;

    json_each(port, json_get(subset, "ports"))
    {
        cJSON *copy = json_append(ports, json_copy(m->arena, port));

        if (!json_get(copy, "name"))
            json_set_str(m->arena, copy, "name", STR(""));
    }
    add_addresses(m, json_get(subset, "addresses"), ports, true, &added);
    add_addresses(m, json_get(subset, "notReadyAddresses"), ports, false, &added);
}

static void write_slices(struct mirror *m)
{
    struct reconcile *r = m->plan.run;

    if (m->invalid)
        reconcile_event(r, m->plan.owner, "Warning", "InvalidIPAddress",
                        "Skipped %zu invalid IP addresses when mirroring to EndpointSlices",
                        m->invalid);
    if (m->skipped)
        reconcile_event(r, m->plan.owner, "Warning", "TooManyAddressesToMirror",
                        "A max of %d addresses can be mirrored to EndpointSlices per Endpoints "
                        "subset. %zu addresses were skipped",
                        PER_SUBSET, m->skipped + m->invalid);
}

static cJSON *copy_map(struct arena *a, const cJSON *from)
{
    return json_is_object(from) ? json_copy(a, from) : json_new_object(a);
}

static void mirror_reconcile(struct reconcile *r)
{
    struct mirror m = {.arena = reconcile_arena(r)};
    const cJSON *service;
    struct str ns, name;
    const cJSON *meta;
    cJSON *labels, *annotations;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    m.plan = (struct slice_plan){.run = r, .manager = MANAGER, .max = PER_SUBSET};
    m.plan.owner_res = reconcile_resource(r, "", "endpoints");
    m.plan.owner = reconcile_get(r, m.plan.owner_res, ns, name);
    service = reconcile_get(r, reconcile_resource(r, "", "services"), ns, name);
    if (!is_mirrored(m.plan.owner) || !service || json_path(service, "spec.selector")) {
        slices_remove(r, ns, name, MANAGER);
        return;
    }

    meta = json_get(m.plan.owner, "metadata");
    labels = copy_map(m.arena, json_get(meta, "labels"));
    annotations = copy_map(m.arena, json_get(meta, "annotations"));
    json_set_str(m.arena, labels, SLICE_SERVICE, meta_name(m.plan.owner));
    json_set_str(m.arena, labels, SLICE_MANAGED_BY, MANAGER);
    json_remove(annotations, "endpoints.kubernetes.io/last-change-trigger-time");
    json_remove(annotations, "kubectl.kubernetes.io/last-applied-configuration");
    m.plan.labels = labels;
    m.plan.annotations = annotations;

    json_each(subset, json_get(m.plan.owner, "subsets")) add_subset(&m, subset);
    write_slices(&m);
    slices_write(&m.plan);
}

static void map_slice(struct controller *c, const struct store_event *e)
{
    slices_map(c, e, MANAGER);
}

static const struct controller_source SOURCES[] = {
    {"", "endpoints", controller_map_self},
    {"", "services", controller_map_self},
    {"discovery.k8s.io", "endpointslices", map_slice},
    {NULL, NULL, NULL},
};

const struct controller_def SLICE_MIRROR_CONTROLLER = {
    .name = "endpointslice-mirroring-controller",
    .sources = SOURCES,
    .reconcile = mirror_reconcile,
};
