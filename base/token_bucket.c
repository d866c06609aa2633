/* SPDX-License-Identifier: Apache-2.0 */
/* Why in parts of a token: rounding to whole tokens, or to what a double holds, would lose or
 * invent some at each call, and this is called most where the rate matters. */
#include <sublet/token_bucket.h>

#include <assert.h>

/* A burst whose parts no number holds is smaller: nothing is ever waited for so long. */
static int64_t burst_of(const struct token_rate *rate)
{
    assert(rate->burst > 0 && rate->n > 0 && rate->period > 0);
    return rate->burst < INT64_MAX / rate->period ? rate->burst : INT64_MAX / rate->period;
}

static void refill(struct token_bucket *b, const struct token_rate *rate, int64_t now)
{
    int64_t passed, earned, most = burst_of(rate) * rate->period;

    if (b->missing > most)
        b->missing = most; /* the rate was another */
    if (now > b->at && !__builtin_sub_overflow(now, b->at, &passed) &&
        !__builtin_mul_overflow(passed, rate->n, &earned))
        b->missing = earned < b->missing ? b->missing - earned : 0;
    else if (now > b->at)
        b->missing = 0;
    b->at = now;
}

/* How much lacks of so many tokens, 0 to the burst; <= 0: nothing. */
static int64_t lacking(const struct token_bucket *b, const struct token_rate *rate, int64_t tokens)
{
    return b->missing - (burst_of(rate) - tokens) * rate->period;
}

bool token_bucket_has(struct token_bucket *b, const struct token_rate *rate, int64_t now,
                      int64_t tokens)
{
    refill(b, rate, now);
    return tokens <= burst_of(rate) && lacking(b, rate, tokens) <= 0;
}

bool token_bucket_take(struct token_bucket *b, const struct token_rate *rate, int64_t now)
{
    if (!token_bucket_has(b, rate, now, 1))
        return false;
    b->missing += rate->period;
    return true;
}

int64_t token_bucket_when(struct token_bucket *b, const struct token_rate *rate, int64_t now,
                          int64_t tokens)
{
    int64_t lack, ret;

    if (token_bucket_has(b, rate, now, tokens))
        return now;
    lack = tokens > burst_of(rate) ? 0 : lacking(b, rate, tokens);
    if (!lack || __builtin_add_overflow(now, lack / rate->n + (lack % rate->n != 0), &ret))
        return INT64_MAX;
    return ret;
}
