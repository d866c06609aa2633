/* SPDX-License-Identifier: Apache-2.0 */
/* VolumeAttributesClasses. Source: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation. */
#include "../rules/kind.h"
#include "class.h"

static const struct rule CLASS_RULES[] = {
    FIXED_ELSE_FORBIDDEN("driverName", "updates to driverName are forbidden."),
    FIXED_ELSE_FORBIDDEN("parameters", "updates to parameters are forbidden."),
    CALL("driverName", check_provisioner),
    PARAMETERS("parameters", "must contain at least one key/value pair"),
};

/* ---- the kind ---- */

const struct kind KIND_VOLUME_ATTRIBUTES_CLASS = {
    RESOURCE("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses",
             "volumeattributesclass"),
    .resource.short_names = NAMES("vac"),
    .resource.flags = RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    COLUMNS({"DriverName", "string", .cell = show_text, .path = "driverName"},
            {"Age", "string", .cell = show_age}),
    .rules = RULES(CLASS_RULES),
};
