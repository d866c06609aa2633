/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * A domain name in the form of the wire (length, bytes, ..., 0), in lower case: two are equal when
 * their bytes are. Labels may hold any byte. */
#pragma once

#include "ip.h"

enum { DNS_NAME_MAX = 255, DNS_LABEL_MAX = 63, DNS_LABELS_MAX = 127 };

struct dns_name {
    uint8_t n; /* bytes, the root's 0 included; 0: no name */
    uint8_t b[DNS_NAME_MAX];
};

/* False for bytes that are not one whole name. */
bool dns_name_of(struct str wire, struct dns_name *ret);
/* "a.b.c" or "a.b.c."; no escapes. False when a label or the whole is too long, or one is empty. */
bool dns_name_parse(struct str text, struct dns_name *ret);
/* prefix and then all of zone; false when that is too long. */
bool dns_name_join(struct str prefix_text, const struct dns_name *zone, struct dns_name *ret);
struct str dns_name_bytes(const struct dns_name *name); /* a view */
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);
bool dns_name_is_under(const struct dns_name *name, const struct dns_name *zone); /* or equal */
/* The labels from the left, views of name; returns how many there are. */
size_t dns_name_labels(const struct dns_name *name, struct str ret[DNS_LABELS_MAX]);
/* The address that a whole name below in-addr.arpa or ip6.arpa stands for. */
bool dns_name_address(const struct dns_name *name, struct dns_ip *ret);
/* For reading: bytes that are no letters, digits, '-' or '_' as '?'. */
struct str dns_name_text(struct arena *a, const struct dns_name *name);
