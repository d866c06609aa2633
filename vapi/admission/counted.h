/* SPDX-License-Identifier: Apache-2.0 */
/* The usage of one object, and the properties quota scopes select by. Internal to
 * vapi/admission. */
#pragma once

#include <sublet/admission.h>

#include "usage.h"

/* The pod a device claim was made for by the scheduler, instead of its extended resources. */
enum counted_owner { COUNTED_POD, COUNTED_POD_UID, COUNTED_CLAIM, COUNTED_OWNER_TEXTS };

struct counted {
    struct usage usage;
    /* Of pods: properties for scopes. */
    bool deadline, best_effort, crosses_namespaces;
    struct str priority_class;
    /* VolumeAttributesClasses of a claim: previous, current or requested; "" for none. */
    struct str classes[3];
    struct str owner[COUNTED_OWNER_TEXTS]; /* "" for other claims; COUNTED_CLAIM is its own name */
};

/* Allocates everything in arena. */
void counted_read(struct arena *a, const struct resource *r, const cJSON *object,
                  struct counted *ret);
/* Whether a device claim replaces extended resources of the pod with this uid (empty: of any). */
bool counted_is_extended(const cJSON *claim, struct str pod_uid);
/* The same of a stored object, cached by its version; valid until the next call. */
const struct counted *counted_of(struct admission_memo *m, const struct resource *r,
                                 const struct store_object *o);

/* extended.c: usage of a device claim beyond its device classes, added to `to`. May invalidate
 * `claim` when it came from counted_of(). */
void extended_add(struct vapi *api, struct str ns, const struct counted *claim, struct usage *to);
