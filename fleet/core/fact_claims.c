/* SPDX-License-Identifier: Apache-2.0 */
/* Claims as the ledger counts them. Only the allocation, which the scheduler writes, says what is
 * held: nothing of spec does but the class of a device that no ResourceSlice shows any more. */
#include "fact_claims.h"

#include <sublet/buf.h>
#include <sublet/clock.h>
#include <sublet/object.h>

/* Kubernetes allocates at most 32 devices to a claim; the names of one have 63 + 253 + 63 bytes. */
#define MOST_RESOURCES 32768

struct str fact_claim_user(struct arena *a, const cJSON *claim)
{
    json_each(user, json_path(claim, "status.reservedFor"))
    {
        if (str_eqc(json_str(json_get(user, "resource")), "pods"))
            return arena_printf(a, "%.*s/%.*s", STR_F(meta_ns(claim)),
                                STR_F(json_str(json_get(user, "name"))));
    }
    return STR("");
}

static struct str names_of(struct arena *a, const struct grant_claim *claim)
{
    struct buf names = BUF_INIT(MOST_RESOURCES);
    struct str ret;

    for (size_t i = 0; i < claim->n_devices; i++) {
        const struct grant_device_name *d = &claim->devices[i].name;

        buf_printf(&names, "%s%.*s/%.*s/%.*s", names.n ? "," : "", STR_F(d->driver), STR_F(d->pool),
                   STR_F(d->device));
    }
    ret = arena_str(a, buf_str(&names));
    buf_fini(&names);
    return ret;
}

void fact_claim(struct arena *a, const cJSON *claim, struct fact_claim *ret)
{
    struct fact_pod named;
    int64_t begin_us;

    fact_pod(a, claim, &named); /* names of an object in the tenant's words */
    *ret = (struct fact_claim){.uid = json_str_at(claim, "metadata.uid"), .hold = named.hold};
    grant_claim_of(a, claim, &ret->claim);
    ret->hold.name = arena_printf(a, "ResourceClaim/%.*s", STR_F(named.hold.name));
    ret->hold.owner = STR("");
    ret->hold.node = ret->claim.node;
    ret->hold.resources = names_of(a, &ret->claim);
    ret->hold.begin_us =
        time_parse(json_str_at(claim, "status.allocation.allocationTimestamp"), &begin_us)
            ? begin_us
            : 0;
}

/* Without GRANT_CLASS_KEY. */
static bool weight_of_class(const struct config_pool *pool, struct str key, struct rational *ret)
{
    const struct pool_device_class *class =
        config_pool_device_class(pool, str_sub(key, 0, key.n - (sizeof(GRANT_CLASS_KEY) - 1)));

    *ret = class ? class->gpu_eq : RATIONAL_ZERO;
    return ret->num > 0;
}

bool fact_claim_gpus(const struct fact_claim *claim, const struct config_pool *pool,
                     struct grant_devices *devices, struct rational *ret)
{
    struct rational sum = RATIONAL_ZERO, weight;
    bool fits = true;

    for (size_t i = 0; i < claim->claim.n_devices && fits; i++) {
        const struct grant_claimed *d = &claim->claim.devices[i];

        if (grant_devices_weight(devices, claim->claim.node, pool, &d->name, &weight) ||
            (d->key.n && weight_of_class(pool, d->key, &weight)))
            fits = rational_add(sum, weight, &sum);
    }
    *ret = sum;
    return fits && sum.num > 0;
}
