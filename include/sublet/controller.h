/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/controllers
 *
 * The frame of every controller: the resources it watches, and one function that, for one key,
 * reads the committed state and issues writes. The frame has the queue, the watches and the count
 * of pending writes; a key is not processed again before all its writes were answered, so the next
 * run sees their effect. Conflicts and "already exists" are retried quietly; other failures back
 * off and are logged less and less often.
 *
 *   watch event -> source.map -> queue -> reconcile(r) -> writes pending -> all answered -> done
 *                                   ^------------------- failed, or requeued: backoff ----------+
 */
#pragma once

#include <sublet/object.h>
#include <sublet/queue.h>
#include <sublet/selector.h>
#include <sublet/vapi.h>

struct controller;
struct reconcile; /* one run for one key */

struct controller_source {
    const char *group, *resource; /* "apps", "replicasets" */
    /* Adds keys for an event (also called with ADDED for every existing object at start). */
    void (*map)(struct controller *c, const struct store_event *e);
};
struct controller_def {
    const char *name;                        /* "deployment-controller": component of events */
    const struct controller_source *sources; /* ended by group == NULL */
    void (*reconcile)(struct reconcile *r);
    unsigned workers;                     /* keys at once; 0: 8 */
    void *(*start)(struct controller *c); /* allocates state; may be NULL */
    void (*stop)(struct controller *c, void *state);
    const char *account; /* of upstream's: the tenant's admission sees what it creates; or NULL */
    /* Owners of this kind ("ReplicaSet") retry at once when room for what they create comes free
     * (retry.h). NULL: their delays suffice. */
    const char *retries;
};

struct controller *controller_start(struct vapi *api, const struct controller_def *def);
/* The same with a state of another owner; def->start must be NULL. */
struct controller *controller_start_with(struct vapi *api, const struct controller_def *def,
                                         void *state);
/* Statistics of its queue; returns its name. */
const char *controller_stats(const struct controller *c, struct worker_stats *ret);
void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx);
/* Maps every existing object again: something changed that is no object. */
void controller_rescan(struct controller *c);
struct vapi *controller_api(const struct controller *c);
void *controller_state(const struct controller *c);
void controller_add(struct controller *c, struct str key);
void controller_add_name(struct controller *c, struct str ns, struct str name); /* "ns/name" */
void controller_add_after(struct controller *c, struct str key, int64_t delay_ms);
/* Ready-made maps: the object itself ("ns/name"); its controlling owner of a kind. */
void controller_map_self(struct controller *c, const struct store_event *e);
void controller_map_owner(struct controller *c, const struct store_event *e, struct str kind);
bool key_split(struct str key, struct str *ret_ns, struct str *ret_name);
struct str key_join(struct arena *a, struct str ns, struct str name);

/* Inside reconcile(). */
struct arena *reconcile_arena(struct reconcile *r);
struct str reconcile_key(const struct reconcile *r);
struct controller *reconcile_controller(struct reconcile *r);
struct vapi *reconcile_api(struct reconcile *r);
int64_t reconcile_now_s(const struct reconcile *r);
const struct resource *reconcile_resource(struct reconcile *r, const char *group,
                                          const char *plural);
/* The committed tree, or NULL. */
cJSON *reconcile_get(struct reconcile *r, const struct resource *res, struct str ns,
                     struct str name);
/* All objects of a namespace that match a selector (NULL: all), as trees in an array. */
cJSON *reconcile_list(struct reconcile *r, const struct resource *res, struct str ns,
                      const struct selector *selector);
void reconcile_create(struct reconcile *r, const struct resource *res, struct str ns,
                      const cJSON *o);
void reconcile_update(struct reconcile *r, const struct resource *res, const cJSON *object);
void reconcile_update_status(struct reconcile *r, const struct resource *res, const cJSON *object);
/* vapi_replace(): the whole object, without the kind's rules. */
void reconcile_replace(struct reconcile *r, const struct resource *res, const cJSON *object);
/* PUT to another subresource ("finalize"). */
void reconcile_update_at(struct reconcile *r, const struct resource *res, const char *subresource,
                         const cJSON *object);
void reconcile_patch(struct reconcile *r, const struct resource *res, struct str subresource,
                     struct str ns, struct str name, const cJSON *patch);
void reconcile_delete(struct reconcile *r, const struct resource *res, struct str ns,
                      struct str name, struct str uid, const char *propagation);
/* What this run decides may rest on the absence of an object that is hidden (store_quarantine.h):
 * it deletes nothing. So does one in which reconcile_get() met such an object. */
void reconcile_spare(struct reconcile *r);
bool reconcile_spares(const struct reconcile *r);
/* With a grace period of 0. */
void reconcile_delete_now(struct reconcile *r, const struct resource *res, struct str ns,
                          struct str name, struct str uid);
/* Only this version: a decision about another one must be repeated. */
void reconcile_delete_exact(struct reconcile *r, const struct resource *res, const cJSON *object,
                            const char *propagation);
void reconcile_event(struct reconcile *r, const cJSON *involved, const char *type,
                     const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Called after the frame handled the answer of the last issued write (create and similar). */
typedef void (*reconcile_cb)(struct reconcile *r, void *ctx, const struct err *err,
                             const struct store_object *object);
void reconcile_then(struct reconcile *r, reconcile_cb then, void *ctx);
/* What the frame does with a refused write without reconcile_then(): retries quietly, or fails the
 * run. */
void reconcile_take(struct reconcile *r, const struct err *err);
/* A run may have phases: next() is called once all writes issued so far were answered, and may
 * issue more. One at a time; not called when the controller is closing. */
typedef void (*reconcile_phase)(struct reconcile *r, void *ctx);
void reconcile_next(struct reconcile *r, reconcile_phase next, void *ctx);
/* The first failure so far, or NULL. */
const struct err *reconcile_error(const struct reconcile *r);
/* Another operation is pending (a host request): the run stays open until reconcile_release(). */
void reconcile_hold(struct reconcile *r);
void reconcile_release(struct reconcile *r, const struct err *err); /* err NULL: success */
/* Consecutive failed runs of this key before this one. */
unsigned reconcile_failures(const struct reconcile *r);
void reconcile_again_after(struct reconcile *r, int64_t delay_ms);
void reconcile_fail(struct reconcile *r, const struct err *err); /* retried with backoff */

/* Writes one member of metadata ("finalizers", ...), only of this version of the object. */
void metadata_write(struct reconcile *r, const struct resource *res, const cJSON *object,
                    const char *key, cJSON *value);
void metadata_finalizer_add(struct reconcile *r, const struct resource *res, const cJSON *object,
                            const char *name);
void metadata_finalizer_drop(struct reconcile *r, const struct resource *res, const cJSON *object,
                             const char *name);

/* For the owner of the clock (tests). Monotonic ms of the earliest wait; INT64_MIN while a run is
 * in progress, INT64_MAX without any. wake: the clock was moved. */
int64_t controller_next_due(const struct controller *c);
void controller_wake(struct controller *c);

/* All built-in controllers, started and closed together. Not native: only those of an API server
 * itself; upstream's manager runs the others. */
struct controllers;
struct controllers *controllers_start(struct vapi *api, bool native);
void controllers_close(struct controllers *cs, void (*closed)(void *ctx), void *ctx);
int64_t controllers_next_due(const struct controllers *cs);
void controllers_wake(struct controllers *cs);
void controllers_rescan(struct controllers *cs);

/* The controller of CustomResourceDefinitions, which starts before anything is served: it has
 * registered the stored CRDs when this returns, and then follows changes. */
struct crds;
struct crds *crds_start(struct vapi *api);
void crds_close(struct crds *c, void (*closed)(void *ctx), void *ctx);
