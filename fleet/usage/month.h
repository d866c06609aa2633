/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the present month used and costs until now, and the last day, out of the ledger: read and
 * computed on a thread of its own, at most once a minute, and only on demand. */
#pragma once

#include <sublet/clock.h>
#include <sublet/fleet_usage.h>

struct uv_loop_s;
struct month;
struct month_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct str location;        /* of the ledger */
    void (*changed)(void *ctx); /* from the loop: there is a newer one */
    void *ctx;
};
struct month *fleet_month_new(const struct month_options *options);
/* What is under way ends unheard. Takes NULL, returns NULL. */
struct month *fleet_month_free(struct month *m);

/* Seconds since 1970: the time whose month counts (month_clock.h). */
int64_t fleet_month_now_s(struct month *m);
/* Computes it anew unless the last one is recent, or one is under way. */
void fleet_month_ask(struct month *m);
/* By tenant and pool; NULL: not computed yet. Good until control returns to the loop. */
const struct usage *fleet_month_usage(const struct month *m);
/* The same of the 24 hours before, whatever month they are in. */
const struct usage *fleet_month_day(const struct month *m);
/* A time of the month that it is of. */
int64_t fleet_month_us(const struct month *m);
/* Since one was computed; before that, since this was made. */
int64_t fleet_month_unread_s(const struct month *m);
/* Why the last one could not be computed; empty: it could. */
struct str fleet_month_trouble(const struct month *m);
