/* SPDX-License-Identifier: Apache-2.0 */
/* A regular expression of a schema and a string, with a zero byte between: what the check lets pass
 * compiles, and matching ends within its budget with the same answer twice; what it refuses is
 * refused in words and must still be survived. */

#include <assert.h>

#include "../../vapi/crd/version.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size}, expression = str_cut(&text, '\0');
    struct arena *a = arena_new((size_t)64 << 20);

    if (str_is_utf8(expression) && str_is_utf8(text)) {
        const char *wrong = pattern_check(a, expression);
        struct pattern *first = pattern_new(a, expression, NULL);
        struct pattern *second = pattern_new(a, expression, first);
        unsigned one = 100, two = 100;

        assert(!wrong || *wrong);
        assert(str_eq(str_c(pattern_text(first)), arena_str(a, expression)));
        assert(pattern_holds(first, text, &one) == pattern_holds(second, text, &two));
        assert(one == two && one <= 100);
        pattern_free_all(second);
    }
    arena_free(a);
    return 0;
}
