/* SPDX-License-Identifier: Apache-2.0 */
/* Products of fractions as money. Why: a price times a share of a GPU times a number of pods may
 * exceed 64 bits in any of them, and what is shown must be the exact product, rounded once. Must
 * never round on the way. */
#include <sublet/rational.h>

#include <assert.h>

#define PLACES     6
#define PLACES_MIN 2
#define SCALE      UINT64_C(1000000)
/* 2 * SCALE * 2^63 ^ RATIONAL_FACTORS has 273 bits, and as many denominators have 252. */
#define LIMBS  10
#define DIGITS 100

struct big {
    uint32_t limbs[LIMBS]; /* the lowest first */
};

static void multiply(struct big *b, int64_t by)
{
    unsigned __int128 carry = 0;

    for (size_t i = 0; i < LIMBS; i++) {
        carry += (unsigned __int128)b->limbs[i] * (uint64_t)by;
        b->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    assert(!carry);
}

static void add(struct big *b, const struct big *more)
{
    uint64_t carry = 0;

    for (size_t i = 0; i < LIMBS; i++) {
        carry += (uint64_t)b->limbs[i] + more->limbs[i];
        b->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    assert(!carry);
}

/* Rounded down; returns what is left. */
static uint64_t divide(struct big *b, int64_t by)
{
    unsigned __int128 rest = 0;

    for (size_t i = LIMBS; i-- > 0;) {
        rest = rest << 32 | b->limbs[i];
        b->limbs[i] = (uint32_t)(rest / (uint64_t)by);
        rest %= (uint64_t)by;
    }
    return (uint64_t)rest;
}

static bool is_zero(const struct big *b)
{
    uint32_t any = 0;

    for (size_t i = 0; i < LIMBS; i++)
        any |= b->limbs[i];
    return !any;
}

/* Of a whole number of millionths; uses it up. */
static struct str print(struct arena *a, struct big *micros)
{
    char digits[DIGITS];
    size_t at = DIGITS, end = DIGITS;

    for (size_t places = 0; places <= PLACES || !is_zero(micros); places++) {
        assert(at > 1);
        if (places == PLACES)
            digits[--at] = '.';
        digits[--at] = (char)('0' + divide(micros, 10));
    }
    while (digits[end - 1] == '0' && digits[end - PLACES_MIN - 1] != '.')
        end--;
    return arena_str(a, (struct str){digits + at, end - at});
}

struct str rational_money(struct arena *a, const struct rational *factors, size_t n)
{
    struct big twice = {{2}}, half = {{1}};

    assert(n <= RATIONAL_FACTORS);
    multiply(&twice, SCALE);
    for (size_t i = 0; i < n; i++) {
        assert(factors[i].num >= 0 && factors[i].den > 0);
        multiply(&twice, factors[i].num);
        multiply(&half, factors[i].den);
    }
    add(&twice, &half); /* (2 num + den) / (2 den), rounded down, is num / den, rounded half up */
    (void)divide(&twice, 2);
    for (size_t i = 0; i < n; i++)
        (void)divide(&twice, factors[i].den);
    return print(a, &twice);
}
