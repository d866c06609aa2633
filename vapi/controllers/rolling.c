/* SPDX-License-Identifier: Apache-2.0 */
/* How much a Deployment's replica sets grow and shrink. Must never remove more pods than are
 * available beyond the minimum. Source of the rules: pkg/controller/deployment (rolling, recreate,
 * sync) of Kubernetes 1.36. */
#include "deployment.h"

#include <stdlib.h>

/* --- bounds --- */

void rollout_bounds(struct rollout *o)
{
    const cJSON *rolling = json_path(o->deployment, "spec.strategy.rollingUpdate");

    if (o->recreate)
        return;
    o->surge = controller_scaled_value(json_get(rolling, "maxSurge"), o->wanted, true, 0);
    o->unavailable =
        controller_scaled_value(json_get(rolling, "maxUnavailable"), o->wanted, false, 0);
    if (o->surge == 0 && o->unavailable == 0)
        o->unavailable = 1; /* the rollout must be able to progress */
    if (o->unavailable > o->wanted)
        o->unavailable = o->wanted;
}

/* --- scaling a finished or paused rollout --- */

bool rollout_resized(const struct rollout *o)
{
    for (size_t i = 0; i <= o->n_old; i++) {
        const cJSON *rs = rollout_set(o, i);
        int64_t desired = rollout_annotation(rs, DESIRED_REPLICAS);

        if (rollout_rs_wanted(rs) && desired >= 0 && desired != o->wanted)
            return true;
    }
    return false;
}

/* The only set with pods, or with none the newest; NULL when there are several. */
static cJSON *only_set(const struct rollout *o, cJSON *const *active, size_t n)
{
    if (n > 1)
        return NULL;
    if (n == 1)
        return active[0];
    return o->new_rs ? o->new_rs : o->n_old ? o->old[o->n_old - 1] : NULL;
}

static bool saturated(const struct rollout *o)
{
    return o->new_rs && rollout_rs_wanted(o->new_rs) == o->wanted &&
           rollout_annotation(o->new_rs, DESIRED_REPLICAS) == o->wanted &&
           rollout_rs_count(o->new_rs, "availableReplicas") == o->wanted;
}

static int compare_age(const cJSON *a, const cJSON *b)
{
    int order = str_cmp(json_str_at(a, "metadata.creationTimestamp"),
                        json_str_at(b, "metadata.creationTimestamp"));

    return order ? order : str_cmp(meta_name(a), meta_name(b));
}

static int larger_newer(const void *pa, const void *pb)
{
    const cJSON *a = *(cJSON *const *)pa, *b = *(cJSON *const *)pb;

    if (rollout_rs_wanted(a) != rollout_rs_wanted(b))
        return rollout_rs_wanted(a) > rollout_rs_wanted(b) ? -1 : 1;
    return -compare_age(a, b);
}

static int larger_older(const void *pa, const void *pb)
{
    const cJSON *a = *(cJSON *const *)pa, *b = *(cJSON *const *)pb;

    if (rollout_rs_wanted(a) != rollout_rs_wanted(b))
        return rollout_rs_wanted(a) > rollout_rs_wanted(b) ? -1 : 1;
    return compare_age(a, b);
}

/* A set's change in size when the total changes from its annotation to the current one. */
static int64_t fraction(const struct rollout *o, const cJSON *rs)
{
    int64_t size = rollout_rs_wanted(rs), before = rollout_annotation(rs, MAX_REPLICAS);
    int64_t after = o->wanted + o->surge;

    if (o->wanted == 0)
        return -size;
    if (before <= 0)
        before = json_i64_at(o->deployment, "status.replicas", 0);
    if (before <= 0)
        return 0;
    return (2 * size * after + before) / (2 * before) - size;
}

static int64_t clip(int64_t share, int64_t allowed)
{
    if (allowed > 0)
        return share < allowed ? share : allowed;
    return share > allowed ? share : allowed;
}

/* Each set gets its share of the added or removed replicas; the largest gets the remainder. */
static void spread(struct rollout *o, cJSON **sets, size_t n)
{
    int64_t allowed = o->wanted > 0 ? o->wanted + o->surge : 0, add = allowed - rollout_wanted(o);
    int64_t *sizes = arena_alloc(o->arena, (n + 1) * sizeof(*sizes)), added = 0;

    qsort(sets, n, sizeof(*sets), add > 0 ? larger_newer : larger_older);
    for (size_t i = 0; i < n; i++) {
        int64_t share = add == added ? 0 : clip(fraction(o, sets[i]), add - added);

        sizes[i] = rollout_rs_wanted(sets[i]) + share;
        added += share;
    }
    if (n && add)
        sizes[0] += add - added;
    for (size_t i = 0; i < n; i++)
        rollout_scale(o, sets[i], sizes[i] > 0 ? sizes[i] : 0);
}

void rollout_proportional(struct rollout *o)
{
    cJSON **active = arena_alloc(o->arena, (o->n_old + 1) * sizeof(*active));
    size_t n = 0;
    cJSON *one;

    for (size_t i = 0; i <= o->n_old; i++) {
        cJSON *rs = rollout_set(o, i);

        if (rollout_rs_wanted(rs))
            active[n++] = rs;
    }
    one = only_set(o, active, n);
    if (one) {
        if (rollout_rs_wanted(one) != o->wanted)
            rollout_scale(o, one, o->wanted);
        return;
    }
    if (saturated(o)) {
        for (size_t i = 0; i < n; i++) {
            if (active[i] != o->new_rs)
                rollout_scale(o, active[i], 0);
        }
        return;
    }
    if (!o->recreate)
        spread(o, active, n);
}

/* --- recreate --- */

static bool old_pods_live(struct rollout *o)
{
    const struct resource *pods = reconcile_resource(o->run, "", "pods");

    for (size_t i = 0; i < o->n_old; i++) {
        if (rollout_rs_count(o->old[i], "replicas"))
            return true;
        json_each(pod, objects_owned(o->run, pods, meta_ns(o->deployment), meta_uid(o->old[i])))
        {
            if (!pod_is_finished(pod))
                return true;
        }
    }
    return false;
}

void rollout_recreate(struct rollout *o)
{
    bool shrinking = false;

    for (size_t i = 0; i < o->n_old; i++) {
        if (rollout_rs_wanted(o->old[i]) > 0)
            shrinking |= rollout_scale(o, o->old[i], 0);
    }
    if (shrinking || old_pods_live(o))
        return;
    if (!o->new_rs)
        rollout_create(o, o->wanted);
    else if (rollout_rs_wanted(o->new_rs) != o->wanted)
        rollout_scale(o, o->new_rs, o->wanted);
}

/* --- rolling --- */

static int64_t new_size(const struct rollout *o)
{
    int64_t now = rollout_rs_wanted(o->new_rs), room = o->wanted + o->surge - rollout_wanted(o);

    if (now >= o->wanted)
        return o->wanted;
    if (room <= 0)
        return now;
    return room < o->wanted - now ? now + room : o->wanted;
}

/* Removes up to most replicas from the old sets, the oldest first. */
static int64_t take(struct rollout *o, int64_t most, int64_t *sizes, bool only_unavailable)
{
    int64_t taken = 0;

    for (size_t i = 0; i < o->n_old && taken < most; i++) {
        int64_t n = sizes[i];

        if (only_unavailable)
            n -= rollout_rs_count(o->old[i], "availableReplicas");
        n = n < most - taken ? n : most - taken;
        if (n <= 0)
            continue;
        sizes[i] -= n;
        taken += n;
    }
    return taken;
}

void rollout_rolling(struct rollout *o)
{
    int64_t size = new_size(o);
    int64_t *sizes, least, coming, most;

    if (!o->new_rs) {
        rollout_create(o, size);
        return;
    }
    if (rollout_rs_wanted(o->new_rs) != size && rollout_scale(o, o->new_rs, size))
        return;
    /* Old unavailable pods are removed first: that does not reduce availability. */
    sizes = arena_alloc(o->arena, (o->n_old + 1) * sizeof(*sizes));
    least = o->wanted - o->unavailable;
    coming = rollout_rs_wanted(o->new_rs) - rollout_rs_count(o->new_rs, "availableReplicas");
    most = rollout_wanted(o) - least - coming;
    for (size_t i = 0; i < o->n_old; i++)
        sizes[i] = rollout_rs_wanted(o->old[i]);
    if (most <= 0)
        return;
    take(o, most, sizes, true);
    int64_t spare = rollout_total(o, "availableReplicas") - least;
    take(o, spare, sizes, false);
    for (size_t i = 0; i < o->n_old; i++) {
        if (sizes[i] != rollout_rs_wanted(o->old[i]))
            rollout_scale(o, o->old[i], sizes[i]);
    }
}
