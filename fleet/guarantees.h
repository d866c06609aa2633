/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What tenants are guaranteed and granted, as intervals in the ledger: a record for each change. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/fleet_ledger.h>

#include "grants.h"

struct guarantees;
/* records: what the ledger has by now. */
struct guarantees *guarantees_new(struct ledger *ledger, const struct fleet_records *records);
struct guarantees *guarantees_free(struct guarantees *g); /* takes NULL */
/* As grants are now, of these pools: a binding that does not count, or is gone, is as none. Of a
 * view that does not show all rows, those that it lacks stay as they are. */
int guarantees_look(struct guarantees *g, const struct config_pool *pools, size_t n_pools,
                    const struct grants_view *view, int64_t now_us, struct err *err) MUST_CHECK;
