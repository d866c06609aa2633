/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Addresses of both families as one value: IPv4 as ::ffff:a.b.c.d, so that one map holds them and a
 * dual-stack socket's sources compare as they are. */
#pragma once

#include <sublet/mem.h>

struct sockaddr;
struct sockaddr_storage;

struct dns_ip {
    uint8_t b[16];
};

bool dns_ip_parse(struct str text, struct dns_ip *ret);
void dns_ip_of(const struct sockaddr *from, struct dns_ip *ret);
bool dns_ip_is_v4(const struct dns_ip *ip);
bool dns_ip_eq(const struct dns_ip *a, const struct dns_ip *b);
struct str dns_ip_bytes(const struct dns_ip *ip); /* 4 or 16 of them: a view */
struct str dns_ip_text(struct arena *a, const struct dns_ip *ip);
/* Not of the public internet: private, shared, link-local, loopback (RFC 6303 and 6761). */
bool dns_ip_is_private(const struct dns_ip *ip);

struct dns_range {
    struct dns_ip ip;
    unsigned bits; /* of 128 */
};
bool dns_range_parse(struct str text, struct dns_range *ret); /* "10.0.0.0/8", "fd00::1" */
bool dns_range_has(const struct dns_range *range, const struct dns_ip *ip);

/* "10.0.0.1", "10.0.0.1:5353", "fd00::1", "[fd00::1]:5353"; port 53 unless given. */
struct dns_endpoint {
    struct dns_ip ip;
    unsigned port;
};
bool dns_endpoint_parse(struct str text, struct dns_endpoint *ret);
void dns_endpoint_sockaddr(const struct dns_endpoint *e, struct sockaddr_storage *ret);
