/* SPDX-License-Identifier: Apache-2.0 */
/* Whether bytes that were on disk are an object of the resource they are stored under. What a write
 * of this program stored always is; a damaged or edited row, or one of a definition that shared a
 * built-in kind's storage, is not, and no reader gets to see it. Must never refuse what a read and
 * a write of the same object would take: values are not looked at, only their types. */
#include <sublet/api_version.h>
#include <sublet/kinds.h>
#include <sublet/schema.h>

/* Whether it is stored in its own group and version. */
static bool is_stored(const struct resource *r)
{
    struct api_version v = api_version_read(r->storage_version);

    return !r->storage_version.n || (str_eq(r->group, v.group) && str_eq(r->version, v.version));
}

/* The built-in resource whose objects are stored under this name, in the version they are. */
static const struct resource *builtin_of(struct str name)
{
    for (const struct kind *const *k = KINDS; *k; k++) {
        const struct resource *r = &(*k)->resource;
        struct str rest = name, plural = str_cut(&rest, '.');

        if (!(r->flags & RES_REVIEW) && str_eq(r->plural, plural) && str_eq(r->group, rest) &&
            is_stored(r))
            return r;
    }
    return NULL;
}

static bool is_key(const cJSON *metadata, const struct store_object *o)
{
    return str_eq(json_str(json_get(metadata, "name")), o->name) &&
           str_eq(json_str(json_get(metadata, "namespace")), o->ns) &&
           str_eq(json_str(json_get(metadata, "uid")), o->uid);
}

/* Lists leave the kind and version out of the bytes of items of built-in kinds. */
static bool skips_head(struct arena *a, const struct resource *r, struct str api_version,
                       const struct store_object *o)
{
    struct str head = arena_printf(a, "{\"kind\":\"%.*s\",\"apiVersion\":\"%.*s\",", STR_F(r->kind),
                                   STR_F(api_version));

    return !o->skip || (o->skip == head.n && str_has_prefix(o->bytes, head));
}

static bool is_part(const struct schema_node *n, const struct schema_field *f, bool at_root)
{
    if (n->kind != SCHEMA_OBJECT)
        return false;
    return f->flags & FIELD_REQUIRED ||
           (at_root && f->flags & FIELD_PRINTED &&
            str_eqc(str_c(schema_text(&SCHEMA_BUILTIN, f->name)), "spec"));
}

/* Structs that every release prints and requires; later ones are optional, by Kubernetes' rules for
 * changes of an API. What reads an object that was validated counts on them. */
static bool lacks_part(uint32_t node, const cJSON *tree, bool at_root)
{
    const struct schema_node *n = schema_node(&SCHEMA_BUILTIN, node);

    if (json_is_object(tree) && n->kind == SCHEMA_OBJECT) {
        for (uint32_t i = 0; i < n->n_fields; i++) {
            const struct schema_field *f = &SCHEMA_BUILTIN.fields[n->first_field + i];
            const cJSON *child = json_get(tree, schema_text(&SCHEMA_BUILTIN, f->name));

            if (is_part(schema_node(&SCHEMA_BUILTIN, f->node), f, at_root) &&
                !json_is_object(child))
                return true;
            if (child && lacks_part(f->node, child, false))
                return true;
        }
    } else if ((json_is_object(tree) && n->kind == SCHEMA_MAP) ||
               (json_is_array(tree) && n->kind == SCHEMA_LIST)) {
        json_each(item, tree)
        {
            if (lacks_part(n->elem, item, false))
                return true;
        }
    }
    return false;
}

static const char *check_builtin(struct arena *a, const struct resource *r, cJSON *tree,
                                 const struct store_object *o)
{
    struct str api_version =
        r->group.n ? arena_printf(a, "%.*s/%.*s", STR_F(r->group), STR_F(r->version)) : r->version;
    uint32_t node = schema_builtin_root(r->group, r->version, r->kind);
    struct err err;

    err_init(&err, a);
    if (!str_eq(json_str(json_get(tree, "kind")), r->kind) ||
        !str_eq(json_str(json_get(tree, "apiVersion")), api_version) ||
        !skips_head(a, r, api_version, o))
        return "it is of another kind or version than its resource";
    if (node && lacks_part(node, tree, true))
        return "a part that its kind requires is missing";
    if (node && schema_normalise(a, &SCHEMA_BUILTIN, node, tree, NULL, &err))
        return "a field does not have the type its kind gives it";
    return NULL;
}

/* What a custom resource's own fields may be is its schema's to say, which may have changed. */
static const char *check_custom(struct arena *a, cJSON *tree)
{
    uint32_t node = schema_builtin_root(STR(""), STR("v1"), STR("ConfigMap"));
    cJSON *shell = json_new_object(a);
    struct err err;

    err_init(&err, a);
    if (!json_str(json_get(tree, "kind")).n || !json_str(json_get(tree, "apiVersion")).n)
        return "it has no kind or version";
    json_set(a, shell, "metadata", json_copy(a, json_get(tree, "metadata")));
    if (schema_normalise(a, &SCHEMA_BUILTIN, node, shell, NULL, &err))
        return "a field of its metadata does not have the type all kinds give it";
    return NULL;
}

const char *kinds_stored_problem(struct str resource, const struct store_object *o)
{
    const struct resource *r = builtin_of(resource);
    struct arena *a = arena_new(0);
    const char *why = NULL;
    cJSON *tree;
    struct err err;

    err_init(&err, a);
    if (json_parse(a, o->bytes, &tree, &err))
        why = "it is not JSON";
    else if (!is_key(json_get(tree, "metadata"), o))
        why = "its name, namespace and uid are not those it is stored under";
    else
        why = r ? check_builtin(a, r, tree, o) : check_custom(a, tree);
    arena_free(a);
    return why;
}

bool kinds_stored_readable(struct str resource, const struct store_object *o)
{
    return !kinds_stored_problem(resource, o);
}
