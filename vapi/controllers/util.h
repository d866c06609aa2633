/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by controllers: ownership, batches of pods, values of objects. Internal to
 * vapi/controllers. */
#pragma once

#include <sublet/controller.h>
#include <sublet/object.h>

/* The controllers of an API server itself, which run also with `controllers: external`. */
#define API_CONTROLLERS(X)                                                                         \
    X(PUBLISHED_CONTROLLER)                                                                        \
    X(API_SERVICE_CONTROLLER)                                                                      \
    X(EXTENSION_CONTROLLER)                                                                        \
    X(OWN_ADDRESS_CONTROLLER)                                                                      \
    X(NODE_TAINT_CONTROLLER)                                                                       \
    X(QUOTA_STATUS_CONTROLLER)                                                                     \
    X(DEFAULT_CIDR_CONTROLLER)
/* The controllers; each is defined in its own file. */
#define CONTROLLERS(X)                                                                             \
    X(NAMESPACE_CONTROLLER)                                                                        \
    X(SERVICE_ACCOUNT_CONTROLLER)                                                                  \
    X(ACCOUNT_TOKEN_CONTROLLER)                                                                    \
    X(CERTIFICATE_CONTROLLER)                                                                      \
    X(POD_GC_CONTROLLER)                                                                           \
    X(POLICY_STATUS_CONTROLLER)                                                                    \
    X(SERVICE_CIDR_CONTROLLER)                                                                     \
    X(AUTOSCALER_CONTROLLER)                                                                       \
    X(ROOT_CA_CONTROLLER)                                                                          \
    X(ENDPOINTS_CONTROLLER)                                                                        \
    X(SLICE_MIRROR_CONTROLLER)                                                                     \
    X(DEPLOYMENT_CONTROLLER)                                                                       \
    X(DAEMON_SET_CONTROLLER)                                                                       \
    X(STATEFUL_SET_CONTROLLER)                                                                     \
    X(JOB_CONTROLLER)                                                                              \
    X(CRON_JOB_CONTROLLER)                                                                         \
    X(DISRUPTION_CONTROLLER)                                                                       \
    X(AGGREGATION_CONTROLLER)                                                                      \
    X(CLAIM_PROTECTION_CONTROLLER)                                                                 \
    X(VOLUME_PROTECTION_CONTROLLER)                                                                \
    X(CLASS_PROTECTION_CONTROLLER)                                                                 \
    X(RESOURCE_CLAIM_CONTROLLER)                                                                   \
    X(GARBAGE_COLLECTOR)                                                                           \
    X(REPLICA_SET_CONTROLLER)                                                                      \
    X(REPLICATION_CONTROLLER_CONTROLLER)
#define CONTROLLER_DECLARE(name) extern const struct controller_def name;
API_CONTROLLERS(CONTROLLER_DECLARE)
CONTROLLERS(CONTROLLER_DECLARE)
#undef CONTROLLER_DECLARE

/* Ownership. */
bool metadata_owner_is(const cJSON *object, struct str uid);
/* A reference with controller and blockOwnerDeletion set. */
cJSON *metadata_owner_ref(struct arena *a, const struct resource *r, const cJSON *owner);
/* A copy of an object's ownerReferences, for changes; the same without one owner. */
cJSON *owner_refs_copy(struct arena *a, const cJSON *object);
void owner_refs_drop(cJSON *refs, struct str uid);
void owner_refs_write(struct reconcile *r, const struct resource *res, const cJSON *object,
                      cJSON *refs);

/* Pods. */
/* Ready for at least min_seconds; *ret_wait_s: how long until it may be (0: waiting does not
 * help). */
bool controller_pod_is_available(const cJSON *pod, int64_t min_seconds, int64_t now_s,
                                 int64_t *ret_wait_s);

/* The objects of an owner: those it controls, and those without a controller that its selector
 * matches. The latter are adopted, the former released when the selector no longer matches (by
 * patches; a terminating owner claims nothing). Returns an array of the objects it controls
 * afterwards. */
cJSON *objects_claim(struct reconcile *r, const struct resource *res,
                     const struct resource *owner_res, const cJSON *owner,
                     const struct selector *selector);
/* All objects an owner controls, whatever their labels; nothing is adopted or released. */
cJSON *objects_owned(struct reconcile *r, const struct resource *res, struct str ns,
                     struct str owner_uid);
/* The array's items as a list of pointers, *ret_n of them. */
cJSON **controller_items(struct arena *a, const cJSON *array, size_t *ret_n);
/* A pod from its owner's template, named by generateName "<owner>-". */
cJSON *controller_pod_from_template(struct arena *a, const struct resource *owner_res,
                                    const cJSON *owner, const cJSON *template_);
/* Maps a dependent to its controller of a kind; one without to every owner in its namespace whose
 * selector matches it. */
void controller_map_dependent(struct controller *c, const struct store_event *e, const char *group,
                              const char *plural, struct str kind);

/* Creates pods in growing batches (1, 2, 4, ...), each after the previous one succeeded: a refused
 * template is refused once, not five hundred times. Events go to the owner. done() is the run's
 * next phase. */
struct pod_batch {
    struct reconcile *run;
    const cJSON *owner;
    cJSON *(*make)(void *ctx, size_t i); /* the i-th pod */
    void *ctx;
    size_t wanted;
    reconcile_phase done;
    size_t created, refused; /* the result, in done() */
    size_t issued, size;     /* private */
};
void pods_create(struct pod_batch *b);

/* Sorts active pods by the order in which a controller deletes them; crowd: pods of relatives on
 * the same nodes, n_crowd of them. */
void pods_rank(struct arena *a, cJSON **pods, size_t n, cJSON *const *crowd, size_t n_crowd,
               int64_t now_s);

/* 3, "25%" of total (rounded up or down); otherwise when value is absent or invalid. */
int64_t controller_scaled_value(const cJSON *value, int64_t total, bool up, int64_t otherwise);
/* Ten characters of the safe alphabet over a template's JSON and a count of collisions. */
struct str controller_template_hash(struct arena *a, const cJSON *template_, int64_t collisions);
/* Sets a number of a status, or removes it when it is 0 and not to be kept. True when changed. */
bool controller_status_set(struct arena *a, cJSON *status, const char *key, int64_t value,
                           bool keep_zero);
/* Writes the object's status if it (or an annotation) differs from the version read. */
void controller_status_commit(struct reconcile *r, const struct resource *res, const cJSON *object,
                              const cJSON *as_read);
bool controller_set_str(struct arena *a, cJSON *map, const char *key, struct str value);
