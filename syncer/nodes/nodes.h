/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Nodes of the host that the tenant is shown. */
#pragma once

#include "core/run.h"

/* --- nodes.c --- */
struct nodes *nodes_new(struct syncer *s);
struct nodes *nodes_free(struct nodes *n);
void nodes_pod_changed(struct nodes *n, const cJSON *now, const cJSON *before); /* host pods */
void nodes_host_changed(struct nodes *n); /* the host's nodes are not what they were */
/* What a tenant means that names this node; ctx of translate_tenant.node_ctx is the nodes. */
enum translate_node nodes_meaning(void *nodes, struct str name);
/* The hook: would the host place what the syncer makes of this pod on the node? True where nothing
 * is known of it, or it is the tenant's own. */
bool nodes_admit(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                 struct str node);
/* Sets tenant.nodes_shown, for messages that count nodes. */
void nodes_count(struct syncer *s);
/* True when the host's nodes are known, or known to be unreadable. */
bool nodes_known(const struct nodes *n);
/* True when the virtual cluster has this node; else it will, and the pod's key comes again. */
bool nodes_ensure(struct nodes *n, struct str node, struct str pod_key);
void nodes_map_event(struct controller *c, const struct store_event *e);
/* Hook admit: whoever changes what the host has the last word on is told so by a Warning. */
bool node_wants_notice(const cJSON *object, const cJSON *old);
void node_notice(struct syncer *s, struct arena *a, void (*done)(void *ctx, const struct err *err),
                 void *ctx);
