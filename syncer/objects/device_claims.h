/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * ResourceClaims: each is a charge of its own, from its creation until it has left the host. */
#pragma once

#include "core/run.h"

#include <sublet/resource.h>

/* --- admission --- */
/* Of claims and templates, old NULL: created. FORBIDDEN for what no pool grants. */
int sync_device_claim_check(struct syncer *s, struct arena *a, const struct resource *r,
                            const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;
/* In the transaction that creates a claim: charges it and begins its record. */
int sync_device_claim_store(struct syncer *s, struct arena *a, const cJSON *claim, bool dry_run,
                            struct err *err) MUST_CHECK;
/* --- down --- */
/* May the claim be on the host? True: it is charged. False: an Event says why not. */
bool sync_device_claim_admit(struct sync_run *run);
/* Names the pool that it is charged to in its host object. */
void sync_device_claim_label(struct syncer *s, struct arena *a, const cJSON *claim, cJSON *host);
/* Neither it nor what had its name before is on the host: releases the charges of its record. */
void sync_device_claim_release(struct syncer *s, const struct mapping *m);
/* The virtual status with who has it reserved; status NULL: that of the claim. NULL: no change. */
cJSON *sync_device_claim_status(struct sync_run *run, cJSON *status);

/* --- pods --- */
/* The pool of the pod's claims: that of its host pod, else of those claims and templates that
 * exist. *ret has no binding where there is none. FORBIDDEN: they are of different pools. */
int sync_device_claims_of_pod(struct syncer *s, struct arena *a, const cJSON *pod,
                              const cJSON *host_pod, struct pool_claims *ret,
                              struct err *err) MUST_CHECK;
/* Are all claims of the pod on the host, and its own? Else *ret_waits says for what it waits. */
bool sync_device_claims_ready(struct sync_run *run, struct str *ret_waits);
