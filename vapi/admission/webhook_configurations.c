/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a webhook configuration: its hooks, selectors and matchConditions compiled. */
#include "webhook_impl.h"

static struct webhook_configuration *configuration_of(struct compiled *c)
{
    return (struct webhook_configuration *)c;
}

static void read(struct compiled *c, const cJSON *tree)
{
    struct webhook_configuration *w = configuration_of(c);
    size_t start;

    w->hooks = json_get(tree, "webhooks");
    w->ignores = true;
    w->parts = arena_alloc(c->arena, (json_count(w->hooks) + 1) * sizeof(*w->parts));
    start = arena_used(c->arena);
    json_each(hook, w->hooks)
    {
        struct webhook_parts *x = &w->parts[w->n++];

        w->ignores &= str_eqc(json_str(json_get(hook, "failurePolicy")), "Ignore");
        policy_match_read(c->arena, hook, "rules", &x->match);
        x->n = json_count(json_get(hook, "matchConditions"));
        x->left_out = x->n && arena_used(c->arena) - start > COMPILED_EXPRESSIONS;
        if (x->n && !x->left_out)
            cel_policy_compile(c->arena, hook, &x->expressions);
    }
}

static void release(struct compiled *c)
{
    struct webhook_configuration *w = configuration_of(c);

    for (size_t i = 0; i < w->n; i++)
        cel_policy_release(&w->parts[i].expressions);
    w->hooks = NULL;
    w->parts = NULL;
    w->n = 0;
}

const struct compiled_kind WEBHOOK_CONFIGURATIONS[] = {
    [WEBHOOKS_MUTATING] = {.plural = "mutatingwebhookconfigurations",
                           .size = sizeof(struct webhook_configuration),
                           .read = read,
                           .release = release},
    [WEBHOOKS_VALIDATING] = {.plural = "validatingwebhookconfigurations",
                             .size = sizeof(struct webhook_configuration),
                             .read = read,
                             .release = release},
};
