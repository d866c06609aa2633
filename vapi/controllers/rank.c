/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a controller deletes pods. Must be a total order that does not depend on the
 * order of its input. Source: pkg/controller (ActivePodsWithRanks) of Kubernetes 1.36. */
#include "util.h"

#include <stdlib.h>

struct ranked {
    cJSON *pod;
    int64_t key[8]; /* compared in this order; lower is deleted first */
};

static int64_t phase_rank(const cJSON *pod)
{
    struct str phase = json_str_at(pod, "status.phase");

    return str_eqc(phase, "Pending") ? 0 : str_eqc(phase, "Running") ? 2 : 1;
}

static int64_t deletion_cost(const cJSON *pod)
{
    struct str text = json_str(json_get(json_path(pod, "metadata.annotations"),
                                        "controller.kubernetes.io/pod-deletion-cost"));
    int64_t cost = 0;

    /* Upstream refuses a plus sign and leading zeros; a refused value counts as 0. */
    if (!str_to_i64(text, &cost) || cost < INT32_MIN || cost > INT32_MAX)
        return 0;
    return cost;
}

static int64_t restarts_of(const cJSON *pod)
{
    int64_t most = 0;

    json_each(s, json_path(pod, "status.containerStatuses"))
    {
        int64_t n = json_i64_at(s, "restartCount", 0);

        most = n > most ? n : most;
    }
    return most;
}

/* Ages are compared by powers of two (of nanoseconds, as upstream), so that seconds do not decide
 * between two old pods. */
static int64_t age_rank(int64_t since_s, int64_t now_s)
{
    int64_t age = now_s - since_s, rank = -1;

    if (!since_s)
        return INT64_MIN; /* unknown is youngest */
    if (age > INT64_MAX / 1000000000)
        return 63;
    for (age *= 1000000000; age > 0; age >>= 1)
        rank++;
    return rank;
}

static size_t crowd_of(const cJSON *pod, cJSON *const *crowd, size_t n_crowd)
{
    struct str node = json_str_at(pod, "spec.nodeName");
    size_t n = 0;

    for (size_t i = 0; i < n_crowd; i++)
        n += node.n && str_eq(json_str_at(crowd[i], "spec.nodeName"), node);
    return n;
}

static int compare(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;

    for (size_t i = 0; i < COUNT(a->key); i++) {
        if (a->key[i] != b->key[i])
            return a->key[i] < b->key[i] ? -1 : 1;
    }
    return str_cmp(meta_uid(a->pod), meta_uid(b->pod));
}

void pods_rank(struct arena *a, cJSON **pods, size_t n, cJSON *const *crowd, size_t n_crowd,
               int64_t now_s)
{
    struct ranked *ranked = arena_alloc(a, (n + 1) * sizeof(*ranked));

    for (size_t i = 0; i < n; i++) {
        cJSON *pod = pods[i];
        int64_t ready_s = object_time_s(condition_of(pod, "Ready"), "lastTransitionTime");
        bool ready = pod_is_ready(pod);
        struct ranked *r = &ranked[i];

        r->pod = pod;
        r->key[0] = json_str_at(pod, "spec.nodeName").n > 0;
        r->key[1] = phase_rank(pod);
        r->key[2] = ready;
        r->key[3] = deletion_cost(pod);
        r->key[4] = -(int64_t)crowd_of(pod, crowd, n_crowd);
        r->key[5] = ready ? age_rank(ready_s, now_s) : 0;
        r->key[6] = -restarts_of(pod);
        r->key[7] = age_rank(meta_created_s(pod), now_s);
    }
    qsort(ranked, n, sizeof(*ranked), compare);
    for (size_t i = 0; i < n; i++)
        pods[i] = ranked[i].pod;
}
