/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of strict decoding errors: each once, at most 100, quoted as Go's strconv.Quote does.
 * Source: sigs.k8s.io/json. Must never let a body full of errors grow the answer without limit. */

#include <sublet/schema.h>

#include <assert.h>
#include <string.h>

enum { STRICT_MAX = 100 };

static struct str quoted(struct arena *a, const char *what, struct str path)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    buf_addc(&b, what);
    buf_addc(&b, " \"");
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        static const char escaped[] = "\a\b\f\n\r\t\v\\\"";
        static const char letters[] = "abfnrtv\\\"";
        const char *at = c ? strchr(escaped, c) : NULL;

        if (at) {
            buf_char(&b, '\\');
            buf_char(&b, letters[at - escaped]);
        } else if (c < ' ' || c == 0x7F) {
            buf_printf(&b, "\\x%02x", c);
        } else {
            buf_char(&b, (char)c);
        }
    }
    buf_char(&b, '"');
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

static struct str *more_room(struct strict_errors *e, const struct str *old, size_t cap)
{
    struct str *room = arena_alloc(e->arena, cap * sizeof *room);

    if (e->n)
        memcpy(room, old, e->n * sizeof *room);
    return room;
}

/* False for a duplicate. Both strings live in the arena. */
static bool add(struct strict_errors *e, struct str text, struct str path)
{
    for (size_t i = 0; i < e->n; i++) {
        if (str_eq(e->text[i], text))
            return false;
    }
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 8;

        e->text = more_room(e, e->text, cap);
        e->path = more_room(e, e->path, cap);
        e->cap = cap;
    }
    e->text[e->n] = text;
    e->path[e->n++] = path;
    return true;
}

void strict_add(struct strict_errors *e, const char *what, struct str path)
{
    if (e && e->n < STRICT_MAX)
        add(e, quoted(e->arena, what, path), arena_str(e->arena, path));
}

void strict_add_line(struct strict_errors *e, struct str line)
{
    assert(e->lines == e->n);
    if (e->n < STRICT_MAX && add(e, arena_str(e->arena, line), STR("")))
        e->lines++;
}

struct str strict_join(const struct strict_errors *e)
{
    struct buf b = BUF_INIT(64 * 1024);
    struct str text;

    if (e->lines)
        buf_addc(&b, "yaml: unmarshal errors:");
    for (size_t i = 0; i < e->n; i++) {
        buf_addc(&b, i < e->lines ? "\n  " : i ? ", " : "");
        buf_add(&b, e->text[i]);
    }
    text = arena_str(e->arena, buf_str(&b));
    buf_fini(&b);
    return text;
}
