/* SPDX-License-Identifier: Apache-2.0
 *
 * resource.Quantity: 128 bits of nano units instead of upstream's pair of int64 and big decimal.
 * The grammar below accepts exactly what upstream's ParseQuantity accepts, oddities included
 * (".", "+" and "Mi" are 0, "Ei" is an error), because a tenant's object must be valid here and on
 * the host or on neither. It must never trust the length or the exponent of its input: work is
 * linear in the input and every value saturates. */
#include <sublet/quantity.h>

#include <string.h>

#define NANO      ((__int128)1000000000)
#define NANO_MAX  (NANO * NANO * NANO * NANO * 100) /* 10^29 units: everything saturates here */
#define UNITS_MAX ((__int128)INT64_MAX * NANO)      /* upstream's cap of the binary family */

enum { DECIMAL_DIGITS = 18, BINARY_DIGITS = 15 };

struct suffix {
    char name[3];
    enum quantity_format format;
    int exponent; /* of 10, or of 2 in the binary family */
};

static const struct suffix SUFFIXES[] = {
    {"", QUANTITY_DECIMAL_SI, 0},   {"n", QUANTITY_DECIMAL_SI, -9}, {"u", QUANTITY_DECIMAL_SI, -6},
    {"m", QUANTITY_DECIMAL_SI, -3}, {"k", QUANTITY_DECIMAL_SI, 3},  {"M", QUANTITY_DECIMAL_SI, 6},
    {"G", QUANTITY_DECIMAL_SI, 9},  {"T", QUANTITY_DECIMAL_SI, 12}, {"P", QUANTITY_DECIMAL_SI, 15},
    {"E", QUANTITY_DECIMAL_SI, 18}, {"Ki", QUANTITY_BINARY_SI, 10}, {"Mi", QUANTITY_BINARY_SI, 20},
    {"Gi", QUANTITY_BINARY_SI, 30}, {"Ti", QUANTITY_BINARY_SI, 40}, {"Pi", QUANTITY_BINARY_SI, 50},
    {"Ei", QUANTITY_BINARY_SI, 60},
};

/* A string taken apart: [sign] whole [. fraction] suffix. */
struct parts {
    bool negative;
    struct str whole;    /* without leading zeros; may be empty */
    struct str fraction; /* may be empty */
    bool digits;         /* there was a digit at all */
    enum quantity_format format;
    int64_t exponent;
};

static struct str take_while(struct str *rest, const char *set)
{
    size_t n = 0;

    while (n < rest->n && rest->p[n] != '\0' && strchr(set, rest->p[n]))
        n++;
    struct str taken = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return taken;
}

static bool read_suffix(struct str text, struct parts *ret)
{
    for (size_t i = 0; i < COUNT(SUFFIXES); i++) {
        if (!str_eqc(text, SUFFIXES[i].name))
            continue;
        ret->format = SUFFIXES[i].format;
        ret->exponent = SUFFIXES[i].exponent;
        return true;
    }
    /* "e3", "E-6", "e+09". Upstream keeps the low 32 bits of the number. */
    if (text.n < 2 || (text.p[0] != 'e' && text.p[0] != 'E'))
        return false;

    struct str number = str_from(text, 1);
    if (number.p[0] == '+' && number.n > 1 && number.p[1] != '-')
        number = str_from(number, 1);
    int64_t exponent;
    if (!str_to_i64(number, &exponent))
        return false;

    ret->format = QUANTITY_DECIMAL_EXPONENT;
    ret->exponent = (int32_t)(uint32_t)(uint64_t)exponent;
    return true;
}

static bool split(struct str text, struct parts *ret)
{
    struct str rest = text;

    if (text.n == 0)
        return false;
    ret->negative = rest.p[0] == '-';
    if (ret->negative || rest.p[0] == '+')
        rest = str_from(rest, 1);
    struct str zeros = take_while(&rest, "0");
    ret->whole = take_while(&rest, "0123456789");
    ret->fraction = STR("");
    if (rest.n > 0 && rest.p[0] == '.') {
        rest = str_from(rest, 1);
        ret->fraction = take_while(&rest, "0123456789");
    }
    ret->digits = zeros.n + ret->whole.n + ret->fraction.n > 0;
    return read_suffix(rest, ret);
}

/* Decimal places of the number upstream holds in an int64; below 0 it takes its slow way, which
 * differs where we must follow: it wants a digit, and it caps and reclassifies the binary family.
 */
static int64_t fast_places(const struct parts *p)
{
    size_t whole = p->whole.n > 0 ? p->whole.n : 1;

    if (p->format != QUANTITY_BINARY_SI)
        return DECIMAL_DIGITS - (int64_t)(whole + p->fraction.n);
    if (p->fraction.n > 0)
        return -1;
    return BINARY_DIGITS - (int64_t)whole - p->exponent * 3 / 10 - 1;
}

static bool is_fast(const struct parts *p)
{
    int64_t scale = p->format == QUANTITY_BINARY_SI ? 0 : p->exponent;

    return fast_places(p) >= 0 && scale - (int64_t)p->fraction.n >= -9;
}

/* Magnitudes: a number of nano units that saturates at NANO_MAX. */
static __int128 times(__int128 value, __int128 factor)
{
    __int128 product;

    if (__builtin_mul_overflow(value, factor, &product) || product > NANO_MAX)
        return NANO_MAX;
    return product;
}

/* whole.fraction * 10^exponent in nano units, rounded up. */
static __int128 decimal_nano(const struct parts *p)
{
    int64_t keep = (int64_t)p->whole.n + p->exponent + 9; /* digits that weigh a nano or more */
    int64_t n = (int64_t)(p->whole.n + p->fraction.n);
    __int128 nano = 0;
    bool rest = false;

    for (int64_t i = 0; i < n; i++) {
        size_t at = (size_t)i;
        char c = at < p->whole.n ? p->whole.p[at] : p->fraction.p[at - p->whole.n];
        if (i < keep)
            nano = times(nano, 10) + (c - '0');
        else
            rest = rest || c != '0';
    }
    for (int64_t i = n; i < keep && nano > 0 && nano < NANO_MAX; i++)
        nano = times(nano, 10);
    nano += rest;
    return nano < NANO_MAX ? nano : NANO_MAX;
}

/* whole.fraction * 2^exponent in nano units, rounded up. The fraction is multiplied by hand, from
 * its last digit: each step yields one digit of the product, of which nine count and the others
 * only say whether to round. */
static __int128 binary_nano(const struct parts *p)
{
    __int128 unit = (__int128)1 << p->exponent;
    __int128 whole = 0, carry = 0;
    unsigned char places[9] = {0};
    bool rest = false;

    for (size_t i = 0; i < p->whole.n; i++)
        whole = times(whole, 10) + (p->whole.p[i] - '0');

    for (size_t i = p->fraction.n; i > 0; i--) {
        carry += (p->fraction.p[i - 1] - '0') * unit;
        unsigned char digit = (unsigned char)(carry % 10);
        carry /= 10;
        if (i > sizeof(places))
            rest = rest || digit != 0;
        else
            places[i - 1] = digit;
    }

    int64_t nano = rest;
    for (size_t i = 0, weight = 100000000; i < sizeof(places); i++, weight /= 10)
        nano += (int64_t)(places[i] * weight);
    whole = times(times(whole, unit) + carry, NANO) + nano;
    return whole < UNITS_MAX ? whole : UNITS_MAX;
}

static bool evaluate(const struct parts *p, struct quantity *ret)
{
    bool binary = p->format == QUANTITY_BINARY_SI;
    if (!is_fast(p) && !p->digits)
        return false;

    __int128 nano = binary ? binary_nano(p) : decimal_nano(p);
    ret->format = p->format;
    if (binary && nano > 0 && nano < NANO)
        ret->format = QUANTITY_DECIMAL_SI;
    ret->nano = p->negative ? -nano : nano;
    return true;
}

bool quantity_parse(struct str text, struct quantity *ret)
{
    struct parts parts;

    return split(text, &parts) && evaluate(&parts, ret);
}

/* ---- writing ---- */

static const char *suffix_name(enum quantity_format format, int exponent)
{
    for (size_t i = 0; i < COUNT(SUFFIXES); i++)
        if (SUFFIXES[i].format == format && SUFFIXES[i].exponent == exponent)
            return SUFFIXES[i].name;
    return "";
}

/* Up to 39 digits, written backwards into the end of `to`; returns the first. */
static char *print_digits(char to[static 48], unsigned __int128 value)
{
    char *p = to + 47;

    *p = '\0';
    do {
        *--p = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value > 0);
    return p;
}

static struct str format_decimal(struct arena *a, unsigned __int128 nano, const char *sign,
                                 enum quantity_format format)
{
    bool exponential = format == QUANTITY_DECIMAL_EXPONENT;
    int exponent = -9;
    char digits[48];

    /* Upstream has no suffix above E and would turn 1000E into 1: we stop at E. */
    for (; nano % 1000 == 0 && (exponential || exponent < 18); exponent += 3)
        nano /= 1000;
    const char *number = print_digits(digits, nano);
    if (exponential && exponent != 0)
        return arena_printf(a, "%s%se%d", sign, number, exponent);
    return arena_printf(a, "%s%s%s", sign, number, suffix_name(QUANTITY_DECIMAL_SI, exponent));
}

static struct str format_binary(struct arena *a, unsigned __int128 units, const char *sign)
{
    int exponent = 0;
    char digits[48];

    for (; units % 1024 == 0 && exponent < 60; exponent += 10)
        units /= 1024;
    const char *number = print_digits(digits, units);
    return arena_printf(a, "%s%s%s", sign, number, suffix_name(QUANTITY_BINARY_SI, exponent));
}

struct str quantity_format(struct arena *a, struct quantity q)
{
    unsigned __int128 nano = q.nano < 0 ? -(unsigned __int128)q.nano : (unsigned __int128)q.nano;
    const char *sign = q.nano < 0 ? "-" : "";

    if (nano == 0)
        return STR("0");
    /* Small and fractional values of the binary family are written in the decimal one. */
    bool binary = q.format == QUANTITY_BINARY_SI && nano >= 1024 * (unsigned __int128)NANO &&
                  nano % (unsigned __int128)NANO == 0;
    if (binary)
        return format_binary(a, nano / (unsigned __int128)NANO, sign);
    return format_decimal(a, nano, sign, q.format);
}

/* Upstream keeps the spelling of a number it takes the fast way when a rule of thumb says that it
 * is canonical; the rule lets "+5", "1.500" and "1E3" pass. */
static bool is_kept(const struct parts *p)
{
    size_t n = p->whole.n + p->fraction.n;

    if (!is_fast(p) || p->whole.n == 0)
        return false;
    if (p->format == QUANTITY_BINARY_SI) {
        uint64_t value = 0;
        return str_to_u64(p->whole, &value) && (value & 7) != 0;
    }
    if ((p->exponent - (int64_t)p->fraction.n) % 3 != 0)
        return false;

    unsigned zeros = 0;
    for (size_t i = n; i > 0 && zeros < 3; i--, zeros++)
        if ((i > p->whole.n ? p->fraction.p[i - 1 - p->whole.n] : p->whole.p[i - 1]) != '0')
            break;
    return zeros < 3;
}

bool quantity_text(struct arena *a, struct str text, struct str *ret)
{
    struct str trimmed = str_trim(text);
    struct parts parts;
    struct quantity value;

    if (!split(trimmed, &parts) || !evaluate(&parts, &value))
        return false;
    *ret = is_kept(&parts) ? arena_str(a, trimmed) : quantity_format(a, value);
    return true;
}

/* ---- arithmetic ---- */

int quantity_cmp(struct quantity a, struct quantity b)
{
    return (a.nano > b.nano) - (a.nano < b.nano);
}

static struct quantity sum(struct quantity a, __int128 b, enum quantity_format format_b)
{
    struct quantity r = {.format = a.nano == 0 ? format_b : a.format};

    if (__builtin_add_overflow(a.nano, b, &r.nano))
        r.nano = b < 0 ? -NANO_MAX : NANO_MAX;
    if (r.nano > NANO_MAX)
        r.nano = NANO_MAX;
    if (r.nano < -NANO_MAX)
        r.nano = -NANO_MAX;
    return r;
}

struct quantity quantity_add(struct quantity a, struct quantity b)
{
    return sum(a, b.nano, b.format);
}

struct quantity quantity_sub(struct quantity a, struct quantity b)
{
    return sum(a, -b.nano, b.format);
}

struct quantity quantity_from_i64(int64_t units, enum quantity_format format)
{
    return (struct quantity){.nano = units * NANO, .format = format};
}

bool quantity_is_integer(struct quantity q)
{
    return q.nano % NANO == 0;
}

/* Away from zero, clipped to 64 bits. */
static int64_t in_units_of(__int128 nano, __int128 unit)
{
    __int128 whole = nano / unit;

    if (nano % unit != 0)
        whole += nano > 0 ? 1 : -1;
    if (whole > INT64_MAX)
        return INT64_MAX;
    return whole < INT64_MIN ? INT64_MIN : (int64_t)whole;
}

int64_t quantity_units(struct quantity q)
{
    return in_units_of(q.nano, NANO);
}

int64_t quantity_milli(struct quantity q)
{
    return in_units_of(q.nano, NANO / 1000);
}

static bool parse_node(struct arena *a, const cJSON *node, struct quantity *ret)
{
    return quantity_parse(json_is_number(node) ? json_text(a, node) : json_str(node), ret);
}

bool quantity_equal(struct arena *a, const cJSON *x, const cJSON *y)
{
    struct quantity one, two;

    if (!x || !y)
        return false;
    if (!parse_node(a, x, &one) || !parse_node(a, y, &two))
        return json_equal(x, y);
    return quantity_cmp(one, two) == 0;
}
