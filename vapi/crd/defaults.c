/* SPDX-License-Identifier: Apache-2.0 */
/* Every object without a field will hold its default, so the default must be valid for its schema
 * and hold no field the schema does not know. Checked when a CRD is written. Source:
 * apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go. */
#include "judge.h"
#include "rules.h"
#include "schema_checks.h"

static void check_one(struct field_errors *e, const struct field_path *p,
                      const struct crd_version *v, uint32_t node, const struct crd_rule_node *rules)
{
    const cJSON *value = crd_version_rules(v, node)->default_value;
    cJSON *pruned = json_copy(e->arena, value);
    int64_t left = RULES_BUDGET;
    struct field_errors own;
    struct str base;
    size_t n;

    field_errors_init(&own, e->arena);
    crd_prune_value(v, e->arena, node, pruned);
    if (!json_equal(pruned, value))
        field_invalid(e, p, value, "must not have unknown fields");
    crd_judge_part(v, &own, node, pruned);

    base = field_path_text(e->arena, p);
    for (const struct err_cause *c = own.first; c; c = c->next) {
        struct err_cause *copy = ARENA_NEW(e->arena, struct err_cause);
        bool own_path = c->field.n && !str_eqc(c->field, "<nil>");

        *copy = *c;
        copy->next = NULL;
        if (own_path && c->field.p[0] == '[')
            copy->field = arena_concat(e->arena, 2, (struct str[]){base, c->field});
        else if (own_path)
            copy->field = arena_concat(e->arena, 3, (struct str[]){base, STR("."), c->field});
        else if (!c->field.n)
            copy->field = base;
        *e->last = copy;
        e->last = &copy->next;
        e->n++;
    }
    /* As a value that stays, and as one that comes. */
    n = e->n;
    if (rules && !own.n)
        crd_judge_rules(v, rules, e, NULL, p, pruned, pruned, &left);
    if (rules && !own.n && e->n == n)
        crd_judge_rules(v, rules, e, NULL, p, pruned, NULL, &left);
}

static void walk(struct field_errors *e, const struct field_path *p, const struct crd_version *v,
                 uint32_t node, const cJSON *schema, const struct crd_rule_node *rules)
{
    const cJSON *more = json_get(schema, "additionalProperties"),
                *items = json_get(schema, "items");

    if (!node || e->n > 100)
        return;
    if (crd_version_rules(v, node)->default_value)
        check_one(e, FIELD(p, "default"), v, node, rules);
    json_each(property, json_get(schema, "properties"))
    {
        struct str name = str_c(property->string);
        const struct schema_field *f = schema_field(&v->schema, node, name);

        if (f)
            walk(e, FIELD_KEY(FIELD(p, "properties"), name), v, f->node, property,
                 crd_rule_field(rules, name));
    }
    if (json_is_object(items))
        walk(e, FIELD(p, "items"), v, schema_node(&v->schema, node)->elem, items,
             rules ? rules->items : NULL);
    else if (json_is_object(more))
        walk(e, FIELD(p, "additionalProperties"), v, schema_node(&v->schema, node)->elem, more,
             rules ? rules->more : NULL);
}

void crd_check_compiled(struct field_errors *e, const struct field_path *path, const cJSON *schema)
{
    struct str text = json_text(e->arena, schema);
    struct crd_version v = {
        .magic = CRD_VERSION_MAGIC, .schema_text = text.p, .schema_bytes = text.n};

    if (!str_contains(text, STR("\"default\":")) &&
        !str_contains(text, STR("\"x-kubernetes-validations\":")))
        return;
    crd_version_compile(&v);
    walk(e, path, &v, v.root, v.openapi, v.rules ? v.rules->root : NULL);
    if (v.rules && !e->n)
        crd_check_rules(e, path, v.rules);
    crd_version_release(&v);
}
