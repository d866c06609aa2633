/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The schema of a custom resource in OpenAPI: v3 nearly unchanged, v2 without what v2 cannot
 * express or old clients fail on. Works on a copy parsed from the version's schema, so that nothing
 * stays compiled. Must never use the host's descriptions for a tenant's own types. Source:
 * apiextensions-apiserver pkg/controller/openapi and pkg/apiserver/schema. */
#include "openapi.h"

#include <string.h>

#include <sublet/crd.h>
#include <sublet/json_build.h>

/* A small document of the host that contains the descriptions of metadata. */
#define SAMPLE      "io.k8s.api.scheduling.v1.PriorityClass"
#define SAMPLE_LIST "io.k8s.api.scheduling.v1.PriorityClassList"
#define OBJECT_META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
#define LIST_META   "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
#define PRESERVE    "x-kubernetes-preserve-unknown-fields"
#define EMBEDDED    "x-kubernetes-embedded-resource"
#define INT_OR_STR  "x-kubernetes-int-or-string"

/* ---- fields of every object ---- */

static void add_text_property(struct document *d, cJSON *schema, const char *name)
{
    cJSON *property = json_object(d->arena, JSON("description", openapi_describe(d, SAMPLE, name)),
                                  JSON("type", "string"));

    json_set(d->arena, json_ensure_object(d->arena, schema, "properties"), name, property);
}

static void add_common(struct document *d, cJSON *schema, const char *meta, const char *sample)
{
    cJSON *ref, *property;

    add_text_property(d, schema, "apiVersion");
    add_text_property(d, schema, "kind");

    ref = openapi_ref(d, openapi_want_type(d, meta));
    property = ref;
    if (!d->v2) {
        property = json_new_object(d->arena);
        json_append(json_set(d->arena, property, "allOf", json_new_array(d->arena)), ref);
    }
    json_set_str(d->arena, property, "description", openapi_describe(d, sample, "metadata"));
    json_set(d->arena, json_ensure_object(d->arena, schema, "properties"), "metadata", property);
}

/* ---- one node of a schema ---- */

static bool is_either(const cJSON *any_of)
{
    return json_count(any_of) == 2 && json_count(json_at(any_of, 0)) == 1 &&
           json_count(json_at(any_of, 1)) == 1 &&
           str_eqc(json_str_at(json_at(any_of, 0), "type"), "integer") &&
           str_eqc(json_str_at(json_at(any_of, 1), "type"), "string");
}

static cJSON *either(struct arena *a)
{
    cJSON *list = json_new_array(a);

    json_set_str(a, json_append(list, json_new_object(a)), "type", STR("integer"));
    json_set_str(a, json_append(list, json_new_object(a)), "type", STR("string"));
    return list;
}

/* Expands int-or-string to v3's own form, unless its author did. */
static void unfold(struct arena *a, cJSON *schema)
{
    cJSON *any_of = json_get(schema, "anyOf"), *all_of = json_get(schema, "allOf");
    cJSON *list, *first;

    if (!json_true(json_get(schema, INT_OR_STR)) || is_either(any_of) ||
        is_either(json_get(json_at(all_of, 0), "anyOf")))
        return;
    if (!any_of) {
        json_set(a, schema, "anyOf", either(a));
        return;
    }
    list = json_new_array(a);
    first = json_append(list, json_new_object(a));
    json_set(a, first, "anyOf", either(a));
    json_each(one, all_of) json_append(list, json_copy(a, one));
    json_set(a, schema, "allOf", list);
}

/* Empty members are not published. */
static void drop_empty(cJSON *schema)
{
    cJSON *next;

    for (cJSON *m = json_first(schema); m; m = next) {
        bool empty =
            (json_is_bool(m) && !json_true(m) && strcmp(m->string, "additionalProperties") &&
             strcmp(m->string, "default") && strcmp(m->string, "example")) ||
            json_is_null(m) ||
            (json_is_array(m) && !json_count(m) && strcmp(m->string, "default") &&
             strcmp(m->string, "example"));

        next = m->next;
        if (empty || (!strcmp(m->string, "properties") && !json_count(m)))
            json_detach(schema, m);
    }
}

static void remove_all(cJSON *schema, const char *const *keys)
{
    for (; *keys; keys++)
        json_remove(schema, *keys);
}

/* Drops what v2 cannot express: junctors, null, objects with unknown fields. */
static void reduce_v2(struct arena *a, cJSON *schema)
{
    static const char *const never[] = {"allOf", "anyOf", "oneOf", "not", "default", NULL};
    static const char *const of_nullable[] = {"type", "items", "properties", "nullable", NULL};
    static const char *const of_preserved[] = {"items", "properties", NULL};
    bool preserve = json_true(json_get(schema, PRESERVE));
    const cJSON *values = json_get(schema, "additionalProperties");

    remove_all(schema, never);
    json_each(property, json_get(schema, "properties"))
    {
        if (json_true(json_get(property, "nullable"))) {
            cJSON *kept = json_new_array(a);

            json_each(item, json_get(schema, "required"))
            {
                if (!str_eqc(json_str(item), property->string))
                    json_append(kept, json_copy(a, item));
            }
            json_remove(schema, "required");
            if (json_count(kept))
                json_set(a, schema, "required", kept);
        }
    }
    if (json_true(json_get(values, "nullable")))
        json_remove(schema, "required");
    if (json_true(json_get(schema, "nullable")))
        remove_all(schema, of_nullable);
    if (preserve)
        remove_all(schema, of_preserved);
    if (!json_get(schema, "items") && str_eqc(json_str_at(schema, "type"), "array"))
        json_remove(schema, "type");
    if (preserve && str_eqc(json_str_at(schema, "type"), "object"))
        json_remove(schema, "type");
}

/* The limits of a CRD bound the depth. */
static void publish_node(struct document *d, cJSON *schema)
{
    cJSON *values = json_get(schema, "additionalProperties"), *items;
    cJSON *required;

    unfold(d->arena, schema);
    if (d->v2)
        reduce_v2(d->arena, schema);
    drop_empty(schema);
    json_each(property, json_get(schema, "properties")) publish_node(d, property);
    items = json_get(schema, "items");
    if (json_is_object(items))
        publish_node(d, items);
    if (json_is_object(values))
        publish_node(d, values);

    if (!json_true(json_get(schema, EMBEDDED)) || (d->v2 && json_true(json_get(schema, PRESERVE))))
        return;
    add_common(d, schema, OBJECT_META, SAMPLE);
    required = json_get(schema, "required");
    if (!required)
        required = json_set(d->arena, schema, "required", json_new_array(d->arena));
    if (!json_list_has(required, STR("kind")))
        json_append(required, json_new_string(d->arena, STR("kind")));
    if (!json_list_has(required, STR("apiVersion")))
        json_append(required, json_new_string(d->arena, STR("apiVersion")));
}

/* ---- components ---- */

static cJSON *untyped(struct arena *a)
{
    cJSON *schema = json_new_object(a);

    json_set_str(a, schema, "type", STR("object"));
    return schema;
}

static cJSON *object_schema(struct document *d, const struct resource *r)
{
    struct str text = crd_schema_text(r->crd);
    cJSON *schema = NULL;
    struct err ignored;

    err_init(&ignored, d->arena);
    if (!text.n || json_parse(d->arena, text, &schema, &ignored))
        return untyped(d->arena);
    if (d->v2 && (crd_preserves_all(r->crd) || json_true(json_get(schema, PRESERVE))))
        return untyped(d->arena); /* listing any property would forbid all others */
    publish_node(d, schema);
    add_common(d, schema, OBJECT_META, SAMPLE);
    return schema;
}

static void add_extensions(struct document *d, cJSON *schema, const struct resource *r,
                           struct str kind)
{
    struct arena *a = d->arena;
    cJSON *fields = json_new_array(a);

    json_append(json_set(a, schema, "x-kubernetes-group-version-kind", json_new_array(a)),
                openapi_gvk(a, r->group, r->version, kind));
    for (const struct selectable_field *f = r->fields; f && f->name; f++)
        json_set_str(a, json_append(fields, json_new_object(a)), "fieldPath", str_c(f->name));
    if (json_count(fields))
        json_set(a, schema, "x-kubernetes-selectable-fields", fields);
}

void openapi_add_custom(struct document *d, const struct resource *r)
{
    const char *object = openapi_custom_kind(d->keep, r, r->kind);
    const char *list = openapi_custom_kind(d->keep, r, r->list_kind);
    cJSON *schema = object_schema(d, r), *items;
    struct arena *a = d->arena;

    add_extensions(d, schema, r, r->kind);
    openapi_document_add_schema(d, object, schema);

    items = json_object(a, JSON("description", arena_printf(a, "The %.*s.", STR_F(r->plural))),
                        JSON("type", "array"), JSON("items", openapi_ref(d, object)));
    schema = json_object(
        a, JSON("description", arena_printf(a, "A list of objects of kind %.*s.", STR_F(r->kind))),
        JSON("type", "object"), JSON("required", json_array(a, json_new_string(a, STR("items")))),
        JSON("properties", json_object(a, JSON("items", items))));
    add_common(d, schema, LIST_META, SAMPLE_LIST);
    add_extensions(d, schema, r, r->list_kind);
    openapi_document_add_schema(d, list, schema);
}
