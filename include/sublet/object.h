/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * Access to Kubernetes objects, whatever their kind: metadata, conditions, the state of pods,
 * owners, taints. Source: k8s.io/apimachinery pkg/api/meta/conditions.go, k8s.io/api core/v1
 * PodPhase. */
#pragma once

#include <sublet/json.h>

struct str meta_name(const cJSON *object);
struct str meta_ns(const cJSON *object); /* empty for a cluster-scoped object */
struct str meta_uid(const cJSON *object);
struct str meta_label(const cJSON *object,
                      const char *key); /* empty when absent, as are annotations */
struct str meta_annotation(const cJSON *object, const char *key);
int64_t meta_created_s(const cJSON *object);                  /* 0 when unknown */
int64_t object_time_s(const cJSON *object, const char *path); /* 0 when absent or no time */
bool object_is_terminating(const cJSON *object);              /* has a deletionTimestamp */
bool meta_is_terminating(const cJSON *metadata);              /* the same of its metadata */
/* May a stored object be terminating? Most are not: the word in its bytes decides whether building
 * a tree is worth it. */
bool object_may_be_terminating(struct str bytes);
bool finalizer_has(const cJSON *object, const char *name);

/* Of a list of conditions (status.conditions); NULL when it has none of this type. */
cJSON *condition_find(const cJSON *conditions, struct str type);
cJSON *condition_get(const cJSON *conditions, const char *type);
bool condition_is_true(const cJSON *conditions, const char *type);
/* Of an object's status.conditions. */
const cJSON *condition_of(const cJSON *object, const char *type);
/* Changes nothing and returns false when type already has this status, reason and message;
 * lastTransitionTime moves only with the status. */
bool condition_set(struct arena *a, cJSON *object, const char *type, const char *status,
                   const char *reason, struct str message, int64_t now_s);
/* The condition of this type in an object's status.conditions, added when there is none. */
cJSON *condition_ensure(struct arena *a, cJSON *object, const char *type);
bool condition_remove(cJSON *object, const char *type);
/* A condition whose last transition was then. */
cJSON *condition_new(struct arena *a, const char *type, const char *status, const char *reason,
                     struct str message, struct str since);

/* Succeeded or Failed: its containers ended and do not start again. */
bool pod_phase_is_final(struct str phase);
bool pod_is_finished(const cJSON *pod);
bool pod_is_active(const cJSON *pod); /* neither finished nor terminating */
bool pod_is_ready(const cJSON *pod);
/* Of an init container: it stays beside the containers after it (restartPolicy Always). */
bool container_is_sidecar(const cJSON *container);

/* Has `labels` every label of `wanted`, with its value? */
bool labels_cover(const cJSON *wanted, const cJSON *labels);

/* A reference to an object as an owner, neither controlling nor blocking its deletion. */
cJSON *owner_reference(struct arena *a, struct str api_version, struct str kind,
                       const cJSON *object);
/* Makes it the only owner of an object; NULL changes nothing. */
void owner_set(struct arena *a, cJSON *object, cJSON *reference);
/* Its controlling ownerReference, or NULL: there is one at most. */
cJSON *owner_controller(const cJSON *object);

/* The lists of containers of a pod's spec: init, app and ephemeral ones. */
extern const char *const POD_CONTAINER_LISTS[3];

/* Does the toleration cover the taint? The first of a list that does, or NULL. Source: k8s.io/api
 * core/v1 toleration.go. */
bool toleration_covers(const cJSON *toleration, const cJSON *taint);
cJSON *toleration_find(const cJSON *tolerations, const cJSON *taint);

/* Of a node's list of taints; NULL when it has none. */
cJSON *taint_find(const cJSON *taints, const char *key, const char *effect);
/* Annotation of a node that is shown from another cluster: its uid there. */
#define ANNOTATION_HOST_UID "sublet.dev/host-uid"
