/* SPDX-License-Identifier: Apache-2.0 */
/* See reader.h: RFC 8259, recursive descent with a depth limit, nothing shared with the product's
 * reader but memory. */
#include "reader.h"

#include <string.h>

enum { DEPTH_MAX = 100 };

struct reader {
    struct arena *arena;
    const char *p, *end;
    const char *why;
};

static struct node *wrong(struct reader *r, const char *why)
{
    if (!r->why)
        r->why = why;
    return NULL;
}

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

static struct node *make(struct reader *r, enum node_type type)
{
    struct node *n = arena_alloc(r->arena, sizeof *n);

    memset(n, 0, sizeof *n);
    n->type = type;
    return n;
}

static void append(struct node *parent, struct node *item)
{
    if (parent->last)
        parent->last->next = item;
    else
        parent->first = item;
    parent->last = item;
}

/* ---- strings ---- */

static int hex4(struct reader *r)
{
    int value = 0;

    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit;

        if (r->p >= r->end || !*r->p)
            return -1;
        digit = strchr(digits, *r->p >= 'A' && *r->p <= 'F' ? *r->p + 32 : *r->p);
        if (!digit)
            return -1;
        value = value * 16 + (int)(digit - digits);
        r->p++;
    }
    return value;
}

static char *add_utf8(char *out, int code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xC0 | (code >> 6));
        *out++ = (char)(0x80 | (code & 63));
    } else if (code < 0x10000) {
        *out++ = (char)(0xE0 | (code >> 12));
        *out++ = (char)(0x80 | ((code >> 6) & 63));
        *out++ = (char)(0x80 | (code & 63));
    } else {
        *out++ = (char)(0xF0 | (code >> 18));
        *out++ = (char)(0x80 | ((code >> 12) & 63));
        *out++ = (char)(0x80 | ((code >> 6) & 63));
        *out++ = (char)(0x80 | (code & 63));
    }
    return out;
}

/* After the backslash and the u. */
static char *unicode(struct reader *r, char *out)
{
    int high = hex4(r), low;

    if (high < 0 || (high >= 0xDC00 && high < 0xE000))
        return NULL;
    if (high < 0xD800 || high >= 0xE000)
        return add_utf8(out, high);
    if (r->end - r->p < 6 || r->p[0] != '\\' || r->p[1] != 'u')
        return NULL;
    r->p += 2;
    low = hex4(r);
    if (low < 0xDC00 || low >= 0xE000)
        return NULL;
    return add_utf8(out, 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
}

static char *escape(struct reader *r, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->p < r->end ? *r->p++ : 0;
    const char *at = c ? strchr(from, c) : NULL;

    if (c == 'u')
        return unicode(r, out);
    if (!at)
        return NULL;
    *out++ = to[at - from];
    return out;
}

static bool read_string(struct reader *r, struct str *ret)
{
    const char *close = r->p + 1;
    char *text, *out;

    while (close < r->end && *close != '"')
        close += *close == '\\' ? 2 : 1;
    if (close >= r->end)
        return wrong(r, "a string without an end") != NULL;
    text = out = arena_alloc(r->arena, (size_t)(close - r->p) + 1);
    r->p++;
    while (r->p < close) {
        if ((unsigned char)*r->p < 0x20)
            return wrong(r, "a control character in a string") != NULL;
        if (*r->p != '\\') {
            *out++ = *r->p++;
            continue;
        }
        r->p++;
        out = escape(r, out);
        if (!out)
            return wrong(r, "an invalid escape") != NULL;
    }
    r->p = close + 1;
    *ret = (struct str){text, (size_t)(out - text)};
    return true;
}

/* ---- values ---- */

static struct node *read_value(struct reader *r, unsigned depth);

static struct node *read_list(struct reader *r, unsigned depth)
{
    struct node *list = make(r, NODE_LIST);

    r->p++;
    skip_blanks(r);
    if (r->p < r->end && *r->p == ']') {
        r->p++;
        return list;
    }
    for (;;) {
        struct node *item = read_value(r, depth + 1);

        if (!item)
            return NULL;
        append(list, item);
        skip_blanks(r);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            continue;
        }
        if (r->p >= r->end || *r->p++ != ']')
            return wrong(r, "a list without an end");
        return list;
    }
}

static struct node *read_member(struct reader *r, const struct node *object, unsigned depth)
{
    struct node *item;
    struct str key;

    skip_blanks(r);
    if (r->p >= r->end || *r->p != '"')
        return wrong(r, "a key is missing");
    if (!read_string(r, &key))
        return NULL;
    if (node_get_str(object, key))
        return wrong(r, "a key twice in one object");
    skip_blanks(r);
    if (r->p >= r->end || *r->p++ != ':')
        return wrong(r, "a colon is missing");
    item = read_value(r, depth + 1);
    if (item)
        item->key = key;
    return item;
}

static struct node *read_object(struct reader *r, unsigned depth)
{
    struct node *object = make(r, NODE_OBJECT);

    r->p++;
    skip_blanks(r);
    if (r->p < r->end && *r->p == '}') {
        r->p++;
        return object;
    }
    for (;;) {
        struct node *item = read_member(r, object, depth);

        if (!item)
            return NULL;
        append(object, item);
        skip_blanks(r);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            continue;
        }
        if (r->p >= r->end || *r->p++ != '}')
            return wrong(r, "an object without an end");
        return object;
    }
}

static struct node *read_number(struct reader *r)
{
    struct node *n = make(r, NODE_NUMBER);
    const char *start = r->p;

    while (r->p < r->end && strchr("+-.eE0123456789", *r->p) && *r->p)
        r->p++;
    n->text = (struct str){start, (size_t)(r->p - start)};
    if (*start == '-')
        start++;
    if (start >= r->p || *start < '0' || *start > '9' ||
        (*start == '0' && start + 1 < r->p && start[1] >= '0' && start[1] <= '9'))
        return wrong(r, "an invalid number");
    return n;
}

static struct node *read_word(struct reader *r)
{
    static const struct {
        const char *word;
        enum node_type type;
    } words[] = {{"null", NODE_NULL}, {"true", NODE_BOOL}, {"false", NODE_BOOL}};

    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i].word);

        if ((size_t)(r->end - r->p) >= n && memcmp(r->p, words[i].word, n) == 0) {
            struct node *node = make(r, words[i].type);

            r->p += n;
            node->text = str_c(words[i].word);
            return node;
        }
    }
    return wrong(r, "not JSON");
}

static struct node *read_value(struct reader *r, unsigned depth)
{
    struct node *n;

    if (depth > DEPTH_MAX)
        return wrong(r, "too deep");
    skip_blanks(r);
    if (r->p >= r->end)
        return wrong(r, "it ends too early");
    switch (*r->p) {
    case '{':
        return read_object(r, depth);
    case '[':
        return read_list(r, depth);
    case '"':
        n = make(r, NODE_STRING);
        return read_string(r, &n->text) ? n : NULL;
    default:
        return *r->p == '-' || (*r->p >= '0' && *r->p <= '9') ? read_number(r) : read_word(r);
    }
}

struct node *node_read(struct arena *a, struct str json, const char **ret_why)
{
    struct reader r = {a, json.p, json.p + json.n, NULL};
    struct node *n = read_value(&r, 0);

    if (n) {
        skip_blanks(&r);
        if (r.p < r.end)
            n = wrong(&r, "bytes after the end");
    }
    *ret_why = r.why;
    return n;
}

/* ---- access ---- */

struct node *node_get_str(const struct node *object, struct str key)
{
    for (struct node *n = object && object->type == NODE_OBJECT ? object->first : NULL; n;
         n = n->next) {
        if (str_eq(n->key, key))
            return n;
    }
    return NULL;
}

struct node *node_get(const struct node *object, const char *key)
{
    return node_get_str(object, str_c(key));
}

/* Cuts the next step off *path: a key, or an index (then *ret_index is not -1). */
static struct str next_step(struct str *path, int *ret_index)
{
    struct str step;
    size_t n = 0;

    *ret_index = -1;
    if (path->n && path->p[0] == '.')
        *path = str_from(*path, 1);
    if (path->n && path->p[0] == '[') {
        *ret_index = 0;
        for (n = 1; n < path->n && path->p[n] != ']'; n++)
            *ret_index = *ret_index * 10 + (path->p[n] - '0');
        *path = str_from(*path, n + 1);
        return STR("");
    }
    if (path->n && path->p[0] == '\'') {
        *path = str_from(*path, 1);
        n = str_find(*path, '\'');
        step = str_sub(*path, 0, n);
        *path = str_from(*path, n + 1);
        return step;
    }
    while (n < path->n && path->p[n] != '.' && path->p[n] != '[')
        n++;
    step = str_sub(*path, 0, n);
    *path = str_from(*path, n);
    return step;
}

static struct node *nth(const struct node *list, int index)
{
    struct node *n = list && list->type == NODE_LIST ? list->first : NULL;

    while (n && index-- > 0)
        n = n->next;
    return n;
}

struct node *node_at(struct arena *a, struct node *root, struct str path, bool create)
{
    struct node *at = root;

    while (at && path.n) {
        int index;
        struct str step = next_step(&path, &index);
        struct node *next = index >= 0 ? nth(at, index) : node_get_str(at, step);

        if (!next && create) {
            struct reader r = {.arena = a};

            next = make(&r, NODE_OBJECT);
            next->key = step;
            if (at->type != NODE_LIST)
                at->type = NODE_OBJECT;
            append(at, next);
        }
        at = next;
    }
    return at;
}

bool node_remove(struct node *root, struct str path)
{
    struct node *at = root, *parent = NULL, **link, *before = NULL;

    while (at && path.n) {
        int index;
        struct str step = next_step(&path, &index);

        parent = at;
        at = index >= 0 ? nth(at, index) : node_get_str(at, step);
    }
    if (!at || !parent)
        return false;
    for (link = &parent->first; *link != at; link = &(*link)->next)
        before = *link;
    *link = at->next;
    if (parent->last == at)
        parent->last = before;
    return true;
}

bool node_equal(const struct node *a, const struct node *b)
{
    size_t n = 0, m = 0;

    if (!a || !b || a->type != b->type)
        return a == b;
    if (a->type != NODE_LIST && a->type != NODE_OBJECT)
        return str_eq(a->text, b->text);
    if (a->type == NODE_LIST) {
        const struct node *x = a->first, *y = b->first;

        for (; x && y && node_equal(x, y); x = x->next)
            y = y->next;
        return !x && !y;
    }
    node_each(member, b)
    {
        m++;
    }
    node_each(member, a)
    {
        n++;
        if (!node_equal(member, node_get_str(b, member->key)))
            return false;
    }
    return n == m;
}

struct str node_text(const struct node *n)
{
    return n && n->type == NODE_STRING ? n->text : STR("");
}

struct node *node_copy(struct arena *a, const struct node *n)
{
    struct reader r = {.arena = a};
    struct node *ret = make(&r, n->type);

    ret->key = n->key;
    ret->text = n->text;
    node_each(item, n)
    {
        append(ret, node_copy(a, item));
    }
    return ret;
}
