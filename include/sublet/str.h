/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * A string is a pointer and a length, passed by value; it owns nothing and need not end in NUL.
 * NUL-terminated strings appear only at the edges of libraries. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    const char *p;
    size_t n;
};

/* Elements of an array; never of a pointer. */
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
/* The struct of a type whose member p points to. */
#define CONTAINER(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

#define STR(literal) ((struct str){("" literal), sizeof(literal) - 1})
#define STR_NULL     ((struct str){NULL, 0})
/* For printf: printf("%.*s", STR_F(s)). */
#define STR_F(s) ((int)(s).n), ((s).p ? (s).p : "")

struct str str_c(const char *text); /* NULL gives STR_NULL */
bool str_eq(struct str a, struct str b);
bool str_eqc(struct str a, const char *text);
bool str_eq_nocase(struct str a, struct str b); /* of ASCII letters */
int str_cmp(struct str a, struct str b);        /* bytewise; the order of LIST */
int str_order(const void *a, const void *b);    /* the same of two struct str *, for qsort */
bool str_has_prefix(struct str s, struct str prefix);
bool str_has_suffix(struct str s, struct str suffix);
bool str_contains(struct str s, struct str part);
struct str str_sub(struct str s, size_t from, size_t n); /* clipped to s */
struct str str_from(struct str s, size_t from);
/* The longest prefix of at most so many bytes that ends between two characters of UTF-8. */
struct str str_clip(struct str s, size_t most);
size_t str_characters(struct str s); /* of UTF-8: every byte but those that continue one */
/* Index of the first (last) c, or s.n when there is none. */
size_t str_find(struct str s, char c);
size_t str_rfind(struct str s, char c);
/* Cuts *rest at the first sep: returns what stands before it, *rest becomes what follows.
 * Without a sep returns all and *rest becomes STR_NULL (p == NULL ends a loop). */
struct str str_cut(struct str *rest, char sep);
/* One of the words between commas, in any case and between blanks: lists in headers of HTTP. */
bool str_lists_word(struct str list, struct str word);
/* Index of word among words parted by '|', as in "a|b|c"; -1 when it is none of them. */
int str_word_index(const char *words, struct str word);
struct str str_trim(struct str s);              /* ASCII blanks at both ends */
uint64_t str_hash(struct str s, uint64_t seed); /* keyed; for hash maps only */
/* All of it must be a decimal number in range (no sign for u64, no blanks, no overflow). */
bool str_to_u64(struct str s, uint64_t *ret_value);
bool str_to_i64(struct str s, int64_t *ret_value);
/* True when s is well-formed UTF-8 (no surrogates, no overlong forms). */
bool str_is_utf8(struct str s);

/* Strings in an order that means nothing; it owns neither the array nor the strings. */
struct str_list {
    const struct str *items;
    size_t n;
};
bool str_list_has(struct str_list list, struct str s);
bool str_list_has_or_star(struct str_list list, struct str s); /* s or "*", as rules say "any" */
