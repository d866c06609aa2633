/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * What many rooms read in Kubernetes objects, whatever their kind: conditions, whether a pod is
 * over, who controls an object, taints. Nothing here writes. Source: k8s.io/apimachinery
 * pkg/api/meta/conditions.go, k8s.io/api core/v1 PodPhase. */
#pragma once

#include <sublet/json.h>

/* Of a list of conditions (status.conditions); NULL when it has none of this type. */
cJSON *condition_find(const cJSON *conditions, struct str type);
cJSON *condition_get(const cJSON *conditions, const char *type);
bool condition_is_true(const cJSON *conditions, const char *type);

/* Succeeded or Failed: its containers ended and do not start again. */
bool pod_phase_is_final(struct str phase);
bool pod_is_finished(const cJSON *pod);

/* Has `labels` every label of `wanted`, with its value? */
bool labels_cover(const cJSON *wanted, const cJSON *labels);

/* Its controlling ownerReference, or NULL: there is one at most. */
cJSON *owner_controller(const cJSON *object);

/* Of a node's list of taints; NULL when it has none. */
cJSON *taint_find(const cJSON *taints, const char *key, const char *effect);
/* Annotation of a node that is shown as another cluster has it: its uid there. */
#define ANNOTATION_HOST_UID "sublet.dev/host-uid"
