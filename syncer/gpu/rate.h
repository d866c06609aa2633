/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * How many pods were created in the present minute of the clock, per pool and of those without
 * devices. Counted in the transaction that stores the pod. */
#pragma once

#include <sublet/clock.h>
#include <sublet/config_pool.h>
#include <sublet/store.h>

struct rates {
    struct store *store;
    const struct config *config;
    const struct clock *clock;
};
/* binding NULL: a pod that is charged to no pool. of_claim: name is that of a ResourceClaim, which
 * counts as a pod of its pool. FORBIDDEN when the minute's pods are all created. */
int sync_rate_check(const struct rates *r, const struct config_binding *binding, struct str name,
                    bool of_claim, struct err *err) MUST_CHECK;
/* One more was created. Nothing is written where there is no limit. */
void sync_rate_count(const struct rates *r, const struct config_binding *binding);
