/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate authority: made once, and replaced only when the admin says so. The next one is
 * also signed by the previous, and a server sends that certificate with its own: who trusts only
 * the previous one still trusts the server, and credentials of both are accepted until the previous
 * one is retired. Must never replace a stored CA by itself, readable or not: that would silently
 * invalidate every credential of the tenant.
 *
 *   A trusted --rotate--> B signs, A and B trusted --retire--> B trusted
 *
 * Records: "ca.crt", "ca.key"; and until it is retired "ca.previous.crt", "ca.cross.crt" (B's key
 * and name, signed by A). */
#include "pki_impl.h"

#include <assert.h>

#include <openssl/err.h>

#include <sublet/store.h>
#include <sublet/store_quarantine.h>

#define CA_LIFETIME (10 * YEAR)

/* Records. */

void pki_record_put(struct pki *p, const char *key, struct str value)
{
    if (!p->lost)
        store_record_put(p->store, RECORD_PKI, str_c(key), value);
}

void pki_record_put_twice(struct pki *p, const char *key, struct str value)
{
    if (!p->lost)
        store_record_put_twice(p->store, RECORD_PKI, str_c(key), value);
}

struct str pki_record_get(struct pki *p, const char *key)
{
    struct str value;

    return store_record_get_either(p->store, RECORD_PKI, str_c(key), &value) ? value : STR_NULL;
}

bool pki_record_lost(struct pki *p, const char *key)
{
    return !pki_record_get(p, key).p && store_record_damaged(p->store, RECORD_PKI, str_c(key));
}

void pki_pair_free(struct pki_pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
    *pair = (struct pki_pair){NULL, NULL};
}

bool pki_pair_load(struct pki *p, const char *cert, const char *key, struct pki_pair *ret)
{
    ret->cert = pki_cert_read(pki_record_get(p, cert));
    ret->key = pki_key_read(pki_record_get(p, key));
    bool good = ret->cert && ret->key && X509_check_private_key(ret->cert, ret->key) == 1;

    ERR_clear_error();
    if (!good)
        pki_pair_free(ret);
    return good;
}

int pki_pair_issue(struct pki *p, const struct cert_request *request, struct pki_pair *ret,
                   struct err *err)
{
    *ret = (struct pki_pair){.key = pki_key_new(err)};
    if (ret->key && pki_cert_issue(request, ret->key, p->ca, p->ca_key, &ret->cert, err) == 0)
        return 0;
    pki_pair_free(ret);
    return -1;
}

/* The CA. */

static struct cert_request request_of(struct pki *p, struct str cn)
{
    int64_t now = clock_wall_s(p->clock);

    return (struct cert_request){.use = CERT_CA,
                                 .cn = cn,
                                 .not_before = now - SKEW,
                                 .not_after = now + CA_LIFETIME,
                                 .rng = p->rng};
}

static int make_ca(struct pki *p, struct err *err)
{
    struct cert_request request = request_of(
        p, arena_printf(p->arena, "sublet-ca-%.*s", STR_F(str_sub(p->cluster_uid, 0, 36))));
    struct pki_pair ca;

    if (pki_pair_issue(p, &request, &ca, err))
        return -1;
    p->ca = ca.cert;
    p->ca_key = ca.key;
    p->ca_pem = p->chain_pem = pki_cert_pem(p->arena, p->ca);
    pki_record_put_twice(p, "ca.crt", p->ca_pem);
    pki_record_put_twice(p, "ca.key", pki_key_pem(p->arena, p->ca_key));
    return 0;
}

/* One that has ended, or cannot be read, is not trusted any more: only older credentials miss it.
 * Returns NULL then. */
static X509 *read_previous(struct pki *p)
{
    X509 *ret = pki_cert_read(pki_record_get(p, "ca.previous.crt"));

    ERR_clear_error();
    if (ret && pki_cert_not_after(ret) > clock_wall_s(p->clock))
        return ret;
    X509_free(ret);
    return NULL;
}

static void take_previous(struct pki *p)
{
    struct str previous = pki_record_get(p, "ca.previous.crt"),
               cross = pki_record_get(p, "ca.cross.crt");

    p->previous = read_previous(p);
    if (!p->previous)
        return;
    p->ca_pem = arena_concat(p->arena, 2, (struct str[]){p->ca_pem, previous});
    if (pki_cert_count(cross) == 1)
        p->chain_pem = arena_concat(p->arena, 2, (struct str[]){cross, p->chain_pem});
    ERR_clear_error();
}

int pki_load_ca(struct pki *p, struct err *err)
{
    bool lost = pki_record_lost(p, "ca.crt") || pki_record_lost(p, "ca.key");
    struct pki_pair ca;

    if (!lost && !pki_record_get(p, "ca.crt").p && !pki_record_get(p, "ca.key").p)
        return make_ca(p, err);
    if (lost || !pki_pair_load(p, "ca.crt", "ca.key", &ca)) {
        p->lost = "CA";
        return make_ca(p, err);
    }
    p->ca = ca.cert;
    p->ca_key = ca.key;
    p->ca_pem = p->chain_pem = arena_str(p->arena, pki_record_get(p, "ca.crt"));
    pki_record_put_twice(p, "ca.crt", p->ca_pem);
    pki_record_put_twice(p, "ca.key", pki_record_get(p, "ca.key"));
    take_previous(p);
    return 0;
}

void pki_forget_ca(struct pki *p)
{
    X509_free(p->ca);
    X509_free(p->previous);
    EVP_PKEY_free(p->ca_key);
    p->ca = p->previous = NULL;
    p->ca_key = NULL;
}

/* Another. */

/* Clients look for an issuer by its name: each CA has its own. */
static struct str next_name(struct pki *p, struct arena *a)
{
    return arena_printf(a, "sublet-ca-%.*s-%lld", STR_F(str_sub(p->cluster_uid, 0, 36)),
                        (long long)clock_wall_s(p->clock));
}

static int make_next(struct pki *p, struct arena *a, struct pki_pair *ret, X509 **ret_cross,
                     struct err *err)
{
    struct cert_request own = request_of(p, next_name(p, a)), cross = own;
    int64_t last = pki_cert_not_after(p->ca);

    cross.use = CERT_CROSS;
    cross.not_after = last < own.not_after ? last : own.not_after;
    *ret = (struct pki_pair){.key = pki_key_new(err)};
    *ret_cross = NULL;
    if (!ret->key || pki_cert_issue(&own, ret->key, NULL, NULL, &ret->cert, err) ||
        pki_cert_issue(&cross, ret->key, p->ca, p->ca_key, ret_cross, err)) {
        pki_pair_free(ret);
        return -1;
    }
    return 0;
}

/* Also by an order that the store has not committed yet. */
static bool has_previous(struct pki *p)
{
    X509 *written = read_previous(p);
    bool ret = p->previous || written;

    X509_free(written);
    return ret;
}

int pki_rotate_ca(struct pki *p, struct err *err)
{
    struct arena *a;
    struct pki_pair next;
    X509 *cross;
    int failed;

    assert(p->magic == PKI_MAGIC);
    if (p->lost)
        return err_set(err, &ERR_CONFLICT, "the stored %s cannot be read", p->lost);
    if (has_previous(p))
        return err_set(err, &ERR_CONFLICT,
                       "the previous authority is still trusted: retire it first");
    a = arena_new(0);
    failed = make_next(p, a, &next, &cross, err);
    if (!failed) {
        pki_record_put_twice(p, "ca.previous.crt", pki_cert_pem(a, p->ca));
        pki_record_put_twice(p, "ca.cross.crt", pki_cert_pem(a, cross));
        pki_record_put_twice(p, "ca.crt", pki_cert_pem(a, next.cert));
        pki_record_put_twice(p, "ca.key", pki_key_pem(a, next.key));
        X509_free(cross);
        pki_pair_free(&next);
    }
    arena_free(a);
    return failed;
}

int pki_retire_ca(struct pki *p, struct err *err)
{
    assert(p->magic == PKI_MAGIC);
    if (!p->previous)
        return err_set(err, &ERR_CONFLICT, "no previous authority is trusted");
    pki_record_put_twice(p, "ca.previous.crt", STR(""));
    pki_record_put_twice(p, "ca.cross.crt", STR(""));
    return 0;
}

int pki_reload(struct pki *p, struct err *err)
{
    struct pki before = *p;

    p->ca = p->previous = NULL;
    p->ca_key = NULL;
    if (pki_load_ca(p, err)) {
        p->ca = before.ca;
        p->previous = before.previous;
        p->ca_key = before.ca_key;
        return -1;
    }
    pki_forget_ca(&before);
    return pki_load_serving(p, err);
}
