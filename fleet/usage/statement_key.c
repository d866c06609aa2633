/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and signatures of statements: Ed25519 (RFC 8032), whose signatures follow from key and bytes
 * alone. Signed are the bytes as they stand in the file, so that `sed` and `openssl` verify one
 * without this program. Must never take the key to verify with from the statement. */
#include "statement.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <sublet/encode.h>

#define SIGNATURE 64 /* bytes; 88 characters of base64 */
#define ENCODED   88
#define MOST_KEYS 16
#define TAIL_HEAD "  \"signature\": \""
#define TAIL_END  "\"\n}\n"
#define TAIL      (sizeof(TAIL_HEAD) - 1 + ENCODED + sizeof(TAIL_END) - 1)

static int failed(struct err *err, const char *what)
{
    ERR_clear_error();
    return err_set(err, &ERR_INTERNAL, "cannot %s", what);
}

/* --- keys --- */

/* An encrypted PEM block is an error, not a prompt on the terminal. */
static int no_passphrase(char *out, int size, int writing, void *ctx)
{
    (void)out;
    (void)size;
    (void)writing;
    (void)ctx;
    return -1;
}

static EVP_PKEY *read_private(struct str pem, struct err *err)
{
    BIO *in = BIO_new_mem_buf(pem.p, (int)pem.n);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL);

    BIO_free(in);
    ERR_clear_error();
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519)
        return key;
    EVP_PKEY_free(key);
    err_set(err, &ERR_BAD_REQUEST, "no private Ed25519 key in PEM");
    return NULL;
}

static struct str bio_text(struct arena *a, BIO *out)
{
    char *p = NULL;
    long n = BIO_get_mem_data(out, &p);

    return arena_str(a, (struct str){p, (size_t)n});
}

int statement_key_new(struct arena *a, struct str *ret_private, struct err *err)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *out = BIO_new(BIO_s_secmem());
    bool good = key && PEM_write_bio_PKCS8PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1;

    if (good)
        *ret_private = bio_text(a, out);
    BIO_free(out);
    EVP_PKEY_free(key);
    return good ? 0 : failed(err, "make a key");
}

int statement_key_public(struct arena *a, struct str private_pem, struct str *ret_public,
                         struct err *err)
{
    EVP_PKEY *key = read_private(private_pem, err);
    BIO *out = BIO_new(BIO_s_mem());
    bool good = key && PEM_write_bio_PUBKEY(out, key) == 1;

    if (good)
        *ret_public = bio_text(a, out);
    BIO_free(out);
    EVP_PKEY_free(key);
    return !key ? -1 : good ? 0 : failed(err, "write a public key");
}

static struct str key_id(struct arena *a, EVP_PKEY *key)
{
    unsigned char hash[32], *der = NULL;
    int n = i2d_PUBKEY(key, &der);
    struct str id = STR("");

    if (n > 0) {
        sha256((struct str){(char *)der, (size_t)n}, hash);
        id = hex_encode(a, (struct str){(char *)hash, sizeof(hash)});
    }
    OPENSSL_free(der);
    return id;
}

int statement_key_id(struct arena *a, struct str private_pem, struct str *ret, struct err *err)
{
    EVP_PKEY *key = read_private(private_pem, err);

    if (!key)
        return -1;
    *ret = key_id(a, key);
    EVP_PKEY_free(key);
    return ret->n ? 0 : failed(err, "encode a public key");
}

/* --- signatures --- */

int statement_sign(struct arena *a, struct str object, struct str private_pem, struct str *ret,
                   struct err *err)
{
    const struct str head[] = {str_sub(object, 0, object.n - 2), STR(",\n")}; /* without "\n}" */
    struct str bytes = arena_concat(a, COUNT(head), head);
    unsigned char signature[SIGNATURE];
    size_t n = sizeof(signature);
    EVP_PKEY *key = read_private(private_pem, err);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = key && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(ctx, signature, &n, (const unsigned char *)bytes.p, bytes.n) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    if (!key)
        return -1;
    if (!good)
        return failed(err, "sign the statement");
    const struct str all[] = {bytes, STR(TAIL_HEAD),
                              base64_encode(a, (struct str){(char *)signature, n}), STR(TAIL_END)};
    *ret = arena_concat(a, COUNT(all), all);
    return 0;
}

/* The signed bytes and the signature; false: the file does not end in a signature. */
static bool cut_signature(struct arena *a, struct str text, struct str *ret_bytes,
                          struct str *ret_signature)
{
    struct str tail = text.n > TAIL ? str_from(text, text.n - TAIL) : STR("");
    struct str encoded = str_sub(tail, sizeof(TAIL_HEAD) - 1, ENCODED);

    if (!str_has_prefix(tail, STR(TAIL_HEAD)) || !str_has_suffix(tail, STR(TAIL_END)) ||
        !base64_decode(a, encoded, ret_signature) || ret_signature->n != SIGNATURE ||
        !str_eq(base64_encode(a, *ret_signature), encoded))
        return false;
    *ret_bytes = str_sub(text, 0, text.n - TAIL);
    return true;
}

static bool is_signed_by(EVP_PKEY *key, struct str bytes, struct str signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestVerify(ctx, (const unsigned char *)signature.p, signature.n,
                                 (const unsigned char *)bytes.p, bytes.n) == 1;

    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

int statement_check_signature(struct arena *a, struct str text, struct str public_pem,
                              struct str *ret_key, struct str *ret_given, struct err *err)
{
    BIO *in = BIO_new_mem_buf(public_pem.p, (int)public_pem.n);
    struct str bytes, signature, id;
    EVP_PKEY *key;
    size_t n = 0;
    bool known = true;

    *ret_key = *ret_given = STR("");
    if (!cut_signature(a, text, &bytes, &signature)) {
        BIO_free(in);
        return err_set(err, &ERR_BAD_REQUEST, "it does not end in a signature");
    }
    while (n < MOST_KEYS && known && (key = PEM_read_bio_PUBKEY(in, NULL, no_passphrase, NULL))) {
        n++;
        known = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519;
        id = key_id(a, key);
        if (known && is_signed_by(key, bytes, signature))
            *ret_key = id;
        *ret_given = arena_printf(a, "%.*s%s%.*s", STR_F(*ret_given), n > 1 ? ", " : "", STR_F(id));
        EVP_PKEY_free(key);
    }
    BIO_free(in);
    ERR_clear_error();
    return n && known
               ? 0
               : err_set(err, &ERR_BAD_REQUEST, "no public Ed25519 keys in PEM to verify with");
}
