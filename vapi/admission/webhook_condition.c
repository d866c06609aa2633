/* SPDX-License-Identifier: Apache-2.0 */
/* matchConditions of a webhook: compiled when a request has passed its rules and selectors, as
 * those of a policy are, and under their budgets. Source: apiserver
 * pkg/admission/plugin/webhook/matchconditions/matcher.go, generic/webhook.go (ShouldCallHook). */
#include "policies.h"
#include "webhook_impl.h"

#include "../core/calls.h"

/* In *ret_error, which lives in `to`: upstream's words of what errors say. */
static int hold(const struct webhook_review *r, const struct webhook_hook *h,
                const struct policy_view *v, struct arena *scratch, struct arena *to,
                struct str *ret_error)
{
    struct admission_call admission;
    struct policy_request q = {.call = &admission, .arena = scratch, .left = POLICY_REQUEST_LIMIT};
    struct policy p = {.spec = h->spec};
    int ret;

    call_admission(r->call, r->operation, &admission);
    admission.resource = r->requested;
    q.user = webhook_user(scratch, r->call);
    admission.user = &q.user;
    q.object = r->object;
    q.old = r->old;
    q.name = r->unnamed ? STR("") : r->call->name;
    q.ns = resource_is_namespace(r->requested) ? q.name : r->call->ns;
    cel_policy_compile(scratch, h->spec, &p.expressions);
    ret = policy_conditions_hold(&q, &p, v, NULL, ret_error);
    if (ret < 0)
        *ret_error = arena_str(to, *ret_error);
    cel_policy_release(&p.expressions);
    return ret;
}

int webhook_conditions(const struct webhook_review *r, const struct webhook_hook *h, cJSON *object,
                       cJSON *old, struct err *err)
{
    const struct policy_view v = {.resource = h->as, .object = object, .old = old};
    struct arena *scratch = arena_new(POLICY_MEMORY);
    struct str error = STR("");
    int ret = hold(r, h, &v, scratch, r->call->arena, &error);

    arena_free(scratch);
    if (ret >= 0)
        return ret;
    if (h->ignores)
        return 0;
    err_forbidden(err, r->requested->group, r->requested->plural,
                  plugin_shown_name(r->unnamed ? STR("") : r->call->name), "%.*s", STR_F(error));
    return -1;
}
