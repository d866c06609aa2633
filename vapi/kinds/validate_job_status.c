/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what controllers report of Jobs, in upstream's words: lists of indexes, and statuses.
 * Must never refuse what was stored before. Source: pkg/apis/batch/validation,
 * pkg/registry/batch/job/strategy.go. */
#include "validate.h"

#include <sublet/encode.h>

static const struct field_path STATUS = {.name = "status"};

/* ---- indexes: "0-2,5" ---- */

static bool read_index(struct str text, int64_t *ret)
{
    bool minus = text.n && text.p[0] == '-', sign = minus || (text.n && text.p[0] == '+');
    uint64_t value;

    if (!str_to_u64(sign ? str_from(text, 1) : text, &value) || value > INT32_MAX)
        return false;
    *ret = minus ? -(int64_t)value : (int64_t)value;
    return true;
}

static const char *not_growing(struct arena *a, int64_t previous, int64_t current)
{
    return arena_printf(a, "non-increasing order, previous: %lld, current: %lld",
                        (long long)previous, (long long)current)
        .p;
}

/* One end of an interval; NULL when it is right. */
static const char *index_problem(struct arena *a, struct str text, int64_t completions,
                                 int64_t *ret)
{
    if (!read_index(text, ret))
        return arena_printf(a, "cannot convert string to integer for index: %.*s",
                            STR_F(go_quote(a, text)))
            .p;
    if (*ret >= completions)
        return arena_printf(a, "too large index: %.*s", STR_F(go_quote(a, text))).p;
    return NULL;
}

static const char *interval_problem(struct arena *a, struct str text, int64_t completions,
                                    int64_t *first, int64_t *last)
{
    struct str rest = text, low = str_cut(&rest, '-');
    const char *why;

    if (rest.p && str_find(rest, '-') < rest.n)
        return arena_printf(a,
                            "the fragment %.*s violates the requirement that an index interval can "
                            "have at most two parts separated by '-'",
                            STR_F(go_quote(a, text)))
            .p;
    why = index_problem(a, low, completions, first);
    *last = *first;
    if (why || !rest.p)
        return why;
    why = index_problem(a, rest, completions, last);
    return why || *first < *last ? why : not_growing(a, *first, *last);
}

int64_t check_indexes(struct field_errors *e, const struct field_path *p, const cJSON *list,
                      const char *name, int64_t completions)
{
    struct str rest = json_str(list);
    int64_t first = 0, last = 0, before = -1, total = 0;
    const char *why = NULL;

    if (!rest.n)
        return 0;
    do {
        why = interval_problem(e->arena, str_cut(&rest, ','), completions, &first, &last);
        if (!why && before >= first && before >= 0)
            why = not_growing(e->arena, before, first);
        before = last;
        total += last - first + 1;
    } while (rest.p && !why);
    if (why)
        field_invalid(e, p, list, arena_printf(e->arena, "error parsing %s: %s", name, why).p);
    return why ? 0 : total;
}

/* ---- status of jobs ---- */

bool job_condition_true(const cJSON *job, const char *type)
{
    return condition_is_true(json_path(job, "status.conditions"), type);
}

static void check_finished(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    const struct field_path *p = FIELD(&STATUS, "conditions");
    static const char *const terminal[] = {"Failed", "Complete", "FailureTarget"};

    if (job_condition_true(job, "Complete") && job_condition_true(job, "Failed"))
        field_invalid_bare(e, p, "cannot set Complete=True and Failed=true conditions");
    for (size_t i = 0; i < COUNT(terminal); i++) {
        if (job_condition_true(old, terminal[i]) && !job_condition_true(job, terminal[i]))
            field_invalid_bare(
                e, p,
                arena_printf(e->arena, "cannot disable the terminal %s=True condition", terminal[i])
                    .p);
    }
}

static void check_status_indexes(struct field_errors *e, const cJSON *job, const cJSON *before)
{
    static const char *const names[] = {"completedIndexes", "failedIndexes"};
    const cJSON *status = json_get(job, "status");
    const cJSON *completions = given(job, "spec.completions");

    for (size_t i = 0; i < COUNT(names); i++) {
        const cJSON *list = json_get(status, names[i]);

        if (completions && !same_value(list, json_get(before, names[i])))
            check_indexes(e, FIELD(&STATUS, names[i]), list, names[i],
                          json_i64_at(job, "spec.completions", 0));
    }
}

/* What is wrong with changes only: others were accepted once. */
static void check_counts(struct field_errors *e, const cJSON *job, const cJSON *before)
{
    const cJSON *status = json_get(job, "status"), *ended = given(status, "completionTime");

    if (ended && !same_value(ended, json_get(before, "completionTime")) &&
        !job_condition_true(job, "Complete"))
        field_invalid(e, FIELD(&STATUS, "completionTime"), ended,
                      "cannot set completionTime when there is no Complete=True condition");
    if (given(status, "ready") &&
        json_i64_at(status, "ready", 0) > json_i64_at(status, "active", 0) &&
        (!same_value(json_get(status, "ready"), json_get(before, "ready")) ||
         !same_value(json_get(status, "active"), json_get(before, "active"))))
        field_invalid(e, FIELD(&STATUS, "ready"), json_get(status, "ready"),
                      "cannot set more ready pods than active");
}

/* Lists of indexes are of jobs that have them. */
static void check_indexes_allowed(struct field_errors *e, const cJSON *job, const cJSON *before)
{
    const cJSON *spec = json_get(job, "spec"), *status = json_get(job, "status");
    const cJSON *completed = given(status, "completedIndexes");
    const cJSON *failed = given(status, "failedIndexes");

    if (json_str(completed).n && !same_value(completed, given(before, "completedIndexes")) &&
        !str_eqc(json_str(json_get(spec, "completionMode")), "Indexed"))
        field_invalid(e, FIELD(&STATUS, "completedIndexes"), completed,
                      "cannot set non-empty completedIndexes when non-indexed completion mode");
    if (failed && !same_value(failed, given(before, "failedIndexes")) &&
        !given(spec, "backoffLimitPerIndex"))
        field_invalid(e, FIELD(&STATUS, "failedIndexes"), failed,
                      "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
}

/* Times are texts of one form here: their order is that of the times. */
static void check_end(struct field_errors *e, const cJSON *status, const cJSON *before)
{
    const cJSON *start = given(status, "startTime"), *end = given(status, "completionTime");

    if (start && end && str_cmp(json_str(end), json_str(start)) < 0 &&
        (!same_value(start, given(before, "startTime")) ||
         !same_value(end, given(before, "completionTime"))))
        field_invalid(e, FIELD(&STATUS, "completionTime"), end,
                      "must be equal to or after `startTime`");
}

/* A job starts once, and again when it was suspended. */
static void check_start(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    const cJSON *now = json_path(job, "status.startTime");
    const cJSON *before = given(old, "status.startTime");
    bool resumes = job_condition_true(old, "Suspended") && !job_condition_true(job, "Suspended");

    if (before && !same_value(now, before) && !resumes &&
        !json_true(json_path(job, "spec.suspend")))
        field_invalid(e, FIELD(&STATUS, "startTime"), now ? now : json_new_null(e->arena),
                      "field is immutable for unsuspended job once set");
}

/* Pods are counted once, in one of the two lists. */
static void check_uncounted(struct field_errors *e, const cJSON *lists)
{
    static const char *const names[] = {"succeeded", "failed"};
    const struct field_path *p = FIELD(&STATUS, "uncountedTerminatedPods");
    struct names seen = {.arena = e->arena};

    for (size_t k = 0; k < COUNT(names); k++) {
        const struct field_path *list = FIELD(p, names[k]);
        size_t i = 0;

        json_each(uid, json_get(lists, names[k]))
        {
            const struct field_path *at = FIELD_INDEX(list, i++);

            if (!json_str(uid).n)
                field_invalid(e, at, uid, "must not be empty");
            else if (!names_add(&seen, json_str(uid), uid))
                field_duplicate(e, at, uid);
        }
    }
}

void validate_job_status(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    static const char *const numbers[] = {"active", "succeeded",   "failed",
                                          "ready",  "terminating", NULL};
    const cJSON *status = json_get(job, "status"), *before = json_get(old, "status");

    check_all_nonnegative(e, &STATUS, status, numbers);
    check_uncounted(e, given(status, "uncountedTerminatedPods"));
    check_finished(e, job, old);
    check_status_indexes(e, job, before);
    check_counts(e, job, before);
    check_end(e, status, before);
    check_indexes_allowed(e, job, before);
    check_start(e, job, old);
    if (json_i64_at(status, "failed", 0) < json_i64_at(before, "failed", 0))
        field_invalid(e, FIELD(&STATUS, "failed"), json_get(status, "failed"),
                      "cannot decrease the failed counter");
    if (json_i64_at(status, "succeeded", 0) < json_i64_at(before, "succeeded", 0))
        field_invalid(e, FIELD(&STATUS, "succeeded"), json_get(status, "succeeded"),
                      "cannot decrease the succeeded counter");
    if (json_get(status, "completionTime") && json_get(before, "completionTime"))
        check_immutable(e, FIELD(&STATUS, "completionTime"), json_get(status, "completionTime"),
                        json_get(before, "completionTime"));
}
