/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes and PersistentVolumeClaims. Source: pkg/apis/core/v1/defaults.go,
 * pkg/api/persistentvolumeclaim/util.go. */
#include "validate.h"

/* ---- claims ---- */

static const struct default_rule CLAIM_SPEC[] = {SET_TEXT("volumeMode", "Filesystem")};

void defaults_claim_spec(struct arena *a, cJSON *spec)
{
    defaults_apply(a, spec, CLAIM_SPEC, COUNT(CLAIM_SPEC));
    defaults_resources(a, json_get(spec, "resources"));
}

void defaults_claim(struct arena *a, cJSON *claim)
{
    static const struct default_rule rules[] = {SET_TEXT_Z("status+.phase", "Pending")};
    cJSON *status;

    defaults_apply(a, claim, rules, COUNT(rules));
    status = json_get(claim, "status");
    defaults_claim_spec(a, json_get(claim, "spec"));
    defaults_resource_list(a, json_get(status, "capacity"));
    defaults_resource_list(a, json_get(status, "allocatedResources"));
}

static bool is_claim_or_snapshot(const cJSON *source)
{
    struct str group = json_str(json_get(source, "apiGroup"));
    struct str kind = json_str(json_get(source, "kind"));

    return (!group.n && str_eqc(kind, "PersistentVolumeClaim")) ||
           (str_eqc(group, "snapshot.storage.k8s.io") && str_eqc(kind, "VolumeSnapshot"));
}

static cJSON *reference_copy(struct arena *a, const cJSON *source)
{
    static const char *const keys[] = {"apiGroup", "kind", "name"};
    cJSON *made = json_new_object(a);

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (json_get(source, keys[i]))
            json_set(a, made, keys[i], json_copy(a, json_get(source, keys[i])));
    }
    return made;
}

/* dataSource and dataSourceRef say the same unless the reference goes to another namespace. */
static void sync_sources(struct arena *a, cJSON *spec, const cJSON *old)
{
    const cJSON *source = json_get(spec, "dataSource"), *ref = json_get(spec, "dataSourceRef");

    if (!json_get(old, "dataSource") && !json_get(old, "dataSourceRef") && !ref && source &&
        !is_claim_or_snapshot(source)) {
        json_remove(spec, "dataSource"); /* ignored, as ever */
        source = NULL;
    }
    if (source && !ref)
        json_set(a, spec, "dataSourceRef", reference_copy(a, source));
    else if (ref && !source && !json_str(json_get(ref, "namespace")).n)
        json_set(a, spec, "dataSource", reference_copy(a, ref));
}

/* Sources in other namespaces are an alpha feature. */
static void drop_far_source(cJSON *claim)
{
    if (json_str_at(claim, "spec.dataSourceRef.namespace").n)
        json_remove(json_get(claim, "spec"), "dataSourceRef");
}

static void claim_prepare_create(struct arena *a, cJSON *claim)
{
    drop_far_source(claim);
    set_status(a, claim, "{\"phase\":\"Pending\"}");
    sync_sources(a, json_get(claim, "spec"), NULL);
}

static void claim_prepare_update(struct arena *a, cJSON *claim, const cJSON *old)
{
    sync_sources(a, json_get(claim, "spec"), json_get(old, "spec"));
}

const struct kind_ops PERSISTENT_VOLUME_CLAIM_OPS = {
    .defaults = defaults_claim,
    .prepare_create = claim_prepare_create,
    .prepare_update = claim_prepare_update,
    .validate = validate_claim,
    .validate_status = validate_claim_status,
    .warnings = warn_claim,
    .cells = cells_claim,
};

/* ---- volumes ---- */

static const struct default_rule VOLUME[] = {
    SET_TEXT_Z("status+.phase", "Pending"),
    SET_TEXT_Z("spec.persistentVolumeReclaimPolicy", "Retain"),
    SET_TEXT("spec.volumeMode", "Filesystem"),
};

static void volume_defaults(struct arena *a, cJSON *volume)
{
    cJSON *spec = json_get(volume, "spec");

    defaults_apply(a, volume, VOLUME, COUNT(VOLUME));
    defaults_resource_list(a, json_get(spec, "capacity"));
    defaults_volume_source(a, spec);
}

static void volume_prepare_create(struct arena *a, cJSON *volume)
{
    set_status(a, volume, "{\"phase\":\"Pending\"}");
    json_set_str(a, json_get(volume, "status"), "lastPhaseTransitionTime",
                 json_str_at(volume, "metadata.creationTimestamp"));
}

/* A phase that stays has come when it came. */
static void volume_prepare_status(struct arena *a, cJSON *volume, const cJSON *old)
{
    if (str_eq(json_str_at(volume, "status.phase"), json_str_at(old, "status.phase")) &&
        !json_str_at(volume, "status.lastPhaseTransitionTime").n)
        keep_old(a, volume, old, "status.lastPhaseTransitionTime");
}

const struct kind_ops PERSISTENT_VOLUME_OPS = {
    .defaults = volume_defaults,
    .prepare_create = volume_prepare_create,
    .prepare_status = volume_prepare_status,
    .validate = validate_volume,
    .warnings = warn_persistent_volume,
    .cells = cells_volume,
};
