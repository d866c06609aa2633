/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What ResourceClaims of the host take, kept as they change. A claim counts from when it is made
 * until it is gone, allocated or not, as a ResourceQuota charges it: by class, the worst case of
 * its requests. Pure. For its room.
 *
 * Source: resource.k8s.io/v1, ResourceClaim; the quota's evaluator of claims, by test */
#pragma once

#include "facts.h"
#include "grant_devices.h"

/* The resource by which devices of a class are counted: the ResourceQuota's key. */
#define GRANT_CLASS_KEY ".deviceclass.resource.k8s.io/devices"

struct grant_claimed {
    struct grant_device_name name;
    struct str key; /* of its class; empty: the claim does not say */
};
/* Strings are grant_claims'. */
struct grant_claim {
    struct str ns, node; /* node: its devices are of; empty: it has none, or of no node */
    const struct fact_units *units;      /* by GRANT_CLASS_KEY */
    const struct grant_claimed *devices; /* allocated, but for those with adminAccess */
    size_t n_units, n_devices;
};

/* Of a moment, for grant_state.h. */
struct grant_class_source {
    bool enabled;   /* pools of mode dra are granted */
    bool known;     /* all slices and claims are read: else nothing is granted of those pools */
    struct str why; /* what the host has against it; empty: nothing */
    struct grant_devices *devices;
};

/* Of a tree; strings are the arena's. */
void grant_claim_of(struct arena *a, const cJSON *tree, struct grant_claim *ret);

struct grant_claims;
struct grant_claims *grant_claims_new(void);
struct grant_claims *grant_claims_free(struct grant_claims *c); /* takes NULL, returns NULL */
/* An object as it is now, under a name of its own. NULL: it is gone. */
void grant_claims_set(struct grant_claims *c, struct str name, const cJSON *tree);
void grant_claims_each(struct grant_claims *c,
                       void (*each)(void *ctx, const struct grant_claim *claim), void *ctx);
/* For reflectors: what that does not read goes. */
void grant_claims_reduce(struct arena *a, cJSON *claim);
