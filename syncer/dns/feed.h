/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Keeps a zone in step with the store's committed objects, by a watch per kind. */
#pragma once

#include <sublet/store.h>

#include "zone.h"

struct dns_feed;
/* Fills the zone before it returns; changed(): later, after every batch of changes to it. nodes:
 * with Nodes. */
struct dns_feed *dns_feed_open(struct store *store, struct dns_zone *zone, bool nodes,
                               void (*changed)(void *ctx), void *ctx);
struct dns_feed *dns_feed_close(struct dns_feed *f); /* takes NULL, returns NULL */
