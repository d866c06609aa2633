/* SPDX-License-Identifier: Apache-2.0
 *
 * X.509 certificates over OpenSSL. Why: every component of a cluster identifies itself with one of
 * three kinds of certificate, all made here. Must never build extensions from strings that hold a
 * name: names are set as ASN.1, so that no name can inject another one. */
#include "pki_cert.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#define SERIAL_BYTES 16
#define MAX_CN       512 /* RFC 5280 says 64, but nodes and users of Kubernetes have longer names */

static const struct {
    int nid;
    const char *value; /* NULL: the use has none */
} EXTENSIONS[][5] = {
    [CERT_CA] = {{NID_basic_constraints, "critical,CA:TRUE"},
                 {NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign"},
                 {NID_subject_key_identifier, "hash"}},
    [CERT_CROSS] = {{NID_basic_constraints, "critical,CA:TRUE"},
                    {NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign"},
                    {NID_subject_key_identifier, "hash"},
                    {NID_authority_key_identifier, "keyid:always"}},
    [CERT_SERVER] = {{NID_basic_constraints, "critical,CA:FALSE"},
                     {NID_key_usage, "critical,digitalSignature"},
                     {NID_ext_key_usage, "serverAuth"},
                     {NID_subject_key_identifier, "hash"},
                     {NID_authority_key_identifier, "keyid:always"}},
    [CERT_CLIENT] = {{NID_basic_constraints, "critical,CA:FALSE"},
                     {NID_key_usage, "critical,digitalSignature"},
                     {NID_ext_key_usage, "clientAuth"},
                     {NID_subject_key_identifier, "hash"},
                     {NID_authority_key_identifier, "keyid:always"}},
    [CERT_REQUESTED] = {{NID_basic_constraints, "critical,CA:FALSE"},
                        {NID_authority_key_identifier, "keyid:always"}},
};

int pki_fail(struct err *err, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    err_set(err, &ERR_INTERNAL, "pki: %s: %s", what, reason ? reason : "failed");
    ERR_clear_error();
    return -1;
}

EVP_PKEY *pki_key_new(struct err *err)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    if (!key)
        pki_fail(err, "make a key");
    return key;
}

/* Subject. */

static bool add_entry(X509_NAME *name, int nid, struct str text)
{
    return text.n && text.n <= MAX_CN && str_is_utf8(text) &&
           X509_NAME_add_entry_by_NID(name, nid, V_ASN1_UTF8STRING, (const unsigned char *)text.p,
                                      (int)text.n, -1, 0) == 1;
}

/* O before CN, as Go writes it. */
static bool set_subject(X509 *cert, const struct cert_request *r)
{
    X509_NAME *name = X509_get_subject_name(cert);
    bool ok = true;

    for (size_t i = 0; ok && i < r->n_organizations; i++)
        ok = add_entry(name, NID_organizationName, r->organizations[i]);
    return ok && add_entry(name, NID_commonName, r->cn);
}

static bool set_serial(X509 *cert, const struct rng *rng)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *number;
    bool ok;

    rng->fill(rng->ctx, bytes, sizeof(bytes));
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of constant length */
    number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return ok;
}

static bool set_times(X509 *cert, const struct cert_request *r)
{
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)r->not_before) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)r->not_after);
}

/* Names. */

/* The bytes of a name in a certificate: 4 or 16 for an IP, the string for a DNS name. */
struct san {
    int type; /* GEN_IPADD, GEN_DNS */
    unsigned char ip[16];
    struct str bytes;
};

static void san_of(struct str name, struct san *s)
{
    char text[INET6_ADDRSTRLEN + 1];

    *s = (struct san){.type = GEN_DNS, .bytes = name};
    if (name.n < sizeof(text)) {
        memcpy(text, name.p, name.n);
        text[name.n] = '\0';
        if (inet_pton(AF_INET, text, s->ip) == 1)
            s->bytes = (struct str){(char *)s->ip, 4};
        else if (inet_pton(AF_INET6, text, s->ip) == 1)
            s->bytes = (struct str){(char *)s->ip, 16};
        if (s->bytes.p == (char *)s->ip)
            s->type = GEN_IPADD;
    }
}

static bool push_name(GENERAL_NAMES *names, struct str text)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    struct san san;
    ASN1_STRING *value;

    san_of(text, &san);
    value = ASN1_STRING_type_new(san.type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
    if (!name || !value || ASN1_STRING_set(value, san.bytes.p, (int)san.bytes.n) != 1) {
        GENERAL_NAME_free(name);
        ASN1_STRING_free(value);
        return false;
    }
    GENERAL_NAME_set0_value(name, san.type, value);
    if (sk_GENERAL_NAME_push(names, name) > 0)
        return true;
    GENERAL_NAME_free(name);
    return false;
}

static bool set_names(X509 *cert, const struct cert_request *r)
{
    GENERAL_NAMES *names;
    bool ok;

    if (!r->n_names)
        return true;
    names = sk_GENERAL_NAME_new_null();
    ok = names != NULL;
    for (size_t i = 0; ok && i < r->n_names; i++)
        ok = push_name(names, r->names[i]);
    ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, 0) == 1;
    GENERAL_NAMES_free(names);
    return ok;
}

bool pki_cert_has_names(const X509 *cert, const struct str *names, size_t n)
{
    GENERAL_NAMES *have = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    bool same = have ? (size_t)sk_GENERAL_NAME_num(have) == n : n == 0;

    for (size_t i = 0; same && i < n; i++) {
        struct san san;
        int type;
        const ASN1_STRING *value =
            GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(have, (int)i), &type);

        san_of(names[i], &san);
        same = type == san.type &&
               str_eq(san.bytes, (struct str){(const char *)ASN1_STRING_get0_data(value),
                                              (size_t)ASN1_STRING_length(value)});
    }
    GENERAL_NAMES_free(have);
    return same;
}

/* Extensions. */

static bool set_extensions(X509 *cert, X509 *ca, enum cert_use use)
{
    X509V3_CTX ctx;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, ca, cert, NULL, NULL, 0);
    for (size_t i = 0; i < COUNT(EXTENSIONS[use]); i++) {
        X509_EXTENSION *extension;
        bool ok;

        if (!EXTENSIONS[use][i].value)
            continue;
        extension =
            X509V3_EXT_conf_nid(NULL, &ctx, EXTENSIONS[use][i].nid, EXTENSIONS[use][i].value);
        ok = extension && X509_add_ext(cert, extension, -1) == 1;
        X509_EXTENSION_free(extension);
        if (!ok)
            return false;
    }
    return true;
}

/* Go's order: usages, then the use's own extension, then names. */
static bool set_usages(X509 *cert, const struct cert_request *r)
{
    return !r->n_usages || !pki_cert_add_usages(cert, r->usages, r->n_usages, NULL);
}

static bool set_alternatives(X509 *cert, const struct cert_request *r)
{
    return !r->alternatives ||
           X509_add1_ext_i2d(cert, NID_subject_alt_name, r->alternatives, 0, 0) == 1;
}

int pki_cert_issue(const struct cert_request *r, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key,
                   X509 **ret, struct err *err)
{
    X509 *cert;
    X509_NAME *issuer;

    if (!r->cn.n || r->cn.n > MAX_CN)
        return err_set(err, &ERR_BAD_REQUEST, "pki: a common name has 1 to %d bytes", MAX_CN);
    cert = X509_new();
    if (!cert)
        return pki_fail(err, "certificate");
    if (X509_set_version(cert, X509_VERSION_3) != 1 || !set_serial(cert, r->rng) ||
        !set_times(cert, r) || !set_subject(cert, r) || X509_set_pubkey(cert, key) != 1)
        goto fail;
    issuer = X509_get_subject_name(ca ? ca : cert);
    if (X509_set_issuer_name(cert, issuer) != 1 || !set_usages(cert, r) ||
        !set_extensions(cert, ca ? ca : cert, r->use) || !set_names(cert, r) ||
        !set_alternatives(cert, r) || !X509_sign(cert, ca ? ca_key : key, EVP_sha256()))
        goto fail;
    *ret = cert;
    return 0;
fail:
    X509_free(cert);
    return pki_fail(err, "issue a certificate");
}

/* PEM. */

static struct str bio_text(struct arena *a, BIO *bio)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);
    struct str s = arena_str(a, (struct str){p, n > 0 ? (size_t)n : 0});

    BIO_free(bio);
    return s;
}

struct str pki_cert_pem(struct arena *a, X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());

    PEM_write_bio_X509(bio, cert);
    return bio_text(a, bio);
}

struct str pki_key_pem(struct arena *a, EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_secmem());

    PEM_write_bio_PrivateKey_traditional(bio, key, NULL, NULL, 0, NULL, NULL);
    return bio_text(a, bio);
}

X509 *pki_cert_read(struct str pem)
{
    BIO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    BIO_free(bio);
    ERR_clear_error();
    return cert;
}

size_t pki_cert_count(struct str pem)
{
    BIO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
    X509 *cert;
    size_t n = 0;

    ERR_clear_error();
    while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        X509_free(cert);
        n++;
    }
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        n = 0;
    BIO_free(bio);
    ERR_clear_error();
    return n;
}

EVP_PKEY *pki_key_read(struct str pem)
{
    BIO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

    BIO_free(bio);
    ERR_clear_error();
    if (key && (!EVP_PKEY_is_a(key, "EC") || EVP_PKEY_get_bits(key) != 256)) {
        EVP_PKEY_free(key);
        return NULL;
    }
    return key;
}

static int64_t unix_time(const ASN1_TIME *t)
{
    struct tm tm;

    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

int64_t pki_cert_not_before(const X509 *cert)
{
    return unix_time(X509_get0_notBefore(cert));
}

int64_t pki_cert_not_after(const X509 *cert)
{
    return unix_time(X509_get0_notAfter(cert));
}
