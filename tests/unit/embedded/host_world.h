/* SPDX-License-Identifier: Apache-2.0 */
/* The world of the controllers' tests with an embedded host in it: pods are scheduled and run by
 * the code under test. Nodes are those of HOST_NODES. */
#pragma once

#include "../vapi/controller_world.h"

extern struct world *H; /* of the running test */
int host_set_up(void **state);
int host_tear_down(void **state);
#define HOST_TEST(f) cmocka_unit_test_setup_teardown(f, host_set_up, host_tear_down)
/* Without scheduler, node lifecycle controller and binder of claims, as with upstream's. */
int host_set_up_upstream(void **state);
#define UPSTREAM_TEST(f) cmocka_unit_test_setup_teardown(f, host_set_up_upstream, host_tear_down)

/* A pod in namespace n, and everything it leads to. spec: members of the pod's spec beside
 * containers, or "". resources: of its one container, or "{}". */
void host_pod(const char *name, const char *spec, const char *resources);
void host_pod_full(const char *name, const char *metadata, const char *spec, const char *container);
cJSON *host_get(const char *name); /* the pod, or NULL */
/* "" when it has none. */
const char *host_node_of(const char *name);
const char *host_phase_of(const char *name);
/* The message of PodScheduled. */
const char *host_words_of(const char *name);
