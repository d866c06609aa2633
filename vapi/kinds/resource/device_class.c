/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceClasses. Source: pkg/apis/resource/v1/defaults.go,
 * pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "device.h"

static void check_extended_name(struct field_errors *e, const struct field_path *p,
                                const cJSON *name)
{
    if (!kinds_is_extended_resource(json_str(name)))
        field_invalid(e, p, name, "must be a valid extended resource name");
}

static const struct rule CLASS_RULES[] = {
    INSIDE("spec", ALL(RULES_DEVICE_SELECTORS)),
    EACH_OF_AT_MOST("spec.config", MAX_CONFIG, ALL(RULES_DEVICE_CONFIG)),
    CHECK("spec.extendedResourceName", check_extended_name),
};

/* ---- the kind ---- */

const struct kind KIND_DEVICE_CLASS = {
    RESOURCE("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "deviceclass"),
    .resource.flags = RES_DELETE_RETURNS_OBJECT | RES_GENERATION | RES_ANY_PREFIX,
    .resource.columns = COLUMNS_AGE,
    .rules = RULES(CLASS_RULES),
};
