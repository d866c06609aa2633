/* SPDX-License-Identifier: Apache-2.0 */
/* One policy with one parameter against one request: conditions, validations, messages,
 * annotations, under upstream's budgets and that of the request. Source: k8s.io/apiserver
 * policy/validating/validator.go, admission/plugin/cel/activation.go. */
#include "policies.h"

#include <string.h>

#define N_VARIABLES    8
#define MOST_NESTED    64   /* variables that need variables */
#define MOST_DEPTH     2500 /* levels of all expressions that are being evaluated: of the stack */
#define MOST_MESSAGE   5120
#define CHECK_DISCOUNT 340000 /* upstream charges 350,000 for a look-up in memory */

struct evaluation {
    struct policy_request *q;
    const struct policy *policy;
    struct cel_activation activation;
    const struct cel_variable *all; /* with the authorizer, which comes last */
    size_t n_all;
    struct cel_value *variables; /* evaluated once */
    bool *known;
    int64_t composed; /* cost of variables since the expression began */
    int64_t discount;
    unsigned nested, depth;
};

/* The outcome of an expression. */
struct outcome {
    struct cel_value value;
    struct str error; /* empty: none */
};

static struct cel_value problem(struct evaluation *e, struct str name, const char *how,
                                struct str why)
{
    return (struct cel_value){
        .kind = CEL_ERROR,
        .s = arena_printf(e->q->arena, "composited variable \"%.*s\" fails to %s: %.*s",
                          STR_F(name), how, STR_F(why)),
    };
}

/* ---- variables ---- */

static struct cel_value evaluate_variable(struct evaluation *e, const struct cel_expression *x)
{
    struct cel_activation outer = e->activation;
    struct cel_value v;
    int64_t cost = 0, limit = e->q->left - e->composed;
    unsigned depth = x->program ? cel_program_depth(x->program) : 0;

    if (!x->program)
        return problem(e, x->name, "compile", x->problem);
    if (limit <= 0 || e->nested >= MOST_NESTED || e->depth + depth > MOST_DEPTH)
        return problem(e, x->name, "evaluate",
                       STR("operation cancelled: actual cost limit exceeded"));
    e->nested++;
    e->depth += depth;
    e->activation.variables = e->all;
    e->activation.n = e->n_all;
    v = cel_evaluate(e->q->arena, x->program, &e->activation,
                     limit < CEL_CALL_LIMIT ? limit : CEL_CALL_LIMIT, &cost);
    e->activation = outer;
    e->nested--;
    e->depth -= depth;
    e->composed += cost;
    return v.kind == CEL_ERROR ? problem(e, x->name, "evaluate", v.s) : v;
}

static struct cel_value variable(void *ctx, struct cel_run *run, struct str name)
{
    struct evaluation *e = ctx;
    const struct cel_expressions *list = &e->policy->expressions.variables;

    for (size_t i = 0; i < list->n; i++) {
        if (!str_eq(list->items[i].name, name))
            continue;
        cel_charge(run, i / 16);
        if (!e->known[i])
            e->variables[i] = evaluate_variable(e, &list->items[i]);
        e->known[i] = true;
        return e->variables[i];
    }
    return problem(e, name, "evaluate", STR("no such variable"));
}

static bool authorize(void *ctx, const struct cel_check *check, struct str *ret_reason)
{
    struct evaluation *e = ctx;

    e->discount += CHECK_DISCOUNT;
    return policy_request_authorize(e->q, check, ret_reason);
}

/* ---- expressions ---- */

static void spend(struct evaluation *e, int64_t cost)
{
    cost -= e->discount < cost ? e->discount : cost;
    e->discount = 0;
    e->q->left -= cost;
}

/* -1: the budget is spent, and no other expression of the policy is evaluated. */
static int evaluate(struct evaluation *e, const struct cel_expression *x, int64_t *budget,
                    struct outcome *ret)
{
    struct arena *a = e->q->arena;
    int64_t cost = 0, limit = *budget < e->q->left ? *budget : e->q->left;

    *ret = (struct outcome){0};
    if (x->problem.n) {
        ret->error = arena_printf(a, "compilation error: %.*s", STR_F(x->problem));
        return 0;
    }
    if (!x->program)
        return 0;
    if (limit <= 0 || arena_over(a))
        return -1;
    e->composed = 0;
    e->depth = cel_program_depth(x->program);
    ret->value = cel_evaluate(a, x->program, &e->activation,
                              limit < CEL_CALL_LIMIT ? limit : CEL_CALL_LIMIT, &cost);
    cost += e->composed;
    spend(e, cost);
    *budget -= cost;
    if (*budget <= 0 || e->q->left <= 0)
        return -1;
    if (ret->value.kind == CEL_ERROR)
        ret->error = arena_printf(a, "expression '%.*s' resulted in error: %.*s", STR_F(x->source),
                                  STR_F(ret->value.s));
    return 0;
}

/* ---- the result ---- */

static void refuse(struct evaluation *e, struct policy_result *r, size_t index, struct str message,
                   struct str reason)
{
    (void)e;
    r->refusals[r->n_refusals++] = (struct policy_decision){index, message, reason};
}

/* An error is a refusal, or nothing where the policy ignores failures. */
static void fail(struct evaluation *e, struct policy_result *r, size_t index, struct str message)
{
    if (!e->policy->ignores)
        refuse(e, r, index, message, STR_NULL);
}

/* 1: all conditions hold; 0: one does not; -1: errors decide, in *ret_error. */
static int conditions_hold(struct evaluation *e, struct str *ret_error)
{
    const struct cel_expressions *list = &e->policy->expressions.conditions;
    int64_t budget = CEL_MATCH_LIMIT;
    struct str errors = STR_NULL;
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        struct outcome o;

        if (evaluate(e, &list->items[i], &budget, &o)) {
            *ret_error = STR(POLICY_OUT_OF_BUDGET);
            return -1;
        }
        if (o.error.n) {
            errors = n++ ? arena_printf(e->q->arena, "%.*s, %.*s", STR_F(errors), STR_F(o.error))
                         : o.error;
            continue;
        }
        if (!cel_is_true(o.value))
            return 0;
    }
    if (!n)
        return 1;
    *ret_error = n > 1 ? arena_printf(e->q->arena, "[%.*s]", STR_F(errors)) : errors;
    return -1;
}

/* Of messageExpression; empty when it gives nothing to show. */
static struct str evaluated_message(const struct outcome *o)
{
    struct str s;

    if (o->error.n || o->value.kind != CEL_STRING)
        return STR_NULL;
    s = str_trim(o->value.s);
    return s.n > MOST_MESSAGE || str_find(s, '\n') < s.n ? STR_NULL : s;
}

static struct str message_of(struct evaluation *e, size_t index, const struct outcome *message)
{
    const cJSON *validation = json_at(json_get(e->policy->spec, "validations"), index);
    struct str s = evaluated_message(message);

    if (!s.n)
        s = str_trim(json_str(json_get(validation, "message")));
    if (s.n)
        return s;
    return arena_printf(e->q->arena, "failed expression: %.*s",
                        STR_F(str_trim(json_str(json_get(validation, "expression")))));
}

static struct str reason_of(const struct evaluation *e, size_t index)
{
    const cJSON *validation = json_at(json_get(e->policy->spec, "validations"), index);
    struct str reason = json_str(json_get(validation, "reason"));

    return reason.n ? reason : STR("Invalid");
}

/* Messages have no authorizer, and what the validations left of the budget. */
static void validate(struct evaluation *e, struct policy_result *r)
{
    const struct cel_policy *p = &e->policy->expressions;
    struct outcome *outcomes = arena_alloc(e->q->arena, (p->validations.n + 1) * sizeof(*outcomes));
    struct cel_activation all = e->activation;
    int64_t budget = CEL_POLICY_LIMIT;
    bool spent = false;

    for (size_t i = 0; i < p->validations.n; i++) {
        if (evaluate(e, &p->validations.items[i], &budget, &outcomes[i])) {
            fail(e, r, 0, STR(POLICY_OUT_OF_BUDGET));
            return;
        }
    }
    e->activation.n = e->n_all - 1;
    for (size_t i = 0; i < p->validations.n; i++) {
        struct outcome message = {0};

        spent = spent || evaluate(e, &p->messages.items[i], &budget, &message);
        if (outcomes[i].error.n)
            fail(e, r, i, outcomes[i].error);
        else if (spent)
            fail(e, r, i, STR("failed messageExpression: " POLICY_OUT_OF_BUDGET));
        else if (!cel_is_true(outcomes[i].value))
            refuse(e, r, i, message_of(e, i, &message), reason_of(e, i));
    }
    e->activation = all;
}

static void annotate(struct evaluation *e, struct policy_result *r)
{
    const struct cel_expressions *list = &e->policy->expressions.annotations;
    int64_t budget = CEL_POLICY_LIMIT;
    struct outcome o;

    e->activation.n = e->n_all - 1;
    for (size_t i = 0; i < list->n; i++) {
        struct policy_annotation *a = &r->annotations[r->n_annotations];

        if (evaluate(e, &list->items[i], &budget, &o)) {
            r->n_annotations = r->n_refusals = 0;
            fail(e, r, 0, STR(POLICY_OUT_OF_BUDGET));
            return;
        }
        *a = (struct policy_annotation){.key = list->items[i].name};
        if (o.error.n)
            a->problem = e->policy->ignores ? STR_NULL : o.error;
        else if (o.value.kind == CEL_STRING)
            a->value = str_trim(o.value.s);
        r->n_annotations += a->problem.n || a->value.n;
    }
}

/* What expressions may name; the authorizer comes last, so that messages can leave it out. As
 * upstream, conditions see no namespace, and the requested resource. */
static void begin(struct evaluation *e, struct policy_request *q, const struct policy *p,
                  const struct policy_view *v, const cJSON *params, bool conditions,
                  struct cel_variable all[N_VARIABLES])
{
    const struct admission_call *c = q->call;
    const struct resource *named = conditions ? c->resource : v->resource;
    const cJSON *namespace = conditions ? NULL : policy_namespace_tree(q);
    size_t n_variables = p->expressions.variables.n;
    struct cel_check *own = ARENA_NEW(q->arena, struct cel_check);
    const struct cel_variable bound[N_VARIABLES] = {
        {"object", cel_from_json(v->object)},
        {"oldObject", cel_from_json(v->old)},
        {"params", cel_from_json(params)},
        {"request", cel_from_json(policy_request_tree(q, v->resource, named))},
        {"namespaceObject", cel_from_json(namespace)},
        {"variables", {.kind = CEL_VARIABLES}},
        {"authorizer.requestResource", {.kind = CEL_RESOURCE_CHECK, .p = own}},
        {"authorizer", {.kind = CEL_AUTHORIZER}},
    };

    memcpy(all, bound, sizeof(bound));
    *own = (struct cel_check){.group = c->resource->group,
                              .resource = c->resource->plural,
                              .subresource = c->subresource,
                              .ns = q->ns,
                              .name = q->name};
    *e = (struct evaluation){
        .q = q,
        .policy = p,
        .all = all,
        .n_all = N_VARIABLES,
        .variables = arena_alloc(q->arena, (n_variables + 1) * sizeof(*e->variables)),
        .known = arena_alloc(q->arena, n_variables + 1),
    };
    e->activation = (struct cel_activation){all, N_VARIABLES, variable, authorize, e};
}

int policy_conditions_hold(struct policy_request *q, const struct policy *p,
                           const struct policy_view *v, const cJSON *params, struct str *ret_error)
{
    struct cel_variable all[N_VARIABLES];
    struct evaluation e;

    begin(&e, q, p, v, params, true, all);
    return conditions_hold(&e, ret_error);
}

bool policy_mutation(struct policy_request *q, const struct policy *p, const struct policy_view *v,
                     const cJSON *params, size_t index, struct cel_value *ret,
                     struct str *ret_error)
{
    struct cel_variable all[N_VARIABLES];
    int64_t budget = CEL_POLICY_LIMIT;
    struct evaluation e;
    struct outcome o;

    begin(&e, q, p, v, params, false, all);
    if (evaluate(&e, &p->expressions.mutations.items[index], &budget, &o))
        o.error = STR(POLICY_OUT_OF_BUDGET);
    *ret = o.value;
    *ret_error = o.error;
    return !o.error.n;
}

void policy_evaluate(struct policy_request *q, const struct policy *p, const struct policy_view *v,
                     const cJSON *params, struct policy_result *ret)
{
    struct cel_variable all[N_VARIABLES];
    struct evaluation e;
    struct str error;
    int held;

    begin(&e, q, p, v, params, true, all);
    *ret = (struct policy_result){
        .refusals =
            arena_alloc(q->arena, (p->expressions.validations.n + 1) * sizeof(*ret->refusals)),
        .annotations =
            arena_alloc(q->arena, (p->expressions.annotations.n + 1) * sizeof(*ret->annotations)),
    };
    held = conditions_hold(&e, &error);
    if (held < 0)
        fail(&e, ret, 0, error);
    if (held <= 0)
        return;
    begin(&e, q, p, v, params, false, all);
    validate(&e, ret);
    annotate(&e, ret);
}
