/* SPDX-License-Identifier: Apache-2.0 */
/* Which policies a request meets, with which bindings and parameters; finding them is charged to
 * the request. Source: k8s.io/apiserver policy/generic/policy_dispatcher.go. */
#include "policies.h"

#define COST_MATCH 50
#define LEFT_OUT   "it is left out: all together are too large, or too many"

struct finding {
    struct policy_request *q;
    const struct policy *policy;
    const struct resource *as;
    policy_invocation_cb each;
    policy_problem_cb problem;
    void *ctx;
};

/* Why the policy cannot be used; NULL with *ret_matched: it can, or it does not match. */
static const char *find_problem(struct finding *f, bool *ret_matched)
{
    struct err err;
    int matched;

    *ret_matched = true;
    if (!f->policy->head.arena)
        return LEFT_OUT;
    err_init(&err, f->q->arena);
    matched = policy_matches(f->q, &f->policy->match, &f->as, &err);
    if (matched < 0)
        return err.message.p;
    *ret_matched = matched;
    return matched ? policy_params_problem(f->q, f->policy) : NULL;
}

static void find_in_binding(struct finding *f, const struct policy *binding)
{
    const struct resource *unused;
    struct policy_params params;
    const char *problem;
    struct err err;
    int matched;

    f->q->left -= COST_MATCH;
    err_init(&err, f->q->arena);
    matched = binding->head.arena ? policy_matches(f->q, &binding->match, &unused, &err) : -1;
    if (!matched)
        return;
    problem = !binding->head.arena ? LEFT_OUT
              : matched < 0        ? err.message.p
                                   : policy_params_collect(f->q, f->policy, binding, &params);
    if (problem) {
        f->problem(f->ctx, f->policy, binding, problem);
        return;
    }
    for (size_t i = 0; i < params.n; i++) {
        struct policy_invocation x = {f->policy, binding, f->as,
                                      params.items ? params.items[i] : NULL};

        f->each(f->ctx, &x);
    }
}

void policy_each_invocation(struct policy_request *q, enum policy_kind kind, const struct policy *p,
                            policy_invocation_cb each, policy_problem_cb problem, void *ctx)
{
    struct finding f = {.q = q, .policy = p, .each = each, .problem = problem, .ctx = ctx};
    const struct policy *const *bindings;
    const char *why;
    bool matched;
    size_t n;

    q->left -= COST_MATCH;
    why = find_problem(&f, &matched);
    bindings = policies_bindings(q, kind, &n);
    for (size_t i = 0; matched && i < n; i++) {
        if (bindings[i]->policy_name.n && !str_eq(bindings[i]->policy_name, p->head.name))
            continue;
        if (why) {
            problem(ctx, p, NULL, why);
            return;
        }
        find_in_binding(&f, bindings[i]);
    }
}
