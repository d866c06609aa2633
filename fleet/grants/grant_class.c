/* SPDX-License-Identifier: Apache-2.0 */
/* What is other in GPUPools of mode dra. Why neither burst nor lend: a virtual cluster ends no pod
 * to give a claim back, so that what is borrowed would be kept from guarantees for as long as its
 * holder likes. Must never grant a class whose devices cannot be counted. */
#include "grant_class.h"

/* With what follows the name before the '/', a subdomain. */
#define MOST_NAME (253 - (int)(sizeof(".deviceclass.resource.k8s.io") - 1))

bool grant_is_claimed(const struct grant_state *s, size_t pool)
{
    return pool != SHARE_NO_POOL && s->configs[pool].mode == POOL_DRA;
}

struct str grant_class_resources(struct grant_state *s, struct config_pool *pool)
{
    struct pool_resource *list = arena_alloc(s->a, (pool->n_device_classes + 1) * sizeof(*list));
    bool any = false;

    if (!s->classes.enabled)
        return STR("mode dra needs grants.deviceClaims of sublet fleet, which reads ResourceSlices "
                   "and ResourceClaims of the host");
    for (size_t i = 0; i < pool->n_device_classes; i++) {
        const struct pool_device_class *c = &pool->device_classes[i];

        any |= c->gpu_eq.num > 0;
        if (c->name.n > MOST_NAME) /* the host would refuse all of the ResourceQuota */
            return arena_printf(s->a,
                                "deviceClasses.%.*s: a ResourceQuota bounds names of at most %d "
                                "bytes",
                                STR_F(c->name), MOST_NAME);
        if (c->gpu_eq.num && !c->driver.n)
            return arena_printf(s->a,
                                "deviceClasses.%.*s.devices is needed: by its driver, and "
                                "attributes, devices of the class are known in ResourceSlices",
                                STR_F(c->name));
        list[i] = (struct pool_resource){
            .name = c->name,
            .host_name = arena_printf(s->a, "%.*s" GRANT_CLASS_KEY, STR_F(c->name)),
            .gpu_eq = c->gpu_eq,
            .per_pod = c->per_claim};
    }
    pool->resources = list;
    pool->n_resources = pool->n_device_classes;
    return any ? STR("") : STR("deviceClasses: none of them has a gpuEq greater than 0");
}

struct str grant_class_binding_why(const struct grant_state *s, const struct grant_row *r)
{
    if (grant_is_claimed(s, r->index) && (r->burst.num || r->lend.num))
        return STR("burst and lend are not for a GPUPool of mode dra: claims of devices are not "
                   "taken back");
    if (grant_is_claimed(s, r->index) && str_eqc(json_str_at(r->tree, "spec.overQuota"), "queue"))
        return STR("overQuota queue is for pods: a claim of devices is charged when it is created, "
                   "or refused");
    return STR("");
}

struct str grant_quota_key(const struct grant_state *s, size_t pool, const struct pool_resource *r)
{
    return grant_is_claimed(s, pool) ? r->host_name
                                     : arena_printf(s->a, "requests.%.*s", STR_F(r->host_name));
}

bool grant_class_is_unknown(const struct grant_state *s, size_t pool, struct str *ret_why)
{
    if (!grant_is_claimed(s, pool) || s->classes.known)
        return false;
    *ret_why = s->classes.why.n ? s->classes.why
                                : STR("ResourceSlices and ResourceClaims are not read yet");
    return true;
}
