/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/controllers (private)
 *
 * The arithmetic of autoscalers: replicas from what pods use, and how fast a target may follow.
 * Neither reads the store. Source: pkg/controller/podautoscaler of Kubernetes 1.36, with the
 * defaults of kube-controller-manager. */
#pragma once

#include <sublet/controller.h>

/* --- autoscaler_usage.c --- */
struct hpa_usage {
    const cJSON *pods;    /* that the target's selector selects: array */
    const cJSON *metrics; /* PodMetrics of the same: array */
    const cJSON *metric;  /* of spec.metrics: type Resource or ContainerResource */
    const cJSON *hpa;     /* for its tolerances */
    int64_t current;      /* replicas of the target */
    int64_t now_s;
};
struct hpa_proposal {
    int64_t replicas;
    struct str name; /* "cpu resource utilization (percentage of request)" */
    cJSON *status;   /* an item of status.currentMetrics */
};
/* False: `why` says why there is none, in upstream's words. */
bool hpa_propose(struct arena *a, const struct hpa_usage *u, struct hpa_proposal *ret,
                 struct str *ret_why);
struct str hpa_metric_name(const cJSON *metric); /* "cpu" */

/* --- autoscaler_history.c --- */
/* What was recommended and done for one autoscaler, in memory: a restart begins anew. */
struct hpa_history;
struct hpa_histories;
struct hpa_histories *hpa_histories_new(void);
struct hpa_histories *hpa_histories_free(struct hpa_histories *all);
/* Created with `current` as its first recommendation. */
struct hpa_history *hpa_history_get(struct hpa_histories *all, struct str key, int64_t current,
                                    int64_t now_s);
void hpa_history_forget(struct hpa_histories *all, struct str key);
struct hpa_limits {
    const char *able_reason, *able_message; /* condition AbleToScale */
    bool limited;                           /* condition ScalingLimited */
    const char *reason, *message;
};
/* What of `wanted` the bounds, the behavior and recent recommendations permit now. */
int64_t hpa_history_limit(struct hpa_history *h, const cJSON *hpa, int64_t current, int64_t wanted,
                          int64_t now_s, struct hpa_limits *ret);
/* The target was scaled. */
void hpa_history_scaled(struct hpa_history *h, const cJSON *hpa, int64_t from, int64_t to,
                        int64_t now_s);
