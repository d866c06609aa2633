/* SPDX-License-Identifier: Apache-2.0 */
/* Strings as values. Why: tenants' strings are not NUL-terminated and may hold NULs, so nothing
 * above base walks a char pointer by hand. Must never allocate, and never read outside [p, p + n).
 */

#include <sublet/str.h>

#include <string.h>
#include <strings.h>

#include "utf8.h"

struct str str_c(const char *text)
{
    if (!text)
        return STR_NULL;
    return (struct str){text, strlen(text)};
}

bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_eqc(struct str a, const char *text)
{
    return str_eq(a, str_c(text));
}

bool str_eq_nocase(struct str a, struct str b)
{
    return a.n == b.n && (!a.n || strncasecmp(a.p, b.p, a.n) == 0);
}

int str_cmp(struct str a, struct str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (order)
        return order;
    return (a.n > b.n) - (a.n < b.n);
}

int str_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

bool str_has_prefix(struct str s, struct str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_has_suffix(struct str s, struct str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

bool str_contains(struct str s, struct str part)
{
    if (part.n == 0)
        return true;
    return s.n >= part.n && memmem(s.p, s.n, part.p, part.n) != NULL;
}

struct str str_sub(struct str s, size_t from, size_t n)
{
    if (!s.p)
        return STR_NULL;
    if (from > s.n)
        from = s.n;
    if (n > s.n - from)
        n = s.n - from;
    return (struct str){s.p + from, n};
}

struct str str_clip(struct str s, size_t most)
{
    if (s.n <= most)
        return s;
    while (most && ((unsigned char)s.p[most] & 0xC0) == 0x80)
        most--;
    return str_sub(s, 0, most);
}

size_t str_characters(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

struct str str_from(struct str s, size_t from)
{
    return str_sub(s, from, SIZE_MAX);
}

size_t str_find(struct str s, char c)
{
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

size_t str_rfind(struct str s, char c)
{
    const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;

    return at ? (size_t)(at - s.p) : s.n;
}

struct str str_cut(struct str *rest, char sep)
{
    struct str all = *rest;
    size_t at = str_find(all, sep);

    *rest = at < all.n ? str_from(all, at + 1) : STR_NULL;
    return str_sub(all, 0, at);
}

int str_word_index(const char *words, struct str word)
{
    struct str rest = str_c(words);

    for (int i = 0; rest.p; i++) {
        if (str_eq(str_cut(&rest, '|'), word))
            return i;
    }
    return -1;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.n && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool str_lists_word(struct str list, struct str word)
{
    while (list.p) {
        if (str_eq_nocase(str_trim(str_cut(&list, ',')), word))
            return true;
    }
    return false;
}

#define ROTL(x, bits) (((x) << (bits)) | ((x) >> (64 - (bits))))

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = ROTL(s->v1, 13) ^ s->v0;
    s->v0 = ROTL(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = ROTL(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = ROTL(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = ROTL(s->v1, 17) ^ s->v2;
    s->v2 = ROTL(s->v2, 32);
}

/* SipHash-1-3 (Aumasson, Bernstein): short input is fast and without the key collisions cannot be
 * made, so a tenant's keys cannot turn a map into a list. The key is the seed, twice. */
uint64_t str_hash(struct str s, uint64_t seed)
{
    struct sip h = {0x736f6d6570736575 ^ seed, 0x646f72616e646f6d ^ ~seed,
                    0x6c7967656e657261 ^ seed, 0x7465646279746573 ^ ~seed};
    size_t left = s.n;
    const char *p = s.p;
    uint64_t word;

    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        h.v3 ^= word;
        sip_round(&h);
        h.v0 ^= word;
    }

    word = 0;
    if (left)
        memcpy(&word, p, left);
    word |= (uint64_t)s.n << 56;
    h.v3 ^= word;
    sip_round(&h);
    h.v0 ^= word;

    h.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&h);
    return h.v0 ^ h.v1 ^ h.v2 ^ h.v3;
}

bool str_to_u64(struct str s, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

bool str_to_i64(struct str s, int64_t *ret_value)
{
    bool minus = s.n && s.p[0] == '-';
    uint64_t value;

    if (!str_to_u64(minus ? str_from(s, 1) : s, &value))
        return false;
    if (value > (uint64_t)INT64_MAX + minus)
        return false;
    *ret_value = minus ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool str_is_utf8(struct str s)
{
    const unsigned char *p = (const unsigned char *)(s.p ? s.p : ""), *end = p + s.n;

    while (p < end) {
        size_t n = utf8_step(p, end);

        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

bool str_list_has(struct str_list list, struct str s)
{
    for (size_t i = 0; i < list.n; i++) {
        if (str_eq(list.items[i], s))
            return true;
    }
    return false;
}

bool str_list_has_or_star(struct str_list list, struct str s)
{
    for (size_t i = 0; i < list.n; i++) {
        if (str_eq(list.items[i], s) || str_eq(list.items[i], STR("*")))
            return true;
    }
    return false;
}
