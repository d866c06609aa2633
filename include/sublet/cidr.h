/* SPDX-License-Identifier: Apache-2.0
 * room: kube
 *
 * Ranges of addresses, to compare what a tenant names with what an admin lists. */
#pragma once

#include <sublet/str.h>

struct cidr {
    bool v6;
    unsigned bits;           /* of the prefix */
    unsigned char bytes[16]; /* the first 4 of IPv4 */
};
/* "10.0.0.0/8", "fd00::/8"; an address alone is a range of one. An IPv4 range written as IPv6
 * (::ffff:10.0.0.0/104) is IPv4. */
bool cidr_parse(struct str text, struct cidr *ret);
/* Is every address of inner in outer? */
bool cidr_within(const struct cidr *inner, const struct cidr *outer);
bool cidr_overlap(const struct cidr *one, const struct cidr *other);
