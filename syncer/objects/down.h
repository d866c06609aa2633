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
/* Is it on the host as the tenant has it, under its uid? Opens the watch. */
bool sync_down_is_there(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object);
/* translate_tenant.class_down; ctx: the syncer. */
bool sync_down_has_class(void *ctx, struct str class);
/* Is it one of the tenant's that goes down, and not on the host as the tenant has it? Then its
 * controller adds the claims again. */
bool sync_down_awaits_class(struct syncer *s, struct arena *a, struct str class);
/* Has the host as many of this kind as the tenant may have there? An Event says so, and the key is
 * added again when another leaves. */
bool sync_down_waits_for_room(struct sync_run *run);
/* Claims wait for an object of this kind: each run of its controller adds them again. */
void sync_down_await(struct syncer *s, enum sync_id id);
/* Does the configuration send objects of this resource down? */
bool sync_down_has(const struct syncer *s, const struct resource *r);
/* The row of such objects; SYNC_NONE: none goes down. */
enum sync_id sync_down_kind(const struct syncer *s, const struct resource *r);
/* What the host gets of it; *ret NULL: nothing. left_out: an array to which sentences are appended
 * that say what the host does not get. FORBIDDEN, INVALID as at admission. */
int sync_down_translate(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                        cJSON *left_out, cJSON **ret, struct err *err) MUST_CHECK;
/* At admission, old NULL: created. FORBIDDEN for what may not go down; what is stored already is
 * not judged again. */
int sync_down_check(struct syncer *s, struct arena *a, const struct resource *r,
                    const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;
