/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of strict decoding errors: each once, at most 100, quoted as Go's strconv.Quote does.
 * Source: sigs.k8s.io/json. Must never let a body full of errors grow the answer without limit. */

#include <sublet/schema.h>

#include <string.h>

enum { STRICT_MAX = 100 };

static void quote_char(struct buf *b, unsigned char c)
{
    static const char escaped[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    const char *at = c ? strchr(escaped, c) : NULL;

    if (at) {
        buf_char(b, '\\');
        buf_char(b, letters[at - escaped]);
    } else if (c < ' ' || c == 0x7F) {
        buf_printf(b, "\\x%02x", c);
    } else {
        buf_char(b, (char)c);
    }
}

static struct str quoted(struct arena *a, const char *what, struct str path)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    buf_addc(&b, what);
    buf_addc(&b, " \"");
    for (size_t i = 0; i < path.n; i++)
        quote_char(&b, (unsigned char)path.p[i]);
    buf_char(&b, '"');
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

void strict_add(struct strict_errors *e, const char *what, struct str path)
{
    struct str text;

    if (!e || e->n >= STRICT_MAX)
        return;
    text = quoted(e->arena, what, path);
    for (size_t i = 0; i < e->n; i++) {
        if (str_eq(e->text[i], text))
            return;
    }
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 8;
        struct str *more = arena_alloc(e->arena, cap * sizeof *more);

        if (e->n)
            memcpy(more, e->text, e->n * sizeof *more);
        e->text = more;
        e->cap = cap;
    }
    e->text[e->n++] = text;
}
