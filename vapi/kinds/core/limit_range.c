/* SPDX-License-Identifier: Apache-2.0 */
/* LimitRanges. Enforcing them is the task of admission. Source: ValidateLimitRange in
 * pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"

#include <sublet/quantity.h>

/* The lists of one limit. */
enum { MAX_LIST, MIN_LIST, DEFAULT_LIST, REQUEST_LIST, RATIO_LIST, N_LISTS };

static const char *const LISTS[N_LISTS] = {"max", "min", "default", "defaultRequest",
                                           "maxLimitRequestRatio"};

static void limits_defaults(struct arena *a, cJSON *range)
{
    json_each(item, json_path(range, "spec.limits"))
    {
        if (str_eqc(json_str(json_get(item, "type")), "Container")) {
            cJSON *limits = json_ensure_object(a, item, "default");
            cJSON *requests = json_ensure_object(a, item, "defaultRequest");

            /* Of containers: a limit is the maximum, a request is the limit or else the minimum. */
            defaults_merge(a, limits, json_get(item, "max"));
            defaults_merge(a, requests, limits);
            defaults_merge(a, requests, json_get(item, "min"));
            if (!limits->child)
                json_remove(item, "default");
            if (!requests->child)
                json_remove(item, "defaultRequest");
        }
        for (size_t i = 0; i < N_LISTS; i++)
            defaults_resource_list(a, json_get(item, LISTS[i]));
    }
}

/* ---- validation of limits ---- */

static const cJSON *amount_in(const cJSON *item, int list, const char *name, struct quantity *ret)
{
    const cJSON *amount = json_get(json_get(item, LISTS[list]), name);

    return quantity_parse(json_str(amount), ret) ? amount : NULL;
}

/* No quantity of one list may be more than that of another. */
static const struct {
    int small, large, at, shown;
    const char *small_name, *large_name;
} ORDER[] = {
    {MIN_LIST, MAX_LIST, MIN_LIST, MIN_LIST, "min", "max"},
    {MIN_LIST, REQUEST_LIST, REQUEST_LIST, REQUEST_LIST, "min", "default request"},
    {REQUEST_LIST, MAX_LIST, REQUEST_LIST, REQUEST_LIST, "default request", "max"},
    {REQUEST_LIST, DEFAULT_LIST, REQUEST_LIST, REQUEST_LIST, "default request", "default limit"},
    {MIN_LIST, DEFAULT_LIST, DEFAULT_LIST, MIN_LIST, "min", "default"},
    {DEFAULT_LIST, MAX_LIST, DEFAULT_LIST, MAX_LIST, "default", "max"},
};

static void check_order(struct field_errors *e, const struct field_path *p, const cJSON *item,
                        const char *name)
{
    for (size_t i = 0; i < COUNT(ORDER); i++) {
        const struct field_path *at = FIELD_KEY(FIELD(p, LISTS[ORDER[i].at]), str_c(name));
        struct quantity q, max;
        const cJSON *small = amount_in(item, ORDER[i].small, name, &q);
        const cJSON *large = amount_in(item, ORDER[i].large, name, &max);

        if (!small || !large || quantity_cmp(q, max) <= 0)
            continue;
        field_invalid_printf(e, at, ORDER[i].shown == ORDER[i].large ? large : small,
                             "%s value %.*s is greater than %s value %.*s", ORDER[i].small_name,
                             STR_F(json_str(small)), ORDER[i].large_name, STR_F(json_str(large)));
    }
}

static void check_ratio(struct field_errors *e, const struct field_path *p, const cJSON *item,
                        const char *name)
{
    const struct field_path *at = FIELD_KEY(FIELD(p, LISTS[RATIO_LIST]), str_c(name));
    struct quantity ratio, min, max;
    const cJSON *shown = amount_in(item, RATIO_LIST, name, &ratio);
    double limit;

    if (!shown)
        return;
    if (quantity_cmp(ratio, quantity_from_i64(1, QUANTITY_DECIMAL_SI)) < 0)
        field_invalid_printf(e, at, shown, "ratio %.*s is less than 1", STR_F(json_str(shown)));
    if (!amount_in(item, MIN_LIST, name, &min) || !amount_in(item, MAX_LIST, name, &max))
        return;
    limit = (double)quantity_milli(max) / (double)quantity_milli(min);
    if ((double)quantity_milli(ratio) / 1000 > limit)
        field_invalid_printf(e, at, shown, "ratio %.*s is greater than max/min = %f",
                             STR_F(json_str(shown)), limit);
}

/* What cannot be overcommitted has one default. */
static void check_same_default(struct field_errors *e, const struct field_path *p,
                               const cJSON *item, const char *name)
{
    const struct field_path *at = FIELD_KEY(FIELD(p, LISTS[REQUEST_LIST]), str_c(name));
    struct quantity limit, request;
    const cJSON *a = amount_in(item, DEFAULT_LIST, name, &limit);
    const cJSON *b = amount_in(item, REQUEST_LIST, name, &request);

    if (!a || !b || quantity_cmp(limit, request) == 0 ||
        (kinds_is_native_resource(str_c(name)) && !kinds_is_huge_pages(str_c(name))))
        return;
    field_invalid_printf(e, at, b,
                         "default value %.*s must equal to defaultRequest value %.*s in %s",
                         STR_F(json_str(a)), STR_F(json_str(b)), name);
}

static void check_limit_type(struct field_errors *e, const struct field_path *p, struct str type)
{
    if (check_rule(e, p, NAME_QUALIFIED, type) && str_find(type, '/') == type.n &&
        !kinds_one_of(type, ENUM_LIMIT_TYPE))
        field_invalid_str(e, p, type, "must be a standard limit type or fully qualified");
}

static void check_limit_names(struct field_errors *e, const struct field_path *p, const cJSON *item,
                              struct str type, struct names *names)
{
    bool of_pod = str_eqc(type, "Pod"), of_container = of_pod || str_eqc(type, "Container");

    for (int i = 0; i < N_LISTS; i++) {
        const cJSON *list = json_get(item, LISTS[i]);
        AT(at, p, LISTS[i]);

        if (i == RATIO_LIST && str_eqc(type, "PersistentVolumeClaim") &&
            !json_path(item, "min.storage") && !json_path(item, "max.storage"))
            field_required(e, FIELD(p, "limits"),
                           "either minimum or maximum storage value is required, but neither was "
                           "provided");
        if (of_pod && (i == DEFAULT_LIST || i == REQUEST_LIST)) {
            if (json_count(list))
                field_forbidden(e, at, "may not be specified when `type` is 'Pod'");
            continue;
        }
        json_each(amount, list)
        {
            struct str name = str_c(amount->string);

            names_add(names, name, amount);
            if (of_container)
                check_container_resource(e, FIELD_KEY(at, name), name);
            else
                check_resource_name(e, FIELD_KEY(at, name), name);
        }
    }
}

static void check_limit(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    struct str type = json_str(json_get(item, "type"));
    struct names names = {.arena = e->arena};

    check_limit_names(e, p, item, type, &names);
    names_each(name, &names)
    {
        check_order(e, p, item, name->seen->string);
        check_ratio(e, p, item, name->seen->string);
        check_same_default(e, p, item, name->seen->string);
    }
}

static const struct rule LIMIT_RULES[] = {
    EACH("spec.limits", CHECK_STR("type", check_limit_type), ONCE("type"),
         CHECK(NULL, check_limit)),
};

/* ---- the kind ---- */

const struct kind KIND_LIMIT_RANGE = {
    RESOURCE("", "v1", "LimitRange", "limitranges", "limitrange"),
    .resource.short_names = NAMES("limits"),
    .resource.flags = RES_NAMESPACED | RES_CREATE_ON_UPDATE | RES_NAME_ON_UPDATE,
    .resource.columns = COLUMNS_CREATED,
    .defaults = limits_defaults,
    .rules = RULES(LIMIT_RULES),
};
