/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON printer. Why: what was read must come out as it was, and what we make must look as Go's
 * encoding/json writes it. Must never write a number otherwise than its literal, never print a tree
 * deeper than a decoder admits, and never fail but through its buffer. */

#include <sublet/json.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_impl.h"

struct printer {
    struct buf *b;
    bool pretty;
    unsigned depth;
};

static void print_value(struct printer *p, const cJSON *node);

/* buf_char() inline where there is room. */
static inline void put(struct buf *b, char c)
{
    if (b->n < b->cap && !b->failed)
        b->p[b->n++] = c;
    else
        buf_char(b, c);
}

/* The fewest digits that read back as the same double: "d.ddde[+-]xx". Below 15 digits a decimal is
 * distinct from its neighbours anyway (DBL_DIG), unless the number is subnormal. */
static void shortest(double value, char *out, size_t space)
{
    int first = fabs(value) < DBL_MIN ? 0 : DBL_DIG - 1;

    for (int digits = first; digits < DBL_DECIMAL_DIG; digits++) {
        snprintf(out, space, "%.*e", digits, value);
        if (strtod(out, NULL) == value)
            return;
    }
}

/* Go: the form %f, and %e with a short exponent below 1e-6 and from 1e21 on. */
size_t json_format_double(double value, char out[32])
{
    char text[40], digits[24] = "0";
    bool minus = signbit(value) != 0;
    int n = 0, exponent, used;
    const char *p;

    shortest(fabs(value), text, sizeof text);
    for (p = text; *p != 'e'; p++)
        if (*p != '.' && n < (int)sizeof digits - 1)
            digits[n++] = *p;
    exponent = (int)strtol(p + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0')
        n--;

    if (value == 0)
        used = snprintf(out, 32, "%s0", minus ? "-" : "");
    else if (exponent < -6 || exponent >= 21)
        used = snprintf(out, 32, "%s%c%s%.*se%c%d", minus ? "-" : "", digits[0], n > 1 ? "." : "",
                        n - 1, digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        used =
            snprintf(out, 32, "%s0.%.*s%.*s", minus ? "-" : "", -exponent - 1, "000000", n, digits);
    else if (n <= exponent + 1)
        used = snprintf(out, 32, "%s%.*s%.*s", minus ? "-" : "", n, digits, exponent + 1 - n,
                        "00000000000000000000");
    else
        used = snprintf(out, 32, "%s%.*s.%.*s", minus ? "-" : "", exponent + 1, digits,
                        n - exponent - 1, digits + exponent + 1);
    return (size_t)used;
}

static void print_number(struct buf *b, const cJSON *node)
{
    const double exact = 9007199254740992.0; /* 2^53 */
    double value = node->valuedouble;
    char text[32];

    if (node->valuestring)
        buf_addc(b, node->valuestring);
    else if (!isfinite(value))
        buf_add(b, STR("null"));
    else if (fabs(value) <= exact && value == trunc(value) && !(value == 0 && signbit(value)))
        buf_i64(b, (int64_t)value);
    else
        buf_add(b, (struct str){text, json_format_double(value, text)});
}

static void new_line(const struct printer *p)
{
    static const char blanks[] = "                                ";
    size_t left = (size_t)p->depth * 2;

    buf_char(p->b, '\n');
    while (left) {
        size_t n = left < sizeof blanks - 1 ? left : sizeof blanks - 1;

        buf_add(p->b, (struct str){blanks, n});
        left -= n;
    }
}

static void print_children(struct printer *p, const cJSON *node, bool keys)
{
    if (p->depth++ == JSON_DEPTH_MAX) {
        p->b->failed = true;
        return;
    }
    for (const cJSON *child = node->child; child; child = child->next) {
        if (child != node->child)
            put(p->b, ',');
        if (p->pretty)
            new_line(p);
        if (keys) {
            buf_json_string(p->b, str_c(child->string));
            put(p->b, ':');
            if (p->pretty)
                put(p->b, ' ');
        }
        print_value(p, child);
        if (p->b->failed)
            return;
    }
    p->depth--;
    if (p->pretty && node->child)
        new_line(p);
}

static void print_value(struct printer *p, const cJSON *node)
{
    switch (node->type & 0xFF) {
    case cJSON_String:
        buf_json_string(p->b, json_str(node));
        break;
    case cJSON_Number:
        print_number(p->b, node);
        break;
    case cJSON_Object:
        put(p->b, '{');
        print_children(p, node, true);
        put(p->b, '}');
        break;
    case cJSON_Array:
        put(p->b, '[');
        print_children(p, node, false);
        put(p->b, ']');
        break;
    case cJSON_True:
        buf_add(p->b, STR("true"));
        break;
    case cJSON_False:
        buf_add(p->b, STR("false"));
        break;
    default:
        buf_add(p->b, STR("null"));
    }
}

void json_print(struct buf *b, const cJSON *node)
{
    struct printer p = {.b = b};

    print_value(&p, node);
}

void json_print_pretty(struct buf *b, const cJSON *node)
{
    struct printer p = {.b = b, .pretty = true};

    print_value(&p, node);
}

struct str json_text(struct arena *a, const cJSON *node)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    json_print(&b, node);
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}
