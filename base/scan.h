/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * Copying bytes up to the first that a JSON string cannot hold, or that our printer cannot write,
 * as it is: a word at a time, because nearly all bytes of a document are plain. Must never load a
 * byte behind the end of the input. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SCAN_EACH(byte) (UINT64_C(0x0101010101010101) * (uint64_t)(byte))

/* Sets the top bit of each byte that is 0. The lowest bit set is exact; one above it may come from
 * the borrow and means nothing (Anderson, "Bit Twiddling Hacks"). The same holds for all masks. */
static inline uint64_t scan_zero(uint64_t word)
{
    return (word - SCAN_EACH(1)) & ~word & SCAN_EACH(0x80);
}

/* Control characters, the quote, the backslash, and everything that is not ASCII; when printing
 * also < > &: only bit 2 distinguishes & from ", and only bit 1 < from >. */
static inline uint64_t scan_stops(uint64_t word, int printing)
{
    uint64_t stops = (word - SCAN_EACH(0x20)) & ~word & SCAN_EACH(0x80);

    stops |= (word & SCAN_EACH(0x80)) | scan_zero(word ^ SCAN_EACH('\\'));
    if (!printing)
        return stops | scan_zero(word ^ SCAN_EACH('"'));
    return stops | scan_zero((word & ~SCAN_EACH(4)) ^ SCAN_EACH('"')) |
           scan_zero((word & ~SCAN_EACH(2)) ^ SCAN_EACH('<'));
}

/* Bit 0: the reader stops at the byte; bit 1: the printer does. */
static const unsigned char scan_table[256] = {
    [0x00 ... 0x1F] = 3, ['"'] = 3, ['\\'] = 3,          ['<'] = 2,
    ['>'] = 2,           ['&'] = 2, [0x80 ... 0xFF] = 3,
};

#ifdef __SSE2__
/* One bit per byte. A signed comparison with the blank finds control characters and non-ASCII. */
static inline unsigned scan_stops16(__m128i v, int printing)
{
    __m128i stops = _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(0x20)),
                                 _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));

    if (!printing) {
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
    } else {
        __m128i quotes = _mm_andnot_si128(_mm_set1_epi8(4), v);
        __m128i angles = _mm_andnot_si128(_mm_set1_epi8(2), v);

        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(quotes, _mm_set1_epi8('"')));
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(angles, _mm_set1_epi8('<')));
    }
    return (unsigned)_mm_movemask_epi8(stops);
}
#endif

/* Copies [p, end) to `to` up to the first stop and returns its length. `to` has room for all of
 * [p, end): whole words are written, so bytes after the copied ones may change. */
static inline size_t scan_copy(char *to, const char *p, const char *end, int printing)
{
    const char *begin = p;
    uint64_t word;

#ifdef __SSE2__
    for (; end - p >= 16; p += 16, to += 16) {
        __m128i v = _mm_loadu_si128((const __m128i_u *)p);
        unsigned stops = scan_stops16(v, printing);

        _mm_storeu_si128((__m128i_u *)to, v);
        if (stops)
            return (size_t)(p - begin) + (size_t)__builtin_ctz(stops);
    }
#endif
    for (; end - p >= 8; p += 8, to += 8) {
        memcpy(&word, p, 8);
        memcpy(to, &word, 8);
        if (scan_stops(word, printing))
            break;
    }
    if (end - begin >= 8 && end - p < 8) { /* the last word again, overlapping what is done */
        ptrdiff_t back = 8 - (end - p);

        memcpy(&word, end - 8, 8);
        memcpy(to - back, &word, 8);
        if (!scan_stops(word, printing))
            return (size_t)(end - begin);
    }
    while (p < end && !(scan_table[(unsigned char)*p] & (1 << printing)))
        *to++ = *p++;
    return (size_t)(p - begin);
}
