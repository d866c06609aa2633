/* SPDX-License-Identifier: Apache-2.0 */
/* What a signer says it signed, from any bytes: lines before and after the blocks change nothing,
 * and what is accepted has a block and can be accepted twice. */
#include <assert.h>
#include <string.h>

#include "../../vapi/kinds/certificates/pem.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct str text = {(const char *)data, size}, line = STR("\n");
    struct arena *a = arena_new(0);
    const char *why = kinds_certificate_problem(a, text);
    struct str around = arena_concat(a, 3, (struct str[]){line, text, line});
    struct str twice = arena_concat(a, 3, (struct str[]){text, line, text});

    assert(same(why, kinds_certificate_problem(a, around)));
    if (!why) {
        assert(str_contains(text, STR("-----BEGIN CERTIFICATE-----")));
        assert(!kinds_certificate_problem(a, twice));
    }
    arena_free(a);
    return 0;
}
