/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods would have to go so that a more important one fits: as few and as unimportant ones as
 * possible, those that a disruption budget protects last. Hides pods while it tries and leaves the
 * cluster as it found it. Source: scheduler plugins defaultpreemption, framework/preemption. */
#include "scheduler.h"

#include <assert.h>
#include <stdlib.h>

#define NO_VICTIMS "No preemption victims found for incoming pod"
#define NO_HELP    "Preemption is not helpful for scheduling"

/* --- budgets --- */

struct budget {
    SLIST_ENTRY(budget) place;
    struct str ns;
    struct selector selector;
    int64_t allowed;
};
struct budgets {
    struct arena *arena;
    SLIST_HEAD(, budget) list;
};

static bool on_budget(void *ctx, const struct store_object *o)
{
    struct budgets *s = ctx;
    const cJSON *pdb = vapi_tree(s->arena, o);
    struct budget *b = ARENA_NEW(s->arena, struct budget);

    b->ns = arena_str(s->arena, o->ns);
    b->allowed = json_i64_at(pdb, "status.disruptionsAllowed", 0);
    if (selector_from_json(s->arena, json_path(pdb, "spec.selector"), &b->selector, NULL))
        return true;
    SLIST_INSERT_HEAD(&s->list, b, place);
    return true;
}

static void read_budgets(struct attempt *t, struct budgets *ret)
{
    struct vapi *api = t->cluster->api;

    *ret = (struct budgets){.arena = t->arena};
    int failed = store_scan(vapi_store(api),
                            embedded_resource(api, "policy", "poddisruptionbudgets")->storage,
                            STR_NULL, STR_NULL, STR_NULL, 0, on_budget, ret, NULL);
    assert(!failed); /* the present can always be read */
}

/* Charges the budgets that cover p; true when one of them has nothing left. */
static bool violates(const struct budgets *budgets, const struct pod_entry *p)
{
    bool violated = false;
    struct budget *b;

    SLIST_FOREACH(b, &budgets->list, place)
    {
        if (str_eq(b->ns, p->object->ns) && selector_match(&b->selector, p->object->labels))
            violated |= --b->allowed < 0;
    }
    return violated;
}

/* --- one node --- */

struct candidate {
    struct pod_entry *pod;
    bool violates;
};

static int more_important(const struct pod_entry *a, const struct pod_entry *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->created != b->created)
        return a->created < b->created ? -1 : 1;
    return str_cmp(a->key, b->key);
}

/* Who may stay is tried in this order: protected ones first, then by importance. */
static int by_claim(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;

    if (a->violates != b->violates)
        return a->violates ? -1 : 1;
    return more_important(a->pod, b->pod);
}

static int by_importance(const void *x, const void *y)
{
    return more_important(((const struct candidate *)x)->pod, ((const struct candidate *)y)->pod);
}

static size_t collect(struct attempt *t, const struct node_entry *n, struct candidate **ret)
{
    struct pod_entry *p;
    size_t k = 0;

    *ret = arena_alloc(t->arena, (n->n_pods + 1) * sizeof(**ret));
    LIST_FOREACH(p, &n->pods, place_on_node)
    {
        if (p->priority < t->entry->priority && !p->assumed)
            (*ret)[k++].pod = p;
    }
    return k;
}

static bool fits_now(struct attempt *t, const struct node_entry *n)
{
    struct verdict v;

    if (attempt_counts_pods(t))
        attempt_count(t);
    return filter_node(t, n, &v);
}

static bool find_victims(struct attempt *t, struct node_entry *n, struct victims *ret)
{
    struct budgets budgets;
    struct candidate *list;
    size_t count = collect(t, n, &list);

    read_budgets(t, &budgets);
    *ret = (struct victims){.node = n};
    if (!count)
        return false;
    qsort(list, count, sizeof(*list), by_importance);
    for (size_t i = 0; i < count; i++) {
        list[i].violates = violates(&budgets, list[i].pod);
        cluster_hide(t->cluster, list[i].pod, true);
    }
    bool fits = fits_now(t, n);
    qsort(list, count, sizeof(*list), by_claim);
    ret->list = arena_alloc(t->arena, count * sizeof(struct pod_entry *));
    for (size_t i = 0; i < count && fits; i++) {
        cluster_hide(t->cluster, list[i].pod, false);
        if (fits_now(t, n))
            continue;
        cluster_hide(t->cluster, list[i].pod, true);
        ret->list[ret->n++] = list[i].pod;
        ret->violations += list[i].violates;
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i].pod->hidden)
            cluster_hide(t->cluster, list[i].pod, false);
    }
    return fits && ret->n;
}

/* --- the best node --- */

static int64_t highest(const struct victims *v)
{
    int64_t top = INT64_MIN;

    for (size_t i = 0; i < v->n; i++)
        top = v->list[i]->priority > top ? v->list[i]->priority : top;
    return top;
}

static __int128 sum_of(const struct victims *v)
{
    __int128 sum = 0;

    for (size_t i = 0; i < v->n; i++)
        sum += (__int128)v->list[i]->priority + INT32_MAX + 1;
    return sum;
}

static bool cheaper(const struct victims *a, const struct victims *b)
{
    if (!b->node || a->violations != b->violations)
        return !b->node || a->violations < b->violations;
    if (highest(a) != highest(b))
        return highest(a) < highest(b);
    if (sum_of(a) != sum_of(b))
        return sum_of(a) < sum_of(b);
    if (a->n != b->n)
        return a->n < b->n;
    return str_cmp(a->node->name, b->node->name) < 0;
}

/* Room is being made already: wait for it. */
static bool waits_for_room(const struct attempt *t)
{
    const struct node_entry *n =
        t->entry->nominated ? cluster_node(t->cluster, str_c(t->entry->nominated)) : NULL;
    const struct pod_entry *p;

    if (!n)
        return false;
    LIST_FOREACH(p, &n->pods, place_on_node)
    {
        if (p->deleting && p->priority < t->entry->priority)
            return true;
    }
    return false;
}

static struct str fruitless(struct attempt *t, size_t helpful)
{
    size_t all = HASH_COUNT(t->cluster->nodes);
    struct histogram h = {.arena = t->arena};

    for (size_t i = 0; i < all; i++)
        histogram_add(&h, i < helpful ? STR(NO_VICTIMS) : STR(NO_HELP));
    return arena_printf(t->arena, "preemption: 0/%zu nodes are available: %.*s.", all,
                        STR_F(histogram_text(&h)));
}

bool preempt_find(struct attempt *t, struct node_entry **helpful, size_t n, struct victims *ret,
                  struct str *ret_text)
{
    struct victims one;

    *ret = (struct victims){.node = NULL};
    if (str_eqc(json_str_at(t->pod, "spec.preemptionPolicy"), "Never")) {
        *ret_text = STR("preemption: not eligible due to preemptionPolicy=Never.");
        return false;
    }
    if (waits_for_room(t)) {
        *ret_text = STR("preemption: not eligible due to a terminating pod on the nominated node.");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (find_victims(t, helpful[i], &one) && cheaper(&one, ret))
            *ret = one;
    }
    if (!ret->node)
        *ret_text = fruitless(t, n);
    return ret->node != NULL;
}
