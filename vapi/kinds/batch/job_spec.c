/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of Jobs and of the Jobs CronJobs create. Source: validateJobSpec in
 * pkg/apis/batch/validation/validation.go. */
#include "../rules/kind.h"
#include "../pod/pod.h"
#include "job.h"

#include <stdint.h>

/* What rules of a failure policy need to know. */
struct failure_check {
    const cJSON *spec;
    struct names containers;
};

static void check_container_name(const struct check *c)
{
    const struct failure_check *f = c->context;

    if (c->value && !names_has(&f->containers, json_str(c->value)))
        field_invalid(c->e, c->at, c->value,
                      "must be one of the container or initContainer names in the pod template");
}

static void check_codes(const struct check *c)
{
    const cJSON *values = json_get(c->value, "values");
    bool ordered = true, in = kinds_text_is(c->value, "operator", "In");
    struct names seen = {.arena = c->e->arena};
    int64_t last = INT64_MIN;
    AT(list, c->at, "values");

    if (!json_count(values))
        field_invalid(c->e, list, values, "at least one value is required");
    check_list_size(c->e, list, values, 255);
    field_each(value, at, list, values)
    {
        int64_t code = 0;

        json_i64(value, &code);
        if (in && !code)
            field_invalid(c->e, at, value, "must not be 0 for the In operator");
        if (!names_add(&seen, arena_printf(c->e->arena, "%lld", (long long)code), value))
            field_duplicate(c->e, at, value);
        ordered &= code >= last;
        last = code;
    }
    if (!ordered)
        field_invalid(c->e, list, values, "must be ordered");
}

static void check_fail_index(const struct check *c)
{
    const struct failure_check *f = c->context;

    if (str_eqc(json_str(c->value), "FailIndex") && !json_get(f->spec, "backoffLimitPerIndex"))
        field_invalid(c->e, c->at, c->value, "requires the backoffLimitPerIndex to be set");
}

/* context: struct failure_check. */
static const struct rule FAILURE_RULE[] = {
    ENUM_SAID("action", ENUM_POD_FAILURE_POLICY_ACTION,
              "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
    CALL("action", check_fail_index),
    WITHIN("onExitCodes",
           ENUM_SAID("operator", ENUM_POD_FAILURE_POLICY_ON_EXIT_CODES_OPERATOR,
                     "valid values: [\"In\" \"NotIn\"]"),
           CALL("containerName", check_container_name), CALL(NULL, check_codes)),
    MAX_ITEMS("onPodConditions", 20),
    EACH("onPodConditions", NAME_ALWAYS("type", QUALIFIED),
         ENUM_SAID("status", ENUM_CONDITION_STATUS,
                   "valid values: [\"False\" \"True\" \"Unknown\"]")),
    WHEN_ALL(
        NULL, NAMES("onExitCodes", "onPodConditions"),
        INVALID_BARE(NULL, "specifying both OnExitCodes and OnPodConditions is not supported")),
    WHEN_NONE(NULL, NAMES("onExitCodes", "onPodConditions"),
              INVALID_BARE(NULL, "specifying one of OnExitCodes and OnPodConditions is required")),
};
static const struct rule FAILURE_POLICY[] = {
    MAX_ITEMS("rules", 20),
    EACH("rules", ALL(FAILURE_RULE)),
};

static void check_success_rule(const struct check *c)
{
    const cJSON *count = json_get(c->value, "succeededCount");
    const cJSON *indexes = json_get(c->value, "succeededIndexes");
    int64_t n, total, completions = json_i64_at(c->context, "completions", 0);
    AT(at, c->at, "succeededCount");
    AT(indexes_at, c->at, "succeededIndexes");

    if (!count && !indexes)
        field_required(c->e, c->at,
                       "at least one of succeededCount or succeededIndexes must be specified");
    if (json_str(indexes).n > 64 * 1024)
        field_too_long(c->e, indexes_at, 64 * 1024);
    total = check_indexes(c->e, indexes_at, indexes, "succeededIndexes", completions);
    if (!json_i64(count, &n))
        return;
    check_nonnegative(c->e, at, count);
    if (n > completions)
        field_invalid_printf(c->e, at, count,
                             "must be less than or equal to %lld (the number of specified "
                             "completions)",
                             (long long)completions);
    if (indexes && n > total)
        field_invalid_printf(c->e, at, count,
                             "must be less than or equal to %lld (the number of indexes in "
                             "the specified succeededIndexes field)",
                             (long long)total);
}

static const struct rule SUCCESS_POLICY[] = {
    SOME("rules", "at least one rules must be specified when the successPolicy is specified"),
    MAX_ITEMS("rules", 20),
    EACH("rules", CALL(NULL, check_success_rule)),
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
    if (completions > MANY_COMPLETIONS && json_get(spec, "backoffLimitPerIndex")) {
        static const char when[] =
            " when completions are above 100000 and used with backoff limit per index";

        if (!json_get(spec, "maxFailedIndexes"))
            field_required(e, FIELD(p, "maxFailedIndexes"),
                           "must be specified when completions is above 100000");
        at_most(e, p, spec, "parallelism", 10000, when);
        at_most(e, p, spec, "maxFailedIndexes", 10000, when);
    }
}

bool kinds_job_is_indexed(const cJSON *spec)
{
    return str_eqc(json_str(json_get(spec, "completionMode")), "Indexed");
}

static const struct rule NOT_INDEXED[] = {
    INVALID("backoffLimitPerIndex", "requires indexed completion mode"),
    INVALID("maxFailedIndexes", "requires indexed completion mode"),
};

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

static void check_policies(const struct check *c)
{
    const cJSON *spec = c->value, *success = json_get(spec, "successPolicy");
    const cJSON *failure = json_get(spec, "podFailurePolicy");
    struct failure_check f = {spec, {.arena = c->e->arena}};
    AT(at, c->at, "successPolicy");

    names_add_members(&f.containers, json_path(spec, "template.spec.containers"), "name");
    names_add_members(&f.containers, json_path(spec, "template.spec.initContainers"), "name");
    if (failure)
        rules_check_value(c->e, FIELD(c->at, "podFailurePolicy"), failure, &f, FAILURE_POLICY,
                          COUNT(FAILURE_POLICY));
    if (success && kinds_job_is_indexed(spec))
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

    if (kinds_job_is_indexed(spec))
        check_indexed(c->e, c->at, spec);
    else if (kinds_text_is(spec, "completionMode", "NonIndexed") ||
             !kinds_given(spec, "completionMode"))
        rules_check(c, NOT_INDEXED, COUNT(NOT_INDEXED));
}

static void check_template(const struct check *c)
{
    static const char *const policies[] = {"OnFailure", "Never", NULL};
    struct str restart = json_str_at(c->value, "template.spec.restartPolicy");
    AT(template_, c->at, "template");
    const struct field_path *at = FIELD(FIELD(template_, "spec"), "restartPolicy");

    validate_pod_template(c->e, template_, json_get(c->value, "template"));
    if (!restart.n || str_eqc(restart, "Always"))
        field_required(c->e, at, "valid values: \"OnFailure\", \"Never\"");
    else if (!kinds_one_of(restart, policies))
        field_not_supported(c->e, at, restart, policies);
    else if (json_get(c->value, "podFailurePolicy") && !str_eqc(restart, "Never"))
        field_invalid_str(c->e, at, restart,
                          "only \"Never\" is supported when podFailurePolicy is specified");
}

static const struct rule SPEC_RULES[] = {
    NONNEGATIVES(NULL, "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                 "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"),
    WHEN_GIVEN(NULL, "maxFailedIndexes",
               REQUIRED("backoffLimitPerIndex", "when maxFailedIndexes is specified")),
    CHECK("managedBy", check_managed_by),
    ENUM_IF_GIVEN("completionMode", ENUM_COMPLETION_MODE_DECLARED),
    CALL(NULL, check_mode),
    CALL(NULL, check_policies),
    CALL(NULL, check_template),
};

void validate_job_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    rules_check_value(e, p, spec, NULL, SPEC_RULES, COUNT(SPEC_RULES));
}
