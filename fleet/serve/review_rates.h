/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * How often the host reviews tokens that come for the series of a tenant. Whoever reaches
 * the port chooses token and namespace, so what is sent to the host is bounded for each address,
 * for each namespace and for all of them. The token that the host last permitted for a namespace
 * has a rate of its own, and so has the address it came from, where its successor comes from:
 * others cannot use them up. Pure; times are milliseconds of one monotonic clock. */
#pragma once

#include <sublet/str.h>

struct fleet_review_rates;
struct fleet_review_rates *fleet_review_rates_new(void);
struct fleet_review_rates *fleet_review_rates_free(struct fleet_review_rates *r); /* takes NULL */

enum review_leave {
    REVIEW_NOT_NOW,
    REVIEW_OF_UNKNOWN,
    REVIEW_OF_KNOWN /* the token, or one from its address, was permitted before */
};
/* May a review be sent? It is counted if so. peer: "10.0.0.1:1234", "[fd00::1]:1234". */
enum review_leave fleet_review_rates_take(struct fleet_review_rates *r, struct str ns,
                                          struct str token, struct str peer, int64_t now_ms);
/* What the host said of it. A refusal forgets the token. */
void fleet_review_rates_note(struct fleet_review_rates *r, struct str ns, struct str token,
                             struct str peer, bool permitted);
