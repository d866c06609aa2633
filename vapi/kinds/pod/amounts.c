/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and limits of a whole pod, filled in from those of its containers, and whether they
 * cover them. Only quantities the API knows for pods are touched: cpu, memory and huge pages. It
 * must never look at more than a few of them: each is summed over all containers. Source:
 * pkg/apis/core/v1/defaults.go (KEP 2837), component-helpers resource/helpers.go,
 * validatePodResourceConsistency in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>

#define MAX_AMOUNTS 64 /* there are two kinds of memory pages, seldom more */

struct amount {
    struct quantity q;
    bool said;
};

static void amount_add(struct amount *to, struct amount more)
{
    if (!more.said)
        return;
    to->q = to->said ? quantity_add(to->q, more.q) : more.q;
    to->said = true;
}

static void amount_max(struct amount *to, struct amount other)
{
    if (other.said && (!to->said || quantity_cmp(other.q, to->q) > 0))
        *to = other;
}

static struct amount amount_of(const cJSON *container, const char *list, const char *name)
{
    struct amount amount = {0};
    const cJSON *value = json_get(json_get(json_get(container, "resources"), list), name);

    amount.said = quantity_parse(json_str(value), &amount.q);
    return amount;
}

/* What the containers need together: the sum of those that run, or what starting takes if more. */
static struct amount effective(const cJSON *spec, const char *list, const char *name)
{
    struct amount total = {0}, sidecars = {0}, starting = {0};

    json_each(c, json_get(spec, "containers")) amount_add(&total, amount_of(c, list, name));
    json_each(c, json_get(spec, "initContainers"))
    {
        struct amount one = amount_of(c, list, name);

        if (kinds_text_is(c, "restartPolicy", "Always")) {
            amount_add(&total, one);
            amount_add(&sidecars, one);
            one = sidecars;
        } else {
            amount_add(&one, sidecars);
        }
        amount_max(&starting, one);
    }
    amount_max(&total, starting);
    return total;
}

/* Sets to[name] unless it is there. */
static void put(struct arena *a, cJSON *resources, const char *list, const char *name,
                struct amount amount)
{
    cJSON *to = json_get(resources, list);

    if (!amount.said || json_get(to, name))
        return;
    json_set_str(a, json_ensure_object(a, resources, list), name, quantity_format(a, amount.q));
}

static void huge_page_limits(struct arena *a, cJSON *resources, const cJSON *spec,
                             const char *containers)
{
    size_t left = MAX_AMOUNTS;

    json_each(c, json_get(spec, containers))
    {
        json_each(limit, json_get(json_get(c, "resources"), "limits"))
        {
            if (kinds_is_huge_pages(str_c(limit->string)) &&
                !json_get(json_get(resources, "requests"), limit->string) && left && left--)
                put(a, resources, "limits", limit->string,
                    effective(spec, "limits", limit->string));
        }
    }
}

void defaults_pod_resources(struct arena *a, cJSON *spec)
{
    cJSON *resources = json_get(spec, "resources");
    static const char *const compute[] = {"cpu", "memory"};

    if (!json_count(json_get(resources, "limits")) && !json_count(json_get(resources, "requests")))
        return;
    huge_page_limits(a, resources, spec, "containers");
    huge_page_limits(a, resources, spec, "initContainers");
    if (!json_count(json_get(resources, "limits")))
        return;
    for (size_t i = 0; i < COUNT(compute); i++)
        put(a, resources, "requests", compute[i], effective(spec, "requests", compute[i]));
    json_each(limit, json_get(resources, "limits"))
    {
        struct amount amount = {0};

        if (!kinds_is_huge_pages(str_c(limit->string)) && !str_eqc(str_c(limit->string), "cpu") &&
            !str_eqc(str_c(limit->string), "memory"))
            continue;
        amount.said = quantity_parse(json_str(limit), &amount.q);
        put(a, resources, "requests", limit->string, amount);
    }
}

/* ---- validation ---- */

static void check_covers(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                         const char *list, const cJSON *amount)
{
    struct amount need = effective(spec, list, amount->string);
    struct quantity q;

    if (need.said && quantity_parse(json_str(amount), &q) && quantity_cmp(need.q, q) > 0)
        field_invalid_printf(e, FIELD_KEY(p, str_c(amount->string)), amount,
                             "must be greater than or equal to aggregate container %s of "
                             "%.*s",
                             list, STR_F(quantity_format(e->arena, need.q)));
}

static void check_container_limits(struct field_errors *e, const struct field_path *p,
                                   const cJSON *container, const struct names *limits)
{
    json_each(limit, json_path(container, "resources.limits"))
    {
        const cJSON *max = names_get(limits, str_c(limit->string));
        struct quantity q, most;

        if (max && quantity_parse(json_str(limit), &q) && quantity_parse(json_str(max), &most) &&
            quantity_cmp(q, most) > 0)
            field_invalid_printf(e, FIELD(FIELD_KEY(p, str_c(limit->string)), "limits"), limit,
                                 "must be less than or equal to pod limits of %.*s",
                                 STR_F(json_str(max)));
    }
}

void validate_pod_amounts(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *resources = json_get(spec, "resources");
    struct names limits = {.arena = e->arena};
    size_t left = MAX_AMOUNTS;

    json_each(amount, json_get(resources, "requests"))
    {
        if (left && left--)
            check_covers(e, FIELD(p, "requests"), spec, "requests", amount);
    }
    left = MAX_AMOUNTS;
    json_each(amount, json_get(resources, "limits"))
    {
        if (kinds_is_huge_pages(str_c(amount->string)) && left && left--)
            check_covers(e, FIELD(p, "limits"), spec, "limits", amount);
    }
    names_add_keys(&limits, json_get(resources, "limits"));
    member_each(container, at, p, spec, "containers")
        check_container_limits(e, at, container, &limits);
}
