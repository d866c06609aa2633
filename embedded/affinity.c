/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pod may run relative to other pods: affinity, anti-affinity of both sides, topology
 * spread. Counts once per attempt, then answers per node by look-up. Source: scheduler plugins
 * interpodaffinity and podtopologyspread, filtering.go. */
#include "attempt.h"

#include <stdio.h>

/* (topology key, value) -> count, for one term. */
struct pair {
    UT_hash_handle hh;
    char *text; /* "term\0key\0value" */
    int64_t count;
};

/* Terms share one map: their number is part of the key. */
#define TERM_EXISTING    0u /* others' anti-affinity toward this pod */
#define TERM_AFFINITY(i) (1u + (unsigned)(i)*3u)
#define TERM_ANTI(i)     (2u + (unsigned)(i)*3u)
#define TERM_SPREAD(i)   (3u + (unsigned)(i)*3u)

#define AFFINITY_WORDS "node(s) didn't match pod affinity rules"
#define ANTI_WORDS     "node(s) didn't match pod anti-affinity rules"
#define EXISTING_WORDS "node(s) didn't satisfy existing pods anti-affinity rules"
#define SPREAD_WORDS   "node(s) didn't match pod topology spread constraints"
#define SPREAD_MISSING SPREAD_WORDS " (missing required label)"

/* --- pairs --- */

static size_t pair_text(char *to, size_t size, unsigned term, struct str key, struct str value)
{
    int n = snprintf(to, size, "%u\n%.*s\n%.*s", term, STR_F(key), STR_F(value));

    return (size_t)n < size ? (size_t)n : size - 1;
}

static struct pair *pair_find(const struct attempt *t, unsigned term, struct str key,
                              struct str value)
{
    char text[512];
    size_t n = pair_text(text, sizeof(text), term, key, value);
    struct pair *p;

    HASH_FIND(hh, t->pairs, text, n, p);
    return p;
}

static void pair_add(struct attempt *t, unsigned term, struct str key, struct str value, int64_t by)
{
    struct pair *p = pair_find(t, term, key, value);
    char text[512];
    size_t n;

    if (!p) {
        n = pair_text(text, sizeof(text), term, key, value);
        p = NEW(struct pair);
        p->text = mem_strdup((struct str){text, n});
        HASH_ADD_KEYPTR(hh, t->pairs, p->text, n, p);
    }
    p->count += by;
}

static int64_t count_of(const struct attempt *t, unsigned term, struct str key, struct str value)
{
    const struct pair *p = pair_find(t, term, key, value);

    return p ? p->count : 0;
}

void attempt_fini(struct attempt *t)
{
    struct pair *p, *tmp;

    HASH_ITER(hh, t->pairs, p, tmp)
    {
        HASH_DEL(t->pairs, p);
        mem_free(p->text);
        mem_free(p);
    }
}

/* --- counting --- */

static bool matches_all(const struct attempt *t, const struct store_object *pod)
{
    for (size_t i = 0; i < t->affinity.n; i++) {
        if (!embedded_pod_term_matches(t->cluster->api, &t->affinity.list[i], pod))
            return false;
    }
    return t->affinity.n > 0;
}

static void add_topology(struct attempt *t, unsigned term, const struct node_entry *n,
                         struct str key)
{
    struct str value;

    if (labels_get(n->object->labels, key, &value))
        pair_add(t, term, key, value, 1);
}

static void count_affinity(struct attempt *t, const struct node_entry *n, const struct pod_entry *p)
{
    struct vapi *api = t->cluster->api;

    for (size_t i = 0; i < p->anti.n; i++) {
        if (embedded_pod_term_matches(api, &p->anti.list[i], t->entry->object))
            add_topology(t, TERM_EXISTING, n, p->anti.list[i].topology);
    }
    if (matches_all(t, p->object)) {
        t->affinity_found = true;
        for (size_t i = 0; i < t->affinity.n; i++)
            add_topology(t, TERM_AFFINITY(i), n, t->affinity.list[i].topology);
    }
    for (size_t i = 0; i < t->anti.n; i++) {
        if (embedded_pod_term_matches(api, &t->anti.list[i], p->object))
            add_topology(t, TERM_ANTI(i), n, t->anti.list[i].topology);
    }
}

/* A node counts for a constraint when the pod could be on it. */
static bool spread_counts(const struct attempt *t, const struct spread *s,
                          const struct node_entry *n)
{
    struct str value;

    for (size_t i = 0; i < t->n_spreads; i++) {
        if (!labels_get(n->object->labels, t->spreads[i].topology, &value))
            return false;
    }
    return (!s->honour_affinity || filter_node_wanted(t, n)) &&
           (!s->honour_taints || !filter_untolerated(t, n));
}

static void count_spread(struct attempt *t, size_t i, const struct node_entry *n)
{
    const struct spread *s = &t->spreads[i];
    const struct pod_entry *p;
    int64_t pods = 0;
    struct str value;

    if (!spread_counts(t, s, n) || !labels_get(n->object->labels, s->topology, &value))
        return;
    LIST_FOREACH(p, &n->pods, place_on_node)
    {
        pods += !p->hidden && !p->deleting && str_eq(p->object->ns, t->entry->object->ns) &&
                selector_match(&s->selector, p->object->labels);
    }
    pair_add(t, TERM_SPREAD(i), s->topology, value, pods);
}

/* The minimum over all domains; 0 when there are fewer than minDomains. */
static void find_minimum(struct attempt *t, size_t i)
{
    struct spread *s = &t->spreads[i];
    int64_t domains = 0, least = INT64_MAX;
    struct pair *p, *tmp;
    char text[512];
    size_t n = pair_text(text, sizeof(text), TERM_SPREAD(i), s->topology, STR(""));

    HASH_ITER(hh, t->pairs, p, tmp)
    {
        if (!str_has_prefix(str_c(p->text), (struct str){text, n}))
            continue;
        domains++;
        least = p->count < least ? p->count : least;
    }
    s->minimum = domains < s->min_domains || !domains ? 0 : least;
}

bool attempt_counts_pods(const struct attempt *t)
{
    return t->affinity.n || t->anti.n || t->n_spreads || t->cluster->n_with_anti;
}

void attempt_count(struct attempt *t)
{
    struct node_entry *n, *tmp;
    const struct pod_entry *p;

    attempt_fini(t);
    t->affinity_found = false;
    if (!attempt_counts_pods(t))
        return;
    HASH_ITER(hh, t->cluster->nodes, n, tmp)
    {
        LIST_FOREACH(p, &n->pods, place_on_node)
        {
            if (!p->hidden)
                count_affinity(t, n, p);
        }
        for (size_t i = 0; i < t->n_spreads; i++)
            count_spread(t, i, n);
    }
    for (size_t i = 0; i < t->n_spreads; i++)
        find_minimum(t, i);
}

/* --- answers --- */

/* No pod matches yet: the first of a group may go to any node that has the topology key. */
static bool affinity_holds(const struct attempt *t, const struct node_entry *n)
{
    bool found = true;
    struct str value;

    for (size_t i = 0; i < t->affinity.n; i++) {
        struct str key = t->affinity.list[i].topology;

        if (!labels_get(n->object->labels, key, &value))
            return false;
        found &= count_of(t, TERM_AFFINITY(i), key, value) > 0;
    }
    return found || (!t->affinity_found && t->matches_itself);
}

static bool existing_object(const struct attempt *t, const struct node_entry *n)
{
    struct str labels = n->object->labels, key, value;

    if (!t->cluster->n_with_anti)
        return false;
    while (labels_next(&labels, &key, &value)) {
        if (count_of(t, TERM_EXISTING, key, value))
            return true;
    }
    return false;
}

const char *filter_affinity(const struct attempt *t, const struct node_entry *n, bool *ret_hopeless)
{
    struct str value;

    *ret_hopeless = false;
    if (!affinity_holds(t, n)) {
        *ret_hopeless = true;
        return AFFINITY_WORDS;
    }
    for (size_t i = 0; i < t->anti.n; i++) {
        struct str key = t->anti.list[i].topology;

        if (labels_get(n->object->labels, key, &value) && count_of(t, TERM_ANTI(i), key, value))
            return ANTI_WORDS;
    }
    return existing_object(t, n) ? EXISTING_WORDS : NULL;
}

const char *filter_spread(const struct attempt *t, const struct node_entry *n, bool *ret_hopeless)
{
    struct str value;

    *ret_hopeless = false;
    for (size_t i = 0; i < t->n_spreads; i++) {
        const struct spread *s = &t->spreads[i];

        if (!labels_get(n->object->labels, s->topology, &value)) {
            *ret_hopeless = true;
            return SPREAD_MISSING;
        }
        int64_t here = count_of(t, TERM_SPREAD(i), s->topology, value);
        if (here + s->self - s->minimum > s->max_skew)
            return SPREAD_WORDS;
    }
    return NULL;
}
