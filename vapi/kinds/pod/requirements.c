/* SPDX-License-Identifier: Apache-2.0 */
/* Resource requirements of containers and pods: names, quantities, requests against limits, claims.
 * Source: validateResourceRequirements in pkg/apis/core/validation/validation.go. */
#include "parts.h"

#include <sublet/quantity.h>

struct list_check {
    struct field_errors *e;
    const struct field_path *p; /* of the requirements */
    struct names limits;
    bool of_pod, compute, huge;
};

void check_container_resource(struct field_errors *e, const struct field_path *p, struct str name)
{
    check_resource_name(e, p, name);
    if (str_find(name, '/') == name.n) {
        if (!kinds_one_of(name, NAMES("cpu", "memory", "ephemeral-storage")) &&
            !kinds_is_huge_pages(name))
            field_invalid_str(e, p, name, "must be a standard resource for containers");
    } else if (!kinds_is_native_resource(name) && !kinds_is_extended_resource(name)) {
        field_invalid_str(e, p, name, "doesn't follow extended resource name standard");
    }
}

static void check_huge_pages(struct list_check *c, const struct field_path *p, struct str name,
                             const cJSON *value)
{
    struct quantity page, q;

    if (!kinds_is_huge_pages(name))
        return;
    c->huge = true;
    if (quantity_parse(str_from(name, sizeof("hugepages-") - 1), &page) && page.nano > 0 &&
        quantity_is_integer(page) && quantity_parse(json_str(value), &q) &&
        quantity_units(q) % quantity_units(page) == 0)
        return;
    field_invalid_printf(c->e, p, value, "%.*s is not positive integer multiple of %.*s",
                         STR_F(json_str(value)), STR_F(name));
}

static void check_amount(struct list_check *c, const struct field_path *p, const cJSON *value)
{
    static const char *const supported[] = {"cpu", "hugepages-", "memory", NULL};
    struct str name = str_c(value->string);

    if (!c->of_pod)
        check_container_resource(c->e, p, name);
    else if (check_resource_name(c->e, p, name) && !kinds_one_of(name, supported) &&
             !kinds_is_huge_pages(name))
        field_not_supported(c->e, p, name, supported);
    check_resource_value(c->e, p, name, value);
    check_huge_pages(c, p, name, value);
    c->compute |= str_eqc(name, "cpu") || str_eqc(name, "memory");
}

/* A request against the limit of the same name. */
static void check_against_limit(struct list_check *c, const cJSON *request)
{
    struct str name = str_c(request->string);
    const cJSON *limit = names_get(&c->limits, name);
    bool overcommit = kinds_is_native_resource(name) && !kinds_is_huge_pages(name);
    struct quantity q, max;
    const char *rule = NULL;
    int cmp;

    if (!limit) {
        if (!overcommit)
            field_required(c->e, FIELD(c->p, "limits"),
                           "Limit must be set for non overcommitable resources");
        return;
    }
    if (!quantity_parse(json_str(request), &q) || !quantity_parse(json_str(limit), &max))
        return;
    cmp = quantity_cmp(q, max);
    if (cmp != 0 && !overcommit)
        rule = "must be equal to";
    else if (cmp > 0)
        rule = "must be less than or equal to";
    if (rule)
        field_invalid_printf(c->e, FIELD(c->p, "requests"), request, "%s %.*s limit of %.*s", rule,
                             STR_F(name), STR_F(json_str(limit)));
}

/* ---- claims ---- */

/* Sorted, as far as a message needs them. */
static struct str names_joined(struct arena *a, const struct names *names)
{
    struct str sorted[65];
    struct buf b = BUF_INIT(0);
    size_t n = 0;

    names_each(name, names)
    {
        size_t at = n;

        if (n == COUNT(sorted) - 1)
            break;
        for (; at && str_cmp(sorted[at - 1], name->key) > 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = name->key;
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        buf_addc(&b, i ? ", " : "");
        buf_add(&b, sorted[i]);
    }
    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static void claim_not_found(struct field_errors *e, const struct field_path *p, const cJSON *name,
                            const struct names *claims)
{
    const char *where = "must be one of the names in pod.spec.resourceClaims";

    if (claims->n)
        where = arena_printf(e->arena, "%s: %.*s", where, STR_F(names_joined(e->arena, claims))).p;
    else
        where = arena_printf(e->arena, "%s which is empty", where).p;
    field_not_found_because(e, p, name, where);
}

static void check_claims(struct field_errors *e, const struct field_path *p, const cJSON *list,
                         const struct names *claims)
{
    struct names seen = {.arena = e->arena}, whole = {.arena = e->arena};

    field_each(claim, at, p, list)
    {
        struct str name = json_str(json_get(claim, "name"));
        struct str request = json_str(json_get(claim, "request")), key = name;

        if (!check_given(e, at, name))
            continue;
        if (request.n) {
            check_rule(e, FIELD(at, "request"), NAME_DNS1123_LABEL, request);
            key = arena_printf(e->arena, "%.*s/%.*s", STR_F(name), STR_F(request));
        }
        /* The whole claim cannot be named beside one of its requests. */
        if (names_has(&whole, name) || names_has(&seen, key) ||
            (!request.n && names_has(&seen, arena_printf(e->arena, "%.*s/", STR_F(name)))))
            field_duplicate(e, at, json_new_string(e->arena, names_has(&whole, name) ? name : key));
        names_add(request.n ? &seen : &whole, key, claim);
        if (request.n)
            names_add(&seen, arena_printf(e->arena, "%.*s/", STR_F(name)), claim);
        if (!names_has(claims, name))
            claim_not_found(e, at, json_get(claim, "name"), claims);
    }
}

void validate_requirements(struct field_errors *e, const struct field_path *p,
                           const cJSON *requirements, const struct names *claims, bool of_pod)
{
    struct list_check c = {.e = e, .p = p, .limits = {.arena = e->arena}, .of_pod = of_pod};
    const struct field_path *limits = FIELD(p, "limits"), *requests = FIELD(p, "requests");

    names_add_keys(&c.limits, json_get(requirements, "limits"));
    json_each(value, json_get(requirements, "limits"))
        check_amount(&c, FIELD_KEY(limits, str_c(value->string)), value);
    json_each(value, json_get(requirements, "requests"))
    {
        check_amount(&c, FIELD_KEY(requests, str_c(value->string)), value);
        check_against_limit(&c, value);
    }
    if (c.huge && !c.compute)
        field_forbidden(e, p, "HugePages require cpu or memory");
    check_claims(e, FIELD(p, "claims"), json_get(requirements, "claims"), claims);
}
