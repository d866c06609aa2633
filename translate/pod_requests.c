/* SPDX-License-Identifier: Apache-2.0 */
/* What a host pod requests of every resource, as the scheduler and the quota count: the node of a
 * pool shows what is left. Must never count less than the host reserves for a pod that sublet sent.
 * Source: k8s.io/component-helpers resource.PodRequests. */

#include "pool.h"

#include <sublet/fraction.h>
#include <sublet/translate_pool_node.h>

enum { RESOURCES_MAX = 96 }; /* of one pod; more than the API server of the host lets through */

static struct pod_request *entry(struct arena *a, struct pod_requests *r, struct str resource)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->items[i].resource, resource))
            return &r->items[i];
    if (!r->items)
        r->items = arena_alloc(a, RESOURCES_MAX * sizeof(*r->items));
    if (r->n == RESOURCES_MAX)
        return NULL;
    r->items[r->n] = (struct pod_request){resource, 0};
    return &r->items[r->n++];
}

static __int128 quantity_of(const cJSON *value)
{
    struct quantity q;
    int64_t units;

    if (json_is_number(value) && json_i64(value, &units))
        return quantity_from_i64(units, QUANTITY_DECIMAL_SI).nano;
    return quantity_parse(json_str(value), &q) ? q.nano : 0;
}

static void add(struct arena *a, struct pod_requests *to, const cJSON *map)
{
    json_each(one, json_is_object(map) ? map : NULL)
    {
        struct pod_request *e = entry(a, to, json_key(one));

        if (e)
            e->nano += quantity_of(one);
    }
}

/* to = max(to, base + map) */
static void raise_to(struct arena *a, struct pod_requests *to, struct pod_requests *base,
                     const cJSON *map)
{
    json_each(one, json_is_object(map) ? map : NULL)
    {
        struct pod_request *e = entry(a, to, json_key(one)), *beside;
        __int128 sum = quantity_of(one);

        beside = entry(a, base, json_key(one));
        sum += beside ? beside->nano : 0;
        if (e && sum > e->nano)
            e->nano = sum;
    }
}

static const cJSON *requests_of(const cJSON *container)
{
    return json_path(container, "resources.requests");
}

/* An init container runs beside the sidecars that started before it. */
static void add_init(struct arena *a, const cJSON *list, struct pod_requests *sidecars,
                     struct pod_requests *peak)
{
    json_each(container, list)
    {
        if (str_eqc(json_str(json_get(container, "restartPolicy")), "Always"))
            add(a, sidecars, requests_of(container));
        else
            raise_to(a, peak, sidecars, requests_of(container));
    }
}

static void add_part(struct arena *a, struct pod_requests *to, const cJSON *host_pod)
{
    int64_t part = fraction_of_pod(host_pod);
    struct pod_request *e = part ? entry(a, to, STR(FRACTION_RESOURCE)) : NULL;

    if (e)
        e->nano += quantity_from_i64(part, QUANTITY_DECIMAL_SI).nano;
}

void translate_pod_requests(struct arena *a, const cJSON *host_pod, struct pod_requests *ret)
{
    const cJSON *spec = json_get(host_pod, "spec"), *whole = json_path(spec, "resources.requests");
    struct pod_requests peak = {0};

    *ret = (struct pod_requests){0};
    add_init(a, json_get(spec, "initContainers"), ret, &peak);
    json_each(container, json_get(spec, "containers")) add(a, ret, requests_of(container));
    for (size_t i = 0; i < peak.n; i++) {
        struct pod_request *e = entry(a, ret, peak.items[i].resource);

        if (e && peak.items[i].nano > e->nano)
            e->nano = peak.items[i].nano;
    }
    json_each(one, json_is_object(whole) ? whole : NULL)
    {
        struct pod_request *e = entry(a, ret, json_key(one));

        if (e) /* requests of the pod stand for those of its containers */
            e->nano = quantity_of(one);
    }
    add(a, ret, json_get(spec, "overhead"));
    add_part(a, ret, host_pod);
}
