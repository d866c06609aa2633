/* SPDX-License-Identifier: Apache-2.0 */
/* resource.k8s.io: devices, and claims on them. Source: pkg/apis/resource/v1/defaults.go. */
#include "validate.h"

#include <sublet/encode.h>

/* ---- claims ---- */

static void request_defaults(struct arena *a, cJSON *request)
{
    static const struct default_rule rules[] = {
        SET_TEXT_Z("allocationMode", "ExactCount"),
        SET_TEXT_Z("tolerations[].operator", "Equal"),
    };

    if (!json_is_object(request))
        return;
    defaults_apply(a, request, rules, COUNT(rules));
    if (str_eqc(json_str(json_get(request, "allocationMode")), "ExactCount") &&
        !json_i64_at(request, "count", 0))
        json_set_i64(a, request, "count", 1);
}

static void claim_spec_defaults(struct arena *a, cJSON *spec)
{
    json_each(request, json_path(spec, "devices.requests"))
    {
        request_defaults(a, json_get(request, "exactly"));
        json_each(one, json_get(request, "firstAvailable")) request_defaults(a, one);
    }
}

static void claim_defaults(struct arena *a, cJSON *claim)
{
    static const struct default_rule rules[] = {
        SET_TEXT_Z("status.allocation.devices.results[].tolerations[].operator", "Equal")};

    claim_spec_defaults(a, json_get(claim, "spec"));
    defaults_apply(a, claim, rules, COUNT(rules));
}

static void claim_prepare_create(struct arena *a, cJSON *claim)
{
    set_status(a, claim, "{}");
}

const struct kind_ops RESOURCE_CLAIM_OPS = {
    .defaults = claim_defaults,
    .prepare_create = claim_prepare_create,
    .validate = validate_resource_claim,
    .validate_status = validate_resource_claim_status,
    .cells = cells_resource_claim,
};

static void template_defaults(struct arena *a, cJSON *object)
{
    claim_spec_defaults(a, json_path(object, "spec.spec"));
}

const struct kind_ops RESOURCE_CLAIM_TEMPLATE_OPS = {
    .defaults = template_defaults,
    .validate = validate_resource_claim_template,
    .cells = cells_age,
};

/* ---- slices and classes ---- */

/* Fields of features that upstream has off. */
static void slice_defaults(struct arena *a, cJSON *slice)
{
    static const char *const lists[] = {"bools", "ints", "strings", "versions"};

    (void)a;
    drop_member(slice, "spec.devices[].nodeAllocatableResourceMappings");
    json_each(device, json_path(slice, "spec.devices"))
    {
        json_each(attribute, json_get(device, "attributes"))
        {
            for (size_t i = 0; i < COUNT(lists); i++)
                json_remove(attribute, lists[i]);
        }
    }
}

/* Upstream's default is its clock's time: that of the object's birth. */
static void slice_prepare_create(struct arena *a, cJSON *slice)
{
    struct str born = json_str_at(slice, "metadata.creationTimestamp");

    json_each(device, json_path(slice, "spec.devices"))
    {
        json_each(taint, json_get(device, "taints"))
        {
            if (born.n && !given(taint, "timeAdded"))
                json_set_str(a, taint, "timeAdded", born);
        }
    }
}

static void slice_warnings(struct arena *a, const cJSON *slice, void (*warn)(void *, struct str),
                           void *ctx)
{
    struct str driver = json_str_at(slice, "spec.driver");

    if (!str_eq(driver, lower_case(a, driver)))
        warn(ctx, arena_printf(a,
                               "spec.driver: driver names should be lowercase; %.*s contains "
                               "uppercase characters",
                               STR_F(go_quote(a, driver))));
}

const struct kind_ops RESOURCE_SLICE_OPS = {
    .warnings = slice_warnings,
    .defaults = slice_defaults,
    .prepare_create = slice_prepare_create,
    .validate = validate_resource_slice,
    .cells = cells_resource_slice,
};
const struct kind_ops DEVICE_CLASS_OPS = {
    .validate = validate_device_class,
    .cells = cells_age,
};
