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
    cJSON *status = json_set(a, crd, "status", json_new_object(a)), *names, *versions;
    struct str storage = storage_version(crd);

    json_set(a, status, "conditions", json_new_null(a));
    names = json_ensure_object(a, status, "acceptedNames");
    json_set_str(a, names, "plural", STR(""));
    json_set_str(a, names, "kind", STR(""));
    versions = json_set(a, status, "storedVersions", json_new_array(a));
    if (storage.n)
        json_append(versions, json_new_string(a, storage));
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
    static const struct {
        const char *key;
        void (*check)(struct field_errors *, const struct field_path *, struct str);
    } fields[] = {{"plural", check_label},
                  {"singular", check_label},
                  {"kind", check_kind},
                  {"listKind", check_kind}};
    struct str kind = json_str_at(names, "kind"), list_kind = json_str_at(names, "listKind");
    size_t i = 0;

    for (size_t k = 0; k < COUNT(fields); k++) {
        if (!json_str_at(names, fields[k].key).n)
            field_required(e, FIELD(p, fields[k].key), "");
    }
    for (size_t k = 0; k < COUNT(fields); k++) {
        struct str name = json_str_at(names, fields[k].key);

        if (name.n)
            fields[k].check(e, FIELD(p, fields[k].key), name);
    }
    json_each(name, json_get(names, "shortNames"))
        check_label(e, FIELD_INDEX(FIELD(p, "shortNames"), i++), json_str(name));
    if (kind.n && str_eq(kind, list_kind))
        field_invalid_str(e, FIELD(p, "listKind"), list_kind,
                          "kind and listKind may not be the same");
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

/* Upstream's internal type holds a value that all versions share once, at the top of the spec, and
 * judges it there, after the versions. */
struct commons {
    bool schema, subresources, columns, fields;
    const cJSON *old; /* the versions before an update; NULL: a create */
    struct crd_effort *effort;
};

static bool is_stored(struct arena *a, const cJSON *old, const cJSON *version, const cJSON *schema)
{
    json_each(before, old)
    {
        const cJSON *then = json_path(before, "schema.openAPIV3Schema");

        if (then && str_eq(json_str_at(before, "name"), json_str_at(version, "name")))
            return str_eq(json_text(a, then), json_text(a, schema));
    }
    return false;
}

static void check_schema(struct field_errors *e, const struct field_path *p, const cJSON *version,
                         const struct commons *common)
{
    const cJSON *schema = json_path(version, "schema.openAPIV3Schema");

    if (schema)
        crd_check_schema(e, FIELD(p, "openAPIV3Schema"), schema,
                         json_path(version, "subresources.status") != NULL,
                         is_stored(e->arena, common->old, version, schema) ? NULL : common->effort);
}

static void check_subresources(struct field_errors *e, const struct field_path *p,
                               const cJSON *version)
{
    const cJSON *scale = json_path(version, "subresources.scale");

    if (scale)
        check_scale(e, FIELD(FIELD(p, "subresources"), "scale"), scale);
}

static void check_fields(struct field_errors *e, const struct field_path *p, const cJSON *version)
{
    const cJSON *list = json_get(version, "selectableFields");
    size_t i = 0, n = json_count(list);

    p = FIELD(p, "selectableFields");
    json_each(field, list)
    {
        if (i < 64)
            check_selectable(e, FIELD_INDEX(p, i), list, field,
                             json_path(version, "schema.openAPIV3Schema"));
        i++;
    }
    if (n > 8)
        field_too_many(e, p, n, 8);
}

static void check_version(struct field_errors *e, const struct field_path *p, const cJSON *version,
                          const struct commons *common)
{
    check_label(e, FIELD(p, "name"), json_str_at(version, "name"));
    check_deprecation(e, p, version);
    if (!common->schema)
        check_schema(e, FIELD(p, "schema"), version, common);
    if (!common->subresources)
        check_subresources(e, p, version);
    if (!common->columns)
        check_columns(e, p, json_get(version, "additionalPrinterColumns"));
    if (!common->fields)
        check_fields(e, p, version);
}

/* first: any version, which stands for all. */
static void check_common(struct field_errors *e, const struct field_path *spec, const cJSON *first,
                         const struct commons *common)
{
    if (common->schema)
        check_schema(e, FIELD(spec, "validation"), first, common);
    if (common->subresources)
        check_subresources(e, spec, first);
    if (common->columns)
        check_columns(e, spec, json_get(first, "additionalPrinterColumns"));
    if (common->fields)
        check_fields(e, spec, first);
}

static bool name_seen(const cJSON *list, const cJSON *version)
{
    for (const cJSON *before = json_first(list); before != version; before = before->next) {
        if (str_eq(json_str_at(before, "name"), json_str_at(version, "name")))
            return true;
    }
    return false;
}

static void check_versions(struct field_errors *e, const struct field_path *p, const cJSON *list,
                           const struct commons *common)
{
    size_t i = 0, storage = 0;
    bool unique = true;

    json_each(version, list)
    {
        if (!json_path(version, "schema.openAPIV3Schema"))
            field_required(e, FIELD(FIELD(FIELD_INDEX(p, i), "schema"), "openAPIV3Schema"), "");
        i++;
    }
    i = 0;
    json_each(version, list)
    {
        unique = unique && !name_seen(list, version);
        storage += json_true(json_get(version, "storage"));
        check_version(e, FIELD_INDEX(p, i++), version, common);
    }
    if (!unique)
        field_invalid(e, p, list, "must contain unique version names");
    if (storage != 1)
        field_invalid(e, p, list, "must have exactly one version marked as storage version");
}

static void check_group(struct field_errors *e, const struct field_path *p, struct str group)
{
    const char *wrong = group.n ? name_check_dns1123_subdomain(group) : NULL;

    if (!group.n)
        field_required(e, p, "");
    else if (wrong)
        field_invalid_str(e, p, group, wrong);
    else if (str_find(group, '.') == group.n)
        field_invalid_str(e, p, group, "should be a domain with at least one dot");
}

#define APPROVAL_WANTED "protected groups must have approval annotation \"" APPROVED "\""

static struct str approval_of(const cJSON *crd)
{
    return json_str(json_get(json_path(crd, "metadata.annotations"), APPROVED));
}

static bool is_approval(struct str approval)
{
    return str_has_prefix(approval, STR("unapproved")) || str_contains(approval, STR("://"));
}

static void check_approval(struct field_errors *e, const cJSON *crd, const cJSON *old)
{
    struct str group = json_str_at(crd, "spec.group"), approval = approval_of(crd);
    const struct field_path *p =
        FIELD_KEY(FIELD(FIELD(NULL, "metadata"), "annotations"), STR(APPROVED));
    bool guarded = str_has_suffix(group, STR(".k8s.io")) ||
                   str_has_suffix(group, STR(".kubernetes.io")) || str_eqc(group, "k8s.io") ||
                   str_eqc(group, "kubernetes.io");

    /* An update may leave what it found. */
    if (!guarded || is_approval(approval) ||
        (old && !is_approval(approval_of(old)) && !approval_of(old).n == !approval.n))
        return;
    if (!approval.n)
        field_required(
            e, p, APPROVAL_WANTED ", see https://github.com/kubernetes/enhancements/pull/1111");
    else
        field_invalid_str(e, p, approval,
                          APPROVAL_WANTED
                          " with either a URL or a reason starting with \"unapproved\", see "
                          "https://github.com/kubernetes/enhancements/pull/1111");
}

static bool is_established(const cJSON *crd)
{
    const cJSON *condition = condition_get(json_path(crd, "status.conditions"), "Established");

    return condition && str_eqc(json_str_at(condition, "status"), "True");
}

static void check_immutable(struct field_errors *e, const cJSON *crd, const cJSON *old)
{
    static const struct {
        const char *parent, *key; /* parent NULL: of spec itself */
        bool established;         /* only once it is */
    } fields[] = {{NULL, "scope", true},
                  {"names", "kind", true},
                  {NULL, "group", false},
                  {"names", "plural", false}};
    const struct field_path *spec = FIELD(NULL, "spec");
    const cJSON *now = json_get(crd, "spec"), *before = json_get(old, "spec");
    bool established = is_established(old);

    for (size_t i = 0; i < COUNT(fields); i++) {
        const char *up = fields[i].parent, *key = fields[i].key;
        struct str value = json_str_at(up ? json_get(now, up) : now, key);

        if ((established || !fields[i].established) &&
            !str_eq(value, json_str_at(up ? json_get(before, up) : before, key)))
            field_invalid_str(e, FIELD(up ? FIELD(spec, up) : spec, key), value,
                              "field is immutable");
    }
}

/* A version with stored objects cannot be removed. */
static void check_stored(struct field_errors *e, const cJSON *crd, const cJSON *old)
{
    const struct field_path *p = FIELD(FIELD(NULL, "status"), "storedVersions");
    size_t n = 0;

    if (!old && !storage_version(crd).n)
        field_invalid(e, p, NULL, "must have at least one stored version");
    json_each(stored, json_path(old, "status.storedVersions"))
    {
        struct str name = json_str(stored);
        bool there = false;

        json_each(version, json_path(crd, "spec.versions")) there =
            there || str_eq(json_str_at(version, "name"), name);
        if (!there)
            field_invalid_str(
                e, FIELD_INDEX(p, n), name,
                arena_printf(e->arena,
                             "missing from spec.versions; %.*s was previously a storage version, "
                             "and must remain in spec.versions until a storage migration ensures "
                             "no data remains persisted in %.*s and removes %.*s from "
                             "status.storedVersions",
                             STR_F(name), STR_F(name), STR_F(name))
                    .p);
        n++;
    }
}

static void check_spec(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    static const char *const scopes[] = {"Cluster", "Namespaced", NULL};
    const struct field_path *p = FIELD(NULL, "spec");
    const cJSON *versions = json_get(spec, "versions");
    struct str scope = json_str_at(spec, "scope");
    struct crd_effort effort = crd_effort_new();
    const struct commons common = {in_common(versions, "schema"),
                                   in_common(versions, "subresources"),
                                   in_common(versions, "additionalPrinterColumns"),
                                   in_common(versions, "selectableFields"),
                                   json_path(old, "spec.versions"),
                                   &effort};

    check_group(e, FIELD(p, "group"), json_str_at(spec, "group"));
    if (!scope.n)
        field_required(e, FIELD(p, "scope"), "");
    else if (!str_eqc(scope, "Cluster") && !str_eqc(scope, "Namespaced"))
        field_not_supported(e, FIELD(p, "scope"), scope, scopes);
    if (json_count(versions) > MAX_VERSIONS) {
        field_too_many(e, FIELD(p, "versions"), json_count(versions), MAX_VERSIONS);
        return;
    }
    check_versions(e, FIELD(p, "versions"), versions, &common);
    check_names(e, FIELD(p, "names"), json_get(spec, "names"));
    check_common(e, p, json_first(versions), &common);
    crd_check_conversion(e, spec, old);
}

/* In upstream's order: ValidateCustomResourceDefinition(). */
static void crd_check(struct field_errors *e, const cJSON *crd, const cJSON *old)
{
    const cJSON *spec = json_get(crd, "spec"), *preserve = json_get(spec, "preserveUnknownFields");
    struct str name = json_str_at(crd, "metadata.name");
    struct str wanted = arena_concat(
        e->arena, 3,
        (struct str[]){json_str_at(spec, "names.plural"), STR("."), json_str_at(spec, "group")});

    if (!old && !str_eq(name, wanted))
        field_invalid_str(e, FIELD(FIELD(NULL, "metadata"), "name"), name,
                          "must be spec.names.plural+\".\"+spec.group");
    check_spec(e, spec, old);
    if (old)
        check_immutable(e, crd, old);
    check_stored(e, crd, old);
    check_approval(e, crd, old);
    if (json_true(preserve) && !json_true(json_path(old, "spec.preserveUnknownFields")))
        field_invalid(e, FIELD(FIELD(NULL, "spec"), "preserveUnknownFields"), preserve,
                      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                      "spec.versions[*].schema instead");
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
};
