/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumeClaims. Must never let a claim change once it is made, but for its size. Source:
 * pkg/apis/core/validation/validation.go, pkg/api/persistentvolumeclaim/util.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "volume_cells.h"

#include <sublet/quantity.h>

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

static void claim_prepare_create(struct arena *a, cJSON *claim)
{
    cJSON *spec = json_get(claim, "spec");

    /* Sources in other namespaces are an alpha feature. */
    if (json_str_at(spec, "dataSourceRef.namespace").n)
        json_remove(spec, "dataSourceRef");
    defaults_set_status(a, claim, "{\"phase\":\"Pending\"}");
    sync_sources(a, spec, NULL);
}

static void claim_prepare_update(struct arena *a, cJSON *claim, const cJSON *old)
{
    sync_sources(a, json_get(claim, "spec"), json_get(old, "spec"));
}

#define STORAGE_CLASS "volume.beta.kubernetes.io/storage-class"

static const cJSON *annotation(const cJSON *object, const char *key)
{
    return json_get(json_path(object, "metadata.annotations"), key);
}

/* The storage class may be named later when there was none, or only the legacy annotation. */
static void allow_class(struct field_errors *e, cJSON *spec, const cJSON *claim, const cJSON *old)
{
    const cJSON *before = annotation(old, STORAGE_CLASS), *now = annotation(claim, STORAGE_CLASS);
    const cJSON *name = kinds_given(spec, "storageClassName");
    bool had_none = !kinds_given(json_get(old, "spec"), "storageClassName");

    if (before && had_none && name && json_equal(name, before) &&
        (!now || json_equal(now, before))) {
        json_remove(spec, "storageClassName");
        return;
    }
    if (!str_eq(json_str(before), json_str(now)))
        field_invalid_str(
            e, FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), STR(STORAGE_CLASS)),
            json_str(now), IMMUTABLE);
    if (name && had_none && (!before || json_equal(name, before)))
        json_remove(spec, "storageClassName");
}

/* What is left is compared: the parts that may change are taken from the old claim. */
static void check_claim_unchanged(struct field_errors *e, const cJSON *claim, const cJSON *old)
{
    struct arena *a = e->arena;
    cJSON *spec = json_copy(a, json_get(claim, "spec"));
    cJSON *before = json_copy(a, json_get(old, "spec"));

    if (!json_str(json_get(before, "volumeName")).n)
        defaults_keep_old(a, before, spec, "volumeName");
    allow_class(e, spec, claim, old);
    if (kinds_text_is(claim, "status.phase", "Bound")) {
        if (json_path(spec, "resources.requests"))
            defaults_keep_old(a, json_path(spec, "resources.requests"),
                              json_path(before, "resources.requests"), "storage");
        defaults_keep_old(a, spec, before, "volumeAttributesClassName");
    }
    if (!kinds_same_value(spec, before))
        field_forbidden(e, FIELD(NULL, "spec"),
                        "spec is immutable after creation except resources.requests and "
                        "volumeAttributesClassName for bound claims\n");
}

static struct quantity storage_of(const cJSON *claim, const char *path)
{
    struct quantity q = {0, QUANTITY_DECIMAL_SI};

    quantity_parse(json_str(json_get(json_path(claim, path), "storage")), &q);
    return q;
}

static void check_claim_update(struct field_errors *e, const cJSON *claim, const cJSON *old)
{
    AT(spec, NULL, "spec");
    const cJSON *class_ = kinds_given(json_get(claim, "spec"), "volumeAttributesClassName");
    struct quantity size = storage_of(claim, "spec.resources.requests");

    check_claim_unchanged(e, claim, old);
    if (quantity_cmp(size, storage_of(old, "spec.resources.requests")) < 0 &&
        quantity_cmp(size, storage_of(old, "status.capacity")) <= 0)
        field_forbidden(e, FIELD(FIELD(FIELD(spec, "resources"), "requests"), "storage"),
                        "field can not be less than status.capacity");
    check_immutable(e, FIELD(NULL, "volumeMode"), json_path(claim, "spec.volumeMode"),
                    json_path(old, "spec.volumeMode"));
    if (!kinds_given(json_get(old, "status"), "currentVolumeAttributesClassName") ||
        kinds_same_value(class_, kinds_given(json_get(old, "spec"), "volumeAttributesClassName")))
        return;
    if (!json_str(class_).n)
        field_forbidden(e, FIELD(spec, "volumeAttributesClassName"),
                        class_ ? "update to empty string is forbidden when "
                                 "status.currentVolumeAttributesClassName is not nil"
                               : "update to nil is forbidden when "
                                 "status.currentVolumeAttributesClassName is not nil");
}

static VALIDATES(validate_claim)
{
    const cJSON *before = json_get(old, "spec");

    validate_claim_spec(e, FIELD(NULL, "spec"), json_get(object, "spec"),
                        kinds_given(before, "dataSource.apiGroup") ||
                            kinds_given(before, "dataSourceRef.apiGroup"));
    if (old)
        check_claim_update(e, object, old);
}

static bool check_claim_key(struct field_errors *e, const struct field_path *p, struct str key)
{
    if (!check_rule(e, p, NAME_QUALIFIED, key))
        return false;
    if (kinds_is_native_resource(key) && !str_eqc(key, "storage")) {
        field_not_supported(e, p, key, NAMES("storage"));
        return false;
    }
    return true;
}

static VALIDATES(validate_claim_status)
{
    const cJSON *status = json_get(object, "status");
    AT(p, NULL, "status");
    AT(states_path, p, "allocatedResourceStatuses");
    AT(amounts, p, "allocatedResources");

    (void)old;
    json_each(amount, json_get(status, "capacity"))
        check_claim_amount(e, FIELD_KEY(FIELD(p, "capacity"), str_c(amount->string)), amount);
    json_each(state, json_get(status, "allocatedResourceStatuses"))
    {
        check_claim_key(e, states_path, str_c(state->string));
        if (!kinds_one_of(json_str(state), ENUM_CLAIM_RESOURCE_STATUS))
            field_not_supported(e, states_path, str_c(state->string), ENUM_CLAIM_RESOURCE_STATUS);
    }
    json_each(amount, json_get(status, "allocatedResources"))
    {
        if (check_claim_key(e, amounts, str_c(amount->string)))
            check_claim_amount(e, FIELD_KEY(amounts, str_c(amount->string)), amount);
    }
}

static WARNS(warn_claim)
{
    WARNER(w);

    if (json_get(json_path(object, "metadata.annotations"), STORAGE_CLASS))
        warn_at(&w, FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), STR(STORAGE_CLASS)),
                "deprecated since v1.8; use \"storageClassName\" attribute instead");
    warn_claim_spec(&w, FIELD(NULL, "spec"), json_get(object, "spec"));
}

/* What a claim has is known once it is bound. */
static bool names_volume(const cJSON *claim)
{
    return json_str_at(claim, "spec.volumeName").n > 0;
}

CELL(cell_capacity)
{
    if (names_volume(r->object))
        cell_or(r, json_str_at(r->object, "status.capacity.storage"), "0");
    else
        cell_text(r, STR(""));
}

CELL(cell_bound_modes)
{
    if (names_volume(r->object))
        cell_modes(r, c);
    else
        cell_text(r, STR(""));
}

/* ---- the kind ---- */

const struct kind KIND_PERSISTENT_VOLUME_CLAIM = {
    RESOURCE("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"),
    .resource.short_names = NAMES("pvc"),
    .resource.flags =
        RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE | RES_CLAIM,
    COLUMNS({"Status", "string", .cell = cell_phase},
            {"Volume", "string", .cell = show_text, .path = "spec.volumeName"},
            {"Capacity", "string", .cell = cell_capacity},
            {"Access Modes", "string", .cell = cell_bound_modes, .path = "status.accessModes"},
            {"StorageClass", "string", .cell = cell_class},
            {"VolumeAttributesClass", "string", .cell = show_text,
             .path = "spec.volumeAttributesClassName", .otherwise = "<unset>"},
            {"Age", "string", .cell = show_age},
            {"VolumeMode", "string", .priority = 1, .cell = show_text, .path = "spec.volumeMode",
             .otherwise = "<unset>"}),
    SUBRESOURCES(STATUS_OF("PersistentVolumeClaim")),
    .defaults = defaults_claim,
    .prepare_create = claim_prepare_create,
    .prepare_update = claim_prepare_update,
    .validate = validate_claim,
    .validate_status = validate_claim_status,
    .warnings = warn_claim,
};
