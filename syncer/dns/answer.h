/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Question in, answer out: the names of the tenant, as CoreDNS' kubernetes and hosts plugins answer
 * them, and the decision that another server has to be asked. Pure. */
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
    DNS_FORWARD, /* *ret_upstream has to be asked for what *at names; ret holds what comes first */
};
/* turn: another one puts another address first. at: in: the question; out: what is left to ask,
 * behind aliases. ret is initialised by this. */
enum dns_outcome dns_answer_question(struct arena *a, const struct dns_view *view,
                                     const struct dns_query *q, unsigned turn,
                                     struct dns_answer *ret, struct dns_query *at,
                                     const struct dns_upstream **ret_upstream);
/* What another server said to *at, appended to what came first. Names that are not the tenant's to
 * know make it a name that does not exist. from is emptied. */
void dns_answer_append(const struct dns_view *view, const struct dns_query *at,
                       const struct dns_upstream *upstream, struct dns_answer *to,
                       struct dns_answer *from);
