/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The handlers of verbs and subresources, and what they share: one machine for writes, the commit,
 * shape checks and field management. */
#pragma once

#include "../../core/calls.h"

struct field_errors;
struct list;
struct write_part;

/* read.c, write.c, delete.c, collection.c */
void call_get(struct call *c);
void call_gpu_usage(struct call *c); /* GET and LIST of the tenant's own GPUs */
void call_measured(struct call *c);  /* of a kind that is measured, not stored */
void call_list(struct call *c);
void call_create(struct call *c);
void call_update(struct call *c); /* also /status and /scale, by c->sub */
void call_patch(struct call *c);
void call_delete(struct call *c);
void call_delete_collection(struct call *c);

/* read.c */
/* ListOptions and field selector of a list: 422 or 400. */
int read_check_options(struct call *c, struct err *err) MUST_CHECK;

/* Checks the options of a list and calls next(c) when its revision is available; otherwise
 * answers. */
void read_list_when(struct call *c, void (*next)(struct call *c));
/* The objects that c's options select, now. NULL with err on failure. */
struct list *list_scan(struct call *c, struct err *err) MUST_CHECK;
/* next(ctx) once l has all objects in the requested version; answers the call where they cannot
 * be. */
void read_converted(struct list *l, void (*next)(void *ctx), void *ctx);

/* write.c */
/* The differences of a subresource from a plain write. All members may be NULL. */
struct write_plan {
    /* Makes the object to store, from the base (a fresh tree, the handler's to change) and
     * c->body. */
    int (*make)(struct call *c, cJSON *base, cJSON **ret, struct err *err);
    /* Instead of kind->validate; old is never NULL. */
    void (*validate)(struct field_errors *e, const cJSON *object, const cJSON *old);
    /* Replaces the answer; object has its revision (unchanged in a dry run). */
    void (*answer)(struct call *c, int status, cJSON *object);
    /* Instead of kind->prepare_update: the object with the fields to keep restored. */
    cJSON *(*prepare)(struct arena *a, cJSON *object, const cJSON *old);
    /* The object is written through another one that admission sees in its place: a Scale. propose
     * makes that of the base (a fresh tree) and of c->body; adopt, instead of make, the object of
     * it, as webhooks left it; view is what validating admission sees of a whole object. */
    int (*propose)(struct call *c, cJSON *base, struct write_part *ret, struct err *err);
    int (*adopt)(struct call *c, const struct write_part *part, cJSON *base, cJSON **ret,
                 struct err *err);
    cJSON *(*view)(struct call *c, const cJSON *object);
    bool reviewed;  /* admission saw the body apart (api/review) */
    bool uncounted; /* does not increment metadata.generation */
    bool whole; /* the handler writes the whole object: no status split, no kind->prepare_update */
};
struct write_part {
    cJSON *object;
    const cJSON *old;
};
/* By c->verb: create, update or patch; an update of c->name with a plan that makes the object needs
 * no body. */
void write_start(struct call *c, const struct write_plan *plan);
/* write_body.c */
/* The body, merged, applied or as it is, onto object by c->patch (verb PATCH) or in its place
 * (UPDATE). */
int write_apply_body(struct call *c, cJSON *object, cJSON **ret, struct err *err) MUST_CHECK;

int write_set_defaults(struct call *c, cJSON *object, struct err *err) MUST_CHECK;
/* The object's name must be the URL's. */
int write_check_name(const struct call *c, const cJSON *object, struct err *err) MUST_CHECK;

/* hooked.c */
/* Of a mutating webhook that reads resource `as`: see webhook_decode. */
int write_decode_hooked(struct call *c, const struct resource *as, cJSON *object,
                        struct err *err) MUST_CHECK;
/* What no webhook may set comes from before, the object that it was shown. base NULL: a create. */
int write_keep_identity(struct call *c, cJSON *object, const cJSON *before,
                        const struct store_object *base, struct err *err) MUST_CHECK;
/* A custom resource may have lost its definition in a pause: 404. */
int write_check_served(const struct call *c, const struct resource *r, struct err *err) MUST_CHECK;

/* commit.c */
/* Prints object with the next revision and passes it to the store; uid, ns and name are the
 * object's. old: the version it replaces, before: its tree; NULL for a create. *ret (may be NULL)
 * receives a reference to the stored version. */
int commit_object(struct call *c, enum store_op op, cJSON *object, const struct store_object *old,
                  const cJSON *before, const struct store_object **ret, struct err *err) MUST_CHECK;
/* Switches a call about a built-in kind to the stored version; returns the requested one, which
 * must be restored before the answer. */
const struct resource *commit_hub(struct call *c);
/* 404 of c->name. */
int commit_not_found(struct call *c, struct err *err) MUST_CHECK;
/* 409: the object has been modified. */
int commit_modified(struct call *c, struct err *err) MUST_CHECK;

/* managed.c, apply.c */
/* Updates managedFields of object after a create (old NULL) or update. Both are in the stored
 * version; requested is that of the request. */
void managed_update(struct call *c, const struct resource *requested, const cJSON *old,
                    cJSON *object);
/* Applies c->body to live (NULL: there is none yet), which is consumed. */
int managed_apply(struct call *c, cJSON *live, cJSON **ret, struct err *err) MUST_CHECK;
/* If object differs from old only in the times of managedFields, restores those. */
void managed_keep_times(struct arena *a, cJSON *object, const cJSON *old);

/* admit.c */
/* hooks.check_pod and check_claim on a pod or claim (refusal), or on their templates in object
 * (warning). old NULL: a create. */
int admit_shape(struct call *c, const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;

/* sub_*.c */
void sub_scale(struct call *c);
void sub_token(struct call *c);
void sub_review(struct call *c);   /* a create of a kind that is never stored */
void sub_bind_pod(struct call *c); /* the handler of a create of bindings, admitted */
int sub_binding_check(struct call *c, struct err *err) MUST_CHECK;
void sub_replace(struct call *c);
/* 201 and a Status Success without details: the answer of binding and eviction. */
void sub_answer_status(struct call *c);
/* Sets a condition of a pod to true, with the current time if it was not. */
void sub_pod_condition(struct call *c, cJSON *pod, const char *type, struct str reason,
                       struct str message);
/* delete.c */
/* Checks uid and revision preconditions against o; sets err on a mismatch. */
int delete_preconditions(struct call *c, const struct store_object *o, struct err *err) MUST_CHECK;
/* Upstream's warning about a delete without a propagation policy. */
void delete_warn(struct call *c);

/* meta_validate.c */
void vapi_meta_validate(struct field_errors *e, const struct resource *r, const cJSON *object);
/* Upstream's checks of a created object that its kind's validation accepted. */
void vapi_meta_validate_last(struct field_errors *e, const struct resource *r, const cJSON *object);
void vapi_meta_validate_update(struct field_errors *e, const struct resource *r,
                               const cJSON *object, const cJSON *old, bool on_status);
