/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims. Which classes, numbers and parameters go down is judged by pool_claim.c; here is
 * which fields exist for the host at all. adminAccess, tolerations and the status are in no row.
 * Upward: which devices were allocated, without the parameters of the admin's classes and the data
 * that drivers publish. */

#include <sublet/json_build.h>

#include "kind_impl.h"
#include "shape.h"

#define REQUEST(path)                                                                              \
    {path ".deviceClassName", KIND_KEEP}, {path ".selectors[*].cel.expression", KIND_KEEP},        \
        {path ".allocationMode", KIND_KEEP}, {path ".count", KIND_KEEP},                           \
    {                                                                                              \
        path ".capacity.requests", KIND_KEEP                                                       \
    }

static const struct kind_rule DOWN[] = {
    {"spec.devices.requests[*].name", KIND_KEEP},
    REQUEST("spec.devices.requests[*].exactly"),
    {"spec.devices.requests[*].firstAvailable[*].name", KIND_KEEP},
    REQUEST("spec.devices.requests[*].firstAvailable[*]"),
    {"spec.devices.constraints[*].requests", KIND_KEEP},
    {"spec.devices.constraints[*].matchAttribute", KIND_KEEP},
    {"spec.devices.constraints[*].distinctAttribute", KIND_KEEP},
    {"spec.devices.config[*].requests", KIND_KEEP},
    {"spec.devices.config[*].opaque.driver", KIND_KEEP},
    {"spec.devices.config[*].opaque.parameters", KIND_KEEP},
    {0},
};

/* What the tenant itself wrote. */
static int config_up(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    *ret = json_new_array(c->arena);
    json_each(one, value)
    {
        if (str_eqc(json_str(json_get(one, "source")), "FromClaim"))
            json_append(*ret, json_copy(c->arena, one));
    }
    return 0;
}

static int conditions_up(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    *ret = translate_kind_conditions(c->arena, value);
    return 0;
}

#define DEVICE(path)                                                                               \
    {path ".driver", KIND_KEEP}, {path ".pool", KIND_KEEP}, {path ".device", KIND_KEEP},           \
    {                                                                                              \
        path ".shareID", KIND_KEEP                                                                 \
    }

static const struct kind_rule UP[] = {
    {"status.allocation.devices.results[*].request", KIND_KEEP},
    DEVICE("status.allocation.devices.results[*]"),
    {"status.allocation.devices.results[*].consumedCapacity", KIND_KEEP},
    {"status.allocation.devices.config", KIND_CALL, .call = config_up},
    {"status.allocation.nodeSelector", KIND_KEEP},
    {"status.allocation.allocationTimestamp", KIND_KEEP},
    DEVICE("status.devices[*]"),
    {"status.devices[*].conditions", KIND_CALL, .call = conditions_up},
    {"status.devices[*].networkData", KIND_KEEP},
    {0},
};

const struct kind_rules TRANSLATE_RULES_RESOURCE_CLAIM = {
    .api_version = "resource.k8s.io/v1",
    .kind = "ResourceClaim",
    .group = "resource.k8s.io",
    .plural = "resourceclaims",
    .down = DOWN,
    .up = UP,
    .hidden = "resource.kubernetes.io/extended-resource-claim"};

cJSON *translate_reserved_up(struct arena *a, const cJSON *list, translate_reserved_cb find,
                             void *ctx)
{
    cJSON *ret = json_new_array(a);

    json_each(one, list)
    {
        struct str name, uid;

        if (!json_str(json_get(one, "apiGroup")).n &&
            str_eqc(json_str(json_get(one, "resource")), "pods") &&
            find(ctx, json_str(json_get(one, "name")), json_str(json_get(one, "uid")), &name, &uid))
            json_append(ret, json_object(a, JSON("resource", "pods"), JSON("name", name),
                                         JSON("uid", uid)));
    }
    return json_count(ret) ? ret : NULL;
}

/* ---- of pods ---- */

#define STATUSES "status.resourceClaimStatuses"

struct str translate_pod_claim(const cJSON *pod, const cJSON *entry)
{
    struct str direct = json_str(json_get(entry, "resourceClaimName"));

    if (direct.n)
        return direct;
    json_each(one, json_path(pod, STATUSES))
    {
        if (str_eq(json_str(json_get(one, "name")), json_str(json_get(entry, "name"))))
            return json_str(json_get(one, "resourceClaimName"));
    }
    return STR("");
}

bool translate_pod_claims_allowed(const struct translate_tenant *t)
{
    return t->config->to_host->enabled[DOWN_RESOURCE_CLAIMS];
}

/* Claims are made of templates in the virtual cluster: the host sees claims only. A name that is
 * not known yet is one for a dry run alone: the pod is created once all its claims are on the
 * host. */
cJSON *translate_pod_claim_down(struct down *d, const cJSON *entry)
{
    cJSON *ret = json_new_object(d->arena);
    struct str name = json_str(json_get(entry, "name")), claim;

    if (!d->claims || !json_is_object(entry))
        return NULL;
    claim = translate_pod_claim(d->object, entry);
    if (!claim.n)
        claim = arena_printf(d->arena, "%.*s-%.*s", STR_F(d->name), STR_F(name));
    add_str(d->arena, ret, "name", name);
    add_str(d->arena, ret, "resourceClaimName", shape_name_down(d, claim));
    return ret;
}
