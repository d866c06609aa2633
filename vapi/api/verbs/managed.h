/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/verbs)
 *
 * The field manager of a write, for the files that track and apply. */
#pragma once

#include "verbs.h"

#include <sublet/fields.h>
#include <sublet/kinds.h>

#define SCALE_VERSION "autoscaling/v1"

struct managed {
    struct call *call;
    const struct resource *asked; /* in the version of the request */
    uint32_t scale;               /* the type of Scale, while its object is what is written */
    struct field_versions versions;
    struct field_write write;
};
/* m must stay where it is while it is used. */
void managed_open(struct managed *m, struct call *c, const struct resource *asked);
/* The object as it is before anybody set a field. */
cJSON *managed_empty(const struct managed *m);
/* managedFields of `into` after now took the place of old. stored: NULL for a create. */
void managed_track(struct managed *m, const cJSON *stored, const cJSON *old, const cJSON *now,
                   cJSON *into);
/* The descriptor of a version of what is asked for; NULL when there is none. */
const struct resource *managed_in_version(const struct managed *m, struct str version);

/* managed_scale.c */
/* Who owns the replica count, told as managedFields of the Scale, and back. */
int managed_to_scale(const struct managed *m, const cJSON *object, cJSON *scale,
                     struct err *err) MUST_CHECK;
int managed_from_scale(const struct managed *m, const cJSON *scale, cJSON *object,
                       struct err *err) MUST_CHECK;
