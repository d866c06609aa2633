/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the embedded host read from objects. */
#pragma once

#include <sublet/controller.h>
#include <sublet/object.h>

/* Simulation hints in Nodes, Pods and containers. */
#define HINT_NODE      "sublet.dev/simulate"           /* label or annotation of a Node: "down" */
#define HINT_DURATION  "sublet.dev/simulate-duration"  /* annotation of a Pod */
#define HINT_EXIT_CODE "sublet.dev/simulate-exit-code" /* annotation of a Pod */
#define HINT_STOP      "sublet.dev/simulate-stop"      /* annotation of a Pod */
#define ENV_DURATION   "SUBLET_SIMULATE_DURATION"      /* variable of a container */
#define ENV_EXIT_CODE  "SUBLET_SIMULATE_EXIT_CODE"     /* variable of a container */

const struct resource *embedded_resource(struct vapi *api, const char *group, const char *plural);
/* The Node's machine does not answer: its hint says so. */
bool embedded_node_is_down(const cJSON *node);
/* spec.nodeName and status.phase from the stored fields, without building a tree. */
struct str embedded_pod_node(const struct store_object *pod);
struct str embedded_pod_phase(const struct store_object *pod);
/* All pods whose spec.nodeName is node, as keys of a controller. */
void embedded_add_pods_of_node(struct controller *c, struct str node);
cJSON *embedded_read(struct vapi *api, struct arena *a, const struct resource *r, struct str ns,
                     struct str name);
