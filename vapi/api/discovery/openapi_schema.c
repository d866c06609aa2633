/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Built-in types in OpenAPI, from the type table. v3 wraps references that have siblings in allOf
 * and knows defaults; v2 knows neither, and unions of types become strings. Descriptions are the
 * host's. Must never build a component that nothing in the document refers to. Source: kube-openapi
 * pkg/generators, pkg/builder and pkg/builder3. */
#include "openapi.h"

#include <assert.h>
#include <string.h>

#include <sublet/crd.h>
#include <sublet/json_build.h>
#include <sublet/published.h>

#define REF_V2         "#/definitions/"
#define REF_V3         "#/components/schemas/"
#define MAX_TEXT       (16u * 1024)
#define GROUP_ANY      "meta.k8s.io"
#define GROUP_NAMELESS "published"

static const struct scalar {
    const char *type, *format;
} SCALARS[] = {
    [SCHEMA_ANY] = {NULL, NULL},
    [SCHEMA_STRING] = {"string", NULL},
    [SCHEMA_BOOL] = {"boolean", NULL},
    [SCHEMA_INT32] = {"integer", "int32"},
    [SCHEMA_INT64] = {"integer", "int64"},
    [SCHEMA_UINT32] = {"integer", "int64"},
    [SCHEMA_UINT64] = {"integer", "int64"},
    [SCHEMA_UINT8] = {"integer", "byte"},
    [SCHEMA_DOUBLE] = {"number", "double"},
    [SCHEMA_BYTES] = {"string", "byte"},
    [SCHEMA_QUANTITY] = {"string", NULL},
    [SCHEMA_INT_OR_STRING] = {"string", "int-or-string"},
    [SCHEMA_TIME] = {"string", "date-time"},
    [SCHEMA_MICRO_TIME] = {"string", "date-time"},
    [SCHEMA_DURATION] = {"string", NULL},
    [SCHEMA_FIELDS_V1] = {"object", NULL},
    [SCHEMA_UNSTRUCTURED] = {"object", NULL},
};

/* Types whose fields exclude each other: k8s.io/api's union tags, which no other tag implies. */
static const struct {
    const char *type, *unions;
} UNIONS[] = {
    {"io.k8s.api.core.v1.AppArmorProfile",
     "[{\"discriminator\":\"type\",\"fields-to-discriminateBy\":{\"localhostProfile\":"
     "\"LocalhostProfile\"}}]"},
    {"io.k8s.api.core.v1.PodSchedulingGroup",
     "[{\"fields-to-discriminateBy\":{\"podGroupName\":\"PodGroupName\"}}]"},
    {"io.k8s.api.core.v1.SeccompProfile",
     "[{\"discriminator\":\"type\",\"fields-to-discriminateBy\":{\"localhostProfile\":"
     "\"LocalhostProfile\"}}]"},
    {"io.k8s.api.flowcontrol.v1.LimitResponse",
     "[{\"discriminator\":\"type\",\"fields-to-discriminateBy\":{\"queuing\":\"Queuing\"}}]"},
    {"io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec",
     "[{\"discriminator\":\"type\",\"fields-to-discriminateBy\":{\"exempt\":\"Exempt\","
     "\"limited\":\"Limited\"}}]"},
    {"io.k8s.api.flowcontrol.v1.Subject",
     "[{\"discriminator\":\"kind\",\"fields-to-discriminateBy\":{\"group\":\"Group\","
     "\"serviceAccount\":\"ServiceAccount\",\"user\":\"User\"}}]"},
};

/* Descriptions of our own for the fields of every object, when the host has none. */
#define META "io.k8s.apimachinery.pkg.apis.meta.v1."
static const struct {
    const char *type, *field, *text; /* type NULL: any; field NULL: the type itself */
} OWN_DESCRIPTIONS[] = {
    {NULL, "apiVersion", "APIVersion defines the group and version this object is written in."},
    {NULL, "kind", "Kind names what this object is; the server may infer it from the request."},
    {NULL, "metadata", "Standard object's metadata: its names, labels, owners and lifecycle."},
    {META "ObjectMeta", NULL,
     "Metadata every object has: its names, labels, owners and lifecycle."},
    {META "ObjectMeta", "annotations",
     "Annotations hold arbitrary data that tools store with the object."},
    {META "ObjectMeta", "creationTimestamp",
     "CreationTimestamp is the time at which the server created the object. Read-only."},
    {META "ObjectMeta", "deletionTimestamp",
     "DeletionTimestamp is the time after which the object is deleted. Read-only."},
    {META "ObjectMeta", "finalizers", "The object is removed only when this list is empty."},
    {META "ObjectMeta", "generateName", "A prefix, from which the server generates a unique name."},
    {META "ObjectMeta", "generation", "A sequence number of the desired state. Read-only."},
    {META "ObjectMeta", "labels", "Labels are key-value pairs that selectors match."},
    {META "ObjectMeta", "managedFields", "The managers of fields, for server-side apply."},
    {META "ObjectMeta", "name", "Name is unique within a namespace, for its kind."},
    {META "ObjectMeta", "namespace", "Namespace is the scope in which the name is unique."},
    {META "ObjectMeta", "ownerReferences",
     "The object is garbage collected when all of these are deleted."},
    {META "ObjectMeta", "resourceVersion", "Changes with every write of the object. Read-only."},
    {META "ObjectMeta", "uid", "UID is unique in time and space. Read-only."},
    {META "ListMeta", NULL, "Metadata every list has."},
    {META "ListMeta", "continue", "A token to request the next page."},
    {META "ListMeta", "remainingItemCount", "The number of items after this page."},
    {META "ListMeta", "resourceVersion", "The revision of the state the list shows."},
};

cJSON *openapi_ref(struct document *d, const char *component)
{
    cJSON *ref = json_new_object(d->arena);

    json_set_str(d->arena, ref, "$ref",
                 arena_concat(d->arena, 2,
                              (struct str[]){d->v2 ? STR(REF_V2) : STR(REF_V3), str_c(component)}));
    return ref;
}

cJSON *openapi_gvk(struct arena *a, struct str group, struct str version, struct str kind)
{
    return json_object(a, JSON("group", group), JSON("kind", kind), JSON("version", version));
}

/* ---- descriptions ---- */

struct str openapi_describe(struct document *d, const char *type, const char *field)
{
    const cJSON *at = json_get(d->text, type);
    struct str text;

    if (field)
        at = json_get(json_get(at, "properties"), field);
    text = json_str(json_get(at, "description"));
    if (text.n)
        return str_sub(text, 0, MAX_TEXT);
    for (size_t i = 0; i < COUNT(OWN_DESCRIPTIONS); i++) {
        bool same_field =
            field ? OWN_DESCRIPTIONS[i].field && !strcmp(field, OWN_DESCRIPTIONS[i].field)
                  : !OWN_DESCRIPTIONS[i].field;

        if (same_field && (!OWN_DESCRIPTIONS[i].type || !strcmp(type, OWN_DESCRIPTIONS[i].type)))
            return str_c(OWN_DESCRIPTIONS[i].text);
    }
    return STR("");
}

static void describe(struct document *d, cJSON *schema, const char *type, const char *field)
{
    struct str text = openapi_describe(d, type, field);

    /* The cut may split a character. */
    while (text.n && !str_is_utf8(text))
        text.n--;
    if (text.n)
        json_set_str(d->arena, schema, "description", text);
}

/* ---- the parts of a schema ---- */

static cJSON *schema_of(struct document *d, uint32_t node);

static const char *text_at(uint32_t offset)
{
    return schema_text(&SCHEMA_BUILTIN, offset);
}

static cJSON *list_of(struct arena *a, const char *words)
{
    cJSON *list = json_new_array(a);

    for (; *words; words += strlen(words) + 1)
        json_append(list, json_new_string(a, str_c(words)));
    return list;
}

static cJSON *lines_of(struct arena *a, const char *text)
{
    cJSON *list = json_new_array(a);
    struct str rest = str_c(text);

    while (rest.p)
        json_append(list, json_new_string(a, str_cut(&rest, '\n')));
    return list;
}

static void add_patch(struct document *d, cJSON *out, const struct schema_field *f)
{
    static const char *const strategies[] = {NULL, "merge", "retainKeys", "merge,retainKeys"};
    const char *strategy = strategies[f->patch & (PATCH_MERGE | PATCH_RETAIN_KEYS)];

    if (f->patch & PATCH_WHOLE)
        strategy = "replace";
    if (f->patch_key)
        json_set_str(d->arena, out, "x-kubernetes-patch-merge-key", str_c(text_at(f->patch_key)));
    if (strategy)
        json_set_str(d->arena, out, "x-kubernetes-patch-strategy", str_c(strategy));
}

static cJSON *zero_value(struct arena *a, const struct schema_node *n)
{
    switch ((enum schema_kind)n->kind) {
    case SCHEMA_OBJECT:
        return json_new_object(a);
    case SCHEMA_STRING:
        return json_new_string(a, STR(""));
    case SCHEMA_BOOL:
        return json_new_bool(a, false);
    case SCHEMA_INT32:
    case SCHEMA_INT64:
    case SCHEMA_UINT32:
    case SCHEMA_UINT64:
    case SCHEMA_UINT8:
    case SCHEMA_DOUBLE:
        return json_new_i64(a, 0);
    default:
        return NULL;
    }
}

/* The zero value of Go's decoder, for a field that is not a pointer. */
static void add_field_default(struct document *d, cJSON *out, const struct schema_field *f)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, f->node);
    bool is_struct = n->kind == SCHEMA_OBJECT && !(f->flags & FIELD_POINTER);
    cJSON *value = NULL;
    struct err ignored;

    if (d->v2)
        return;
    err_init(&ignored, d->arena);
    if (f->default_json && json_parse(d->arena, str_c(text_at(f->default_json)), &value, &ignored))
        value = NULL;
    else if (!f->default_json && (is_struct || f->patch & PATCH_ZERO))
        value = zero_value(d->arena, n);
    if (value)
        json_set(d->arena, out, "default", value);
}

/* v3 ignores siblings of a reference: it goes into allOf. */
static cJSON *with_siblings(struct document *d, cJSON *schema)
{
    cJSON *all;

    if (d->v2 || !json_get(schema, "$ref"))
        return schema;
    all = json_new_object(d->arena);
    json_append(json_set(d->arena, all, "allOf", json_new_array(d->arena)), schema);
    return all;
}

/* Items of lists and values of maps. */
static cJSON *element_of(struct document *d, uint32_t node)
{
    cJSON *schema = schema_of(d, node);
    cJSON *zero = d->v2 ? NULL : zero_value(d->arena, schema_node(&SCHEMA_BUILTIN, node));

    if (!zero)
        return schema;
    schema = with_siblings(d, schema);
    json_set(d->arena, schema, "default", zero);
    return schema;
}

static cJSON *list_schema(struct document *d, const struct schema_node *n)
{
    static const char *const types[] = {"atomic", "set", "map"};
    struct arena *a = d->arena;
    struct str type = n->flags & NODE_TYPE_PUBLISHED ? str_c(types[n->list_type]) : STR_NULL;

    return json_object(
        a, JSON("type", "array"), JSON("items", element_of(d, n->elem)),
        JSON("x-kubernetes-list-map-keys", n->keys ? list_of(a, text_at(n->keys)) : NULL),
        JSON_NONEMPTY("x-kubernetes-list-type", type));
}

static cJSON *scalar_schema(struct document *d, const struct schema_node *n)
{
    const struct scalar *s = &SCALARS[n->kind];
    bool atomic = n->kind == SCHEMA_BYTES && n->flags & NODE_TYPE_PUBLISHED;
    bool enumerated = n->kind == SCHEMA_STRING && n->keys;

    return json_object(d->arena, JSON_NONEMPTY("type", str_c(s->type)),
                       JSON_NONEMPTY("format", str_c(s->format)),
                       JSON_NONEMPTY("x-kubernetes-list-type", atomic ? STR("atomic") : STR_NULL),
                       JSON("enum", enumerated ? lines_of(d->arena, text_at(n->keys)) : NULL));
}

/* Types that OpenAPI knows by name; others are expanded in place. */
static bool is_component(const struct schema_node *n)
{
    switch ((enum schema_kind)n->kind) {
    case SCHEMA_ANY:
    case SCHEMA_OBJECT:
    case SCHEMA_QUANTITY:
    case SCHEMA_INT_OR_STRING:
    case SCHEMA_TIME:
    case SCHEMA_MICRO_TIME:
    case SCHEMA_DURATION:
    case SCHEMA_FIELDS_V1:
        return n->type_name != 0;
    default:
        return false;
    }
}

static cJSON *schema_of(struct document *d, uint32_t node)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);

    if (is_component(n))
        return openapi_ref(d, openapi_want(d, node));
    if (n->kind == SCHEMA_LIST)
        return list_schema(d, n);
    if (n->kind == SCHEMA_MAP) {
        cJSON *out = json_new_object(d->arena);

        json_set_str(d->arena, out, "type", STR("object"));
        json_set(d->arena, out, "additionalProperties", element_of(d, n->elem));
        return out;
    }
    return scalar_schema(d, n);
}

/* ---- components ---- */

static void add_property(struct document *d, cJSON *properties, const char *type,
                         const struct schema_field *f)
{
    const char *name = text_at(f->name);
    cJSON *property = schema_of(d, f->node), *more = json_new_object(d->arena);
    const struct schema_node *n;
    bool is_map;

    describe(d, more, type, name);
    add_field_default(d, more, f);
    add_patch(d, more, f);

    /* For a field that holds a map or an object; objects that are atomic everywhere declare it
     * themselves. */
    n = schema_node(&SCHEMA_BUILTIN, f->node);
    is_map = n->kind == SCHEMA_MAP || n->kind == SCHEMA_OBJECT;
    if (is_map && n->flags & NODE_TYPE_PUBLISHED)
        json_set_str(d->arena, more, "x-kubernetes-map-type",
                     n->list_type == LIST_ATOMIC ? STR("atomic") : STR("granular"));

    if (json_count(more))
        property = with_siblings(d, property);
    json_each(m, more) json_set(d->arena, property, m->string, json_copy(d->arena, m));
    json_set(d->arena, properties, name, property);
}

static void add_unions(struct document *d, cJSON *out, const char *type)
{
    cJSON *unions;
    struct err ignored;

    err_init(&ignored, d->arena);
    for (size_t i = 0; i < COUNT(UNIONS); i++) {
        if (!strcmp(UNIONS[i].type, type) &&
            !json_parse(d->arena, str_c(UNIONS[i].unions), &unions, &ignored))
            json_set(d->arena, out, "x-kubernetes-unions", unions);
    }
}

/* v3: a value of one of two types. */
static cJSON *either_of(struct document *d, const char *format, const char *first,
                        const char *second)
{
    const char *const types[] = {first, second};
    cJSON *out = json_new_object(d->arena), *one_of;

    if (format)
        json_set_str(d->arena, out, "format", str_c(format));
    one_of = json_set(d->arena, out, "oneOf", json_new_array(d->arena));
    for (size_t i = 0; i < 2; i++)
        json_set_str(d->arena, json_append(one_of, json_new_object(d->arena)), "type",
                     str_c(types[i]));
    return out;
}

static cJSON *component_schema(struct document *d, const struct schema_node *n)
{
    const char *type = text_at(n->type_name);
    cJSON *out;

    if (n->kind == SCHEMA_QUANTITY && !d->v2)
        return either_of(d, NULL, "string", "number");
    if (n->kind == SCHEMA_INT_OR_STRING && !d->v2)
        return either_of(d, "int-or-string", "integer", "string");
    out = scalar_schema(d, n);
    /* RawExtension is an object of any shape; JSON and similar types are any value. */
    if (n->kind == SCHEMA_OBJECT || (n->kind == SCHEMA_ANY && n->list_type == LIST_ATOMIC))
        json_set_str(d->arena, out, "type", STR("object"));
    if (n->kind == SCHEMA_OBJECT) {
        cJSON *properties = json_new_object(d->arena);
        cJSON *required = json_new_array(d->arena);

        for (uint32_t i = n->first_field; i < n->first_field + n->n_fields; i++) {
            const struct schema_field *f = &SCHEMA_BUILTIN.fields[i];

            if (f->flags & FIELD_INLINE)
                continue; /* its members follow it in the table */
            add_property(d, properties, text_at(n->type_name), f);
            if (f->flags & FIELD_REQUIRED)
                json_append(required, json_new_string(d->arena, str_c(text_at(f->name))));
        }
        if (json_count(required))
            json_set(d->arena, out, "required", required);
        if (json_count(properties))
            json_set(d->arena, out, "properties", properties);

        if (n->list_type == LIST_ATOMIC)
            json_set_str(d->arena, out, "x-kubernetes-map-type", STR("atomic"));
        add_unions(d, out, type);
    }
    return out;
}

struct kind_list {
    struct document *d;
    cJSON *list;
    struct str kind, last;
};

static bool add_version(void *ctx, const struct resource *r)
{
    struct kind_list *l = ctx;

    if (r->crd || str_eq(r->api_version, l->last) || (!r->group.n && str_eqc(r->version, "v1")))
        return true;
    l->last = r->api_version;
    json_append(l->list, openapi_gvk(l->d->arena, r->group, r->version, l->kind));
    return true;
}

static void add_common_kind(struct document *d, cJSON *list, struct str kind)
{
    struct kind_list l = {d, list, kind, STR("")};

    json_append(list, openapi_gvk(d->arena, STR(""), STR("v1"), kind));

    /* Kinds that upstream registers in every group: core's, and in v3 the document's own. */
    if (!(str_eqc(kind, "DeleteOptions") || str_eqc(kind, "WatchEvent")))
        return;
    if (d->v2)
        registry_each(vapi_registry(d->api), add_version, &l);
    else if (d->group.n)
        json_append(list, openapi_gvk(d->arena, d->group, d->version, kind));
}

/* A type whose uses differ has several nodes: they are one component. */
const char *openapi_want(struct document *d, uint32_t node)
{
    const struct schema_node *wanted = schema_node(&SCHEMA_BUILTIN, node);
    uint32_t name = wanted->type_name, plain = node;

    if (d->seen[node])
        return text_at(name);
    for (uint32_t i = 0; i < SCHEMA_BUILTIN.n_nodes; i++) {
        const struct schema_node *n = &SCHEMA_BUILTIN.nodes[i];

        if (n->type_name != name)
            continue;
        d->seen[i] = 1;
        if (!(n->flags & NODE_TYPE_PUBLISHED) && is_component(n) && n->kind == wanted->kind)
            plain = i;
    }
    d->todo[d->n_todo++] = plain;
    return text_at(name);
}

const char *openapi_want_type(struct document *d, const char *type)
{
    uint32_t i = 0;

    while (i < SCHEMA_BUILTIN.n_nodes && strcmp(text_at(SCHEMA_BUILTIN.nodes[i].type_name), type))
        i++;
    assert(i < SCHEMA_BUILTIN.n_nodes); /* the named types are in the table */
    return openapi_want(d, i);
}

void openapi_make_wanted(struct document *d)
{
    struct schema_kind_name name;
    cJSON *list;
    uint32_t at;

    while (d->n_todo) {
        uint32_t node = d->todo[--d->n_todo];
        const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);
        const char *type = text_at(n->type_name);
        cJSON *made = component_schema(d, n);

        describe(d, made, type, NULL);

        list = json_new_array(d->arena);
        at = 0;
        while (schema_root_next(node, &at, &name)) {
            bool nameless = str_eqc(name.group, GROUP_NAMELESS);

            if (nameless && !str_has_prefix(name.kind, STR("API")))
                continue; /* the body of a patch, the answer of /version: without a group */
            if (nameless || str_eqc(name.group, GROUP_ANY))
                add_common_kind(d, list, name.kind);
            else
                json_append(list, openapi_gvk(d->arena, name.group, name.version, name.kind));
        }
        if (json_count(list))
            json_set(d->arena, made, "x-kubernetes-group-version-kind", list);

        openapi_document_add_schema(d, type, made);
    }
}
