/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects of a kind select given labels: their selectors, parsed once and kept by namespace.
 * Internal to vapi/controller. */
#pragma once

#include <sublet/selector.h>
#include <sublet/store.h>

struct selector_index;

/* plain: spec.selector is a map (Service), else a LabelSelector. */
struct selector_index *selector_index_new(bool plain);
struct selector_index *selector_index_free(struct selector_index *x);
/* By an event of the kind: taken in, replaced or forgotten. */
void selector_index_apply(struct selector_index *x, const struct store_event *e);
typedef void (*selector_index_cb)(void *ctx, struct str ns, struct str name);
/* each() must not change the index. */
void selector_index_match(const struct selector_index *x, struct str ns, struct str labels,
                          selector_index_cb each, void *ctx);
