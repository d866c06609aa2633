/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of strict decoding errors. Why: upstream's decoder finds unknown and duplicate fields
 * in one pass, in the order of the body; our reader finds the duplicates, and the table the unknown
 * fields afterwards. So the body is scanned once more when there is more than one error. Must never
 * be used to validate: a body the reader refused never comes here. */

#include <sublet/schema.h>

#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_BYTES = 16 * 1024 };

/* An error and its position. */
struct placed {
    struct str text, path;
    bool unknown;
    size_t met;   /* how often its field occurred; a duplicate counts from the second time */
    size_t at;    /* position among the keys of the body; 0 while not found */
    size_t index; /* original position, which orders the errors that are not found */
};

struct scan {
    struct arena *a;
    struct str rest; /* the unread bytes */
    size_t keys;     /* read so far */
    struct buf path;
    struct placed *list;
    size_t n;
};

static bool is_unknown(struct str text)
{
    return str_has_prefix(text, STR("unknown field"));
}

/* ---- errors upstream does not report ---- */

static bool is_below(struct str path, struct str top)
{
    return str_has_prefix(path, top) &&
           (path.n == top.n || path.p[top.n] == '.' || path.p[top.n] == '[');
}

/* Whether the decoder skips it: it skips the value of an unknown field and does not remember its
 * name. */
static bool is_skipped(const struct strict_errors *e, size_t at)
{
    if (is_unknown(e->text[at]))
        return false;
    for (size_t i = e->lines; i < e->n; i++)
        if (is_unknown(e->text[i]) && is_below(e->path[at], e->path[i]))
            return true;
    return false;
}

/* ---- the scanner ---- */

static char peek(const struct scan *s)
{
    return s->rest.n ? s->rest.p[0] : '\0';
}

static void skip_space(struct scan *s)
{
    while (s->rest.n && strchr(" \t\r\n", s->rest.p[0]))
        s->rest = str_from(s->rest, 1);
}

static void expect(struct scan *s, char c)
{
    skip_space(s);
    if (peek(s) == c)
        s->rest = str_from(s->rest, 1);
    skip_space(s);
}

/* A string with its quotes. */
static struct str take_string(struct scan *s)
{
    size_t n = 1;
    struct str token;

    while (n < s->rest.n && s->rest.p[n] != '"')
        n += s->rest.p[n] == '\\' ? 2 : 1;
    token = str_sub(s->rest, 0, n + 1);
    s->rest = str_from(s->rest, token.n);
    return token;
}

static void skip_plain(struct scan *s)
{
    size_t n = 0;

    while (n < s->rest.n && !strchr(",]} \t\r\n", s->rest.p[n]))
        n++;
    s->rest = str_from(s->rest, n);
}

static struct str key_of(struct scan *s, struct str token)
{
    struct err err;
    cJSON *node;

    if (!memchr(token.p, '\\', token.n))
        return token.n >= 2 ? str_sub(token, 1, token.n - 2) : STR("");
    err_init(&err, s->a);
    return json_parse(s->a, token, &node, &err) ? STR("") : json_str(node);
}

/* ---- the errors in the body ---- */

static void scan_value(struct scan *s, unsigned depth);

static void scan_object(struct scan *s, unsigned depth)
{
    size_t n = s->path.n;
    struct str path;

    expect(s, '{');
    while (peek(s) == '"') {
        if (n)
            buf_char(&s->path, '.');
        buf_add(&s->path, key_of(s, take_string(s)));

        path = buf_str(&s->path);
        s->keys++;
        for (struct placed *p = s->list; p < s->list + s->n; p++) {
            if (p->at || p->path.n != path.n || !str_eq(p->path, path))
                continue;
            if (++p->met == (p->unknown ? 1 : 2))
                p->at = s->keys;
        }

        expect(s, ':');
        scan_value(s, depth);
        s->path.n = n;
        expect(s, ',');
    }
    expect(s, '}');
}

static void scan_array(struct scan *s, unsigned depth)
{
    size_t n = s->path.n;

    expect(s, '[');
    for (size_t i = 0; s->rest.n && peek(s) != ']'; i++) {
        buf_printf(&s->path, "[%zu]", i);
        scan_value(s, depth);
        s->path.n = n;
        expect(s, ',');
    }
    expect(s, ']');
}

static void scan_value(struct scan *s, unsigned depth)
{
    if (depth > JSON_LIMITS.depth)
        s->rest = STR("");
    else if (peek(s) == '{')
        scan_object(s, depth + 1);
    else if (peek(s) == '[')
        scan_array(s, depth + 1);
    else if (peek(s) == '"')
        (void)take_string(s);
    else
        skip_plain(s);
}

/* ---- sorting ---- */

static int by_place(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    size_t p = x->at ? x->at : SIZE_MAX, q = y->at ? y->at : SIZE_MAX;

    if (p != q)
        return p < q ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void strict_order(struct strict_errors *e, struct str json)
{
    struct scan s = {.a = e->arena, .rest = json, .path = BUF_INIT(PATH_MAX_BYTES)};

    if (e->n < 2)
        return;
    s.list = arena_alloc(e->arena, e->n * sizeof *s.list);
    for (size_t i = e->lines; i < e->n; i++)
        if (!is_skipped(e, i))
            s.list[s.n++] = (struct placed){.text = e->text[i],
                                            .path = e->path[i],
                                            .unknown = is_unknown(e->text[i]),
                                            .index = i};

    skip_space(&s);
    scan_value(&s, 0);
    buf_fini(&s.path);
    qsort(s.list, s.n, sizeof *s.list, by_place);
    for (size_t i = 0; i < s.n; i++) {
        e->text[e->lines + i] = s.list[i].text;
        e->path[e->lines + i] = s.list[i].path;
    }
    e->n = e->lines + s.n;
}
