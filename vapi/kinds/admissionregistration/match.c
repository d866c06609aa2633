/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and match conditions, which webhooks and admission policies share. Must never evaluate an
 * expression. Source: pkg/apis/admissionregistration/validation. */
#include "../rules/kind.h"
#include "policy.h"

#define MAX_CONDITIONS 64

/* Lists in which "*" must be alone; empty strings are refused unless they name the core group. */
static void check_wildcard_list(struct field_errors *e, const struct field_path *p,
                                const cJSON *list, const char *others, bool may_be_empty)
{
    if (!json_count(list))
        field_required(e, p, "");
    if (json_count(list) > 1 && json_list_has(list, STR("*")))
        field_invalid_printf(e, p, list, "if '*' is present, must not specify other %s", others);
    field_each(item, at, p, list)
    {
        if (!may_be_empty && !json_str(item).n)
            field_required(e, at, "");
    }
}

/* What of a list of resources was seen so far. */
struct seen_resources {
    struct names whole, subs; /* x of "x/\*", y of "*\/y" */
    bool everything, single, plain;
};

static void check_resource(struct field_errors *e, const struct field_path *p, const cJSON *item,
                           struct seen_resources *seen)
{
    struct str text = json_str(item), sub = text, name = str_cut(&sub, '/');

    if (!text.n) {
        field_required(e, p, "");
        return;
    }
    seen->everything |= str_eqc(text, "*/*");
    seen->single |= str_eqc(text, "*");
    if (!sub.p) {
        seen->plain = !str_eqc(text, "*");
        return;
    }
    if (names_has(&seen->whole, name))
        field_invalid_printf(e, p, item, "if '%.*s/*' is present, must not specify %.*s",
                             STR_F(name), STR_F(text));
    if (names_has(&seen->subs, sub))
        field_invalid_printf(e, p, item, "if '*/%.*s' is present, must not specify %.*s",
                             STR_F(sub), STR_F(text));
    if (str_eqc(sub, "*"))
        names_add(&seen->whole, name, item);
    if (str_eqc(name, "*"))
        names_add(&seen->subs, sub, item);
}

static void check_resources(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    struct seen_resources seen = {.whole.arena = e->arena, .subs.arena = e->arena};

    if (!json_count(list))
        field_required(e, p, "");
    field_each(item, at, p, list) check_resource(e, at, item, &seen);
    if (json_count(list) > 1 && seen.everything)
        field_invalid(e, p, list, "if '*/*' is present, must not specify other resources");
    if (seen.single && seen.plain)
        field_invalid(e, p, list,
                      "if '*' is present, must not specify other resources without subresources");
}

static void check_operations(struct field_errors *e, const struct field_path *p, const cJSON *list)
{
    if (json_count(list) > 1 && json_list_has(list, STR("*")))
        field_invalid(e, p, list, "if '*' is present, must not specify other operations");
}

static void check_groups(const struct check *c)
{
    check_wildcard_list(c->e, c->at, c->value, "API groups", true);
}

static void check_versions(const struct check *c)
{
    check_wildcard_list(c->e, c->at, c->value, "API versions", false);
}

static const struct rule ADMISSION_RULE[] = {
    SOME("operations", ""),
    CHECK("operations", check_operations),
    EACH_ENUM("operations", ENUM_OPERATION_TYPE),
    CALL("apiGroups", check_groups),
    CALL("apiVersions", check_versions),
    CHECK_ALWAYS("resources", check_resources),
    ENUM_IF_GIVEN("scope", ENUM_SCOPE_TYPE),
};

void validate_admission_rule(struct field_errors *e, const struct field_path *p, const cJSON *rule)
{
    rules_check_value(e, p, rule, NULL, ADMISSION_RULE, COUNT(ADMISSION_RULE));
}

/* ---- conditions ---- */

struct str trimmed(struct str s)
{
    while (s.n && (s.p[0] == ' ' || (s.p[0] >= '\t' && s.p[0] <= '\r')))
        s = str_from(s, 1);
    while (s.n && (s.p[s.n - 1] == ' ' || (s.p[s.n - 1] >= '\t' && s.p[s.n - 1] <= '\r')))
        s = str_sub(s, 0, s.n - 1);
    return s;
}

void validate_match_conditions(struct field_errors *e, const struct field_path *p,
                               const cJSON *list)
{
    struct names seen = {.arena = e->arena};

    if (json_count(list) > MAX_CONDITIONS)
        field_too_many(e, p, json_count(list), MAX_CONDITIONS);
    field_each(condition, at, p, list)
    {
        struct str name = json_str(json_get(condition, "name"));

        check_given(e, FIELD(at, "expression"),
                    trimmed(json_str(json_get(condition, "expression"))));
        if (!check_given(e, FIELD(at, "name"), name))
            continue;
        check_rule(e, FIELD(at, "name"), NAME_QUALIFIED, name);
        if (!names_add(&seen, name, condition))
            field_duplicate(e, FIELD(at, "name"), json_get(condition, "name"));
    }
}
