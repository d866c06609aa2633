/* SPDX-License-Identifier: Apache-2.0
 * room: base
 *
 * Exact fractions, for shares of a GPU. */
#pragma once

#include <sublet/mem.h>

/* An exact fraction in lowest terms, den > 0. */
struct rational {
    int64_t num, den;
};
#define RATIONAL_ZERO ((struct rational){0, 1})
bool rational_parse(struct str text, struct rational *ret); /* "4", "0.25", "1/7" */
/* "4", "0.25" where at most 17 places say it exactly, else "1/7". */
struct str rational_format(struct arena *a, struct rational r);
/* False (and *ret untouched) on overflow. */
bool rational_add(struct rational a, struct rational b, struct rational *ret);
bool rational_sub(struct rational a, struct rational b, struct rational *ret);
bool rational_mul(struct rational a, struct rational b, struct rational *ret);
/* Sums that bound or show something, of what is not negative: one that does not fit is the most
 * there is, and stays that, so it is never less than its parts. */
#define RATIONAL_MOST ((struct rational){INT64_MAX, 1})
void rational_add_most(struct rational *sum, struct rational more);
int64_t i64_add_most(int64_t a, int64_t b);
int rational_cmp(struct rational a, struct rational b);
/* The product of at most so many factors, none negative, as money: exact whatever its size, rounded
 * once, half up, to 6 places, of which 2 are always shown: "5.00", "0.357143". */
#define RATIONAL_FACTORS 4
struct str rational_money(struct arena *a, const struct rational *factors, size_t n);
