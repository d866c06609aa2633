/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Writes that the host refuses for what they are: by a policy, a webhook, a missing right. Such a
 * refusal is a fact about one object, or of a ResourceQuota about the part of one pool: it is shown
 * and tried again after pauses that grow, and no other write waits for it. */
#pragma once

#include <sublet/buf.h>
#include <sublet/err.h>

#include "grant_write.h"

struct refusals;
struct refusals *fleet_refusals_new(void);
struct refusals *fleet_refusals_free(struct refusals *r); /* takes NULL, returns NULL */

/* Is it about the request, not about its time? A conflict is not, nor is an object that is gone. An
 * internal error is: a webhook that the host cannot call answers so for one kind or namespace. */
bool fleet_is_refusal(const struct err *err);
/* What a write wants of the object: the same for two writes if only their versions differ, or, of a
 * status, all but the grant. */
uint64_t fleet_refusals_wish(struct arena *a, const struct grant_write *w);

/* part: of a ResourceQuota, the pool whose share of it changes; else empty. True: nothing was known
 * of it before, which is worth a line of the log. */
bool fleet_refusals_note(struct refusals *r, struct str path, struct str part, uint64_t wish,
                         struct str why, int64_t now_ms);
void fleet_refusals_taken(struct refusals *r, struct str path, struct str part);
/* Milliseconds until this wish is to be sent; 0: now. It is wanted still. */
int64_t fleet_refusals_wait(struct refusals *r, struct str path, struct str part, uint64_t wish,
                            int64_t now_ms);
/* What the host has against it; empty: nothing. */
struct str fleet_refusals_why(const struct refusals *r, struct str path, struct str part);
/* Forgets what was not wanted since the last time. True: there was any. */
bool fleet_refusals_forget(struct refusals *r);
size_t fleet_refusals_count(const struct refusals *r);
void fleet_refusals_metrics(const struct refusals *r, struct buf *out);
