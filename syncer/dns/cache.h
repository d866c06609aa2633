/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Answers of other resolvers, as bytes, each under its own query only: additional records of one
 * answer never answer another query. Bounded in bytes; the least recently used is evicted. Pure:
 * the caller has the clock. */
#pragma once

#include "message.h"

#define DNS_CACHE_TTL_MAX 30u /* seconds, as the cache of a cluster's CoreDNS */

struct dns_cache;
struct dns_cache *dns_cache_new(size_t max_bytes); /* 0: keeps nothing */
struct dns_cache *dns_cache_free(struct dns_cache *c);
void dns_cache_put(struct dns_cache *c, const struct dns_query *q, const struct dns_answer *a,
                   int64_t now_ms);
/* True: *ret is an answer with the TTLs that are left. */
bool dns_cache_get(struct dns_cache *c, const struct dns_query *q, int64_t now_ms,
                   struct dns_answer *ret);
size_t dns_cache_bytes(const struct dns_cache *c);
size_t dns_cache_count(const struct dns_cache *c);
