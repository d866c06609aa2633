/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaimTemplates. Source: pkg/apis/resource/v1/defaults.go,
 * pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

static void template_defaults(struct arena *a, cJSON *object)
{
    defaults_device_claim(a, json_path(object, "spec.spec"));
}

static const struct rule TEMPLATE_RULES[] = {
    FIXED("spec"),
    CHECK_ALWAYS("spec.metadata", validate_claim_metadata),
    CHECK_ALWAYS("spec.spec.devices", check_claim_devices),
};

/* ---- the kind ---- */

const struct kind KIND_RESOURCE_CLAIM_TEMPLATE = {
    RESOURCE("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates",
             "resourceclaimtemplate"),
    .resource.flags = RES_NAMESPACED | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    .resource.columns = COLUMNS_AGE,
    .defaults = template_defaults,
    .rules = RULES(TEMPLATE_RULES),
};
