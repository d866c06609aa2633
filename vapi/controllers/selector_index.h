/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a kind that select given labels: their selectors, parsed once and kept by
 * namespace. Internal to vapi/controllers. */
#pragma once

#include <sublet/selector.h>
#include <sublet/store.h>

struct controller;
struct selector_index;

enum selector_place {
    SELECTOR_MAP,      /* spec.selector is a map: Service */
    SELECTOR_LABELS,   /* spec.selector is a LabelSelector: PodDisruptionBudget */
    SELECTOR_AGGREGATE /* aggregationRule.clusterRoleSelectors, any of them: ClusterRole */
};
struct selector_index *selector_index_new(enum selector_place place);
struct selector_index *selector_index_free(struct selector_index *x);
/* Applies an event of the kind: adds, replaces or removes the entry. */
void selector_index_apply(struct selector_index *x, const struct store_event *e);
typedef void (*selector_index_cb)(void *ctx, struct str ns, struct str name);
/* each() must not change the index. */
void selector_index_match(const struct selector_index *x, struct str ns, struct str labels,
                          selector_index_cb each, void *ctx);
/* Applies an event of a selected object: matches its labels, and its previous ones. */
void selector_index_event(const struct selector_index *x, const struct store_event *e,
                          selector_index_cb each, void *ctx);
/* Controllers whose state is an index have a start() of one line; this is their stop(). */
void selector_index_stop(struct controller *c, void *state);
