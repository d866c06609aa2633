/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the status of a GPUBinding says of money: the price of its pool, and its budget. Pure. For
 * its room. */
#pragma once

#include "grant_state.h"

/* Gives the copy of a pool that a tenant reads the price by which the ledger bills it. One that the
 * file of the fleet does not price stays as its GPUPool has it. item may be NULL. */
void grant_metering(struct grant_state *s, const struct grant_pool *pool, cJSON *item);
/* "the budget of 1500.00 USD for 2026-11": the same as long as it is, so that an Event follows from
 * a threshold and not from each cent. */
struct str grant_budget_name(struct grant_state *s, const struct grant_row *r);
/* object: one whose status has the conditions of the binding. */
void grant_budget_conditions(struct grant_state *s, const struct grant_row *r, cJSON *object);
cJSON *grant_budget_status(struct grant_state *s,
                           const struct grant_row *r); /* NULL: it has none */
