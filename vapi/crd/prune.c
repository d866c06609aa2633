/* SPDX-License-Identifier: Apache-2.0 */
/* Unknown fields leave, absent ones get their defaults: what a structural schema does to an object
 * besides judging it. Source of the semantics: apiextensions-apiserver
 * pkg/apiserver/schema/{pruning,defaulting}. */
#include "version.h"

#include <string.h>

struct pruner {
    const struct crd_version *v;
    struct arena *arena;
    struct strict_errors *strict;
};

static bool is_type_meta(const char *key)
{
    return !strcmp(key, "apiVersion") || !strcmp(key, "kind") || !strcmp(key, "metadata");
}

static struct str below(struct arena *a, struct str path, const char *key)
{
    return path.n ? arena_printf(a, "%.*s.%s", STR_F(path), key) : arena_str(a, str_c(key));
}

static void prune(struct pruner *p, uint32_t node, cJSON *value, struct str path, bool keeps_meta);

static void prune_members(struct pruner *p, uint32_t node, cJSON *object, struct str path,
                          bool keeps_meta)
{
    const struct schema_node *n = schema_node(&p->v->schema, node);
    bool preserve = version_rules(p->v, node)->flags & RULE_PRESERVE;
    cJSON *next;

    for (cJSON *member = json_first(object); member; member = next) {
        const struct schema_field *f = schema_field(&p->v->schema, node, str_c(member->string));

        next = member->next;
        if (keeps_meta && is_type_meta(member->string))
            continue;
        if (f) {
            prune(p, f->node, member, below(p->arena, path, member->string), false);
        } else if (n->elem || n->kind == SCHEMA_MAP) {
            prune(p, n->elem, member, below(p->arena, path, member->string), false);
        } else if (!preserve) {
            if (p->strict)
                strict_add(p->strict, "unknown field", below(p->arena, path, member->string));
            json_detach(object, member);
        }
    }
}

static void prune(struct pruner *p, uint32_t node, cJSON *value, struct str path, bool keeps_meta)
{
    const struct schema_node *n = schema_node(&p->v->schema, node);
    bool embedded = version_rules(p->v, node)->flags & RULE_EMBEDDED;
    size_t i = 0;

    if (node == 0)
        return;
    if (json_is_object(value) &&
        (n->kind == SCHEMA_OBJECT || n->kind == SCHEMA_MAP || n->kind == SCHEMA_ANY)) {
        prune_members(p, node, value, path, keeps_meta || embedded);
    } else if (json_is_array(value) && n->kind == SCHEMA_LIST) {
        json_each(item, value)
        {
            prune(p, n->elem, item, arena_printf(p->arena, "%.*s[%zu]", STR_F(path), i), false);
            i++;
        }
    }
}

void crd_prune(const struct crd_version *v, struct arena *a, cJSON *object,
               struct strict_errors *strict)
{
    struct pruner p = {.v = v, .arena = a, .strict = strict};

    if (v->preserve_all)
        return;
    version_ready(v);
    prune(&p, v->root, object, STR(""), true);
}

/* --- defaults --- */

static void fill(const struct crd_version *v, struct arena *a, uint32_t node, cJSON *value);

static void fill_field(const struct crd_version *v, struct arena *a, const struct schema_field *f,
                       cJSON *object)
{
    const char *name = schema_text(&v->schema, f->name);
    cJSON *present = json_get(object, name), *value;
    bool nullable = version_rules(v, f->node)->flags & RULE_NULLABLE;
    struct err err;

    if (f->flags & FIELD_HAS_DEFAULT && (!present || (json_is_null(present) && !nullable))) {
        err_init(&err, a);
        if (!json_parse(a, str_c(schema_text(&v->schema, f->default_json)), &value, &err))
            present = json_set(a, object, name, value);
    }
    if (present)
        fill(v, a, f->node, present);
}

static void fill(const struct crd_version *v, struct arena *a, uint32_t node, cJSON *value)
{
    const struct schema_node *n = schema_node(&v->schema, node);

    if (node == 0)
        return;
    if (json_is_array(value)) {
        json_each(item, value) fill(v, a, n->elem, item);
        return;
    }
    if (!json_is_object(value))
        return;
    for (uint32_t i = n->first_field; i < n->first_field + n->n_fields; i++)
        fill_field(v, a, &v->schema.fields[i], value);
    if (!n->elem)
        return;
    json_each(member, value)
    {
        if (!schema_field(&v->schema, node, str_c(member->string)))
            fill(v, a, n->elem, member);
    }
}

void crd_default(const struct crd_version *v, struct arena *a, cJSON *object)
{
    if (!v->schema_text || !v->has_defaults)
        return;
    version_ready(v);
    fill(v, a, v->root, object);
}
