/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test of the syncer begins with: cmocka, and checks of our own types that print
 * what they saw. Must never hold state between tests. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <sublet/str.h>

#define assert_str(s, text) check_str((s), (text), __FILE__, __LINE__)

static inline void check_str(struct str got, const char *want, const char *file, int line)
{
    if (str_eqc(got, want))
        return;
    print_error("got  \"%.*s\"\nwant \"%s\"\n", STR_F(got), want);
    _fail(file, line);
}
