/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs came free: the controllers whose pods were refused for want of them try again at once. Must
 * never wake one that has what it needs: what it would get is another's. */
#include "pods/pods.h"

#include <sublet/retry.h>

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

bool sync_retry_owner(void *ctx, const struct refused_owner *owner)
{
    struct syncer *s = ctx;
    const struct resource *r = syncer_resource(s, owner->kind->group, owner->kind->plural);
    const struct store_object *o = store_get(s->store, r->storage, owner->ns, owner->name);
    struct arena *a = arena_new(0);
    const cJSON *tree = o && str_eq(o->uid, owner->uid) ? vapi_tree(a, o) : NULL;
    bool wants = tree && lacks_something(owner->kind, tree);

    arena_free(a);
    if (wants)
        vapi_retry_owner(s->api, str_c(owner->kind->kind), owner->ns, owner->name);
    return wants;
}
