/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * One UTF-8 step, shared by everything in base that walks strings. Must never read past `end` and
 * never accept what RFC 3629 refuses (overlong forms, surrogates, beyond U+10FFFF). */
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline int utf8_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* Length in bytes (1 to 4) of the sequence at p < end; 0 when it is not well formed. */
static inline size_t utf8_step(const unsigned char *p, const unsigned char *end)
{
    size_t left = (size_t)(end - p);
    unsigned char c = p[0];

    if (c < 0x80)
        return 1;
    if (c < 0xC2 || c > 0xF4 || left < 2 || !utf8_tail(p[1]))
        return 0;
    if (c < 0xE0)
        return 2;

    if (left < 3 || !utf8_tail(p[2]))
        return 0;
    if (c < 0xF0) {
        if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F))
            return 0;
        return 3;
    }

    if (left < 4 || !utf8_tail(p[3]))
        return 0;
    if ((c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] > 0x8F))
        return 0;
    return 4;
}

/* Writes the code point (at most U+10FFFF, no surrogate) to out; returns its length. */
static inline size_t utf8_put(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}
