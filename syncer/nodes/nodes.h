/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The host nodes that the tenant is shown. */
#pragma once

#include "core/run.h"

/* --- nodes.c --- */
struct nodes *sync_nodes_new(struct syncer *s);
struct nodes *sync_nodes_free(struct nodes *n);
void sync_nodes_pod_changed(struct nodes *n, const cJSON *now, const cJSON *before); /* host pods */
/* A host node changed; now NULL: it was deleted. */
void sync_nodes_host_changed(struct nodes *n, const struct host_object *now,
                             const struct host_object *before);
/* NULL without sync.kubeletAddresses. */
struct node_addresses *sync_nodes_addresses(const struct nodes *n);
void sync_nodes_recheck(struct nodes *n); /* nodes or quotas may have changed */
/* Host nodes for translate_tenant.unfenced, valid until the next change of one. False: they are too
 * many to name, and the list has the first of them. */
bool sync_nodes_unfenced(const struct nodes *n, struct str_list *ret);
/* What a node's name in a tenant's pod refers to; for translate_tenant.node, whose ctx is nodes. */
enum translate_node sync_nodes_meaning(void *nodes, struct str name);
/* For translate_tenant.node_up, with sync.nodes perPool; its ctx is nodes. */
struct str sync_nodes_up(void *nodes, struct str host_node);
/* The node of a host pod as the tenant is shown it, or empty; `otherwise`: as with the other value
 * of sync.nodes. */
struct str sync_nodes_of_pod(const struct syncer *s, const cJSON *host_pod, bool otherwise);
/* The hook: would the host place the translated pod on the node? True for an unknown node, and for
 * the tenant's own. */
bool sync_nodes_admit(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                      struct str node);
/* Sets tenant.nodes_shown, for messages that count nodes. */
void sync_nodes_count(struct syncer *s);
/* True when the host's nodes are known, or known to be unreadable. */
bool sync_nodes_listed(const struct nodes *n);
/* The same for those that the tenant is shown. */
bool sync_nodes_known(const struct nodes *n);
/* True when the virtual cluster has this node; else it is created, and the pod's key added then. */
bool sync_nodes_ensure(struct nodes *n, struct str node, struct str pod_key);
void sync_nodes_map_event(struct controller *c, const struct store_event *e);
/* Hook admit: a Warning to a client that changes fields which the host will revert. */
bool sync_node_wants_notice(const cJSON *object, const cJSON *old);
void sync_node_notice(struct syncer *s, struct arena *a,
                      void (*done)(void *ctx, const struct err *err), void *ctx);
