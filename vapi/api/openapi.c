/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI v3, made from the type table and the registry when asked for: an index, and one document
 * per group and version with its paths and the schemas they reach. Clients read it to know field
 * types, merge keys, and whether a server validates fields. No descriptions: those of built-in
 * kinds are the host's. */
#include <sublet/call.h>

#include <string.h>

#include <sublet/crd.h>
#include <sublet/encode.h>

#include "api.h"

#define REF_PREFIX "#/components/schemas/"

/* --- schemas --- */

struct document {
    struct arena *arena;
    cJSON *schemas;
    const struct schema *schema;
    unsigned char *seen; /* per node: its component is made or waits */
    uint32_t *todo;
    size_t n_todo;
};

static const struct {
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
    [SCHEMA_INT_OR_STRING] = {NULL, "int-or-string"},
    [SCHEMA_TIME] = {"string", "date-time"},
    [SCHEMA_MICRO_TIME] = {"string", "date-time"},
    [SCHEMA_DURATION] = {"string", NULL},
    [SCHEMA_FIELDS_V1] = {"object", NULL},
    [SCHEMA_UNSTRUCTURED] = {"object", NULL},
};

static cJSON *ref_to(struct arena *a, const char *type_name)
{
    cJSON *ref = json_new_object(a);

    json_set_str(a, ref, "$ref",
                 arena_concat(a, 2, (struct str[]){STR(REF_PREFIX), str_c(type_name)}));
    return ref;
}

static cJSON *schema_of(struct document *d, uint32_t node);

static void add_list_type(struct document *d, cJSON *out, const struct schema_node *n)
{
    static const char *const types[] = {"atomic", "set", "map"};
    const char *key = n->keys ? schema_text(d->schema, n->keys) : NULL;

    json_set_str(d->arena, out, "x-kubernetes-list-type", str_c(types[n->list_type]));
    if (!key || !*key)
        return;
    cJSON *keys = json_set(d->arena, out, "x-kubernetes-list-map-keys", json_new_array(d->arena));
    for (; *key; key += strlen(key) + 1)
        json_append(keys, json_new_string(d->arena, str_c(key)));
}

static void add_patch(struct document *d, cJSON *out, const struct schema_field *f)
{
    if (f->patch) {
        bool retain = f->patch & PATCH_RETAIN_KEYS, merge = f->patch & PATCH_MERGE;

        json_set_str(d->arena, out, "x-kubernetes-patch-strategy",
                     merge && retain ? STR("merge,retainKeys")
                     : merge         ? STR("merge")
                                     : STR("retainKeys"));
    }
    if (f->patch_key)
        json_set_str(d->arena, out, "x-kubernetes-patch-merge-key",
                     str_c(schema_text(d->schema, f->patch_key)));
}

static cJSON *properties_of(struct document *d, const struct schema_node *n, cJSON *required)
{
    cJSON *properties = json_new_object(d->arena);

    for (uint32_t i = n->first_field; i < n->first_field + n->n_fields; i++) {
        const struct schema_field *f = &d->schema->fields[i];
        if (f->flags & FIELD_INLINE)
            continue; /* its members stand beside it in the table */
        const char *name = schema_text(d->schema, f->name);
        cJSON *property = schema_of(d, f->node);

        if (json_get(property, "$ref")) { /* siblings of a $ref would be ignored */
            cJSON *all = json_new_object(d->arena);
            json_append(json_set(d->arena, all, "allOf", json_new_array(d->arena)), property);
            property = all;
        }
        add_patch(d, property, f);
        json_set(d->arena, properties, name, property);
        if (f->flags & FIELD_REQUIRED)
            json_append(required, json_new_string(d->arena, str_c(name)));
    }
    return properties;
}

static cJSON *object_schema(struct document *d, const struct schema_node *n)
{
    cJSON *out = json_new_object(d->arena), *required = json_new_array(d->arena);

    json_set_str(d->arena, out, "type", STR("object"));
    if (n->n_fields) {
        cJSON *properties = properties_of(d, n, required);
        if (json_count(required))
            json_set(d->arena, out, "required", required);
        json_set(d->arena, out, "properties", properties);
    }
    return out;
}

static cJSON *scalar_schema(struct document *d, unsigned kind)
{
    cJSON *out = json_new_object(d->arena);

    if (SCALARS[kind].type)
        json_set_str(d->arena, out, "type", str_c(SCALARS[kind].type));
    if (SCALARS[kind].format)
        json_set_str(d->arena, out, "format", str_c(SCALARS[kind].format));
    if (kind == SCHEMA_INT_OR_STRING) {
        static const char *const types[] = {"integer", "string"};
        cJSON *one_of = json_set(d->arena, out, "oneOf", json_new_array(d->arena));

        for (size_t i = 0; i < 2; i++)
            json_set_str(d->arena, json_append(one_of, json_new_object(d->arena)), "type",
                         str_c(types[i]));
    }
    return out;
}

/* A named object becomes a reference, and its component is made later. */
static cJSON *schema_of(struct document *d, uint32_t node)
{
    const struct schema_node *n = schema_node(d->schema, node);
    cJSON *out;

    switch ((enum schema_kind)n->kind) {
    case SCHEMA_OBJECT:
        if (!n->type_name)
            return object_schema(d, n);
        if (!d->seen[node]) {
            d->seen[node] = 1;
            d->todo[d->n_todo++] = node;
        }
        return ref_to(d->arena, schema_text(d->schema, n->type_name));
    case SCHEMA_MAP:
        out = scalar_schema(d, SCHEMA_UNSTRUCTURED);
        json_set(d->arena, out, "additionalProperties", schema_of(d, n->elem));
        return out;
    case SCHEMA_LIST:
        out = json_new_object(d->arena);
        json_set_str(d->arena, out, "type", STR("array"));
        json_set(d->arena, out, "items", schema_of(d, n->elem));
        add_list_type(d, out, n);
        return out;
    default:
        return scalar_schema(d, n->kind);
    }
}

static void make_components(struct document *d)
{
    while (d->n_todo) {
        uint32_t node = d->todo[--d->n_todo];
        const struct schema_node *n = schema_node(d->schema, node);

        json_set(d->arena, d->schemas, schema_text(d->schema, n->type_name), object_schema(d, n));
    }
}

/* --- paths --- */

static cJSON *gvk_of(struct arena *a, const struct resource *r)
{
    cJSON *gvk = json_new_object(a);

    json_set_str(a, gvk, "group", r->group);
    json_set_str(a, gvk, "version", r->version);
    json_set_str(a, gvk, "kind", r->kind);
    return gvk;
}

static void add_parameter(struct arena *a, cJSON *list, const char *name, const char *in,
                          const char *type)
{
    cJSON *p = json_append(list, json_new_object(a));
    cJSON *schema;

    json_set_str(a, p, "name", str_c(name));
    json_set_str(a, p, "in", str_c(in));
    if (!strcmp(in, "path"))
        json_set_bool(a, p, "required", true);
    schema = json_ensure_object(a, p, "schema");
    json_set_str(a, schema, "type", str_c(type));
    json_set_bool(a, schema, "uniqueItems", true);
}

struct operation {
    unsigned verb;
    const char *method, *action;
    bool writes, has_body;
};
static const struct operation ITEM_OPERATIONS[] = {
    {VERB_GET, "get", "get", false, false},
    {VERB_UPDATE, "put", "put", true, true},
    {VERB_PATCH, "patch", "patch", true, true},
    {VERB_DELETE, "delete", "delete", false, false},
};
static const struct operation COLLECTION_OPERATIONS[] = {
    {VERB_LIST, "get", "list", false, false},
    {VERB_CREATE, "post", "post", true, true},
    {VERB_DELETECOLLECTION, "delete", "deletecollection", false, false},
};

static cJSON *content_of(struct arena *a, const char *const *types, const char *component)
{
    cJSON *content = json_new_object(a);

    for (; *types; types++)
        json_set(a, json_ensure_object(a, content, *types), "schema", ref_to(a, component));
    return content;
}

static void add_operation(struct arena *a, cJSON *path, const struct resource *r,
                          const struct operation *op, const char *component)
{
    static const char *const bodies[] = {"application/json", "application/yaml", NULL};
    static const char *const patches[] = {
        "application/apply-patch+yaml", "application/json-patch+json",
        "application/merge-patch+json", "application/strategic-merge-patch+json", NULL};
    bool patch = op->verb == VERB_PATCH;
    cJSON *o = json_ensure_object(a, path, op->method);
    cJSON *ok;

    if (op->writes) {
        cJSON *parameters = json_set(a, o, "parameters", json_new_array(a));
        add_parameter(a, parameters, "dryRun", "query", "string");
        add_parameter(a, parameters, "fieldManager", "query", "string");
        add_parameter(a, parameters, "fieldValidation", "query", "string");
        if (patch)
            add_parameter(a, parameters, "force", "query", "boolean");
    }
    if (op->has_body)
        json_set(a, json_ensure_object(a, o, "requestBody"), "content",
                 content_of(a, patch ? patches : bodies, component));
    ok = json_ensure_object(a, json_ensure_object(a, o, "responses"), "200");
    json_set_str(a, ok, "description", STR("OK"));
    json_set(a, ok, "content", content_of(a, bodies, component));
    json_set_str(a, o, "x-kubernetes-action", str_c(op->action));
    json_set(a, o, "x-kubernetes-group-version-kind", gvk_of(a, r));
}

static void add_path(struct arena *a, cJSON *paths, const struct resource *r, struct str text,
                     unsigned verbs, const struct operation *ops, size_t n, const char *component)
{
    cJSON *path = json_ensure_object(a, paths, text.p);

    for (size_t i = 0; i < n; i++) {
        if (verbs & ops[i].verb)
            add_operation(a, path, r, &ops[i], component);
    }
    cJSON *parameters = json_set(a, path, "parameters", json_new_array(a));
    if (str_contains(text, STR("{name}")))
        add_parameter(a, parameters, "name", "path", "string");
    if (str_contains(text, STR("{namespace}")))
        add_parameter(a, parameters, "namespace", "path", "string");
}

/* "com.example.stable.v1.CronTab" of group stable.example.com. */
static const char *component_name(struct arena *a, const struct resource *r)
{
    const struct schema_node *n = schema_node(r->schema, r->node);
    struct str group = r->group, reversed = STR("");

    if (!r->crd)
        return schema_text(r->schema, n->type_name);
    while (group.p) {
        struct str part = str_cut(&group, '.');

        reversed = reversed.n ? arena_concat(a, 3, (struct str[]){part, STR("."), reversed}) : part;
    }
    return arena_printf(a, "%.*s.%.*s.%.*s", STR_F(reversed), STR_F(r->version), STR_F(r->kind)).p;
}

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct build {
    struct call *call;
    struct document *d;
    struct str group, version, root;
    cJSON *paths;
    bool found;
};

static void add_resource(struct build *b, const struct resource *r)
{
    struct arena *a = b->call->arena;
    const char *component = component_name(a, r);
    const char *ns = resource_namespaced(r) ? "namespaces/{namespace}/" : "";
    struct str collection = arena_printf(a, "/%.*s/%s%.*s", STR_F(b->root), ns, STR_F(r->plural));
    struct str item = arena_printf(a, "%.*s/{name}", STR_F(collection));

    add_path(a, b->paths, r, collection, r->verbs, COLLECTION_OPERATIONS,
             COUNT(COLLECTION_OPERATIONS), component);
    if (r->verbs & (VERB_GET | VERB_UPDATE | VERB_PATCH | VERB_DELETE))
        add_path(a, b->paths, r, item, r->verbs, ITEM_OPERATIONS, COUNT(ITEM_OPERATIONS),
                 component);
    for (size_t i = 0; i < r->n_subresources; i++) {
        const struct subresource *s = &r->subresources[i];
        struct str path = arena_printf(a, "%.*s/%s", STR_F(item), s->name);

        add_path(a, b->paths, r, path, s->verbs, ITEM_OPERATIONS, COUNT(ITEM_OPERATIONS),
                 component);
    }
    if (r->crd) {
        cJSON *schema = json_copy(a, crd_openapi(r->crd));
        cJSON *list = json_set(a, schema, "x-kubernetes-group-version-kind", json_new_array(a));

        json_append(list, gvk_of(a, r));
        json_set(a, b->d->schemas, component, schema);
        return;
    }
    schema_of(b->d, r->node);
    make_components(b->d);
    cJSON *made = json_get(b->d->schemas, component);
    if (made && !json_get(made, "x-kubernetes-group-version-kind"))
        json_append(json_set(a, made, "x-kubernetes-group-version-kind", json_new_array(a)),
                    gvk_of(a, r));
}

static bool on_resource(void *ctx, const struct resource *r)
{
    struct build *b = ctx;

    if (str_eq(r->group, b->group) && str_eq(r->version, b->version)) {
        b->found = true;
        add_resource(b, r);
    }
    return true;
}

/* --- documents --- */

/* Changes with our version, the group's name, and for groups of CRDs with every change of them. */
static struct str document_hash(struct call *c, struct str root)
{
    unsigned char digest[32];
    struct str text = arena_printf(c->arena, "%s %.*s %llu", c->api->version, STR_F(root),
                                   (unsigned long long)registry_generation(vapi_registry(c->api)));

    sha256(text, digest);
    return hex_encode(c->arena, (struct str){(const char *)digest, sizeof(digest)});
}

static cJSON *document_new(struct call *c)
{
    cJSON *doc = json_new_object(c->arena), *info;

    json_set_str(c->arena, doc, "openapi", STR("3.0.0"));
    info = json_ensure_object(c->arena, doc, "info");
    json_set_str(c->arena, info, "title", STR("Kubernetes"));
    json_set_str(c->arena, info, "version", str_c(c->api->version));
    return doc;
}

static cJSON *document_build(struct call *c, struct str group, struct str version, struct str root)
{
    cJSON *doc = document_new(c);
    uint32_t nodes = SCHEMA_BUILTIN.n_nodes;
    struct document d = {.arena = c->arena, .schema = &SCHEMA_BUILTIN};
    struct build b = {.call = c, .d = &d, .group = group, .version = version, .root = root};

    d.seen = arena_alloc(c->arena, nodes);
    d.todo = arena_alloc(c->arena, nodes * sizeof(*d.todo));
    b.paths = json_ensure_object(c->arena, doc, "paths");
    d.schemas = json_new_object(c->arena);
    registry_each(vapi_registry(c->api), on_resource, &b);
    if (!b.found)
        return NULL;
    json_set(c->arena, json_ensure_object(c->arena, doc, "components"), "schemas", d.schemas);
    return doc;
}

struct index {
    struct call *call;
    cJSON *paths;
};

static bool on_index(void *ctx, const struct resource *r)
{
    struct index *x = ctx;
    struct arena *a = x->call->arena;
    struct str root = arena_printf(a, "%s%.*s%s%.*s", r->group.n ? "apis/" : "api", STR_F(r->group),
                                   "/", STR_F(r->version));

    if (!json_get(x->paths, root.p)) {
        struct str hash = document_hash(x->call, root);
        cJSON *entry = json_ensure_object(a, x->paths, root.p);

        json_set_str(a, entry, "serverRelativeURL",
                     arena_printf(a, "/openapi/v3/%s?hash=%s", root.p, hash.p));
    }
    return true;
}

static void answer_index(struct call *c)
{
    cJSON *doc = json_new_object(c->arena);
    struct index x = {.call = c, .paths = json_ensure_object(c->arena, doc, "paths")};

    registry_each(vapi_registry(c->api), on_index, &x);
    call_raw(c, 200, STR("application/json"), json_text(c->arena, doc));
}

static void answer_document(struct call *c, struct str root)
{
    struct str rest = root, first = str_cut(&rest, '/');
    bool core = str_eqc(first, "api");
    struct str group = core ? STR("") : str_cut(&rest, '/');
    struct str etag = arena_printf(c->arena, "\"%.*s\"", STR_F(document_hash(c, root)));

    call_header(c, "etag", etag);
    call_header(c, "vary", STR("Accept"));
    if (str_eq(net_header(c->request, "if-none-match"), etag)) {
        call_raw(c, 304, STR("application/json"), STR(""));
        return;
    }
    cJSON *doc = rest.p ? document_build(c, group, rest, root) : NULL;
    if (doc)
        call_raw(c, 200, STR("application/json"), json_text(c->arena, doc));
    else
        call_raw(c, 404, STR("text/plain; charset=utf-8"), STR("404 page not found\n"));
}

bool openapi_handle(struct call *c, struct str path)
{
    if (str_eqc(path, "/openapi/v3") || str_eqc(path, "/openapi/v3/")) {
        answer_index(c);
        return true;
    }
    if (!str_has_prefix(path, STR("/openapi/v3/")))
        return false;
    answer_document(c, str_from(path, sizeof("/openapi/v3/") - 1));
    return true;
}
