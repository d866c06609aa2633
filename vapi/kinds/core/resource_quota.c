/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuotas. Counting and enforcing them is the task of admission. Source:
 * ValidateResourceQuota in pkg/apis/core/validation/validation.go. */
#include "../rules/kind.h"

#include <stdlib.h>
#include <string.h>

static const struct default_rule DEFAULT_RULES[] = {
    SET_BY("spec.hard", defaults_resource_list),
    SET_BY("status.hard", defaults_resource_list),
    SET_BY("status.used", defaults_resource_list),
};

static bool is_quota_resource(struct str name)
{
    return kinds_is_standard_resource(name) && !str_eqc(name, "storage");
}

static void check_amounts(struct field_errors *e, const struct field_path *p, const cJSON *amounts)
{
    json_each(amount, amounts)
    {
        struct str name = str_c(amount->string);
        const struct field_path *at = FIELD_KEY(p, name);

        check_resource_name(e, at, name);
        if (str_find(name, '/') == name.n && !is_quota_resource(name))
            field_invalid_str(e, at, name, "must be a standard resource for quota");
        check_resource_value(e, at, name, amount);
    }
}

/* Which resources a scope can count. */
static bool scope_fits(struct str scope, struct str name)
{
    static const char *const of_pods[] = {"Terminating",
                                          "NotTerminating",
                                          "NotBestEffort",
                                          "PriorityClass",
                                          "CrossNamespacePodAffinity",
                                          NULL};
    static const char *const compute[] = {
        "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory", NULL};

    if (kinds_one_of(scope, of_pods))
        return str_eqc(name, "pods") || kinds_one_of(name, compute);
    if (str_eqc(scope, "BestEffort"))
        return str_eqc(name, "pods");
    if (str_eqc(scope, "VolumeAttributesClass"))
        return str_eqc(name, "persistentvolumeclaims") || str_eqc(name, "requests.storage");
    return true;
}

static void check_scope(struct field_errors *e, const struct field_path *p, const cJSON *hard,
                        struct str scope, const cJSON *shown)
{
    json_each(amount, hard)
    {
        struct str name = str_c(amount->string);

        if (is_quota_resource(name) && !scope_fits(scope, name))
            field_invalid(e, p, shown, "unsupported scope applied to resource");
    }
}

static void check_scope_pairs(struct field_errors *e, const struct field_path *p,
                              const struct names *seen, const cJSON *shown)
{
    if (names_has(seen, STR("BestEffort")) && names_has(seen, STR("NotBestEffort")))
        field_invalid(e, p, shown, "conflicting scopes");
    if (names_has(seen, STR("Terminating")) && names_has(seen, STR("NotTerminating")))
        field_invalid(e, p, shown, "conflicting scopes");
}

static void check_scope_values(struct field_errors *e, const struct field_path *p,
                               const cJSON *requirement)
{
    struct str op = json_str(json_get(requirement, "operator"));
    const cJSON *values = json_get(requirement, "values");

    if (str_eqc(op, "In") || str_eqc(op, "NotIn")) {
        if (!json_count(values))
            field_required(e, FIELD(p, "values"),
                           "must be at least one value when `operator` is 'In' or 'NotIn' for "
                           "scope selector");
    } else if (str_eqc(op, "Exists") || str_eqc(op, "DoesNotExist")) {
        if (json_count(values))
            field_invalid(e, FIELD(p, "values"), values,
                          "must be no value when `operator` is 'Exist' or 'DoesNotExist' for "
                          "scope selector");
    } else {
        field_invalid_str(e, FIELD(p, "operator"), op, "not a valid selector operator");
    }
}

static void check_scopes(const struct check *c)
{
    struct names seen = {.arena = c->e->arena};

    json_each(scope, c->value)
    {
        if (!kinds_one_of(json_str(scope), ENUM_RESOURCE_QUOTA_SCOPE))
            field_invalid(c->e, c->at, c->value, "unsupported scope");
        check_scope(c->e, c->at, json_path(c->object, "spec.hard"), json_str(scope), c->value);
        names_add(&seen, json_str(scope), scope);
    }
    if (seen.n)
        check_scope_pairs(c->e, c->at, &seen, c->value);
}

static void check_scope_selector(const struct check *c)
{
    static const char *const plain[] = {
        "BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity",
        NULL};
    const cJSON *spec = json_get(c->object, "spec"), *selector = kinds_given(spec, "scopeSelector");
    struct names seen = {.arena = c->e->arena};

    json_each(requirement, c->value)
    {
        struct str scope = json_str(json_get(requirement, "scopeName"));
        struct str op = json_str(json_get(requirement, "operator"));

        if (!kinds_one_of(scope, ENUM_RESOURCE_QUOTA_SCOPE))
            field_invalid_str(c->e, FIELD(c->at, "scopeName"), scope, "unsupported scope");
        check_scope(c->e, c->at, json_get(spec, "hard"), scope, selector);
        if (kinds_one_of(scope, plain) && !str_eqc(op, "Exists"))
            field_invalid_str(
                c->e, FIELD(c->at, "operator"), op,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity");
        check_scope_values(c->e, c->at, requirement);
        names_add(&seen, scope, requirement);
    }
    if (seen.n)
        check_scope_pairs(c->e, c->at, &seen, json_get(spec, "scopes"));
}

/* The same set, in whatever order. */
static void check_same_scopes(const struct check *c)
{
    struct names now = {.arena = c->e->arena}, before = now;
    bool same;

    names_add_texts(&now, c->value);
    names_add_texts(&before, c->old);
    same = now.n == before.n;
    json_each(scope, c->value) same &= names_has(&before, json_str(scope));
    if (!same)
        field_invalid(c->e, c->at, c->value, IMMUTABLE);
}

static const struct rule QUOTA_RULES[] = {
    CHECK("spec.hard", check_amounts),
    CALL("spec.scopes", check_scopes),
    CALL("spec.scopeSelector.matchExpressions", check_scope_selector),
    ON_UPDATE(CALL("spec.scopes", check_same_scopes)),
};

static const struct rule STATUS_RULES[] = {
    CHECK("status.hard", check_amounts),
    CHECK("status.used", check_amounts),
};

/* ---- cells ---- */

static int by_name(const void *x, const void *y)
{
    return strcmp((*(const cJSON *const *)x)->string, (*(const cJSON *const *)y)->string);
}

/* By name; path: the prefix of limits, NULL for everything else. */
static void cell_quota(const struct row *r, const struct column *c)
{
    const cJSON *hard = json_path(r->object, "status.hard");
    size_t n = json_count(hard), i = 0;
    const cJSON **sorted = arena_alloc(r->a, (n + 1) * sizeof(const cJSON *));
    struct buf b = BUF_INIT(0);

    json_each(item, hard) sorted[i++] = item;
    qsort(sorted, n, sizeof(const cJSON *), by_name);
    for (i = 0; i < n; i++) {
        struct str name = str_c(sorted[i]->string);
        struct str used = json_str(json_get(json_path(r->object, "status.used"), name.p));

        if (str_has_prefix(name, STR("limits.")) == (c->path != NULL))
            buf_printf(&b, "%s%.*s: %.*s/%.*s", b.n ? ", " : "", STR_F(name),
                       STR_F(used.n ? used : STR("0")), STR_F(json_str(sorted[i])));
    }
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

/* ---- the kind ---- */

const struct kind KIND_RESOURCE_QUOTA = {
    RESOURCE("", "v1", "ResourceQuota", "resourcequotas", "resourcequota"),
    .resource.short_names = NAMES("quota"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_DELETE_RETURNS_OBJECT,
    COLUMNS({"Request", "string", .cell = cell_quota},
            {"Limit", "string", .cell = cell_quota, .path = "limits."},
            {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("ResourceQuota")),
    .default_rules = DEFAULTS(DEFAULT_RULES),
    .rules = RULES(QUOTA_RULES),
    .status_rules = RULES(STATUS_RULES),
    .new_status = "{}",
};
