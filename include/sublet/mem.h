/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * The heap for long-lived objects, and arenas for what lives as long as a request. Running out of
 * memory aborts: nothing above this file checks an allocation. */
#pragma once

#include <stdarg.h>

#include <sublet/str.h>

void *mem_alloc(size_t size); /* zeroed; never NULL */
void *mem_realloc(void *p, size_t size);
void *mem_free(const void *p);    /* takes NULL, returns NULL */
char *mem_strdup(struct str s);   /* NUL-terminated */
struct str mem_str(struct str s); /* heap copy, NUL after the last byte */

/* What all of these and all arenas hold now, in any thread: what a budget is compared with. */
size_t mem_in_use(void);
/* Of it, what was given back since the process began: holes that mem_trim() may close. */
uint64_t mem_freed(void);
/* Pages of the process in memory, or 0 where that says nothing (a sanitizer's shadow is in it). */
size_t mem_resident(void);
void mem_trim(void); /* gives what is free back to the kernel; milliseconds */

#define NEW(type) ((type *)mem_alloc(sizeof(type)))

/* Makes room for one more item behind the n present ones: GROW(b->items, b->n, b->cap). The
 * capacity doubles; added room is not zeroed. */
#define GROW(items, n, cap) ((items) = mem_grow((items), (n), &(cap), sizeof *(items)))
void *mem_grow(void *items, size_t n, size_t *cap, size_t size);

/* An arena frees everything at once and nothing singly. Not thread safe: one owner at a time. */
struct arena;

struct arena *arena_new(size_t limit);           /* bytes; 0 means no limit */
struct arena *arena_free(struct arena *a);       /* takes NULL, returns NULL */
void arena_reset(struct arena *a);               /* empties it, keeps one chunk */
void *arena_alloc(struct arena *a, size_t size); /* zeroed, 16-byte aligned, never NULL */
size_t arena_used(const struct arena *a);
size_t arena_left(const struct arena *a); /* up to the limit; SIZE_MAX without one */
/* True once allocations passed the limit. Allocation still succeeds: the decoder that grows with
 * its input checks this and fails with an error; no other caller needs to. */
bool arena_over(const struct arena *a);
char *arena_cstr(struct arena *a, struct str s); /* NUL-terminated copy */
struct str arena_str(struct arena *a, struct str s);
struct str arena_printf(struct arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* NUL-terminated as well */
struct str arena_vprintf(struct arena *a, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
struct str arena_concat(struct arena *a, size_t n, const struct str *parts);
#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
/* GROW in an arena, where the previous array stays allocated. */
#define ARENA_GROW(a, items, n, cap)                                                               \
    ((items) = arena_more((a), (items), (n), &(cap), sizeof *(items)))
void *arena_more(struct arena *a, void *items, size_t n, size_t *cap, size_t size);
