/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/controllers
 *
 * The frame of every loop that drives something to its wanted state: what it watches, and one
 * function that, for one key, reads the committed state and issues writes. The frame keeps the
 * queue, the watches and the count of what is under way; a key is not worked on again before all
 * its writes were answered, so the next run sees their effect. Conflicts and "already exists" are
 * retried quietly; other failures back off and are logged ever more rarely.
 *
 *   watch event -> source.map -> queue -> reconcile(r) -> writes under way -> all answered -> done
 *                                   ^------------------- failed or asked again: backoff --------+
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
    /* Adds keys for an event (also called with ADDED for all that exists at start). */
    void (*map)(struct controller *c, const struct store_event *e);
};
struct controller_def {
    const char *name;                        /* "deployment-controller": component of events */
    const struct controller_source *sources; /* ended by group == NULL */
    void (*reconcile)(struct reconcile *r);
    unsigned workers;                     /* keys at once; 0: 8 */
    void *(*start)(struct controller *c); /* makes state; may be NULL */
    void (*stop)(struct controller *c, void *state);
};

struct controller *controller_start(struct vapi *api, const struct controller_def *def);
/* The same with a state that somebody else owns; def->start must be NULL. */
struct controller *controller_start_with(struct vapi *api, const struct controller_def *def,
                                         void *state);
/* What its queue did and has to do; returns its name. */
const char *controller_stats(const struct controller *c, struct worker_stats *ret);
void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx);
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
/* All of a namespace that match a selector (NULL: all), as trees in an array. */
cJSON *reconcile_list(struct reconcile *r, const struct resource *res, struct str ns,
                      const struct selector *selector);
void reconcile_create(struct reconcile *r, const struct resource *res, struct str ns,
                      const cJSON *o);
void reconcile_update(struct reconcile *r, const struct resource *res, const cJSON *object);
void reconcile_update_status(struct reconcile *r, const struct resource *res, const cJSON *object);
/* vapi_replace(): whole, by no rules of the kind. */
void reconcile_replace(struct reconcile *r, const struct resource *res, const cJSON *object);
/* PUT to another subresource ("finalize"). */
void reconcile_update_at(struct reconcile *r, const struct resource *res, const char *subresource,
                         const cJSON *object);
void reconcile_patch(struct reconcile *r, const struct resource *res, struct str subresource,
                     struct str ns, struct str name, const cJSON *patch);
void reconcile_delete(struct reconcile *r, const struct resource *res, struct str ns,
                      struct str name, struct str uid, const char *propagation);
/* Without grace. */
void reconcile_delete_now(struct reconcile *r, const struct resource *res, struct str ns,
                          struct str name, struct str uid);
/* Only this version of it: what was decided about another one is decided again. */
void reconcile_delete_exact(struct reconcile *r, const struct resource *res, const cJSON *object,
                            const char *propagation);
void reconcile_event(struct reconcile *r, const cJSON *involved, const char *type,
                     const char *reason, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Called after the frame saw the answer of the last write issued (create and the like). */
typedef void (*reconcile_cb)(struct reconcile *r, void *ctx, const struct err *err,
                             const struct store_object *object);
void reconcile_then(struct reconcile *r, reconcile_cb then, void *ctx);
/* What the frame does with a refused write that has no reconcile_then(): quietly again, or a
 * failure. */
void reconcile_take(struct reconcile *r, const struct err *err);
/* A run may have phases: next() is called once everything issued so far was answered, and may issue
 * more. One at a time; not called when the controller is closing. */
typedef void (*reconcile_phase)(struct reconcile *r, void *ctx);
void reconcile_next(struct reconcile *r, reconcile_phase next, void *ctx);
const struct err *
reconcile_error(const struct reconcile *r); /* the first failure so far, or NULL */
/* Something else is under way (a host request): the run stays open until reconcile_release(). */
void reconcile_hold(struct reconcile *r);
void reconcile_release(struct reconcile *r, const struct err *err); /* err NULL: fine */
unsigned reconcile_failures(const struct reconcile *r); /* of this key, in a row, before this run */
void reconcile_again_after(struct reconcile *r, int64_t delay_ms);
void reconcile_fail(struct reconcile *r, const struct err *err); /* retried with backoff */

/* Writes one member of metadata ("finalizers", ...), of this version of the object only. */
void metadata_write(struct reconcile *r, const struct resource *res, const cJSON *object,
                    const char *key, cJSON *value);
void finalizer_add(struct reconcile *r, const struct resource *res, const cJSON *object,
                   const char *name);
void finalizer_drop(struct reconcile *r, const struct resource *res, const cJSON *object,
                    const char *name);

/* For whoever owns the clock (tests). Monotonic ms of what waits; INT64_MIN while a run is under
 * way, INT64_MAX when there is nothing. wake: the clock was moved. */
int64_t controller_next_due(const struct controller *c);
void controller_wake(struct controller *c);

/* All built-in controllers, started and closed together. Not native: only what an API server does
 * itself; the rest is upstream's manager's. */
struct controllers;
struct controllers *controllers_start(struct vapi *api, bool native);
void controllers_close(struct controllers *cs, void (*closed)(void *ctx), void *ctx);
int64_t controllers_next_due(const struct controllers *cs);
void controllers_wake(struct controllers *cs);

/* The controller of CustomResourceDefinitions, which starts before anything is served: it has
 * registered what the store holds when this returns, then follows changes. */
struct crds;
struct crds *crds_start(struct vapi *api);
void crds_close(struct crds *c, void (*closed)(void *ctx), void *ctx);
