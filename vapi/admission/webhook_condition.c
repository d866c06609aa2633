/* SPDX-License-Identifier: Apache-2.0 */
/* Which webhooks see a write: by rules and selectors, then by matchConditions, both as those of a
 * policy. The budgets of conditions are upstream's, and all hooks of a phase share one more:
 * conditions beyond it are errors. Source: apiserver pkg/admission/plugin/webhook/matchconditions/
 * matcher.go, generic/webhook.go (ShouldCallHook). */
#include "webhook_impl.h"

#define COST_MATCH 50
#define COST_COPY  16 /* bytes of a copy for one */

void webhook_pass_begin(struct webhook_pass *p, enum webhook_phase phase,
                        const struct webhook_review *r, const struct webhook_form *f, int64_t left)
{
    *p = (struct webhook_pass){.phase = phase, .review = r, .form = f, .request.left = left};
}

int64_t webhook_pass_end(struct webhook_pass *p)
{
    p->request.arena = arena_free(p->request.arena);
    p->shown = arena_free(p->shown);
    return p->request.left;
}

static void open_request(struct webhook_pass *p)
{
    struct policy_request *q = &p->request;
    const struct webhook_form *f = p->form;

    if (!q->arena)
        webhook_request(p->phase, p->review, arena_new(POLICY_MEMORY), &p->call, q);
    if (p->phase == WEBHOOKS_MUTATING) {
        const cJSON *object = f->as && f->object ? f->object : p->review->object;

        q->has_labels[0] &= q->object == object;
        q->object = object;
    }
}

/* ---- rules and selectors ---- */

bool webhook_is_exempt(const struct webhook_review *r)
{
    return str_eqc(r->requested->group, "admissionregistration.k8s.io");
}

int webhook_pass_matches(struct webhook_pass *p, struct webhook_hook *h, struct err *err)
{
    const struct policy_match *m = &h->parts->match;

    if (!json_count(m->rules))
        return 0;
    open_request(p);
    return policy_matches(&p->request, m, &h->as, err);
}

/* ---- matchConditions ---- */

/* One copy at a time: hooks of other versions may take turns. */
static void open_view(struct webhook_pass *p, const struct resource *as)
{
    if (p->view.resource == as)
        return;
    arena_free(p->shown);
    p->shown = arena_new(0);
    p->view = (struct policy_view){
        .resource = as,
        .object = webhook_shown(p->shown, p->phase, p->review, p->form, as, false),
        .old = webhook_shown(p->shown, p->phase, p->review, p->form, as, true)};
    p->request.left -= (int64_t)arena_used(p->shown) / COST_COPY;
}

static int evaluate(struct webhook_pass *p, const struct webhook_hook *h, struct str *ret_error)
{
    const struct policy hook = {.expressions = h->parts->expressions};
    struct policy_request *q = &p->request;

    *ret_error = STR(POLICY_OUT_OF_BUDGET);
    q->left -= COST_MATCH;
    if (q->left <= 0)
        return -1;
    if (h->parts->left_out) {
        *ret_error = STR("compilation error: the expressions of the configuration are too large");
        return -1;
    }
    open_view(p, h->as);
    return policy_conditions_hold(q, &hook, &p->view, NULL, ret_error);
}

int webhook_pass_admits(struct webhook_pass *p, const struct webhook_hook *h, struct err *err)
{
    const struct webhook_review *r = p->review;
    struct str error;
    int held;

    if (!h->parts->n)
        return 1;
    held = evaluate(p, h, &error);
    if (held >= 0 || h->ignores)
        return held > 0;
    return err_forbidden(err, r->requested->group, r->requested->plural,
                         plugin_shown_name(p->request.name), "%.*s", STR_F(error));
}
