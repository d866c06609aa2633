/* SPDX-License-Identifier: Apache-2.0 */
/* ValidatingAdmissionPolicy: a write is refused, warned about or annotated as the tenant's policies
 * say, after every other plug-in but quota. Policies never judge themselves, so that one that
 * refuses everything can be deleted; of the writes of our own controllers they judge what is
 * created for a tenant's workload, never a status, a deletion or what is shown from the host.
 * Source: k8s.io/apiserver policy/validating/dispatcher.go, policy/generic/plugin.go. */
#include "policy_view.h"

#include <sublet/json_build.h>
#include <sublet/object.h>

#define MOST_ANNOTATION (10 * 1024)
#define FAILURE_KEY     "validation.policy.admission.k8s.io/validation_failure"

/* ---- which writes ---- */

bool policy_is_exempt(const struct admission_call *c)
{
    bool is_own = c->user->groups == USER_INTERNAL.groups && !c->controller;

    return is_own || (c->resource->flags & (RES_REVIEW | RES_BINDING)) == RES_REVIEW ||
           (str_eqc(c->resource->group, "admissionregistration.k8s.io") &&
            str_word_index("validatingadmissionpolicies|validatingadmissionpolicybindings|"
                           "mutatingadmissionpolicies|mutatingadmissionpolicybindings",
                           c->resource->plural) >= 0);
}

bool policy_is_unnamed(const struct admission_call *c, const cJSON *object)
{
    struct str prefix = json_str_at(object, "metadata.generateName");

    return c->operation == ADMISSION_CREATE && !c->subresource.n && !c->path_name.n && prefix.n &&
           str_has_prefix(c->name, prefix);
}

/* The namespace of a Namespace is its name, unless that was generated: upstream's attributes are
 * made before. */
void policy_begin(struct policy_request *q)
{
    const struct admission_call *c = q->call;

    q->user = policy_request_user(q->arena, c);
    q->name = c->name;
    q->ns = !resource_is_namespace(c->resource) ? c->ns
            : policy_is_unnamed(c, q->object)   ? STR("")
                                                : c->name;
}

/* ---- answers ---- */

struct dispatch {
    struct policy_request *q;
    bool looks; /* only at which versions of the object are needed */
    bool refused;
    struct str message, reason; /* of the first refusal */
};

static void refuse(struct dispatch *d, const struct policy *p, const struct policy *binding,
                   struct str message, struct str reason)
{
    struct arena *a = d->q->call->arena;

    if (d->refused)
        return;
    d->refused = true;
    d->reason = arena_str(a, reason);
    if (binding)
        d->message = arena_printf(
            a, "ValidatingAdmissionPolicy '%.*s' with binding '%.*s' denied request: %.*s",
            STR_F(p->head.name), STR_F(binding->head.name), STR_F(message));
    else
        d->message = arena_printf(a, "ValidatingAdmissionPolicy '%.*s' denied request: %.*s",
                                  STR_F(p->head.name), STR_F(message));
}

static void misconfigured(struct dispatch *d, const struct policy *p, const struct policy *binding,
                          const char *why)
{
    if (!p->ignores)
        refuse(d, p, binding,
               arena_printf(d->q->arena, "failed to configure %s: %s",
                            binding ? "binding" : "policy", why),
               STR_NULL);
}

static const struct err_kind *kind_of(struct str reason)
{
    static const struct err_kind *const kinds[] = {&ERR_UNAUTHORIZED, &ERR_FORBIDDEN,
                                                   &ERR_TOO_LARGE};
    int i = str_word_index("Unauthorized|Forbidden|RequestEntityTooLarge", reason);

    return i < 0 ? &ERR_INVALID : kinds[i];
}

static int answer(const struct dispatch *d, struct err *err)
{
    const struct admission_call *c = d->q->call;

    if (!d->refused)
        return 0;
    err_forbidden(err, c->resource->group, c->resource->plural, plugin_shown_name(c->name), "%.*s",
                  STR_F(d->message));
    err_cause(err, STR(""), STR(""), d->message);
    err->kind = kind_of(d->reason);
    return -1;
}

static void put_audit(const struct dispatch *d, struct str key, struct str value)
{
    const struct admission_call *c = d->q->call;

    if (c->annotate)
        c->annotate(c->warn_ctx, key, value);
}

static void audit(const struct dispatch *d, const struct policy *binding,
                  const struct policy_decision *r)
{
    struct arena *a = d->q->arena;
    const cJSON *actions = json_get(binding->spec, "validationActions");
    cJSON *failure = json_object(
        a, JSON("message", r->message), JSON("policy", binding->policy_name),
        JSON("binding", binding->head.name), JSON_I64("expressionIndex", (int64_t)r->index),
        JSON("validationActions", json_copy(a, actions)));

    put_audit(d, STR(FAILURE_KEY), json_text(a, json_array(a, failure)));
}

static void apply_refusal(struct dispatch *d, const struct policy *p, const struct policy *binding,
                          const struct policy_decision *r)
{
    const struct admission_call *c = d->q->call;

    json_each(action, json_get(binding->spec, "validationActions"))
    {
        struct str s = json_str(action);

        if (str_eqc(s, "Deny"))
            refuse(d, p, binding, r->message, r->reason);
        else if (str_eqc(s, "Audit"))
            audit(d, binding, r);
        else if (str_eqc(s, "Warn") && c->warn)
            c->warn(c->warn_ctx, arena_printf(d->q->arena,
                                              "Validation failed for ValidatingAdmissionPolicy "
                                              "'%.*s' with binding '%.*s': %.*s",
                                              STR_F(p->head.name), STR_F(binding->head.name),
                                              STR_F(r->message)));
    }
}

/* ---- annotations of all bindings of a policy: different values are joined ---- */

struct annotations {
    struct policy_annotation *items;
    size_t n, cap;
};

static void collect(struct dispatch *d, struct annotations *all, const struct policy_annotation *x)
{
    struct arena *a = d->q->arena;
    struct str value = str_clip(x->value, MOST_ANNOTATION);

    for (size_t i = 0; i < all->n; i++) {
        if (!str_eq(all->items[i].key, x->key))
            continue;
        if (!str_eq(all->items[i].value, value))
            all->items[i].value =
                arena_printf(a, "%.*s, %.*s", STR_F(all->items[i].value), STR_F(value));
        return;
    }
    ARENA_GROW(a, all->items, all->n, all->cap);
    all->items[all->n++] = (struct policy_annotation){.key = x->key, .value = value};
}

static void apply(struct dispatch *d, const struct policy *p, const struct policy *binding,
                  const struct policy_result *r, struct annotations *all)
{
    for (size_t i = 0; i < r->n_refusals; i++)
        apply_refusal(d, p, binding, &r->refusals[i]);
    for (size_t i = 0; i < r->n_annotations; i++) {
        if (r->annotations[i].problem.n)
            refuse(d, p, binding, r->annotations[i].problem, STR_NULL);
        else
            collect(d, all, &r->annotations[i]);
    }
}

/* ---- policies and bindings ---- */

struct running {
    struct dispatch *d;
    struct policy_view v; /* of the policy, once a binding applies */
    struct annotations all;
};

static void on_problem(void *ctx, const struct policy *p, const struct policy *binding,
                       const char *why)
{
    struct dispatch *d = ((struct running *)ctx)->d;

    if (!d->looks)
        misconfigured(d, p, binding, why);
}

/* Of the old object first, as upstream. */
static bool open_view(struct running *run, const struct policy_invocation *x)
{
    struct policy_request *q = run->d->q;
    struct policy_view v = {.resource = x->as};
    struct str why = STR_NULL;
    bool seen = policy_view_open(q, x->as, q->old, &v.old, &why);

    if ((seen || q->waits) && policy_view_open(q, x->as, q->object, &v.object, &why) && seen)
        run->v = v;
    else if (why.n)
        on_problem(run, x->policy, x->binding,
                   arena_printf(q->arena, "failed to convert object version: %.*s", STR_F(why)).p);
    return run->v.resource != NULL;
}

static void on_invocation(void *ctx, const struct policy_invocation *x)
{
    struct running *run = ctx;
    struct policy_result r;

    if ((!run->v.resource && !open_view(run, x)) || run->d->looks)
        return;
    policy_evaluate(run->d->q, x->policy, &run->v, x->params, &r);
    apply(run->d, x->policy, x->binding, &r, &run->all);
}

static void run_policy(struct dispatch *d, const struct policy *p)
{
    struct running run = {.d = d};

    policy_each_invocation(d->q, POLICIES_VALIDATING, p, on_invocation, on_problem, &run);
    for (size_t i = 0; i < run.all.n; i++)
        put_audit(d,
                  arena_printf(d->q->arena, "%.*s/%.*s", STR_F(p->head.name),
                               STR_F(run.all.items[i].key)),
                  run.all.items[i].value);
}

/* Does a policy need a version of the object that is not made yet? No expression is evaluated
 * before all are, so that a request is warned about and audited once. */
static bool waits(struct dispatch *d, const struct policy *const *policies, size_t n)
{
    struct policy_request *q = d->q;

    if (!q->call->resource->conversion || q->call->apart)
        return false;
    d->looks = true;
    for (size_t i = 0; i < n; i++)
        run_policy(d, policies[i]);
    d->looks = false;
    q->left = POLICY_REQUEST_LIMIT;
    return q->waits;
}

int validating_policy_validate(const struct admission_call *c, cJSON *object, const cJSON *old,
                               struct err *err)
{
    struct policy_request q = {.call = c, .object = object, .left = POLICY_REQUEST_LIMIT};
    struct dispatch d = {.q = &q};
    const struct policy *const *policies;
    int ret;
    size_t n;

    if (policy_is_exempt(c))
        return 0;
    policies = policies_current(&q, POLICIES_VALIDATING, &n);
    if (!n)
        return 0;
    q.arena = arena_new(POLICY_MEMORY);
    q.old = c->operation == ADMISSION_CREATE ? NULL : old;
    policy_begin(&q);
    if (waits(&d, policies, n)) {
        ret = policy_view_wait(err);
    } else {
        for (size_t i = 0; i < n; i++)
            run_policy(&d, policies[i]);
        ret = answer(&d, err);
    }
    arena_free(q.arena);
    return ret;
}
