/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of GPUs by KAI. Why: on the host a part is no resource but annotations and a variable, so
 * what the tenant requested as a quantity is written there in the one spelling that everything else
 * counts. Must never let a key of these through that a tenant wrote, and never a part that is not
 * charged: one container has it, whose request is the pod's.
 *
 * KAI writes the device into ConfigMaps whose names begin with an annotation of the pod. Its
 * webhook makes one up where there is none; ours is of the name of the host pod, so that it is
 * known what the variable may name, with or without the webhook.
 * Source: KAI 0.12.0, pkg/binder/common/gpu_access.go, gpusharingconfigmap/config_map.go */

#include <sublet/fraction.h>
#include <sublet/json_build.h>

#include "shape.h"

static const char VARIABLE[] = "NVIDIA_VISIBLE_DEVICES";

static int64_t part_of(struct arena *a, const cJSON *container)
{
    struct device_counts own = {0};

    if (gpu_count_container(a, container, &own, NULL))
        return 0;
    for (size_t i = 0; i < own.n; i++) {
        if (str_eqc(own.items[i].name, FRACTION_RESOURCE))
            return own.items[i].units;
    }
    return 0;
}

/* ---- what a tenant may request ---- */

int gpu_fraction_guard(const struct resolve *r)
{
    size_t holders = 0;

    if (r->pool->mode != POOL_KAI)
        return 0;
    json_each(container, json_get(r->spec, "initContainers"))
    {
        if (part_of(r->arena, container))
            return pool_refuse(r,
                               FRACTION_RESOURCE " of init container \"%.*s\": a part of a GPU "
                                                 "is for a container",
                               STR_F(json_str(json_get(container, "name"))));
    }
    json_each(container, json_get(r->spec, "containers"))
    {
        int64_t part = part_of(r->arena, container);

        holders += part > 0;
        if (part >= FRACTION_WHOLE)
            return pool_refuse(r,
                               FRACTION_RESOURCE "=%lld of container \"%.*s\": pool \"%.*s\" has "
                                                 "parts of GPUs, 1 to 99",
                               (long long)part, STR_F(json_str(json_get(container, "name"))),
                               STR_F(r->pool->name));
    }
    if (holders > 1)
        return pool_refuse(r, FRACTION_RESOURCE ": only one container of a pod can have a part of "
                                                "a GPU");
    return 0;
}

/* ---- down ---- */

static bool has_parts(const struct down *d)
{
    return d->pool && d->pool->mode == POOL_KAI && !d->ephemeral;
}

/* "aaaabbbbccccdddd-shared-gpu": the hash that the host pod's name ends in. No object of a tenant
 * has such a name on the host, nor one that begins with it. */
static struct str maps_of(const struct down *d)
{
    char name[64];
    struct str host;

    translate_name(d->tenant, d->ns, d->name, name);
    host = str_c(name);
    return arena_printf(d->arena, "%.*s-shared-gpu", STR_F(str_from(host, host.n - HASH_CHARS)));
}

void translate_pod_fraction_down(struct down *d, cJSON *notes)
{
    if (!has_parts(d))
        return;
    json_each(container, json_get(d->spec, "containers"))
    {
        int64_t part = part_of(d->arena, container);

        if (!part)
            continue;
        add_str(d->arena, notes, FRACTION_NOTE, fraction_format(d->arena, part));
        add_str(d->arena, notes, FRACTION_NOTE_CONTAINER, json_str(json_get(container, "name")));
        add_str(d->arena, notes, FRACTION_NOTE_MAPS, maps_of(d));
        return;
    }
}

cJSON *translate_pod_fraction_variable(struct down *d, const cJSON *container)
{
    cJSON *ref;
    size_t index = 0;

    if (!has_parts(d) || !part_of(d->arena, container))
        return NULL;
    json_each(one, json_get(d->spec, "containers"))
    {
        if (one == container)
            break;
        index++;
    }
    ref = json_object(d->arena,
                      JSON("name", arena_printf(d->arena, "%.*s-%zu", STR_F(maps_of(d)), index)),
                      JSON("key", VARIABLE));
    return json_object(d->arena, JSON("name", VARIABLE),
                       JSON("valueFrom", json_object(d->arena, JSON("configMapKeyRef", ref))));
}
