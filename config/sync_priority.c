/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.priorityClasses`: which PriorityClasses of the host those of a tenant become. Must
 * never name a class of the system: its pods preempt what the host itself needs. */

#include <sublet/config_sync.h>

#include "impl.h"

enum { MOST_RANGES = 64, HIGHEST_PRIORITY = 1000000000 };

static int check_class(const struct place *at, struct str class)
{
    const char *why = name_check_dns1123_subdomain(class);

    if (why)
        return place_error(at, "\"%.*s\": %s", STR_F(class), why);
    if (str_has_prefix(class, STR("system-")))
        return place_error(at, "\"%.*s\": a class of the host's system is never a tenant's",
                           STR_F(class));
    return 0;
}

static int priorities_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct config_to_host *)into)->priorities);
}

/* --- by name --- */

static int priorities_by_name(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;

    if (place_map(at, value, &to->priority_names))
        return -1;
    json_each(member, to->priority_names)
    {
        struct place inner = place_member(at, member->string);

        if (check_class(&inner, json_str(member)))
            return -1;
    }
    return 0;
}

static const struct place_key PRIORITY_MAPPING_KEYS[] = {
    {"byName", priorities_by_name},
    {0},
};

static int priority_mappings(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, PRIORITY_MAPPING_KEYS, into);
}

/* --- by value --- */

static int range_up_to(const struct place *at, const cJSON *value, void *into)
{
    struct config_priority_range *range = into;

    if (!json_i64(value, &range->up_to) || range->up_to > HIGHEST_PRIORITY ||
        range->up_to < -2147483648LL)
        return place_error(at, "want a number up to %d", HIGHEST_PRIORITY);
    return 0;
}

static int range_class(const struct place *at, const cJSON *value, void *into)
{
    struct config_priority_range *range = into;

    return place_string(at, value, &range->host_class) || check_class(at, range->host_class) ? -1
                                                                                             : 0;
}

static const struct place_key PRIORITY_RANGE_KEYS[] = {
    {"upTo", range_up_to},
    {"class", range_class},
    {0},
};

static int priority_ranges(const struct place *at, const cJSON *value, void *into)
{
    struct config_to_host *to = into;
    struct config_priority_range *ranges;

    if (!json_is_array(value))
        return config_wrong_type(at->err, at->path, "a list", value);
    if (json_count(value) > MOST_RANGES)
        return place_error(at, "at most %d", MOST_RANGES);
    ranges = arena_alloc(at->arena, (json_count(value) + 1) * sizeof(*ranges));
    to->ranges = ranges;
    json_each(item, value)
    {
        struct place inner = place_item(at, to->n_ranges);
        struct config_priority_range *range = &ranges[to->n_ranges];

        *range = (struct config_priority_range){0};
        if (place_object(&inner, item, PRIORITY_RANGE_KEYS, range))
            return -1;
        if (!range->host_class.n || !json_get(item, "upTo"))
            return place_error(&inner, "want upTo and class");
        if (to->n_ranges && range->up_to <= ranges[to->n_ranges - 1].up_to)
            return place_error(&inner, "upTo must be more than that of the range before");
        to->n_ranges++;
    }
    return 0;
}

static const struct place_key PRIORITY_KEYS[] = {
    {"enabled", priorities_enabled},
    {"mappings", priority_mappings},
    {"ranges", priority_ranges},
    {0},
};

int config_read_priority_classes(const struct place *at, const cJSON *value, void *into)
{
    const struct config_to_host *to = into;

    if (place_object(at, value, PRIORITY_KEYS, into))
        return -1;
    if (to->priorities && !to->n_ranges && !json_count(to->priority_names))
        return place_error(at, "mappings.byName or ranges is needed: without them no PriorityClass "
                               "of the host is granted");
    return 0;
}
