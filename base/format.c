/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that measures and formats. Why: printf's two passes are easy to get wrong. Must
 * never cut a result. */

#include "format.h"

#include <assert.h>
#include <stdio.h>

#include <sublet/mem.h>

struct str format_make(struct format *f, const char *format, va_list args)
{
    va_list again;
    int n;

    f->big = NULL;
    va_copy(again, args);
    n = vsnprintf(f->small, sizeof f->small, format, args);
    assert(n >= 0);
    if ((size_t)n >= sizeof f->small) {
        f->big = mem_alloc((size_t)n + 1);
        vsnprintf(f->big, (size_t)n + 1, format, again);
    }
    va_end(again);
    return (struct str){f->big ? f->big : f->small, (size_t)n};
}

void format_fini(struct format *f)
{
    f->big = mem_free(f->big);
}
