/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * What the string grammars and the JSON forms of selectors share. */
#pragma once

#include <sublet/selector.h>

/* What labels.NewRequirement checks, in its words: key, number of values, every value. */
int selector_check_term(struct arena *a, const struct selector_term *term,
                        struct err *err) MUST_CHECK;
/* By key; terms with the same key keep their order. */
void selector_sort_terms(struct selector_term *terms, size_t n);
int selector_too_long(struct err *err);
