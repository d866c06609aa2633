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
int rational_cmp(struct rational a, struct rational b);
