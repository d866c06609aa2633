/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled policies and bindings of the tenant. Must never judge by less than all of them: one
 * that is left out (compiled.h) cannot be configured, whatever it is about. */
#include "policies.h"

#define MAGIC 0xAD31551Eu

struct admission_policies {
    unsigned magic;
    bool ready; /* the lists know their resources */
    struct compiled_budget budget;
    struct compiled_list policies[2], bindings[2]; /* by enum policy_kind */
};

struct admission_policies *admission_policies_new(void)
{
    struct admission_policies *p = NEW(struct admission_policies);

    p->magic = MAGIC;
    p->budget = COMPILED_BUDGET;
    return p;
}

struct admission_policies *admission_policies_free(struct admission_policies *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < COUNT(p->policies); i++) {
        compiled_list_fini(&p->policies[i]);
        compiled_list_fini(&p->bindings[i]);
    }
    p->magic = 0;
    return mem_free(p);
}

/* ---- what is stored ---- */

static void read_policy(struct compiled *c, const cJSON *tree)
{
    struct policy *p = (struct policy *)c;

    p->spec = json_get(tree, "spec");
    p->ignores = str_eqc(json_str(json_get(p->spec, "failurePolicy")), "Ignore");
    policy_match_read(c->arena, json_get(p->spec, "matchConstraints"), "resourceRules", &p->match);
    cel_policy_compile(c->arena, p->spec, &p->expressions);
}

static void release_policy(struct compiled *c)
{
    cel_policy_release(&((struct policy *)c)->expressions);
}

static void read_binding(struct compiled *c, const cJSON *tree)
{
    struct policy *p = (struct policy *)c;

    p->spec = json_get(tree, "spec");
    p->policy_name = json_str(json_get(p->spec, "policyName"));
    policy_match_read(c->arena, json_get(p->spec, "matchResources"), "resourceRules", &p->match);
}

/* Of every policy. */
static void release_binding(struct compiled *c)
{
    ((struct policy *)c)->policy_name = STR("");
}

/* By enum policy_kind. */
static const struct compiled_kind POLICIES[] = {
    {"validatingadmissionpolicies", sizeof(struct policy), read_policy, release_policy},
    {"mutatingadmissionpolicies", sizeof(struct policy), read_policy, release_policy},
};
static const struct compiled_kind BINDINGS[] = {
    {"validatingadmissionpolicybindings", sizeof(struct policy), read_binding, release_binding},
    {"mutatingadmissionpolicybindings", sizeof(struct policy), read_binding, release_binding},
};

static struct admission_policies *cache_of(const struct policy_request *q)
{
    struct vapi *api = q->call->api;
    struct admission_policies *p = vapi_admission_policies(api);

    if (p && !p->ready) {
        for (size_t i = 0; i < COUNT(POLICIES); i++) {
            compiled_list_init(&p->policies[i], api, &POLICIES[i], &p->budget);
            compiled_list_init(&p->bindings[i], api, &BINDINGS[i], &p->budget);
        }
        p->ready = true;
    }
    return p;
}

static const struct policy *const *current(const struct policy_request *q, struct compiled_list *l,
                                           size_t *ret_n)
{
    compiled_refresh(q->call->api, l);
    *ret_n = l->n;
    return (const struct policy *const *)l->items;
}

const struct policy *const *policies_current(const struct policy_request *q, enum policy_kind kind,
                                             size_t *ret_n)
{
    struct admission_policies *p = cache_of(q);

    *ret_n = 0;
    return p ? current(q, &p->policies[kind], ret_n) : NULL;
}

const struct policy *const *policies_bindings(const struct policy_request *q, enum policy_kind kind,
                                              size_t *ret_n)
{
    return current(q, &cache_of(q)->bindings[kind], ret_n);
}
