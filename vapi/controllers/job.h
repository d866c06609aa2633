/* SPDX-License-Identifier: Apache-2.0 */
/* One run's view of a job, shared by the Job controller's files. Internal to vapi/controllers. */
#pragma once

#include "util.h"

#define JOB_FINALIZER       "batch.kubernetes.io/job-tracking"
#define JOB_INDEX           "batch.kubernetes.io/job-completion-index"
#define JOB_COUNTED_PER_RUN 500 /* uids in status at a time: about 20 KB */

/* A set of indexes as sorted intervals that neither touch nor overlap. */
struct job_interval {
    int64_t first, last;
};
struct job_indexes {
    struct job_interval *items;
    size_t n;
};
/* Parses "1,3-5,7"; indexes not below limit are dropped, a malformed part ends it. */
struct job_indexes job_indexes_parse(struct arena *a, struct str text, int64_t limit);
bool job_indexes_have(const struct job_indexes *s, int64_t index);
/* The union of s and n values, which need not be sorted. */
struct job_indexes job_indexes_with(struct arena *a, const struct job_indexes *s, int64_t *values,
                                    size_t n);
struct job_indexes job_indexes_merge(struct arena *a, const struct job_indexes *s,
                                     const struct job_indexes *t);
int64_t job_indexes_total(const struct job_indexes *s);
int64_t job_indexes_overlap(const struct job_indexes *s, const struct job_indexes *t);
struct str job_indexes_text(struct arena *a, const struct job_indexes *s);

struct job_run {
    struct reconcile *run;
    const struct resource *res, *pods_res;
    cJSON *job, *as_read, *status;
    int64_t now;
    cJSON **pods; /* all pods it owns */
    size_t n_pods;
    cJSON **active;
    size_t n_active, n_ready, n_terminating;
    /* only_failed: replaced once Failed, not when terminating. */
    bool indexed, suspended, only_failed;
    int64_t completions;                    /* -1: not given */
    int64_t parallelism, succeeded, failed; /* including those not counted yet */
    bool per_index;                         /* failures are limited per index */
    struct job_indexes done, lost;
    /* The last failed pod of each index: kept until its failure count is copied to the
     * replacement. */
    cJSON **held;
    size_t n_held;
    cJSON **release; /* pods whose finalizer is removed once status is written */
    size_t n_release;
    bool finishing; /* has SuccessCriteriaMet or FailureTarget */
    const char *finished_event;
    bool written; /* status needs no further write in this run */
    struct pod_batch batch;
    cJSON *pod; /* template of the pods to create */
    int64_t *to_make;
    cJSON **doomed;
    size_t n_doomed;
    bool still_tracked; /* the finalizer of a doomed pod could not be removed */
};

bool job_pod_tracked(const cJSON *pod);
bool job_pod_failed(const struct job_run *j, const cJSON *pod);
/* Its index; -1 when it has no valid one. */
int64_t job_pod_index(const struct job_run *j, const cJSON *pod);
/* The action of the job's podFailurePolicy for a failed pod; the message names the rule. */
enum job_action {
    JOB_FAILURE_COUNTS,
    JOB_FAILURE_IGNORED,
    JOB_FAILURE_OF_INDEX,
    JOB_FAILURE_OF_JOB
};
enum job_action job_failure_of(const struct job_run *j, const cJSON *pod, struct str *ret_message);
bool job_failure_counts(const struct job_run *j, const cJSON *pod);
bool job_fails_by_policy(const struct job_run *j, struct str *ret_message);
bool job_succeeds_by_policy(const struct job_run *j, struct str *ret_message);
/* Whether this failed pod fails its index. How often the index failed before this pod; the
 * annotations of a pod that replaces another (or none). */
bool job_index_failed(const struct job_run *j, const cJSON *pod);
int64_t job_index_failures(const cJSON *pod);
void job_index_count_on(const struct job_run *j, cJSON *annotations, const cJSON *replaced);
/* When it ended, as far as known. */
int64_t job_pod_ended_s(const cJSON *pod);
void job_pod_untrack(struct reconcile *r, const struct resource *pods, const cJSON *pod);

/* Updates the status from the pods: counts, conditions, and the finalizers to remove afterwards. */
void job_status(struct job_run *j);
/* Creates or deletes pods of an active job. */
void job_manage(struct job_run *j);
