/* SPDX-License-Identifier: Apache-2.0 */
/* Dependents by owner: owner uid -> the objects that name it in their ownerReferences. Internal to
 * vapi/controllers. */
#pragma once

#include <sublet/vapi.h>

struct gc_index;

struct gc_dependent {
    unsigned storage;
    const char *ns, *name;
};
typedef void (*gc_each_cb)(void *ctx, const struct gc_dependent *d);

struct gc_index *gc_index_new(void);
struct gc_index *gc_index_free(struct gc_index *x);
/* Updates the edges of o; true when they changed: another set of owners, or of blocked ones. refs:
 * metadata.ownerReferences, or NULL. */
bool gc_index_put(struct gc_index *x, const struct store_object *o, const cJSON *refs);
void gc_index_remove(struct gc_index *x, struct str uid);
/* The owner is deleted for ever: its uid will not come back. */
void gc_index_set_gone(struct gc_index *x, struct str uid);
bool gc_index_is_gone(const struct gc_index *x, struct str uid);
size_t gc_index_count(const struct gc_index *x, struct str owner_uid);
/* each() must not change the index. */
void gc_index_each(const struct gc_index *x, struct str owner_uid, gc_each_cb each, void *ctx);
void gc_index_all(const struct gc_index *x, gc_each_cb each, void *ctx);
