/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Which month it is, for what a month may cost. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MONTH_CLOCK_SETTLES_MS INT64_C(600000)

/* All zero: it goes by the next reading. */
struct month_clock {
    int64_t wall_ms, mono_ms; /* as it was last believed */
    int64_t off_ms, since_ms; /* how far the clock of the host is from it, and since when; or 0 */
};
/* Seconds since 1970. A clock that is set to another month counts only once it has kept that for
 * ten minutes: until then this one runs on. */
int64_t fleet_month_clock(struct month_clock *c, int64_t wall_ms, int64_t mono_ms);
/* In UTC. */
bool fleet_is_one_month(int64_t a_s, int64_t b_s);
