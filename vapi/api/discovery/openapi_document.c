/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * One OpenAPI document from the registry: v2 of everything, v3 of one group and version, or of one
 * of the few endpoints that are no resources. Parts are built as small trees and printed at once,
 * as JSON or protobuf, so that a document needs little more memory than its bytes. Must never grow
 * beyond OPENAPI_MAX_DOCUMENT, whatever a tenant's CRDs hold. */
#include "openapi.h"

#include <string.h>

#include <sublet/crd.h>
#include <sublet/encode.h>
#include <sublet/json_build.h>

/* Part of every hash: incremented when the same inputs produce another document. */
#define OPENAPI_FORM "2"
#define CRD_TITLE    "Kubernetes CRD Swagger"
#define CRD_VERSION  "v0.1.0"

/* ---- parts ---- */

static void add_member(struct buf *b, struct str name, const cJSON *tree)
{
    if (b->n)
        buf_char(b, ',');
    buf_json_string(b, name);
    buf_char(b, ':');
    json_print(b, tree);
}

void openapi_document_add_path(struct document *d, struct str name, const cJSON *tree)
{
    if (d->protobuf)
        gnostic_add_named(&d->paths, d->v2 ? GNOSTIC_V2_PATHS : GNOSTIC_V3_PATHS, name, tree);
    else
        add_member(&d->paths, name, tree);
    arena_reset(d->arena);
}

void openapi_document_add_schema(struct document *d, const char *name, const cJSON *tree)
{
    if (d->protobuf)
        gnostic_add_named(&d->schemas, d->v2 ? GNOSTIC_V2_SCHEMA : GNOSTIC_V3_SCHEMA, str_c(name),
                          tree);
    else
        add_member(&d->schemas, str_c(name), tree);
    arena_reset(d->arena);
}

/* ---- resources of a root ---- */

/* "apis/apps/v1" -> apps, v1; "api/v1" -> "", v1; "apis/apps" -> apps, no version. */
static void split_root(struct str root, struct str *group, struct str *version)
{
    struct str rest = root, first = str_cut(&rest, '/');

    *group = *version = STR("");
    if (str_eqc(first, "api") && rest.p)
        *version = rest;
    if (!str_eqc(first, "apis") || !rest.p)
        return;
    *group = str_cut(&rest, '/');
    if (rest.p)
        *version = rest;
}

struct content {
    struct document *d;
    bool found, builtin;
};

static bool belongs(const struct document *d, const struct resource *r)
{
    return d->v2 || (str_eq(r->group, d->group) && str_eq(r->version, d->version));
}

static bool add_resource(void *ctx, const struct resource *r)
{
    struct content *c = ctx;
    struct document *d = c->d;

    if (!belongs(d, r))
        return true;
    c->found = true;
    c->builtin |= !r->crd;
    arena_reset(d->keep);
    if (r->crd)
        openapi_add_custom(d, r);
    openapi_resource_paths(d, r);
    return !d->paths.failed && !d->schemas.failed;
}

struct roots {
    struct vapi *api;
    void (*each)(void *ctx, struct str root);
    void *ctx;
    struct str group, version; /* the previous one */
    struct arena *arena;
};

static bool on_resource_root(void *ctx, const struct resource *r)
{
    struct roots *x = ctx;

    if (!str_eq(r->group, x->group) && r->group.n && !r->crd)
        x->each(x->ctx, arena_printf(x->arena, "apis/%.*s", STR_F(r->group)));
    if (!str_eq(r->group, x->group) || !str_eq(r->version, x->version))
        x->each(x->ctx, r->group.n ? arena_printf(x->arena, "apis/%.*s/%.*s", STR_F(r->group),
                                                  STR_F(r->version))
                                   : arena_printf(x->arena, "api/%.*s", STR_F(r->version)));
    x->group = r->group;
    x->version = r->version;
    return true;
}

void openapi_each_root(struct vapi *api, void (*each)(void *ctx, struct str root), void *ctx)
{
    struct roots x = {api, each, ctx, {"?", 1}, STR(""), arena_new(0)};

    for (const char *const *single = OPENAPI_SINGLE_ROOTS; *single; single++)
        each(ctx, str_c(*single));
    registry_each(vapi_registry(api), on_resource_root, &x);
    arena_free(x.arena);
}

struct builtin {
    struct str group, version;
    bool any, custom;
};

static bool on_builtin(void *ctx, const struct resource *r)
{
    struct builtin *b = ctx;

    if (!str_eq(r->group, b->group) || (b->version.n && !str_eq(r->version, b->version)))
        return true;
    b->any = true;
    b->custom |= r->crd != NULL;
    return !b->custom;
}

bool openapi_is_builtin(struct vapi *api, struct str root)
{
    struct builtin b = {.any = false};

    for (const char *const *single = OPENAPI_SINGLE_ROOTS; *single; single++)
        if (str_eqc(root, *single))
            return true;
    split_root(root, &b.group, &b.version);
    registry_each(vapi_registry(api), on_builtin, &b);
    return b.any && !b.custom;
}

static bool is_group(struct vapi *api, struct str group)
{
    struct builtin b = {.group = group};

    if (group.n)
        registry_each(vapi_registry(api), on_builtin, &b);
    return b.any && !b.custom;
}

/* ---- members around the parts ---- */

static cJSON *security(struct arena *a)
{
    cJSON *token =
        json_object(a, JSON("type", "apiKey"), JSON("name", "authorization"), JSON("in", "header"));

    return json_object(a, JSON("BearerToken", token));
}

/* All members but paths and schemas. */
static cJSON *head_of(struct arena *a, bool v2, bool custom)
{
    cJSON *head = json_new_object(a), *info, *list;
    bool crds_only = custom && !v2;

    json_set_str(a, head, v2 ? "swagger" : "openapi", v2 ? STR("2.0") : STR("3.0.0"));
    info = json_ensure_object(a, head, "info");
    json_set_str(a, info, "title", crds_only ? STR(CRD_TITLE) : STR("Kubernetes"));
    json_set_str(a, info, "version", crds_only ? STR(CRD_VERSION) : STR("1.36"));
    if (v2) {
        json_set(a, head, "parameters", openapi_parameters(a));
        list = json_set(a, head, "security", json_new_array(a));
        json_set(a, json_append(list, json_new_object(a)), "BearerToken", json_new_array(a));
        json_set(a, head, "securityDefinitions", security(a));
    } else if (!custom) {
        json_set(a, json_ensure_object(a, head, "components"), "securitySchemes", security(a));
    }
    return head;
}

static void add_object(struct buf *out, const char *name, struct str members)
{
    buf_printf(out, "\"%s\":{", name);
    buf_add(out, members);
    buf_char(out, '}');
}

/* The members of head, with paths and schemas inserted in order. */
static void print_json(struct buf *out, const struct document *d, const cJSON *head)
{
    const cJSON *schemes = json_path(head, "components.securitySchemes");

    buf_char(out, '{');
    json_each(m, head)
    {
        if (strcmp(m->string, "components"))
            buf_json_string(out, str_c(m->string)), buf_char(out, ':'), json_print(out, m),
                buf_char(out, ',');
    }
    add_object(out, "paths", buf_str(&d->paths));
    buf_addc(out, d->v2 ? "," : ",\"components\":{");
    if (d->v2 || d->schemas.n)
        add_object(out, d->v2 ? "definitions" : "schemas", buf_str(&d->schemas));
    if (schemes) {
        buf_addc(out, d->schemas.n ? ",\"securitySchemes\":" : "\"securitySchemes\":");
        json_print(out, schemes);
    }
    buf_addc(out, d->v2 ? "}" : "}}");
}

/* ---- documents ---- */

/* Paths other than resources. False when root is of none of these kinds. */
static bool add_plain_paths(struct document *d, struct str root, bool has_resources)
{
    if (openapi_single_path(d, root))
        return true;
    if (d->version.n) {
        if (has_resources)
            openapi_version_path(d, !d->group.n, d->group, d->version);
        return has_resources;
    }
    if (!is_group(d->api, d->group))
        return false;
    openapi_group_path(d, d->group);
    return true;
}

static void on_v2_root(void *ctx, struct str root)
{
    struct document *d = ctx;

    split_root(root, &d->group, &d->version);
    if (openapi_is_builtin(d->api, root))
        add_plain_paths(d, root, true);
}

static struct str make(struct document *d, struct str root)
{
    struct content c = {.d = d};
    bool custom;
    struct buf out;
    cJSON *head;

    if (!d->v2)
        split_root(root, &d->group, &d->version);
    if (d->v2 || d->version.n)
        registry_each(vapi_registry(d->api), add_resource, &c);
    custom = c.found && !c.builtin;
    if (d->v2)
        openapi_each_root(d->api, on_v2_root, d);
    else if (!custom && !add_plain_paths(d, root, c.found))
        return STR_NULL;
    if (d->v2)
        d->group = d->version = STR("");
    openapi_make_wanted(d);

    out = BUF_INIT(OPENAPI_MAX_DOCUMENT);
    arena_reset(d->arena);
    head = head_of(d->arena, d->v2, custom);
    buf_reserve(&out, d->paths.n + d->schemas.n + 16384);
    if (d->protobuf)
        gnostic_document(&out, d->v2, head, buf_str(&d->paths), buf_str(&d->schemas));
    else
        print_json(&out, d, head);
    if (out.failed || d->paths.failed || d->schemas.failed)
        buf_clear(&out);
    return buf_take(&out);
}

struct str openapi_document(struct vapi *api, const struct openapi_request *q)
{
    struct arena *tables = arena_new(0);
    struct document d = {
        .api = api,
        .v2 = q->v2,
        .protobuf = q->protobuf,
        .text = q->text,
        .keep = arena_new(0),
        .arena = arena_new(0),
        .seen = arena_alloc(tables, SCHEMA_BUILTIN.n_nodes),
        .todo = arena_alloc(tables, SCHEMA_BUILTIN.n_nodes * sizeof(uint32_t)),
        .paths = BUF_INIT(OPENAPI_MAX_DOCUMENT),
        .schemas = BUF_INIT(OPENAPI_MAX_DOCUMENT),
    };
    struct str made = make(&d, q->root);

    buf_fini(&d.paths);
    buf_fini(&d.schemas);
    arena_free(d.arena);
    arena_free(d.keep);
    arena_free(tables);
    return made;
}

/* ---- hashes ---- */

struct hash {
    struct str group, version;
    bool all;
    unsigned char digest[OPENAPI_DIGEST]; /* chained over all inputs so far */
};

static struct str bytes(const void *p, size_t n)
{
    return (struct str){p, n};
}

static bool hash_custom(void *ctx, const struct resource *r)
{
    struct hash *h = ctx;

    if (!r->crd || (!h->all && (!str_eq(r->group, h->group) || !str_eq(r->version, h->version))))
        return true;
    struct str parts[] = {
        bytes(h->digest, sizeof(h->digest)),
        r->api_version,
        r->kind,
        r->list_kind,
        r->plural,
        resource_namespaced(r) ? STR("n") : STR("c"),
        bytes(&r->n_subresources, sizeof(r->n_subresources)),
        r->n_subresources ? str_c(r->subresources[0].name) : STR(""),
        crd_preserves_all(r->crd) ? STR("p") : STR(""),
        crd_schema_text(r->crd),
    };
    sha256_parts(COUNT(parts), parts, h->digest);
    for (const struct selectable_field *f = r->fields; f && f->name; f++)
        sha256_parts(2, (struct str[]){bytes(h->digest, sizeof(h->digest)), str_c(f->name)},
                     h->digest);
    return true;
}

/* Hashes the built-in table: the program's version does not always identify it. */
void openapi_hash_table(unsigned char ret[OPENAPI_DIGEST])
{
    const struct schema *s = &SCHEMA_BUILTIN;

    sha256_parts(2,
                 (struct str[]){bytes(s->nodes, s->n_nodes * sizeof(*s->nodes)),
                                bytes(s->fields, s->n_fields * sizeof(*s->fields))},
                 ret);
}

void openapi_hash(struct vapi *api, const unsigned char table[OPENAPI_DIGEST], struct str root,
                  unsigned char ret[OPENAPI_DIGEST])
{
    struct hash h = {.all = !root.n};

    split_root(root, &h.group, &h.version);
    sha256_parts(
        4,
        (struct str[]){STR(OPENAPI_FORM), str_c(api->version), root, bytes(table, OPENAPI_DIGEST)},
        h.digest);
    if (h.all || h.version.n)
        registry_each(vapi_registry(api), hash_custom, &h);
    memcpy(ret, h.digest, OPENAPI_DIGEST);
}
