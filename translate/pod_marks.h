/* SPDX-License-Identifier: Apache-2.0
 * room: translate (private)
 *
 * Labels and annotations of a host pod by which queueing systems, schedulers and autoscalers of the
 * host take orders: the admin's, never the tenant's. */
#pragma once

#include "shape.h"

/* pod_autoscaler.c */
void translate_pod_autoscaler_down(struct down *d, cJSON *annotations);
const cJSON *translate_pod_autoscaler_kept(struct arena *a, const cJSON *host_now,
                                           const cJSON *host_wanted);
/* pool_queue.c: its queue, by the pool; and its group. */
void translate_pod_queue_down(struct down *d, cJSON *labels, cJSON *annotations);
/* The metadata without those: whose queue a pod is in never changes after it was created. */
const cJSON *translate_pod_without_queue(struct arena *a, const cJSON *host_wanted);
/* gang.c */
void translate_pod_gang_down(struct down *d, struct str gang, int64_t size, cJSON *labels,
                             cJSON *notes);
/* The same of Kubernetes itself, in a field of its own. */
void translate_pod_scheduling_group_down(struct down *d, struct str gang, cJSON *spec);
/* kind_notes.c: why an annotation by which external-dns makes records may not go down, of any
 * object, although its key is listed; NULL: it may, or is none. */
const char *translate_note_of_dns(const struct translate_tenant *t, struct str key,
                                  struct str value);
