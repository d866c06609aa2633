/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a time, base64 string or quantity does not parse, with the messages of Go's time,
 * encoding/base64 and apimachinery's resource packages. Follows their order of checks, because they
 * report the first failure. Must never be called for a string that parses. */

#include "scalar.h"

#include <string.h>

#include <sublet/buf.h>

/* Times: the layout as the list of its elements. Source: Go's time.Parse. */

struct time_scan {
    struct str rest;
    unsigned year, month, day;
    const char *range; /* the element that is out of range */
    bool bad;
};

static bool digit_at(struct str s, size_t i)
{
    return i < s.n && s.p[i] >= '0' && s.p[i] <= '9';
}

static unsigned take_number(struct time_scan *t, size_t digits)
{
    unsigned value = 0;

    for (size_t i = 0; i < digits; i++) {
        if (!digit_at(t->rest, i)) {
            t->bad = true;
            return 0;
        }
        value = value * 10 + (unsigned)(t->rest.p[i] - '0');
    }
    t->rest = str_from(t->rest, digits);
    return value;
}

static void take_range(struct time_scan *t, size_t digits, unsigned low, unsigned high,
                       const char *name, unsigned *ret)
{
    *ret = take_number(t, digits);
    if (!t->bad && (*ret < low || *ret > high))
        t->range = name;
}

static void take_zone(struct time_scan *t)
{
    struct str s = t->rest;
    unsigned hour, minute;

    if (s.n && s.p[0] == 'Z') {
        t->rest = str_from(s, 1);
        return;
    }
    if (s.n < 6 || s.p[3] != ':' || !digit_at(s, 1) || !digit_at(s, 2) || !digit_at(s, 4) ||
        !digit_at(s, 5)) {
        t->bad = true;
        return;
    }
    hour = (unsigned)(s.p[1] - '0') * 10 + (unsigned)(s.p[2] - '0');
    minute = (unsigned)(s.p[4] - '0') * 10 + (unsigned)(s.p[5] - '0');
    if (hour > 24)
        t->range = "time zone offset hour";
    else if (minute > 60)
        t->range = "time zone offset minute";
    t->bad = s.p[0] != '+' && s.p[0] != '-';
    t->rest = str_from(s, 6);
}

/* Takes the value of one layout element; an unknown element stands for itself. */
static void take_element(struct time_scan *t, const char *element)
{
    unsigned ignored;

    if (strcmp(element, "2006") == 0)
        t->year = take_number(t, 4);
    else if (strcmp(element, "01") == 0)
        take_range(t, 2, 1, 12, "month", &t->month);
    else if (strcmp(element, "02") == 0)
        t->day = take_number(t, 2);
    else if (strcmp(element, "15") == 0)
        take_range(t, digit_at(t->rest, 1) ? 2 : 1, 0, 23, "hour", &ignored);
    else if (strcmp(element, "04") == 0)
        take_range(t, 2, 0, 59, "minute", &ignored);
    else if (strcmp(element, "05") == 0)
        take_range(t, 2, 0, 59, "second", &ignored);
    else if (strcmp(element, "Z07:00") == 0)
        take_zone(t);
    else if (str_has_prefix(t->rest, str_c(element)))
        t->rest = str_from(t->rest, strlen(element));
    else
        t->bad = true;
}

static void take_fraction(struct time_scan *t, bool micro)
{
    size_t n = 1;

    while (digit_at(t->rest, n))
        n++;
    if (!micro) {
        if (n > 1 && (t->rest.p[0] == '.' || t->rest.p[0] == ','))
            t->rest = str_from(t->rest, n);
        return;
    }
    t->bad = n < 7 || t->rest.p[0] != '.';
    if (!t->bad)
        t->rest = str_from(t->rest, 7);
}

enum { QUOTE_MAX = 1024 };

/* Like time.quote, which is not strconv.Quote. */
static struct str quoted(struct arena *a, struct str s)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    buf_char(&b, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < ' ' || c >= 0x80) {
            buf_printf(&b, "\\x%02x", c);
            continue;
        }
        if (c == '"' || c == '\\')
            buf_char(&b, '\\');
        buf_char(&b, (char)c);
    }
    buf_char(&b, '"');
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

struct str scalar_time_error(struct arena *a, struct str text, bool micro)
{
    static const char *const elements[] = {"2006", "-",  "01", "-",  "02",      "T",     "15",
                                           ":",    "04", ":",  "05", ".000000", "Z07:00"};
    const char *layout = micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
    struct time_scan t = {.rest = str_sub(text, 0, QUOTE_MAX)};
    struct str value = quoted(a, t.rest);

    for (size_t i = 0; i < COUNT(elements); i++) {
        struct str hold = t.rest;

        if (elements[i][0] == '.')
            take_fraction(&t, micro);
        else
            take_element(&t, elements[i]);
        if (t.range)
            return arena_printf(a, "parsing time %.*s: %s out of range", STR_F(value), t.range);
        if (t.bad)
            return arena_printf(a, "parsing time %.*s as \"%s\": cannot parse %.*s as \"%s\"",
                                STR_F(value), layout, STR_F(quoted(a, hold)), elements[i]);
    }
    if (t.rest.n)
        return arena_printf(a, "parsing time %.*s: extra text: %.*s", STR_F(value),
                            STR_F(quoted(a, t.rest)));
    return arena_printf(a, "parsing time %.*s: day out of range", STR_F(value));
}

/* Base64: the position where Go's decoder stops. */

static bool is_base64(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
}

static size_t skip_breaks(struct str s, size_t at)
{
    while (at < s.n && (s.p[at] == '\n' || s.p[at] == '\r'))
        at++;
    return at;
}

/* `at` is after the first '=', which came after `have` characters of its group. */
static size_t padding_error(struct str s, size_t at, size_t have)
{
    if (have < 2)
        return at - 1;
    if (have == 2) {
        at = skip_breaks(s, at);
        if (at == s.n)
            return at;
        if (s.p[at] != '=')
            return at - 1;
        at++;
    }
    return skip_breaks(s, at); /* the bytes after the padding */
}

struct str scalar_base64_error(struct arena *a, struct str text)
{
    size_t have = 0, at = 0, bad = text.n;

    while (at < text.n) {
        char c = text.p[at++];

        if (c == '\n' || c == '\r')
            continue;
        if (is_base64(c)) {
            have = (have + 1) % 4;
            continue;
        }
        bad = c == '=' ? padding_error(text, at, have) : at - 1;
        return arena_printf(a, "illegal base64 data at input byte %zu", bad);
    }
    return arena_printf(a, "illegal base64 data at input byte %zu", bad - have);
}

/* Quantities. Source: apimachinery pkg/api/resource/quantity.go and suffix.go. */

struct quantity_parts {
    struct str whole, part, suffix; /* whole without leading zeros; "0" when empty */
    bool complete;                  /* nothing follows the suffix */
};

static size_t span_digits(struct str s, size_t at)
{
    while (digit_at(s, at))
        at++;
    return at;
}

static struct quantity_parts split_quantity(struct str s)
{
    struct quantity_parts q = {.whole = STR("0"), .part = STR("")};
    size_t at = s.n && (s.p[0] == '-' || s.p[0] == '+'), end;

    while (at < s.n && s.p[at] == '0')
        at++;
    end = span_digits(s, at);
    if (end > at)
        q.whole = str_sub(s, at, end - at);
    at = end;
    if (at < s.n && s.p[at] == '.') {
        end = span_digits(s, at + 1);
        q.part = str_sub(s, at + 1, end - at - 1);
        at = end;
    }
    for (end = at; end < s.n && strchr("eEinumkKMGTP", s.p[end]) && s.p[end];)
        end++;
    if (end < s.n && (s.p[end] == '-' || s.p[end] == '+'))
        end++;
    end = span_digits(s, end);
    q.suffix = str_sub(s, at, end - at);
    q.complete = end == s.n;
    return q;
}

struct str scalar_quantity_error(struct str text)
{
    if (text.n && split_quantity(text).complete)
        return STR("unable to parse quantity's suffix");
    return STR("quantities must match the regular expression "
               "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

/* The power of ten of a decimal suffix ("m", "e3"); false for a binary one. */
static bool decimal_power(struct str suffix, int64_t *ret)
{
    static const char units[] = "num kMGTPE";
    const char *at;

    if (suffix.n > 1) {
        if (suffix.p[0] != 'e' && suffix.p[0] != 'E')
            return false;
        suffix = str_from(suffix, suffix.p[1] == '+' ? 2 : 1);
        return str_to_i64(suffix, ret);
    }
    at = suffix.n ? strchr(units, suffix.p[0]) : units + 3;
    *ret = (at - units) * 3 - 9;
    return true;
}

static size_t trailing_zeros(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[s.n - 1 - n] == '0')
        n++;
    return n;
}

bool scalar_quantity_is_kept(struct str text)
{
    struct quantity_parts q = split_quantity(text);
    size_t zeros = trailing_zeros(q.part);
    int64_t scale;

    if (str_eq(text, STR("0")))
        return true;
    if (!decimal_power(q.suffix, &scale)) {
        static const char units[] = "KMGTPE";
        int64_t value;
        int64_t power = (strchr(units, q.suffix.p[0]) - units + 1) * 10;

        if (q.part.n || (int64_t)q.whole.n + power * 3 / 10 > 14 || !str_to_i64(q.whole, &value))
            return false;
        return value & 7;
    }
    if (zeros == q.part.n)
        zeros += trailing_zeros(q.whole);
    scale -= (int64_t)q.part.n;
    return q.whole.n + q.part.n <= 18 && scale >= -9 && scale % 3 == 0 && zeros < 3 &&
           q.whole.p[0] != '0';
}
