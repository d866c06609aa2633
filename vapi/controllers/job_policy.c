/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of a job: which failures count, and which fail an index or the job
 * (podFailurePolicy, backoffLimitPerIndex), and which indexes suffice for success (successPolicy).
 * Must stay pure: trees in, answers out. Source of the rules: pkg/controller/job
 * (pod_failure_policy, success_policy, indexed_job_utils) of Kubernetes 1.36. */
#include "job.h"

#define FAILURES "batch.kubernetes.io/job-index-failure-count"
#define IGNORED  "batch.kubernetes.io/job-index-ignored-failure-count"

/* --- podFailurePolicy --- */

static bool code_matches(const cJSON *rule, int64_t code)
{
    bool listed = false;

    json_each(value, json_get(rule, "values"))
    {
        int64_t n;

        listed |= json_i64(value, &n) && n == code;
    }
    return str_eqc(json_str_at(rule, "operator"), "In") ? listed : !listed;
}

/* The first failed container that the rule matches. */
static const cJSON *container_matching(const cJSON *pod, const cJSON *rule)
{
    static const char *const lists[] = {"status.containerStatuses", "status.initContainerStatuses"};
    struct str name = json_str_at(rule, "containerName");

    for (size_t i = 0; i < 2; i++) {
        json_each(c, json_path(pod, lists[i]))
        {
            int64_t code = json_i64_at(c, "state.terminated.exitCode", 0);

            if (code && (!name.n || str_eq(name, json_str_at(c, "name"))) &&
                code_matches(rule, code))
                return c;
        }
    }
    return NULL;
}

static const cJSON *condition_matching(const cJSON *pod, const cJSON *patterns)
{
    json_each(c, json_path(pod, "status.conditions"))
    {
        json_each(p, patterns)
        {
            struct str wanted = json_str_at(p, "status");

            if (str_eq(json_str_at(c, "type"), json_str_at(p, "type")) &&
                str_eq(json_str_at(c, "status"), wanted.n ? wanted : STR("True")))
                return c;
        }
    }
    return NULL;
}

static enum job_action action_of(struct str name)
{
    static const struct {
        const char *name;
        enum job_action action;
    } actions[] = {{"Ignore", JOB_FAILURE_IGNORED},
                   {"Count", JOB_FAILURE_COUNTS},
                   {"FailIndex", JOB_FAILURE_OF_INDEX},
                   {"FailJob", JOB_FAILURE_OF_JOB}};

    for (size_t i = 0; i < COUNT(actions); i++) {
        if (str_eqc(name, actions[i].name))
            return actions[i].action;
    }
    return JOB_FAILURE_COUNTS;
}

enum job_action job_failure_of(const struct job_run *j, const cJSON *pod, struct str *ret_message)
{
    struct arena *a = reconcile_arena(j->run);
    const cJSON *found;
    int i = 0;

    json_each(rule, json_path(j->job, "spec.podFailurePolicy.rules"))
    {
        struct str action = json_str_at(rule, "action");
        const cJSON *codes = json_get(rule, "onExitCodes");

        if (codes && (found = container_matching(pod, codes))) {
            *ret_message = arena_printf(
                a,
                "Container %.*s for pod %.*s/%.*s failed with exit code %lld matching %.*s rule at "
                "index %d",
                STR_F(json_str_at(found, "name")), STR_F(meta_ns(pod)), STR_F(meta_name(pod)),
                (long long)json_i64_at(found, "state.terminated.exitCode", 0), STR_F(action), i);
            return action_of(action);
        }
        if (!codes && (found = condition_matching(pod, json_get(rule, "onPodConditions")))) {
            *ret_message =
                arena_printf(a, "Pod %.*s/%.*s has condition %.*s matching %.*s rule at index %d",
                             STR_F(meta_ns(pod)), STR_F(meta_name(pod)),
                             STR_F(json_str_at(found, "type")), STR_F(action), i);
            return action_of(action);
        }
        i++;
    }
    return JOB_FAILURE_COUNTS;
}

bool job_failure_counts(const struct job_run *j, const cJSON *pod)
{
    struct str message;

    return job_failure_of(j, pod, &message) != JOB_FAILURE_IGNORED;
}

bool job_fails_by_policy(const struct job_run *j, struct str *ret_message)
{
    if (!json_path(j->job, "spec.podFailurePolicy"))
        return false;
    for (size_t i = 0; i < j->n_pods; i++) {
        if (job_pod_failed(j, j->pods[i]) &&
            job_failure_of(j, j->pods[i], ret_message) == JOB_FAILURE_OF_JOB)
            return true;
    }
    return false;
}

/* --- backoffLimitPerIndex --- */

static int64_t number_of(const cJSON *pod, const char *key)
{
    uint64_t n;

    return str_to_u64(json_str(json_get(json_path(pod, "metadata.annotations"), key)), &n) &&
                   n <= INT32_MAX
               ? (int64_t)n
               : 0;
}

int64_t job_index_failures(const cJSON *pod)
{
    return number_of(pod, FAILURES) + number_of(pod, IGNORED);
}

bool job_index_failed(const struct job_run *j, const cJSON *pod)
{
    struct str message;
    enum job_action action;

    if (!job_pod_failed(j, pod))
        return false;
    action = job_failure_of(j, pod, &message);
    if (action == JOB_FAILURE_OF_INDEX)
        return true;
    return action != JOB_FAILURE_IGNORED &&
           number_of(pod, FAILURES) >= json_i64_at(j->job, "spec.backoffLimitPerIndex", INT32_MAX);
}

void job_index_count_on(const struct job_run *j, cJSON *annotations, const cJSON *replaced)
{
    struct arena *a = reconcile_arena(j->run);
    int64_t failures = number_of(replaced, FAILURES), ignored = number_of(replaced, IGNORED);

    if (replaced && job_failure_counts(j, replaced))
        failures++;
    else if (replaced)
        ignored++;
    json_set_str(a, annotations, FAILURES, arena_printf(a, "%lld", (long long)failures));
    if (ignored)
        json_set_str(a, annotations, IGNORED, arena_printf(a, "%lld", (long long)ignored));
}

/* --- successPolicy --- */

static bool rule_met(const struct job_run *j, const cJSON *rule)
{
    struct arena *a = reconcile_arena(j->run);
    struct str indexes = json_str_at(rule, "succeededIndexes");
    int64_t count = json_i64_at(rule, "succeededCount", -1), overlap;
    struct job_indexes wanted;

    if (!indexes.p)
        return count >= 0 && job_indexes_total(&j->done) >= count;
    wanted = job_indexes_parse(a, indexes, j->completions);
    overlap = job_indexes_overlap(&wanted, &j->done);
    return wanted.n && (overlap == job_indexes_total(&wanted) || (count >= 0 && overlap >= count));
}

bool job_succeeds_by_policy(const struct job_run *j, struct str *ret_message)
{
    int i = 0;

    if (!j->done.n)
        return false;
    json_each(rule, json_path(j->job, "spec.successPolicy.rules"))
    {
        if (rule_met(j, rule)) {
            *ret_message = arena_printf(reconcile_arena(j->run), "Matched rules at index %d", i);
            return true;
        }
        i++;
    }
    return false;
}
