/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The host nodes that the tenant is shown. */
#pragma once

#include "core/run.h"

/* --- nodes.c --- */
struct nodes *nodes_new(struct syncer *s);
struct nodes *nodes_free(struct nodes *n);
void nodes_pod_changed(struct nodes *n, const cJSON *now, const cJSON *before); /* host pods */
void nodes_host_changed(struct nodes *n); /* a host node changed */
/* What a node's name in a tenant's pod refers to; for translate_tenant.node, whose ctx is nodes. */
enum translate_node nodes_meaning(void *nodes, struct str name);
/* The hook: would the host place the translated pod on the node? True for an unknown node, and for
 * the tenant's own. */
bool nodes_admit(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                 struct str node);
/* Sets tenant.nodes_shown, for messages that count nodes. */
void nodes_count(struct syncer *s);
/* True when the host's nodes are known, or known to be unreadable. */
bool nodes_known(const struct nodes *n);
/* True when the virtual cluster has this node; else it is created, and the pod's key added then. */
bool nodes_ensure(struct nodes *n, struct str node, struct str pod_key);
void nodes_map_event(struct controller *c, const struct store_event *e);
/* Hook admit: a Warning to a client that changes fields which the host will revert. */
bool node_wants_notice(const cJSON *object, const cJSON *old);
void node_notice(struct syncer *s, struct arena *a, void (*done)(void *ctx, const struct err *err),
                 void *ctx);
