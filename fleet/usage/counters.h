/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The counters of the ledger (counter_book.h) for the loop: counted on a thread of its own, at most
 * twice a minute, and only on demand. */
#pragma once

#include <sublet/buf.h>
#include <sublet/clock.h>

struct uv_loop_s;
struct counters;
struct counters_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct str directory; /* of what was shown */
    struct str location;  /* of the ledger */
    uint64_t identity;    /* the ledger's */
};
struct counters *fleet_counters_new(const struct counters_options *options);
/* What is under way ends unheard. Takes NULL, returns NULL. */
struct counters *fleet_counters_free(struct counters *c);

/* Counts until then, unless the last count is recent, or one is under way. The others take NULL. */
void fleet_counters_ask(struct counters *c, int64_t seen_us);
/* What was counted last; nothing before the first time. A copy of at most a few MB. */
void fleet_counters_metrics(const struct counters *c, struct buf *out);
/* Series that there are not, of a family. */
size_t fleet_counters_refused(const struct counters *c);
