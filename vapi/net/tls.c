/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS over memory. Why: OpenSSL reads straight from the loop's read buffer and writes straight into
 * the connection's output, so an idle connection owns no TLS buffers at all; and client
 * certificates are verified by kube-apiserver's rules, which never abort a handshake over them.
 * Must never take an identity from an unverified certificate, and never resume a session into an
 * identity: a connection that presented a certificate gets no ticket. */
#include "server.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <sublet/clock.h>
#include <sublet/encode.h>

/* Forward secrecy and AEAD only, which HTTP/2 requires (RFC 9113 9.2.2). */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"
/* The cheaper cipher first, as in Go. */
#define SUITES    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define UID_OID   "1.3.6.1.4.1.57683.2" /* k8s.io/apiserver authentication/request/x509 */
#define MAX_NAMES 256                   /* organizations of one certificate */

static const struct net_peer NO_PEER; /* sent no certificate */
static const struct net_peer EXPIRED = {
    .rejected = {"certificate has expired", 23},
};

/* The BIO between OpenSSL and a connection. */

static int bio_write(BIO *bio, const char *data, int n)
{
    struct net_conn *c = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (n <= 0)
        return 0;
    buf_add(&c->out, (struct str){data, (size_t)n});
    return n;
}

static int bio_read(BIO *bio, char *out, int room)
{
    struct net_conn *c = BIO_get_data(bio);
    size_t n = (size_t)room < c->input.n ? (size_t)room : c->input.n;

    BIO_clear_retry_flags(bio);
    if (room <= 0)
        return 0;
    if (!n) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, c->input.p, n);
    c->input = str_from(c->input, n);
    return (int)n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD *tls_bio_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "connection");

    assert(method);
    BIO_meth_set_write(method, bio_write);
    BIO_meth_set_read(method, bio_read);
    BIO_meth_set_ctrl(method, bio_ctrl);
    return method;
}

/* The context: what all connections of one certificate share. */

static int tls_fail(struct err *err, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;

    err_set(err, &ERR_INTERNAL, "tls: %s: %s", what, reason ? reason : "not usable");
    ERR_clear_error();
    return -1;
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                       const unsigned char *in, unsigned in_n, void *ctx)
{
    static const unsigned char OURS[] = "\x02h2\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)ctx;
    if (SSL_select_next_proto(&chosen, out_n, OURS, sizeof(OURS) - 1, in, in_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* The handshake continues with any certificate; tls_verify_peer() verifies it afterwards. */
static int accept_any(X509_STORE_CTX *store_ctx, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store_ctx, SSL_get_ex_data_X509_STORE_CTX_idx());

    (void)arg;
    if (ssl)
        SSL_set_num_tickets(ssl, 0);
    X509_STORE_CTX_set_error(store_ctx, X509_V_OK);
    return 1;
}

static BIO *pem_bio(struct str pem)
{
    return BIO_new_mem_buf(pem.p ? pem.p : "", (int)pem.n);
}

static bool use_chain(SSL_CTX *ctx, struct str pem)
{
    BIO *bio = pem_bio(pem);
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    bool ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        ok = SSL_CTX_add1_chain_cert(ctx, cert) == 1;
        X509_free(cert);
    }
    BIO_free(bio);
    return ok;
}

static bool use_key(SSL_CTX *ctx, struct str pem)
{
    BIO *bio = pem_bio(pem);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    bool ok = key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;

    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok;
}

static bool use_client_ca(SSL_CTX *ctx, struct str pem)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    BIO *bio = pem_bio(pem);
    unsigned n = 0;
    bool ok = true;
    X509 *cert;

    while (ok && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        ok = X509_STORE_add_cert(store, cert) == 1 && SSL_CTX_add_client_CA(ctx, cert) == 1;
        X509_free(cert);
        n++;
    }
    BIO_free(bio);
    /* Any certificate of the bundle is an anchor, intermediates too, as in Go. */
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(ctx, accept_any, NULL);
    return ok && n;
}

static void configure(SSL_CTX *ctx)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"sublet", 6);
    SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
}

SSL_CTX *tls_context(const struct net_tls *tls, struct err *err)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    const char *what = NULL;

    ERR_clear_error();
    if (!ctx) {
        tls_fail(err, "context");
        return NULL;
    }
    configure(ctx);
    if (SSL_CTX_set_cipher_list(ctx, CIPHERS) != 1 || SSL_CTX_set_ciphersuites(ctx, SUITES) != 1)
        what = "cipher list";
    else if (!use_chain(ctx, tls->certificate))
        what = "certificate";
    else if (!use_key(ctx, tls->key))
        what = "key";
    else if (tls->client_ca.n && !use_client_ca(ctx, tls->client_ca))
        what = "client CA";

    if (what) {
        tls_fail(err, what);
        SSL_CTX_free(ctx);
        return NULL;
    }
    ERR_clear_error(); /* reading PEM ends with "no start line" */
    return ctx;
}

/* The peer. */

static struct str entry_string(struct arena *a, const X509_NAME_ENTRY *entry)
{
    unsigned char *utf8 = NULL;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
    struct str s = n > 0 ? arena_str(a, (struct str){(char *)utf8, (size_t)n}) : STR_NULL;

    OPENSSL_free(utf8);
    return s;
}

static struct str first_text(struct arena *a, const X509_NAME *name, const ASN1_OBJECT *object)
{
    int at = X509_NAME_get_index_by_OBJ(name, object, -1);

    return at < 0 ? STR_NULL : entry_string(a, X509_NAME_get_entry(name, at));
}

/* NULL when what the server trusts now makes the certificate one of a TLS client; otherwise the
 * reason. flags: X509_V_FLAG_* */
static const char *verify(const struct net_conn *c, X509 *cert, unsigned long flags)
{
    X509_STORE *store = SSL_CTX_get_cert_store(c->server->tls);
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    const char *why = "out of memory";

    if (ctx && X509_STORE_CTX_init(ctx, store, cert, SSL_get_peer_cert_chain(c->ssl)) == 1 &&
        X509_STORE_CTX_set_default(ctx, "ssl_client") == 1) {
        X509_STORE_CTX_set_flags(ctx, flags);
        why = NULL;
        if (X509_verify_cert(ctx) != 1)
            why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
    }
    X509_STORE_CTX_free(ctx);
    ERR_clear_error();
    return why;
}

static void read_subject(struct arena *a, X509 *cert, struct net_peer *peer)
{
    const X509_NAME *name = X509_get_subject_name(cert);
    ASN1_OBJECT *uid = OBJ_txt2obj(UID_OID, 1);
    int n;
    struct str *list;
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned length;

    peer->cn = first_text(a, name, OBJ_nid2obj(NID_commonName));
    if (!peer->cn.p)
        peer->rejected = STR("certificate has no common name");

    n = X509_NAME_entry_count(name);
    n = n > MAX_NAMES ? MAX_NAMES : n;
    list = arena_alloc(a, (size_t)n * sizeof(*list) + 1);
    for (int i = 0; i < n; i++) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);

        if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) == NID_organizationName)
            list[peer->n_organizations++] = entry_string(a, entry);
    }
    peer->organizations = list;

    if (X509_digest(cert, EVP_sha256(), hash, &length) == 1)
        peer->fingerprint = hex_encode(a, (struct str){(char *)hash, length});
    peer->uid = first_text(a, name, uid);
    ASN1_OBJECT_free(uid);
}

static void tls_verify_peer(struct net_conn *c)
{
    X509 *cert = SSL_get1_peer_certificate(c->ssl);
    struct net_peer *peer;
    const char *why;
    struct tm tm;

    c->tls_peer = &NO_PEER;
    if (!cert)
        return;

    c->peer_arena = arena_new(0);
    peer = ARENA_NEW(c->peer_arena, struct net_peer);
    c->tls_peer = peer;
    why = verify(c, cert, 0);
    if (why)
        peer->rejected = arena_str(c->peer_arena, str_c(why));
    else
        read_subject(c->peer_arena, cert, peer);
    c->peer_expires =
        ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) == 1 ? (int64_t)timegm(&tm) : 1;
    X509_free(cert);
}

const struct net_peer *tls_peer_now(const struct net_conn *c)
{
    if (c->tls_peer && c->tls_peer->cn.p && clock_wall_s(&CLOCK_SYSTEM) > c->peer_expires)
        return &EXPIRED;
    return c->tls_peer;
}

bool tls_peer_is_trusted(const struct net_conn *c)
{
    X509 *cert;
    bool ret;

    if (!c->tls_peer || !c->tls_peer->cn.p)
        return true;
    cert = SSL_get1_peer_certificate(c->ssl);
    ret = !verify(c, cert, X509_V_FLAG_NO_CHECK_TIME);
    X509_free(cert);
    return ret;
}

/* The stream. */

void tls_attach(struct net_conn *c)
{
    BIO *bio = BIO_new(c->server->bio);

    c->ssl = SSL_new(c->server->tls);
    assert(c->ssl && bio);
    BIO_set_data(bio, c);
    BIO_set_init(bio, 1);
    SSL_set_bio(c->ssl, bio, bio);
    SSL_set_accept_state(c->ssl);
}

/* OpenSSL may have left an alert in the output; it is still sent. */
static void fail(struct net_conn *c)
{
    c->broken = true;
    c->input = STR_NULL;
    conn_finish(c);
}

static bool tls_shake_hands(struct net_conn *c)
{
    const unsigned char *alpn;
    unsigned n;
    int done;

    ERR_clear_error();
    done = SSL_do_handshake(c->ssl);
    if (done != 1) {
        if (SSL_get_error(c->ssl, done) != SSL_ERROR_WANT_READ)
            fail(c);
        return false;
    }
    c->state = CONN_OPEN;
    tls_verify_peer(c);
    SSL_get0_alpn_selected(c->ssl, &alpn, &n);
    if (n == 2)
        http2_open(c);
    else if (n)
        http1_open(c);
    return true;
}

void tls_feed(struct net_conn *c)
{
    char *plain = c->server->scratch->plain;

    if (c->state == CONN_HANDSHAKE && !tls_shake_hands(c))
        return;

    while (!c->hold && !c->finishing && c->state == CONN_OPEN) {
        int n;

        ERR_clear_error();
        n = SSL_read(c->ssl, plain, NET_RECORD);
        if (n > 0) {
            conn_receive_plain(c, (struct str){plain, (size_t)n});
            continue;
        }
        switch (SSL_get_error(c->ssl, n)) {
        case SSL_ERROR_WANT_READ:
            return;
        case SSL_ERROR_ZERO_RETURN:
            conn_end_of_input(c);
            return;
        default:
            fail(c);
            return;
        }
    }
}

void tls_write(struct net_conn *c, struct str bytes)
{
    if (c->broken)
        return;
    ERR_clear_error();
    if (SSL_write(c->ssl, bytes.p, (int)bytes.n) <= 0)
        fail(c);
}
