/* SPDX-License-Identifier: Apache-2.0
 * room: kube (private)
 *
 * What the string grammars and the JSON forms of selectors share. */
#pragma once

#include <sublet/selector.h>

/* The checks of labels.NewRequirement, with its messages: key, number of values, every value. */
int selector_check_term(struct arena *a, const struct selector_term *term,
                        struct err *err) MUST_CHECK;
/* By key; terms with the same key keep their order. */
void selector_sort_terms(struct selector_term *terms, size_t n);
int selector_too_long(struct err *err);
