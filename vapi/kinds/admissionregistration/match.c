/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and match conditions, which webhooks and admission policies share. Must never evaluate an
 * expression. Source: pkg/apis/admissionregistration/validation. */
#include "../rules/kind.h"
#include "policy.h"

#define MAX_CONDITIONS 64

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

const struct rule RULES_ADMISSION_RULE[10] = {
    SOME("operations", ""),
    STAR_ALONE("operations", "operations"),
    EACH_ENUM("operations", ENUM_OPERATION_TYPE),
    SOME("apiGroups", ""),
    STAR_ALONE("apiGroups", "API groups"),
    SOME("apiVersions", ""),
    STAR_ALONE("apiVersions", "API versions"),
    EACH("apiVersions", GIVEN(NULL)),
    CHECK_ALWAYS("resources", check_resources),
    ENUM_IF_GIVEN("scope", ENUM_SCOPE_TYPE),
};

/* ---- conditions ---- */

static const struct rule MATCH_CONDITIONS[] = {
    MAX_ITEMS(NULL, MAX_CONDITIONS),
    EACH(NULL, NOT_BLANK("expression", ""), NAME("name", QUALIFIED), ONCE_IF_SET("name")),
};

void validate_match_conditions(struct field_errors *e, const struct field_path *p,
                               const cJSON *list)
{
    rules_check_value(e, p, list, NULL, MATCH_CONDITIONS, COUNT(MATCH_CONDITIONS));
}
