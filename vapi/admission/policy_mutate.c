/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingAdmissionPolicy: the tenant's policies change the object of a write, after every other
 * mutating plug-in and before webhooks. All policies are matched against the object as it came;
 * then each changes what the one before it made. Which writes of our own they see, and that they
 * never change a policy, is as with validating ones (policy.c). What they make is decoded, gets
 * defaults and is judged as if the client had sent it. Source: k8s.io/apiserver
 * policy/mutating/dispatcher.go, policy/generic/policy_dispatcher.go. */
#include "policy_view.h"

#define LEAST_ARENA ((size_t)16 << 20) /* of the call's, for one more object */
#define COST_COPY   16                 /* bytes of a copy for one */

struct mutating {
    struct policy_request *q;
    cJSON *object; /* changed in place: its callers hold it */
    struct policy_invocation *items;
    size_t n, cap;
    /* The object in another version that a webhook makes, until another one is needed; NULL: none.
     * `changed`: by a policy, since it was made. */
    const struct resource *as;
    cJSON *form;
    bool changed;
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

static void not_converted(struct mutating *m, const struct policy *p, struct str why)
{
    if (!m->q->waits)
        on_problem(m, p, NULL, why.p);
}

/* ---- what policies see ---- */

/* What the server sets after mutating admission is not shown. */
static cJSON *shown(const struct mutating *m, const struct resource *as)
{
    static const char *const set[] = {"uid", "creationTimestamp", "generation"};
    struct policy_request *q = m->q;
    cJSON *tree = json_copy(q->arena, policy_view_plain(q, as, m->object));
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

/* The object has the version of the request again. False: it waits, or with m->err. */
static bool settle(struct mutating *m)
{
    const struct admission_call *c = m->q->call;
    struct str why = STR_NULL;
    cJSON *own;

    if (m->changed) {
        if (!policy_view_converted(m->q, c->resource->api_version, m->form, &own, &why)) {
            why = arena_printf(c->arena, "failed to convert object: %.*s", STR_F(why));
            err_clear(m->err);
            err_set(m->err, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(why));
            err_cause(m->err, STR(""), STR(""), why);
            return false;
        }
        replace(m, json_copy(c->arena, own));
    }
    m->as = NULL;
    m->changed = false;
    return true;
}

/* Both as upstream: the old object first. False: q->waits, or *ret_why. */
static bool convert(struct mutating *m, const struct resource *as, struct policy_view *ret,
                    struct str *ret_why)
{
    struct policy_request *q = m->q;
    bool seen = policy_view_open(q, as, q->old, &ret->old, ret_why);

    ret->resource = as;
    if (!policy_view_converts(q, as)) {
        ret->object = shown(m, as);
        return true;
    }
    if (m->as == as) {
        ret->object = m->form;
        return seen;
    }
    return (seen || q->waits) &&
           policy_view_converted(q, as->api_version, shown(m, q->call->resource), &ret->object,
                                 ret_why) &&
           seen;
}

/* What is beyond the budget is refused later. */
static bool can_convert(struct mutating *m, const struct policy_invocation *x)
{
    struct policy_request *q = m->q;
    size_t before = arena_used(q->arena);
    struct str why = STR_NULL;
    struct policy_view v;
    bool ret;

    if (!policy_view_converts(q, x->as) || q->left <= 0 || arena_over(q->arena))
        return true;
    ret = convert(m, x->as, &v, &why);
    q->left -= (int64_t)(arena_used(q->arena) - before) / COST_COPY;
    if (!ret)
        not_converted(m, x->policy, why);
    return ret;
}

/* All versions are made before the first policy changes the object. */
static void on_invocation(void *ctx, const struct policy_invocation *x)
{
    struct mutating *m = ctx;

    if (!can_convert(m, x))
        return;
    ARENA_GROW(m->q->arena, m->items, m->n, m->cap);
    m->items[m->n++] = *x;
}

/* ---- changing the object ---- */

/* False: the request is refused, whatever a failurePolicy says, or waits. */
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
    /* Upstream writes back what a patch leaves, with the defaults of its version. */
    if (!made || (m->as != x->as && json_equal(made, v->object)))
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
    if (policy_view_converts(m->q, x->as)) {
        m->form = v->object = made;
        m->changed = true;
        return true;
    }
    replace(m, made);
    v->object = shown(m, x->as);
    return true;
}

static bool open_view(struct mutating *m, const struct policy_invocation *x, struct policy_view *v)
{
    struct str why = STR_NULL;

    if (!convert(m, x->as, v, &why)) {
        not_converted(m, x->policy, why);
        return false;
    }
    if (policy_view_converts(m->q, x->as)) {
        m->as = x->as;
        m->form = v->object;
    }
    return true;
}

static bool invoke(struct mutating *m, const struct policy_invocation *x)
{
    struct policy_view v;
    struct str error;
    int held;

    if (m->as != x->as && !settle(m))
        return false;
    if (!open_view(m, x, &v))
        return !m->q->waits;
    held = policy_conditions_hold(m->q, x->policy, &v, x->params, &error);
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
    q->left -= (int64_t)(arena_used(q->arena) - before) / COST_COPY;
    return ret;
}

int mutating_policy_admit(const struct admission_call *c, cJSON *object, const cJSON *old,
                          struct err *err)
{
    struct policy_request q = {.call = c, .object = object, .left = POLICY_REQUEST_LIMIT};
    struct mutating m = {.q = &q, .object = object, .err = err};
    const struct policy *const *policies;
    bool go_on = true;
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
    for (size_t i = 0; i < m.n && !q.waits; i++)
        go_on = go_on && invoke_within(&m, &m.items[i]);
    go_on = go_on && !q.waits && settle(&m);
    arena_free(q.arena);
    if (q.waits)
        return policy_view_wait(err);
    return go_on && !err->kind ? 0 : -1;
}
