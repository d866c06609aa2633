/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * A rate with a burst, exact in integers. Times are of any one clock and unit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* `n` tokens in each `period`, and at most `burst` at once; all of them at least 1. */
struct token_rate {
    int64_t burst, n, period;
};

/* Zeroed: it is full, whatever the time. The rate is that of each call: one that changed is met
 * from now on. */
struct token_bucket {
    int64_t missing; /* in tokens / period */
    int64_t at;      /* when that was; a clock that steps back earns nothing and costs nothing */
};

/* Are there so many tokens? */
bool token_bucket_has(struct token_bucket *b, const struct token_rate *rate, int64_t now,
                      int64_t tokens);
/* Takes one, or false: there is none. */
bool token_bucket_take(struct token_bucket *b, const struct token_rate *rate, int64_t now);
/* When there are so many, if none is taken before; now: there are. Of more than the burst there
 * never are: INT64_MAX. */
int64_t token_bucket_when(struct token_bucket *b, const struct token_rate *rate, int64_t now,
                          int64_t tokens);
