/* SPDX-License-Identifier: Apache-2.0 */
/* Who depends on whom: owner uid -> the objects that name it in their ownerReferences. Internal to
 * vapi/controller. */
#pragma once

#include <sublet/vapi.h>

struct gc_index;

struct gc_dependent {
    struct gc_dependent *next;
    unsigned storage;
    char *ns, *name;
};

struct gc_index *gc_index_new(void);
struct gc_index *gc_index_free(struct gc_index *x);
/* By the ownerReferences in o's bytes; adding twice is adding once. */
void gc_index_add(struct gc_index *x, const struct store_object *o);
void gc_index_remove(struct gc_index *x, const struct store_object *o);
size_t gc_index_count(const struct gc_index *x, struct str owner_uid);
/* each() must not change the index. */
void gc_index_each(struct gc_index *x, struct str owner_uid,
                   void (*each)(void *ctx, const struct gc_dependent *d), void *ctx);
/* The resource an ownerReference names; NULL when its kind is not known here. */
const struct resource *gc_owner_resource(const struct registry *g, const cJSON *ref);
