/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * Eight bytes at a time: which of them a JSON string cannot hold, or JSON text cannot show, as they
 * are. Must never look at a byte that the caller did not load. */
#pragma once

#include <stdint.h>
#include <string.h>

#define SCAN_EACH(byte) (UINT64_C(0x0101010101010101) * (uint64_t)(byte))

static inline uint64_t scan_load(const void *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof word);
    return word;
}

/* In each of these the lowest set bit is exact and stands at the top of its byte; a bit above it
 * may come from the borrow and means nothing (Anderson, "Bit Twiddling Hacks"). */
static inline uint64_t scan_zero(uint64_t word)
{
    return (word - SCAN_EACH(1)) & ~word & SCAN_EACH(0x80);
}

/* Control characters, the quote, the backslash, and everything that is not ASCII. */
static inline uint64_t scan_read_stop(uint64_t word)
{
    uint64_t control = (word - SCAN_EACH(0x20)) & ~word & SCAN_EACH(0x80);

    return control | scan_zero(word ^ SCAN_EACH('"')) | scan_zero(word ^ SCAN_EACH('\\')) |
           (word & SCAN_EACH(0x80));
}

/* The same and < > &. Bit 2 is all that tells & from ", and bit 1 < from >. */
static inline uint64_t scan_print_stop(uint64_t word)
{
    uint64_t control = (word - SCAN_EACH(0x20)) & ~word & SCAN_EACH(0x80);

    return control | scan_zero((word & ~SCAN_EACH(4)) ^ SCAN_EACH('"')) |
           scan_zero((word & ~SCAN_EACH(2)) ^ SCAN_EACH('<')) | scan_zero(word ^ SCAN_EACH('\\')) |
           (word & SCAN_EACH(0x80));
}

/* How many bytes of the loaded word stand before the stop; stops is not 0. */
static inline size_t scan_before(uint64_t stops)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(stops) / 8;
#else
    (void)stops;
    return 0; /* the caller's byte loop finds it */
#endif
}
