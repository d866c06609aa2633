/* SPDX-License-Identifier: Apache-2.0 */
/* VolumeAttributesClasses. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"
#include "class.h"

static void attributes_validate(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    AT(driver, NULL, "driverName");
    AT(parameters, NULL, "parameters");

    if (old && !same_value(json_get(object, "driverName"), json_get(old, "driverName")))
        field_forbidden(e, driver, "updates to driverName are forbidden.");
    if (old && !same_value(json_get(object, "parameters"), json_get(old, "parameters")))
        field_forbidden(e, parameters, "updates to parameters are forbidden.");
    check_provisioner(e, driver, json_get(object, "driverName"));
    check_parameters(e, parameters, json_get(object, "parameters"), false);
}

static ROW_CELLS(cells_attributes_class)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "driverName");
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"DriverName", "string", "", "", 0},
    {"Age", "string", "", "", 0},
    {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_VOLUME_ATTRIBUTES_CLASS = {
    .resource =
        {
            RESOURCE("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses",
                     "volumeattributesclass"),
            .short_names = NAMES("vac"),
            .verbs = VERBS_ALL,
            .flags = RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
        },
    .validate = attributes_validate,
    .cells = cells_attributes_class,
};
