/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact fractions for shares of a GPU: a third of a device charged three times is one device, which
 * no binary or decimal fraction can promise. Nothing here rounds; what does not fit in 64 bits is
 * refused. */
#include <sublet/rational.h>

/* Decimals are written with so many places at most, so that 64 bits of them can be read back. */
enum { PLACES_MAX = 17 };
#define DIGITS_MAX ((__int128)1000000000000000000 * 1000000000000000000) /* of 36 digits */

static unsigned __int128 magnitude(__int128 v)
{
    return v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
}

static unsigned __int128 gcd(unsigned __int128 a, unsigned __int128 b)
{
    while (b != 0) {
        unsigned __int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* num / den in lowest terms; den > 0. */
static bool reduce(__int128 num, __int128 den, struct rational *ret)
{
    __int128 divisor = (__int128)gcd(magnitude(num), magnitude(den));

    num /= divisor;
    den /= divisor;
    if (num > INT64_MAX || num < -(__int128)INT64_MAX || den > INT64_MAX)
        return false;
    *ret = (struct rational){.num = (int64_t)num, .den = (int64_t)den};
    return true;
}

/* Digits only, at least one. Zeros at the end of a fraction are cut before they can overflow. */
static bool read_digits(struct str text, __int128 *value, __int128 *weight)
{
    *weight = 1;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || *value > DIGITS_MAX || *weight > DIGITS_MAX)
            return false;
        *value = *value * 10 + (text.p[i] - '0');
        *weight *= 10;
    }
    return text.n > 0;
}

static bool parse_decimal(struct str text, __int128 *num, __int128 *den)
{
    size_t point = str_find(text, '.');
    struct str fraction = str_from(text, point + 1);
    __int128 unused;

    *den = 1;
    if (!read_digits(str_sub(text, 0, point), num, &unused))
        return false;
    if (point == text.n)
        return true;
    if (fraction.n == 0)
        return false;
    while (fraction.n > 1 && fraction.p[fraction.n - 1] == '0')
        fraction.n--;
    return read_digits(fraction, num, den);
}

bool rational_parse(struct str text, struct rational *ret)
{
    bool negative = text.n > 0 && text.p[0] == '-';
    struct str body = negative ? str_from(text, 1) : text;
    size_t slash = str_find(body, '/');
    __int128 num = 0, den = 0, unused;

    if (slash < body.n) {
        if (!read_digits(str_sub(body, 0, slash), &num, &unused) ||
            !read_digits(str_from(body, slash + 1), &den, &unused) || den == 0)
            return false;
    } else if (!parse_decimal(body, &num, &den)) {
        return false;
    }
    return reduce(negative ? -num : num, den, ret);
}

struct str rational_format(struct arena *a, struct rational r)
{
    unsigned __int128 den = (unsigned __int128)r.den, top = magnitude(r.num), rest = top % den;
    char digits[PLACES_MAX];
    int n = 0;

    if (r.den == 1)
        return arena_printf(a, "%lld", (long long)r.num);
    for (; rest != 0 && n < PLACES_MAX; rest %= den) {
        rest *= 10;
        digits[n++] = (char)('0' + (int)(rest / den));
    }
    if (rest != 0)
        return arena_printf(a, "%lld/%lld", (long long)r.num, (long long)r.den);
    return arena_printf(a, "%s%llu.%.*s", r.num < 0 ? "-" : "", (unsigned long long)(top / den), n,
                        digits);
}

/* Products of two 64-bit numbers below 2^63 in size stay below 2^126, so a sum of two cannot
 * overflow. */
bool rational_add(struct rational a, struct rational b, struct rational *ret)
{
    return reduce((__int128)a.num * b.den + (__int128)b.num * a.den, (__int128)a.den * b.den, ret);
}

bool rational_sub(struct rational a, struct rational b, struct rational *ret)
{
    return reduce((__int128)a.num * b.den - (__int128)b.num * a.den, (__int128)a.den * b.den, ret);
}

bool rational_mul(struct rational a, struct rational b, struct rational *ret)
{
    return reduce((__int128)a.num * b.num, (__int128)a.den * b.den, ret);
}

void rational_add_most(struct rational *sum, struct rational more)
{
    bool full = sum->num == INT64_MAX && sum->den == 1;

    if (full || !rational_add(*sum, more, sum))
        *sum = RATIONAL_MOST;
}

int64_t i64_add_most(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

int rational_cmp(struct rational a, struct rational b)
{
    __int128 left = (__int128)a.num * b.den, right = (__int128)b.num * a.den;

    return (left > right) - (left < right);
}
