/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the fitting nodes is best: free resources, preferred affinities, PreferNoSchedule
 * taints. Deterministic: equal nodes are ordered by number of pods, then by name. Source: the
 * weights of scheduler/apis/config/v1/default_plugins.go. */
#include "scheduler.h"

#define FULL 100
enum {
    WEIGHT_ROOM = 1,
    WEIGHT_AFFINITY = 2,
    WEIGHT_COMPANY = 2,
    WEIGHT_SPREAD = 2,
    WEIGHT_TAINT = 3
};

struct scores {
    int64_t affinity, company, spread, taints; /* raw */
};

static int64_t free_share(int64_t used, int64_t requested, int64_t have)
{
    int64_t left = have - used - requested;

    return have <= 0 || left <= 0 ? 0 : (int64_t)((__int128)left * FULL / have);
}

/* NodeResourcesFit, LeastAllocated: of CPU and memory alike. */
static int64_t room(const struct attempt *t, const struct node_entry *n)
{
    int64_t cpu = free_share(n->cpu_or_some, t->entry->cpu_or_some,
                             quantities_get(&n->allocatable, STR("cpu")));
    int64_t memory = free_share(n->memory_or_some, t->entry->memory_or_some,
                                quantities_get(&n->allocatable, STR("memory")));

    return (cpu + memory) / 2;
}

static int64_t preferred_affinity(const struct attempt *t, const struct node_entry *n)
{
    int64_t sum = 0;

    json_each(p, json_path(t->pod, "spec.affinity.nodeAffinity."
                                   "preferredDuringSchedulingIgnoredDuringExecution"))
    {
        if (embedded_node_term_matches(t->arena, json_get(p, "preference"), n))
            sum += json_i64_at(p, "weight", 0);
    }
    return sum;
}

static int64_t soft_taints(const struct attempt *t, const struct node_entry *n)
{
    int64_t sum = 0;

    json_each(taint, json_get(n->spec, "taints")) sum +=
        str_eqc(json_str_at(taint, "effect"), "PreferNoSchedule") &&
        !toleration_find(json_path(t->pod, "spec.tolerations"), taint);
    return sum;
}

/* Pods of the same domain that the pod's preferred terms match. */
static int64_t company(const struct attempt *t, const struct node_entry *n,
                       const struct pod_terms *terms)
{
    struct node_entry *other, *tmp;
    const struct pod_entry *p;
    int64_t sum = 0;

    for (size_t i = 0; i < terms->n; i++) {
        const struct pod_term *term = &terms->list[i];
        struct str here, there;

        if (!labels_get(n->object->labels, term->topology, &here))
            continue;
        HASH_ITER(hh, t->cluster->nodes, other, tmp)
        {
            if (!labels_get(other->object->labels, term->topology, &there) || !str_eq(here, there))
                continue;
            LIST_FOREACH(p, &other->pods, place_on_node)
            {
                sum +=
                    embedded_pod_term_matches(t->cluster->api, term, p->object) ? term->weight : 0;
            }
        }
    }
    return sum;
}

/* ScheduleAnyway: how many of the kind are in the domain already. */
static int64_t crowd(const struct attempt *t, const struct node_entry *n)
{
    int64_t sum = 0;

    json_each(c, json_path(t->pod, "spec.topologySpreadConstraints"))
    {
        struct pod_term term = {.topology = json_str_at(c, "topologyKey"),
                                .namespaces = &t->entry->object->ns,
                                .n_namespaces = 1,
                                .weight = 1};
        struct pod_terms terms = {&term, 1};

        if (!selector_from_json(t->arena, json_get(c, "labelSelector"), &term.selector, NULL))
            sum += company(t, n, &terms);
    }
    return sum;
}

static int64_t scale(int64_t value, int64_t low, int64_t high)
{
    return high == low ? 0 : (value - low) * FULL / (high - low);
}

struct range {
    int64_t low, high;
};

static void widen(struct range *r, int64_t value, bool first)
{
    if (first || value < r->low)
        r->low = value;
    if (first || value > r->high)
        r->high = value;
}

static bool better(const struct node_entry *a, int64_t a_score, const struct node_entry *b,
                   int64_t b_score)
{
    if (!b || a_score != b_score)
        return !b || a_score > b_score;
    if (a->n_pods != b->n_pods)
        return a->n_pods < b->n_pods;
    return str_cmp(a->name, b->name) < 0;
}

struct node_entry *score_best(struct attempt *t, struct node_entry **fitting, size_t n)
{
    struct pod_terms near = embedded_pod_terms_read(t->arena, t->pod, "podAffinity", false);
    struct pod_terms far = embedded_pod_terms_read(t->arena, t->pod, "podAntiAffinity", false);
    struct scores *raw = arena_alloc(t->arena, (n + 1) * sizeof(*raw));
    struct range affinity = {0}, company_range = {0}, spread = {0}, taints = {0};
    struct node_entry *best = NULL;
    int64_t best_score = 0;

    for (size_t i = 0; i < n; i++) {
        raw[i] = (struct scores){
            .affinity = preferred_affinity(t, fitting[i]),
            .company = company(t, fitting[i], &near) - company(t, fitting[i], &far),
            .spread = crowd(t, fitting[i]),
            .taints = soft_taints(t, fitting[i]),
        };
        widen(&affinity, raw[i].affinity, !i);
        widen(&company_range, raw[i].company, !i);
        widen(&spread, raw[i].spread, !i);
        widen(&taints, raw[i].taints, !i);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t score =
            WEIGHT_ROOM * room(t, fitting[i]) +
            WEIGHT_AFFINITY * scale(raw[i].affinity, affinity.low, affinity.high) +
            WEIGHT_COMPANY * scale(raw[i].company, company_range.low, company_range.high) -
            WEIGHT_SPREAD * scale(raw[i].spread, spread.low, spread.high) -
            WEIGHT_TAINT * scale(raw[i].taints, taints.low, taints.high);

        if (!better(fitting[i], score, best, best_score))
            continue;
        best = fitting[i];
        best_score = score;
    }
    return best;
}
