/* SPDX-License-Identifier: Apache-2.0 */
/* The standard functions that are not of strings or lists: conversions, sizes, times, optionals.
 * Source: cel-spec langdef.md, cel-go common/stdlib and cel/library.go (optionals). */
#include "impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/encode.h>

static struct cel_value size(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return cel_int((int64_t)cel_measure(r, a[0]));
}

/* ---- conversions ---- */

static struct cel_value to_int(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t i;

    (void)n;
    cel_charge_long(r, a[0]);
    switch (a[0].kind) {
    case CEL_INT:
        return a[0];
    case CEL_UINT:
        return a[0].u > INT64_MAX ? cel_error(r, "integer overflow") : cel_int((int64_t)a[0].u);
    case CEL_DOUBLE:
        return !(a[0].d > -0x1p63 && a[0].d < 0x1p63) ? cel_error(r, "integer overflow")
                                                      : cel_int((int64_t)a[0].d);
    case CEL_TIMESTAMP:
        return cel_int(a[0].i / 1000000 - (a[0].i % 1000000 < 0));
    case CEL_DURATION:
        return cel_int(a[0].i);
    default:
        if (!str_to_i64(a[0].s, &i))
            return cel_error(r, "type conversion error from 'string' to 'int'");
        return cel_int(i);
    }
}

static struct cel_value to_uint(struct cel_run *r, const struct cel_value *a, size_t n)
{
    uint64_t u;

    (void)n;
    cel_charge_long(r, a[0]);
    switch (a[0].kind) {
    case CEL_UINT:
        return a[0];
    case CEL_INT:
        return a[0].i < 0 ? cel_error(r, "unsigned integer overflow") : cel_uint((uint64_t)a[0].i);
    case CEL_DOUBLE:
        return !(a[0].d >= 0 && a[0].d < 0x1p64) ? cel_error(r, "unsigned integer overflow")
                                                 : cel_uint((uint64_t)a[0].d);
    default:
        if (!str_to_u64(a[0].s, &u))
            return cel_error(r, "type conversion error from 'string' to 'uint'");
        return cel_uint(u);
    }
}

static struct cel_value to_double(struct cel_run *r, const struct cel_value *a, size_t n)
{
    char *text, *end;
    double d;

    (void)n;
    if (a[0].kind == CEL_DOUBLE)
        return a[0];
    if (a[0].kind == CEL_INT)
        return cel_double((double)a[0].i);
    if (a[0].kind == CEL_UINT)
        return cel_double((double)a[0].u);
    cel_charge(r, 10);
    cel_charge_long(r, a[0]);
    text = cel_room(r, a[0].s.n + 1);
    if (!text)
        return cel_no_overload(r);
    memcpy(text, a[0].s.p ? a[0].s.p : "", a[0].s.n);
    d = strtod(text, &end);
    if (!a[0].s.n || *end || a[0].s.p[0] == ' ')
        return cel_error(r, "type conversion error from 'string' to 'double'");
    return cel_double(d);
}

static struct cel_value to_text(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    if (a[0].kind == CEL_BYTES) {
        cel_charge_text(r, a[0].s.n);
        if (!str_is_utf8(a[0].s))
            return cel_error(r, "invalid UTF-8 in bytes, cannot convert to string");
    }
    return cel_string(cel_text(r, a[0]));
}

static struct cel_value to_bytes(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    cel_charge_text(r, a[0].s.n);
    return (struct cel_value){.kind = CEL_BYTES, .s = a[0].s};
}

static struct cel_value to_bool(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    if (a[0].kind == CEL_BOOL)
        return a[0];
    if (str_word_index("true|True|TRUE|t|1", a[0].s) >= 0)
        return cel_bool(true);
    if (str_word_index("false|False|FALSE|f|0", a[0].s) >= 0)
        return cel_bool(false);
    return cel_error(r, "type conversion error from 'string' to 'bool'");
}

static struct cel_value as_is(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return a[0];
}

static struct cel_value to_timestamp(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t us;

    (void)n;
    cel_charge_long(r, a[0]);
    if (a[0].kind == CEL_INT) {
        if (__builtin_mul_overflow(a[0].i, 1000000, &us))
            return cel_error(r, "timestamp overflow");
    } else if (!time_parse(a[0].s, &us)) {
        return cel_error(r, "type conversion error from 'string' to 'google.protobuf.Timestamp'");
    }
    return (struct cel_value){.kind = CEL_TIMESTAMP, .i = us};
}

static struct cel_value to_duration(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t ns;

    (void)n;
    cel_charge_long(r, a[0]);
    if (a[0].kind == CEL_INT)
        return (struct cel_value){.kind = CEL_DURATION, .i = a[0].i};
    if (!duration_parse(a[0].s, &ns))
        return cel_error(r, "type conversion error from 'string' to 'google.protobuf.Duration'");
    return (struct cel_value){.kind = CEL_DURATION, .i = ns};
}

static struct cel_value type_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return cel_type(cel_kind_name(a[0]));
}

/* ---- optionals ---- */

static struct cel_value optional_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return cel_some(r, a[0]);
}

static bool is_zero(struct cel_value v)
{
    switch (v.kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !v.b;
    case CEL_INT:
    case CEL_TIMESTAMP:
    case CEL_DURATION:
        return !v.i;
    case CEL_UINT:
        return !v.u;
    case CEL_DOUBLE:
        return v.d == 0;
    case CEL_STRING:
    case CEL_BYTES:
        return !v.s.n;
    case CEL_LIST:
    case CEL_MAP:
        return v.is_json ? !v.json->child : !cel_size(v);
    case CEL_OPTIONAL:
        return !v.inner;
    default:
        return false;
    }
}

static struct cel_value optional_of_nonzero(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return is_zero(a[0]) ? cel_none() : cel_some(r, a[0]);
}

static struct cel_value optional_none(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)a;
    (void)n;
    return cel_none();
}

static struct cel_value has_value(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return cel_bool(a[0].inner);
}

static struct cel_value optional_value(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return a[0].inner ? *a[0].inner : cel_error(r, "optional.none() dereference");
}

static struct cel_value or_value(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return a[0].inner ? *a[0].inner : a[1];
}

static struct cel_value or_optional(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)r;
    (void)n;
    return a[0].inner ? a[0] : a[1];
}

static const struct cel_function ROWS[] = {
    {"size", false, "s", "i", size},
    {"size", false, "y", "i", size},
    {"size", false, "LA", "i", size},
    {"size", false, "MAB", "i", size},
    {"size", true, "s", "i", size},
    {"size", true, "y", "i", size},
    {"size", true, "LA", "i", size},
    {"size", true, "MAB", "i", size},
    {"int", false, "i", "i", to_int},
    {"int", false, "u", "i", to_int},
    {"int", false, "d", "i", to_int},
    {"int", false, "s", "i", to_int},
    {"int", false, "t", "i", to_int},
    {"int", false, "D", "i", to_int},
    {"uint", false, "u", "u", to_uint},
    {"uint", false, "i", "u", to_uint},
    {"uint", false, "d", "u", to_uint},
    {"uint", false, "s", "u", to_uint},
    {"double", false, "d", "d", to_double},
    {"double", false, "i", "d", to_double},
    {"double", false, "u", "d", to_double},
    {"double", false, "s", "d", to_double},
    {"string", false, "s", "s", to_text},
    {"string", false, "i", "s", to_text},
    {"string", false, "u", "s", to_text},
    {"string", false, "d", "s", to_text},
    {"string", false, "b", "s", to_text},
    {"string", false, "y", "s", to_text},
    {"string", false, "t", "s", to_text},
    {"string", false, "D", "s", to_text},
    {"string", false, "I", "s", to_text},
    {"string", false, "C", "s", to_text},
    {"bytes", false, "s", "y", to_bytes},
    {"bytes", false, "y", "y", to_bytes},
    {"bool", false, "b", "b", to_bool},
    {"bool", false, "s", "b", to_bool},
    {"dyn", false, "A", "*", as_is},
    {"timestamp", false, "s", "t", to_timestamp},
    {"timestamp", false, "i", "t", to_timestamp},
    {"timestamp", false, "t", "t", as_is},
    {"duration", false, "s", "D", to_duration},
    {"duration", false, "i", "D", to_duration},
    {"duration", false, "D", "D", as_is},
    {"type", false, "A", "T", type_of},
    {"optional.of", false, "A", "OA", optional_of},
    {"optional.ofNonZeroValue", false, "A", "OA", optional_of_nonzero},
    {"optional.none", false, "", "OA", optional_none},
    {"hasValue", true, "OA", "b", has_value},
    {"value", true, "OA", "A", optional_value},
    {"orValue", true, "OAA", "A", or_value},
    {"or", true, "OAOA", "OA", or_optional},
};
const struct cel_functions CEL_STANDARD = {ROWS, COUNT(ROWS)};
