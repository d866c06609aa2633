/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * sync.toHost.services.mappings: further host Services under names that the admin chose. */
#pragma once

#include "core/run.h"

struct aliases;
struct aliases *sync_aliases_new(struct syncer *s); /* NULL: none is configured, nor was before */
struct aliases *sync_aliases_free(struct aliases *all);
/* The functions below take NULL. */
void sync_aliases_start(struct aliases *all);
void sync_aliases_rescan(struct aliases *all);
/* A host Service of ours was seen, changed or deleted: of that name. */
void sync_aliases_changed(struct aliases *all, struct str host_name);
/* closed() is called for each controller, whose number is returned. */
size_t sync_aliases_close(struct aliases *all, void (*closed)(void *ctx), void *ctx);

/* What becomes of the host Service of this name (NULL: the host has none), for restore --plan and
 * comparisons as well. False: the name is no alias, nor was one. ret_ns, ret_name: of the virtual
 * Service. In the arena. */
bool sync_alias_settle(struct syncer *s, struct arena *a, struct str host_name, cJSON *host,
                       enum sync_settlement *ret, struct str *ret_ns, struct str *ret_name);
/* Names with a record, and configured ones: some more than once. */
void sync_alias_each(struct syncer *s, void (*each)(void *ctx, struct str host_name), void *ctx);
