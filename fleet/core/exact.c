/* SPDX-License-Identifier: Apache-2.0 */
/* Fractions of 128-bit numbers. Why: sums over a year of microseconds, thousands of devices, shares
 * of a seventh and a price pass 64 bits, and a bill may not round before its end. Must refuse what
 * does not fit, never wrap. */
#include <sublet/fleet_usage.h>

static unsigned __int128 magnitude(__int128 v)
{
    return v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
}

static uint64_t gcd64(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a;
}

/* Division of 128 bits costs ten times as much as that of 64: it is left as soon as both fit. */
static __int128 gcd(__int128 x, __int128 y)
{
    unsigned __int128 a = magnitude(x), b = magnitude(y);

    while (b != 0) {
        if (a <= UINT64_MAX && b <= UINT64_MAX)
            return gcd64((uint64_t)a, (uint64_t)b);
        unsigned __int128 remainder = a % b;
        a = b;
        b = remainder;
    }
    return (__int128)a;
}

static struct exact reduced(__int128 num, __int128 den)
{
    __int128 divisor = den == 1 ? 1 : gcd(num, den);

    if (divisor == 1)
        return (struct exact){num, den};
    return (struct exact){num / divisor, den / divisor};
}

struct exact exact_of(struct rational r)
{
    return (struct exact){r.num, r.den};
}

bool exact_add(struct exact a, struct exact b, struct exact *ret)
{
    __int128 common, left, right, den;

    if (a.den == b.den) {
        if (__builtin_add_overflow(a.num, b.num, &left))
            return false;
        *ret = reduced(left, a.den);
        return true;
    }
    common = gcd(a.den, b.den);
    if (__builtin_mul_overflow(a.num, b.den / common, &left) ||
        __builtin_mul_overflow(b.num, a.den / common, &right) ||
        __builtin_mul_overflow(a.den / common, b.den, &den) ||
        __builtin_add_overflow(left, right, &left))
        return false;
    *ret = reduced(left, den);
    return true;
}

bool exact_sub(struct exact a, struct exact b, struct exact *ret)
{
    return exact_add(a, (struct exact){-b.num, b.den}, ret);
}

bool exact_mul(struct exact a, struct exact b, struct exact *ret)
{
    struct exact x = reduced(a.num, b.den), y = reduced(b.num, a.den), product;

    if (__builtin_mul_overflow(x.num, y.num, &product.num) ||
        __builtin_mul_overflow(x.den, y.den, &product.den))
        return false;
    *ret = product;
    return true;
}

static bool is_short(struct exact v)
{
    return v.num == (int64_t)v.num && v.den == (int64_t)v.den;
}

/* By the products where they fit, as they mostly do; otherwise by the digits of the two continued
 * fractions: no product that could overflow. */
int exact_cmp(struct exact a, struct exact b)
{
    int sign = 1;

    if (is_short(a) && is_short(b)) {
        __int128 x = a.num * b.den, y = b.num * a.den;

        return (x > y) - (x < y);
    }
    for (;;) {
        __int128 x = a.num / a.den, y = b.num / b.den, x_rest = a.num % a.den,
                 y_rest = b.num % b.den;

        if (x_rest < 0) {
            x--;
            x_rest += a.den;
        }
        if (y_rest < 0) {
            y--;
            y_rest += b.den;
        }
        if (x != y)
            return x < y ? -sign : sign;
        if (x_rest == 0 || y_rest == 0)
            return sign * ((x_rest > 0) - (y_rest > 0));
        a = (struct exact){a.den, x_rest};
        b = (struct exact){b.den, y_rest};
        sign = -sign;
    }
}

/* At the end of a buffer; returns where it begins. */
static char *print_digits(char *end, unsigned __int128 v)
{
    do {
        *--end = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v != 0);
    return end;
}

static struct str integer(struct arena *a, __int128 v)
{
    char digits[48], *end = digits + sizeof(digits), *begin = print_digits(end, magnitude(v));

    if (v < 0)
        *--begin = '-';
    return arena_str(a, (struct str){begin, (size_t)(end - begin)});
}

struct str exact_fraction(struct arena *a, struct exact v)
{
    if (v.den == 1)
        return integer(a, v.num);
    return arena_printf(a, "%.*s/%.*s", STR_F(integer(a, v.num)), STR_F(integer(a, v.den)));
}

static bool parse_digits(struct str digits, __int128 *ret)
{
    __int128 v = 0;

    for (size_t i = 0; i < digits.n; i++)
        if (digits.p[i] < '0' || digits.p[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, digits.p[i] - '0', &v))
            return false;
    *ret = v;
    return digits.n > 0;
}

bool exact_parse(struct arena *a, struct str fraction, struct exact *ret)
{
    struct str den = fraction, num = str_cut(&den, '/');
    struct exact v = {0, 1};

    if (!parse_digits(num, &v.num) || (den.p && !parse_digits(den, &v.den)) || v.den == 0)
        return false;
    v = reduced(v.num, v.den);
    if (!str_eq(exact_fraction(a, v), fraction))
        return false;
    *ret = v;
    return true;
}

/* *rest * 10 / den, whose product may not fit: *rest < den. */
static unsigned next_digit(unsigned __int128 *rest, unsigned __int128 den)
{
    unsigned __int128 sum = 0;
    unsigned digit = 0;

    for (int i = 0; i < 10; i++) {
        if (sum >= den - *rest) {
            sum -= den - *rest;
            digit++;
        } else {
            sum += *rest;
        }
    }
    *rest = sum;
    return digit;
}

struct str exact_decimal(struct arena *a, struct exact v, unsigned places)
{
    unsigned __int128 den = (unsigned __int128)v.den, top = magnitude(v.num);
    unsigned __int128 whole = top / den, rest = top % den;
    uint64_t fraction = 0, scale = 1;

    for (unsigned i = 0; i < places; i++, scale *= 10)
        fraction = fraction * 10 + next_digit(&rest, den);
    if (next_digit(&rest, den) >= 5 && ++fraction == scale) {
        fraction = 0;
        whole++;
    }
    const char *sign = v.num < 0 && (whole != 0 || fraction) ? "-" : "";
    struct str digits = integer(a, (__int128)whole);
    if (!places)
        return arena_printf(a, "%s%.*s", sign, STR_F(digits));
    return arena_printf(a, "%s%.*s.%0*llu", sign, STR_F(digits), (int)places,
                        (unsigned long long)fraction);
}
