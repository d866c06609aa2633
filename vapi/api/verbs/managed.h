/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/verbs)
 *
 * The field manager of a write, shared by the files that track and apply. */
#pragma once

#include "verbs.h"

#include <sublet/fields.h>
#include <sublet/kinds.h>

#define SCALE_VERSION "autoscaling/v1"

struct managed {
    struct call *call;
    const struct resource *requested; /* in the version of the request */
    uint32_t scale; /* the type of Scale, when a write to /scale changes the object */
    struct field_versions versions;
    struct field_write write;
};
/* m must not move while it is used. */
void managed_open(struct managed *m, struct call *c, const struct resource *requested);
/* The object before any manager set a field. */
cJSON *managed_empty(const struct managed *m);
/* Sets managedFields of `into` after now replaced old. stored: NULL for a create. */
void managed_track(struct managed *m, const cJSON *stored, const cJSON *old, const cJSON *now,
                   cJSON *into);
/* The descriptor of another version of the requested resource; NULL when there is none. */
const struct resource *managed_in_version(const struct managed *m, struct str version);

/* managed_scale.c */
/* The managers of the replica count as managedFields of the Scale, and back. */
int managed_to_scale(const struct managed *m, const cJSON *object, cJSON *scale,
                     struct err *err) MUST_CHECK;
int managed_from_scale(const struct managed *m, const cJSON *scale, cJSON *object,
                       struct err *err) MUST_CHECK;
