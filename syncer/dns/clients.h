/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Who may ask, and how much. A pod asks before its address is known here: its first questions are
 * held for a moment, a bounded number of them. */
#pragma once

#include "answer.h"

enum { DNS_HELD_MAX = 64, DNS_HELD_EACH = 4, DNS_HELD_BYTES = 512, DNS_HELD_MS = 2000 };

bool dns_client_is_known(const struct dns_view *view, const struct dns_ip *ip);

/* Token buckets of clients, a fixed number: two that fall on one share it. */
struct dns_rates;
struct dns_rates *dns_rates_new(int64_t per_second, uint64_t seed);
struct dns_rates *dns_rates_free(struct dns_rates *r);
bool dns_rates_take(struct dns_rates *r, const struct dns_ip *ip, int64_t now_ms);

/* Questions over UDP of clients that are not known (yet). */
struct dns_held;
typedef void (*dns_held_cb)(void *ctx, struct str bytes, const void *peer);
struct dns_held *dns_held_new(void);
struct dns_held *dns_held_free(struct dns_held *h);
/* False: there is no room, or it is too long. peer: a struct sockaddr_storage; copied. */
bool dns_held_add(struct dns_held *h, const struct dns_ip *ip, struct str bytes, const void *peer,
                  int64_t now_ms);
/* Hands out those of clients that are known now, drops what waited too long; returns how many were
 * dropped. *ret_next: when the next one is due; 0: none waits. */
size_t dns_held_look(struct dns_held *h, const struct dns_view *view, int64_t now_ms,
                     dns_held_cb each, void *ctx, int64_t *ret_next);
