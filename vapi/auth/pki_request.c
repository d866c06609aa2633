/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificate signing requests (PKCS #10) and the usages of certificates. Why: a request is
 * untrusted input; only its key, its O and CN and its alternative names may reach a certificate.
 * Must never sign a request that does not prove possession of the key. Source of the names of
 * usages: k8s.io/api certificates/v1. */
#include "pki_cert.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include <sublet/pki.h>

#define MAX_PEM           (64 * 1024)
#define MAX_ORGANIZATIONS 64
#define MAX_ALTERNATIVES  256

/* Usages. */

static const struct {
    const char *name;
    int bit; /* of keyUsage (RFC 5280, 4.2.1.3); -1: an extended one */
    int nid;
} USAGES[] = {
    {"signing", 0, 0},
    {"digital signature", 0, 0},
    {"content commitment", 1, 0},
    {"key encipherment", 2, 0},
    {"data encipherment", 3, 0},
    {"key agreement", 4, 0},
    {"cert sign", 5, 0},
    {"crl sign", 6, 0},
    {"encipher only", 7, 0},
    {"decipher only", 8, 0},
    {"any", -1, NID_anyExtendedKeyUsage},
    {"server auth", -1, NID_server_auth},
    {"client auth", -1, NID_client_auth},
    {"code signing", -1, NID_code_sign},
    {"email protection", -1, NID_email_protect},
    {"s/mime", -1, NID_email_protect},
    {"ipsec end system", -1, NID_ipsecEndSystem},
    {"ipsec tunnel", -1, NID_ipsecTunnel},
    {"ipsec user", -1, NID_ipsecUser},
    {"timestamping", -1, NID_time_stamp},
    {"ocsp signing", -1, NID_OCSP_sign},
    {"microsoft sgc", -1, NID_ms_sgc},
    {"netscape sgc", -1, NID_ns_sgc},
};
#define N_USAGES COUNT(USAGES)

static size_t find_usage(struct str name)
{
    size_t i = 0;

    while (i < N_USAGES && !str_eqc(name, USAGES[i].name))
        i++;
    return i;
}

static bool add_extended(EXTENDED_KEY_USAGE *all, int nid)
{
    for (int i = 0; i < sk_ASN1_OBJECT_num(all); i++) {
        if (OBJ_obj2nid(sk_ASN1_OBJECT_value(all, i)) == nid)
            return true;
    }
    return sk_ASN1_OBJECT_push(all, OBJ_nid2obj(nid)) > 0;
}

static bool collect(const struct str *usages, size_t n, ASN1_BIT_STRING *plain,
                    EXTENDED_KEY_USAGE *extended, bool *ret_plain)
{
    bool ok = true;

    for (size_t i = 0; i < n && ok; i++) {
        size_t at = find_usage(usages[i]);

        if (USAGES[at].bit < 0) {
            ok = add_extended(extended, USAGES[at].nid);
        } else {
            ok = ASN1_BIT_STRING_set_bit(plain, USAGES[at].bit, 1) == 1;
            *ret_plain = true;
        }
    }
    return ok;
}

int pki_cert_add_usages(X509 *cert, const struct str *usages, size_t n, struct err *err)
{
    ASN1_BIT_STRING *plain;
    EXTENDED_KEY_USAGE *extended;
    bool has_plain = false, ok;

    for (size_t i = 0; i < n; i++) {
        if (find_usage(usages[i]) == N_USAGES)
            return err_set(err, &ERR_BAD_REQUEST, "unrecognized usage values: [\"%.*s\"]",
                           STR_F(usages[i]));
    }
    plain = ASN1_BIT_STRING_new();
    extended = sk_ASN1_OBJECT_new_null();
    ok = plain && extended && collect(usages, n, plain, extended, &has_plain);
    if (ok && has_plain)
        ok = X509_add1_ext_i2d(cert, NID_key_usage, plain, 1, 0) == 1;
    if (ok && sk_ASN1_OBJECT_num(extended) > 0)
        ok = X509_add1_ext_i2d(cert, NID_ext_key_usage, extended, 0, 0) == 1;
    ASN1_BIT_STRING_free(plain);
    sk_ASN1_OBJECT_pop_free(extended, ASN1_OBJECT_free);
    return ok ? 0 : pki_fail(err, "usages");
}

/* Requests. */

X509_REQ *pki_request_open(struct str pem, struct err *err)
{
    BIO *bio = BIO_new_mem_buf(pem.p ? pem.p : "", pem.n > MAX_PEM ? 0 : (int)pem.n);
    X509_REQ *q = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
    EVP_PKEY *key = q ? X509_REQ_get0_pubkey(q) : NULL;
    const char *wrong = NULL;

    BIO_free(bio);
    if (!q)
        wrong = "PEM block type must be CERTIFICATE REQUEST";
    else if (!key || X509_REQ_verify(q, key) != 1)
        wrong = "the request is not signed by its key";
    ERR_clear_error();
    if (!wrong)
        return q;
    X509_REQ_free(q);
    err_set(err, &ERR_BAD_REQUEST, "%s", wrong);
    return NULL;
}

static int entry_text(struct arena *a, const X509_NAME *name, int at, struct str *ret,
                      struct err *err)
{
    unsigned char *utf8;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));

    if (n < 0)
        return pki_fail(err, "subject");
    *ret = arena_str(a, (struct str){(const char *)utf8, (size_t)n});
    OPENSSL_free(utf8);
    if (str_find(*ret, '\0') != ret->n)
        return err_set(err, &ERR_BAD_REQUEST, "the subject holds a zero byte");
    return 0;
}

static int read_subject(struct arena *a, X509_REQ *q, struct pki_request *ret, struct err *err)
{
    const X509_NAME *name = X509_REQ_get_subject_name(q);
    struct str *organizations = arena_alloc(a, MAX_ORGANIZATIONS * sizeof(*organizations)), cn;
    int at = -1;

    while ((at = X509_NAME_get_index_by_NID(name, NID_organizationName, at)) >= 0) {
        if (ret->n_organizations == MAX_ORGANIZATIONS)
            return err_set(err, &ERR_BAD_REQUEST, "more than %d organizations", MAX_ORGANIZATIONS);
        if (entry_text(a, name, at, &organizations[ret->n_organizations++], err))
            return -1;
    }
    ret->organizations = organizations;
    /* The last of several counts, as in Go. */
    while ((at = X509_NAME_get_index_by_NID(name, NID_commonName, at)) >= 0) {
        if (entry_text(a, name, at, &cn, err))
            return -1;
        ret->cn = cn;
    }
    return 0;
}

/* The requested alternative names; NULL: none. */
static GENERAL_NAMES *alternatives_of(X509_REQ *q)
{
    STACK_OF(X509_EXTENSION) *extensions = X509_REQ_get_extensions(q);
    GENERAL_NAMES *names = X509V3_get_d2i(extensions, NID_subject_alt_name, NULL, NULL);

    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
    return names;
}

int pki_read_request(struct arena *a, struct str pem, struct pki_request *ret, struct err *err)
{
    X509_REQ *q = pki_request_open(pem, err);
    GENERAL_NAMES *names;
    int failed;

    if (!q)
        return -1;
    *ret = (struct pki_request){.cn = STR("")};
    failed = read_subject(a, q, ret, err);
    names = failed ? NULL : alternatives_of(q);
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        ret->n_alternatives[sk_GENERAL_NAME_value(names, i)->type % PKI_ALTERNATIVES]++;
    if (sk_GENERAL_NAME_num(names) > MAX_ALTERNATIVES)
        failed = err_set(err, &ERR_BAD_REQUEST, "more than %d names", MAX_ALTERNATIVES);
    GENERAL_NAMES_free(names);
    X509_REQ_free(q);
    ERR_clear_error();
    return failed;
}

int pki_request_issue(struct cert_request *r, struct arena *a, struct str pem, X509 *ca,
                      EVP_PKEY *ca_key, X509 **ret, struct err *err)
{
    struct pki_request subject;
    X509_REQ *q;
    int failed;
    GENERAL_NAMES *names;

    if (pki_read_request(a, pem, &subject, err) || !(q = pki_request_open(pem, err)))
        return -1;
    r->use = CERT_REQUESTED;
    r->cn = subject.cn;
    r->organizations = subject.organizations;
    r->n_organizations = subject.n_organizations;

    /* Only names of a host, an address, a mailbox or a URI. */
    names = alternatives_of(q);
    for (int i = sk_GENERAL_NAME_num(names); i-- > 0;) {
        int type = sk_GENERAL_NAME_value(names, i)->type;

        if (type != GEN_DNS && type != GEN_IPADD && type != GEN_EMAIL && type != GEN_URI)
            GENERAL_NAME_free(sk_GENERAL_NAME_delete(names, i));
    }
    if (names && sk_GENERAL_NAME_num(names) == 0) {
        GENERAL_NAMES_free(names);
        names = NULL;
    }
    r->alternatives = names;

    failed = pki_cert_issue(r, X509_REQ_get0_pubkey(q), ca, ca_key, ret, err);
    GENERAL_NAMES_free(r->alternatives);
    X509_REQ_free(q);
    return failed;
}
