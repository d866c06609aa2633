/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and CronJobs. Source: pkg/apis/batch/validation/validation.go,
 * pkg/registry/batch/job/strategy.go. */
#include "validate.h"

#include <stdint.h>
#include <string.h>

static const struct field_path SPEC = {.name = "spec"};

/* ---- failure and success policies ---- */

static void check_codes(struct field_errors *e, const struct field_path *p, const cJSON *codes,
                        const struct names *containers)
{
    static const char *const operators[] = {"In", "NotIn", NULL};
    const cJSON *values = json_get(codes, "values"), *name = json_get(codes, "containerName");
    const struct field_path *list = FIELD(p, "values");
    struct str op = json_str(json_get(codes, "operator"));
    struct names seen = {.arena = e->arena};
    int64_t last = INT64_MIN;
    bool ordered = true;
    size_t i = 0;

    if (!op.n)
        field_required(e, FIELD(p, "operator"), "valid values: [\"In\" \"NotIn\"]");
    else if (!one_of(op, operators))
        field_not_supported(e, FIELD(p, "operator"), op, operators);
    if (name && !names_has(containers, json_str(name)))
        field_invalid(e, FIELD(p, "containerName"), name,
                      "must be one of the container or initContainer names in the pod template");
    if (!json_count(values))
        field_invalid(e, list, values, "at least one value is required");
    else if (json_count(values) > 255)
        field_too_many(e, list, json_count(values), 255);
    json_each(value, values)
    {
        const struct field_path *at = FIELD_INDEX(list, i++);
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

static void check_patterns(struct field_errors *e, const struct field_path *p,
                           const cJSON *patterns)
{
    static const char *const states[] = {"False", "True", "Unknown", NULL};
    size_t i = 0;

    if (json_count(patterns) > 20)
        field_too_many(e, p, json_count(patterns), 20);
    json_each(pattern, patterns)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str status = json_str(json_get(pattern, "status"));

        check_rule(e, FIELD(at, "type"), NAME_QUALIFIED, json_str(json_get(pattern, "type")));
        if (!status.n)
            field_required(e, FIELD(at, "status"),
                           "valid values: [\"False\" \"True\" \"Unknown\"]");
        else if (!one_of(status, states))
            field_not_supported(e, FIELD(at, "status"), status, states);
    }
}

static void check_failure_rule(struct field_errors *e, const struct field_path *p,
                               const cJSON *rule, const cJSON *spec, const struct names *containers)
{
    static const char *const actions[] = {"Count", "FailIndex", "FailJob", "Ignore", NULL};
    struct str action = json_str(json_get(rule, "action"));
    const cJSON *codes = json_get(rule, "onExitCodes");
    const cJSON *patterns = json_get(rule, "onPodConditions");

    if (!action.n)
        field_required(e, FIELD(p, "action"),
                       "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    else if (!one_of(action, actions))
        field_not_supported(e, FIELD(p, "action"), action, actions);
    else if (str_eqc(action, "FailIndex") && !json_get(spec, "backoffLimitPerIndex"))
        field_invalid_str(e, FIELD(p, "action"), action,
                          "requires the backoffLimitPerIndex to be set");
    if (codes)
        check_codes(e, FIELD(p, "onExitCodes"), codes, containers);
    check_patterns(e, FIELD(p, "onPodConditions"), patterns);
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
    size_t i = 0;

    if (json_count(rules) > 20)
        field_too_many(e, list, json_count(rules), 20);
    names_add_members(&containers, json_path(spec, "template.spec.containers"), "name");
    names_add_members(&containers, json_path(spec, "template.spec.initContainers"), "name");
    json_each(rule, rules) check_failure_rule(e, FIELD_INDEX(list, i++), rule, spec, &containers);
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
        field_invalid(e, FIELD(p, "succeededCount"), count,
                      arena_printf(e->arena,
                                   "must be less than or equal to %lld (the number of specified "
                                   "completions)",
                                   (long long)completions)
                          .p);
    if (indexes && n > total)
        field_invalid(e, FIELD(p, "succeededCount"), count,
                      arena_printf(e->arena,
                                   "must be less than or equal to %lld (the number of indexes in "
                                   "the specified succeededIndexes field)",
                                   (long long)total)
                          .p);
}

static void check_success_policy(struct field_errors *e, const struct field_path *p,
                                 const cJSON *spec)
{
    const struct field_path *list = FIELD(p, "rules");
    const cJSON *rules = json_path(spec, "successPolicy.rules");
    size_t i = 0;

    if (!json_count(rules))
        field_required(e, list,
                       "at least one rules must be specified when the successPolicy is specified");
    if (json_count(rules) > 20)
        field_too_many(e, list, json_count(rules), 20);
    json_each(rule, rules)
        check_success_rule(e, FIELD_INDEX(list, i++), rule, json_i64_at(spec, "completions", 0));
}

/* ---- by index ---- */

#define MANY_COMPLETIONS 100000

static void at_most(struct field_errors *e, const struct field_path *p, const cJSON *spec,
                    const char *name, int64_t max, const char *when)
{
    if (json_i64_at(spec, name, 0) > max)
        field_invalid(
            e, FIELD(p, name), json_get(spec, name),
            arena_printf(e->arena, "must be less than or equal to %lld%s", (long long)max, when).p);
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

static bool is_indexed(const cJSON *spec)
{
    return str_eqc(json_str(json_get(spec, "completionMode")), "Indexed");
}

/* ---- the spec, of jobs and of their templates ---- */

static void check_managed_by(struct field_errors *e, const struct field_path *p, const cJSON *by)
{
    struct str rest = json_str(by), whole = rest, host = str_cut(&rest, '/');

    if (!by || !check_given(e, p, whole))
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

static void check_policies(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const replacements[] = {"Failed", "TerminatingOrFailed", NULL};
    static const char *const failed[] = {"Failed", NULL};
    const cJSON *success = json_get(spec, "successPolicy");
    bool failure = json_get(spec, "podFailurePolicy") != NULL;

    if (failure)
        check_failure_policy(e, FIELD(p, "podFailurePolicy"), spec);
    if (success && is_indexed(spec))
        check_success_policy(e, FIELD(p, "successPolicy"), spec);
    else if (success)
        field_invalid(e, FIELD(p, "successPolicy"), success, "requires indexed completion mode");
    check_enum_if(e, FIELD(p, "podReplacementPolicy"), json_get(spec, "podReplacementPolicy"),
                  failure ? failed : replacements);
}

static void check_spec(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    static const char *const numbers[] = {"parallelism",
                                          "completions",
                                          "activeDeadlineSeconds",
                                          "backoffLimit",
                                          "ttlSecondsAfterFinished",
                                          "backoffLimitPerIndex",
                                          "maxFailedIndexes",
                                          NULL};
    static const char *const modes[] = {"NonIndexed", "Indexed", NULL};
    const struct field_path *template_ = FIELD(p, "template");

    check_all_nonnegative(e, p, spec, numbers);
    if (json_get(spec, "maxFailedIndexes") && !json_get(spec, "backoffLimitPerIndex"))
        field_required(e, FIELD(p, "backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    check_managed_by(e, FIELD(p, "managedBy"), json_get(spec, "managedBy"));
    check_enum_if(e, FIELD(p, "completionMode"), json_get(spec, "completionMode"), modes);
    if (is_indexed(spec))
        check_indexed(e, p, spec);
    else if (str_eqc(json_str(json_get(spec, "completionMode")), "NonIndexed") ||
             !given(spec, "completionMode"))
        check_not_indexed(e, p, spec);
    check_policies(e, p, spec);
    validate_pod_template(e, template_, json_get(spec, "template"));
    check_restart(e, FIELD(FIELD(template_, "spec"), "restartPolicy"), spec);
}

/* ---- Job ---- */

static void check_label(struct field_errors *e, const cJSON *labels, const char *key,
                        struct str want)
{
    const struct field_path *p =
        FIELD(FIELD(FIELD(FIELD(NULL, "spec"), "template"), "metadata"), "labels");
    const cJSON *value = json_get(labels, key);

    if (!value)
        field_required(e, FIELD_KEY(p, str_c(key)),
                       arena_printf(e->arena, "must be '%.*s'", STR_F(want)).p);
    else if (!str_eq(json_str(value), want))
        field_invalid(e, FIELD_KEY(p, str_c(key)), labels,
                      arena_printf(e->arena, "must be '%.*s'", STR_F(want)).p);
}

static cJSON *generated_labels(struct arena *a, struct str uid, struct str name)
{
    cJSON *labels = json_new_object(a);

    json_set_str(a, labels, "controller-uid", uid);
    json_set_str(a, labels, "job-name", name);
    json_set_str(a, labels, "batch.kubernetes.io/controller-uid", uid);
    json_set_str(a, labels, "batch.kubernetes.io/job-name", name);
    return labels;
}

static void check_generated(struct field_errors *e, const cJSON *job)
{
    const cJSON *labels = json_path(job, "spec.template.metadata.labels");
    const cJSON *selector = given(job, "spec.selector");
    struct str uid = json_str_at(job, "metadata.uid"), name = json_str_at(job, "metadata.name");
    struct selector s;
    struct err err;

    if (!selector || json_true(json_path(job, "spec.manualSelector")))
        return;
    check_label(e, labels, "controller-uid", uid);
    check_label(e, labels, "job-name", name);
    check_label(e, labels, "batch.kubernetes.io/controller-uid", uid);
    check_label(e, labels, "batch.kubernetes.io/job-name", name);
    err_init(&err, e->arena);
    if (selector_from_json(e->arena, selector, &s, &err) == 0 &&
        !selector_match(&s, labels_flatten(e->arena, generated_labels(e->arena, uid, name))))
        field_invalid(e, FIELD(&SPEC, "selector"), selector, "`selector` not auto-generated");
}

static void check_job_selector(struct field_errors *e, const cJSON *spec)
{
    const cJSON *selector = given(spec, "selector");
    const cJSON *labels = json_path(spec, "template.metadata.labels");
    const struct field_path *p = FIELD(FIELD(&SPEC, "template"), "metadata");
    struct selector s;
    struct err err;

    err_init(&err, e->arena);
    if (selector)
        validate_label_selector(e, FIELD(&SPEC, "selector"), selector);
    else
        field_required(e, FIELD(&SPEC, "selector"), "");
    if (selector_from_json(e->arena, selector, &s, &err) == 0 &&
        !selector_match(&s, labels_flatten(e->arena, labels)))
        field_invalid(e, FIELD(p, "labels"), labels, "`selector` does not match template `labels`");
}

/* Pods of an indexed job are called after it. */
static void check_pod_names(struct field_errors *e, const cJSON *job)
{
    const cJSON *spec = json_get(job, "spec"), *name = json_path(job, "metadata.name");
    int64_t completions = json_i64_at(spec, "completions", 0);
    struct str last;

    if (!is_indexed(spec) || completions <= 0)
        return;
    last = arena_printf(e->arena, "%.*s-%lld", STR_F(json_str(name)), (long long)completions - 1);
    if (name_check_dns1123_label(last))
        field_invalid(e, FIELD(FIELD(NULL, "metadata"), "name"), name,
                      arena_printf(e->arena,
                                   "will not able to create pod with invalid DNS label: %.*s",
                                   STR_F(last))
                          .p);
}

static void take(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);

    if (value)
        json_set(a, to, key, json_copy(a, value));
    else
        json_remove(to, key);
}

static void take_resources(struct arena *a, cJSON *to, const cJSON *from, const char *list)
{
    const cJSON *theirs = json_first(json_get(from, list));

    if (json_count(json_get(to, list)) != json_count(json_get(from, list)))
        return;
    json_each(container, json_get(to, list))
    {
        if (json_equal(json_get(container, "name"), json_get(theirs, "name")))
            take(a, container, theirs, "resources");
        theirs = theirs->next;
    }
}

/* Where and with what the pods of a job that waits will run may still change. */
static void check_template_change(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    static const char *const movable[] = {"nodeSelector", "tolerations", "schedulingGates"};
    struct arena *a = e->arena;
    const struct field_path *p = FIELD(&SPEC, "template");
    const cJSON *template_ = json_path(job, "spec.template"), *spec = json_get(template_, "spec");
    cJSON *before = json_copy(a, json_path(old, "spec.template")), *pod = json_get(before, "spec");
    bool suspended = json_true(json_path(old, "spec.suspend"));
    bool waits = suspended && !json_i64_at(old, "status.active", 0) &&
                 (!json_path(old, "status.startTime") || job_condition_true(old, "Suspended"));

    if (waits) {
        cJSON *affinity = json_ensure_object(a, pod, "affinity");

        take(a, affinity, json_get(spec, "affinity"), "nodeAffinity");
        if (!affinity->child && !json_get(spec, "affinity"))
            json_remove(pod, "affinity");
        for (size_t i = 0; i < COUNT(movable); i++)
            take(a, pod, spec, movable[i]);
        take(a, before, template_, "metadata");
        take_resources(a, pod, spec, "containers");
        take_resources(a, pod, spec, "initContainers");
        if (!json_equal(pod, spec))
            field_invalid(e, FIELD(&SPEC, "template.spec"), spec, IMMUTABLE);
        return;
    }
    check_immutable(e, p, template_, before);
}

static void check_job_change(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    static const char *const fixed[] = {"completionMode", "podFailurePolicy",
                                        "backoffLimitPerIndex", "managedBy", "successPolicy"};
    const cJSON *spec = json_get(job, "spec"), *before = json_get(old, "spec");
    const cJSON *completions = json_get(spec, "completions");
    const struct field_path *p = FIELD(&SPEC, "completions");

    if (!is_indexed(spec))
        check_immutable(e, p, completions, json_get(before, "completions"));
    else if (completions && !same_value(completions, json_get(before, "completions")) &&
             !same_value(completions, json_get(spec, "parallelism")))
        field_invalid(e, p, completions, "can only be modified in tandem with spec.parallelism");
    check_immutable(e, FIELD(&SPEC, "selector"), given(spec, "selector"),
                    given(before, "selector"));
    check_template_change(e, job, old);
    for (size_t i = 0; i < COUNT(fixed); i++)
        check_immutable(e, FIELD(&SPEC, fixed[i]), json_get(spec, fixed[i]),
                        json_get(before, fixed[i]));
}

void validate_job(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    const cJSON *spec = json_get(job, "spec");

    check_generated(e, job);
    check_spec(e, &SPEC, spec);
    check_job_selector(e, spec);
    check_pod_names(e, job);
    if (old)
        check_job_change(e, job, old);
}

/* ---- CronJob ---- */

/* Names of IANA begin with a letter and know no dots; files beside the zones do not count. */
static bool is_zone_part(struct str part)
{
    if (!part.n || part.n > 14 || (part.p[0] | 0x20) < 'a' || (part.p[0] | 0x20) > 'z')
        return false;
    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && !strchr("-_+", c))
            return false;
    }
    return true;
}

/* Only the form: which zones there are is not asked. */
static void check_zone(struct field_errors *e, const struct field_path *p, const cJSON *zone)
{
    struct str rest = json_str(zone), whole = rest;

    if (!zone)
        return;
    if (!whole.n) {
        field_invalid(e, p, zone, "timeZone must be nil or non-empty string");
        return;
    }
    do {
        if (!is_zone_part(str_cut(&rest, '/'))) {
            field_invalid(e, p, zone,
                          arena_printf(e->arena, "unknown time zone %.*s", STR_F(whole)).p);
            return;
        }
    } while (rest.p);
    if (str_eqc(lower_case(e->arena, whole), "local"))
        field_invalid(e, p, zone,
                      "timeZone must be an explicit time zone as defined in "
                      "https://www.iana.org/time-zones");
}

static void check_schedule(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    const struct field_path *p = FIELD(&SPEC, "schedule");
    struct str schedule = json_str(json_get(spec, "schedule"));
    bool zoned = str_contains(schedule, STR("TZ"));
    bool may = str_contains(json_str(json_get(old, "schedule")), STR("TZ"));
    const char *why;

    if (!check_given(e, p, schedule))
        return;
    why = cron_problem(e->arena, schedule);
    if (why)
        field_invalid_str(e, p, schedule, why);
    if (zoned && !may)
        field_invalid_str(e, p, schedule,
                          "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    else if (zoned && json_get(spec, "timeZone"))
        field_invalid_str(e, p, schedule,
                          "cannot use both timeZone field and TZ or CRON_TZ in schedule");
}

static void check_job_template(struct field_errors *e, const cJSON *template_)
{
    static const char *const none[] = {"nil", "false", NULL};
    const struct field_path *p = FIELD(FIELD(&SPEC, "jobTemplate"), "spec");
    const cJSON *spec = json_get(template_, "spec");

    check_spec(e, p, spec);
    if (given(spec, "selector"))
        field_invalid(e, FIELD(p, "selector"), given(spec, "selector"),
                      "`selector` will be auto-generated");
    if (json_true(json_get(spec, "manualSelector")))
        field_not_supported_value(e, FIELD(p, "manualSelector"), json_get(spec, "manualSelector"),
                                  none);
}

void validate_cron_job(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    static const char *const policies[] = {"Allow", "Forbid", "Replace", NULL};
    static const char *const limits[] = {"successfulJobsHistoryLimit", "failedJobsHistoryLimit",
                                         NULL};
    const cJSON *spec = json_get(object, "spec"), *name = json_path(object, "metadata.name");

    check_schedule(e, spec, json_get(old, "spec"));
    check_nonnegative(e, FIELD(&SPEC, "startingDeadlineSeconds"),
                      json_get(spec, "startingDeadlineSeconds"));
    if (!old || !same_value(json_get(spec, "timeZone"), json_path(old, "spec.timeZone")))
        check_zone(e, FIELD(&SPEC, "timeZone"), json_get(spec, "timeZone"));
    check_enum(e, FIELD(&SPEC, "concurrencyPolicy"), json_str(json_get(spec, "concurrencyPolicy")),
               policies);
    check_job_template(e, json_get(spec, "jobTemplate"));
    check_all_nonnegative(e, &SPEC, spec, limits);
    if (!old && json_str(name).n > 52)
        field_invalid(e, FIELD(FIELD(NULL, "metadata"), "name"), name,
                      "must be no more than 52 characters");
}
