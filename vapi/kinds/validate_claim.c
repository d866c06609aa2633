/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumeClaims and templates of them. Must never let a claim change
 * once it is made, but for its size. Source: pkg/apis/core/validation/validation.go. */
#include "validate.h"

#include <sublet/quantity.h>

#define STORAGE_CLASS "volume.beta.kubernetes.io/storage-class"

/* ---- what claims and volumes share ---- */

const char *const VOLUME_MODES[] = {"Block", "Filesystem", NULL};

void check_access_modes(struct field_errors *e, const struct field_path *p, const cJSON *modes)
{
    static const char *const supported[] = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
                                            "ReadWriteOncePod", NULL};
    bool once = false, other = false;

    json_each(mode, modes)
    {
        struct str text = json_str(mode);

        if (!one_of(text, supported))
            field_not_supported(e, p, text, supported);
        else if (str_eqc(text, "ReadWriteOncePod"))
            once = true;
        else
            other = true;
    }
    if (once && other)
        field_forbidden(e, p, "may not use ReadWriteOncePod with other access modes");
}

void check_class_name(struct field_errors *e, const struct field_path *p, const cJSON *name)
{
    if (json_str(name).n)
        check_rule(e, p, NAME_DNS1123_SUBDOMAIN, json_str(name));
}

/* ---- specs of claims ---- */

static void check_size(struct field_errors *e, const struct field_path *p, const cJSON *size)
{
    struct quantity q;

    if (!size)
        field_required(e, p, "");
    else if (quantity_parse(json_str(size), &q) && q.nano <= 0)
        field_invalid(e, p, size, "must be greater than zero");
}

static void check_data_source(struct field_errors *e, const struct field_path *p,
                              const cJSON *source, bool any_group)
{
    struct str group = json_str(json_get(source, "apiGroup"));
    struct str kind = json_str(json_get(source, "kind"));
    struct str ns = json_str(json_get(source, "namespace"));

    if (!source)
        return;
    check_given(e, FIELD(p, "name"), json_str(json_get(source, "name")));
    check_given(e, FIELD(p, "kind"), kind);
    if (!group.n && !str_eqc(kind, "PersistentVolumeClaim"))
        field_invalid_str(e, p, kind,
                          "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    if (group.n && !any_group)
        check_rule(e, FIELD(p, "apiGroup"), NAME_DNS1123_SUBDOMAIN, group);
    if (ns.n)
        check_rule(e, FIELD(p, "namespace"), NAME_DNS1123_LABEL, ns);
}

static void check_sources_agree(struct field_errors *e, const struct field_path *p,
                                const cJSON *spec)
{
    static const char *const keys[] = {"apiGroup", "kind", "name"};
    const cJSON *source = given(spec, "dataSource"), *ref = given(spec, "dataSourceRef");
    const cJSON *none = json_new_object(e->arena); /* upstream shows a path there, as {} */
    bool same = true;

    if (!source || !ref)
        return;
    if (json_str(json_get(ref, "namespace")).n) {
        field_invalid(e, p, none, "may not be specified when dataSourceRef.namespace is specified");
        return;
    }
    for (size_t i = 0; i < COUNT(keys); i++)
        same &= same_value(given(source, keys[i]), given(ref, keys[i]));
    if (!same)
        field_invalid(e, p, none, "must match dataSourceRef");
}

/* any_group: a group of data sources that was stored may be what it likes. */
static void check_claim_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                             bool any_group)
{
    const cJSON *modes = json_get(spec, "accessModes");

    if (!json_count(modes))
        field_required(e, FIELD(p, "accessModes"), "at least 1 access mode is required");
    validate_label_selector(e, FIELD(p, "selector"), given(spec, "selector"));
    check_access_modes(e, FIELD(p, "accessModes"), modes);
    check_size(e, FIELD_KEY(FIELD(p, "resources"), STR("storage")),
               json_path(spec, "resources.requests.storage"));
    check_class_name(e, FIELD(p, "storageClassName"), json_get(spec, "storageClassName"));
    check_enum_if(e, FIELD(p, "volumeMode"), given(spec, "volumeMode"), VOLUME_MODES);
    check_data_source(e, FIELD(p, "dataSource"), given(spec, "dataSource"), any_group);
    check_data_source(e, FIELD(p, "dataSourceRef"), given(spec, "dataSourceRef"), any_group);
    check_sources_agree(e, p, spec);
    check_class_name(e, FIELD(p, "volumeAttributesClassName"),
                     json_get(spec, "volumeAttributesClassName"));
}

void validate_claim_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    check_claim_spec(e, p, spec, false);
}

/* What a template has not, in the order of Go's type, whose names are shown. */
static const struct {
    const char *name, *shown;
} METADATA[] = {
    {"name", "name"},
    {"generateName", "generateName"},
    {"namespace", "namespace"},
    {"selfLink", "selfLink"},
    {"uid", "uID"},
    {"resourceVersion", "resourceVersion"},
    {"generation", "generation"},
    {"creationTimestamp", "creationTimestamp"},
    {"deletionTimestamp", "deletionTimestamp"},
    {"deletionGracePeriodSeconds", "deletionGracePeriodSeconds"},
    {"ownerReferences", "ownerReferences"},
    {"finalizers", "finalizers"},
    {"managedFields", "managedFields"},
};

void validate_claim_metadata(struct field_errors *e, const struct field_path *at,
                             const cJSON *metadata)
{
    check_annotations(e, FIELD(at, "annotations"), json_get(metadata, "annotations"));
    validate_labels(e, FIELD(at, "labels"), json_get(metadata, "labels"));
    for (size_t i = 0; i < COUNT(METADATA); i++) {
        if (given(metadata, METADATA[i].name))
            field_forbidden(e, FIELD(at, METADATA[i].shown), "cannot be set");
    }
}

void validate_claim_template(struct field_errors *e, const struct field_path *p,
                             const cJSON *template_)
{
    validate_claim_metadata(e, FIELD(p, "metadata"), json_get(template_, "metadata"));
    validate_claim_spec(e, FIELD(p, "spec"), json_get(template_, "spec"));
}

/* ---- changes of claims ---- */

static bool is_bound(const cJSON *claim)
{
    return str_eqc(json_str_at(claim, "status.phase"), "Bound");
}

static const cJSON *annotation(const cJSON *object, const char *key)
{
    return json_get(json_path(object, "metadata.annotations"), key);
}

static void copy_member(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    if (json_get(from, key))
        json_set(a, to, key, json_copy(a, json_get(from, key)));
    else
        json_remove(to, key);
}

/* The storage class may be named later when there was none, or only the annotation of old. */
static void allow_class(struct field_errors *e, cJSON *spec, const cJSON *claim, const cJSON *old)
{
    const cJSON *before = annotation(old, STORAGE_CLASS), *now = annotation(claim, STORAGE_CLASS);
    const cJSON *name = given(spec, "storageClassName");
    bool had_none = !given(json_get(old, "spec"), "storageClassName");

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
        copy_member(a, before, spec, "volumeName");
    allow_class(e, spec, claim, old);
    if (is_bound(claim)) {
        if (json_path(spec, "resources.requests"))
            copy_member(a, json_path(spec, "resources.requests"),
                        json_path(before, "resources.requests"), "storage");
        copy_member(a, spec, before, "volumeAttributesClassName");
    }
    if (!same_value(spec, before))
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
    const cJSON *class_ = given(json_get(claim, "spec"), "volumeAttributesClassName");
    struct quantity size = storage_of(claim, "spec.resources.requests");

    check_claim_unchanged(e, claim, old);
    if (quantity_cmp(size, storage_of(old, "spec.resources.requests")) < 0 &&
        quantity_cmp(size, storage_of(old, "status.capacity")) <= 0)
        field_forbidden(e, FIELD(FIELD(FIELD(spec, "resources"), "requests"), "storage"),
                        "field can not be less than status.capacity");
    check_immutable(e, FIELD(NULL, "volumeMode"), json_path(claim, "spec.volumeMode"),
                    json_path(old, "spec.volumeMode"));
    if (!given(json_get(old, "status"), "currentVolumeAttributesClassName") ||
        same_value(class_, given(json_get(old, "spec"), "volumeAttributesClassName")))
        return;
    if (!json_str(class_).n)
        field_forbidden(e, FIELD(spec, "volumeAttributesClassName"),
                        class_ ? "update to empty string is forbidden when "
                                 "status.currentVolumeAttributesClassName is not nil"
                               : "update to nil is forbidden when "
                                 "status.currentVolumeAttributesClassName is not nil");
}

VALIDATES(validate_claim)
{
    const cJSON *before = json_get(old, "spec");

    check_claim_spec(e, FIELD(NULL, "spec"), json_get(object, "spec"),
                     given(before, "dataSource.apiGroup") ||
                         given(before, "dataSourceRef.apiGroup"));
    if (old)
        check_claim_update(e, object, old);
}

static bool check_claim_key(struct field_errors *e, const struct field_path *p, struct str key)
{
    static const char *const supported[] = {"storage", NULL};

    if (!check_rule(e, p, NAME_QUALIFIED, key))
        return false;
    if (!is_native_resource(key) || str_eqc(key, "storage"))
        return true;
    field_not_supported(e, p, key, supported);
    return false;
}

bool check_claim_amount(struct field_errors *e, const struct field_path *p, const cJSON *amount)
{
    struct quantity q;

    if (!quantity_parse(json_str(amount), &q) || quantity_units(q) >= 0)
        return true;
    field_invalid(e, p, json_new_i64(e->arena, quantity_units(q)),
                  "must be a valid resource quantity");
    return false;
}

VALIDATES(validate_claim_status)
{
    static const char *const states[] = {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                                         "NodeResizeInProgress",       "NodeResizeInfeasible",
                                         "NodeResizePending",          NULL};
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
        if (!one_of(json_str(state), states))
            field_not_supported(e, states_path, str_c(state->string), states);
    }
    json_each(amount, json_get(status, "allocatedResources"))
    {
        if (check_claim_key(e, amounts, str_c(amount->string)))
            check_claim_amount(e, FIELD_KEY(amounts, str_c(amount->string)), amount);
    }
}
