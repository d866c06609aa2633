/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaimTemplates. Source: pkg/apis/resource/v1/defaults.go,
 * pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "device.h"

static const struct default_rule DEFAULT_RULES[] = {SET_BY("spec.spec", defaults_device_claim)};

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
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .rules = RULES(TEMPLATE_RULES),
};
