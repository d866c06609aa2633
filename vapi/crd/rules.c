/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the rules of a schema. A rule that does not compile keeps its problem: a CRD is refused
 * with it, or, where it was stored before, the custom resources it would judge are. Must never
 * compile more than the bounds of rules.h. */
#include "judge.h"
#include "rules.h"

#include <string.h>

struct compiling {
    struct arena *arena;
    const struct schema *schema;
    struct shaping shaping;
    struct crd_rules *rules;
    size_t start; /* of the arena, in bytes */
};

/* ---- one rule ---- */

static struct cel_program *compile_expression(struct compiling *c, const struct crd_rule_node *n,
                                              const struct crd_rule *rule, const char *field,
                                              const char *wanted, struct str *ret_problem)
{
    struct str source = json_str(json_get(rule->source, field));
    const char *self = cel_shape_type(c->arena, &c->rules->shapes, n->shape);
    const char *old = rule->optional_old ? arena_printf(c->arena, "O%s", self).p : self;
    const struct cel_declaration names[] = {{"self", self}, {"oldSelf", old}};
    const struct cel_environment e = {names, COUNT(names), .shapes = &c->rules->shapes};
    bool is_message = !strcmp(field, "messageExpression");
    struct cel_program *p;
    struct err err;

    err_init(&err, c->arena);
    if (cel_compile(c->arena, source, &e, &p, &err)) {
        *ret_problem = arena_printf(c->arena, "%scompilation failed: %.*s",
                                    is_message ? "messageExpression " : "", STR_F(err.message));
        return NULL;
    }
    if (!strcmp(cel_program_type(p), wanted))
        return p;
    *ret_problem = is_message ? STR("messageExpression must evaluate to a string")
                              : STR("cel expression must evaluate to a bool");
    cel_program_release(p);
    return NULL;
}

static void compile_rule(struct compiling *c, const struct crd_rule_node *n, struct crd_rule *rule)
{
    struct str text = json_str(json_get(rule->source, "rule")),
               message = json_str(json_get(rule->source, "messageExpression")),
               path = json_str(json_get(rule->source, "fieldPath"));

    rule->optional_old = json_true(json_get(rule->source, "optionalOldSelf"));
    if (path.n && !crd_rule_path(c->arena, n->schema, path, &rule->field_path))
        rule->field_path = STR_NULL;
    c->rules->n++;
    c->rules->bytes += text.n + message.n;
    if (c->rules->n > RULES_MOST || c->rules->bytes > RULES_BYTES ||
        arena_used(c->arena) - c->start > RULES_MEMORY) {
        c->rules->too_large = true;
        rule->problem = STR("the rules of the schema are too large in all");
        return;
    }
    if (!n->shape || !str_trim(text).n)
        return;
    rule->program = compile_expression(c, n, rule, "rule", "b", &rule->problem);
    if (!rule->program)
        return;
    rule->uses_old = cel_program_names(rule->program, STR("oldSelf"));
    if (message.n)
        rule->message =
            compile_expression(c, n, rule, "messageExpression", "s", &rule->message_problem);
}

static void compile_rules(struct compiling *c, struct crd_rule_node *n, const cJSON *list)
{
    n->rules = arena_alloc(c->arena, (json_count(list) + 1) * sizeof(*n->rules));
    json_each(source, list)
    {
        struct crd_rule *rule = &n->rules[n->n_rules++];

        *rule = (struct crd_rule){.source = source, .next = c->rules->first};
        c->rules->first = rule;
        compile_rule(c, n, rule);
        n->uses_old |= rule->uses_old;
    }
}

/* ---- the tree ---- */

static const struct crd_rule_node *compile_node(struct compiling *c, uint32_t node,
                                                const cJSON *schema, uint32_t shape,
                                                struct str key);

static bool is_embedded(const cJSON *schema)
{
    return json_true(json_get(schema, "x-kubernetes-embedded-resource"));
}

/* What a rule of the schema sees itself as. Shapes may be made: their array may move. */
static uint32_t own_shape(struct compiling *c, const cJSON *schema)
{
    uint32_t shape = crd_shape(&c->shaping, schema, is_embedded(schema), 0);

    c->rules->shapes = (struct cel_shapes){c->shaping.items, c->shaping.n};
    return shape;
}

static uint32_t field_shape(struct compiling *c, uint32_t object, const cJSON *schema,
                            struct str key)
{
    const struct cel_shape *s = &c->rules->shapes.items[object];
    const struct cel_shape_field *f;
    struct str name;

    if (!object || s->kind != CEL_SHAPE_OBJECT || !cel_escape(c->arena, key, &name))
        return own_shape(c, schema);
    f = cel_shape_field(s, name);
    return f ? f->shape : 0;
}

static void compile_fields(struct compiling *c, struct crd_rule_node *n)
{
    const struct schema_node *s = schema_node(c->schema, n->node);
    const struct crd_rule_node **fields = NULL, *made;
    struct lookup properties = crd_lookup(json_get(n->schema, "properties"));

    for (uint32_t i = 0; i < s->n_fields; i++) {
        const struct schema_field *f = &c->schema->fields[s->first_field + i];
        struct str key = str_c(schema_text(c->schema, f->name));
        const cJSON *schema = crd_look_up(&properties, key);

        made = compile_node(c, f->node, schema, field_shape(c, n->shape, schema, key), key);
        if (made && !fields)
            fields = arena_alloc(c->arena, (s->n_fields - i) * sizeof(struct crd_rule_node *));
        if (made)
            fields[n->n_fields++] = made;
    }
    crd_lookup_end(&properties);
    n->fields = fields;
}

static const struct crd_rule_node *compile_elem(struct compiling *c, const struct crd_rule_node *n,
                                                const char *name)
{
    const cJSON *schema = json_get(n->schema, name);
    uint32_t node = schema_node(c->schema, n->node)->elem;
    const struct cel_shape *s = &c->rules->shapes.items[n->shape];

    if (!json_is_object(schema) || !node)
        return NULL;
    return compile_node(c, node, schema,
                        n->shape && s->kind != CEL_SHAPE_OBJECT ? s->elem : own_shape(c, schema),
                        STR_NULL);
}

static const struct crd_rule_node *compile_node(struct compiling *c, uint32_t node,
                                                const cJSON *schema, uint32_t shape, struct str key)
{
    const cJSON *list = json_get(schema, "x-kubernetes-validations");
    struct crd_rule_node n = {.key = key, .node = node, .shape = shape, .schema = schema}, *kept;

    if (!node || !schema)
        return NULL;
    compile_fields(c, &n);
    n.items = compile_elem(c, &n, "items");
    if (!n.items)
        n.more = compile_elem(c, &n, "additionalProperties");
    if (json_is_array(list))
        compile_rules(c, &n, list);
    if (!n.n_rules && !n.n_fields && !n.items && !n.more)
        return NULL;
    kept = ARENA_NEW(c->arena, struct crd_rule_node);
    *kept = n;
    return kept;
}

struct crd_rules *crd_rules_compile(struct arena *a, const struct schema *s, uint32_t root,
                                    const cJSON *openapi)
{
    struct crd_rules *r = ARENA_NEW(a, struct crd_rules);
    struct compiling c = {.arena = a, .schema = s, .rules = r};
    uint32_t shape;

    *r = (struct crd_rules){.n = 0};
    crd_shapes_init(&c.shaping, a);
    shape = crd_shape(&c.shaping, openapi, true, 0);
    r->shapes = (struct cel_shapes){c.shaping.items, c.shaping.n};
    c.start = arena_used(a);
    r->root = compile_node(&c, root, openapi, shape, STR_NULL);
    return r->root ? r : NULL;
}

void crd_rules_release(struct crd_rules *r)
{
    for (struct crd_rule *rule = r ? r->first : NULL; rule; rule = rule->next) {
        cel_program_release(rule->program);
        cel_program_release(rule->message);
        rule->program = rule->message = NULL;
    }
}

const struct crd_rule_node *crd_rule_field(const struct crd_rule_node *n, struct str key)
{
    size_t from = 0, to = n ? n->n_fields : 0;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = str_cmp(key, n->fields[middle]->key);

        if (!order)
            return n->fields[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}
