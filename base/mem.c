/* SPDX-License-Identifier: Apache-2.0 */
/* The heap and the arenas. Why: a request's objects die together, so they are allocated together;
 * what lives longer has a named owner. Must never return NULL: without memory the process aborts
 * and is restarted, and the store is safe against that. */

#include <sublet/mem.h>

#include <assert.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "format.h"

enum { ARENA_FIRST = 4096, ARENA_CHUNK_MAX = 65536 };

/* Of the process, as the heap itself is: a budget that each owner of memory would have to be handed
 * could be forgotten by one of them. */
static size_t in_use;
static uint64_t freed;

#define MALLOC_HEAD sizeof(size_t)

static void *need(void *p)
{
    if (!p)
        abort();
    __atomic_fetch_add(&in_use, malloc_usable_size(p) + MALLOC_HEAD, __ATOMIC_RELAXED);
    return p;
}

static void forget(void *p)
{
    size_t n;

    if (!p)
        return;
    n = malloc_usable_size(p) + MALLOC_HEAD;
    __atomic_fetch_sub(&in_use, n, __ATOMIC_RELAXED);
    __atomic_fetch_add(&freed, n, __ATOMIC_RELAXED);
}

size_t mem_in_use(void)
{
    return __atomic_load_n(&in_use, __ATOMIC_RELAXED);
}

uint64_t mem_freed(void)
{
    return __atomic_load_n(&freed, __ATOMIC_RELAXED);
}

/* The second number of statm is in pages. */
size_t mem_resident(void)
{
    char text[128];
    struct str rest, pages;
    uint64_t n = 0;
    ssize_t got;
    int fd;

    if (ARENA_ASAN)
        return 0;
    fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    got = fd < 0 ? -1 : read(fd, text, sizeof(text));
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    rest = (struct str){text, (size_t)got};
    (void)str_cut(&rest, ' ');
    pages = str_cut(&rest, ' ');
    return str_to_u64(pages, &n) ? (size_t)n * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

void mem_trim(void)
{
    malloc_trim(0);
}

void *mem_alloc(size_t size)
{
    return need(calloc(1, size ? size : 1));
}

void *mem_realloc(void *p, size_t size)
{
    forget(p);
    return need(realloc(p, size ? size : 1));
}

/* The capacity of an array of n items that is to take one more. */
static size_t grown(size_t n, size_t cap, size_t size)
{
    cap = cap ? cap * 2 : 8;
    assert(n < cap && cap <= SIZE_MAX / size);
    return cap;
}

void *mem_grow(void *items, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return items;
    *cap = grown(n, *cap, size);
    return mem_realloc(items, *cap * size);
}

void *mem_free(const void *p)
{
    union {
        const void *from;
        void *to;
    } pun = {.from = p}; /* a struct str owns memory through a const pointer */

    forget(pun.to);
    free(pun.to);
    return NULL;
}

static char *copy_into(char *to, struct str s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return to;
}

char *mem_strdup(struct str s)
{
    assert(s.n < SIZE_MAX);
    return copy_into(need(malloc(s.n + 1)), s);
}

struct str mem_str(struct str s)
{
    return (struct str){mem_strdup(s), s.n};
}

static void rewind_first(struct arena *a)
{
    a->at = a->first;
    a->end = ARENA_ASAN ? a->first : (char *)a + ARENA_FIRST;
    a->next_size = (size_t)ARENA_FIRST * 2;
    a->used = 0;
}

struct arena *arena_new(size_t limit)
{
    struct arena *a = need(malloc(ARENA_ASAN ? sizeof *a : (size_t)ARENA_FIRST));

    a->magic = ARENA_MAGIC;
    a->limit = limit;
    a->chunks = NULL;
    rewind_first(a);
    return a;
}

void arena_reset(struct arena *a)
{
    assert(a->magic == ARENA_MAGIC);
    for (struct arena_chunk *chunk = a->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        forget(chunk);
        free(chunk);
    }
    a->chunks = NULL;
    rewind_first(a);
}

struct arena *arena_free(struct arena *a)
{
    if (!a)
        return NULL;
    arena_reset(a);
    a->magic = 0;
    forget(a);
    free(a);
    return NULL;
}

static char *chunk_push(struct arena *a, size_t size)
{
    struct arena_chunk *chunk;

    if (size > SIZE_MAX - sizeof *chunk)
        abort();
    chunk = need(malloc(sizeof *chunk + size));
    chunk->size = size;
    chunk->next = a->chunks;
    a->chunks = chunk;
    return chunk->data;
}

/* The slow path: a chunk of its own for what is big (all, under ASan, so that it sees each bound),
 * otherwise a new chunk twice the size of the last one. */
void *arena_grow(struct arena *a, size_t size)
{
    char *p;

    assert(a->magic == ARENA_MAGIC);
    a->used += size;
    if (ARENA_ASAN || size > a->next_size / 4)
        return chunk_push(a, size);

    p = chunk_push(a, a->next_size - sizeof(struct arena_chunk));
    a->at = p + size;
    a->end = p + a->next_size - sizeof(struct arena_chunk);
    if (a->next_size < ARENA_CHUNK_MAX)
        a->next_size *= 2;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    assert(a->magic == ARENA_MAGIC);
    if (size > SIZE_MAX / 2)
        abort();
    return memset(arena_bump(a, size ? size : 1), 0, size);
}

size_t arena_used(const struct arena *a)
{
    return a->used;
}

size_t arena_left(const struct arena *a)
{
    if (!a->limit)
        return SIZE_MAX;
    return a->used < a->limit ? a->limit - a->used : 0;
}

bool arena_over(const struct arena *a)
{
    return a->limit && a->used > a->limit;
}

char *arena_cstr(struct arena *a, struct str s)
{
    assert(s.n < SIZE_MAX / 2);
    return copy_into(arena_bump(a, s.n + 1), s);
}

struct str arena_str(struct arena *a, struct str s)
{
    return (struct str){arena_cstr(a, s), s.n};
}

struct str arena_vprintf(struct arena *a, const char *format, va_list args)
{
    struct format f;
    struct str ret = arena_str(a, format_make(&f, format, args));

    format_fini(&f);
    return ret;
}

struct str arena_printf(struct arena *a, const char *format, ...)
{
    struct str ret;
    va_list args;

    va_start(args, format);
    ret = arena_vprintf(a, format, args);
    va_end(args);
    return ret;
}

void *arena_more(struct arena *a, void *items, size_t n, size_t *cap, size_t size)
{
    void *more;

    if (n < *cap)
        return items;
    *cap = grown(n, *cap, size);
    more = arena_alloc(a, *cap * size);
    if (n)
        memcpy(more, items, n * size);
    return more;
}

struct str arena_concat(struct arena *a, size_t n, const struct str *parts)
{
    size_t total = 0;
    char *p, *at;

    for (size_t i = 0; i < n; i++)
        total += parts[i].n;
    assert(total < SIZE_MAX / 2);

    p = at = arena_bump(a, total + 1);
    for (size_t i = 0; i < n; i++)
        at = copy_into(at, parts[i]) + parts[i].n;
    *at = 0;
    return (struct str){p, total};
}
