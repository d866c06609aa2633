/* SPDX-License-Identifier: Apache-2.0 */
/* Operators: equality, order, arithmetic without silent overflow, indexes and membership. Source:
 * cel-spec langdef.md (operators), cel-go common/overloads. */
#include "shape.h"

#include <math.h>
#include <string.h>

static struct cel_value overflow(struct cel_run *r, bool is_unsigned)
{
    return cel_error(r, is_unsigned ? "unsigned integer overflow" : "integer overflow");
}

static struct cel_value equals(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return cel_bool(cel_equal(r, a[0], a[1]));
}

static struct cel_value differs(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return cel_bool(!cel_equal(r, a[0], a[1]));
}

static struct cel_value ordered(struct cel_run *r, const struct cel_value *a, size_t n)
{
    const char *op = r->node->name.p;
    int order;

    (void)n;
    if (!cel_compare(r, a[0], a[1], &order))
        return a[0].kind == CEL_DOUBLE || a[1].kind == CEL_DOUBLE ? cel_bool(false)
                                                                  : cel_no_overload(r);
    if (op[1] == '<')
        return cel_bool(op[2] == '=' ? order <= 0 : order < 0);
    return cel_bool(op[2] == '=' ? order >= 0 : order > 0);
}

/* ---- arithmetic ---- */

static struct cel_value int_arithmetic(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t x = a[0].i, y = a[1].i, z = 0;
    bool over = false;

    (void)n;
    switch (r->node->name.p[1]) {
    case '+':
        over = __builtin_add_overflow(x, y, &z);
        break;
    case '-':
        over = __builtin_sub_overflow(x, y, &z);
        break;
    case '*':
        over = __builtin_mul_overflow(x, y, &z);
        break;
    case '/':
    case '%':
        if (!y)
            return cel_error(r, r->node->name.p[1] == '/' ? "division by zero" : "modulus by zero");
        over = x == INT64_MIN && y == -1;
        z = over ? 0 : r->node->name.p[1] == '/' ? x / y : x % y;
        break;
    }
    return over ? overflow(r, false) : cel_int(z);
}

static struct cel_value uint_arithmetic(struct cel_run *r, const struct cel_value *a, size_t n)
{
    uint64_t x = a[0].u, y = a[1].u, z = 0;
    bool over = false;

    (void)n;
    switch (r->node->name.p[1]) {
    case '+':
        over = __builtin_add_overflow(x, y, &z);
        break;
    case '-':
        over = __builtin_sub_overflow(x, y, &z);
        break;
    case '*':
        over = __builtin_mul_overflow(x, y, &z);
        break;
    case '/':
    case '%':
        if (!y)
            return cel_error(r, r->node->name.p[1] == '/' ? "division by zero" : "modulus by zero");
        z = r->node->name.p[1] == '/' ? x / y : x % y;
        break;
    }
    return over ? overflow(r, true) : cel_uint(z);
}

static struct cel_value double_arithmetic(struct cel_run *r, const struct cel_value *a, size_t n)
{
    double x = a[0].d, y = a[1].d;

    (void)n;
    switch (r->node->name.p[1]) {
    case '+':
        return cel_double(x + y);
    case '-':
        return cel_double(x - y);
    case '*':
        return cel_double(x * y);
    default:
        /* IEEE 754: infinities, not an error. */
        return cel_double(y != 0                ? x / y
                          : x != 0 && !isnan(x) ? copysign(INFINITY, x) * copysign(1, y)
                                                : NAN);
    }
}

static struct cel_value negate(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    if (a[0].kind == CEL_DOUBLE)
        return cel_double(-a[0].d);
    return a[0].i == INT64_MIN ? overflow(r, false) : cel_int(-a[0].i);
}

static struct cel_value not_(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return cel_bool(!a[0].b);
}

static struct cel_value join_text(struct cel_run *r, const struct cel_value *a, size_t n)
{
    size_t size = a[0].s.n + a[1].s.n;
    char *p;

    (void)n;
    cel_charge_text(r, size);
    p = cel_room(r, size + 1);
    if (!p)
        return cel_no_overload(r);
    memcpy(p, a[0].s.p ? a[0].s.p : "", a[0].s.n);
    memcpy(p + a[0].s.n, a[1].s.p ? a[1].s.p : "", a[1].s.n);
    return (struct cel_value){.kind = a[0].kind, .s = {p, size}};
}

static struct cel_value join_lists(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list x = cel_items(r, a[0]), y = cel_items(r, a[1]);
    struct cel_value *items = cel_room(r, (x.n + y.n) * sizeof(*items));

    (void)n;
    cel_charge(r, (x.n + y.n) / 8);
    if (cel_is_unordered(cel_shape_of(r, a[0])))
        return cel_join_unordered(r, a[0], y);
    if (!items)
        return cel_no_overload(r);
    if (x.n)
        memcpy(items, x.items, x.n * sizeof(*items));
    if (y.n)
        memcpy(items + x.n, y.items, y.n * sizeof(*items));
    return cel_new_list(r, items, x.n + y.n);
}

/* ---- times ---- */

static struct cel_value time_sum(struct cel_run *r, enum cel_kind kind, int64_t x, int64_t y,
                                 bool minus)
{
    int64_t z;
    bool over = minus ? __builtin_sub_overflow(x, y, &z) : __builtin_add_overflow(x, y, &z);

    if (over)
        return cel_error(r, kind == CEL_DURATION ? "duration overflow" : "timestamp overflow");
    return (struct cel_value){.kind = kind, .i = z};
}

static struct cel_value time_arithmetic(struct cel_run *r, const struct cel_value *a, size_t n)
{
    bool minus = r->node->name.p[1] == '-';
    int64_t ns;

    (void)n;
    if (a[0].kind == CEL_DURATION && a[1].kind == CEL_DURATION)
        return time_sum(r, CEL_DURATION, a[0].i, a[1].i, minus);
    if (a[0].kind == CEL_DURATION)
        return time_sum(r, CEL_TIMESTAMP, a[1].i, a[0].i / 1000, false);
    if (a[1].kind == CEL_DURATION)
        return time_sum(r, CEL_TIMESTAMP, a[0].i, a[1].i / 1000, minus);
    if (__builtin_sub_overflow(a[0].i, a[1].i, &ns) || __builtin_mul_overflow(ns, 1000, &ns))
        return cel_error(r, "duration overflow");
    return (struct cel_value){.kind = CEL_DURATION, .i = ns};
}

/* ---- members ---- */

static struct cel_value at_index(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value from = a[0], v;

    (void)n;
    if (from.kind != CEL_OPTIONAL)
        return cel_index(r, from, a[1]);
    if (!from.inner)
        return from;
    v = cel_index(r, *from.inner, a[1]);
    return v.kind == CEL_ERROR ? cel_none() : cel_some(r, v);
}

static struct cel_value at_optional_index(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value from = a[0], v;

    (void)n;
    if (from.kind == CEL_OPTIONAL) {
        if (!from.inner)
            return from;
        from = *from.inner;
    }
    if (from.kind != CEL_MAP && from.kind != CEL_LIST)
        return cel_no_overload(r);
    v = cel_index(r, from, a[1]);
    return v.kind == CEL_ERROR ? cel_none() : cel_some(r, v);
}

static struct cel_value in_list(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[1]);

    (void)n;
    cel_charge(r, l.n);
    for (size_t i = 0; i < l.n && !r->over; i++) {
        if (cel_equal(r, a[0], l.items[i]))
            return cel_bool(true);
    }
    return cel_bool(false);
}

static struct cel_value in_map(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value found;

    (void)n;
    return cel_bool(cel_find(r, a[1], a[0], &found));
}

#define ORDER(name)                                                                                \
    {name, false, "bb", "b", ordered}, {name, false, "##", "b", ordered},                          \
        {name, false, "ss", "b", ordered}, {name, false, "yy", "b", ordered},                      \
        {name, false, "tt", "b", ordered},                                                         \
    {                                                                                              \
        name, false, "DD", "b", ordered                                                            \
    }
#define NUMBERS(name)                                                                              \
    {name, false, "ii", "i", int_arithmetic}, {name, false, "uu", "u", uint_arithmetic},           \
    {                                                                                              \
        name, false, "dd", "d", double_arithmetic                                                  \
    }

static const struct cel_function ROWS[] = {
    {"_==_", false, "AA", "b", equals},
    {"_!=_", false, "AA", "b", differs},
    ORDER("_<_"),
    ORDER("_<=_"),
    ORDER("_>_"),
    ORDER("_>=_"),
    NUMBERS("_+_"),
    {"_+_", false, "ss", "s", join_text},
    {"_+_", false, "yy", "y", join_text},
    {"_+_", false, "LALA", "LA", join_lists},
    {"_+_", false, "tD", "t", time_arithmetic},
    {"_+_", false, "Dt", "t", time_arithmetic},
    {"_+_", false, "DD", "D", time_arithmetic},
    NUMBERS("_-_"),
    {"_-_", false, "tt", "D", time_arithmetic},
    {"_-_", false, "tD", "t", time_arithmetic},
    {"_-_", false, "DD", "D", time_arithmetic},
    NUMBERS("_*_"),
    NUMBERS("_/_"),
    {"_%_", false, "ii", "i", int_arithmetic},
    {"_%_", false, "uu", "u", uint_arithmetic},
    {"-_", false, "i", "i", negate},
    {"-_", false, "d", "d", negate},
    {"!_", false, "b", "b", not_},
    {"_[_]", false, "LAi", "A", at_index},
    {"_[_]", false, "LA#", "A", at_index},
    {"_[_]", false, "MABA", "B", at_index},
    {"_[_]", false, "OLAi", "OA", at_index},
    {"_[_]", false, "OMABA", "OB", at_index},
    {"_[?_]", false, "LAi", "OA", at_optional_index},
    {"_[?_]", false, "OLAi", "OA", at_optional_index},
    {"_[?_]", false, "MABA", "OB", at_optional_index},
    {"_[?_]", false, "OMABA", "OB", at_optional_index},
    {"@in", false, "ALA", "b", in_list},
    {"@in", false, "AMAB", "b", in_map},
};
const struct cel_functions CEL_OPERATORS = {ROWS, COUNT(ROWS)};
