/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The handlers of verbs and subresources, and what they share: one machine for writes, the commit,
 * what admission and field management add to it. */
#pragma once

#include "../../core/calls.h"

struct field_errors;
struct list;

/* read.c, write.c, delete.c, collection.c */
void call_get(struct call *c);
void call_list(struct call *c);
void call_create(struct call *c);
void call_update(struct call *c); /* also /status and /scale, by c->sub */
void call_patch(struct call *c);
void call_delete(struct call *c);
void call_delete_collection(struct call *c);

/* read.c */
/* ListOptions and field selector of a list: 422 or 400. */
int read_check_options(struct call *c, struct err *err) MUST_CHECK;

/* Checks the options of a list and goes on with next(c) when its revision is there; else answers.
 */
void read_list_when(struct call *c, void (*next)(struct call *c));
/* What c's options choose, now. NULL with err when they cannot be met. */
struct list *list_scan(struct call *c, struct err *err) MUST_CHECK;

/* write.c */
/* How a subresource differs from a plain write. All members may be NULL. */
struct write_plan {
    /* What is stored, from the base (a fresh tree, the handler's to change) and c->body. */
    int (*make)(struct call *c, cJSON *base, cJSON **ret, struct err *err);
    /* Instead of ops->validate; old is never NULL. */
    void (*validate)(struct field_errors *e, const cJSON *object, const cJSON *old);
    /* Instead of the object; it has its revision (the old one in a dry run). */
    void (*answer)(struct call *c, int status, cJSON *object);
    /* Instead of ops->prepare_update: what is kept of the object. */
    cJSON *(*prepare)(struct arena *a, cJSON *object, const cJSON *old);
    bool uncounted; /* no change of the spec for metadata.generation */
    bool whole;     /* the handler owns the whole object: no status split, no ops->prepare_update */
};
/* By c->verb: create, update or patch; update of c->name with a plan that makes the object needs no
 * body. */
void write_start(struct call *c, const struct write_plan *plan);
/* body, merged, applied or as it is, onto object by c->patch (verb PATCH) or in its place (UPDATE).
 */
int write_apply_body(struct call *c, cJSON *object, cJSON **ret, struct err *err) MUST_CHECK;

/* commit.c */
/* Prints object with the next revision and hands it to the store; uid, ns and name are the
 * object's. old: what it replaces, before: its tree; NULL for a create. *ret (may be NULL) gets a
 * reference to the new latest. */
int commit_object(struct call *c, enum store_op op, cJSON *object, const struct store_object *old,
                  const cJSON *before, const struct store_object **ret, struct err *err) MUST_CHECK;
/* Turns a call about a built-in kind to the version that is stored; returns the one that was asked
 * for, which must be put back before the answer. */
const struct resource *commit_hub(struct call *c);
bool resource_is_pod(const struct resource *r);
bool resource_is_namespace(const struct resource *r);
/* 404 of c->name. */
int commit_not_found(struct call *c, struct err *err) MUST_CHECK;
/* 409: the object has been modified. */
int commit_modified(struct call *c, struct err *err) MUST_CHECK;

/* managed.c, apply.c */
/* Keeps managedFields of object in step with what a create (old NULL) or update changed. Both are
 * in the stored version; asked is that of the request. */
void managed_update(struct call *c, const struct resource *asked, const cJSON *old, cJSON *object);
/* c->body applied to live (NULL: there is none yet), which is used up. */
int managed_apply(struct call *c, cJSON *live, cJSON **ret, struct err *err) MUST_CHECK;
/* An object that differs from the old one in the times of managedFields only gets those back. */
void managed_keep_times(struct arena *a, cJSON *object, const cJSON *old);

/* admit.c */
/* hooks.check_pod and check_claim on a pod or claim (refusal), or on the templates of them in
 * object (warning). old NULL: a create. */
int admit_shape(struct call *c, const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;

/* sub_*.c */
void sub_scale(struct call *c);
void sub_replace(struct call *c);
/* 201 and a Status Success without details: what binding and eviction answer. */
void sub_answer_status(struct call *c);
/* A condition of a pod becomes true, now unless it was. */
void sub_pod_condition(struct call *c, cJSON *pod, const char *type, struct str reason,
                       struct str message);
/* delete.c */
/* Why a removal would be refused: uid and revision preconditions against o. */
int delete_preconditions(struct call *c, const struct store_object *o, struct err *err) MUST_CHECK;
/* What upstream tells whoever deletes without saying what is to become of the dependents. */
void delete_warn(struct call *c);

/* meta_validate.c */
void meta_validate(struct field_errors *e, const struct resource *r, const cJSON *object);
/* What upstream looks at when a new object's kind found nothing wrong with it. */
void meta_validate_last(struct field_errors *e, const struct resource *r, const cJSON *object);
void meta_validate_update(struct field_errors *e, const struct resource *r, const cJSON *object,
                          const cJSON *old, bool on_status);
