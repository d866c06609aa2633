/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * The arena's body, for the decoders of base that allocate per byte of input and want the bump
 * pointer inline. Must never be included outside base. */
#pragma once

#include <sublet/mem.h>

#define ARENA_MAGIC 0xA4E7A001u
#define ARENA_ALIGN 16

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define ARENA_ASAN 1
#endif
#ifndef ARENA_ASAN
#define ARENA_ASAN 0
#endif

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    _Alignas(ARENA_ALIGN) char data[];
};

struct arena {
    unsigned magic;
    size_t limit, used;
    char *at, *end;             /* the free rest of the newest chunk */
    size_t next_size;           /* of the next chunk */
    struct arena_chunk *chunks; /* all but the first, which follows this struct */
    _Alignas(ARENA_ALIGN) char first[];
};

/* The slow path of arena_bump. */
void *arena_grow(struct arena *a, size_t size);

/* Like arena_alloc, but not zeroed; size is not 0. */
static inline void *arena_bump(struct arena *a, size_t size)
{
    if (ARENA_ASAN)
        return arena_grow(a, size);
    size = (size + (ARENA_ALIGN - 1)) & ~(size_t)(ARENA_ALIGN - 1);
    if (size <= (size_t)(a->end - a->at)) {
        void *p = a->at;

        a->at += size;
        a->used += size;
        return p;
    }
    return arena_grow(a, size);
}
