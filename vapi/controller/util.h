/* SPDX-License-Identifier: Apache-2.0 */
/* What controllers share: conditions, ownership, the state of pods. Internal to vapi/controller. */
#pragma once

#include <sublet/controller.h>

/* The controllers; each is defined in its own file. */
#define CONTROLLERS(X)                                                                             \
    X(NAMESPACE_CONTROLLER)                                                                        \
    X(SERVICE_ACCOUNT_CONTROLLER)                                                                  \
    X(ROOT_CA_CONTROLLER)                                                                          \
    X(DEPLOYMENT_CONTROLLER)                                                                       \
    X(GARBAGE_COLLECTOR)                                                                           \
    X(REPLICA_SET_CONTROLLER)                                                                      \
    X(REPLICATION_CONTROLLER_CONTROLLER)
#define CONTROLLER_DECLARE(name) extern const struct controller_def name;
CONTROLLERS(CONTROLLER_DECLARE)
#undef CONTROLLER_DECLARE

/* Conditions of status.conditions (or of any such list). Changes nothing and returns false when
 * type already has this status, reason and message; lastTransitionTime moves only with the status.
 */
cJSON *condition_get(const cJSON *conditions, const char *type);
bool condition_is_true(const cJSON *conditions, const char *type);
bool condition_set(struct arena *a, cJSON *object, const char *type, const char *status,
                   const char *reason, struct str message, int64_t now_s);
bool condition_remove(cJSON *object, const char *type);

/* Ownership. */
cJSON *owner_controller(const cJSON *object); /* its controlling ownerReference, or NULL */
bool owner_is(const cJSON *object, struct str uid);
cJSON *owner_ref(struct arena *a, const struct resource *r,
                 const cJSON *owner); /* controller, blocking */

/* Pods. */
bool pod_is_terminating(const cJSON *pod);
bool pod_is_finished(const cJSON *pod); /* phase Succeeded or Failed */
bool pod_is_active(const cJSON *pod);   /* neither */
bool pod_is_ready(const cJSON *pod);
/* Ready for at least min_seconds; *ret_wait_s: how long until it may be (0: not by waiting). */
bool pod_is_available(const cJSON *pod, int64_t min_seconds, int64_t now_s, int64_t *ret_wait_s);

/* The pods of an owner: those it controls, and those without a controller that its selector
 * matches. The latter are adopted, the former released when the selector no longer matches (patches
 * are issued; nothing is claimed by an owner that is being deleted). Returns an array of what it
 * controls after that. */
cJSON *pods_claim(struct reconcile *r, const struct resource *owner_res, const cJSON *owner,
                  const struct selector *selector);
/* A pod as its owner's template says, named by generateName "<owner>-". */
cJSON *pod_from_template(struct arena *a, const struct resource *owner_res, const cJSON *owner,
                         const cJSON *template_);
/* Maps a pod to its controller of a kind; a pod without one to every owner in its namespace
 * (source's business: the owners' selectors decide when they run). */
void map_pod_to_owner(struct controller *c, const struct store_event *e, const char *group,
                      const char *plural, struct str kind);

struct str meta_name(const cJSON *object);
struct str meta_ns(const cJSON *object);
struct str meta_uid(const cJSON *object);
int64_t meta_created_s(const cJSON *object); /* 0 when unknown */
