/* SPDX-License-Identifier: Apache-2.0 */
/* Every object without a field will hold its default, so the default must be valid for its schema
 * and hold no field the schema does not know. Checked when a CRD is written. Source:
 * apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go. */
#include "judge.h"
#include "rules.h"
#include "schema_checks.h"

struct walking {
    struct field_errors *e;
    const struct crd_version *v;
    struct crd_effort *effort;
};

struct crd_effort crd_effort_new(void)
{
    return (struct crd_effort){RULES_BUDGET, JUDGE_STEPS, 16 * PATTERN_BUDGET};
}

/* Against the schema alone. */
static void judge_value(struct walking *w, struct field_errors *e, uint32_t node,
                        const cJSON *value)
{
    struct crd_effort *left = w->effort;
    unsigned pattern = left->pattern < PATTERN_BUDGET ? left->pattern : PATTERN_BUDGET;
    struct judge_work work = {.steps = left->steps, .pattern = pattern};

    crd_judge_part(w->v, e, &work, node, value);
    left->steps = work.steps;
    left->pattern -= pattern - work.pattern;
}

static void check_one(struct walking *w, const struct field_path *p, uint32_t node,
                      const struct crd_rule_node *rules)
{
    const struct crd_version *v = w->v;
    struct field_errors *e = w->e;
    const cJSON *value = crd_version_rules(v, node)->default_value;
    cJSON *pruned = json_copy(e->arena, value);
    struct field_errors own;
    struct str base;
    size_t n;

    field_errors_init(&own, e->arena);
    crd_prune_value(v, e->arena, node, pruned);
    if (!json_equal(pruned, value))
        field_invalid(e, p, value, "must not have unknown fields");
    judge_value(w, &own, node, pruned);

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
        crd_judge_rules(v, rules, e, NULL, p, pruned, pruned, &w->effort->cost);
    if (rules && !own.n && e->n == n)
        crd_judge_rules(v, rules, e, NULL, p, pruned, NULL, &w->effort->cost);
}

static void walk(struct walking *w, const struct field_path *p, uint32_t node, const cJSON *schema,
                 const struct crd_rule_node *rules)
{
    const struct crd_version *v = w->v;
    const cJSON *more = json_get(schema, "additionalProperties"),
                *items = json_get(schema, "items");

    if (!node || w->e->n > 100)
        return;
    if (crd_version_rules(v, node)->default_value)
        check_one(w, FIELD(p, "default"), node, rules);
    json_each(property, json_get(schema, "properties"))
    {
        struct str name = str_c(property->string);
        const struct schema_field *f = schema_field(&v->schema, node, name);

        if (f)
            walk(w, FIELD_KEY(FIELD(p, "properties"), name), f->node, property,
                 crd_rule_field(rules, name));
    }
    if (json_is_object(items))
        walk(w, FIELD(p, "items"), schema_node(&v->schema, node)->elem, items,
             rules ? rules->items : NULL);
    else if (json_is_object(more))
        walk(w, FIELD(p, "additionalProperties"), schema_node(&v->schema, node)->elem, more,
             rules ? rules->more : NULL);
}

void crd_check_compiled(struct field_errors *e, const struct field_path *path, const cJSON *schema,
                        struct crd_effort *effort)
{
    struct str text = json_text(e->arena, schema);
    struct crd_version v = {
        .magic = CRD_VERSION_MAGIC, .schema_text = text.p, .schema_bytes = text.n};
    struct walking w = {e, &v, effort};

    if (!str_contains(text, STR("\"default\":")) &&
        !str_contains(text, STR("\"x-kubernetes-validations\":")))
        return;
    crd_version_compile(&v);
    walk(&w, path, v.root, v.openapi, v.rules ? v.rules->root : NULL);
    if (v.rules && !e->n)
        crd_check_rules(e, path, v.rules);
    crd_version_release(&v);
}
