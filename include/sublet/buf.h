/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * A byte buffer that grows up to a limit. Passing the limit sets a sticky flag that is checked once
 * at the end; appends after that do nothing. */
#pragma once

#include <stdarg.h>

#include <sublet/str.h>

struct buf {
    char *p;
    size_t n, cap, limit; /* limit in bytes; 0 means no limit */
    bool failed;
};

#define BUF_INIT(max) ((struct buf){.limit = (max)})

void buf_fini(struct buf *b);
void buf_clear(struct buf *b); /* keeps the memory */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, struct str s);
void buf_addc(struct buf *b, const char *text);
void buf_char(struct buf *b, char c);
void buf_i64(struct buf *b, int64_t value);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void buf_json_string(struct buf *b, struct str s); /* quoted and escaped like Go's encoder */
void buf_drop(struct buf *b, size_t n);            /* removes n bytes from the front */
struct str buf_str(const struct buf *b);           /* a view; dies with the next append */
struct str buf_take(struct buf *b);                /* ownership moves: mem_free() of .p */
