/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers whose pods were refused for want of GPUs: when some come free they try again at once,
 * and what they lack is reported to the fleet. Must never wake one that has what it needs: what it
 * would get is another's. */
#include "pods/pods.h"

#include <sublet/retry.h>

#define REFUSED_PODS_MAX 1000000

/* By what its controller wrote last; a DaemonSet, whose pods depend on nodes, always may. */
static bool lacks_something(const struct refused_kind *kind, const cJSON *owner)
{
    const cJSON *replicas = json_path(owner, "spec.replicas");
    const cJSON *conditions = json_path(owner, "status.conditions");

    if (object_is_terminating(owner))
        return false;
    if (str_eqc(STR("Pod"), kind->kind))
        return !pod_is_finished(owner);
    if (str_eqc(STR("Job"), kind->kind))
        return !json_true(json_path(owner, "spec.suspend")) &&
               !condition_is_true(conditions, "Complete") &&
               !condition_is_true(conditions, "Failed");
    return !replicas ||
           json_i64_at(owner, "status.replicas", 0) < json_i64_at(owner, "spec.replicas", 1);
}

/* How many pods, or for a pod claims. The numbers are the tenant's. */
static int64_t count_lacking(const struct refused_kind *kind, const cJSON *owner)
{
    int64_t wanted = 1, has = 0, left;

    if (str_eqc(STR("Job"), kind->kind)) {
        wanted = json_i64_at(owner, "spec.parallelism", 1);
        left = json_i64_at(owner, "spec.completions", INT64_MAX);
        if (__builtin_sub_overflow(left, json_i64_at(owner, "status.succeeded", 0), &left))
            left = 0;
        wanted = left < wanted ? left : wanted;
        has = json_i64_at(owner, "status.active", 0);
    } else if (str_eqc(STR("DaemonSet"), kind->kind)) {
        wanted = json_i64_at(owner, "status.desiredNumberScheduled", 0);
        has = json_i64_at(owner, "status.currentNumberScheduled", 0);
    } else if (!str_eqc(STR("Pod"), kind->kind)) {
        wanted = json_i64_at(owner, "spec.replicas", 1);
        has = json_i64_at(owner, "status.replicas", 0);
    }
    return __builtin_sub_overflow(wanted, has, &left) || left < 0 ? 0 : left;
}

/* NULL: there is none of this uid. */
static const struct store_object *find_owner(struct syncer *s, const struct refused_owner *owner)
{
    const struct resource *r = syncer_resource(s, owner->kind->group, owner->kind->plural);
    const struct store_object *o = store_get(s->store, r->storage, owner->ns, owner->name);

    return o && str_eq(o->uid, owner->uid) ? o : NULL;
}

/* NULL: it needs nothing. */
static const cJSON *read_lacking(struct arena *a, const struct refused_kind *kind,
                                 const struct store_object *o)
{
    const cJSON *tree = vapi_tree(a, o);

    return tree && lacks_something(kind, tree) ? tree : NULL;
}

/* Read once for each revision: this is done for all of them, each second. */
size_t sync_owner_lacks(void *ctx, const struct refused_owner *owner, struct refused_count *known)
{
    const struct store_object *o = find_owner(ctx, owner);
    struct arena *a;
    const cJSON *tree;
    int64_t n;

    known->gone = !o;
    if (!o)
        return 0;
    if (known->revision == o->revision)
        return known->n;
    a = arena_new(0);
    tree = read_lacking(a, owner->kind, o);
    n = tree ? count_lacking(owner->kind, tree) : 0;
    arena_free(a);
    *known = (struct refused_count){.revision = o->revision,
                                    .n = n > REFUSED_PODS_MAX ? REFUSED_PODS_MAX : (size_t)n};
    return known->n;
}

bool sync_retry_owner(void *ctx, const struct refused_owner *owner)
{
    struct syncer *s = ctx;
    const struct store_object *o = find_owner(s, owner);
    struct arena *a = arena_new(0);
    bool wants = o && read_lacking(a, owner->kind, o) != NULL;

    arena_free(a);
    if (wants)
        vapi_retry_owner(s->api, str_c(owner->kind->kind), owner->ns, owner->name);
    return wants;
}
