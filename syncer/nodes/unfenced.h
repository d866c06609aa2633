/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Host nodes that have devices and no label that keeps other pods off. */
#pragma once

#include "core/run.h"

struct unfenced;

struct unfenced *sync_unfenced_new(struct syncer *s);
struct unfenced *sync_unfenced_free(struct unfenced *u);
/* A host node changed; now NULL: it was deleted. */
void sync_unfenced_changed(struct unfenced *u, const struct host_object *now,
                           const struct host_object *before);
/* Their names in order, valid until the next change. False: they are more than a pod can name,
 * and the list has those that it can. */
bool sync_unfenced_list(const struct unfenced *u, struct str_list *ret);
/* A notice while there are any. */
void sync_unfenced_report(struct unfenced *u);
