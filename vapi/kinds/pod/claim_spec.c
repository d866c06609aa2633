/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of PersistentVolumeClaims, which pods and StatefulSets hold templates of. Source:
 * ValidatePersistentVolumeClaimSpec in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>

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

const char *const VOLUME_MODES[] = {"Block", "Filesystem", NULL};

void check_access_modes(struct field_errors *e, const struct field_path *p, const cJSON *modes)
{
    bool once = false, other = false;

    json_each(mode, modes)
    {
        struct str text = json_str(mode);

        if (!one_of(text, ENUM_PERSISTENT_VOLUME_ACCESS_MODE))
            field_not_supported(e, p, text, ENUM_PERSISTENT_VOLUME_ACCESS_MODE);
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

void validate_claim_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
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
    validate_claim_spec(e, FIELD(p, "spec"), json_get(template_, "spec"), false);
}
