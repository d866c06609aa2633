/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * A domain name in wire format (length, bytes, ..., 0), in lower case: names are equal when their
 * bytes are. A label may contain any byte. */
#pragma once

#include "ip.h"

enum { DNS_NAME_MAX = 255, DNS_LABEL_MAX = 63, DNS_LABELS_MAX = 127 };

struct dns_name {
    uint8_t n; /* bytes, the root's 0 included; 0: no name */
    uint8_t b[DNS_NAME_MAX];
};

/* False unless the bytes are exactly one name. */
bool dns_name_of(struct str wire, struct dns_name *ret);
/* "a.b.c" or "a.b.c."; no escapes. False when a label or the whole is too long, or one is empty. */
bool dns_name_parse(struct str text, struct dns_name *ret);
/* The labels of prefix, then zone; false when that is too long. */
bool dns_name_join(struct str prefix_text, const struct dns_name *zone, struct dns_name *ret);
struct str dns_name_bytes(const struct dns_name *name); /* a view */
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);
bool dns_name_is_under(const struct dns_name *name, const struct dns_name *zone); /* or equal */
/* The labels from the left, views of name; returns how many there are. */
size_t dns_name_labels(const struct dns_name *name, struct str ret[DNS_LABELS_MAX]);
/* The address of a complete name below in-addr.arpa or ip6.arpa. */
bool dns_name_address(const struct dns_name *name, struct dns_ip *ret);
/* For logs: bytes that are not letters, digits, '-' or '_' become '?'. */
struct str dns_name_text(struct arena *a, const struct dns_name *name);
