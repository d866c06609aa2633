/* SPDX-License-Identifier: Apache-2.0 */
/* What one object counts for quotas, and by which of them it is seen. Internal to vapi/admission.
 */
#pragma once

#include <sublet/admission.h>

#include "amounts.h"

struct counted {
    struct amounts amounts;
    /* Of pods: what scopes ask. */
    bool deadline, best_effort, crosses_namespaces;
    struct str priority_class;
    struct str classes[3]; /* VolumeAttributesClasses that a claim has, had or wants; "" for none */
};

/* Everything in arena. */
void counted_read(struct arena *a, const struct resource *r, const cJSON *object,
                  struct counted *ret);
/* The same of a stored object, remembered by its version; good until the next call. */
const struct counted *counted_of(struct admission_memo *m, const struct resource *r,
                                 const struct store_object *o);
