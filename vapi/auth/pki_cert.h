/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * Creates and reads X.509 certificates and P-256 keys, from which pki.c builds a cluster's
 * identity. It knows neither store nor tokens. */
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <sublet/clock.h>
#include <sublet/err.h>

/* CERT_CROSS: a CA that another one signs. */
enum cert_use { CERT_CA, CERT_CROSS, CERT_SERVER, CERT_CLIENT, CERT_REQUESTED };

struct cert_request {
    enum cert_use use;
    struct str cn;
    const struct str *organizations;
    size_t n_organizations;
    const struct str *names; /* subject alternative names: DNS names and IP addresses */
    size_t n_names;
    int64_t not_before, not_after; /* unix seconds */
    const struct rng *rng;         /* of the serial number */
    const struct str *usages;      /* of CERT_REQUESTED, as certificates.k8s.io names them */
    size_t n_usages;
    GENERAL_NAMES *alternatives; /* of CERT_REQUESTED, copied unchanged; may be NULL */
};

EVP_PKEY *pki_key_new(struct err *err) MUST_CHECK;
/* Signed by ca and ca_key, or by itself when ca is NULL. */
int pki_cert_issue(const struct cert_request *r, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key,
                   X509 **ret, struct err *err) MUST_CHECK;

struct str pki_cert_pem(struct arena *a, X509 *cert);
/* In the form of upstream's tools (SEC 1, "EC PRIVATE KEY"): readers of PKCS #8 may take it for
 * RSA. */
struct str pki_key_pem(struct arena *a, EVP_PKEY *key);
X509 *pki_cert_read(struct str pem);    /* NULL when it is not a certificate */
size_t pki_cert_count(struct str pem);  /* 0 as well when one cannot be read */
EVP_PKEY *pki_key_read(struct str pem); /* NULL unless a P-256 private key */
int64_t pki_cert_not_before(const X509 *cert);
int64_t pki_cert_not_after(const X509 *cert);
/* True when the certificate has exactly these names. */
bool pki_cert_has_names(const X509 *cert, const struct str *names, size_t n);
/* Key usages by the names of certificates.k8s.io; BAD_REQUEST when one is unknown. */
int pki_cert_add_usages(X509 *cert, const struct str *usages, size_t n, struct err *err) MUST_CHECK;
/* A signing request with a valid signature and at most one common name; BAD_REQUEST. */
X509_REQ *pki_request_open(struct str pem, struct err *err) MUST_CHECK;
/* A certificate for the request's key and names; r has the times and usages. */
int pki_request_issue(struct cert_request *r, struct arena *a, struct str pem, X509 *ca,
                      EVP_PKEY *ca_key, X509 **ret, struct err *err) MUST_CHECK;
/* Puts OpenSSL's reason into err and returns -1. */
int pki_fail(struct err *err, const char *what);
