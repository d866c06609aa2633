/* SPDX-License-Identifier: Apache-2.0 */
/* What others on the host resized: a vertical autoscaler its containers, an admin a claim. Why: it
 * stays, so the tenant has to learn why its object has other quantities than its spec. Must never
 * report what the tenant itself changed. */

#include <sublet/quantity.h>

#include "shape.h"

struct resized {
    struct arena *arena;
    struct str found;
    struct str of; /* " of container main" */
};

static struct str text_of(const cJSON *quantity)
{
    return quantity ? json_str(quantity) : STR("none");
}

static bool is_size(struct str name)
{
    return translate_pod_is_resizable(name) || str_eqc(name, "storage");
}

static void compare_map(struct resized *r, const char *map, const cJSON *before, const cJSON *now,
                        const cJSON *wanted)
{
    json_each(member, json_is_object(now) ? now : NULL)
    {
        const cJSON *was = json_get(before, member->string);

        if (!is_size(json_key(member)) || quantity_equal(r->arena, was, member) ||
            quantity_equal(r->arena, json_get(wanted, member->string), member))
            continue;
        r->found = arena_printf(r->arena, "%.*s%s%s.%s%.*s from %.*s to %.*s", STR_F(r->found),
                                r->found.n ? ", " : "", map, member->string, STR_F(r->of),
                                STR_F(text_of(was)), STR_F(text_of(member)));
    }
}

static void compare_resources(struct resized *r, const cJSON *before, const cJSON *now,
                              const cJSON *v)
{
    static const char *const maps[] = {"limits", "requests"};

    for (size_t i = 0; i < COUNT(maps); i++)
        compare_map(r, maps[i], json_path(json_get(before, "resources"), maps[i]),
                    json_path(json_get(now, "resources"), maps[i]),
                    json_path(json_get(v, "resources"), maps[i]));
}

static const cJSON *named(const cJSON *list, const cJSON *like)
{
    json_each(one, list)
    {
        if (json_equal(json_get(one, "name"), json_get(like, "name")))
            return one;
    }
    return NULL;
}

static void compare_list(struct resized *r, const cJSON *before, const cJSON *now, const cJSON *v)
{
    json_each(container, v)
    {
        const cJSON *was = named(before, container), *is = named(now, container);

        if (!was || !is)
            continue;
        r->of = arena_printf(r->arena, " of container %.*s",
                             STR_F(json_str(json_get(container, "name"))));
        compare_resources(r, was, is, container);
    }
}

struct str translate_resized_by_host(struct arena *a, const cJSON *before, const cJSON *now,
                                     const cJSON *v)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const cJSON *was = json_get(before, "spec"), *is = json_get(now, "spec");
    const cJSON *wanted = json_get(v, "spec");
    struct resized r = {a, STR_NULL, STR("")};

    compare_resources(&r, was, is, wanted);
    for (size_t i = 0; i < COUNT(lists); i++)
        compare_list(&r, json_get(was, lists[i]), json_get(is, lists[i]),
                     json_get(wanted, lists[i]));
    return r.found;
}
