/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Decodes a request's body: JSON, YAML or protobuf by its content type, bounded, with duplicate and
 * unknown fields recorded. It must never return a tree of another kind than the URL names. Source:
 * apiserver pkg/endpoints/handlers/{create,rest}.go, apimachinery pkg/runtime/serializer. */
#include "request.h"

#include "../../core/meta.h"

#include <sublet/api_version.h>
#include <sublet/crd.h>
#include <sublet/encode.h>
#include <sublet/net.h>
#include <sublet/yaml.h>

enum body_format { FORMAT_JSON, FORMAT_YAML, FORMAT_PROTOBUF };

static const struct media {
    const char *type;
    enum body_format format;
} MEDIA[] = {
    {"application/json", FORMAT_JSON},
    {"application/yaml", FORMAT_YAML},
    {"application/vnd.kubernetes.protobuf", FORMAT_PROTOBUF},
};

static const struct patch_media {
    const char *type;
    enum patch_type patch;
} PATCH_MEDIA[] = {
    {"application/json-patch+json", PATCH_TYPE_JSON},
    {"application/merge-patch+json", PATCH_TYPE_MERGE},
    {"application/strategic-merge-patch+json", PATCH_TYPE_STRATEGIC},
    {"application/apply-patch+yaml", PATCH_TYPE_APPLY},
};

/* ---- content types ---- */

/* `type/subtype; name=value`; a parameter without '=' makes the whole header invalid, as in Go. */
static bool media_type(struct str header, struct str *ret)
{
    struct str rest = header;

    *ret = str_trim(str_cut(&rest, ';'));
    while (rest.p) {
        struct str parameter = str_trim(str_cut(&rest, ';'));

        if (parameter.n && str_find(parameter, '=') == parameter.n)
            return false;
    }
    return true;
}

static int unsupported(const struct call *c, struct err *err)
{
    /* Only kinds with a protobuf message accept it. */
    return err_set(err, &ERR_UNSUPPORTED_MEDIA_TYPE,
                   "the body of the request was in an unknown format - accepted media types "
                   "include: application/json, application/yaml%s",
                   c->resource && c->resource->crd ? "" : ", application/vnd.kubernetes.protobuf");
}

static int body_format(const struct call *c, enum body_format *ret, struct err *err)
{
    struct str header = net_header(c->request, "content-type"), type;

    *ret = FORMAT_JSON;
    if (!header.n)
        return 0;
    if (!media_type(header, &type))
        return unsupported(c, err);
    for (size_t i = 0; i < COUNT(MEDIA); i++) {
        if (!str_eq_nocase(type, str_c(MEDIA[i].type)))
            continue;
        *ret = MEDIA[i].format;
        if (*ret == FORMAT_PROTOBUF && c->resource && c->resource->crd && c->verb != CALL_DELETE &&
            c->verb != CALL_DELETECOLLECTION)
            return unsupported(c, err);
        return 0;
    }
    return unsupported(c, err);
}

int body_patch_type(struct call *c, struct err *err)
{
    struct str type = net_header(c->request, "content-type");

    type = str_trim(str_sub(type, 0, str_find(type, ';')));
    for (size_t i = 0; i < COUNT(PATCH_MEDIA); i++) {
        /* Upstream's router, for built-in kinds, compares case-sensitively. */
        if (!(c->resource->crd ? str_eq_nocase(type, str_c(PATCH_MEDIA[i].type))
                               : str_eqc(type, PATCH_MEDIA[i].type)))
            continue;
        c->patch = PATCH_MEDIA[i].patch;
        if (c->patch == PATCH_TYPE_STRATEGIC && c->resource->crd)
            break;
        return 0;
    }
    if (c->resource->crd)
        return err_set(err, &ERR_UNSUPPORTED_MEDIA_TYPE,
                       "the body of the request was in an unknown format - accepted media types "
                       "include: application/json-patch+json, application/merge-patch+json, "
                       "application/apply-patch+yaml");
    err->router = true;
    return err_set(err, &ERR_UNSUPPORTED_MEDIA_TYPE, "415: Unsupported Media Type");
}

/* ---- kinds ---- */

static struct str join_api_version(struct arena *a, struct str group, struct str version)
{
    return group.n ? arena_printf(a, "%.*s/%.*s", STR_F(group), STR_F(version)) : version;
}

int body_refuse(struct call *c, const char *why, struct err *err)
{
    struct str group, version, kind;
    struct str got_kind = json_str(json_get(c->body, "kind"));
    struct str got_version = api_version_read(json_str(json_get(c->body, "apiVersion"))).version;

    call_body_expected(c, &group, &version, &kind);
    if (!got_kind.n)
        got_kind = kind;
    if (!got_version.n)
        got_version = version;
    return err_set(err, &ERR_BAD_REQUEST,
                   "%.*s in version \"%.*s\" cannot be handled as a %.*s: %s", STR_F(got_kind),
                   STR_F(got_version), STR_F(kind), why);
}

static bool kind_exists(const struct call *c, struct str group, struct str version, struct str kind)
{
    return registry_find_kind(vapi_registry(c->api), group, version, kind) ||
           schema_builtin_root(group, version, kind);
}

/* Why a body of this kind cannot be converted to the wanted one, with the message of the scheme's
 * converter. */
static struct str kind_problem(struct call *c, struct str group, struct str version,
                               struct str kind)
{
    struct arena *a = c->arena;
    struct str want_group, want_version, want_kind;

    call_body_expected(c, &want_group, &want_version, &want_kind);
    if (kind_exists(c, group, version, kind))
        return arena_printf(
            a, "converting (%.*s.%.*s) to (%.*s.%.*s): unknown conversion", STR_F(version),
            STR_F(kind),
            STR_F(want_group.n ? str_sub(want_group, 0, str_find(want_group, '.')) : STR("core")),
            STR_F(want_kind));
    return arena_printf(a,
                        "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                        "\"pkg/runtime/scheme.go:111\"",
                        STR_F(kind), STR_F(join_api_version(a, group, version)));
}

/* The kind of a tree; missing parts are those expected. */
struct body_kind {
    struct str group, version, kind;
};

static struct body_kind kind_of_body(const struct call *c, const cJSON *tree)
{
    struct str api_version = json_str(json_get(tree, "apiVersion"));
    struct api_version v = api_version_read(api_version);
    struct str kind = json_str(json_get(tree, "kind"));
    struct body_kind s;

    call_body_expected(c, &s.group, &s.version, &s.kind);
    if (kind.n)
        s.kind = kind;
    if (api_version.n) {
        s.group = v.group;
        s.version = v.version;
    }
    return s;
}

/* OTHER_KIND: another kind or group, or one that does not exist. */
enum kind_match { SAME_KIND, OTHER_KIND, OTHER_VERSION };

static enum kind_match compare_kind(struct call *c, const struct body_kind *got)
{
    struct str group, version, kind;

    call_body_expected(c, &group, &version, &kind);
    if (!str_eq(got->kind, kind) || !str_eq(got->group, group))
        return OTHER_KIND;
    /* The one removed version that is still accepted as a body: old clients drain with it. */
    if (str_eq(got->version, version) ||
        (str_eqc(kind, "Eviction") && str_eqc(got->version, "v1beta1")))
        return SAME_KIND;
    return kind_exists(c, got->group, got->version, got->kind) ? OTHER_VERSION : OTHER_KIND;
}

void body_set_kind(struct call *c, cJSON *tree)
{
    struct str group, version, kind;

    call_body_expected(c, &group, &version, &kind);
    json_set_str(c->arena, tree, "kind", kind);
    json_set_str(c->arena, tree, "apiVersion", join_api_version(c->arena, group, version));
}

int body_check_kind(struct call *c, struct err *err)
{
    struct body_kind got = kind_of_body(c, c->body);
    struct str group, version, kind;

    call_body_expected(c, &group, &version, &kind);
    switch (compare_kind(c, &got)) {
    case SAME_KIND:
        body_set_kind(c, c->body);
        return 0;
    case OTHER_KIND:
        return body_refuse(c, kind_problem(c, got.group, got.version, got.kind).p, err);
    default:
        return err_set(err, &ERR_BAD_REQUEST,
                       "the API version in the data (%.*s) does not match the expected API version "
                       "(%.*s)",
                       STR_F(join_api_version(c->arena, got.group, got.version)),
                       STR_F(join_api_version(c->arena, group, version)));
    }
}

static int normalise(struct call *c, cJSON *object, bool patched, struct err *err);

int body_check_patched(struct call *c, cJSON *patched, struct err *err)
{
    struct body_kind got = kind_of_body(c, patched);
    int failed;

    if (compare_kind(c, &got) != SAME_KIND)
        return body_refuse_patched(c, patched, kind_problem(c, got.group, got.version, got.kind),
                                   err);
    /* Without a kind the message names only the fields, as upstream's for patches. */
    json_remove(patched, "kind");
    failed = normalise(c, patched, true, err);
    body_set_kind(c, patched);
    if (failed)
        return body_refuse_patched(c, patched, err->message, err);
    return body_strict(c, patched, err);
}

/* ---- decoding ---- */

static void on_duplicate(void *ctx, struct str path)
{
    strict_add(ctx, "duplicate field", path);
}

static void on_yaml_duplicate(void *ctx, struct str line)
{
    strict_add_line(ctx, line);
}

#define SUMMARY 30

/* The beginning of an unreadable body, for the message. */
static struct str summary(struct arena *a, struct str body)
{
    struct str head = str_sub(body, 0, SUMMARY);
    const char *more = body.n > SUMMARY ? " ..." : "";

    if (!body.n)
        return STR("<empty>");
    if (body.p[0] == '{' && str_is_utf8(head))
        return arena_printf(a, "%.*s%s", STR_F(head), more);
    return arena_printf(a, "%.*s%s", STR_F(hex_encode(a, head)), more);
}

static int unrecognised(struct call *c, struct str body, const char *prefix, struct err *err)
{
    struct str group, version, kind, why = status_body_text(err->message);

    call_body_expected(c, &group, &version, &kind);
    if (!body.n)
        why = STR("unexpected end of JSON input");
    return err_set(err, &ERR_BAD_REQUEST,
                   "the object provided is unrecognized (must be of type %.*s): %s%.*s (%.*s)",
                   STR_F(kind), prefix, STR_F(why), STR_F(summary(c->arena, body)));
}

static int decode_as(struct call *c, enum body_format format, struct str body, cJSON **ret,
                     struct err *err)
{
    switch (format) {
    case FORMAT_YAML:
        return yaml_parse(c->arena, body, on_yaml_duplicate, &c->strict, ret, err);
    case FORMAT_PROTOBUF:
        return proto_decode(c->arena, body, ret, err);
    default:
        return json_parse_strict(c->arena, body, NULL, on_duplicate, &c->strict, ret, err);
    }
}

#define NO_KIND "couldn't get version/kind; json parse error: "
#define NOT_AN_OBJECT                                                                              \
    "%sjson: cannot unmarshal %s into Go value of type struct { APIVersion string "                \
    "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"

/* Reads kind and apiVersion first, on their own, as upstream does. */
static int check_type_meta(struct call *c, struct str body, struct err *err)
{
    static const char *const keys[] = {"kind", "apiVersion"};
    struct str rest = json_str(json_get(c->body, "apiVersion"));

    for (size_t i = 0; i < 2; i++) {
        const cJSON *value = json_get(c->body, keys[i]);

        if (!value || json_is_string(value) || json_is_null(value))
            continue;
        err_set(err, &ERR_BAD_REQUEST,
                "json: cannot unmarshal %s into Go struct field .%s of type string",
                json_type_name(value), keys[i]);
        return unrecognised(c, body, NO_KIND, err);
    }
    str_cut(&rest, '/');
    if (!rest.p || str_find(rest, '/') == rest.n)
        return 0;
    err_set(err, &ERR_BAD_REQUEST, "unexpected GroupVersion string: %.*s",
            STR_F(json_str(json_get(c->body, "apiVersion"))));
    return unrecognised(c, body, "", err);
}

/* The custom resource itself, which its status is written with; not a Scale. */
static bool is_custom_body(const struct call *c)
{
    return c->resource->crd && (!c->sub || !c->sub->object_kind || c->sub->kind == SUB_STATUS);
}

/* A custom resource must have both kind and version: there are no defaults. */
static int check_custom(struct call *c, struct str body, struct err *err)
{
    if (!is_custom_body(c))
        return 0;
    if (!json_str(json_get(c->body, "kind")).n) {
        err_set(err, &ERR_BAD_REQUEST, "Object 'Kind' is missing in '%.*s'",
                STR_F(body.p[0] == '{' ? body : json_text(c->arena, c->body)));
        return unrecognised(c, body, "", err);
    }
    if (json_str(json_get(c->body, "apiVersion")).n)
        return 0;
    return err_set(err, &ERR_BAD_REQUEST,
                   "the API version in the data () does not match the expected API version (%.*s)",
                   STR_F(c->resource->api_version));
}

static int decode_object(struct call *c, struct str body, struct err *err)
{
    enum body_format format;

    if (body_format(c, &format, err))
        return -1;
    if (decode_as(c, format, body, &c->body, err))
        return unrecognised(c, body, format == FORMAT_JSON ? NO_KIND : "", err);
    if (json_is_null(c->body))
        c->body = json_new_object(c->arena);
    if (!json_is_object(c->body)) {
        err_set(err, &ERR_BAD_REQUEST, NOT_AN_OBJECT, "", json_type_name(c->body));
        return unrecognised(c, body, NO_KIND, err);
    }
    return check_type_meta(c, body, err) || check_custom(c, body, err) || body_check_kind(c, err)
               ? -1
               : 0;
}

struct str body_not_object(const struct call *c, const cJSON *tree)
{
    return arena_printf(c->arena, NOT_AN_OBJECT, NO_KIND, json_type_name(tree));
}

static const char *patch_prefix(const struct call *c)
{
    if (c->patch == PATCH_TYPE_STRATEGIC)
        return "";
    return c->patch == PATCH_TYPE_APPLY ? "error decoding YAML: " : "error decoding patch: ";
}

static int decode_patch(struct call *c, struct str body, struct err *err)
{
    bool apply = c->patch == PATCH_TYPE_APPLY, list = c->patch == PATCH_TYPE_JSON;
    int failed =
        apply ? yaml_parse(c->arena, body, on_yaml_duplicate, &c->strict, &c->body, err)
              : json_parse_strict(c->arena, body, NULL, on_duplicate, &c->strict, &c->body, err);

    if (failed)
        return err_set(
            err, &ERR_BAD_REQUEST, "%s%s%.*s", patch_prefix(c),
            apply ? "error converting YAML to JSON: " : "",
            STR_F(body.n ? status_body_text(err->message) : STR("unexpected end of JSON input")));
    if (json_is_null(c->body) && c->patch == PATCH_TYPE_MERGE)
        return err_set(err, &ERR_BAD_REQUEST, "Invalid JSON Patch");
    if (json_is_null(c->body))
        c->body = list ? json_new_array(c->arena) : json_new_object(c->arena);
    if (list ? !json_is_array(c->body) : !json_is_object(c->body))
        return err_set(
            err, &ERR_BAD_REQUEST, "%s%sjson: cannot unmarshal %s into Go value of type %s",
            patch_prefix(c), apply ? "error unmarshaling JSON: while decoding JSON: " : "",
            json_type_name(c->body), list ? "[]handlers.jsonPatchOp" : "map[string]interface {}");
    if (list)
        patch_json_unknown(c->body, &c->strict);
    return 0;
}

/* DELETE accepts DeleteOptions of any group: they are the same. */
static int decode_delete_options(struct call *c, struct str body, struct err *err)
{
    enum body_format format;
    struct str kind;

    if (body_format(c, &format, err))
        return -1;
    if (decode_as(c, format, body, &c->body, err))
        return err_set(err, &ERR_BAD_REQUEST, "%s%.*s", format == FORMAT_JSON ? NO_KIND : "",
                       STR_F(status_body_text(err->message)));
    if (json_is_null(c->body))
        c->body = json_new_object(c->arena);
    kind = json_str(json_get(c->body, "kind"));
    if (!json_is_object(c->body))
        return err_set(err, &ERR_BAD_REQUEST, NOT_AN_OBJECT, format == FORMAT_JSON ? NO_KIND : "",
                       json_type_name(c->body));
    if (kind.n && !str_eqc(kind, "DeleteOptions"))
        return err_set(err, &ERR_BAD_REQUEST,
                       "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                       "\"pkg/runtime/scheme.go:111\"",
                       STR_F(kind), STR_F(json_str(json_get(c->body, "apiVersion"))));
    return options_from_body(c, c->body, err);
}

/* ---- normalising ---- */

/* A custom resource's metadata has the schema of every object's: it is checked as a ConfigMap's. */
static int normalise_metadata(struct call *c, cJSON *object, struct err *err)
{
    uint32_t root = schema_builtin_root(STR(""), STR("v1"), STR("ConfigMap"));
    cJSON *metadata = json_get(object, "metadata"), *shell = json_new_object(c->arena);

    if (!metadata)
        return 0;
    json_detach(object, metadata);
    json_set(c->arena, shell, "metadata", metadata);
    if (schema_normalise(c->arena, &SCHEMA_BUILTIN, root, shell, &c->strict, err))
        return -1;
    metadata = json_get(shell, "metadata");
    if (!metadata)
        return 0;
    json_detach(shell, metadata);
    json_set(c->arena, object, "metadata", metadata);
    return 0;
}

static int normalise(struct call *c, cJSON *object, bool patched, struct err *err)
{
    const struct resource *r = c->resource;
    const struct schema *s = r->schema;
    struct str group, version, kind;
    uint32_t node;
    cJSON *entries = json_path(object, "metadata.managedFields");

    /* Go distinguishes an empty list from none: it requests that managedFields be reset. So does
     * one empty entry, which survives. In a custom resource, which is no Go struct, an empty list
     * means nothing. */
    if (json_is_array(entries) && !json_first(entries) && !c->resource->crd)
        json_append(entries, json_new_object(c->arena));

    if (is_custom_body(c)) {
        if (normalise_metadata(c, object, err))
            return -1;
        crd_prune(r->crd, c->arena, object, &c->strict);
        return 0;
    }
    call_body_expected(c, &group, &version, &kind);
    node = r->node;
    if (!str_eq(kind, r->kind)) {
        s = &SCHEMA_BUILTIN;
        node = schema_builtin_root(group, version, kind);
    }
    if (!node)
        return 0;
    if (!patched && c->patch != PATCH_TYPE_APPLY)
        return schema_normalise(c->arena, s, node, object, &c->strict, err);
    return schema_normalise_patched(
        c->arena, s, node, object, c->patch == PATCH_TYPE_STRATEGIC || c->patch == PATCH_TYPE_APPLY,
        &c->strict, err);
}

int body_normalise(struct call *c, cJSON *object, struct err *err)
{
    return normalise(c, object, false, err);
}

int body_take(struct call *c, struct err *err)
{
    if (body_normalise(c, c->body, err) || body_strict(c, NULL, err))
        return -1;
    return vapi_meta_check_namespace(c, c->arena, c->body, err);
}

int body_decode(struct call *c, struct err *err)
{
    struct str body = c->request->body;

    if (body.n > API_MAX_BODY)
        return err_set(err, &ERR_TOO_LARGE, "Request entity too large: limit is %u", API_MAX_BODY);
    switch (c->verb) {
    case CALL_CREATE:
    case CALL_UPDATE:
        return decode_object(c, body, err);
    case CALL_PATCH:
        return decode_patch(c, body, err);
    case CALL_DELETE:
    case CALL_DELETECOLLECTION:
        return body.n ? decode_delete_options(c, body, err) : 0;
    default:
        return 0;
    }
}

/* ---- strict decoding ---- */

static struct str strict_text(struct call *c)
{
    return arena_printf(c->arena, "strict decoding error: %.*s", STR_F(strict_join(&c->strict)));
}

/* As upstream encodes it: the kind first, because stored objects omit it. */
static struct str patched_text(struct call *c, const cJSON *patched)
{
    struct str version = json_str_at(patched, "apiVersion"), kind = json_str_at(patched, "kind");
    cJSON *shown;

    if (!json_is_object(patched))
        return json_text(c->arena, patched);
    shown = json_new_object(c->arena);
    json_set_str(c->arena, shown, "apiVersion", version.n ? version : c->resource->api_version);
    json_set_str(c->arena, shown, "kind", kind.n ? kind : c->resource->kind);
    json_each(member, patched)
    {
        if (!json_get(shown, member->string))
            json_set(c->arena, shown, member->string, json_copy(c->arena, member));
    }
    return json_text(c->arena, shown);
}

int body_refuse_patched(struct call *c, const cJSON *patched, struct str why, struct err *err)
{
    struct field_errors e;

    field_errors_init(&e, c->arena);
    /* For a strategic patch upstream shows the patch. */
    field_invalid_str(&e, FIELD(NULL, "patch"),
                      c->patch == PATCH_TYPE_STRATEGIC ? patch_print(c->arena, c->body)
                                                       : patched_text(c, patched),
                      why.p);
    return field_errors_to_err(&e, STR(""), STR(""), STR(""), err);
}

int body_strict(struct call *c, const cJSON *patched, struct err *err)
{
    if (!c->strict.n || c->options.validation == VALIDATION_IGNORE)
        return 0;
    /* For custom resources upstream reports duplicates first, in the order they were found. */
    if (!patched && !is_custom_body(c)) {
        enum body_format format;
        struct err ignored;

        err_init(&ignored, c->arena);
        if (body_format(c, &format, &ignored) == 0 && format == FORMAT_JSON)
            strict_order(&c->strict, c->request->body);
    }
    if (c->options.validation == VALIDATION_WARN) {
        for (size_t i = 0; i < c->strict.n; i++)
            call_warn(c, c->strict.text[i]);
        return 0;
    }
    if (patched)
        return body_refuse_patched(c, patched, strict_text(c), err);
    return body_refuse(c, strict_text(c).p, err);
}
