/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of a range, each with at most one owner: addresses of machines, pods and Services, and
 * ports of machines. Memory is used per taken number only. Must never give a number to two owners.
 */
#include "impl.h"

#include <assert.h>

#define NUMBERS_MAGIC 0x6e756d62u

struct taken {
    UT_hash_handle hh;
    uint32_t number;
    char *owner;
};

struct numbers {
    unsigned magic;
    uint32_t first, last;
    struct taken *map;
};

struct numbers *numbers_new(uint32_t first, uint32_t last)
{
    struct numbers *n = NEW(struct numbers);

    assert(first <= last);
    *n = (struct numbers){.magic = NUMBERS_MAGIC, .first = first, .last = last};
    return n;
}

static void drop(struct numbers *n, struct taken *t)
{
    HASH_DEL(n->map, t);
    mem_free(t->owner);
    mem_free(t);
}

struct numbers *numbers_free(struct numbers *n)
{
    if (!n)
        return NULL;
    assert(n->magic == NUMBERS_MAGIC);
    while (n->map)
        drop(n, n->map);
    n->magic = 0;
    return mem_free(n);
}

static struct taken *find(const struct numbers *n, uint32_t number)
{
    struct taken *t;

    HASH_FIND(hh, n->map, &number, sizeof(number), t);
    return t;
}

bool numbers_in(const struct numbers *n, uint32_t number)
{
    return number >= n->first && number <= n->last;
}

bool numbers_take(struct numbers *n, uint32_t number, struct str owner)
{
    struct taken *t = find(n, number);

    assert(n->magic == NUMBERS_MAGIC);
    if (!numbers_in(n, number))
        return false;
    if (t)
        return str_eqc(owner, t->owner);
    t = NEW(struct taken);
    t->number = number;
    t->owner = mem_strdup(owner);
    HASH_ADD(hh, n->map, number, sizeof(t->number), t);
    return true;
}

bool numbers_find(const struct numbers *n, uint32_t from, uint32_t *ret_number)
{
    uint32_t size = n->last - n->first + 1;

    if (HASH_COUNT(n->map) >= size)
        return false;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t number = n->first + (from % size + i) % size;

        if (find(n, number))
            continue;
        *ret_number = number;
        return true;
    }
    return false;
}

bool numbers_owned_by(const struct numbers *n, uint32_t number, struct str owner)
{
    const struct taken *t = find(n, number);

    return t && str_eqc(owner, t->owner);
}

void numbers_drop(struct numbers *n, uint32_t number, struct str owner)
{
    struct taken *t = find(n, number);

    if (t && str_eqc(owner, t->owner))
        drop(n, t);
}

bool numbers_ip_parse(struct str text, uint32_t *ret)
{
    uint32_t ip = 0;
    uint64_t part;

    for (int i = 0; i < 4; i++) {
        struct str digits = str_cut(&text, '.');

        if (!digits.n || digits.n > 3 || !str_to_u64(digits, &part) || part > 255)
            return false;
        ip = ip << 8 | (uint32_t)part;
    }
    *ret = ip;
    return !text.p;
}

struct str numbers_ip_format(struct arena *a, uint32_t ip)
{
    return arena_printf(a, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}
