/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of Jobs and of the Jobs CronJobs create. Source: validateJobSpec in
 * pkg/apis/batch/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "job.h"

#include <stdint.h>

static void check_codes(struct field_errors *e, const struct field_path *p, const cJSON *codes,
                        const struct names *containers)
{
    const cJSON *values = json_get(codes, "values"), *name = json_get(codes, "containerName");
    const struct field_path *list = FIELD(p, "values");
    struct str op = json_str(json_get(codes, "operator"));
    struct names seen = {.arena = e->arena};
    int64_t last = INT64_MIN;
    bool ordered = true;

    if (!op.n)
        field_required(e, FIELD(p, "operator"), "valid values: [\"In\" \"NotIn\"]");
    else if (!one_of(op, ENUM_POD_FAILURE_POLICY_ON_EXIT_CODES_OPERATOR))
        field_not_supported(e, FIELD(p, "operator"), op,
                            ENUM_POD_FAILURE_POLICY_ON_EXIT_CODES_OPERATOR);
    if (name && !names_has(containers, json_str(name)))
        field_invalid(e, FIELD(p, "containerName"), name,
                      "must be one of the container or initContainer names in the pod template");
    if (!json_count(values))
        field_invalid(e, list, values, "at least one value is required");
    else if (json_count(values) > 255)
        field_too_many(e, list, json_count(values), 255);
    field_each(value, at, list, values)
    {
        int64_t code = 0;

        json_i64(value, &code);
        if (str_eqc(op, "In") && !code)
            field_invalid(e, at, value, "must not be 0 for the In operator");
        if (!names_add(&seen, arena_printf(e->arena, "%lld", (long long)code), value))
            field_duplicate(e, at, value);
        ordered &= code >= last;
        last = code;
    }
    if (!ordered)
        field_invalid(e, list, values, "must be ordered");
}

static const char *const STATES[] = {"False", "True", "Unknown", NULL};
static const struct rule PATTERNS[] = {
    MAX_ITEMS("onPodConditions", 20),
    EACH("onPodConditions", NAME_ALWAYS("type", QUALIFIED),
         ENUM_SAID("status", STATES, "valid values: [\"False\" \"True\" \"Unknown\"]")),
};

static void check_failure_rule(struct field_errors *e, const struct field_path *p,
                               const cJSON *rule, const cJSON *spec, const struct names *containers)
{
    struct str action = json_str(json_get(rule, "action"));
    const cJSON *codes = json_get(rule, "onExitCodes");
    const cJSON *patterns = json_get(rule, "onPodConditions");

    if (!action.n)
        field_required(e, FIELD(p, "action"),
                       "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    else if (!one_of(action, ENUM_POD_FAILURE_POLICY_ACTION))
        field_not_supported(e, FIELD(p, "action"), action, ENUM_POD_FAILURE_POLICY_ACTION);
    else if (str_eqc(action, "FailIndex") && !json_get(spec, "backoffLimitPerIndex"))
        field_invalid_str(e, FIELD(p, "action"), action,
                          "requires the backoffLimitPerIndex to be set");
    if (codes)
        check_codes(e, FIELD(p, "onExitCodes"), codes, containers);
    rules_check_value(e, p, rule, NULL, PATTERNS, COUNT(PATTERNS));
    if (codes && json_count(patterns))
        field_invalid_bare(e, p,
                           "specifying both OnExitCodes and OnPodConditions is not supported");
    if (!codes && !json_count(patterns))
        field_invalid_bare(e, p, "specifying one of OnExitCodes and OnPodConditions is required");
}

static void check_failure_policy(struct field_errors *e, const struct field_path *p,
                                 const cJSON *spec)
{
    const struct field_path *list = FIELD(p, "rules");
    const cJSON *rules = json_path(spec, "podFailurePolicy.rules");
    struct names containers = {.arena = e->arena};

    if (json_count(rules) > 20)
        field_too_many(e, list, json_count(rules), 20);
    names_add_members(&containers, json_path(spec, "template.spec.containers"), "name");
    names_add_members(&containers, json_path(spec, "template.spec.initContainers"), "name");
    field_each(rule, at, list, rules) check_failure_rule(e, at, rule, spec, &containers);
}

static void check_success_rule(struct field_errors *e, const struct field_path *p,
                               const cJSON *rule, int64_t completions)
{
    const cJSON *count = json_get(rule, "succeededCount");
    const cJSON *indexes = json_get(rule, "succeededIndexes");
    int64_t n, total;

    if (!count && !indexes)
        field_required(e, p,
                       "at least one of succeededCount or succeededIndexes must be specified");
    if (json_str(indexes).n > 64 * 1024)
        field_too_long(e, FIELD(p, "succeededIndexes"), 64 * 1024);
    total =
        check_indexes(e, FIELD(p, "succeededIndexes"), indexes, "succeededIndexes", completions);
    if (!json_i64(count, &n))
        return;
    check_nonnegative(e, FIELD(p, "succeededCount"), count);
    if (n > completions)
        field_invalid_printf(e, FIELD(p, "succeededCount"), count,
                             "must be less than or equal to %lld (the number of specified "
                             "completions)",
                             (long long)completions);
    if (indexes && n > total)
        field_invalid_printf(e, FIELD(p, "succeededCount"), count,
                             "must be less than or equal to %lld (the number of indexes in "
                             "the specified succeededIndexes field)",
                             (long long)total);
}

static void check_success_rules(const struct check *c)
{
    field_each(rule, at, c->at, c->value)
        check_success_rule(c->e, at, rule, json_i64_at(c->context, "completions", 0));
}

static const struct rule SUCCESS_POLICY[] = {
    SOME("rules", "at least one rules must be specified when the successPolicy is specified"),
    MAX_ITEMS("rules", 20),
    CALL("rules", check_success_rules),
};

/* ---- by index ---- */

#define MANY_COMPLETIONS 100000

static void at_most(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                    const char *name, int64_t max, const char *when)
{
    if (json_i64_at(spec, name, 0) > max)
        field_invalid_printf(e, FIELD(p, name), json_get(spec, name),
                             "must be less than or equal to %lld%s", (long long)max, when);
}

static void check_many(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char when[] =
        " when completions are above 100000 and used with backoff limit per index";

    if (!json_get(spec, "maxFailedIndexes"))
        field_required(e, FIELD(p, "maxFailedIndexes"),
                       "must be specified when completions is above 100000");
    at_most(e, p, spec, "parallelism", 10000, when);
    at_most(e, p, spec, "maxFailedIndexes", 10000, when);
}

static void check_indexed(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    int64_t completions = 0;
    bool has = json_i64(json_get(spec, "completions"), &completions);

    if (!has)
        field_required(e, FIELD(p, "completions"), "when completion mode is Indexed");
    at_most(e, p, spec, "parallelism", 100000, " when completion mode is Indexed");
    if (has && json_i64_at(spec, "maxFailedIndexes", 0) > completions)
        field_invalid(e, FIELD(p, "maxFailedIndexes"), json_get(spec, "maxFailedIndexes"),
                      "must be less than or equal to completions");
    at_most(e, p, spec, "maxFailedIndexes", 100000, "");
    if (completions > MANY_COMPLETIONS && json_get(spec, "backoffLimitPerIndex"))
        check_many(e, p, spec);
}

static void check_not_indexed(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const names[] = {"backoffLimitPerIndex", "maxFailedIndexes"};

    for (size_t i = 0; i < COUNT(names); i++) {
        if (json_get(spec, names[i]))
            field_invalid(e, FIELD(p, names[i]), json_get(spec, names[i]),
                          "requires indexed completion mode");
    }
}

bool job_is_indexed(const cJSON *spec)
{
    return str_eqc(json_str(json_get(spec, "completionMode")), "Indexed");
}

/* ---- the spec, of jobs and of their templates ---- */

static void check_managed_by(struct field_errors *e, const struct field_path *p, const cJSON *by)
{
    struct str rest = json_str(by), whole = rest, host = str_cut(&rest, '/');

    if (!check_given(e, p, whole))
        return;
    if (!host.n || !rest.n)
        field_invalid(e, p, by, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    else
        check_rule(e, p, NAME_DNS1123_SUBDOMAIN, host);
    if (whole.n > 63)
        field_too_long(e, p, 63);
}

static void check_restart(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const policies[] = {"OnFailure", "Never", NULL};
    struct str restart = json_str_at(spec, "template.spec.restartPolicy");

    if (!restart.n || str_eqc(restart, "Always"))
        field_required(e, p, "valid values: \"OnFailure\", \"Never\"");
    else if (!one_of(restart, policies))
        field_not_supported(e, p, restart, policies);
    else if (json_get(spec, "podFailurePolicy") && !str_eqc(restart, "Never"))
        field_invalid_str(e, p, restart,
                          "only \"Never\" is supported when podFailurePolicy is specified");
}

static void check_policies(const struct check *c)
{
    const cJSON *spec = c->value, *success = json_get(spec, "successPolicy");
    bool failure = json_get(spec, "podFailurePolicy") != NULL;
    AT(at, c->at, "successPolicy");

    if (failure)
        check_failure_policy(c->e, FIELD(c->at, "podFailurePolicy"), spec);
    if (success && job_is_indexed(spec))
        rules_check_value(c->e, at, success, spec, SUCCESS_POLICY, COUNT(SUCCESS_POLICY));
    else if (success)
        field_invalid(c->e, at, success, "requires indexed completion mode");
    check_enum_if(c->e, FIELD(c->at, "podReplacementPolicy"),
                  json_get(spec, "podReplacementPolicy"),
                  failure ? NAMES("Failed") : ENUM_POD_REPLACEMENT_POLICY);
}

static void check_mode(const struct check *c)
{
    const cJSON *spec = c->value;

    if (job_is_indexed(spec))
        check_indexed(c->e, c->at, spec);
    else if (text_is(spec, "completionMode", "NonIndexed") || !given(spec, "completionMode"))
        check_not_indexed(c->e, c->at, spec);
}

static void check_failed_indexes(const struct check *c)
{
    if (json_get(c->value, "maxFailedIndexes") && !json_get(c->value, "backoffLimitPerIndex"))
        field_required(c->e, FIELD(c->at, "backoffLimitPerIndex"),
                       "when maxFailedIndexes is specified");
}

static void check_template(const struct check *c)
{
    AT(template_, c->at, "template");

    validate_pod_template(c->e, template_, json_get(c->value, "template"));
    check_restart(c->e, FIELD(FIELD(template_, "spec"), "restartPolicy"), c->value);
}

static const struct rule SPEC_RULES[] = {
    NONNEGATIVES(NULL, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                 "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"),
    CALL(NULL, check_failed_indexes),
    CHECK("managedBy", check_managed_by),
    ENUM_IF_GIVEN("completionMode", NAMES("NonIndexed", "Indexed")),
    CALL(NULL, check_mode),
    CALL(NULL, check_policies),
    CALL(NULL, check_template),
};

void validate_job_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    rules_check_value(e, p, spec, NULL, SPEC_RULES, COUNT(SPEC_RULES));
}
