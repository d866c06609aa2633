/* SPDX-License-Identifier: Apache-2.0
 * room: base (private)
 *
 * Formatting of any length: on the stack when the result is short, on the heap otherwise.
 * buf_vprintf, arena_vprintf and the errors are made of it. Must never be included outside base. */
#pragma once

#include <stdarg.h>

#include <sublet/str.h>

struct format {
    char small[512];
    char *big;
};

/* The result lives until format_fini. */
__attribute__((format(printf, 2, 0))) struct str format_make(struct format *f, const char *format,
                                                             va_list args);
void format_fini(struct format *f);
