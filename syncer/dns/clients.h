/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Which clients are served, and at what rate. A new pod may send queries before its address is
 * known here: a bounded number of them is held for a moment. */
#pragma once

#include "answer.h"

enum { DNS_HELD_MAX = 64, DNS_HELD_EACH = 4, DNS_HELD_BYTES = 512, DNS_HELD_MS = 2000 };

bool dns_client_is_known(const struct dns_view *view, const struct dns_ip *ip);

/* A fixed number of token buckets; clients whose hashes collide share one. */
struct dns_rates;
struct dns_rates *dns_rates_new(int64_t per_second, uint64_t seed);
struct dns_rates *dns_rates_free(struct dns_rates *r);
bool dns_rates_take(struct dns_rates *r, const struct dns_ip *ip, int64_t now_ms);

/* UDP queries of clients that are not known (yet). */
struct dns_held;
typedef void (*dns_held_cb)(void *ctx, struct str bytes, const void *peer);
struct dns_held *dns_held_new(void);
struct dns_held *dns_held_free(struct dns_held *h);
/* False: there is no room, or it is too long. peer: a struct sockaddr_storage; copied. */
bool dns_held_add(struct dns_held *h, const struct dns_ip *ip, struct str bytes, const void *peer,
                  int64_t now_ms);
/* Passes the queries of clients that are known by now to each(), drops those that waited too long
 * and returns their number. *ret_next: when the next one expires; 0: none waits. */
size_t dns_held_release(struct dns_held *h, const struct dns_view *view, int64_t now_ms,
                        dns_held_cb each, void *ctx, int64_t *ret_next);
