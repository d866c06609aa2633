/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of PersistentVolumeClaims, which pods and StatefulSets hold templates of. Source:
 * ValidatePersistentVolumeClaimSpec in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>

static const struct default_rule CLAIM_SPEC[] = {
    SET_TEXT("volumeMode", "Filesystem"),
    SET_BY("resources", defaults_resources),
};

void defaults_claim_spec(struct arena *a, cJSON *spec)
{
    defaults_apply(a, spec, CLAIM_SPEC, COUNT(CLAIM_SPEC));
}

static const struct default_rule CLAIM[] = {
    SET_TEXT_Z("status+.phase", "Pending"),
    SET_BY("spec", defaults_claim_spec),
    SET_BY("status.capacity", defaults_resource_list),
    SET_BY("status.allocatedResources", defaults_resource_list),
};

void defaults_claim(struct arena *a, cJSON *claim)
{
    defaults_apply(a, claim, CLAIM, COUNT(CLAIM));
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

void check_access_modes(struct field_errors *e, const struct field_path *p, const cJSON *modes)
{
    bool once = false, other = false;

    json_each(mode, modes)
    {
        struct str text = json_str(mode);

        if (!kinds_one_of(text, ENUM_PERSISTENT_VOLUME_ACCESS_MODE))
            field_not_supported(e, p, text, ENUM_PERSISTENT_VOLUME_ACCESS_MODE);
        else if (str_eqc(text, "ReadWriteOncePod"))
            once = true;
        else
            other = true;
    }
    if (once && other)
        field_forbidden(e, p, "may not use ReadWriteOncePod with other access modes");
}

static void check_size(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *size = json_path(spec, "resources.requests.storage");
    const struct field_path *at = FIELD_KEY(FIELD(p, "resources"), STR("storage"));
    struct quantity q;

    if (!size)
        field_required(e, at, "");
    else if (quantity_parse(json_str(size), &q) && q.nano <= 0)
        field_invalid(e, at, size, "must be greater than zero");
}

/* context: whether any group of a source will do. */
static void check_group(const struct check *c)
{
    const bool *any_group = c->context;
    struct str group = json_str(json_get(c->value, "apiGroup"));
    struct str kind = json_str(json_get(c->value, "kind"));

    if (!group.n && !str_eqc(kind, "PersistentVolumeClaim"))
        field_invalid_str(c->e, c->at, kind,
                          "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    if (group.n && !*any_group)
        check_rule(c->e, FIELD(c->at, "apiGroup"), NAME_DNS1123_SUBDOMAIN, group);
}

static const struct rule SOURCE[] = {
    ALL_GIVEN(NULL, "name", "kind"),
    CALL(NULL, check_group),
    NAME_IF_SET("namespace", DNS1123_LABEL),
};

static void check_sources_agree(struct field_errors *e, const struct field_path *p,
                                const cJSON *spec)
{
    static const char *const keys[] = {"apiGroup", "kind", "name"};
    const cJSON *source = kinds_given(spec, "dataSource"),
                *ref = kinds_given(spec, "dataSourceRef");
    const cJSON *none = json_new_object(e->arena); /* upstream shows a path there, as {} */
    bool same = true;

    if (!source || !ref)
        return;
    if (json_str(json_get(ref, "namespace")).n) {
        field_invalid(e, p, none, "may not be specified when dataSourceRef.namespace is specified");
        return;
    }
    for (size_t i = 0; i < COUNT(keys); i++)
        same &= kinds_same_value(kinds_given(source, keys[i]), kinds_given(ref, keys[i]));
    if (!same)
        field_invalid(e, p, none, "must match dataSourceRef");
}

static const struct rule CLAIM_SPEC_RULES[] = {
    SOME("accessModes", "at least 1 access mode is required"),
    LABEL_SELECTOR("selector"),
    CHECK("accessModes", check_access_modes),
    CHECK_ALWAYS(NULL, check_size),
    NAME_IF_SET("storageClassName", DNS1123_SUBDOMAIN),
    ENUM_IF_GIVEN("volumeMode", ENUM_PERSISTENT_VOLUME_MODE),
    WITHIN("dataSource", ALL(SOURCE)),
    WITHIN("dataSourceRef", ALL(SOURCE)),
    CHECK_ALWAYS(NULL, check_sources_agree),
    NAME_IF_SET("volumeAttributesClassName", DNS1123_SUBDOMAIN),
};

void validate_claim_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                         bool any_group)
{
    rules_check_value(e, p, spec, &any_group, CLAIM_SPEC_RULES, COUNT(CLAIM_SPEC_RULES));
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
        if (kinds_given(metadata, METADATA[i].name))
            field_forbidden(e, FIELD(at, METADATA[i].shown), "cannot be set");
    }
}

void validate_claim_template(struct field_errors *e, const struct field_path *p,
                             const cJSON *template_)
{
    validate_claim_metadata(e, FIELD(p, "metadata"), json_get(template_, "metadata"));
    validate_claim_spec(e, FIELD(p, "spec"), json_get(template_, "spec"), false);
}
