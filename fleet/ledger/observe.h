/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Turns what a process sees of the host, in the order in which it sees it, into records of the
 * ledger. Knows no network: trees in, rows out. Every fallible function fails as the ledger does,
 * and the process then ends. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/fleet_ledger.h>

struct grant_devices;
struct observer;
struct observer_options {
    struct ledger *ledger;
    const struct fleet_records *records; /* the ledger's; read by observer_new() only */
    const struct config_pool *pools;
    size_t n_pools;
    struct grant_devices
        *devices; /* of pools of mode dra, all of them; NULL: there is no such pool */
};
struct observer *observer_new(const struct observer_options *options);
struct observer *observer_free(struct observer *o); /* takes NULL, returns NULL */

/* The prices of the pools from now on. */
int observer_prices(struct observer *o, int64_t now_us, struct err *err) MUST_CHECK;
/* Nodes first: a pod on a node that is not known yet is not recorded. A node is observed again when
 * its devices changed. */
int observer_node(struct observer *o, const cJSON *node, int64_t now_us,
                  struct err *err) MUST_CHECK;
int observer_node_gone(struct observer *o, struct str name, int64_t now_us,
                       struct err *err) MUST_CHECK;
int observer_pod(struct observer *o, const cJSON *pod, int64_t now_us, struct err *err) MUST_CHECK;
/* certain: a watch reported it; otherwise it was missing from a list. */
int observer_pod_gone(struct observer *o, struct str uid, bool certain, int64_t now_us,
                      struct err *err) MUST_CHECK;
/* A ResourceClaim: a hold for each allocation. user: the pod it is reserved for, whose owner is the
 * hold's; may be NULL. *ret_waits: devices of it may be in a pool, once more of them are known. */
int observer_claim(struct observer *o, const cJSON *claim, const cJSON *user, int64_t now_us,
                   bool *ret_waits, struct err *err) MUST_CHECK;
int observer_claim_gone(struct observer *o, struct str uid, bool certain, int64_t now_us,
                        struct err *err) MUST_CHECK;
/* What the ledger has open of a pod; strings are the observer's. False: it holds nothing. */
bool observer_held(const struct observer *o, struct str uid, struct fleet_hold *ret);
/* The list of nodes (pods, claims) is complete: what the ledger has open and the first list of this
 * process did not show ended while no process observed it. */
int observer_nodes_listed(struct observer *o, int64_t now_us, struct err *err) MUST_CHECK;
int observer_pods_listed(struct observer *o, int64_t now_us, struct err *err) MUST_CHECK;
int observer_claims_listed(struct observer *o, int64_t now_us, struct err *err) MUST_CHECK;
/* All that happened until now was observed. */
int observer_seen(struct observer *o, int64_t now_us, struct err *err) MUST_CHECK;
/* What nodes have and pods hold now, as records of the time from 0 to 1, in which every pool has
 * one: pods whose node is gone, which are not billed, are not among them. Strings are the
 * observer's. */
void observer_snapshot(struct observer *o, struct arena *a, struct fleet_records *ret);
int64_t observer_unobserved_us(const struct observer *o); /* of the ledger, without an observer */
/* A node came into a pool: pods that were seen before are to be observed again. True once. */
bool observer_wants_pods(struct observer *o);
