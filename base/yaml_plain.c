/* SPDX-License-Identifier: Apache-2.0 */
/* The types of plain YAML scalars. Why: `on`, 0o17 and 1_000 mean to Kubernetes what go-yaml v2 (as
 * sigs.k8s.io/yaml uses it) takes them for, and a manifest must not change its meaning with the
 * server. Must never depend on where the scalar stands. */

#include "yaml_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/mem.h>

/* go-yaml v2 resolve.go: the words that are not strings. */
static const struct word {
    const char *text;
    enum yaml_plain_kind kind;
    bool truth;
    double f;
} words[] = {
    {"", PLAIN_NULL, false, 0},
    {"~", PLAIN_NULL, false, 0},
    {"null", PLAIN_NULL, false, 0},
    {"Null", PLAIN_NULL, false, 0},
    {"NULL", PLAIN_NULL, false, 0},
    {"y", PLAIN_BOOL, true, 0},
    {"Y", PLAIN_BOOL, true, 0},
    {"yes", PLAIN_BOOL, true, 0},
    {"Yes", PLAIN_BOOL, true, 0},
    {"YES", PLAIN_BOOL, true, 0},
    {"true", PLAIN_BOOL, true, 0},
    {"True", PLAIN_BOOL, true, 0},
    {"TRUE", PLAIN_BOOL, true, 0},
    {"on", PLAIN_BOOL, true, 0},
    {"On", PLAIN_BOOL, true, 0},
    {"ON", PLAIN_BOOL, true, 0},
    {"n", PLAIN_BOOL, false, 0},
    {"N", PLAIN_BOOL, false, 0},
    {"no", PLAIN_BOOL, false, 0},
    {"No", PLAIN_BOOL, false, 0},
    {"NO", PLAIN_BOOL, false, 0},
    {"false", PLAIN_BOOL, false, 0},
    {"False", PLAIN_BOOL, false, 0},
    {"FALSE", PLAIN_BOOL, false, 0},
    {"off", PLAIN_BOOL, false, 0},
    {"Off", PLAIN_BOOL, false, 0},
    {"OFF", PLAIN_BOOL, false, 0},
    {".nan", PLAIN_FLOAT, false, (double)NAN},
    {".NaN", PLAIN_FLOAT, false, (double)NAN},
    {".NAN", PLAIN_FLOAT, false, (double)NAN},
    {".inf", PLAIN_FLOAT, false, (double)INFINITY},
    {".Inf", PLAIN_FLOAT, false, (double)INFINITY},
    {".INF", PLAIN_FLOAT, false, (double)INFINITY},
    {"+.inf", PLAIN_FLOAT, false, (double)INFINITY},
    {"+.Inf", PLAIN_FLOAT, false, (double)INFINITY},
    {"+.INF", PLAIN_FLOAT, false, (double)INFINITY},
    {"-.inf", PLAIN_FLOAT, false, (double)-INFINITY},
    {"-.Inf", PLAIN_FLOAT, false, (double)-INFINITY},
    {"-.INF", PLAIN_FLOAT, false, (double)-INFINITY},
};

enum { WORD_MAX = 5 }; /* of the longest */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const struct word *find_word(struct str text)
{
    if (text.n && !strchr("~yYnNtTfFoO.+-", text.p[0]))
        return NULL;
    for (size_t i = 0; text.n <= WORD_MAX && i < COUNT(words); i++)
        if (str_eqc(text, words[i].text))
            return &words[i];
    return NULL;
}

static int digit_of(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Cuts Go's prefix of an integer literal: 0x, 0o, 0b, or the 0 of C's octal. */
static unsigned cut_base(struct str *s)
{
    char letter = s->n > 1 ? (char)(s->p[1] | 0x20) : 0;
    unsigned base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;

    if (s->n < 2 || s->p[0] != '0')
        return 10;
    *s = str_from(*s, base ? 2 : 1);
    return base ? base : 8;
}

/* strconv.ParseInt and then ParseUint, base 0, 64 bits. */
static bool read_integer(struct str s, struct yaml_plain *ret)
{
    bool sign = s.n && (s.p[0] == '+' || s.p[0] == '-'), minus = s.n && s.p[0] == '-';
    uint64_t value = 0;
    unsigned base;

    s = str_from(s, sign);
    base = cut_base(&s);
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)digit_of(s.p[i]);

        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }

    if (value <= (uint64_t)INT64_MAX + minus)
        *ret = (struct yaml_plain){.kind = PLAIN_INT,
                                   .i = minus ? (int64_t)(0 - value) : (int64_t)value};
    else if (!sign)
        *ret = (struct yaml_plain){.kind = PLAIN_UINT, .u = value};
    else
        return false;
    return true;
}

static size_t skip_digits(struct str s, size_t at)
{
    while (at < s.n && is_digit(s.p[at]))
        at++;
    return at;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool looks_float(struct str s)
{
    size_t start = s.n && (s.p[0] == '+' || s.p[0] == '-'), at = skip_digits(s, start), from;

    if (at < s.n && s.p[at] == '.') {
        from = ++at;
        at = skip_digits(s, at);
        if (from == start + 1 && at == from)
            return false; /* a dot alone */
    } else if (at == start) {
        return false;
    }
    if (at < s.n && (s.p[at] | 0x20) == 'e') {
        at++;
        if (at < s.n && (s.p[at] == '+' || s.p[at] == '-'))
            at++;
        from = at;
        at = skip_digits(s, at);
        if (at == from)
            return false;
    }
    return at == s.n;
}

/* s ends in NUL. What no double can hold stays a string, as in go-yaml. */
static bool read_float(struct str s, struct yaml_plain *ret)
{
    double value;

    if (!looks_float(s))
        return false;
    value = strtod(s.p, NULL);
    if (!isfinite(value))
        return false;
    *ret = (struct yaml_plain){.kind = PLAIN_FLOAT, .f = value};
    return true;
}

/* After a leading dot Go's own syntax holds: an underscore stands between digits. */
static bool underscores_between_digits(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '_' &&
            (i == 0 || i + 1 == s.n || !is_digit(s.p[i - 1]) || !is_digit(s.p[i + 1])))
            return false;
    return true;
}

static struct yaml_plain read_number(struct str text)
{
    struct yaml_plain value = {.kind = PLAIN_STRING};
    char small[64], *plain = text.n < sizeof small ? small : mem_alloc(text.n + 1);
    struct str s = {plain, 0};

    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != '_')
            plain[s.n++] = text.p[i];
    plain[s.n] = 0;

    if (text.p[0] == '.') {
        if (underscores_between_digits(text))
            read_float(s, &value);
    } else if (!read_integer(s, &value)) {
        read_float(s, &value);
    }
    if (plain != small)
        mem_free(plain);
    return value;
}

struct yaml_plain yaml_plain_resolve(struct str text)
{
    const struct word *word = find_word(text);

    if (word)
        return (struct yaml_plain){.kind = word->kind, .truth = word->truth, .f = word->f};
    if (is_digit(text.p[0]) || text.p[0] == '+' || text.p[0] == '-' || text.p[0] == '.')
        return read_number(text);
    return (struct yaml_plain){.kind = PLAIN_STRING};
}

bool yaml_plain_is_odd(struct str text)
{
    size_t digits = skip_digits(text, 0);

    if (digits == 4 && text.n > 4 && text.p[4] == '-')
        return true; /* 2026-01-02 and what may follow */
    if (text.n == 0 || !(is_digit(text.p[0]) || text.p[0] == '+' || text.p[0] == '-'))
        return false;
    for (size_t i = 1; i < text.n; i++)
        if (!is_digit(text.p[i]) && text.p[i] != ':' && text.p[i] != '_' && text.p[i] != '.')
            return false;
    return str_contains(text, STR(":")); /* 12:30:45 */
}
