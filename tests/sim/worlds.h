/* SPDX-License-Identifier: Apache-2.0 */
/* Pods on both sides of a sim: a sim that is ready for them, and what both worlds must agree on
 * when all is quiet. */
#pragma once

#include "sim.h"

#define POOLS                                                                                      \
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"  \
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"                                            \
    "bindings:\n- {pool: p, guarantee: \"4\", overQuota: reject, default: true}\n"
#define QUEUE                                                                                      \
    "pools:\n- {name: p, kind: shared, mode: exclusive, nodeSelector: {pool: p}, products: [],\n"  \
    "   resources: {nvidia.com/gpu: {gpuEq: \"1\"}}}\n"                                            \
    "bindings:\n- {pool: p, guarantee: \"2\", overQuota: queue, default: true}\n"

#define GPU(n) ",'resources':{'limits':{'nvidia.com/gpu':'" #n "'}}"

/* A sim with the account that pods run under; a wait in vain prints both worlds. */
struct sim *sim_new_ready(uint64_t seed, const char *config);
/* In namespace default. The two are members to add, from "," on, with ' for ". */
void sim_create_pod(struct sim *s, const char *name, const char *more_container,
                    const char *more_spec);

/* Waits until pod default/NAME runs, for the tenant. */
void sim_until_runs(struct sim *s, const char *name);

/* Predicates of sim_until(). */
bool sim_worlds_agree(struct sim *s);
bool sim_pods_run(struct sim *s);    /* all of them, and the worlds agree */
bool sim_pod_is_gone(struct sim *s); /* default/a, for the tenant */
bool sim_nothing_recorded(struct sim *s);
unsigned sim_records(struct sim *s, enum store_record kind, const char *prefix);
