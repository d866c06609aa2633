/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of strings: the standard ones, cel-go's ext/strings (version 2) and the regular
 * expressions of Kubernetes. Positions count characters. Must charge for every walk and every copy.
 * Source: cel-go ext/strings.go, k8s.io/apiserver pkg/cel/library/regex.go. */
#include "impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>

#define SEARCH_COST 10    /* of every search, beyond upstream: PCRE2 may use its quick steps */
#define SLOW_COST   10000 /* of a search that needs more */

static struct cel_value starts(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    cel_charge_text(r, a[1].s.n);
    return cel_bool(str_has_prefix(a[0].s, a[1].s));
}

static struct cel_value ends(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    cel_charge_text(r, a[1].s.n);
    return cel_bool(str_has_suffix(a[0].s, a[1].s));
}

static struct cel_value contains(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    cel_charge(r, (a[0].s.n + 9) / 10 * ((a[1].s.n + 9) / 10));
    return cel_bool(str_contains(a[0].s, a[1].s));
}

/* ---- characters ---- */

static size_t step_at(struct str s, size_t at)
{
    size_t n = 1;

    while (at + n < s.n && ((unsigned char)s.p[at + n] & 0xC0) == 0x80)
        n++;
    return n;
}

/* The byte at which a character begins; s.n at the end; SIZE_MAX beyond it. */
static size_t offset_of(struct str s, int64_t character)
{
    size_t at = 0;

    if (character < 0)
        return SIZE_MAX;
    for (; character && at < s.n; character--)
        at += step_at(s, at);
    return character ? SIZE_MAX : at;
}

static struct cel_value out_of_range(struct cel_run *r, int64_t i)
{
    return cel_error(r, "index out of range: %lld", (long long)i);
}

static struct cel_value char_at(struct cel_run *r, const struct cel_value *a, size_t n)
{
    size_t at = offset_of(a[0].s, a[1].i);

    (void)n;
    cel_charge_text(r, a[0].s.n);
    if (at == SIZE_MAX)
        return out_of_range(r, a[1].i);
    return cel_string(at == a[0].s.n ? STR("") : str_sub(a[0].s, at, step_at(a[0].s, at)));
}

static size_t find_from(struct str s, struct str part, size_t from)
{
    const char *found = from <= s.n && part.n <= s.n - from
                            ? memmem(s.p + from, s.n - from, part.p ? part.p : "", part.n)
                            : NULL;

    return found ? (size_t)(found - s.p) : SIZE_MAX;
}

static struct cel_value index_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    size_t from = n == 3 ? offset_of(a[0].s, a[2].i) : 0, at;

    cel_charge_text(r, a[0].s.n);
    if (from == SIZE_MAX)
        return out_of_range(r, a[2].i);
    at = a[0].s.n || a[1].s.n ? find_from(a[0].s, a[1].s, from) : 0;
    return cel_int(at == SIZE_MAX ? -1 : (int64_t)str_characters(str_sub(a[0].s, 0, at)));
}

static struct cel_value last_index_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    size_t most = n == 3 ? offset_of(a[0].s, a[2].i) : a[0].s.n;

    cel_charge(r, (a[0].s.n + 9) / 10 * ((a[1].s.n + 9) / 10));
    if (most == SIZE_MAX)
        return out_of_range(r, a[2].i);
    for (size_t at = most + 1; at-- > 0;) {
        if (str_eq(str_sub(a[0].s, at, a[1].s.n), a[1].s))
            return cel_int((int64_t)str_characters(str_sub(a[0].s, 0, at)));
    }
    return cel_int(-1);
}

static struct cel_value substring(struct cel_run *r, const struct cel_value *a, size_t n)
{
    size_t from = offset_of(a[0].s, a[1].i), to = n == 3 ? offset_of(a[0].s, a[2].i) : a[0].s.n;

    cel_charge_text(r, a[0].s.n);
    if (from == SIZE_MAX || to == SIZE_MAX)
        return out_of_range(r, from == SIZE_MAX ? a[1].i : a[2].i);
    if (from > to)
        return cel_error(r, "invalid substring range. start: %lld, end: %lld", (long long)a[1].i,
                         (long long)a[2].i);
    return cel_string(str_sub(a[0].s, from, to - from));
}

/* ---- copies ---- */

static struct cel_value in_case(struct cel_run *r, const struct cel_value *a, size_t n)
{
    bool lower = r->node->name.p[0] == 'l';
    char *p;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    p = cel_room(r, a[0].s.n + 1);
    if (!p)
        return cel_no_overload(r);
    for (size_t i = 0; i < a[0].s.n; i++) {
        char c = a[0].s.p[i];

        if (lower ? c >= 'A' && c <= 'Z' : c >= 'a' && c <= 'z')
            c ^= 32;
        p[i] = c;
    }
    return cel_string((struct str){p, a[0].s.n});
}

static struct cel_value trim(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    cel_charge_text(r, a[0].s.n);
    return cel_string(str_trim(a[0].s));
}

/* A growing copy within the run's arena. */
struct output {
    struct cel_run *r;
    char *p;
    size_t n, cap;
};

static void put(struct output *o, struct str s)
{
    if (o->r->over)
        return;
    if (s.n > o->cap - o->n) {
        size_t cap = 2 * (o->cap + s.n) + 64;
        char *p = cel_room(o->r, cap);

        if (!p)
            return;
        if (o->n)
            memcpy(p, o->p, o->n);
        o->p = p;
        o->cap = cap;
    }
    if (s.n)
        memcpy(o->p + o->n, s.p, s.n);
    o->n += s.n;
}

static struct cel_value written(const struct output *o)
{
    cel_charge_text(o->r, o->n);
    return cel_string((struct str){o->p, o->n});
}

static struct cel_value replace(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t most = n == 4 ? a[3].i : -1;
    struct output o = {.r = r};
    struct str s = a[0].s;
    size_t at = 0;

    cel_charge_text(r, 2 * s.n);
    while (most && !r->over) {
        size_t found = find_from(s, a[1].s, at);

        if (found == SIZE_MAX)
            break;
        put(&o, str_sub(s, at, found - at));
        put(&o, a[2].s);
        cel_charge_text(r, a[2].s.n);
        at = found + a[1].s.n;
        most--;
        if (!a[1].s.n) {
            if (at >= s.n)
                break;
            put(&o, str_sub(s, at, step_at(s, at)));
            at += step_at(s, at);
        }
    }
    put(&o, str_from(s, at));
    return written(&o);
}

static struct cel_value split(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t most = n == 3 ? a[2].i : -1;
    struct cel_value *items = NULL;
    struct str rest = a[0].s, by = a[1].s;
    size_t count = 0, cap = 0;

    cel_charge_text(r, 2 * rest.n);
    if (!most)
        return cel_new_list(r, NULL, 0);
    for (;;) {
        size_t at = most > 0 && count + 1 >= (uint64_t)most ? SIZE_MAX
                    : by.n                                  ? find_from(rest, by, 0)
                    : rest.n > step_at(rest, 0)             ? step_at(rest, 0)
                                                            : SIZE_MAX;

        if (count == cap && arena_left(r->arena) < 4 * cap * sizeof(*items) + 4096) {
            r->over = true;
            break;
        }
        ARENA_GROW(r->arena, items, count, cap);
        items[count++] = cel_string(str_sub(rest, 0, at));
        cel_charge(r, 1);
        if (at == SIZE_MAX || r->over)
            break;
        rest = str_from(rest, at + by.n);
    }
    if (count == 1 && !a[0].s.n && !by.n)
        count = 0;
    return cel_new_list(r, items, count);
}

static struct cel_value join(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    struct output o = {.r = r};

    cel_charge(r, l.n);
    for (size_t i = 0; i < l.n && !r->over; i++) {
        if (l.items[i].kind != CEL_STRING)
            return cel_no_overload(r);
        if (i && n == 2)
            put(&o, a[1].s);
        put(&o, l.items[i].s);
    }
    return written(&o);
}

static struct cel_value quote(struct cel_run *r, const struct cel_value *a, size_t n)
{
    static const char special[] = "\a\b\f\n\r\t\v\\\"", names[] = "abfnrtv\\\"";
    struct output o = {.r = r};

    (void)n;
    cel_charge_text(r, a[0].s.n);
    put(&o, STR("\""));
    for (size_t i = 0; i < a[0].s.n; i++) {
        const char *found = a[0].s.p[i] ? strchr(special, a[0].s.p[i]) : NULL;

        if (found) {
            put(&o, STR("\\"));
            put(&o, (struct str){names + (found - special), 1});
        } else {
            put(&o, str_sub(a[0].s, i, 1));
        }
    }
    put(&o, STR("\""));
    return written(&o);
}

/* ---- format ---- */

static void put_value(struct output *o, struct cel_value v, unsigned depth);

static void put_quoted(struct output *o, struct str s)
{
    /* At most four characters for a byte. */
    if (arena_left(o->r->arena) / 8 < s.n)
        o->r->over = true;
    else
        put(o, go_quote(o->r->arena, s));
}

static void put_list(struct output *o, struct cel_value v, unsigned depth)
{
    struct cel_list l = cel_items(o->r, v);

    put(o, STR("["));
    for (size_t i = 0; i < l.n && !o->r->over; i++) {
        if (i)
            put(o, STR(", "));
        put_value(o, l.items[i], depth + 1);
    }
    put(o, STR("]"));
}

static int by_key(const void *x, const void *y)
{
    return str_cmp(((const struct cel_value *)x)->s, ((const struct cel_value *)y)->s);
}

/* In the order of the keys. */
static void put_map(struct output *o, struct cel_value v, unsigned depth)
{
    struct cel_map m = cel_entries(o->r, v);
    struct cel_value *keys = cel_room(o->r, m.n * sizeof(*keys)), item;

    for (size_t i = 0; keys && i < m.n; i++)
        keys[i] = cel_string(cel_text(o->r, m.keys[i]));
    if (keys && m.n)
        qsort(keys, m.n, sizeof(*keys), by_key);
    put(o, STR("{"));
    for (size_t i = 0; keys && i < m.n && !o->r->over; i++) {
        if (i)
            put(o, STR(", "));
        put_quoted(o, keys[i].s);
        put(o, STR(":"));
        if (cel_find(o->r, v, keys[i], &item))
            put_value(o, item, depth + 1);
    }
    put(o, STR("}"));
}

static void put_value(struct output *o, struct cel_value v, unsigned depth)
{
    cel_charge(o->r, 1);
    if (depth > CEL_MAX_VALUE)
        o->r->over = true;
    else if (v.kind == CEL_LIST)
        put_list(o, v, depth);
    else if (v.kind == CEL_MAP)
        put_map(o, v, depth);
    else if (depth && v.kind == CEL_STRING)
        put_quoted(o, v.s);
    else
        put(o, cel_text(o->r, v));
}

static struct str binary_text(struct cel_run *r, uint64_t u)
{
    char *p = arena_alloc(r->arena, 65);
    size_t n = 64;

    do {
        p[--n] = (char)('0' + (u & 1));
        u >>= 1;
    } while (u && n);
    return (struct str){p + n, 64 - n};
}

static double as_double(struct cel_value v)
{
    return v.kind == CEL_DOUBLE ? v.d : v.kind == CEL_INT ? (double)v.i : (double)v.u;
}

static bool put_hex(struct output *o, char verb, struct cel_value v)
{
    const char *digits = verb == 'x' ? "0123456789abcdef" : "0123456789ABCDEF";

    if (v.kind != CEL_STRING && v.kind != CEL_BYTES)
        return false;
    cel_charge_text(o->r, v.s.n);
    for (size_t i = 0; i < v.s.n && !o->r->over; i++) {
        unsigned char c = (unsigned char)v.s.p[i];
        const char pair[2] = {digits[c >> 4], digits[c & 15]};

        put(o, (struct str){pair, 2});
    }
    return true;
}

static bool put_integer(struct output *o, char verb, struct cel_value v)
{
    struct arena *a = o->r->arena;
    bool negative = v.kind == CEL_INT && v.i < 0;
    unsigned long long u = negative ? 0 - (unsigned long long)v.i : (unsigned long long)v.u;

    if (v.kind != CEL_INT && v.kind != CEL_UINT)
        return false;
    if (negative)
        put(o, STR("-"));
    if (verb == 'b')
        put(o, binary_text(o->r, u));
    else if (verb == 'd')
        put(o, arena_printf(a, "%llu", u));
    else if (verb == 'o')
        put(o, arena_printf(a, "%llo", u));
    else
        put(o, verb == 'x' ? arena_printf(a, "%llx", u) : arena_printf(a, "%llX", u));
    return true;
}

/* False: the verb does not take this value. */
static bool put_verb(struct output *o, char verb, int digits, struct cel_value v)
{
    struct arena *a = o->r->arena;

    switch (verb) {
    case 's':
        put_value(o, v, 0);
        return true;
    case 'b':
        if (v.kind == CEL_BOOL) {
            put(o, v.b ? STR("1") : STR("0"));
            return true;
        }
        return put_integer(o, verb, v);
    case 'd':
    case 'o':
        return put_integer(o, verb, v);
    case 'x':
    case 'X':
        return put_hex(o, verb, v) || put_integer(o, verb, v);
    case 'f':
    case 'e':
        if (v.kind != CEL_DOUBLE && v.kind != CEL_INT && v.kind != CEL_UINT)
            return false;
        digits = digits < 0 ? 6 : digits;
        cel_charge(o->r, 20 + (uint64_t)digits / 2);
        put(o, verb == 'f' ? arena_printf(a, "%.*f", digits, as_double(v))
                           : arena_printf(a, "%.*e", digits, as_double(v)));
        return true;
    default:
        return false;
    }
}

/* "%.3f": the digits after the dot, -1 without. */
static int scan_digits(struct str format, size_t *at)
{
    int digits = 0;

    if (*at >= format.n || format.p[*at] != '.')
        return -1;
    for (++*at; *at < format.n && isdigit((unsigned char)format.p[*at]); ++*at) {
        if (digits < 100)
            digits = digits * 10 + format.p[*at] - '0';
    }
    return digits < 100 ? digits : 100;
}

static struct cel_value format(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list args = cel_items(r, a[1]);
    struct output o = {.r = r};
    struct str s = a[0].s;
    size_t used = 0;

    (void)n;
    cel_charge_text(r, s.n);
    for (size_t i = 0; i < s.n && !r->over; i++) {
        size_t plain = str_find(str_from(s, i), '%');
        int digits;

        put(&o, str_sub(s, i, plain));
        i += plain;
        if (i >= s.n)
            break;
        if (++i < s.n && s.p[i] == '%') {
            put(&o, STR("%"));
            continue;
        }
        digits = scan_digits(s, &i);
        if (i >= s.n)
            return cel_error(r, "unexpected end of string");
        if (used >= args.n)
            return cel_error(r, "index %zu out of range", used);
        if (!put_verb(&o, s.p[i], digits, args.items[used++]))
            return cel_error(r, "error during formatting: unsupported clause or type for '%%%c'",
                             s.p[i]);
    }
    return written(&o);
}

/* ---- regular expressions ---- */

/* Of the literal, or compiled now; NULL with *wrong set. */
static struct pattern *pattern_of(struct cel_run *r, struct str text, bool *own,
                                  struct cel_value *wrong)
{
    const char *problem;

    *own = false;
    if (r->node->pattern)
        return r->node->pattern;
    problem = text.n > 4096 ? "expression too long" : pattern_check(r->arena, text);
    if (problem) {
        *wrong = cel_error(r, "%s", problem);
        return NULL;
    }
    *own = true;
    cel_charge(r, text.n);
    return pattern_new(r->arena, text, NULL);
}

static void charge_pattern(struct cel_run *r, struct str text, struct str pattern)
{
    cel_charge(r, SEARCH_COST + ((text.n + 10) / 10) * ((pattern.n + 3) / 4));
}

/* Quickly, or, charged in addition, with many steps. */
static int search(struct cel_run *r, struct pattern *p, struct str text, size_t from,
                  size_t span[2])
{
    int found = pattern_search(p, text, from, PATTERN_QUICK, span);

    if (found >= 0)
        return found;
    cel_charge(r, SLOW_COST);
    return r->over ? -1 : pattern_search(p, text, from, PATTERN_SLOW, span);
}

static struct cel_value too_complex(struct cel_run *r)
{
    return cel_error(r, "regular expression takes too many steps");
}

static struct cel_value matches(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value wrong = cel_null();
    struct pattern *p;
    bool own;
    int found;

    (void)n;
    charge_pattern(r, a[0].s, a[1].s);
    p = r->over ? NULL : pattern_of(r, a[1].s, &own, &wrong);
    if (!p)
        return wrong;
    found = search(r, p, a[0].s, 0, NULL);
    if (own)
        pattern_free_all(p);
    return found < 0 ? too_complex(r) : cel_bool(found);
}

static struct cel_value find(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_value wrong = cel_null();
    struct pattern *p;
    size_t span[2];
    bool own;
    int found;

    (void)n;
    charge_pattern(r, a[0].s, a[1].s);
    p = r->over ? NULL : pattern_of(r, a[1].s, &own, &wrong);
    if (!p)
        return wrong;
    found = search(r, p, a[0].s, 0, span);
    if (own)
        pattern_free_all(p);
    if (found < 0)
        return too_complex(r);
    return cel_string(found ? str_sub(a[0].s, span[0], span[1] - span[0]) : STR(""));
}

static struct cel_value find_all(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t most = n == 3 ? a[2].i : -1;
    struct cel_value *items = NULL, wrong = cel_null();
    size_t count = 0, cap = 0, at = 0, span[2];
    struct pattern *p;
    bool own;
    int found = 0;

    charge_pattern(r, a[0].s, a[1].s);
    p = r->over ? NULL : pattern_of(r, a[1].s, &own, &wrong);
    if (!p)
        return wrong;
    while (most < 0 || count < (uint64_t)most) {
        found = search(r, p, a[0].s, at, span);
        cel_charge(r, SEARCH_COST);
        if (found <= 0 || r->over)
            break;
        if (count == cap && arena_left(r->arena) < 4 * cap * sizeof(*items) + 4096) {
            r->over = true;
            break;
        }
        ARENA_GROW(r->arena, items, count, cap);
        items[count++] = cel_string(str_sub(a[0].s, span[0], span[1] - span[0]));
        if (span[1] >= a[0].s.n)
            break;
        at = span[1] > span[0] ? span[1] : span[1] + step_at(a[0].s, span[1]);
    }
    if (own)
        pattern_free_all(p);
    return found < 0 ? too_complex(r) : cel_new_list(r, items, count);
}

/* A key as one step of a JSON pointer. */
static struct cel_value escape_key(struct cel_run *r, const struct cel_value *a, size_t n)
{
    char *out = cel_room(r, 2 * a[0].s.n);
    size_t at = 0;

    (void)n;
    cel_charge_text(r, a[0].s.n);
    for (size_t i = 0; out && i < a[0].s.n; i++) {
        char c = a[0].s.p[i];

        out[at++] = c == '~' || c == '/' ? '~' : c;
        if (c == '~' || c == '/')
            out[at++] = c == '~' ? '0' : '1';
    }
    return cel_string((struct str){out ? out : "", at});
}

static const struct cel_function ROWS[] = {
    {"startsWith", true, "ss", "b", starts},
    {"endsWith", true, "ss", "b", ends},
    {"contains", true, "ss", "b", contains},
    {"matches", true, "ss", "b", matches},
    {"matches", false, "ss", "b", matches},
    {"find", true, "ss", "s", find},
    {"findAll", true, "ss", "Ls", find_all},
    {"findAll", true, "ssi", "Ls", find_all},
    {"charAt", true, "si", "s", char_at},
    {"indexOf", true, "ss", "i", index_of},
    {"indexOf", true, "ssi", "i", index_of},
    {"lastIndexOf", true, "ss", "i", last_index_of},
    {"lastIndexOf", true, "ssi", "i", last_index_of},
    {"substring", true, "si", "s", substring},
    {"substring", true, "sii", "s", substring},
    {"lowerAscii", true, "s", "s", in_case},
    {"upperAscii", true, "s", "s", in_case},
    {"trim", true, "s", "s", trim},
    {"replace", true, "sss", "s", replace},
    {"replace", true, "sssi", "s", replace},
    {"split", true, "ss", "Ls", split},
    {"split", true, "ssi", "Ls", split},
    {"join", true, "Ls", "s", join},
    {"join", true, "Lss", "s", join},
    {"strings.quote", false, "s", "s", quote},
    {"jsonpatch.escapeKey", false, "s", "s", escape_key},
    {"format", true, "sL*", "s", format},
};
const struct cel_functions CEL_STRINGS = {ROWS, COUNT(ROWS)};
