/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON reader. Why: cJSON's own accepts what is not JSON and loses numbers. Strict RFC 8259
 * over input of known length; error messages follow Go's encoding/json, which clients have learnt
 * to read. Must never recurse past the limit, read past the input, or do more than linear work per
 * byte. */

#include <sublet/json.h>

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "json_impl.h"
#include "json_keys.h"
#include "scan.h"
#include "utf8.h"

/* Like sigs.k8s.io/json, which stops collecting strict errors there. */
enum { DUPLICATES_MAX = 100 };
enum { PATH_MAX_BYTES = 2048 };

const struct json_limits JSON_LIMITS = {.depth = 256, .nodes = 1000000};

/* One open container; the chain of them is the path of a duplicate key. */
struct frame {
    struct frame *up;
    const char *key; /* of the member being read; NULL in an array */
    size_t index;
};

struct reader {
    const char *begin, *p, *end;
    char *out; /* strings go here one after the other: unescaped they are never longer */
    bool nul;  /* the last string holds U+0000 */
    struct arena *a;
    size_t nodes_left;
    unsigned depth_left;
    struct frame *frame;
    json_duplicate_cb duplicate;
    void *ctx;
    const cJSON *last_duplicate;
    unsigned duplicates;
    struct err *err;
};

static bool read_value(struct reader *r, cJSON *node);

static bool fail(struct reader *r, const char *what)
{
    err_set(r->err, &ERR_BAD_REQUEST, "%s (offset %zu)", what, (size_t)(r->p - r->begin));
    return false;
}

/* The character at p is wrong `where`; at the end of the input its end is. */
static bool fail_at(struct reader *r, const char *p, const char *where)
{
    static const char letters[] = "abtnvfr"; /* Go's short escapes of 0x07 to 0x0D */
    const unsigned char *c = (const unsigned char *)p;
    char shown[8];

    r->p = p;
    if (p == r->end)
        return fail(r, "unexpected end of JSON input");

    /* Go reads bytes and prints each as if it were a code point. */
    if (*c >= 7 && *c <= 13)
        snprintf(shown, sizeof shown, "\\%c", letters[*c - 7]);
    else if (*c < 0x20 || *c == 0x7F)
        snprintf(shown, sizeof shown, "\\x%02x", *c);
    else if (*c >= 0x80 && (*c <= 0xA0 || *c == 0xAD))
        snprintf(shown, sizeof shown, "\\u%04x", *c);
    else if (*c >= 0x80)
        snprintf(shown, sizeof shown, "%c%c", 0xC0 | *c >> 6, 0x80 | (*c & 0x3F));
    else
        snprintf(shown, sizeof shown, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
    err_set(r->err, &ERR_BAD_REQUEST, "invalid character '%s' %s (offset %zu)", shown, where,
            (size_t)(p - r->begin));
    return false;
}

static inline const char *skip_blanks(struct reader *r)
{
    const char *p = r->p, *end = r->end;

    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return r->p = p;
}

static inline cJSON *new_node(struct reader *r)
{
    cJSON *node;

    if (r->nodes_left == 0) {
        fail(r, "document has too many values");
        return NULL;
    }
    if (arena_over(r->a)) {
        fail(r, "document needs too much memory");
        return NULL;
    }
    r->nodes_left--;
    node = arena_bump(r->a, sizeof *node);
    *node = (cJSON){0};
    return node;
}

/* Strings */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four digits at r->p, which moves behind them. */
static bool read_hex4(struct reader *r, uint32_t *ret)
{
    uint32_t code = 0;

    for (int i = 0; i < 4; i++, r->p++) {
        int digit = r->p < r->end ? hex_digit(*r->p) : -1;

        if (digit < 0)
            return fail_at(r, r->p, "in \\u hexadecimal character escape");
        code = code << 4 | (uint32_t)digit;
    }
    *ret = code;
    return true;
}

/* r->p stands behind `\u`. A surrogate without its other half becomes U+FFFD, as in Go. */
static bool read_unicode(struct reader *r, uint32_t *ret)
{
    uint32_t high = 0, low = 0;
    const char *after;

    if (!read_hex4(r, &high))
        return false;
    *ret = high;
    if (high < 0xD800 || high > 0xDFFF)
        return true;

    *ret = 0xFFFD;
    if (high > 0xDBFF || r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
        return true;
    after = r->p;
    r->p += 2;
    if (!read_hex4(r, &low))
        return false;
    if (low >= 0xDC00 && low <= 0xDFFF)
        *ret = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    else
        r->p = after;
    return true;
}

static const char simple_escapes[128] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* r->p stands at the backslash. */
static bool read_escape(struct reader *r, char **out)
{
    const char *p = r->p + 1;
    unsigned char c = p < r->end ? (unsigned char)*p : 0;
    uint32_t code = 0;

    if (c < 128 && simple_escapes[c]) {
        *(*out)++ = simple_escapes[c];
        r->p = p + 1;
        return true;
    }
    if (c != 'u')
        return fail_at(r, p, "in string escape code");

    r->p = p + 1;
    if (!read_unicode(r, &code))
        return false;
    r->nul |= code == 0;
    *out += utf8_put(*out, code);
    return true;
}

/* Ends the string that stands at start in the output. Under ASan it moves to an allocation of its
 * own, so that reading past it is seen. */
static struct str finish(struct reader *r, char *start, char *out)
{
    struct str s = {start, (size_t)(out - start)};

    *out = 0;
    if (ARENA_ASAN)
        return arena_str(r->a, s);
    r->out = out + 1;
    return s;
}

/* r->p stands behind the opening quote. */
static bool read_string(struct reader *r, struct str *ret)
{
    char *out = r->out;

    r->nul = false;
    for (;;) {
        size_t n = scan_copy(out, r->p, r->end, 0);
        const char *p = r->p += n;

        out += n;
        if (p == r->end || (unsigned char)*p < 0x20)
            return fail_at(r, p, "in string literal");
        if (*p == '"')
            break;
        if (*p == '\\') {
            if (!read_escape(r, &out))
                return false;
            continue;
        }

        n = utf8_step((const unsigned char *)p, (const unsigned char *)r->end);
        if (n == 0)
            return fail(r, "invalid UTF-8 in string literal");
        memcpy(out, p, n);
        out += n;
        r->p += n;
    }
    r->p++;
    *ret = finish(r, r->out, out);
    return true;
}

/* Writable view of a string that this reader put into the arena. */
static char *own(struct str s)
{
    union {
        const char *from;
        char *to;
    } pun = {.from = s.p};

    return pun.to;
}

static bool read_string_value(struct reader *r, cJSON *node)
{
    struct str s = STR_NULL;

    r->p++;
    if (!read_string(r, &s))
        return false;
    if (s.n > INT_MAX)
        return fail(r, "string is too long");
    node->type = cJSON_String;
    node->valuestring = own(s);
    node->valueint = (int)s.n;
    return true;
}

/* Numbers and words */

static inline bool is_digit(const char *p, const char *end)
{
    return p < end && (unsigned char)(*p - '0') <= 9;
}

/* The part from '.' or 'e' on; *at stands there. */
static bool skip_fraction(struct reader *r, const char **at)
{
    const char *p = *at, *end = r->end;

    if (p < end && *p == '.') {
        p++;
        if (!is_digit(p, end))
            return fail_at(r, p, "after decimal point in numeric literal");
        while (is_digit(p, end))
            p++;
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        if (!is_digit(p, end))
            return fail_at(r, p, "in exponent of numeric literal");
        while (is_digit(p, end))
            p++;
    }
    *at = p;
    return true;
}

static bool read_number(struct reader *r, cJSON *node)
{
    const char *start = r->p, *p = start, *digits, *end = r->end;
    bool minus = *p == '-';
    uint64_t value = 0;
    size_t n;

    digits = p += minus;
    if (!is_digit(p, end))
        return fail_at(r, p, "in numeric literal");
    if (*p == '0')
        p++;
    else
        for (; is_digit(p, end); p++)
            value = value * 10 + (uint64_t)(*p - '0');

    /* 15 digits are below 2^53: printing the double gives them back. */
    node->type = cJSON_Number;
    if (p - digits <= 15 && !(minus && value == 0) &&
        (p == end || (*p != '.' && (*p | 0x20) != 'e'))) {
        node->valuedouble = minus ? -(double)value : (double)value;
        r->p = p;
        return true;
    }

    if (!skip_fraction(r, &p))
        return false;
    n = (size_t)(p - start);
    memcpy(r->out, start, n);
    node->valuestring = own(finish(r, r->out, r->out + n));
    node->valuedouble = strtod(node->valuestring, NULL);
    if (!isfinite(node->valuedouble))
        return fail(r, "number is out of range");
    r->p = p;
    return true;
}

static bool read_word(struct reader *r, cJSON *node, struct str word, int type)
{
    const char *p = r->p;
    char where[64];

    for (size_t i = 0; i < word.n; i++, p++) {
        if (p < r->end && *p == word.p[i])
            continue;
        snprintf(where, sizeof where, "in literal %s (expecting '%c')", word.p, word.p[i]);
        return fail_at(r, p, where);
    }
    r->p = p;
    node->type = type;
    return true;
}

/* Duplicate keys */

/* Outermost first; a path that gets too long loses its end. */
static void add_path(struct buf *b, const struct frame *f)
{
    if (f->up)
        add_path(b, f->up);

    if (!f->key) {
        buf_printf(b, "[%zu]", f->index);
        return;
    }
    if (b->n)
        buf_char(b, '.');
    buf_add(b, (struct str){f->key, strnlen(f->key, PATH_MAX_BYTES)});
}

static void report_duplicate(struct reader *r, const cJSON *node)
{
    struct buf b = BUF_INIT(PATH_MAX_BYTES);

    if (!r->duplicate || node == r->last_duplicate || r->duplicates >= DUPLICATES_MAX)
        return;
    r->last_duplicate = node;
    r->duplicates++;
    add_path(&b, r->frame);
    r->duplicate(r->ctx, buf_str(&b));
    buf_fini(&b);
}

/* The member with that key, new or (a duplicate) emptied for its next value; NULL when over a
 * limit. */
static cJSON *member(struct reader *r, cJSON *object, struct json_keys *keys, struct str key)
{
    cJSON *node = json_keys_find(keys, object, key);

    if (node) {
        report_duplicate(r, node);
        *node = (cJSON){.next = node->next, .prev = node->prev, .string = node->string};
        return node;
    }
    node = new_node(r);
    if (!node)
        return NULL;
    node->string = own(key);
    json_link(object, node);
    json_keys_add(keys, object, node);
    return node;
}

/* Containers */

/* Reads `"key": value`; r->p stands at the first character. */
static bool read_member(struct reader *r, cJSON *object, struct json_keys *keys)
{
    struct str key;
    cJSON *node;

    if (r->p == r->end || *r->p != '"')
        return fail_at(r, r->p, "looking for beginning of object key string");
    r->p++;
    if (!read_string(r, &key))
        return false;
    if (r->nul)
        return fail(r, "object key contains U+0000");
    if (skip_blanks(r) == r->end || *r->p != ':')
        return fail_at(r, r->p, "after object key");
    r->p++;

    r->frame->key = key.p;
    node = member(r, object, keys, key);
    return node && read_value(r, node);
}

static bool read_members(struct reader *r, cJSON *object, struct json_keys *keys)
{
    skip_blanks(r);
    if (r->p < r->end && *r->p == '}') {
        r->p++;
        return true;
    }
    for (;;) {
        if (!read_member(r, object, keys))
            return false;
        if (skip_blanks(r) < r->end && *r->p == '}') {
            r->p++;
            return true;
        }
        if (r->p == r->end || *r->p != ',')
            return fail_at(r, r->p, "after object key:value pair");
        r->p++;
        skip_blanks(r);
    }
}

static bool read_elements(struct reader *r, cJSON *array)
{
    skip_blanks(r);
    if (r->p < r->end && *r->p == ']') {
        r->p++;
        return true;
    }
    for (;; r->frame->index++) {
        cJSON *node = new_node(r);

        if (!node)
            return false;
        json_link(array, node);
        if (!read_value(r, node))
            return false;
        if (skip_blanks(r) < r->end && *r->p == ']') {
            r->p++;
            return true;
        }
        if (r->p == r->end || *r->p != ',')
            return fail_at(r, r->p, "after array element");
        r->p++;
    }
}

static bool read_container(struct reader *r, cJSON *node, int type)
{
    struct frame frame = {.up = r->frame};
    struct json_keys keys = {0};
    bool ok;

    if (r->depth_left == 0)
        return fail_at(r, r->p, "exceeded max depth");
    r->depth_left--;
    r->p++;
    r->frame = &frame;
    node->type = type;
    if (type == cJSON_Array) {
        ok = read_elements(r, node);
    } else {
        ok = read_members(r, node, &keys);
        json_keys_fini(&keys);
    }
    r->frame = frame.up;
    r->depth_left++;
    return ok;
}

/* Fills node, which is zero but for its place in the tree. */
static bool read_value(struct reader *r, cJSON *node)
{
    if (skip_blanks(r) == r->end)
        return fail_at(r, r->p, "looking for beginning of value");
    switch (*r->p) {
    case '"':
        return read_string_value(r, node);
    case '{':
        return read_container(r, node, cJSON_Object);
    case '[':
        return read_container(r, node, cJSON_Array);
    case 't':
        return read_word(r, node, STR("true"), cJSON_True);
    case 'f':
        return read_word(r, node, STR("false"), cJSON_False);
    case 'n':
        return read_word(r, node, STR("null"), cJSON_NULL);
    case '-':
    case '0' ... '9':
        return read_number(r, node);
    default:
        return fail_at(r, r->p, "looking for beginning of value");
    }
}

int json_parse_strict(struct arena *a, struct str text, const struct json_limits *limits,
                      json_duplicate_cb duplicate, void *ctx, cJSON **ret, struct err *err)
{
    const char *begin = text.p ? text.p : "";
    struct reader r = {.begin = begin, .p = begin, .end = begin + text.n, .a = a};
    cJSON *node;

    if (!limits)
        limits = &JSON_LIMITS;
    r.nodes_left = limits->nodes;
    r.depth_left = limits->depth < JSON_DEPTH_MAX ? limits->depth : JSON_DEPTH_MAX;
    r.duplicate = duplicate;
    r.ctx = ctx;
    r.err = err;
    r.out = arena_bump(a, text.n + 1);

    node = new_node(&r);
    if (!node || !read_value(&r, node))
        return -1;
    if (skip_blanks(&r) != r.end) {
        fail_at(&r, r.p, "after top-level value");
        return -1;
    }
    if (arena_over(a)) {
        fail(&r, "document needs too much memory");
        return -1;
    }
    *ret = node;
    return 0;
}

int json_parse(struct arena *a, struct str text, cJSON **ret, struct err *err)
{
    return json_parse_strict(a, text, &JSON_LIMITS, NULL, NULL, ret, err);
}
