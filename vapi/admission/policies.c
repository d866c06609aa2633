/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled policies and bindings of the tenant. Every write compares the revisions of what is
 * stored with those that were compiled: nothing else invalidates the cache, and a write with no
 * policies looks up two counts. Must never keep more than MOST_MEMORY of them: those beyond it are
 * policies that cannot be configured. */
#include "policies.h"

#include <sublet/store.h>

#define MAGIC 0xAD31551Eu
#define GROUP "admissionregistration.k8s.io"

struct policy_list {
    unsigned storage;
    struct policy *items;
    size_t n, cap;
};

struct admission_policies {
    unsigned magic;
    bool ready;                                  /* the ids of the resources are known */
    struct policy_list policies[2], bindings[2]; /* by enum policy_kind */
};

struct admission_policies *admission_policies_new(void)
{
    struct admission_policies *p = NEW(struct admission_policies);

    p->magic = MAGIC;
    return p;
}

static void drop(struct policy *p)
{
    if (!p->arena)
        return;
    cel_policy_release(&p->expressions);
    p->arena = arena_free(p->arena);
}

static void empty(struct policy_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        drop(&l->items[i]);
    mem_free(l->items);
    l->items = NULL;
    l->n = l->cap = 0;
}

struct admission_policies *admission_policies_free(struct admission_policies *p)
{
    if (!p)
        return NULL;
    for (size_t i = 0; i < COUNT(p->policies); i++) {
        empty(&p->policies[i]);
        empty(&p->bindings[i]);
    }
    p->magic = 0;
    return mem_free(p);
}

/* ---- what is stored ---- */

struct reading {
    struct policy_list *list, fresh;
    bool is_policy;
    size_t at; /* in the previous list; both are in order of names */
    bool changed;
};

static void read_policy(struct policy *p, const struct store_object *o, bool is_policy)
{
    cJSON *tree;

    p->arena = arena_new(0);
    p->name = arena_str(p->arena, o->name);
    p->revision = o->revision;
    tree = vapi_tree(p->arena, o);
    p->spec = json_get(tree, "spec");
    if (is_policy) {
        p->ignores = str_eqc(json_str(json_get(p->spec, "failurePolicy")), "Ignore");
        policy_match_read(p->arena, json_get(p->spec, "matchConstraints"), &p->match);
        cel_policy_compile(p->arena, p->spec, &p->expressions);
    } else {
        p->policy_name = json_str(json_get(p->spec, "policyName"));
        policy_match_read(p->arena, json_get(p->spec, "matchResources"), &p->match);
    }
}

/* The compiled one of the previous list moves over when its revision is the same. */
static bool on_stored(void *ctx, const struct store_object *o)
{
    struct reading *r = ctx;
    struct policy *p, *before;

    GROW(r->fresh.items, r->fresh.n, r->fresh.cap);
    p = &r->fresh.items[r->fresh.n++];
    *p = (struct policy){0};
    while (r->at < r->list->n && str_cmp(r->list->items[r->at].name, o->name) < 0)
        r->at++;
    before = r->at < r->list->n ? &r->list->items[r->at] : NULL;
    if (before && str_eq(before->name, o->name) && before->revision == o->revision) {
        *p = *before;
        before->arena = NULL;
    } else {
        read_policy(p, o, r->is_policy);
    }
    return true;
}

static bool on_compared(void *ctx, const struct store_object *o)
{
    struct reading *r = ctx;
    const struct policy *p = r->at < r->list->n ? &r->list->items[r->at++] : NULL;

    r->changed = !p || p->revision != o->revision || !str_eq(p->name, o->name);
    return !r->changed;
}

static void scan(struct store *s, unsigned storage, store_scan_cb each, struct reading *r)
{
    /* An error needs a revision: this is the state of now. */
    if (store_scan(s, storage, STR_NULL, STR_NULL, STR_NULL, 0, each, r, NULL))
        return;
}

static void refresh(struct store *s, struct policy_list *l, bool is_policy)
{
    struct reading r = {.list = l, .is_policy = is_policy};

    r.changed = store_count(s, l->storage) != l->n;
    if (!r.changed)
        scan(s, l->storage, on_compared, &r);
    if (!r.changed)
        return;
    r.at = 0;
    r.fresh.storage = l->storage;
    scan(s, l->storage, on_stored, &r);
    empty(l);
    *l = r.fresh;
}

static unsigned storage_of(const struct admission_call *c, const char *plural)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(c->api), STR(GROUP), str_c(plural));

    return r ? r->storage : 0;
}

static const struct {
    const char *policies, *bindings;
} KINDS[] = {
    [POLICIES_VALIDATING] = {"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
    [POLICIES_MUTATING] = {"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"},
};

static struct admission_policies *cache_of(const struct policy_request *q)
{
    struct admission_policies *p = vapi_admission_policies(q->call->api);

    if (p && !p->ready) {
        for (size_t i = 0; i < COUNT(KINDS); i++) {
            p->policies[i].storage = storage_of(q->call, KINDS[i].policies);
            p->bindings[i].storage = storage_of(q->call, KINDS[i].bindings);
        }
        p->ready = true;
    }
    return p;
}

const struct policy *policies_current(const struct policy_request *q, enum policy_kind kind,
                                      size_t *ret_n)
{
    struct admission_policies *p = cache_of(q);
    struct store *s = vapi_store(q->call->api);

    *ret_n = 0;
    if (!p || (!p->policies[kind].n && !store_count(s, p->policies[kind].storage)))
        return NULL;
    refresh(s, &p->policies[kind], true);
    *ret_n = p->policies[kind].n;
    return p->policies[kind].items;
}

const struct policy *policies_bindings(const struct policy_request *q, enum policy_kind kind,
                                       size_t *ret_n)
{
    struct admission_policies *p = cache_of(q);

    refresh(vapi_store(q->call->api), &p->bindings[kind], false);
    *ret_n = p->bindings[kind].n;
    return p->bindings[kind].items;
}
