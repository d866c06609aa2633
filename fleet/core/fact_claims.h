/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What a ResourceClaim of the host holds in a pool of mode dra, for the ledger: the devices of its
 * allocation, from the allocation until there is none, whether pods use it, several do, or none
 * does. Pure. For its room. */
#pragma once

#include "facts.h"
#include "grant_claims.h"

struct fact_claim {
    struct str uid;
    struct grant_claim claim; /* no devices: it is not allocated, or for adminAccess alone */
    /* Without key, owner and what follows from the pool; resources: "driver/pool/device,...";
     * begin_us 0: the host does not say when. */
    struct fleet_hold hold;
};
/* "namespace/name" of the first pod that a claim is reserved for; or empty. */
struct str fact_claim_user(struct arena *a, const cJSON *claim);
void fact_claim(struct arena *a, const cJSON *claim, struct fact_claim *ret);
/* In GPUs of a pool: each device by the class of the pool that it is of, or by the class of its
 * request where no slice shows it. False: none, or the sum does not fit. */
bool fact_claim_gpus(const struct fact_claim *claim, const struct config_pool *pool,
                     struct grant_devices *devices, struct rational *ret);
