/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Who may read what `sublet fleet` shows: the host decides. A bearer token goes to a TokenReview,
 * its user to a SubjectAccessReview: of `get` on one non-resource path, or of `create` pods in a
 * namespace, which only the process of its tenant may. A permission is kept for 10
 * seconds, a refusal for 2, in bounded memory. */
#pragma once

#include <sublet/clock.h>
#include <sublet/err.h>

struct host;
struct reviews;
struct review; /* one under way */

struct reviews_options {
    const struct clock *clock;
    struct host *host;
    struct str path;     /* "/fleet/state" */
    struct str audience; /* that a token must be for; empty: the host's API server */
};
struct reviews *fleet_reviews_new(const struct reviews_options *options);
/* Every review is cancelled before. Takes NULL, returns NULL. */
struct reviews *fleet_reviews_free(struct reviews *r);

enum review_verdict {
    REVIEW_ALLOWED,
    REVIEW_UNAUTHENTICATED,
    REVIEW_FORBIDDEN,
    REVIEW_UNKNOWN, /* the host did not answer, or does not permit the reviews */
};
/* ns: pods of which namespace; empty: the path. True: a verdict that is kept; of ret_ms on the
 * monotonic clock. */
bool fleet_reviews_recall(const struct reviews *r, struct str token, struct str ns,
                          enum review_verdict *ret, int64_t *ret_ms);
/* Sends the reviews to the host. why: for REVIEW_FORBIDDEN and REVIEW_UNKNOWN, what it said; good
 * until done() returns. done() comes once, from the loop, unless the review is cancelled. again: of
 * a token that was permitted before, for which places are kept free. NULL: too many under way. */
typedef void (*review_done_cb)(void *ctx, enum review_verdict verdict, struct str why);
struct review *fleet_reviews_ask(struct reviews *r, struct str token, struct str ns, bool again,
                                 review_done_cb done, void *ctx);
void fleet_review_cancel(struct review *v); /* takes NULL; no callback after it */
