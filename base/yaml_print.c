/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML printer: block style, sequences not indented, as kubectl shows objects. Why: `Accept:
 * application/yaml`. Must never write a string that a YAML 1.1 or 1.2 reader takes for anything
 * else; in doubt it is quoted. */

#include "yaml_impl.h"

#include <string.h>

#include "json_impl.h"
#include "utf8.h"

/* libyaml and go-yaml take no more than 1024 characters for a key on one line. */
enum { SIMPLE_KEY_MAX = 128, INDENT = 2 };

struct printer {
    struct buf *b;
    unsigned depth;
};

static void print_block(struct printer *p, const cJSON *node, size_t indent);

static void put_indent(struct buf *b, size_t n)
{
    static const char blanks[] = "                                ";

    while (n) {
        size_t part = n < sizeof blanks - 1 ? n : sizeof blanks - 1;

        buf_add(b, (struct str){blanks, part});
        n -= part;
    }
}

/* Scalars */

/* True for what YAML cannot hold as it is, or what some reader takes for a line break. */
static bool is_special(const unsigned char *p, size_t n)
{
    if (n == 1)
        return *p < 0x20 || *p == 0x7F;
    if (n == 2)
        return p[0] == 0xC2 && p[1] < 0xA0; /* C1, and U+0085 */
    if (n != 3)
        return false;
    return (p[0] == 0xE2 && p[1] == 0x80 && (p[2] & 0xFE) == 0xA8) || /* U+2028, U+2029 */
           (p[0] == 0xEF && p[1] == 0xBB && p[2] == 0xBF) ||          /* U+FEFF */
           (p[0] == 0xEF && p[1] == 0xBF && p[2] >= 0xBE);            /* U+FFFE, U+FFFF */
}

static uint32_t code_point(const unsigned char *p, size_t n)
{
    if (n == 2)
        return (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
    return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
}

static void put_escape(struct buf *b, const unsigned char *p, size_t n)
{
    if (n == 0)
        buf_add(b, STR("\\uFFFD"));
    else if (*p == '\n')
        buf_add(b, STR("\\n"));
    else if (*p == '\t')
        buf_add(b, STR("\\t"));
    else if (*p == '\r')
        buf_add(b, STR("\\r"));
    else if (n == 1 && *p != '"' && *p != '\\')
        buf_printf(b, "\\x%02X", *p);
    else if (n == 1)
        buf_printf(b, "\\%c", *p);
    else
        buf_printf(b, "\\u%04X", code_point(p, n));
}

static void put_quoted(struct buf *b, struct str s)
{
    const unsigned char *p = (const unsigned char *)(s.p ? s.p : ""), *end = p + s.n;

    buf_char(b, '"');
    while (p < end) {
        size_t n = utf8_step(p, end);

        if (n == 0 || is_special(p, n) || *p == '"' || *p == '\\')
            put_escape(b, p, n);
        else
            buf_add(b, (struct str){(const char *)p, n});
        p += n ? n : 1;
    }
    buf_char(b, '"');
}

/* Characters that begin something else than a plain scalar. '.' is not one: "./x" is a string. */
static bool is_indicator(char c)
{
    return c == 0 || strchr("-?:,[]{}#&*!|>'\"%@`=<~ \t", c) != NULL;
}

/* A plain scalar on one line that every reader takes for this string. */
static bool is_plain(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;

    if (s.n == 0 || is_indicator(s.p[0]) || s.p[s.n - 1] == ' ' || s.p[s.n - 1] == ':')
        return false;
    if (str_contains(s, STR(": ")) || str_contains(s, STR(" #")))
        return false;
    while (p < end) {
        size_t n = utf8_step(p, end);

        if (n == 0 || is_special(p, n))
            return false;
        p += n;
    }
    if (str_has_prefix(s, STR("...")))
        return false;
    return yaml_plain_resolve(s).kind == PLAIN_STRING && !yaml_plain_is_odd(s);
}

/* Several lines that can stand as a literal block: the first one has to show the indentation. */
static bool is_literal(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;

    if (str_find(s, '\n') == s.n || s.p[0] == '\n' || s.p[0] == ' ' || s.p[0] == '\t')
        return false;
    while (p < end) {
        size_t n = utf8_step(p, end);

        if (n == 0 || (is_special(p, n) && *p != '\n' && *p != '\t'))
            return false;
        p += n;
    }
    return true;
}

/* "|", "|-" or "|+" and the lines, without the last line break. */
static void put_literal(struct buf *b, struct str s, size_t indent)
{
    bool newline = str_has_suffix(s, STR("\n"));
    struct str rest = s;

    buf_char(b, '|');
    if (!newline)
        buf_char(b, '-');
    else if (str_has_suffix(s, STR("\n\n")))
        buf_char(b, '+');
    if (newline)
        rest.n--;
    while (rest.p) {
        struct str line = str_cut(&rest, '\n');

        buf_char(b, '\n');
        if (line.n)
            put_indent(b, indent);
        buf_add(b, line);
    }
}

/* Collections */

static bool is_block(const cJSON *node)
{
    return (json_is_object(node) || json_is_array(node)) && node->child;
}

static void put_scalar(struct printer *p, const cJSON *node, size_t indent)
{
    if (json_is_string(node)) {
        struct str s = json_str(node);

        if (is_plain(s))
            buf_add(p->b, s);
        else if (is_literal(s))
            put_literal(p->b, s, indent ? indent : INDENT);
        else
            put_quoted(p->b, s);
    } else {
        json_print(p->b, node); /* also [] and {} */
    }
}

/* Key and colon. A key that a reader would not take on one line is written with `?`. */
static void put_key(struct printer *p, struct str key, size_t indent)
{
    if (key.n > SIMPLE_KEY_MAX)
        buf_add(p->b, STR("? "));
    if (is_plain(key))
        buf_add(p->b, key);
    else
        put_quoted(p->b, key);
    if (key.n > SIMPLE_KEY_MAX) {
        buf_char(p->b, '\n');
        put_indent(p->b, indent);
    }
    buf_char(p->b, ':');
}

/* The members of a mapping; the cursor stands where the first key goes. */
static void print_members(struct printer *p, const cJSON *object, size_t indent)
{
    json_each(child, object)
    {
        if (child != object->child) {
            buf_char(p->b, '\n');
            put_indent(p->b, indent);
        }
        put_key(p, str_c(child->string), indent);
        if (!is_block(child)) {
            buf_char(p->b, ' ');
            put_scalar(p, child, indent + INDENT);
        } else {
            size_t deeper = json_is_array(child) ? indent : indent + INDENT;

            buf_char(p->b, '\n');
            put_indent(p->b, deeper);
            print_block(p, child, deeper);
        }
    }
}

static void print_items(struct printer *p, const cJSON *array, size_t indent)
{
    json_each(child, array)
    {
        if (child != array->child) {
            buf_char(p->b, '\n');
            put_indent(p->b, indent);
        }
        buf_add(p->b, STR("- "));
        if (is_block(child))
            print_block(p, child, indent + INDENT);
        else
            put_scalar(p, child, indent + INDENT);
    }
}

/* A collection that is not empty; its first line is begun already. */
static void print_block(struct printer *p, const cJSON *node, size_t indent)
{
    if (p->depth == JSON_DEPTH_MAX)
        p->b->failed = true;
    if (p->b->failed)
        return;
    p->depth++;
    if (json_is_object(node))
        print_members(p, node, indent);
    else
        print_items(p, node, indent);
    p->depth--;
}

void yaml_print(struct buf *b, const cJSON *node)
{
    struct printer p = {.b = b};

    if (is_block(node))
        print_block(&p, node, 0);
    else
        put_scalar(&p, node, 0);
    buf_char(b, '\n');
}
