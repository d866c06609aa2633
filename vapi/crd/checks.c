/* SPDX-License-Identifier: Apache-2.0 */
/* Validation of a CustomResourceDefinition: names, versions, columns, subresources. schema_checks.c
 * validates structural schemas. Source: apiextensions-apiserver
 * pkg/apis/apiextensions/{v1/defaults.go, validation/validation.go}. */
#include "schema_checks.h"

#include <ctype.h>
#include <string.h>

#include <sublet/object.h>
#include <sublet/selector.h>

#include "version.h"

#define FINALIZER "customresourcecleanup.apiextensions.k8s.io"
#define APPROVED  "api-approved.kubernetes.io"

#define MAX_VERSIONS       64   /* upstream has no limit; each is compared with every earlier one */
#define JSONPATH_MAX_BYTES 4096 /* our compiler refuses longer ones */

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
    cJSON *service = json_path(conversion, "webhook.clientConfig.service");
    if (json_is_object(service) && !json_get(service, "port"))
        json_set_i64(a, service, "port", 443);
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

/* Instances are deleted before their CRD: the finalizer holds it from the first delete on. */
static void crd_prepare_delete(struct arena *a, cJSON *crd, int64_t now)
{
    cJSON *meta = json_ensure_object(a, crd, "metadata"), *list = json_get(meta, "finalizers");

    if (!json_is_array(list))
        list = json_set(a, meta, "finalizers", json_new_array(a));
    if (!finalizer_has(crd, FINALIZER))
        json_append(list, json_new_string(a, STR(FINALIZER)));
    condition_set(a, crd, "Terminating", "True", "InstanceDeletionPending",
                  STR("CustomResourceDefinition marked for deletion; CustomResource deletion will "
                      "begin soon"),
                  now);
}

static void crd_prepare_create(struct arena *a, cJSON *crd)
{
    cJSON *status = json_set(a, crd, "status", json_new_object(a)), *names;

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
    if (json_is_array(list) && storage.n && !json_list_has(list, storage))
        json_append(list, json_new_string(a, storage));
}

/* --- validation --- */

static void check_label(struct field_errors *e, const struct field_path *p, struct str s)
{
    const char *wrong = name_check_dns1035_label(s);

    if (wrong)
        field_invalid_str(e, p, s, wrong);
}

static void check_kind(struct field_errors *e, const struct field_path *p, struct str s)
{
    const char *wrong = name_check_dns1035_label(lower(e->arena, s));

    if (wrong)
        field_invalid_str(
            e, p, s,
            arena_printf(e->arena, "may have mixed case, but should otherwise match: %s", wrong).p);
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
        if (json_str_at(names, kinds[k]).n)
            check_kind(e, FIELD(p, kinds[k]), json_str_at(names, kinds[k]));
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

/* Paths as upstream names them: it stores values shared by all versions at the top of the spec, and
 * reports errors there. */
static bool in_common(const cJSON *versions, const char *key)
{
    const cJSON *first = json_get(json_first(versions), key);

    json_each(version, versions)
    {
        const cJSON *value = json_get(version, key);

        if (!value || !json_equal(value, first))
            return false;
    }
    return first != NULL;
}

static bool one_of(struct str s, const char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        if (str_eqc(s, words[i]))
            return true;
    }
    return false;
}

static void check_column(struct field_errors *e, const struct field_path *p, const cJSON *column)
{
    static const char *const types[] = {"integer", "number", "string", "boolean", "date", NULL};
    static const char *const formats[] = {"int32", "int64",     "float",    "double", "byte",
                                          "date",  "date-time", "password", NULL};
    static const char type_words[] = "must be one of boolean,date,integer,number,string";
    struct str type = json_str_at(column, "type"), path = json_str_at(column, "jsonPath");
    struct str format = json_str_at(column, "format");
    struct jsonpath *compiled;
    struct err err;

    if (!json_str_at(column, "name").n)
        field_required(e, FIELD(p, "name"), "");
    if (!type.n)
        field_required(e, FIELD(p, "type"), type_words);
    else if (!one_of(type, types))
        field_invalid_str(e, FIELD(p, "type"), type, type_words);
    if (format.n && !one_of(format, formats))
        field_invalid_str(e, FIELD(p, "format"), format,
                          "must be one of byte,date,date-time,double,float,int32,int64,password");
    err_init(&err, e->arena);
    if (!path.n)
        field_required(e, FIELD(p, "JSONPath"), "");
    else if (path.p[0] != '.')
        field_invalid_str(e, FIELD(p, "JSONPath"), path,
                          "must be a simple json path starting with .");
    else if (path.n > JSONPATH_MAX_BYTES && jsonpath_compile(e->arena, path, &compiled, &err))
        field_invalid_str(e, FIELD(p, "JSONPath"), path, err.message.p);
}

static void check_columns(struct field_errors *e, const struct field_path *p, const cJSON *columns)
{
    size_t i = 0;

    json_each(column, columns)
        check_column(e, FIELD_INDEX(FIELD(p, "additionalPrinterColumns"), i++), column);
}

static void check_scale(struct field_errors *e, const struct field_path *p, const cJSON *scale)
{
    static const struct {
        const char *key, *prefix, *other, *message;
        bool required;
    } paths[] = {
        {"specReplicasPath", ".spec.", ".spec.", "should be a json path under .spec", true},
        {"statusReplicasPath", ".status.", ".status.", "should be a json path under .status", true},
        {"labelSelectorPath", ".spec.", ".status.",
         "should be a json path under either .spec or .status", false},
    };

    for (size_t i = 0; i < 3; i++) {
        struct str path = json_str_at(scale, paths[i].key);

        if (!path.n && paths[i].required)
            field_required(e, FIELD(p, paths[i].key), "");
        else if (path.n && path.p[0] != '.')
            field_invalid_str(e, FIELD(p, paths[i].key), path,
                              "must be a simple json path starting with .");
        else if (path.n && !str_has_prefix(path, str_c(paths[i].prefix)) &&
                 !str_has_prefix(path, str_c(paths[i].other)))
            field_invalid_str(e, FIELD(p, paths[i].key), path, paths[i].message);
    }
}

/* The schema at a dotted path, or NULL. */
static const cJSON *schema_at(const cJSON *schema, struct str path)
{
    path = str_from(path, 1);
    while (path.p && schema)
        schema = json_get_str(json_get(schema, "properties"), str_cut(&path, '.'));
    return schema;
}

static void check_selectable(struct field_errors *e, const struct field_path *p, const cJSON *list,
                             const cJSON *field, const cJSON *schema)
{
    static const char *const types[] = {"string", "boolean", "integer", NULL};
    struct str path = json_str_at(field, "jsonPath");
    const cJSON *found = path.n && path.p[0] == '.' ? schema_at(schema, path) : NULL;

    p = FIELD(p, "jsonPath");
    if (!path.n) {
        field_required(e, p, "");
        return;
    }
    if (path.p[0] != '.') {
        field_invalid_str(
            e, p, path,
            arena_printf(e->arena, "is an invalid path: expected [ or . but got: %.*s", STR_F(path))
                .p);
        return;
    }
    if (!found) {
        field_invalid_str(e, p, path, "is an invalid path: does not refer to a valid field");
        return;
    }
    if (str_has_prefix(path, STR(".metadata.")))
        field_invalid_str(e, p, path, "must not point to fields in metadata");
    if (!one_of(json_str_at(found, "type"), types))
        field_invalid_str(e, p, path,
                          "must point to a field of type string, boolean or integer. Enum string "
                          "fields and strings with formats are allowed.");
    for (const cJSON *before = json_first(list); before && before != field; before = before->next) {
        if (str_eq(json_str_at(before, "jsonPath"), path)) {
            field_duplicate(e, p, json_get(field, "jsonPath"));
            break;
        }
    }
}

static void check_selectables(struct field_errors *e, const struct field_path *p, const cJSON *list,
                              const cJSON *schema)
{
    size_t i = 0, n = json_count(list);

    p = FIELD(p, "selectableFields");
    json_each(field, list)
    {
        if (i < 64)
            check_selectable(e, FIELD_INDEX(p, i), list, field, schema);
        i++;
    }
    if (n > 8)
        field_too_many(e, p, n, 8);
}

static void check_deprecation(struct field_errors *e, const struct field_path *p,
                              const cJSON *version)
{
    const cJSON *warning = json_get(version, "deprecationWarning");
    struct str text = json_str(warning);

    p = FIELD(p, "deprecationWarning");
    if (!json_is_string(warning))
        return;
    if (!json_true(json_get(version, "deprecated"))) {
        field_invalid(e, p, warning, "can only be set for deprecated versions");
        return;
    }
    if (text.n > 256)
        field_invalid(e, p, warning, "must be <= 256 characters long");
    if (!text.n)
        field_invalid(e, p, warning, "must not be an empty string");
    for (size_t i = 0; i < text.n; i++) {
        if ((unsigned char)text.p[i] >= ' ' && text.p[i] != 0x7f)
            continue;
        field_invalid(e, p, warning,
                      arena_printf(e->arena,
                                   "must only contain printable UTF-8 characters; non-printable "
                                   "character found at index %zu",
                                   i)
                          .p);
        break;
    }
}

/* Values shared by all versions are checked once, because upstream's internal type holds them
 * once. */
struct commons {
    bool schema, subresources, columns, fields;
    bool first; /* this is the first version, which stands for all */
};

static void check_version(struct field_errors *e, const struct field_path *spec,
                          const struct field_path *own, const cJSON *version,
                          const struct commons *common)
{
    const cJSON *schema = json_path(version, "schema.openAPIV3Schema");
    const cJSON *subresources = json_get(version, "subresources");
    const cJSON *scale = json_get(subresources, "scale");
    const struct field_path *at = common->schema ? FIELD(spec, "validation") : FIELD(own, "schema");

    if (!schema)
        field_required(e, FIELD(FIELD(own, "schema"), "openAPIV3Schema"), "");
    check_label(e, FIELD(own, "name"), json_str_at(version, "name"));
    check_deprecation(e, own, version);
    if (schema && (common->first || !common->schema))
        crd_check_schema(e, FIELD(at, "openAPIV3Schema"), schema,
                         json_get(subresources, "status") != NULL);
    at = common->subresources ? spec : own;
    if (scale && (common->first || !common->subresources))
        check_scale(e, FIELD(FIELD(at, "subresources"), "scale"), scale);
    if (common->first || !common->columns)
        check_columns(e, common->columns ? spec : own,
                      json_get(version, "additionalPrinterColumns"));
    if (common->first || !common->fields)
        check_selectables(e, common->fields ? spec : own, json_get(version, "selectableFields"),
                          schema);
}

static bool name_seen(const cJSON *list, const cJSON *version)
{
    for (const cJSON *before = json_first(list); before != version; before = before->next) {
        if (str_eq(json_str_at(before, "name"), json_str_at(version, "name")))
            return true;
    }
    return false;
}

static void check_versions(struct field_errors *e, const struct field_path *spec, const cJSON *list)
{
    const struct field_path *p = FIELD(spec, "versions");
    struct commons common = {in_common(list, "schema"), in_common(list, "subresources"),
                             in_common(list, "additionalPrinterColumns"),
                             in_common(list, "selectableFields"), true};
    size_t i = 0, storage = 0;
    bool unique = true;

    if (json_count(list) > MAX_VERSIONS) {
        field_too_many(e, p, json_count(list), MAX_VERSIONS);
        return;
    }
    json_each(version, list)
    {
        unique = unique && !name_seen(list, version);
        storage += json_true(json_get(version, "storage"));
        check_version(e, spec, FIELD_INDEX(p, i++), version, &common);
        common.first = false;
    }
    if (!unique)
        field_invalid(e, p, list, "must contain unique version names");
    if (storage != 1)
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
    if (!guarded)
        return;
    p = FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), STR(APPROVED));
    if (!approved.n)
        field_required(e, p,
                       "protected groups must have approval annotation "
                       "\"api-approved.kubernetes.io\", see "
                       "https://github.com/kubernetes/enhancements/pull/1111");
    else if (!str_has_prefix(approved, STR("unapproved")) && !str_contains(approved, STR("://")))
        field_invalid_str(e, p, approved,
                          "protected groups must have approval annotation "
                          "\"api-approved.kubernetes.io\" with either a URL or a reason starting "
                          "with \"unapproved\", see "
                          "https://github.com/kubernetes/enhancements/pull/1111");
}

static void check_conversion(struct field_errors *e, const cJSON *conversion)
{
    static const char *const strategies[] = {"None", "Webhook", NULL};
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "conversion");
    struct str strategy = json_str_at(conversion, "strategy");

    if (!str_eqc(strategy, "None") && !str_eqc(strategy, "Webhook"))
        field_not_supported(e, FIELD(p, "strategy"), strategy, strategies);
    const cJSON *webhook = json_get(conversion, "webhook"),
                *client = json_get(webhook, "clientConfig"),
                *versions = json_get(webhook, "conversionReviewVersions");
    if (!str_eqc(strategy, "Webhook")) {
        if (json_count(versions))
            field_forbidden(e, FIELD(p, "conversionReviewVersions"),
                            "should not be set when strategy is not set to Webhook");
        if (client)
            field_forbidden(e, FIELD(p, "webhookClientConfig"),
                            "should not be set when strategy is not set to Webhook");
        return;
    }
    if (!client)
        field_required(e, FIELD(p, "webhookClientConfig"),
                       "required when strategy is set to Webhook");
    else if (!json_get(client, "url") == !json_get(client, "service"))
        field_required(e, FIELD(p, "webhookClientConfig"),
                       "exactly one of url or service is required");
    if (!json_count(versions))
        field_required(e, FIELD(p, "conversionReviewVersions"), "");
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
    /* A version with stored objects cannot be removed. */
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

/* --- the kind --- */

static void cell_created(const struct row *r, const struct column *c)
{
    (void)c;
    json_append(r->cells,
                json_new_string(r->a, json_str_at(r->object, "metadata.creationTimestamp")));
}

#define S(text)                                                                                    \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static const char *const SHORT_NAMES[] = {"crd", "crds", NULL};
static const char *const CATEGORIES[] = {"api-extensions", NULL};
static const struct column COLUMNS[] = {
    {"Created At", "date", .cell = cell_created},
    {NULL},
};
static const struct subresource SUBRESOURCES[] = {
    {"status", SUB_STATUS, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "", "CustomResourceDefinition",
     NULL},
};

static bool converts_by_webhook(const cJSON *crd)
{
    return str_eqc(json_str_at(crd, "spec.conversion.strategy"), "Webhook");
}

/* A property of this name would be an object. */
static bool has_rules(const cJSON *schema)
{
    json_each(child, schema)
    {
        if ((child->string && str_eqc(str_c(child->string), "x-kubernetes-validations") &&
             json_is_array(child) && json_count(child)) ||
            has_rules(child))
            return true;
    }
    return false;
}

static bool validates_by_rules(const cJSON *crd)
{
    return has_rules(json_path(crd, "spec.versions"));
}

static const struct no_effect NO_EFFECT[] = {
    {converts_by_webhook, "spec.conversion.webhook of a CustomResourceDefinition",
     "between versions only apiVersion changes"},
    {validates_by_rules, "x-kubernetes-validations of a CustomResourceDefinition",
     "custom resources are stored without an evaluation of these rules"},
    {NULL},
};

const struct kind KIND_CUSTOM_RESOURCE_DEFINITION = {
    .resource =
        {
            .group = S("apiextensions.k8s.io"),
            .version = S("v1"),
            .kind = S("CustomResourceDefinition"),
            .list_kind = S("CustomResourceDefinitionList"),
            .plural = S("customresourcedefinitions"),
            .singular = S("customresourcedefinition"),
            .short_names = SHORT_NAMES,
            .categories = CATEGORIES,
            .verbs = VERBS_ALL,
            .flags = RES_STATUS | RES_GENERATION | RES_CONDITIONAL_UPDATE,
            .columns = COLUMNS,
            .subresources = SUBRESOURCES,
            .n_subresources = 1,
        },
    .defaults = crd_defaults,
    .prepare_create = crd_prepare_create,
    .prepare_update = crd_prepare_update,
    .validate = crd_check,
    .prepare_delete = crd_prepare_delete,
    .no_effect = NO_EFFECT,
};
