/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * sync.kubeletAddresses: the addresses of host Services before this process, and which node the
 * tenant is shown under each. */
#pragma once

#include "core/run.h"

struct node_addresses;

struct node_addresses *sync_node_addresses_new(struct syncer *s); /* NULL: the option is 0 */
struct node_addresses *sync_node_addresses_free(struct node_addresses *n);

/* The Services are looked up one after the other. False: all were; else its name begins with that
 * of the virtual cluster and ends so. */
bool sync_node_addresses_next(struct node_addresses *n, struct arena *a, struct str *ret_tail);
/* The cluster IP of that one; empty: it has none, or is not there. */
void sync_node_addresses_found(struct node_addresses *n, struct str ip);
/* Those that were found; valid until the next is. */
const struct str *sync_node_addresses(const struct node_addresses *n, size_t *ret_n);

/* The address of a node, the same until the node is dropped, and after a restart that of its stored
 * object. Empty: all are in use, and the node is added again when one is free. */
struct str sync_node_address_of(struct node_addresses *n, struct str node);
void sync_node_address_drop(struct node_addresses *n, struct str node);
/* The node with this address, or empty. */
struct str sync_node_address_owner(const struct node_addresses *n, struct str ip);
