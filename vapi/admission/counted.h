/* SPDX-License-Identifier: Apache-2.0 */
/* What one object counts for quotas, and by which of them it is seen. Internal to vapi/admission.
 */
#pragma once

#include <sublet/admission.h>

#include "amounts.h"

/* Whom a device claim was made for by the scheduler, instead of its extended resources. */
enum counted_owner { COUNTED_POD, COUNTED_POD_UID, COUNTED_CLAIM, COUNTED_OWNER_TEXTS };

struct counted {
    struct amounts amounts;
    /* Of pods: what scopes ask. */
    bool deadline, best_effort, crosses_namespaces;
    struct str priority_class;
    struct str classes[3]; /* VolumeAttributesClasses that a claim has, had or wants; "" for none */
    struct str owner[COUNTED_OWNER_TEXTS]; /* "" for other claims; COUNTED_CLAIM is its own name */
};

/* Everything in arena. */
void counted_read(struct arena *a, const struct resource *r, const cJSON *object,
                  struct counted *ret);
/* Whether a device claim stands for extended resources of the pod with this uid (empty: of any). */
bool counted_is_extended(const cJSON *claim, struct str pod_uid);
/* The same of a stored object, remembered by its version; good until the next call. */
const struct counted *counted_of(struct admission_memo *m, const struct resource *r,
                                 const struct store_object *o);

/* extended.c: what a device claim counts beside its classes, added to `to`. `claim` may be gone
 * after that, if counted_of() gave it. */
void extended_add(struct vapi *api, struct str ns, const struct counted *claim, struct amounts *to);
