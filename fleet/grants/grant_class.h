/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * GPUPools of mode dra: their device classes are resources whose ResourceQuota key says the class,
 * and which admission charges for each ResourceClaim, whoever writes it. What is held so is never
 * taken back: no pod is ended for a claim. Pure. For its room. */
#pragma once

#include "grant_state.h"

bool grant_is_claimed(const struct grant_state *s, size_t pool); /* false for SHARE_NO_POOL */
/* Of a spec: gives *pool the resources of its classes. Returns why it cannot be granted; empty: it
 * can. */
struct str grant_class_resources(struct grant_state *s, struct config_pool *pool);
/* Why a binding of that pool is none; empty: it is. */
struct str grant_class_binding_why(const struct grant_state *s, const struct grant_row *r);
/* The key of a ResourceQuota that bounds a resource of the pool. */
struct str grant_quota_key(const struct grant_state *s, size_t pool, const struct pool_resource *r);
/* Nothing can be said of the pool now, and why. */
bool grant_class_is_unknown(const struct grant_state *s, size_t pool, struct str *ret_why);
