/* SPDX-License-Identifier: Apache-2.0 */
/* storage.k8s.io. Source: pkg/apis/storage/v1/defaults.go. */
#include "cells.h"

/* ---- StorageClass ---- */

static void class_defaults(struct arena *a, cJSON *class)
{
    static const struct default_rule rules[] = {
        SET_TEXT("reclaimPolicy", "Delete"),
        SET_TEXT("volumeBindingMode", "Immediate"),
    };

    defaults_apply(a, class, rules, COUNT(rules));
}

const struct kind_ops STORAGE_CLASS_OPS = {
    .defaults = class_defaults,
    .cells = cells_storage_class,
};

/* ---- CSIDriver ---- */

static const struct default_rule DRIVER[] = {
    SET_BOOL("spec.attachRequired", true),
    SET_BOOL("spec.podInfoOnMount", false),
    SET_BOOL("spec.storageCapacity", false),
    SET_TEXT("spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
    SET_BOOL("spec.requiresRepublish", false),
    SET_BOOL("spec.seLinuxMount", false),
};

static void driver_defaults(struct arena *a, cJSON *driver)
{
    cJSON *spec = json_get(driver, "spec");

    defaults_apply(a, driver, DRIVER, COUNT(DRIVER));
    if (json_is_object(spec) && !json_count(json_get(spec, "volumeLifecycleModes")))
        json_append(json_set(a, spec, "volumeLifecycleModes", json_new_array(a)),
                    json_new_string(a, STR("Persistent")));
}

/* Counted from 0, unlike elsewhere. */
static void driver_prepare_update(struct arena *a, cJSON *driver, const cJSON *old)
{
    if (!json_equal(json_get(driver, "spec"), json_get(old, "spec")))
        json_set_i64(a, json_get(driver, "metadata"), "generation",
                     json_i64_at(old, "metadata.generation", 0) + 1);
}

const struct kind_ops CSIDRIVER_OPS = {
    .defaults = driver_defaults,
    .prepare_update = driver_prepare_update,
    .cells = cells_csi_driver,
};

/* ---- VolumeAttachment ---- */

static void attachment_defaults(struct arena *a, cJSON *attachment)
{
    cJSON *spec = json_path(attachment, "spec.source.inlineVolumeSpec");

    if (!spec)
        return;
    defaults_resource_list(a, json_get(spec, "capacity"));
    defaults_volume_source(a, spec);
}

static void attachment_prepare_create(struct arena *a, cJSON *attachment)
{
    set_status(a, attachment, "{\"attached\":false}");
}

const struct kind_ops VOLUME_ATTACHMENT_OPS = {
    .defaults = attachment_defaults,
    .prepare_create = attachment_prepare_create,
    .cells = cells_attachment,
};

/* ---- the rest ---- */

const struct kind_ops CSINODE_OPS = {
    .cells = cells_csi_node,
};
const struct kind_ops CSISTORAGE_CAPACITY_OPS = {
    .cells = kinds_cells_created_at,
};
const struct kind_ops VOLUME_ATTRIBUTES_CLASS_OPS = {
    .cells = cells_attributes_class,
};
