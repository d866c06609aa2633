/* SPDX-License-Identifier: Apache-2.0 */
/* Extracts labels and selectable fields from an object when it is written, as flat sets, so that no
 * read has to parse it, and matches selectors against them. A selector must mean the same for GET,
 * LIST, WATCH and DELETECOLLECTION: all four use this file. */
#include "core.h"

#include <string.h>

struct str index_labels(struct arena *a, const cJSON *object)
{
    return labels_flatten(a, json_path(object, "metadata.labels"));
}

/* Booleans and numbers are selected by their form in Go's %v. */
static struct str field_text(struct arena *a, const cJSON *node, const char *otherwise)
{
    if (json_is_string(node))
        return json_str(node);
    if (json_is_bool(node))
        return json_true(node) ? STR("true") : STR("false");
    if (json_is_number(node))
        return json_text(a, node);
    return str_c(otherwise ? otherwise : "");
}

static struct str text_at(struct arena *a, const cJSON *object, const char *path,
                          const char *otherwise)
{
    const cJSON *node = json_path(object, path);

    /* Some fields hold the name of a list's first element or of all: `status.podIPs` selects by
     * any. */
    return json_is_array(node) ? field_text(a, json_get(json_first(node), "ip"), "")
                               : field_text(a, node, otherwise);
}

/* The first non-empty path of `a.b|c`: an event's source may be its reporter. */
static struct str selected_text(struct arena *a, const struct selectable_field *f,
                                const cJSON *object)
{
    struct str rest = str_c(f->path), text = STR("");

    if (str_find(rest, '|') == rest.n)
        return text_at(a, object, f->path, f->otherwise);
    while (rest.p && !text.n)
        text = text_at(a, object, arena_cstr(a, str_cut(&rest, '|')), f->otherwise);
    return text;
}

struct str index_fields(struct arena *a, const struct resource *r, const cJSON *object)
{
    if (!r->fields)
        return STR_NULL;
    cJSON *map = json_new_object(a);

    for (const struct selectable_field *f = r->fields; f->name; f++)
        json_set_str(a, map, f->name, selected_text(a, f, object));
    return labels_flatten(a, map);
}

static bool is_known(const struct resource *r, struct str key)
{
    /* A cluster-scoped kind with selectable fields has no metadata.namespace, any other has. */
    bool spaceless = r->fields && !r->crd && !resource_namespaced(r);

    if (str_eqc(key, "metadata.name") || (str_eqc(key, "metadata.namespace") && !spaceless))
        return true;
    for (const struct selectable_field *f = r->fields; f && f->name; f++)
        if (str_eqc(key, f->name))
            return true;
    return false;
}

static int check_fields(const struct resource *r, const struct selector *fields, struct err *err)
{
    for (size_t i = 0; i < fields->n; i++)
        if (!is_known(r, fields->terms[i].key)) {
            struct str key = fields->terms[i].key;

            if (!r->fields && !r->crd)
                return err_set(err, &ERR_BAD_REQUEST,
                               "\"%.*s\" is not a known field selector: only \"metadata.name\", "
                               "\"metadata.namespace\"",
                               STR_F(key));
            /* Two resources have messages of their own. */
            if (str_eqc(r->group_resource, "jobs.batch"))
                return err_set(err, &ERR_BAD_REQUEST, "field label \"%.*s\" not supported for Job",
                               STR_F(key));
            if (str_eqc(r->group_resource, "resourceslices.resource.k8s.io"))
                return err_set(err, &ERR_BAD_REQUEST,
                               "field label not supported for %.*s, Kind=ResourceSlice: %.*s",
                               STR_F(r->api_version), STR_F(key));
            return err_set(err, &ERR_BAD_REQUEST, "field label not supported: %.*s", STR_F(key));
        }
    return 0;
}

static const struct selectable_field *field_named(const struct resource *r, struct str name)
{
    for (const struct selectable_field *f = r->fields; f && f->name; f++)
        if (str_eqc(name, f->name))
            return f;
    return NULL;
}

/* The stored version's name of the field that r calls so. */
static struct str stored_name(const struct resource *r, const struct resource *stored,
                              struct str name)
{
    const struct selectable_field *requested = field_named(r, name);

    for (const struct selectable_field *f = stored->fields; requested && f && f->name; f++)
        if (str_eqc(str_c(f->path), requested->path))
            return str_c(f->name);
    return name;
}

int index_select(struct call *c, struct err *err)
{
    struct selector *s = &c->options.fields;
    const struct resource *stored =
        registry_by_storage(vapi_registry(c->api), c->resource->storage);
    struct selector_term *terms;

    if (check_fields(c->resource, s, err))
        return -1;
    if (!s->n || !stored || stored == c->resource)
        return 0;
    terms = arena_alloc(c->arena, s->n * sizeof(*terms));
    for (size_t i = 0; i < s->n; i++) {
        terms[i] = s->terms[i];
        terms[i].key = stored_name(c->resource, stored, terms[i].key);
    }
    s->terms = terms;
    return 0;
}

bool index_match(const struct call_options *o, const struct store_object *obj)
{
    for (size_t i = 0; i < o->fields.n; i++) {
        const struct selector_term *term = &o->fields.terms[i];
        struct str value = STR("");

        if (str_eqc(term->key, "metadata.name"))
            value = obj->name;
        else if (str_eqc(term->key, "metadata.namespace"))
            value = obj->ns;
        else
            labels_get(obj->fields, term->key, &value);
        bool equal = term->n_values == 1 && str_eq(value, term->values[0]);
        if (equal == (term->op == SEL_NE))
            return false;
    }
    return !o->fields.nothing && selector_match(&o->labels, obj->labels);
}
