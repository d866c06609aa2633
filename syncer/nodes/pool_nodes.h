/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * sync.nodes perPool: what the tenant's host pods hold, and the Nodes that follow from it. */
#pragma once

#include "core/run.h"

struct pool_nodes;

struct pool_nodes *sync_pool_nodes_new(struct syncer *s);
struct pool_nodes *sync_pool_nodes_free(struct pool_nodes *p); /* takes NULL */
void sync_pool_nodes_pod_changed(struct pool_nodes *p, const cJSON *now, const cJSON *before);
/* The host's nodes, pods or quotas changed: the keys of all of these nodes are added soon. */
void sync_pool_nodes_changed(struct pool_nodes *p);
/* The Node of this name, without times; NULL: there is none. */
cJSON *sync_pool_node(struct pool_nodes *p, struct arena *a, struct str name);
/* For translate_tenant.node_up. */
struct str sync_pool_node_up(struct pool_nodes *p, struct str host_node);
