/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what controllers report of Jobs, in upstream's words: lists of indexes, and statuses.
 * Must never refuse what was stored before. Source: pkg/apis/batch/validation,
 * pkg/registry/batch/job/strategy.go. */
#include "job.h"

#include <sublet/encode.h>

/* ---- indexes: "0-2,5" ---- */

static bool read_index(struct str text, int64_t *ret)
{
    bool minus = text.n && text.p[0] == '-', sign = minus || (text.n && text.p[0] == '+');
    uint64_t value;

    if (!str_to_u64(sign ? str_from(text, 1) : text, &value) || value > INT64_MAX)
        return false;
    *ret = minus ? -(int64_t)value : (int64_t)value;
    return true;
}

static const char *not_growing(struct arena *a, int64_t previous, int64_t current)
{
    return problem_printf(a, "non-increasing order, previous: %lld, current: %lld",
                          (long long)previous, (long long)current);
}

/* One end of an interval; NULL when it is right. */
static const char *index_problem(struct arena *a, struct str text, int64_t completions,
                                 int64_t *ret)
{
    if (!read_index(text, ret))
        return problem_printf(a, "cannot convert string to integer for index: %.*s",
                              STR_F(go_quote(a, text)));
    if (*ret >= completions)
        return problem_printf(a, "too large index: %.*s", STR_F(go_quote(a, text)));
    return NULL;
}

static const char *interval_problem(struct arena *a, struct str text, int64_t completions,
                                    int64_t *first, int64_t *last)
{
    struct str rest = text, low = str_cut(&rest, '-');
    const char *why;

    if (rest.p && str_find(rest, '-') < rest.n)
        return problem_printf(
            a,
            "the fragment %.*s violates the requirement that an index interval can "
            "have at most two parts separated by '-'",
            STR_F(go_quote(a, text)));
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
        field_invalid_printf(e, p, list, "error parsing %s: %s", name, why);
    return why ? 0 : total;
}

/* ---- status of jobs: what is true of a change, one bit each ---- */

enum {
    COMPLETE = 1 << 0,
    FAILED = 1 << 1,
    FINISHED = COMPLETE | FAILED, /* any of them */
    TARGET = 1 << 2,              /* FailureTarget */
    MET = 1 << 3,                 /* SuccessCriteriaMet */
    STARTED = 1 << 4,
    ENDED = 1 << 5, /* completionTime */
    ENDS_EARLY = 1 << 6,
    ACTIVE = 1 << 7,
    UNCOUNTED = 1 << 8,
    TERMINATING = 1 << 9,
    MORE_READY = 1 << 10,
    COMPLETED_INDEXES = 1 << 11,
    FAILED_INDEXES = 1 << 12,
    /* of the spec */
    INDEXED = 1 << 13,
    PER_INDEX = 1 << 14,
    SUCCESS_POLICY = 1 << 15,
    SUSPENDED = 1 << 16,
    SCALABLE = 1 << 17, /* indexed, of as many completions as pods at a time */
    NOTHING_TO_DO = 1 << 18,
    /* of what was before */
    WAS_COMPLETE = 1 << 19,
    WAS_FAILED = 1 << 20,
    WAS_TARGET = 1 << 21,
    WAS_MET = 1 << 22,
    WAS_STARTED = 1 << 23,
    WAS_ENDED = 1 << 24,
    FEWER_FAILED = 1 << 25,
    FEWER_SUCCEEDED = 1 << 26,
    RESUMES = 1 << 27,
};

/* What changed. Most rules judge nothing else: what was accepted once stays. */
enum {
    NEW_COMPLETE = 1 << 0,
    NEW_FAILED = 1 << 1,
    NEW_FINISHED = 1 << 2,
    NEW_TARGET = 1 << 3,
    NEW_MET = 1 << 4,
    NEW_COMPLETED_INDEXES = 1 << 5,
    NEW_FAILED_INDEXES = 1 << 6,
    NEW_ACTIVE = 1 << 7,
    NEW_START = 1 << 8,
    NEW_END = 1 << 9,
    NEW_UNCOUNTED = 1 << 10,
    NEW_READY = 1 << 11,
    NEW_TERMINATING = 1 << 12,
    ALWAYS = 1 << 13,
};

enum shown { BARE, VALUE, COUNTER, MISSING }; /* a counter that is not there is 0 */

/* Wrong where one of `when` changed, all of `with` and any of `among` are true, and none of
 * `without`. */
struct status_rule {
    unsigned when, with, among, without;
    const char *field;
    enum shown shown;
    const char *words;
};

static const struct status_rule CONDITIONS[] = {
    {NEW_COMPLETE | NEW_FAILED, COMPLETE | FAILED, 0, 0, "conditions", BARE,
     "cannot set Complete=True and Failed=true conditions"},
    {NEW_COMPLETE | NEW_TARGET, COMPLETE | TARGET, 0, 0, "conditions", BARE,
     "cannot set Complete=True and FailureTarget=true conditions"},
    {NEW_COMPLETE | NEW_END, ENDED, 0, COMPLETE, "completionTime", VALUE,
     "cannot set completionTime when there is no Complete=True condition"},
    {NEW_COMPLETE | NEW_END, COMPLETE, 0, ENDED, "completionTime", MISSING,
     "completionTime is required for Complete jobs"},
    {NEW_START | NEW_END, ENDS_EARLY, 0, 0, "completionTime", VALUE,
     "must be equal to or after `startTime`"},
    {NEW_FAILED | NEW_FAILED_INDEXES, FAILED, 0, TARGET, "conditions", BARE,
     "cannot set Failed=True condition without the FailureTarget=true condition"},
    {NEW_COMPLETE | NEW_MET, COMPLETE, 0, MET, "conditions", BARE,
     "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
    {NEW_FINISHED | NEW_ACTIVE, ACTIVE, FINISHED, 0, "active", VALUE,
     "active>0 is invalid for finished job"},
    {NEW_FINISHED | NEW_START, 0, FINISHED, STARTED | NOTHING_TO_DO, "startTime", MISSING,
     "startTime is required for finished job"},
    {NEW_FINISHED | NEW_UNCOUNTED, UNCOUNTED, FINISHED, 0, "uncountedTerminatedPods", VALUE,
     "must be empty for finished job"},
};

static const struct status_rule INDEXES[] = {
    {NEW_COMPLETED_INDEXES, COMPLETED_INDEXES, 0, INDEXED, "completedIndexes", VALUE,
     "cannot set non-empty completedIndexes when non-indexed completion mode"},
    {NEW_FAILED_INDEXES, FAILED_INDEXES, 0, PER_INDEX, "failedIndexes", VALUE,
     "cannot set non-null failedIndexes when backoffLimitPerIndex is null"},
};

static const struct status_rule COUNTS_AND_CHANGES[] = {
    {NEW_FINISHED | NEW_TERMINATING, TERMINATING, FINISHED, 0, "terminating", VALUE,
     "terminating>0 is invalid for finished job"},
    {NEW_READY | NEW_ACTIVE, MORE_READY, 0, 0, "ready", VALUE,
     "cannot set more ready pods than active"},
    {ALWAYS, MET | FAILED, 0, 0, "conditions", BARE,
     "cannot set SuccessCriteriaMet=True and Failed=true conditions"},
    {ALWAYS, MET | TARGET, 0, 0, "conditions", BARE,
     "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"},
    {ALWAYS, SUCCESS_POLICY | COMPLETE, 0, MET, "conditions", BARE,
     "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
    {ALWAYS, WAS_FAILED, 0, FAILED, "conditions", BARE,
     "cannot disable the terminal Failed=True condition"},
    {ALWAYS, WAS_COMPLETE, 0, COMPLETE, "conditions", BARE,
     "cannot disable the terminal Complete=True condition"},
    {ALWAYS, WAS_TARGET, 0, TARGET, "conditions", BARE,
     "cannot disable the terminal FailureTarget=True condition"},
    {ALWAYS, FEWER_FAILED, 0, 0, "failed", COUNTER, "cannot decrease the failed counter"},
    {ALWAYS, FEWER_SUCCEEDED, 0, SCALABLE, "succeeded", COUNTER,
     "cannot decrease the succeeded counter"},
    {NEW_END, WAS_ENDED | ENDED, 0, 0, "completionTime", VALUE, IMMUTABLE},
    {NEW_START, WAS_STARTED, 0, RESUMES | SUSPENDED, "startTime", VALUE,
     "field is immutable for unsuspended job once set"},
    {ALWAYS, WAS_MET, 0, MET, "conditions", BARE,
     "cannot disable the SuccessCriteriaMet=True condition"},
    {ALWAYS, WAS_COMPLETE | MET, 0, WAS_MET, "conditions", BARE,
     "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"},
};

struct change {
    struct field_errors *e;
    const cJSON *job, *old, *status, *before;
    unsigned facts, changes;
};

/* ---- looking ---- */

/* A list may name a type twice: one of them is enough. */
static bool has_condition(const cJSON *job, const char *type, const char *status)
{
    json_each(c, json_path(job, "status.conditions"))
    {
        if (str_eqc(json_str(json_get(c, "type")), type) &&
            str_eqc(json_str(json_get(c, "status")), status))
            return true;
    }
    return false;
}

bool kinds_job_condition_true(const cJSON *job, const char *type)
{
    return has_condition(job, type, "True");
}

static void note(struct change *c, bool is, unsigned fact)
{
    c->facts |= is ? fact : 0;
}

static void note_conditions(struct change *c)
{
    static const struct {
        const char *type;
        unsigned now, before, changed;
    } types[] = {
        {"Complete", COMPLETE, WAS_COMPLETE, NEW_COMPLETE},
        {"Failed", FAILED, WAS_FAILED, NEW_FAILED},
        {"FailureTarget", TARGET, WAS_TARGET, NEW_TARGET},
        {"SuccessCriteriaMet", MET, WAS_MET, NEW_MET},
    };

    for (size_t i = 0; i < COUNT(types); i++) {
        bool now = kinds_job_condition_true(c->job, types[i].type);
        bool before = kinds_job_condition_true(c->old, types[i].type);

        note(c, now, types[i].now);
        note(c, before, types[i].before);
        c->changes |= now != before ? types[i].changed : 0;
    }
    if (!(c->facts & FINISHED) != !(c->facts & (WAS_COMPLETE | WAS_FAILED)))
        c->changes |= NEW_FINISHED;
    note(c,
         kinds_job_condition_true(c->old, "Suspended") &&
             has_condition(c->job, "Suspended", "False"),
         RESUMES);
}

/* Times have one form here: the order of the strings is that of the times. */
static void note_status(struct change *c)
{
    const cJSON *start = kinds_given(c->status, "startTime"),
                *end = kinds_given(c->status, "completionTime");
    const cJSON *ready = kinds_given(c->status, "ready");
    int64_t active = json_i64_at(c->status, "active", 0);

    note(c, start, STARTED);
    note(c, end, ENDED);
    note(c, start && end && str_cmp(json_str(end), json_str(start)) < 0, ENDS_EARLY);
    note(c, active > 0, ACTIVE);
    note(c, ready && json_i64_at(c->status, "ready", 0) > active, MORE_READY);
    note(c, json_i64_at(c->status, "terminating", 0) > 0, TERMINATING);
    note(c,
         json_count(json_path(c->status, "uncountedTerminatedPods.succeeded")) +
             json_count(json_path(c->status, "uncountedTerminatedPods.failed")),
         UNCOUNTED);
    note(c, json_str(json_get(c->status, "completedIndexes")).n, COMPLETED_INDEXES);
    note(c, kinds_given(c->status, "failedIndexes"), FAILED_INDEXES);
    note(c, kinds_given(c->before, "startTime"), WAS_STARTED);
    note(c, kinds_given(c->before, "completionTime"), WAS_ENDED);
    note(c, json_i64_at(c->status, "failed", 0) < json_i64_at(c->before, "failed", 0),
         FEWER_FAILED);
    note(c, json_i64_at(c->status, "succeeded", 0) < json_i64_at(c->before, "succeeded", 0),
         FEWER_SUCCEEDED);
}

static void note_spec(struct change *c)
{
    const cJSON *spec = json_get(c->job, "spec"), *completions = kinds_given(spec, "completions");
    bool indexed = str_eqc(json_str(json_get(spec, "completionMode")), "Indexed");
    bool suspended = json_true(json_get(spec, "suspend"));

    note(c, indexed, INDEXED);
    note(c, indexed && kinds_same_value(completions, json_get(spec, "parallelism")), SCALABLE);
    note(c, kinds_given(spec, "backoffLimitPerIndex"), PER_INDEX);
    note(c, kinds_given(spec, "successPolicy"), SUCCESS_POLICY);
    note(c, suspended, SUSPENDED);
    note(c, suspended && completions && !json_i64_at(spec, "completions", 0), NOTHING_TO_DO);
}

static void note_changes(struct change *c)
{
    static const struct {
        const char *field;
        unsigned changed;
    } fields[] = {
        {"completedIndexes", NEW_COMPLETED_INDEXES},
        {"failedIndexes", NEW_FAILED_INDEXES},
        {"active", NEW_ACTIVE},
        {"startTime", NEW_START},
        {"completionTime", NEW_END},
        {"uncountedTerminatedPods", NEW_UNCOUNTED},
        {"ready", NEW_READY},
        {"terminating", NEW_TERMINATING},
    };

    c->changes |= ALWAYS;
    for (size_t i = 0; i < COUNT(fields); i++) {
        if (!kinds_same_value(json_get(c->status, fields[i].field),
                              json_get(c->before, fields[i].field)))
            c->changes |= fields[i].changed;
    }
}

/* ---- judging ---- */

/* Pods are counted once, in one of the two lists. */
static void check_uncounted(struct field_errors *e, const cJSON *lists)
{
    static const char *const names[] = {"succeeded", "failed"};
    const struct field_path *p = FIELD(&KINDS_STATUS, "uncountedTerminatedPods");
    struct names seen = {.arena = e->arena};

    for (size_t k = 0; k < COUNT(names); k++) {
        member_each(uid, at, p, lists, names[k])
        {
            if (!json_str(uid).n)
                field_invalid(e, at, uid, "must not be empty");
            else if (!names_add(&seen, json_str(uid), uid))
                field_duplicate(e, at, uid);
        }
    }
}

/* Upstream's own type has no names of JSON. */
static cJSON *uncounted_shown(struct arena *a, const cJSON *lists)
{
    static const char *const names[][2] = {{"Succeeded", "succeeded"}, {"Failed", "failed"}};
    cJSON *shown = json_new_object(a);

    for (size_t i = 0; i < COUNT(names); i++) {
        const cJSON *list = json_get(lists, names[i][1]);

        json_set(a, shown, names[i][0], json_count(list) ? json_copy(a, list) : json_new_null(a));
    }
    return shown;
}

static void check_rules(const struct change *c, const struct status_rule *rules, size_t n)
{
    for (const struct status_rule *r = rules; r < rules + n; r++) {
        const struct field_path *p = FIELD(&KINDS_STATUS, r->field);
        const cJSON *value = json_get(c->status, r->field);

        if (!(c->changes & r->when) || (c->facts & r->with) != r->with ||
            (r->among && !(c->facts & r->among)) || c->facts & r->without)
            continue;
        if (r->shown == BARE)
            field_invalid_bare(c->e, p, r->words);
        else if (r->shown == MISSING)
            field_required(c->e, p, r->words);
        else if (!value)
            field_invalid(c->e, p, r->shown == COUNTER ? json_new_i64(c->e->arena, 0) : NULL,
                          r->words);
        else
            field_invalid(c->e, p,
                          r->with & UNCOUNTED ? uncounted_shown(c->e->arena, value) : value,
                          r->words);
    }
}

static void check_forms(const struct change *c)
{
    static const struct {
        const char *field;
        unsigned changed, with;
    } lists[] = {{"completedIndexes", NEW_COMPLETED_INDEXES, 0},
                 {"failedIndexes", NEW_FAILED_INDEXES, PER_INDEX}};

    if (!kinds_given(c->job, "spec.completions"))
        return;
    for (size_t i = 0; i < COUNT(lists); i++) {
        if (c->changes & lists[i].changed && (c->facts & lists[i].with) == lists[i].with)
            check_indexes(c->e, FIELD(&KINDS_STATUS, lists[i].field),
                          json_get(c->status, lists[i].field), lists[i].field,
                          json_i64_at(c->job, "spec.completions", 0));
    }
}

struct interval {
    struct str rest;
    int64_t first, last;
};

#define MOST_UNREADABLE 64

/* The next interval that can be read; false at the end. What cannot was reported already: a list of
 * nothing else is left. */
static bool interval_next(struct arena *a, struct interval *i, int64_t completions)
{
    for (size_t n = 0; i->rest.p && n < MOST_UNREADABLE; n++) {
        if (!interval_problem(a, str_cut(&i->rest, ','), completions, &i->first, &i->last))
            return true;
    }
    return false;
}

/* No index has both failed and completed. */
static void check_overlap(const struct change *c)
{
    const cJSON *list = json_get(c->status, "failedIndexes");
    struct interval failed = {.rest = json_str(list)};
    struct interval done = {.rest = json_str(json_get(c->status, "completedIndexes"))};
    int64_t completions = json_i64_at(c->job, "spec.completions", 0);
    struct arena *a = c->e->arena;
    bool more = failed.rest.n && done.rest.n && kinds_given(c->job, "spec.completions") &&
                c->changes & (NEW_COMPLETED_INDEXES | NEW_FAILED_INDEXES) &&
                interval_next(a, &done, completions) && interval_next(a, &failed, completions);

    while (more && (done.first > failed.last || failed.first > done.last))
        more = interval_next(a, done.first <= failed.first ? &done : &failed, completions);
    if (!more)
        return;
    field_invalid_printf(c->e, FIELD(&KINDS_STATUS, "failedIndexes"), list,
                         "failedIndexes and completedIndexes overlap at index: %lld",
                         (long long)(done.first > failed.first ? done.first : failed.first));
}

void validate_job_status(struct field_errors *e, const cJSON *job, const cJSON *old)
{
    static const char *const numbers[] = {"active", "succeeded",   "failed",
                                          "ready",  "terminating", NULL};
    struct change c = {.e = e,
                       .job = job,
                       .old = old,
                       .status = json_get(job, "status"),
                       .before = json_get(old, "status")};

    note_conditions(&c);
    note_status(&c);
    note_spec(&c);
    note_changes(&c);
    check_all_nonnegative(e, &KINDS_STATUS, c.status, numbers);
    check_uncounted(e, kinds_given(c.status, "uncountedTerminatedPods"));
    check_rules(&c, CONDITIONS, COUNT(CONDITIONS));
    check_forms(&c);
    check_rules(&c, INDEXES, COUNT(INDEXES));
    check_overlap(&c);
    check_rules(&c, COUNTS_AND_CHANGES, COUNT(COUNTS_AND_CHANGES));
}
