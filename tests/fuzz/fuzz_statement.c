/* SPDX-License-Identifier: Apache-2.0 */
/* Statements of usage and cost. Any bytes are signed by no key of ours, and as the object of a
 * statement are refused in words or read completely. What the issuer signs verifies, unless its
 * sums are wrong; with another byte in it, it never does. */

#include <assert.h>
#include <stdlib.h>

#include "../../fleet/usage/statement.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void refused(const struct err *err)
{
    assert(err->kind && err->message.n && str_is_utf8(err->message));
}

static void check_signed(struct arena *a, struct str object, struct str private_pem,
                         struct str public_pem)
{
    struct statement s;
    struct str text;
    struct err err;

    err_init(&err, a);
    if (statement_sign(a, object, private_pem, &text, &err))
        abort();
    if (statement_verify(a, text, public_pem, &s, &err))
        refused(&err);
    char *changed = arena_cstr(a, text);
    changed[object.n / 2] ^= 1;
    assert(statement_verify(a, (struct str){changed, text.n}, public_pem, &s, &err));
    refused(&err);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)256 << 20);
    struct str bytes = {(const char *)data, size}, key, private_pem, public_pem;
    struct statement s;
    struct err err;

    err_init(&err, a);
    if (statement_key_new(a, &private_pem, &err) ||
        statement_key_public(a, private_pem, &public_pem, &err))
        abort();
    if (statement_read(a, bytes, &s, &key, &err)) {
        refused(&err);
    } else {
        assert(s.number > 0 && s.from_us < s.until_us && s.sha256.n == 64);
        assert((s.number == 1) == !s.previous.n);
    }
    assert(statement_verify(a, bytes, public_pem, &s, &err));
    refused(&err);
    if (statement_key_public(a, bytes, &key, &err))
        refused(&err);
    if (size > 2)
        check_signed(a, bytes, private_pem, public_pem);
    arena_free(a);
    return 0;
}
