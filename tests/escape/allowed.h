/* SPDX-License-Identifier: Apache-2.0
 *
 * The checker of host objects for tests that have a configuration and a tree: prints the tree, as
 * the syncer would, and holds the bytes against allowed.rules. */
#pragma once

#include <sublet/translate.h>

/* NULL when the object is allowed, else the problem (in the arena, NUL-terminated).
 * shape: pod, service, config-map, secret, claim, container of allowed.rules. */
const char *allowed_object(struct arena *a, const struct translate_tenant *t, const char *shape,
                           const cJSON *object);
/* A host pod whose virtual pod was stored already: rules it was made under may have been others, so
 * keys of its node selector, which narrow, are not looked at. */
const char *allowed_stored_pod(struct arena *a, const struct translate_tenant *t, const cJSON *pod);
const char *allowed_pod(struct arena *a, const struct translate_tenant *t, const cJSON *pod);
const char *allowed_service(struct arena *a, const struct translate_tenant *t,
                            const cJSON *service);
