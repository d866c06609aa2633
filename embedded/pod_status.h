/* SPDX-License-Identifier: Apache-2.0 */
/* What a kubelet would report of a pod now, if there were containers: a function of the pod as it
 * is stored and of the time. Nothing is remembered elsewhere, so a restart changes nothing. */
#pragma once

#include "impl.h"

#define FOREVER INT64_MAX

/* Why containers cannot be made yet. */
struct blockage {
    const char
        *reason; /* of the waiting state: "ContainerCreating", ...; NULL: nothing is missing */
    struct str message; /* of it; may be empty */
    const char *event;  /* reason of a Warning, or NULL */
    struct str event_message;
};

struct pod_view {
    const cJSON *pod;
    int64_t now_s;
    struct str host_ip, pod_ip; /* pod_ip empty: none yet */
    struct blockage blockage;
};
/* The status as it should be; *ret_due_s: when to look again (FOREVER: when something changes). */
cJSON *embedded_pod_status_next(struct arena *a, const struct pod_view *v, int64_t *ret_due_s);
/* The status after its containers were stopped. */
cJSON *embedded_pod_status_stopped(struct arena *a, const struct pod_view *v);
/* Is there a container that runs? */
bool embedded_pod_has_running(const cJSON *pod);
/* pod_refs.c: what the pod refers to and is not there. */
void embedded_pod_refs_check(struct reconcile *r, const cJSON *pod, struct blockage *ret);
/* Seconds a stop takes, by the hint; at most the grace period. */
int64_t embedded_pod_stop_seconds(const cJSON *pod);
