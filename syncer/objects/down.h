/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Kinds that `sync.toHost` enables: one controller for all of them, by rules of translate. */
#pragma once

#include "core/run.h"

#include <sublet/resource.h>

/* Adds a row for each; changed: of their host objects. */
void sync_down_add_kinds(struct syncer *s, void (*changed)(struct syncer *s, enum sync_id id,
                                                           const struct host_object *now,
                                                           const struct host_object *before));
/* Does the configuration send objects of this resource down? */
bool sync_down_has(const struct syncer *s, const struct resource *r);
/* At admission, old NULL: created. FORBIDDEN for what may not go down; what is stored already is not
 * judged again. */
int sync_down_check(struct syncer *s, struct arena *a, const struct resource *r,
                    const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;
