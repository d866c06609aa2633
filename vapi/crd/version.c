/* SPDX-License-Identifier: Apache-2.0 */
/* A version of a CRD as a descriptor the API can serve. Everything it points to lives in the
 * version's own arena, which is freed when no call can hold the descriptor any more. */
#include "conversion.h"
#include "version_new.h"

#include <string.h>

#include <sublet/api_version.h>

static const char *const *string_list(struct arena *a, const cJSON *list)
{
    const char **texts = arena_alloc(a, (json_count(list) + 1) * sizeof(*texts));
    size_t n = 0;

    json_each(item, list) texts[n++] = arena_cstr(a, json_str(item));
    return texts;
}

static const char *column_description(struct arena *a, const cJSON *item)
{
    struct str text = json_str_at(item, "description");

    if (text.n)
        return arena_cstr(a, text);
    return arena_printf(a, "Custom resource definition column (in JSONPath format): %.*s",
                        STR_F(json_str_at(item, "jsonPath")))
        .p;
}

static void read_columns(struct crd_version *v, const cJSON *list)
{
    struct column *columns;
    size_t n = json_count(list), i = 0;
    struct err err;

    if (!n)
        return;
    v->columns = arena_alloc(v->arena, n * sizeof(*v->columns));
    columns = arena_alloc(v->arena, (n + 1) * sizeof(*columns));
    json_each(item, list)
    {
        struct printer_column *c = &v->columns[i];

        *c = (struct printer_column){
            .name = arena_cstr(v->arena, json_str_at(item, "name")),
            .type = arena_cstr(v->arena, json_str_at(item, "type")),
            .format = arena_cstr(v->arena, json_str_at(item, "format")),
            .description = column_description(v->arena, item),
            .priority = (int)json_i64_at(item, "priority", 0),
        };
        err_init(&err, v->arena);
        if (jsonpath_compile(v->arena, json_str_at(item, "jsonPath"), &c->path, &err))
            c->path = NULL; /* refused by the checks before it is stored */
        columns[i++] = (struct column){.name = c->name,
                                       .type = c->type,
                                       .format = c->format,
                                       .description = c->description,
                                       .priority = c->priority};
    }
    v->n_columns = n;
    v->resource->columns = columns;
}

/* ".spec.replicas" as the dotted path scale works with. */
static const char *dotted(struct arena *a, const cJSON *path)
{
    struct str s = json_str(path);

    return s.n > 1 ? arena_cstr(a, str_from(s, s.p[0] == '.' ? 1 : 0)) : NULL;
}

static void read_subresources(struct crd_version *v, const cJSON *subresources)
{
    struct subresource *subs = arena_alloc(v->arena, 2 * sizeof(*subs));
    const cJSON *scale = json_get(subresources, "scale");
    struct resource *r = v->resource;

    if (json_get(subresources, "status")) {
        subs[r->n_subresources++] =
            (struct subresource){.name = "status",
                                 .kind = SUB_STATUS,
                                 .verbs = VERB_GET | VERB_PATCH | VERB_UPDATE,
                                 .group = "",
                                 .version = "",
                                 .object_kind = arena_cstr(v->arena, r->kind)};
        r->flags |= RES_STATUS;
    }
    if (scale) {
        struct scale_paths *paths = ARENA_NEW(v->arena, struct scale_paths);

        paths->spec_replicas = dotted(v->arena, json_get(scale, "specReplicasPath"));
        paths->status_replicas = dotted(v->arena, json_get(scale, "statusReplicasPath"));
        paths->selector = dotted(v->arena, json_get(scale, "labelSelectorPath"));
        subs[r->n_subresources++] =
            (struct subresource){.name = "scale",
                                 .kind = SUB_SCALE,
                                 .verbs = VERB_GET | VERB_PATCH | VERB_UPDATE,
                                 .group = "autoscaling",
                                 .version = "v1",
                                 .object_kind = "Scale",
                                 .scale = paths};
    }
    r->subresources = subs;
}

static void read_fields(struct crd_version *v, const cJSON *list)
{
    struct selectable_field *fields =
        arena_alloc(v->arena, (json_count(list) + 1) * sizeof(*fields));
    size_t n = 0;

    json_each(item, list)
    {
        const char *path = dotted(v->arena, json_get(item, "jsonPath"));

        if (path)
            fields[n++] = (struct selectable_field){path, path, ""};
    }
    v->resource->fields = fields;
}

static void read_names(struct crd_version *v, const cJSON *crd, const cJSON *version)
{
    struct arena *a = v->arena;
    struct resource *r = v->resource;
    const cJSON *names = json_path(crd, "spec.names");

    r->group = arena_str(a, json_str_at(crd, "spec.group"));
    r->version = arena_str(a, json_str_at(version, "name"));
    r->kind = arena_str(a, json_str_at(names, "kind"));
    r->list_kind = arena_str(a, json_str_at(names, "listKind"));
    r->plural = arena_str(a, json_str_at(names, "plural"));
    r->singular = arena_str(a, json_str_at(names, "singular"));
    r->short_names = string_list(a, json_get(names, "shortNames"));
    r->categories = string_list(a, json_get(names, "categories"));
    r->group_resource = arena_concat(a, 3, (struct str[]){r->plural, STR("."), r->group});
    r->api_version = arena_concat(a, 3, (struct str[]){r->group, STR("/"), r->version});
    json_each(other, json_path(crd, "spec.versions"))
    {
        if (json_true(json_get(other, "storage")))
            r->storage_version =
                arena_concat(a, 3, (struct str[]){r->group, STR("/"), json_str_at(other, "name")});
    }
}

static void read_schema(struct crd_version *v, const cJSON *crd, const cJSON *version)
{
    const cJSON *schema = json_path(version, "schema.openAPIV3Schema");

    v->preserve_all = json_true(json_path(crd, "spec.preserveUnknownFields")) || !schema;
    if (!schema)
        return;
    struct str text = json_text(v->arena, schema);
    v->schema_text = text.p;
    v->schema_bytes = text.n;
    v->has_defaults = str_contains(text, STR("\"default\":"));
}

static struct crd_version *stored_new(const cJSON *crd, const cJSON *storage)
{
    struct arena *a = arena_new(0);
    struct crd_version *v = ARENA_NEW(a, struct crd_version);

    *v = (struct crd_version){.magic = CRD_VERSION_MAGIC, .arena = a};
    read_schema(v, crd, storage);
    return v;
}

/* A CRD may have dozens of versions, and megabytes of schema to store them with. */
static void read_stored(struct crd_version *v, const cJSON *crd, const cJSON *version,
                        const struct crd_version *sibling)
{
    const cJSON *storage = NULL;

    json_each(other, json_path(crd, "spec.versions"))
    {
        if (json_true(json_get(other, "storage")))
            storage = other;
    }
    if (!storage || storage == version)
        return;
    v->stored = sibling && sibling->stored ? sibling->stored : stored_new(crd, storage);
    v->stored->references++;
}

/* The best version to use instead: served, not deprecated, and preferred to this one. */
static struct str successor(const cJSON *crd, struct str deprecated)
{
    struct str best = deprecated;

    json_each(version, json_path(crd, "spec.versions"))
    {
        struct str name = json_str_at(version, "name");

        if (json_true(json_get(version, "served")) && !json_true(json_get(version, "deprecated")) &&
            api_version_compare(name, best) < 0)
            best = name;
    }
    return best;
}

/* Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go
 * defaultDeprecationWarning(). */
static struct str read_deprecation(struct crd_version *v, const cJSON *crd, const cJSON *version)
{
    const struct resource *r = v->resource;
    struct str own = json_str_at(version, "deprecationWarning"), best = successor(crd, r->version);

    if (own.n)
        return arena_str(v->arena, own);
    if (str_eq(best, r->version))
        return arena_printf(v->arena, "%.*s %.*s is deprecated", STR_F(r->api_version),
                            STR_F(r->kind));
    return arena_printf(v->arena, "%.*s %.*s is deprecated; use %.*s/%.*s %.*s",
                        STR_F(r->api_version), STR_F(r->kind), STR_F(r->group), STR_F(best),
                        STR_F(r->kind));
}

struct crd_version *crd_version_new(const cJSON *crd, const cJSON *version,
                                    const struct crd_version *sibling)
{
    struct arena *a = arena_new(0);
    struct crd_version *v = ARENA_NEW(a, struct crd_version);
    struct resource *r = NEW(struct resource); /* the registry frees it */

    *v = (struct crd_version){.magic = CRD_VERSION_MAGIC, .arena = a, .resource = r};
    read_names(v, crd, version);
    v->namespaced = str_eqc(json_str_at(crd, "spec.scope"), "Namespaced");
    r->conversion = crd_conversion_new(a, crd);
    r->verbs = VERBS_ALL;
    r->flags = RES_GENERATION | RES_ITEM_TYPE_META | RES_CONDITIONAL_UPDATE |
               (v->namespaced ? (unsigned)RES_NAMESPACED : 0);
    r->crd = v;
    r->skip = (unsigned)(sizeof("{\"kind\":\"\",\"apiVersion\":\"\",") - 1 + r->kind.n +
                         r->storage_version.n);
    read_schema(v, crd, version);
    read_stored(v, crd, version, sibling);
    v->changed = json_i64_at(crd, "metadata.generation", 1) > 1;
    read_columns(v, json_get(version, "additionalPrinterColumns"));
    read_subresources(v, json_get(version, "subresources"));
    read_fields(v, json_get(version, "selectableFields"));
    /* Nothing of the built-in table applies: the CRD defines the fields. */
    r->schema = &SCHEMA_BUILTIN;
    r->node = 0;
    if (json_true(json_get(version, "deprecated")))
        v->deprecation = read_deprecation(v, crd, version);
    return v;
}

static void schema_free(struct crd_version *v)
{
    crd_version_release(v);
    v->magic = 0;
    arena_free(v->arena);
}

void crd_version_free(void *ctx)
{
    struct crd_version *v = ctx;

    if (v->stored && !--v->stored->references)
        schema_free(v->stored);
    schema_free(v);
}
