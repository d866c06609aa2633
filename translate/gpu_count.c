/* SPDX-License-Identifier: Apache-2.0 */
/* How many devices a pod takes, counted as the scheduler counts. Why: quota, price and caps depend
 * on this number, so it must be what the host will reserve. Must never round in a tenant's favour,
 * and must treat every resource with a domain as a device. */

#include <string.h>

#include "pool.h"

#include <sublet/object.h>
#include <sublet/quantity.h>

enum { DEVICE_KINDS_MAX = 64 }; /* of one pod; more than any pool offers */

static struct device_count *find(struct device_counts *counts, struct str name)
{
    for (size_t i = 0; i < counts->n; i++) {
        if (str_eq(counts->items[i].name, name))
            return &counts->items[i];
    }
    return NULL;
}

/* The entry of this name, made when it is new; NULL when there are too many. */
static struct device_count *entry(struct arena *a, struct device_counts *counts, struct str name)
{
    struct device_count *found = find(counts, name);

    if (found || counts->n == DEVICE_KINDS_MAX)
        return found;
    if (!counts->items)
        counts->items = arena_alloc(a, DEVICE_KINDS_MAX * sizeof *counts->items);
    counts->items[counts->n] = (struct device_count){name, 0};
    return &counts->items[counts->n++];
}

static bool units_of(const cJSON *value, int64_t *ret)
{
    struct quantity q;

    if (json_is_number(value))
        return json_i64(value, ret) && *ret >= 0;
    if (!quantity_parse(json_str(value), &q) || !quantity_is_integer(q) || q.nano < 0)
        return false;
    *ret = quantity_units(q);
    return true;
}

bool gpu_count_is_zero(const cJSON *quantity)
{
    int64_t units;

    return units_of(quantity, &units) && units == 0;
}

static int count_map(struct arena *a, const cJSON *map, struct device_counts *ret, struct err *err)
{
    if (!json_is_object(map))
        return 0;
    json_each(member, map)
    {
        struct str name = json_key(member);
        struct device_count *count;
        int64_t units;

        if (!name_has_domain(name))
            continue;
        if (!units_of(member, &units))
            return err_set(err, &ERR_FORBIDDEN, "%.*s must be a whole number", STR_F(name));
        if (units == 0)
            continue;
        count = entry(a, ret, name);
        if (!count)
            return err_set(err, &ERR_FORBIDDEN, "more than %d kinds of extended resources",
                           DEVICE_KINDS_MAX);
        if (units > count->units)
            count->units = units;
    }
    return 0;
}

int gpu_count_resources(struct arena *a, const cJSON *resources, struct device_counts *ret,
                        struct err *err)
{
    *ret = (struct device_counts){0};
    if (count_map(a, json_get(resources, "limits"), ret, err))
        return -1;
    return count_map(a, json_get(resources, "requests"), ret, err);
}

int gpu_count_container(struct arena *a, const cJSON *container, struct device_counts *ret,
                        struct err *err)
{
    return gpu_count_resources(a, json_get(container, "resources"), ret, err);
}

enum combine { COMBINE_ADD, COMBINE_MAX };

/* into += from, or into = max(into, base + from) per name; base may be NULL. */
static int combine(struct arena *a, struct device_counts *into, const struct device_counts *from,
                   struct device_counts *base, enum combine how, struct err *err)
{
    for (size_t i = 0; i < from->n; i++) {
        struct device_count *to = entry(a, into, from->items[i].name);
        struct device_count *extra = base ? find(base, from->items[i].name) : NULL;
        int64_t sum = from->items[i].units;

        if (!to)
            return err_set(err, &ERR_FORBIDDEN, "more than %d kinds of extended resources",
                           DEVICE_KINDS_MAX);
        if (__builtin_add_overflow(sum, extra ? extra->units : 0, &sum) ||
            (how == COMBINE_ADD && __builtin_add_overflow(sum, to->units, &sum)))
            return err_set(err, &ERR_FORBIDDEN, "%.*s is out of range", STR_F(to->name));
        if (sum > to->units)
            to->units = sum;
    }
    return 0;
}

/* Init containers run one after the other, each beside the sidecars that started before it. */
static int count_init(struct arena *a, const cJSON *list, struct device_counts *sidecars,
                      struct device_counts *peak, struct err *err)
{
    json_each(container, list)
    {
        struct device_counts own;

        if (gpu_count_container(a, container, &own, err))
            return -1;
        if (container_is_sidecar(container) ? combine(a, sidecars, &own, NULL, COMBINE_ADD, err)
                                            : combine(a, peak, &own, sidecars, COMBINE_MAX, err))
            return -1;
    }
    return 0;
}

int gpu_count_pod(struct arena *a, const cJSON *pod, struct device_counts *ret, struct err *err)
{
    const cJSON *spec = json_get(pod, "spec");
    struct device_counts total = {0}, peak = {0};

    if (count_init(a, json_get(spec, "initContainers"), &total, &peak, err))
        return -1;
    json_each(container, json_get(spec, "containers"))
    {
        struct device_counts own;

        if (gpu_count_container(a, container, &own, err) ||
            combine(a, &total, &own, NULL, COMBINE_ADD, err))
            return -1;
    }
    if (combine(a, &total, &peak, NULL, COMBINE_MAX, err))
        return -1;
    *ret = total;
    return 0;
}
