/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/cel
 *
 * Regular expressions in RE2's syntax, of schemas and of CEL. Matching has limits, because PCRE2
 * backtracks: no pattern of a tenant blocks the loop. */
#pragma once

#include <sublet/mem.h>

struct pattern;

/* NULL, or the problem with the pattern. */
const char *pattern_check(struct arena *a, struct str text);
/* The compiled code is made when first needed; `next` chains what pattern_free_all() releases. */
struct pattern *pattern_new(struct arena *a, struct str text, struct pattern *next);
const char *pattern_text(const struct pattern *p);
void pattern_free_all(struct pattern *first); /* memory of the library, not of the arena */
/* Every use that needs the slower matcher takes one of the budget; without any the pattern holds
 * or not as far as it was tried. */
bool pattern_holds(struct pattern *p, struct str text, unsigned *budget);
/* 1: found at or after `from`, 0: not, -1: not known within so many steps. span: from, to, in a
 * string of at most 4 KiB; NULL, and from 0, when only the answer matters. */
#define PATTERN_QUICK 300
#define PATTERN_SLOW  200000
int pattern_search(struct pattern *p, struct str text, size_t from, unsigned steps, size_t span[2]);
