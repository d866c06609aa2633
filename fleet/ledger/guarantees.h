/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What tenants are guaranteed and granted, as intervals in the ledger: a record for each change of
 * the guarantee or of labels, and of the grant alone once it is due. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/fleet_ledger.h>

#include "grants/grants.h"

/* Between two records of a binding of which only what is granted differs, which follows what its
 * tenant and others want: at most 86400 / 1800 = 48 a day. No bill depends on it. */
#define GUARANTEES_SPACING_US INT64_C(1800000000)

struct guarantees;
/* records: what the ledger has by now. */
struct guarantees *guarantees_new(struct ledger *ledger, const struct fleet_records *records);
struct guarantees *guarantees_free(struct guarantees *g); /* takes NULL */
/* On each change, and again later for what was not due. As grants are now, of these pools: a
 * binding that does not count, or is gone, is as none. Of a view that does not show all rows, those
 * that it lacks stay as they are. */
int guarantees_look(struct guarantees *g, const struct config_pool *pools, size_t n_pools,
                    const struct grants_view *view, int64_t now_us, struct err *err) MUST_CHECK;
