/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Resolves a query: names of the tenant, as CoreDNS' kubernetes and hosts plugins answer them, and
 * the decision to forward to another server. Pure. */
#pragma once

#include "message.h"
#include "policy.h"
#include "zone.h"

#define DNS_TTL 5u /* seconds, of everything that comes from the tenant's objects; as CoreDNS */

struct dns_view {
    const struct dns_zone *zone;
    const struct dns_policy *policy;
};

enum dns_outcome {
    DNS_DONE,    /* ret is the answer */
    DNS_FORWARD, /* *at is to be sent to *ret_upstream; ret holds the aliases that lead to it */
};
/* client: who sent it. turn: rotates the addresses. *at: the query that is left to be resolved,
 * after aliases. ret is initialised by this. */
enum dns_outcome dns_answer_query(struct arena *a, const struct dns_view *view,
                                  const struct dns_query *q, const struct dns_ip *client,
                                  unsigned turn, struct dns_answer *ret, struct dns_query *at,
                                  const struct dns_upstream **ret_upstream);
/* Appends another server's answer to *at. One that contains names of the host's cluster becomes
 * NXDOMAIN. from is emptied. */
void dns_answer_append(const struct dns_view *view, const struct dns_query *at,
                       const struct dns_upstream *upstream, struct dns_answer *to,
                       struct dns_answer *from);
