/* SPDX-License-Identifier: Apache-2.0 */
/* DeviceClasses. Source: pkg/apis/resource/v1/defaults.go,
 * pkg/apis/resource/validation. */
#include "../rules/kind.h"
#include "device.h"

static void validate_device_class(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *config = json_get(spec, "config");
    const cJSON *name = given(spec, "extendedResourceName");
    AT(p, NULL, "spec");
    size_t i = 0;

    (void)old;
    check_device_selectors(e, FIELD(p, "selectors"), json_get(spec, "selectors"));
    if (check_list_size(e, FIELD(p, "config"), config, MAX_CONFIG)) {
        json_each(item, config) check_device_config(e, FIELD_INDEX(FIELD(p, "config"), i++), item);
    }
    if (name && !is_extended_resource(json_str(name)))
        field_invalid(e, FIELD(p, "extendedResourceName"), name,
                      "must be a valid extended resource name");
}

/* ---- the kind ---- */

const struct kind KIND_DEVICE_CLASS = {
    .resource =
        {
            RESOURCE("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "deviceclass"),
            .verbs = VERBS_ALL,
            .flags = RES_DELETE_RETURNS_OBJECT | RES_GENERATION | RES_ANY_PREFIX,
            .columns = COLUMNS_AGE,
        },
    .validate = validate_device_class,
};
