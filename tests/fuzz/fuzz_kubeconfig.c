/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig of the host from any bytes: it is refused in words, or says where the host is and
 * holds what can be held: PEM, one way to authenticate. Files it names lie in a directory
 * that does not exist. */

#include <assert.h>

#include "../../syncer/host/kubeconfig.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* A read of these would wait, or say something else each time. */
static bool names_a_device(struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (str_has_prefix(str_from(text, i), STR("/dev")) ||
            str_has_prefix(str_from(text, i), STR("/proc")))
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct arena *a = arena_new((size_t)64 << 20);
    struct str text = {(const char *)data, size};
    struct kubeconfig k;
    struct err err;

    err_init(&err, a);
    if (names_a_device(text))
        goto out;
    if (host_kubeconfig_parse(a, text, STR("/nonexistent"), &k, &err)) {
        assert(err.kind && err.message.n && str_is_utf8(err.message));
    } else {
        assert(k.server.n && k.server.p[k.server.n - 1] != '/');
        assert(!k.certificate.n == !k.key.n);
    }
out:
    arena_free(a);
    return 0;
}
