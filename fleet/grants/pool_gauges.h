/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Prices of pools, conditions of GPUPools and budgets of GPUBindings, as gauges. Pure. */
#pragma once

#include <sublet/buf.h>
#include <sublet/config_pool.h>
#include <sublet/json.h>

/* Pools without a price have no sample. What is held beyond a guarantee has a price of its own,
 * which is the same where there is no borrowFactor. */
void fleet_price_metrics(struct buf *out, const struct config_pool *pools, size_t n_pools);

struct fleet_condition {
    struct str pool, type;
    const char *status; /* as a label says it */
};
struct fleet_conditions {
    struct fleet_condition *items;
    size_t n, cap;
};
/* At most so many of a GPUPool, and of all of them; more are left out. */
#define FLEET_CONDITIONS_OF_POOL 16
#define FLEET_CONDITIONS         3333 /* of three samples each */
/* Those that the status of a GPUPool has, of one type the first; copied to the arena. */
void fleet_conditions_add(struct arena *a, struct fleet_conditions *list, const cJSON *pool);
/* A sample for each of the statuses true, false and unknown: 1 for the one it has, else 0. */
void fleet_conditions_metrics(struct buf *out, const struct fleet_conditions *list);

struct grants_view;
/* Of bindings that count and have one: no two of them have one namespace and pool. unread_s: since
 * what the month costs was read. */
void fleet_budget_metrics(struct buf *out, const struct grants_view *view, int64_t unread_s);
