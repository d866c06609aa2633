/* SPDX-License-Identifier: Apache-2.0 */
/* Byte buffers. Why: output is built by many small appends whose failure is one event, checked
 * once. Must never grow past its limit and never hold half of an append. */

#include <sublet/buf.h>

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include <sublet/mem.h>

#include "format.h"
#include "scan.h"
#include "utf8.h"

void buf_fini(struct buf *b)
{
    b->p = mem_free(b->p);
    b->n = b->cap = 0;
    b->failed = false;
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->failed = false;
}

/* Makes room for `more` bytes, or fails for good. */
static bool grow(struct buf *b, size_t more)
{
    size_t need, cap = b->cap ? b->cap : 256;

    if (b->failed)
        return false;
    if (__builtin_add_overflow(b->n, more, &need) || need > SIZE_MAX / 4 ||
        (b->limit && need > b->limit)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap)
        return true;

    while (cap < need)
        cap *= 2;
    if (b->limit && cap > b->limit)
        cap = b->limit;
    b->p = mem_realloc(b->p, cap);
    b->cap = cap;
    return true;
}

static inline bool room(struct buf *b, size_t more)
{
    return (!b->failed && more <= b->cap - b->n) || grow(b, more);
}

void buf_reserve(struct buf *b, size_t more)
{
    (void)room(b, more);
}

void buf_add(struct buf *b, struct str s)
{
    if (s.n == 0 || !room(b, s.n))
        return;
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
}

void buf_addc(struct buf *b, const char *text)
{
    buf_add(b, str_c(text));
}

void buf_char(struct buf *b, char c)
{
    if (room(b, 1))
        b->p[b->n++] = c;
}

void buf_i64(struct buf *b, int64_t value)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--p = '-';
    buf_add(b, (struct str){p, (size_t)(digits + sizeof digits - p)});
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
    struct format f;

    buf_add(b, format_make(&f, format, args));
    format_fini(&f);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    buf_vprintf(b, format, args);
    va_end(args);
}

void buf_drop(struct buf *b, size_t n)
{
    assert(n <= b->n);
    if (n && n < b->n)
        memmove(b->p, b->p + n, b->n - n);
    b->n -= n;
}

struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->n};
}

struct str buf_take(struct buf *b)
{
    struct str s = {b->p, b->n};

    b->p = NULL;
    b->n = b->cap = 0;
    return s;
}

/* 0: copied as it is; 'u': \u00xx; '8': the start of a longer sequence; else the letter after the
 * backslash. Like Go's encoding/json with HTML escaping: <, > and & are \u00xx too. */
static const char escapes[256] = {
    [0x00 ... 0x07] = 'u', ['\b'] = 'b',          ['\t'] = 't', ['\n'] = 'n',
    [0x0B] = 'u',          ['\f'] = 'f',          ['\r'] = 'r', [0x0E ... 0x1F] = 'u',
    ['"'] = '"',           ['\\'] = '\\',         ['<'] = 'u',  ['>'] = 'u',
    ['&'] = 'u',           [0x80 ... 0xFF] = '8',
};

/* Writes the escape of the special byte at p, returns how many bytes of the input it covers. */
static size_t escape_one(struct buf *b, const unsigned char *p, const unsigned char *end)
{
    static const char hex[] = "0123456789abcdef";
    char out[6] = {'\\', 'u', '0', '0', hex[*p >> 4], hex[*p & 15]};
    size_t n;

    if (escapes[*p] == 'u') {
        buf_add(b, (struct str){out, 6});
        return 1;
    }
    if (escapes[*p] != '8') {
        out[1] = escapes[*p];
        buf_add(b, (struct str){out, 2});
        return 1;
    }

    n = utf8_step(p, end);
    if (n == 0) {
        buf_add(b, STR("\\ufffd"));
        return 1;
    }
    if (n == 3 && p[0] == 0xE2 && p[1] == 0x80 && (p[2] & 0xFE) == 0xA8) /* U+2028, U+2029 */
        buf_addc(b, p[2] & 1 ? "\\u2029" : "\\u2028");
    else
        buf_add(b, (struct str){(const char *)p, n});
    return n;
}

void buf_json_string(struct buf *b, struct str s)
{
    const char *p = s.p ? s.p : "", *end = p + s.n;

    if (!room(b, s.n + 2))
        return;
    b->p[b->n++] = '"';
    while (p < end) {
        size_t n;

        if (!room(b, (size_t)(end - p) + 1))
            return;
        n = scan_copy(b->p + b->n, p, end, 1);
        b->n += n;
        p += n;
        if (p < end)
            p += escape_one(b, (const unsigned char *)p, (const unsigned char *)end);
    }
    buf_char(b, '"');
}
