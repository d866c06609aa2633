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

static void validate_resource_claim_template(struct field_errors *e, const cJSON *object,
                                             const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "spec");

    if (old)
        check_immutable(e, p, spec, json_get(old, "spec"));
    validate_claim_metadata(e, FIELD(p, "metadata"), json_get(spec, "metadata"));
    check_claim_devices(e, FIELD(FIELD(p, "spec"), "devices"), json_path(spec, "spec.devices"));
}

/* ---- the kind ---- */

const struct kind KIND_RESOURCE_CLAIM_TEMPLATE = {
    .resource =
        {
            RESOURCE("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates",
                     "resourceclaimtemplate"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
            .columns = COLUMNS_AGE,
        },
    .defaults = template_defaults,
    .validate = validate_resource_claim_template,
};
