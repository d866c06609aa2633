/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingAdmissionPolicy: the tenant's policies change the object of a write, after every other
 * mutating plug-in and before webhooks. All policies are matched against the object as it came;
 * then each changes what the one before it made. Which writes of our own they see, and that they
 * never change a policy, is as with validating ones (policy.c). What they make is decoded, gets
 * defaults and is judged as if the client had sent it. Source: k8s.io/apiserver
 * policy/mutating/dispatcher.go, policy/generic/policy_dispatcher.go. */
#include "policies.h"

#define LEAST_ARENA ((size_t)16 << 20) /* of the call's, for one more object */

struct mutating {
    struct policy_request *q;
    cJSON *object; /* changed in place: its callers hold it */
    struct policy_invocation *items;
    size_t n, cap;
    struct err *err;
};

/* ---- answers ---- */

static const struct err_kind INVALID_BY_POLICY = {"Invalid", 403};

/* The first problem answers; all are causes. */
static void refuse(struct mutating *m, const struct policy *p, const struct policy *binding,
                   struct str why, const struct err_kind *kind)
{
    const struct admission_call *c = m->q->call;
    struct str text;

    if (p->ignores)
        return;
    text = binding
               ? arena_printf(c->arena, "policy '%.*s' with binding '%.*s' denied request: %.*s",
                              STR_F(p->head.name), STR_F(binding->head.name), STR_F(why))
               : arena_printf(c->arena, "policy \"%.*s\" denied request: %.*s", STR_F(p->head.name),
                              STR_F(why));
    if (!m->err->kind) {
        err_forbidden(m->err, c->resource->group, c->resource->plural, plugin_shown_name(c->name),
                      "%.*s", STR_F(text));
        m->err->message = text;
        m->err->kind = kind;
    }
    err_cause(m->err, STR(""), STR(""), text);
}

/* ---- which ---- */

static void on_problem(void *ctx, const struct policy *p, const struct policy *binding,
                       const char *why)
{
    struct mutating *m = ctx;

    refuse(m, p, binding,
           arena_printf(m->q->arena, "failed to configure %s: %s", binding ? "binding" : "policy",
                        why),
           &ERR_FORBIDDEN);
}

static void on_invocation(void *ctx, const struct policy_invocation *x)
{
    struct mutating *m = ctx;

    ARENA_GROW(m->q->arena, m->items, m->n, m->cap);
    m->items[m->n++] = *x;
}

/* ---- changing the object ---- */

/* What the server sets after mutating admission is not shown. */
static cJSON *shown(const struct mutating *m, const struct resource *as)
{
    static const char *const set[] = {"uid", "creationTimestamp", "generation"};
    struct policy_request *q = m->q;
    cJSON *tree = json_copy(q->arena, policy_viewed(q, as, m->object));
    cJSON *metadata = json_get(tree, "metadata");

    if (q->call->operation != ADMISSION_CREATE || q->call->apart)
        return tree;
    for (size_t i = 0; i < COUNT(set); i++)
        json_remove(metadata, set[i]);
    if (!q->name.n)
        json_remove(metadata, "name");
    return tree;
}

/* The members of made take the place of the object's; the first time, those are kept. */
static void replace(struct mutating *m, cJSON *made)
{
    const struct admission_call *c = m->q->call;

    if (!*c->replaced) {
        *c->replaced = json_new_object(c->arena);
        (*c->replaced)->child = m->object->child;
    }
    m->object->child = made->child;
}

/* False: the request is refused, whatever a failurePolicy says. */
static bool run_mutation(struct mutating *m, const struct policy_invocation *x,
                         struct policy_view *v, size_t index)
{
    const struct admission_call *c = m->q->call;
    struct str error;
    cJSON *made;

    if (!policy_patch(m->q, x->policy, v, x->params, index, &made, &error)) {
        refuse(m, x->policy, x->binding, error, &INVALID_BY_POLICY);
        return true;
    }
    if (!made || json_equal(made, v->object))
        return true;
    if (arena_left(c->arena) < LEAST_ARENA) {
        err_set(m->err, &ERR_TOO_LARGE, "the mutations of admission policies are too large");
        return false;
    }
    made = json_copy(c->arena, made);
    if (c->decode(c->call, x->as, made, m->err)) {
        struct str why = arena_str(c->arena, m->err->message);

        err_clear(m->err);
        err_set(m->err, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(why));
        err_cause(m->err, STR(""), STR(""), why);
        return false;
    }
    replace(m, made);
    v->object = shown(m, x->as);
    return true;
}

static bool invoke(struct mutating *m, const struct policy_invocation *x)
{
    struct policy_view v = {
        .resource = x->as, .object = shown(m, x->as), .old = policy_viewed(m->q, x->as, m->q->old)};
    struct str error;
    int held = policy_conditions_hold(m->q, x->policy, &v, x->params, &error);

    if (held < 0)
        refuse(m, x->policy, x->binding, error, &INVALID_BY_POLICY);
    for (size_t i = 0; held > 0 && i < x->policy->expressions.mutations.n; i++) {
        if (!run_mutation(m, x, &v, i))
            return false;
    }
    return true;
}

/* Copies of the object are charged by their size; what the budget does not reach is a problem. */
static bool invoke_within(struct mutating *m, const struct policy_invocation *x)
{
    struct policy_request *q = m->q;
    size_t before = arena_used(q->arena);
    bool ret;

    if (q->left <= 0 || arena_over(q->arena)) {
        refuse(m, x->policy, x->binding, STR(POLICY_OUT_OF_BUDGET), &INVALID_BY_POLICY);
        return true;
    }
    ret = invoke(m, x);
    q->left -= (int64_t)(arena_used(q->arena) - before) / 16;
    return ret;
}

int mutating_policy_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    struct policy_request q = {.call = c, .object = object, .left = POLICY_REQUEST_LIMIT};
    struct mutating m = {.q = &q, .object = object, .err = err};
    const struct policy *const *policies;
    size_t n;

    if (!object || !c->decode || policy_is_exempt(c))
        return 0;
    policies = policies_current(&q, POLICIES_MUTATING, &n);
    if (!n)
        return 0;
    q.arena = arena_new(POLICY_MEMORY);
    policy_begin(&q);
    if (policy_is_unnamed(c, object))
        q.name = STR("");
    q.old = c->operation == ADMISSION_CREATE ? NULL : old;
    for (size_t i = 0; i < n; i++) {
        if (!c->again ||
            str_eqc(json_str(json_get(policies[i]->spec, "reinvocationPolicy")), "IfNeeded"))
            policy_each_invocation(&q, POLICIES_MUTATING, policies[i], on_invocation, on_problem,
                                   &m);
    }
    for (size_t i = 0; i < m.n; i++) {
        if (!invoke_within(&m, &m.items[i]))
            break;
    }
    arena_free(q.arena);
    return err->kind ? -1 : 0;
}
