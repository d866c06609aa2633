/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The resources the API serves: a descriptor (resource.h) by group, version and plural or kind. */
#pragma once

#include <sublet/resource.h>

/* The registry. Built-ins are registered at start; CRDs are added and removed. A descriptor stays
 * valid until the loop's next turn after it was removed (watches of it are closed first). */
struct registry;
struct registry *registry_new(struct store *store);
/* Further built-in kinds; before anything is served. */
void registry_add_kinds(struct registry *g, const struct kind *const *kinds);
struct registry *registry_free(struct registry *g);
const struct resource *registry_find(const struct registry *g, struct str group, struct str version,
                                     struct str plural);
const struct resource *registry_find_kind(const struct registry *g, struct str group,
                                          struct str version, /* empty: preferred */
                                          struct str kind);
/* Of an owner reference or a scale target, by apiVersion and kind; another version of the kind
 * where that one is not served. */
const struct resource *registry_find_reference(const struct registry *g, const cJSON *ref);
const struct resource *registry_find_group_resource(const struct registry *g, struct str group,
                                                    struct str plural); /* the storage version */
const struct resource *registry_by_storage(const struct registry *g, unsigned storage);
/* version may be empty. */
bool registry_has_group(const struct registry *g, struct str group, struct str version);
typedef bool (*registry_cb)(void *ctx, const struct resource *r);
/* In discovery order: groups by priority, versions by preference, resources by name. */
void registry_each(const struct registry *g, registry_cb each, void *ctx);
/* For CRDs, and kinds described like one; on success the registry takes r (mem_alloc'ed, everything
 * it points to owned by r->crd). */
int registry_add(struct registry *g, struct resource *r, struct err *err) MUST_CHECK;
void registry_remove(struct registry *g, struct resource *r, void (*freed)(void *ctx), void *ctx);
/* Increases with every change; for ETags and caches. At most 8 listeners. */
uint64_t registry_generation(const struct registry *g);
void registry_on_change(struct registry *g, void (*changed)(void *ctx), void *ctx);
