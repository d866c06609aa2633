/* SPDX-License-Identifier: Apache-2.0 */
/* A CA that signs nothing: for places where Kubernetes requires a CA and there is none to trust.
 * Must never let its key leave this file. */
#include <sublet/pki.h>

#include "pki_cert.h"

#define YEAR_S (INT64_C(365) * 86400)

int pki_placeholder_ca(struct arena *a, struct str cn, const struct clock *clock,
                       const struct rng *rng, struct str *ret_pem, struct err *err)
{
    int64_t now_s = clock_wall_s(clock);
    struct cert_request request = {
        .use = CERT_CA,
        .cn = cn,
        .not_before = now_s - 3600,
        .not_after = now_s + 100 * YEAR_S,
        .rng = rng,
    };
    EVP_PKEY *key = pki_key_new(err);
    X509 *cert = NULL;
    int failed = !key || pki_cert_issue(&request, key, NULL, key, &cert, err) ? -1 : 0;

    if (!failed)
        *ret_pem = pki_cert_pem(a, cert);
    X509_free(cert);
    EVP_PKEY_free(key);
    return failed;
}
