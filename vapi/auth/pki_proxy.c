/* SPDX-License-Identifier: Apache-2.0
 *
 * The front proxy that this process is for extension API servers: an authority of its own, which
 * they read from the ConfigMap extension-apiserver-authentication, and the client certificate by
 * which they believe who the user is. No other certificate is signed by it, and nothing here trusts
 * it. Records: "proxy.ca.crt", "proxy.ca.key"; the certificate is in memory, and only once it is
 * needed. Unlike the cluster's own authority this one may be replaced: its readers follow the
 * ConfigMap. */
#include "pki_impl.h"

#include <assert.h>

#define CA_LIFETIME (10 * YEAR)
#define CA_RENEWED  YEAR /* before its end */

static struct cert_request request_of(struct pki *p, enum cert_use use, const char *cn,
                                      int64_t seconds)
{
    int64_t now = clock_wall_s(p->clock);

    return (struct cert_request){.use = use,
                                 .cn = str_c(cn),
                                 .not_before = now - SKEW,
                                 .not_after = now + seconds,
                                 .rng = p->rng};
}

static int make_authority(struct pki *p, struct pki_pair *ret, struct err *err)
{
    struct cert_request request = request_of(p, CERT_CA, "front-proxy-ca", CA_LIFETIME);
    struct arena *a;

    *ret = (struct pki_pair){.key = pki_key_new(err)};
    if (!ret->key || pki_cert_issue(&request, ret->key, NULL, NULL, &ret->cert, err)) {
        pki_pair_free(ret);
        return -1;
    }
    a = arena_new(0);
    pki_record_put(p, "proxy.ca.crt", pki_cert_pem(a, ret->cert));
    pki_record_put(p, "proxy.ca.key", pki_key_pem(a, ret->key));
    arena_free(a);
    return 0;
}

/* The stored one, as long as it serves; what a store that lost keys cannot hold stays in memory. */
static int load_authority(struct pki *p, struct err *err)
{
    int64_t last = clock_wall_s(p->clock) + CA_RENEWED;

    if (p->proxy_ca.cert && pki_cert_not_after(p->proxy_ca.cert) > last)
        return 0;
    pki_proxy_forget(p);
    if (pki_pair_load(p, "proxy.ca.crt", "proxy.ca.key", &p->proxy_ca) &&
        pki_cert_not_after(p->proxy_ca.cert) > last)
        return 0;
    pki_pair_free(&p->proxy_ca);
    return make_authority(p, &p->proxy_ca, err);
}

int pki_front_proxy_ca(struct pki *p, struct arena *a, struct str *ret, struct err *err)
{
    assert(p->magic == PKI_MAGIC);
    if (load_authority(p, err))
        return -1;
    *ret = pki_cert_pem(a, p->proxy_ca.cert);
    if (!p->proxy_arena && !p->lost)
        pki_pair_free(&p->proxy_ca); /* most clusters have no extension */
    return 0;
}

static int issue(struct pki *p, struct err *err)
{
    struct cert_request request = request_of(p, CERT_CLIENT, PKI_FRONT_PROXY, LEAF_LIFETIME);
    struct pki_pair pair = {.key = pki_key_new(err)};

    if (!pair.key ||
        pki_cert_issue(&request, pair.key, p->proxy_ca.cert, p->proxy_ca.key, &pair.cert, err)) {
        pki_pair_free(&pair);
        return -1;
    }
    p->proxy_arena = arena_new(0);
    p->proxy_certificate = pki_cert_pem(p->proxy_arena, pair.cert);
    p->proxy_key = pki_key_pem(p->proxy_arena, pair.key);
    p->proxy_renew_at = clock_wall_s(p->clock) + LEAF_LIFETIME / 3 * 2;
    pki_pair_free(&pair);
    return 0;
}

int pki_front_proxy(struct pki *p, struct str *ret_cert, struct str *ret_key, struct err *err)
{
    assert(p->magic == PKI_MAGIC);
    if (p->proxy_arena && p->proxy_renew_at <= clock_wall_s(p->clock))
        p->proxy_arena = arena_free(p->proxy_arena);
    if (load_authority(p, err) || (!p->proxy_arena && issue(p, err)))
        return -1;
    *ret_cert = p->proxy_certificate;
    *ret_key = p->proxy_key;
    return 0;
}

void pki_proxy_forget(struct pki *p)
{
    pki_pair_free(&p->proxy_ca);
    p->proxy_arena = arena_free(p->proxy_arena);
}
