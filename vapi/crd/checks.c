/* SPDX-License-Identifier: Apache-2.0 */
/* What a CustomResourceDefinition may look like: names, versions, columns, subresources.
 * schema_checks.c says what a structural schema is. Source: apiextensions-apiserver
 * pkg/apis/apiextensions/{v1/defaults.go, validation/validation.go}. */
#include "schema_checks.h"

#include <ctype.h>
#include <string.h>

#include <sublet/selector.h>

#include "version.h"

#define FINALIZER "customresourcecleanup.apiextensions.k8s.io"
#define APPROVED  "api-approved.kubernetes.io"

/* --- defaults and preparation --- */

static struct str lower(struct arena *a, struct str s)
{
    char *out = arena_cstr(a, s);

    for (size_t i = 0; i < s.n; i++)
        out[i] = (char)tolower((unsigned char)out[i]);
    return (struct str){out, s.n};
}

static void crd_defaults(struct arena *a, cJSON *crd)
{
    cJSON *spec = json_get(crd, "spec"), *names = json_get(spec, "names");
    struct str kind = json_str_at(names, "kind");

    if (!json_is_object(spec) || !json_is_object(names))
        return;
    if (!json_str_at(names, "singular").n)
        json_set_str(a, names, "singular", lower(a, kind));
    if (!json_str_at(names, "listKind").n && kind.n)
        json_set_str(a, names, "listKind", arena_concat(a, 2, (struct str[]){kind, STR("List")}));
    cJSON *conversion = json_ensure_object(a, spec, "conversion");
    if (!json_str_at(conversion, "strategy").n)
        json_set_str(a, conversion, "strategy", STR("None"));
}

static struct str storage_version(const cJSON *crd)
{
    json_each(version, json_path(crd, "spec.versions"))
    {
        if (json_true(json_get(version, "storage")))
            return json_str_at(version, "name");
    }
    return STR_NULL;
}

/* The instances must be gone before it is: the finalizer is there from the start. */
static void crd_prepare_create(struct arena *a, cJSON *crd)
{
    cJSON *meta = json_ensure_object(a, crd, "metadata"), *list = json_get(meta, "finalizers");
    cJSON *status = json_set(a, crd, "status", json_new_object(a)), *names;
    bool there = false;

    if (!json_is_array(list))
        list = json_set(a, meta, "finalizers", json_new_array(a));
    json_each(item, list) there = there || str_eqc(json_str(item), FINALIZER);
    if (!there)
        json_append(list, json_new_string(a, STR(FINALIZER)));
    json_set(a, status, "conditions", json_new_array(a));
    names = json_ensure_object(a, status, "acceptedNames");
    json_set_str(a, names, "plural", STR(""));
    json_set_str(a, names, "kind", STR(""));
    json_append(json_set(a, status, "storedVersions", json_new_array(a)),
                json_new_string(a, storage_version(crd)));
}

static void crd_prepare_update(struct arena *a, cJSON *crd, const cJSON *old)
{
    struct str storage = storage_version(crd);
    cJSON *status, *list;

    status = json_set(a, crd, "status", json_copy(a, json_get(old, "status")));
    list = json_get(status, "storedVersions");
    json_each(item, list)
    {
        if (str_eq(json_str(item), storage))
            return;
    }
    if (json_is_array(list) && storage.n)
        json_append(list, json_new_string(a, storage));
}

/* --- validation --- */

static void check_label(struct field_errors *e, const struct field_path *p, struct str s)
{
    const char *wrong = name_check_dns1035_label(s);

    if (wrong)
        field_invalid_str(e, p, s, wrong);
}

static void check_names(struct field_errors *e, const struct field_path *p, const cJSON *names)
{
    static const char *const texts[] = {"plural", "singular"}, *const kinds[] = {"kind",
                                                                                 "listKind"};
    size_t i = 0;

    if (!json_str_at(names, "plural").n)
        field_required(e, FIELD(p, "plural"), "");
    if (!json_str_at(names, "kind").n)
        field_required(e, FIELD(p, "kind"), "");
    for (size_t k = 0; k < 2; k++) {
        struct str s = json_str_at(names, texts[k]);

        if (s.n)
            check_label(e, FIELD(p, texts[k]), s);
        s = lower(e->arena, json_str_at(names, kinds[k]));
        if (s.n)
            check_label(e, FIELD(p, kinds[k]), s);
    }
    if (json_str_at(names, "kind").n &&
        str_eq(json_str_at(names, "kind"), json_str_at(names, "listKind")))
        field_invalid_str(e, FIELD(p, "listKind"), json_str_at(names, "listKind"),
                          "kind and listKind may not be the same");
    json_each(name, json_get(names, "shortNames"))
        check_label(e, FIELD_INDEX(FIELD(p, "shortNames"), i++), json_str(name));
    i = 0;
    json_each(name, json_get(names, "categories"))
        check_label(e, FIELD_INDEX(FIELD(p, "categories"), i++), json_str(name));
}

static void check_column(struct field_errors *e, const struct field_path *p, const cJSON *column)
{
    static const char *const types[] = {"integer", "number", "string", "boolean", "date", NULL};
    struct str type = json_str_at(column, "type"), path = json_str_at(column, "jsonPath");
    struct jsonpath *compiled;
    struct err err;
    bool known = false;

    if (!json_str_at(column, "name").n)
        field_required(e, FIELD(p, "name"), "");
    if (!type.n)
        field_required(e, FIELD(p, "type"), "must be one of boolean,date,integer,number,string");
    for (size_t i = 0; types[i]; i++)
        known = known || str_eqc(type, types[i]);
    if (type.n && !known)
        field_invalid_str(e, FIELD(p, "type"), type,
                          "must be one of boolean,date,integer,number,string");
    if (!path.n) {
        field_required(e, FIELD(p, "jsonPath"), "");
        return;
    }
    err_init(&err, e->arena);
    if (path.p[0] != '.' && path.p[0] != '[')
        field_invalid_str(e, FIELD(p, "jsonPath"), path,
                          "must be a JSON path that begins with . or [");
    else if (jsonpath_compile(e->arena, path, &compiled, &err))
        field_invalid_str(e, FIELD(p, "jsonPath"), path, err.message.p);
}

static void check_scale(struct field_errors *e, const struct field_path *p, const cJSON *scale)
{
    static const struct {
        const char *key, *prefix, *says;
        bool required;
    } paths[] = {
        {"specReplicasPath", ".spec.", "should be a json path under .spec", true},
        {"statusReplicasPath", ".status.", "should be a json path under .status", true},
        {"labelSelectorPath", ".s", "should be a json path under either .status or .spec", false},
    };

    for (size_t i = 0; i < 3; i++) {
        struct str path = json_str_at(scale, paths[i].key);

        if (!path.n && paths[i].required)
            field_required(e, FIELD(p, paths[i].key), "");
        else if (path.n && !str_has_prefix(path, str_c(paths[i].prefix)))
            field_invalid_str(e, FIELD(p, paths[i].key), path, paths[i].says);
    }
}

static void check_version(struct field_errors *e, const struct field_path *p, const cJSON *version)
{
    struct str name = json_str_at(version, "name");
    const cJSON *schema = json_path(version, "schema.openAPIV3Schema");
    const cJSON *scale = json_path(version, "subresources.scale");
    size_t i = 0;

    check_label(e, FIELD(p, "name"), name);
    if (!schema)
        field_required(e, FIELD(FIELD(p, "schema"), "openAPIV3Schema"), "schemas are required");
    else
        schema_check(e, FIELD(FIELD(p, "schema"), "openAPIV3Schema"), schema);
    json_each(column, json_get(version, "additionalPrinterColumns"))
        check_column(e, FIELD_INDEX(FIELD(p, "additionalPrinterColumns"), i++), column);
    if (scale)
        check_scale(e, FIELD(FIELD(p, "subresources"), "scale"), scale);
    if (json_count(json_get(version, "selectableFields")) > 8)
        field_too_many(e, FIELD(p, "selectableFields"),
                       json_count(json_get(version, "selectableFields")), 8);
    if (json_str_at(version, "deprecationWarning").n && !json_true(json_get(version, "deprecated")))
        field_invalid(e, FIELD(p, "deprecationWarning"), json_get(version, "deprecationWarning"),
                      "can only be set for deprecated versions");
}

static void check_versions(struct field_errors *e, const struct field_path *spec, const cJSON *list)
{
    const struct field_path *p = FIELD(spec, "versions");
    size_t i = 0, storage = 0;

    if (!json_count(list))
        field_required(e, p, "must have at least one version");
    json_each(version, list)
    {
        for (const cJSON *before = json_first(list); before != version; before = before->next) {
            if (str_eq(json_str_at(before, "name"), json_str_at(version, "name")))
                field_invalid(e, p, list, "must not contain duplicate version names");
        }
        storage += json_true(json_get(version, "storage"));
        check_version(e, FIELD_INDEX(p, i++), version);
    }
    if (json_count(list) && storage != 1)
        field_invalid(e, p, list, "must have exactly one version marked as storage version");
}

static void check_group(struct field_errors *e, const cJSON *crd, struct str group)
{
    struct str approved = json_str(json_get(json_path(crd, "metadata.annotations"), APPROVED));
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "group");
    const char *wrong = group.n ? name_check_dns1123_subdomain(group) : NULL;
    bool guarded = str_has_suffix(group, STR(".k8s.io")) ||
                   str_has_suffix(group, STR(".kubernetes.io")) || str_eqc(group, "k8s.io") ||
                   str_eqc(group, "kubernetes.io");

    if (!group.n)
        field_required(e, p, "");
    else if (wrong)
        field_invalid_str(e, p, group, wrong);
    else if (str_find(group, '.') == group.n)
        field_invalid_str(e, p, group, "should be a domain with at least one dot");
    if (guarded && !approved.n)
        field_required(
            e, FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), STR(APPROVED)),
            "protected groups must have approval annotation \"api-approved.kubernetes.io\"");
}

static void check_conversion(struct field_errors *e, const cJSON *conversion)
{
    static const char *const strategies[] = {"None", "Webhook", NULL};
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "conversion");
    struct str strategy = json_str_at(conversion, "strategy");

    if (!str_eqc(strategy, "None") && !str_eqc(strategy, "Webhook"))
        field_not_supported(e, FIELD(p, "strategy"), strategy, strategies);
    if (str_eqc(strategy, "Webhook") && !json_path(conversion, "webhook.clientConfig"))
        field_required(e, FIELD(FIELD(p, "webhook"), "clientConfig"),
                       "required when strategy is set to Webhook");
}

static void check_immutable(struct field_errors *e, const cJSON *crd, const cJSON *old)
{
    static const char *const fields[] = {"group", "scope"};
    bool established = false;

    json_each(c, json_path(old, "status.conditions")) established =
        established || (str_eqc(json_str_at(c, "type"), "Established") &&
                        str_eqc(json_str_at(c, "status"), "True"));
    for (size_t i = 0; i < 2; i++) {
        struct str now = json_str_at(json_get(crd, "spec"), fields[i]);

        if (!str_eq(now, json_str_at(json_get(old, "spec"), fields[i])) && (established || i == 0))
            field_invalid_str(e, FIELD(FIELD(NULL, "spec"), fields[i]), now, "field is immutable");
    }
    /* A version with stored objects cannot go. */
    size_t n = 0;
    json_each(stored, json_path(old, "status.storedVersions"))
    {
        bool there = false;

        json_each(version, json_path(crd, "spec.versions")) there =
            there || str_eq(json_str_at(version, "name"), json_str(stored));
        if (!there)
            field_invalid_str(e, FIELD_INDEX(FIELD(FIELD(NULL, "status"), "storedVersions"), n),
                              json_str(stored),
                              "missing from spec.versions; it was previously a storage "
                              "version, and must remain in spec.versions until a storage "
                              "migration ensures no data remains persisted");
        n++;
    }
}

static void crd_check(struct field_errors *e, const cJSON *crd, const cJSON *old)
{
    static const char *const scopes[] = {"Cluster", "Namespaced", NULL};
    const struct field_path *spec = FIELD(NULL, "spec");
    const cJSON *s = json_get(crd, "spec"), *names = json_get(s, "names");
    struct str group = json_str_at(s, "group"), scope = json_str_at(s, "scope");
    struct str wanted =
        arena_concat(e->arena, 3, (struct str[]){json_str_at(names, "plural"), STR("."), group});

    if (!str_eq(json_str_at(crd, "metadata.name"), wanted))
        field_invalid_str(e, FIELD(FIELD(NULL, "metadata"), "name"),
                          json_str_at(crd, "metadata.name"),
                          "must be spec.names.plural+\".\"+spec.group");
    check_group(e, crd, group);
    if (!scope.n)
        field_required(e, FIELD(spec, "scope"), "");
    else if (!str_eqc(scope, "Cluster") && !str_eqc(scope, "Namespaced"))
        field_not_supported(e, FIELD(spec, "scope"), scope, scopes);
    check_names(e, FIELD(spec, "names"), names);
    check_versions(e, spec, json_get(s, "versions"));
    check_conversion(e, json_get(s, "conversion"));
    if (json_true(json_get(s, "preserveUnknownFields")) &&
        !(old && json_true(json_path(old, "spec.preserveUnknownFields"))))
        field_invalid(e, FIELD(spec, "preserveUnknownFields"), json_get(s, "preserveUnknownFields"),
                      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                      "spec.versions[*].schema instead");
    if (old)
        check_immutable(e, crd, old);
}

/* --- table --- */

static void crd_row(struct arena *a, const cJSON *crd, int64_t now, cJSON *cells)
{
    (void)now;
    json_append(cells, json_new_string(a, json_str_at(crd, "metadata.creationTimestamp")));
}

const struct kind_ops CRD_OPS = {
    .defaults = crd_defaults,
    .prepare_create = crd_prepare_create,
    .prepare_update = crd_prepare_update,
    .validate = crd_check,
    .cells = crd_row,
};
