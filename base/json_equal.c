/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as exact decimals, and equality. Why: an update that changes nothing must be seen as such
 * whatever the order of its members and the spelling of its numbers. Must never compare through a
 * double what a literal gives exactly, nor take quadratic time over a large object. */

#include <sublet/json.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_impl.h"

/* 0.<digits> x 10^exponent without zeros at either end; zero has no digits and no sign. The digits
 * may hold one '.', which does not count. */
struct decimal {
    bool minus;
    const char *digits;
    size_t n;
    int64_t exponent;
};

/* Exponents beyond any finite double are cut, so that sums cannot overflow. */
static int64_t read_exponent(const char *p)
{
    long value = strtol(p, NULL, 10);

    if (value > INT_MAX)
        return INT_MAX;
    return value < INT_MIN ? INT_MIN : value;
}

static struct decimal decimal_of(const char *literal)
{
    struct decimal d = {.minus = *literal == '-'};
    const char *p = literal + d.minus, *end = p + strcspn(p, "eE");
    const char *dot = memchr(p, '.', (size_t)(end - p));

    d.exponent = (dot ? dot : end) - p;
    while (p < end && (*p == '0' || *p == '.')) {
        d.exponent -= *p == '0';
        p++;
    }
    if (*end)
        d.exponent += read_exponent(end + 1);
    while (end > p && (end[-1] == '0' || end[-1] == '.'))
        end--;

    if (p == end)
        return (struct decimal){0};
    d.digits = p;
    d.n = (size_t)(end - p);
    return d;
}

/* The literal of a number node; one that has none gets it printed into out. */
static const char *literal_of(const cJSON *node, char out[32])
{
    if (node->valuestring)
        return node->valuestring;
    json_format_double(node->valuedouble, out);
    return out;
}

/* The next digit at *p, over a dot; -1 at the end. */
static int next_digit(const char **p, const char *end)
{
    if (*p < end && **p == '.')
        ++*p;
    return *p < end ? *(*p)++ - '0' : -1;
}

static bool decimal_equal(struct decimal a, struct decimal b)
{
    const char *p = a.digits, *q = b.digits;
    int x, y;

    if (a.n == 0 || b.n == 0)
        return a.n == b.n;
    if (a.minus != b.minus || a.exponent != b.exponent)
        return false;
    do {
        x = next_digit(&p, a.digits + a.n);
        y = next_digit(&q, b.digits + b.n);
    } while (x == y && x >= 0);
    return x == y;
}

static bool decimal_i64(struct decimal d, int64_t *ret)
{
    const char *p = d.digits, *end = d.n ? p + d.n : p; /* zero has no digits */
    uint64_t value = 0;

    if (d.n && (d.exponent <= 0 || d.exponent > 19))
        return false;
    for (int64_t i = 0; d.n && i < d.exponent; i++) {
        int digit = next_digit(&p, end);

        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit < 0 ? 0u : (unsigned)digit, &value))
            return false;
    }
    if (d.n && next_digit(&p, end) >= 0)
        return false; /* a fraction is left */
    if (value > (uint64_t)INT64_MAX + d.minus)
        return false;
    *ret = d.minus ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool json_i64(const cJSON *node, int64_t *ret)
{
    double value;

    if (!json_is_number(node))
        return false;
    if (node->valuestring)
        return decimal_i64(decimal_of(node->valuestring), ret);
    value = node->valuedouble;
    if (!(value >= -0x1p63 && value < 0x1p63) || value != trunc(value))
        return false;
    *ret = (int64_t)value;
    return true;
}

static bool number_equal(const cJSON *a, const cJSON *b)
{
    char x[32], y[32];

    if (!a->valuestring && !b->valuestring)
        return a->valuedouble == b->valuedouble;
    if (!isfinite(a->valuedouble) || !isfinite(b->valuedouble))
        return false;
    return decimal_equal(decimal_of(literal_of(a, x)), decimal_of(literal_of(b, y)));
}

static bool equal_at(const cJSON *a, const cJSON *b, unsigned depth);

struct member {
    const cJSON *node;
};

static int by_key(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    return strcmp(x->node->string, y->node->string);
}

/* The n members from `from` on, by key. */
static struct member *sorted(const cJSON *from, size_t n)
{
    struct member *list = mem_alloc(n * sizeof *list);

    for (size_t i = 0; from; from = from->next)
        list[i++].node = from;
    qsort(list, n, sizeof *list, by_key);
    return list;
}

/* n members from a on and as many from b on, in any order. */
static bool large_equal(const cJSON *a, const cJSON *b, size_t n, unsigned depth)
{
    struct member *x = sorted(a, n), *y = sorted(b, n);
    bool equal = true;

    for (size_t i = 0; equal && i < n; i++)
        equal = strcmp(x[i].node->string, y[i].node->string) == 0;
    for (size_t i = 0; equal && i < n; i++)
        equal = equal_at(x[i].node, y[i].node, depth);
    mem_free(x);
    mem_free(y);
    return equal;
}

static bool object_equal(const cJSON *a, const cJSON *b, unsigned depth)
{
    size_t n = json_count(a);

    if (n != json_count(b))
        return false;
    a = a->child;
    b = b->child;
    for (; a && strcmp(a->string, b->string) == 0; a = a->next, b = b->next, n--)
        if (!equal_at(a, b, depth))
            return false;
    if (n > JSON_SMALL)
        return large_equal(a, b, n, depth);
    for (; a; a = a->next) {
        const cJSON *other = b;

        while (other && strcmp(other->string, a->string) != 0)
            other = other->next;
        if (!other || !equal_at(a, other, depth))
            return false;
    }
    return true;
}

static bool array_equal(const cJSON *a, const cJSON *b, unsigned depth)
{
    for (a = a->child, b = b->child; a && b; a = a->next, b = b->next)
        if (!equal_at(a, b, depth))
            return false;
    return a == b;
}

static bool equal_at(const cJSON *a, const cJSON *b, unsigned depth)
{
    if (depth == JSON_DEPTH_MAX || (a->type & 0xFF) != (b->type & 0xFF))
        return false;
    switch (a->type & 0xFF) {
    case cJSON_String:
        return str_eq(json_str(a), json_str(b));
    case cJSON_Number:
        return number_equal(a, b);
    case cJSON_Object:
        return object_equal(a, b, depth + 1);
    case cJSON_Array:
        return array_equal(a, b, depth + 1);
    default:
        return true;
    }
}

bool json_equal(const cJSON *a, const cJSON *b)
{
    if (!a || !b)
        return a == b;
    return equal_at(a, b, 0);
}
