/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuotas and LimitRanges. Counting and enforcing them is admission's. */
#include "cells.h"

static void quota_defaults(struct arena *a, cJSON *quota)
{
    defaults_resource_list(a, json_path(quota, "spec.hard"));
    defaults_resource_list(a, json_path(quota, "status.hard"));
    defaults_resource_list(a, json_path(quota, "status.used"));
}

static void quota_prepare_create(struct arena *a, cJSON *quota)
{
    set_status(a, quota, "{}");
}

const struct kind_ops RESOURCE_QUOTA_OPS = {
    .defaults = quota_defaults,
    .prepare_create = quota_prepare_create,
    .cells = cells_quota,
};

/* Of containers: a limit is the maximum, a request is the limit or else the minimum. */
static void default_container_limits(struct arena *a, cJSON *item)
{
    cJSON *limits = json_ensure_object(a, item, "default");
    cJSON *requests = json_ensure_object(a, item, "defaultRequest");

    defaults_merge(a, limits, json_get(item, "max"));
    defaults_merge(a, requests, limits);
    defaults_merge(a, requests, json_get(item, "min"));
    if (!limits->child)
        json_remove(item, "default");
    if (!requests->child)
        json_remove(item, "defaultRequest");
}

static void limits_defaults(struct arena *a, cJSON *range)
{
    static const char *const lists[] = {"max", "min", "default", "defaultRequest",
                                        "maxLimitRequestRatio"};

    json_each(item, json_path(range, "spec.limits"))
    {
        if (str_eqc(json_str(json_get(item, "type")), "Container"))
            default_container_limits(a, item);
        for (size_t i = 0; i < COUNT(lists); i++)
            defaults_resource_list(a, json_get(item, lists[i]));
    }
}

const struct kind_ops LIMIT_RANGE_OPS = {
    .defaults = limits_defaults,
    .cells = kinds_cells_created_at,
};
