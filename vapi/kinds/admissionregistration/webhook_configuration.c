/* SPDX-License-Identifier: Apache-2.0 */
/* ValidatingWebhookConfigurations and MutatingWebhookConfigurations. Source:
 * pkg/apis/admissionregistration/validation. */
#include "../rules/kind.h"
#include "policy.h"

#include <sublet/cel_policy.h>
#include <sublet/json_build.h>
#include <sublet/client_config.h>

static const struct default_rule WEBHOOK[] = {
    SET_TEXT("webhooks[].failurePolicy", "Fail"),
    SET_TEXT("webhooks[].matchPolicy", "Equivalent"),
    SET_OBJECT("webhooks[].namespaceSelector"),
    SET_OBJECT("webhooks[].objectSelector"),
    SET_NUMBER("webhooks[].timeoutSeconds", 10),
    SET_NUMBER("webhooks[].clientConfig.service.port", 443),
    SET_TEXT("webhooks[].rules[].scope", "*"),
};

static const struct default_rule MUTATING[] = {SET_TEXT("webhooks[].reinvocationPolicy", "Never")};

static void mutating_defaults(struct arena *a, cJSON *config)
{
    defaults_apply(a, config, MUTATING, COUNT(MUTATING));
}

#define REVIEW_VERSIONS "v1, v1beta1"

static const char *const NO_SIDE_EFFECTS[] = {"None", "NoneOnDryRun", NULL};

static void check_client(struct field_errors *e, const struct field_path *p, const cJSON *config)
{
    const cJSON *url = kinds_given(config, "url"), *service = kinds_given(config, "service");

    client_config_check_server(e, p, url, service);
}

/* ---- webhooks ---- */

/* What an update may keep because it was there. */
struct leniency {
    bool side_effects, versions, names;
    bool same_conditions;
    const cJSON *old;
};

static bool is_known_version(const cJSON *list)
{
    return json_list_has(list, STR("v1")) || json_list_has(list, STR("v1beta1"));
}

static struct leniency leniency_of(struct arena *a, const cJSON *hooks, const cJSON *old)
{
    struct leniency ret = {.old = old};
    struct names seen = {.arena = a};
    size_t i = 0;

    ret.same_conditions = old && json_count(hooks) == json_count(old);
    json_each(hook, old)
    {
        const cJSON *now = json_at(hooks, i++),
                    *versions = json_get(hook, "admissionReviewVersions");

        ret.side_effects |= !kinds_one_of(json_str(json_get(hook, "sideEffects")), NO_SIDE_EFFECTS);
        ret.versions |= json_count(versions) && !is_known_version(versions);
        ret.names |= !names_add(&seen, json_str(json_get(hook, "name")), hook);
        ret.same_conditions &=
            kinds_same_value(json_get(now, "matchConditions"), json_get(hook, "matchConditions"));
    }
    return ret;
}

static void check_full_name(struct field_errors *e, const struct field_path *p, struct str name)
{
    const char *why;
    size_t dots = 0;

    if (!check_given(e, p, name))
        return;
    why = name_check_dns1123_subdomain(name);
    for (size_t i = 0; i < name.n; i++)
        dots += name.p[i] == '.';
    if (why)
        field_invalid_str(e, p, name, why);
    else if (dots < 2)
        field_invalid_str(e, p, name,
                          "should be a domain with at least three segments separated by dots");
}

static void check_side_effects(const struct check *c)
{
    const struct leniency *fine = c->context;

    if (!c->value)
        field_required(c->e, c->at,
                       fine->side_effects ? "must specify one of None, NoneOnDryRun, Some, Unknown"
                                          : "must specify one of None, NoneOnDryRun");
    else
        check_enum_if(c->e, c->at, c->value,
                      fine->side_effects ? ENUM_SIDE_EFFECT_CLASS : NO_SIDE_EFFECTS);
}

static void check_review_versions(const struct check *c)
{
    struct field_errors *e = c->e;
    const struct field_path *p = c->at;
    const cJSON *list = c->value;
    const struct leniency *fine = c->context;
    struct names seen = {.arena = e->arena};

    if (!json_count(list)) {
        field_required(e, p, "must specify one of " REVIEW_VERSIONS);
        return;
    }
    field_each(version, at, p, list)
    {
        if (!names_add(&seen, json_str(version), version))
            field_invalid(e, at, version, "duplicate version");
        else
            check_rule(e, at, NAME_DNS1035_LABEL, json_str(version));
    }
    if (!fine->versions && !is_known_version(list))
        field_invalid(e, p, list, "must include at least one of " REVIEW_VERSIONS);
}

/* Programs are made for their problems only, in memory that is given back. */
static void check_expressions(const struct check *c)
{
    struct arena *scratch = arena_new(0);
    struct cel_policy policy;

    cel_policy_compile(scratch,
                       json_object(scratch, JSON("matchConditions", json_copy(scratch, c->value))),
                       &policy);
    for (size_t i = 0; i < policy.conditions.n; i++) {
        const struct cel_expression *x = &policy.conditions.items[i];

        if (x->problem.n)
            field_invalid_str(c->e, FIELD(FIELD_INDEX(c->at, x->index), x->field), x->source,
                              arena_cstr(c->e->arena, x->problem));
    }
    cel_policy_release(&policy);
    arena_free(scratch);
}

static void check_conditions(const struct check *c)
{
    const struct leniency *fine = c->context;

    if (!fine->same_conditions) {
        validate_match_conditions(c->e, c->at, c->value);
        check_expressions(c);
    }
}

static const struct rule HOOK[] = {
    CHECK_STR("name", check_full_name),
    EACH("rules", ALL(RULES_ADMISSION_RULE)),
    ENUM_IF_GIVEN("failurePolicy", ENUM_FAILURE_POLICY_TYPE),
    ENUM_IF_GIVEN("matchPolicy", ENUM_MATCH_POLICY_TYPE),
    CALL("sideEffects", check_side_effects),
    RANGE_ELSE("timeoutSeconds", 1, 30, "the timeout value must be between 1 and 30 seconds"),
    LABEL_SELECTOR("namespaceSelector"),
    LABEL_SELECTOR("objectSelector"),
    ENUM_IF_GIVEN("reinvocationPolicy", ENUM_REINVOCATION_POLICY_TYPE),
    CHECK_ALWAYS("clientConfig", check_client),
    CALL("matchConditions", check_conditions),
    CALL("admissionReviewVersions", check_review_versions),
};

static void check_hooks(const struct check *c)
{
    struct leniency fine = leniency_of(c->e->arena, c->value, json_get(c->before, "webhooks"));
    struct names seen = {.arena = c->e->arena};

    field_each(hook, at, c->at, c->value)
    {
        struct str name = json_str(json_get(hook, "name"));

        rules_check_value(c->e, at, hook, &fine, HOOK, COUNT(HOOK));
        if (name.n && !names_add(&seen, name, hook) && !fine.names)
            field_duplicate(c->e, FIELD(at, "name"), json_get(hook, "name"));
    }
}

static const struct rule CONFIGURATION_RULES[] = {CALL("webhooks", check_hooks)};

/* ---- the kinds ---- */

static const struct column COLUMNS[] = {
    {"Webhooks", "integer", .cell = show_count, .path = "webhooks"},
    {"Age", "string", .cell = show_age},
    {NULL},
};

const struct kind KIND_MUTATING_WEBHOOK_CONFIGURATION = {
    RESOURCE("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
             "mutatingwebhookconfigurations", "mutatingwebhookconfiguration"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags =
        RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
    .resource.columns = COLUMNS,
    .default_rules = DEFAULTS(WEBHOOK),
    .defaults = mutating_defaults,
    .rules = RULES(CONFIGURATION_RULES),
};

const struct kind KIND_VALIDATING_WEBHOOK_CONFIGURATION = {
    RESOURCE("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
             "validatingwebhookconfigurations", "validatingwebhookconfiguration"),
    .resource.categories = NAMES("api-extensions"),
    .resource.flags =
        RES_GENERATION | RES_CONDITIONAL_UPDATE | RES_NAME_ON_UPDATE | RES_ANY_FINALIZER,
    .resource.columns = COLUMNS,
    .default_rules = DEFAULTS(WEBHOOK),
    .rules = RULES(CONFIGURATION_RULES),
};
