/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of a policy and what each may name: the authorizer is not for messages and
 * annotations, a variable sees those before it. A problem is kept beside its expression: the
 * policy is refused with it, or, where it was stored before, its requests are. Source:
 * k8s.io/apiserver admission/plugin/cel/compile.go, policy/validating/plugin.go. */
#include <sublet/cel_policy.h>

#include <string.h>

#define MOST_MEMORY ((size_t)8 << 20) /* of one policy */

struct compiling {
    struct arena *arena;
    const cJSON *spec;
    struct cel_policy *policy;
    size_t declared; /* variables that may be named */
    size_t start;    /* of the arena, in bytes */
};

static const char *variable_type(void *ctx, struct str name)
{
    const struct compiling *c = ctx;
    const struct cel_expressions *v = &c->policy->variables;

    for (size_t i = 0; i < c->declared; i++) {
        if (str_eq(v->items[i].name, name))
            return v->items[i].program ? cel_program_type(v->items[i].program) : "*";
    }
    return NULL;
}

/* Types as Go prints them. */
static struct str shown_type(struct arena *a, const char *type)
{
    return *type == 'n' ? STR("null_type") : cel_type_text(a, type);
}

static struct str check_result(struct arena *a, const char *wanted, const char *type)
{
    struct str got = shown_type(a, type);

    if (!*wanted || !strcmp(wanted, type) || (strchr(wanted, *type) && !type[1]))
        return STR_NULL;
    if (!wanted[1] || strchr(wanted, '{'))
        return arena_printf(a, "must evaluate to %s but got %.*s", cel_type_text(a, wanted).p,
                            STR_F(got));
    return arena_printf(a, "must evaluate to one of [string null_type] but got %.*s", STR_F(got));
}

/* wanted: the letters a result may have, or a whole type with an object; "" for any. */
static void compile(struct compiling *c, struct cel_expression *x, const char *wanted,
                    bool authorizer)
{
    struct cel_declaration names[7] = {
        {"object", "*"},
        {"oldObject", "*"},
        {"namespaceObject", "N"},
        {"request", "Q"},
    };
    struct cel_environment e = {names, 4, strchr(wanted, '{'), variable_type, c};
    struct err err;

    if (c->policy->variables.n)
        names[e.n++] = (struct cel_declaration){"variables", "V"};
    if (json_is_object(json_get(c->spec, "paramKind")))
        names[e.n++] = (struct cel_declaration){"params", "*"};
    if (authorizer)
        names[e.n++] = (struct cel_declaration){"authorizer", "Z"};
    if (arena_used(c->arena) - c->start > MOST_MEMORY) {
        x->problem = STR("compilation failed: the expressions of the policy are too large");
        return;
    }
    err_init(&err, c->arena);
    if (cel_compile(c->arena, x->source, &e, &x->program, &err)) {
        x->problem = arena_printf(c->arena, "compilation failed: %.*s", STR_F(err.message));
        x->program = NULL;
        return;
    }
    x->problem = check_result(c->arena, wanted, cel_program_type(x->program));
    if (!x->problem.n)
        return;
    cel_program_release(x->program);
    x->program = NULL;
}

static struct cel_expressions expressions(const struct compiling *c, const char *list,
                                          const char *field, const char *name)
{
    const cJSON *items = json_get(c->spec, list);
    struct cel_expressions x = {NULL, 0};

    x.items = arena_alloc(c->arena, (json_count(items) + 1) * sizeof(*x.items));
    json_each(item, items)
    {
        x.items[x.n] = (struct cel_expression){
            .list = list,
            .field = field,
            .index = x.n,
            .name = arena_str(c->arena, json_str(json_get(item, name))),
            .source = arena_str(c->arena, json_str(json_get(item, field))),
        };
        x.n++;
    }
    return x;
}

static void compile_all(struct compiling *c, struct cel_expressions *x, const char *wanted,
                        bool authorizer)
{
    for (size_t i = 0; i < x->n; i++) {
        if (str_trim(x->items[i].source).n)
            compile(c, &x->items[i], wanted, authorizer);
    }
}

/* What a mutation gives: an object to apply, or the operations of a patch. */
static void compile_mutations(struct compiling *c)
{
    const cJSON *list = json_get(c->spec, "mutations");
    struct cel_expressions *x = &c->policy->mutations;

    *x = (struct cel_expressions){
        .items = arena_alloc(c->arena, (json_count(list) + 1) * sizeof(*x->items))};
    json_each(mutation, list)
    {
        bool is_patch = str_eqc(json_str(json_get(mutation, "patchType")), "JSONPatch");
        const cJSON *how = json_get(mutation, is_patch ? "jsonPatch" : "applyConfiguration");

        x->items[x->n] = (struct cel_expression){
            .list = "mutations",
            .field = is_patch ? "jsonPatch.expression" : "applyConfiguration.expression",
            .index = x->n,
            .source = arena_str(c->arena, json_str(json_get(how, "expression"))),
        };
        if (str_trim(x->items[x->n].source).n)
            compile(c, &x->items[x->n], is_patch ? "L{JSONPatch}" : "{Object}", true);
        x->n++;
    }
}

void cel_policy_compile(struct arena *a, const cJSON *spec, struct cel_policy *ret)
{
    struct compiling c = {.arena = a, .spec = spec, .policy = ret, .start = arena_used(a)};

    *ret = (struct cel_policy){0};
    ret->conditions = expressions(&c, "matchConditions", "expression", "name");
    compile_all(&c, &ret->conditions, "b", true); /* which cannot name variables */
    ret->variables = expressions(&c, "variables", "expression", "name");
    for (; c.declared < ret->variables.n; c.declared++) {
        if (str_trim(ret->variables.items[c.declared].source).n)
            compile(&c, &ret->variables.items[c.declared], "", true);
    }
    ret->validations = expressions(&c, "validations", "expression", "");
    compile_all(&c, &ret->validations, "b", true);
    ret->messages = expressions(&c, "validations", "messageExpression", "");
    compile_all(&c, &ret->messages, "s", false);
    ret->annotations = expressions(&c, "auditAnnotations", "valueExpression", "key");
    compile_all(&c, &ret->annotations, "sn", false);
    compile_mutations(&c);
}

static void release(struct cel_expressions *x)
{
    for (size_t i = 0; i < x->n; i++) {
        cel_program_release(x->items[i].program);
        x->items[i].program = NULL;
    }
}

void cel_policy_release(struct cel_policy *p)
{
    release(&p->conditions);
    release(&p->variables);
    release(&p->validations);
    release(&p->messages);
    release(&p->annotations);
    release(&p->mutations);
}
