/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * What becomes of a resource nobody uses any more, and of versions that cannot be read. */
#pragma once

#include <sublet/store.h>

/* The name of an id; good until control returns to the loop. */
struct str store_resource_name(const struct store *s, unsigned resource);
/* The caller forgets the id. It is given to another name once no object, event that can still be
 * watched, row on disk or watch has it; until then store_resource() gives the same one again. */
void store_resource_release(struct store *s, unsigned resource);

/* Quarantine: a stored version that options.readable() refused at start keeps its key and its row,
 * and no reader or watcher sees it. The key is taken (a create fails with ALREADY_EXISTS); a delete
 * or an update that names its revision ends it. NULL when there is none, or its end is under
 * way. Without options.readable all is read. */
const struct store_object *store_quarantined(struct store *s, unsigned resource, struct str ns,
                                             struct str name);
/* All of a resource (0: of all resources); ns.p == NULL: in all namespaces. */
void store_scan_quarantined(struct store *s, unsigned resource, struct str ns, store_scan_cb each,
                            void *ctx);
