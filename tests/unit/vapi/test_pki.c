/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster's identity in a real store: what is made, what survives a restart, what is refused. */
#include "test.h"

#include <ftw.h>
#include <stdlib.h>

#include <sqlite3.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <uv.h>

#include <sublet/encode.h>
#include <sublet/json.h>
#include <sublet/pki.h>
#include <sublet/store.h>

#include "../../../vapi/auth/pki_cert.h"

#define T0     1800000000LL
#define ISSUER "https://kubernetes.default.svc.cluster.local"

struct world {
    uv_loop_t loop;
    struct store *store;
    struct pki *pki;
    struct arena *arena;
    struct clock clock;
    int64_t now; /* seconds */
    char dir[64];
    struct str names[4];
    size_t n_names;
    struct err err;
};

static int64_t fake_wall(void *ctx)
{
    struct world *w = ctx;

    return w->now * 1000000;
}

static int64_t fake_mono(void *ctx)
{
    struct world *w = ctx;

    return w->now * 1000;
}

static int open_pki(struct world *w)
{
    struct pki_options o = {
        .clock = &w->clock,
        .rng = &RNG_SYSTEM,
        .names = w->names,
        .n_names = w->n_names,
        .issuer = STR(ISSUER),
        .cluster_uid = STR("3f0b9c1e-0000-4000-8000-000000000001"),
    };

    return pki_open(w->store, &o, &w->pki, &w->err);
}

static void open_store(struct world *w)
{
    struct store_options o = {.path = w->dir};

    if (store_open(&w->loop, &o, &w->store, &w->err) < 0)
        fail_msg("%.*s", STR_F(w->err.message));
}

static int setup(void **state)
{
    struct world *w = NEW(struct world);

    uv_loop_init(&w->loop);
    w->arena = arena_new(0);
    err_init(&w->err, w->arena);
    w->now = T0;
    w->clock = (struct clock){fake_wall, fake_mono, w};
    snprintf(w->dir, sizeof(w->dir), "/tmp/test-pki-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    w->names[0] = STR("kubernetes.default.svc");
    w->names[1] = STR("10.96.0.1");
    w->names[2] = STR("fd00::1");
    w->n_names = 3;
    open_store(w);
    assert_int_equal(open_pki(w), 0);
    *state = w;
    return 0;
}

static void close_store(struct world *w)
{
    w->pki = pki_free(w->pki);
    store_close(w->store, NULL, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    w->store = NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    struct world *w = *state;

    close_store(w);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    arena_free(w->arena);
    mem_free(w);
    return 0;
}

static struct str keep(struct world *w, struct str s)
{
    return arena_str(w->arena, s);
}

/* Why the leaf is not good for a purpose, NULL when it is. */
static const char *verify(struct world *w, struct str leaf_pem, const char *purpose)
{
    X509 *ca = pki_cert_read(pki_ca_pem(w->pki)), *leaf = pki_cert_read(leaf_pem);
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    const char *why = NULL;

    assert_non_null(ca);
    assert_non_null(leaf);
    X509_STORE_add_cert(store, ca);
    X509_STORE_CTX_init(ctx, store, leaf, NULL);
    X509_STORE_CTX_set_default(ctx, purpose);
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
    X509_STORE_CTX_set_time(ctx, 0, (time_t)w->now);
    if (X509_verify_cert(ctx) != 1)
        why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(ca);
    X509_free(leaf);
    return why;
}

static void test_serving(void **state)
{
    struct world *w = *state;
    X509 *cert = pki_cert_read(pki_serving_pem(w->pki));

    assert_null(verify(w, pki_serving_pem(w->pki), "ssl_server"));
    assert_non_null(verify(w, pki_serving_pem(w->pki), "ssl_client"));
    assert_int_equal(X509_check_host(cert, "kubernetes.default.svc", 0, 0, NULL), 1);
    assert_int_equal(X509_check_host(cert, "other.svc", 0, 0, NULL), 0);
    assert_int_equal(X509_check_ip_asc(cert, "10.96.0.1", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "fd00::1", 0), 1);
    assert_int_equal(X509_check_ip_asc(cert, "10.96.0.2", 0), 0);
    assert_true(str_has_suffix(pki_serving_pem(w->pki), pki_ca_pem(w->pki)));
    X509_free(cert);
}

static void test_ca_shape(void **state)
{
    struct world *w = *state;
    X509 *ca = pki_cert_read(pki_ca_pem(w->pki));

    assert_int_equal(X509_check_ca(ca), 1);
    assert_true(pki_cert_not_after(ca) - w->now == 10 * 365 * 24 * 3600LL);
    assert_int_equal(X509_get_key_usage(ca),
                     X509v3_KU_DIGITAL_SIGNATURE | X509v3_KU_KEY_CERT_SIGN | X509v3_KU_CRL_SIGN);
    assert_non_null(X509_get0_subject_key_id(ca));
    X509_free(ca);
}

static void test_restart_keeps_everything(void **state)
{
    struct world *w = *state;
    struct str ca = keep(w, pki_ca_pem(w->pki)), serving = keep(w, pki_serving_pem(w->pki));
    struct str jwks = pki_jwks(w->pki, w->arena);

    close_store(w);
    open_store(w);
    assert_int_equal(open_pki(w), 0);
    assert_true(str_eq(pki_ca_pem(w->pki), ca));
    assert_true(str_eq(pki_serving_pem(w->pki), serving));
    assert_true(str_eq(pki_jwks(w->pki, w->arena), jwks));
    assert_null(verify(w, pki_serving_pem(w->pki), "ssl_server"));
}

static void reopen(struct world *w)
{
    w->pki = pki_free(w->pki);
    assert_int_equal(open_pki(w), 0);
}

static void test_serving_is_reissued(void **state)
{
    struct world *w = *state;
    struct str first = keep(w, pki_serving_pem(w->pki)), second;

    reopen(w);
    assert_true(str_eq(pki_serving_pem(w->pki), first));

    w->names[3] = STR("research.gpu.example");
    w->n_names = 4;
    reopen(w);
    second = keep(w, pki_serving_pem(w->pki));
    assert_false(str_eq(second, first));
    assert_null(verify(w, second, "ssl_server"));

    w->now = pki_serving_renew_at(w->pki) - 1;
    assert_in_range(w->now - T0, 243 * 86400, 244 * 86400);
    reopen(w);
    assert_true(str_eq(pki_serving_pem(w->pki), second));
    w->now += 1;
    reopen(w);
    assert_false(str_eq(pki_serving_pem(w->pki), second));
    assert_true(pki_serving_renew_at(w->pki) > w->now);

    second = keep(w, pki_serving_pem(w->pki));
    assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
    assert_false(str_eq(pki_serving_pem(w->pki), second));
}

static int serves_at(struct world *w, const char *ip)
{
    X509 *cert = pki_cert_read(pki_serving_pem(w->pki));
    int found = X509_check_ip_asc(cert, ip, 0);

    X509_free(cert);
    return found;
}

static bool set_address(struct world *w, const char *ip)
{
    struct str one = str_c(ip);

    return pki_set_addresses(w->pki, &one, 1);
}

/* Clients in pods connect to the IP of a Service, which is known after the start. */
static void test_the_address_is_a_name(void **state)
{
    struct world *w = *state;
    struct str with;

    assert_false(set_address(w, "10.96.0.1")); /* an option has it */
    assert_int_equal(serves_at(w, "10.7.7.7"), 0);
    assert_true(set_address(w, "10.7.7.7"));
    assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
    assert_int_equal(serves_at(w, "10.7.7.7"), 1);
    assert_int_equal(serves_at(w, "10.96.0.1"), 1);
    assert_false(set_address(w, "10.7.7.7"));

    with = keep(w, pki_serving_pem(w->pki));
    close_store(w);
    open_store(w);
    assert_int_equal(open_pki(w), 0);
    assert_true(str_eq(pki_serving_pem(w->pki), with));

    assert_true(set_address(w, "10.8.8.8"));
    assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
    assert_int_equal(serves_at(w, "10.7.7.7"), 0);
    assert_true(set_address(w, ""));
    assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
    assert_int_equal(serves_at(w, "10.8.8.8"), 0);
}

/* The next start has all of them; what there is no more leaves the certificate. */
static void test_there_may_be_many_addresses(void **state)
{
    struct world *w = *state;
    struct str ips[PKI_MOST_ADDRESSES + 1] = {STR("10.7.7.7"), STR(""), STR("fd00::7"),
                                              STR("10.7.7.7"), STR("10.96.0.1")};
    struct str with;

    assert_true(pki_set_addresses(w->pki, ips, 5));
    assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
    assert_int_equal(serves_at(w, "10.7.7.7"), 1);
    assert_int_equal(serves_at(w, "fd00::7"), 1);
    assert_false(pki_set_addresses(w->pki, ips, 5));
    with = keep(w, pki_serving_pem(w->pki));
    close_store(w);
    open_store(w);
    assert_int_equal(open_pki(w), 0);
    assert_true(str_eq(pki_serving_pem(w->pki), with));

    for (size_t i = 0; i < COUNT(ips); i++)
        ips[i] = arena_printf(w->arena, "10.9.0.%zu", i);
    assert_true(pki_set_addresses(w->pki, ips, COUNT(ips)));
    assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
    assert_int_equal(serves_at(w, "10.9.0.64"), 1);
    assert_int_equal(serves_at(w, "10.9.0.65"), 0);
    assert_int_equal(serves_at(w, "10.7.7.7"), 0);
    assert_int_equal(serves_at(w, "10.96.0.1"), 1);
}

static void test_damage_is_not_repaired_by_a_new_ca(void **state)
{
    struct world *w = *state;
    static const char *const KEYS[] = {"ca.crt", "ca.key", "token.key"};

    for (size_t i = 0; i < 3; i++) {
        struct str was;

        assert_true(store_record_get(w->store, RECORD_PKI, str_c(KEYS[i]), &was));
        was = keep(w, was);
        w->pki = pki_free(w->pki);
        store_record_put(w->store, RECORD_PKI, str_c(KEYS[i]), STR("garbage"));
        assert_int_equal(open_pki(w), 0);
        assert_string_equal(pki_lost(w->pki), i < 2 ? "CA" : "token key");
        struct str now;
        assert_true(store_record_get(w->store, RECORD_PKI, str_c(KEYS[i]), &now));
        assert_true(str_eqc(now, "garbage"));
        w->pki = pki_free(w->pki);
        store_record_put(w->store, RECORD_PKI, str_c(KEYS[i]), was);
        assert_int_equal(open_pki(w), 0);
        assert_null(pki_lost(w->pki));
    }
}

/* How many rows were changed. */
static int alter_store(struct world *w, const char *sql)
{
    int changed;
    struct str path = arena_printf(w->arena, "%s/state.db", w->dir);
    sqlite3 *db;

    close_store(w);
    assert_int_equal(sqlite3_open_v2(path.p, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    changed = sqlite3_total_changes(db);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    open_store(w);
    err_clear(&w->err);
    return changed;
}

#define DAMAGE "UPDATE record SET value = x'00' WHERE "
#define REMOVE "DELETE FROM record WHERE "
#define KEY(k) "key = CAST('" k "' AS BLOB)"

/* Each of the two rows of a record is made good from the other. */
static void test_a_lost_row_is_made_good(void **state)
{
    struct world *w = *state;
    static const char *const ROWS[] = {
        DAMAGE KEY("ca.crt"), DAMAGE KEY("ca.crt") " OR " KEY("ca.key"),
        REMOVE "kind = 2",    "UPDATE record SET key = x'00' WHERE " KEY("token.key"),
        REMOVE "kind = 5",    DAMAGE "kind = 5",
    };
    struct str ca = keep(w, pki_ca_pem(w->pki));

    for (size_t i = 0; i < COUNT(ROWS); i++) {
        assert_true(alter_store(w, ROWS[i]) > 0);
        assert_int_equal(open_pki(w), 0);
        assert_true(str_eq(pki_ca_pem(w->pki), ca));
    }
}

/* A record the store lost is not one that never was. */
static void test_lost_records_are_not_made_again(void **state)
{
    struct world *w = *state;
    static const char *const ROWS[] = {
        DAMAGE KEY("ca.crt") " OR " KEY("~2/ca.crt"),
        REMOVE KEY("ca.crt") " OR " KEY("ca.key") " OR kind = 5",
        REMOVE KEY("ca.key") " OR " KEY("~2/ca.key"), /* half of a CA is damage, too */
        "UPDATE record SET key = x'00' || kind WHERE " KEY("token.key") " OR " KEY("~2/token.key"),
        REMOVE KEY("token.key") " OR " KEY("~2/token.key"),
    };

    for (size_t i = 0; i < COUNT(ROWS); i++) {
        alter_store(w, "DROP TABLE IF EXISTS was; CREATE TABLE was AS SELECT * FROM record");
        assert_true(alter_store(w, ROWS[i]) > 0);
        alter_store(w, "DROP TABLE IF EXISTS lost; CREATE TABLE lost AS SELECT * FROM record");
        assert_int_equal(open_pki(w), 0);
        assert_string_equal(pki_lost(w->pki), i < 3 ? "CA" : "token key");
        assert_int_equal(pki_renew_serving(w->pki, &w->err), 0);
        (void)set_address(w, "10.0.0.1");
        /* Nothing was stored: neither a key nor what depends on it. */
        assert_int_equal(alter_store(w, "DELETE FROM record WHERE (kind, key, value) NOT IN"
                                        " (SELECT kind, key, value FROM lost)"),
                         0);
        alter_store(w, "DELETE FROM record; INSERT INTO record SELECT * FROM was");
        assert_int_equal(open_pki(w), 0);
        assert_null(pki_lost(w->pki));
    }
}

static void test_bad_names(void **state)
{
    struct world *w = *state;

    w->pki = pki_free(w->pki);
    w->names[0] = STR("two words");
    assert_int_equal(open_pki(w), -1);
    assert_ptr_equal(w->err.kind, &ERR_BAD_REQUEST);
    w->n_names = 0;
    assert_int_equal(open_pki(w), -1);
}

/* Java clients take a key for RSA unless its first line says EC, and then read an ECPrivateKey with
 * its curve. Source: fabric8 kubernetes-client Config.getKeyAlgorithm(), CertUtils. Keys that were
 * stored in PKCS #8 are still read. */
static void check_key_forms(struct str pem, EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());
    const unsigned char *at;
    unsigned char *der;
    char *name, *header, *text;
    long n;
    EVP_PKEY *again;

    assert_true(str_has_prefix(pem, STR("-----BEGIN EC PRIVATE KEY-----\n")));
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL), 1);
    n = BIO_get_mem_data(bio, &text);
    assert_true(str_has_prefix((struct str){text, (size_t)n}, STR("-----BEGIN PRIVATE KEY-----")));
    again = pki_key_read((struct str){text, (size_t)n});
    assert_int_equal(EVP_PKEY_eq(again, key), 1);
    EVP_PKEY_free(again);
    BIO_free(bio);

    bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    assert_int_equal(PEM_read_bio(bio, &name, &header, &der, &n), 1);
    assert_string_equal(name, "EC PRIVATE KEY");
    at = der;
    again = d2i_PrivateKey(EVP_PKEY_EC, NULL, &at, n);
    assert_int_equal(EVP_PKEY_eq(again, key), 1);
    assert_ptr_equal(at, der + n);
    EVP_PKEY_free(again);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(der);
    BIO_free(bio);
}

static void test_client(void **state)
{
    struct world *w = *state;
    struct str organizations[] = {STR("system:masters"), STR("a,b=c\xc3\xa4")};
    struct str cert, key;
    X509 *x;
    EVP_PKEY *k;

    assert_int_equal(pki_issue_client(w->pki, w->arena, STR("alice"), organizations, 2, 3600, &cert,
                                      &key, &w->err),
                     0);
    assert_null(verify(w, cert, "ssl_client"));
    assert_non_null(verify(w, cert, "ssl_server"));
    x = pki_cert_read(cert);
    k = pki_key_read(key);
    assert_int_equal(X509_check_private_key(x, k), 1);
    check_key_forms(key, k);
    assert_int_equal(pki_cert_not_after(x), w->now + 3600);
    assert_int_equal(X509_NAME_entry_count(X509_get_subject_name(x)), 3);
    X509_free(x);
    EVP_PKEY_free(k);
    w->now += 3601;
    assert_non_null(verify(w, cert, "ssl_client"));

    /* Never beyond its CA; never without a name. */
    assert_int_equal(pki_issue_client(w->pki, w->arena, STR("bob"), NULL, 0, INT32_MAX * 2LL, &cert,
                                      &key, &w->err),
                     0);
    x = pki_cert_read(cert);
    assert_int_equal(pki_cert_not_after(x), T0 + 10 * 365 * 24 * 3600LL);
    X509_free(x);
    assert_int_equal(pki_issue_client(w->pki, w->arena, STR(""), NULL, 0, 60, &cert, &key, &w->err),
                     -1);
}

static void test_kubeconfig(void **state)
{
    struct world *w = *state;
    struct str organizations[] = {STR("system:masters")}, text;
    struct pki_kubeconfig want = {.name = STR("team \"a\""),
                                  .server = STR("https://1.2.3.4:8443"),
                                  .cn = STR("admin"),
                                  .organizations = organizations,
                                  .n_organizations = 1};

    assert_int_equal(pki_kubeconfig(w->pki, w->arena, &want, &text, &w->err), 0);
    assert_true(str_has_prefix(
        text, STR("apiVersion: v1\nkind: Config\nclusters:\n- name: \"team \\\"a\\\"\"\n"
                  "  cluster:\n    server: \"https://1.2.3.4:8443\"\n"
                  "    certificate-authority-data: LS0tLS1CRUdJTi")));
    assert_true(str_contains(text, STR("    cluster: \"team \\\"a\\\"\"\n"
                                       "    user: \"team \\\"a\\\"-admin\"\n"
                                       "current-context: \"team \\\"a\\\"\"\n"
                                       "users:\n- name: \"team \\\"a\\\"-admin\"\n  user:\n"
                                       "    client-certificate-data: LS0tLS1CRUdJTi")));
    want.authority = STR("another authority");
    assert_int_equal(pki_kubeconfig(w->pki, w->arena, &want, &text, &w->err), 0);
    assert_true(str_contains(
        text, STR("    certificate-authority-data: YW5vdGhlciBhdXRob3JpdHk=\ncontexts:")));
    want.insecure = true;
    assert_int_equal(pki_kubeconfig(w->pki, w->arena, &want, &text, &w->err), 0);
    assert_true(str_contains(text, STR("    server: \"https://1.2.3.4:8443\"\n"
                                       "    insecure-skip-tls-verify: true\ncontexts:")));
    assert_false(str_contains(text, STR("certificate-authority-data")));
}

/* It issues no certificate: the renewal of the admin's goes by its own. */
static void test_kubeconfig_for_a_token(void **state)
{
    struct world *w = *state;
    struct pki_kubeconfig want = {.name = STR("ci"),
                                  .server = STR("https://1.2.3.4:8443"),
                                  .cn = STR("robot"),
                                  .insecure = true};
    int64_t before, after, end;
    struct str text;

    assert_int_equal(pki_kubeconfig(w->pki, w->arena, &want, &text, &w->err), 0);
    pki_lifetime(w->pki, PKI_KUBECONFIG, &before, &end);
    assert_int_not_equal(before, 0);
    w->now += 60;
    want.bearer = true;
    assert_int_equal(pki_kubeconfig(w->pki, w->arena, &want, &text, &w->err), 0);
    assert_true(str_has_suffix(text, STR("users:\n- name: \"ci-robot\"\n  user:\n    token: ")));
    assert_false(str_contains(text, STR("client-")));
    pki_lifetime(w->pki, PKI_KUBECONFIG, &after, &end);
    assert_int_equal(before, after);
}

/* Tokens. */

static struct token_claims claims_of(struct world *w, const char *kind)
{
    static const struct str AUDIENCES[] = {{"https://api", 11}, {"vault", 5}};

    return (struct token_claims){
        .ns = STR("team"),
        .service_account = STR("builder"),
        .service_account_uid = STR("sa-uid"),
        .bound_kind = str_c(kind),
        .bound_name = STR("thing"),
        .bound_uid = STR("thing-uid"),
        .node_name = STR("node-1"),
        .node_uid = STR("node-uid"),
        .audiences = AUDIENCES,
        .n_audiences = 2,
        .issued = w->now,
        .not_before = w->now,
        .expires = w->now + 3600,
        .id = STR("some-id"),
    };
}

static struct str sign(struct world *w, const struct token_claims *claims)
{
    struct str jwt;

    assert_int_equal(pki_sign_token(w->pki, w->arena, claims, &jwt, &w->err), 0);
    return jwt;
}

static bool accepted(struct world *w, struct str jwt, struct token_claims *ret)
{
    struct token_claims claims;
    int got;

    err_clear(&w->err);
    got = pki_verify_token(w->pki, w->arena, jwt, ret ? ret : &claims, &w->err);
    if (got < 0)
        assert_ptr_equal(w->err.kind, &ERR_UNAUTHORIZED);
    return got == 0;
}

static struct str payload_of(struct world *w, struct str jwt)
{
    struct str rest = jwt, text;

    str_cut(&rest, '.');
    assert_true(base64url_decode(w->arena, str_cut(&rest, '.'), &text));
    return text;
}

/* The id is the hash of the key's SubjectPublicKeyInfo, for P-256 a constant head and the point. */
static void check_key_id(struct world *w, const cJSON *key)
{
    static const char HEAD[] = "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a"
                               "\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04";
    struct str parts[3] = {{HEAD, sizeof(HEAD) - 1}};
    unsigned char hash[32];

    assert_true(base64url_decode(w->arena, json_str(json_get(key, "x")), &parts[1]));
    assert_true(base64url_decode(w->arena, json_str(json_get(key, "y")), &parts[2]));
    sha256(arena_concat(w->arena, 3, parts), hash);
    assert_true(str_eq(json_str(json_get(key, "kid")),
                       base64url_encode(w->arena, (struct str){(char *)hash, sizeof(hash)})));
}

static void test_token_shape(void **state)
{
    struct world *w = *state;
    struct token_claims claims = claims_of(w, "Pod");
    struct str jwt = sign(w, &claims), rest = jwt, head;
    cJSON *header, *keys, *key;

    assert_str(payload_of(w, jwt),
               "{\"aud\":[\"https://api\",\"vault\"],\"exp\":1800003600,\"iat\":1800000000,"
               "\"iss\":\"" ISSUER "\",\"jti\":\"some-id\",\"kubernetes.io\":{\"namespace\":"
               "\"team\",\"node\":{\"name\":\"node-1\",\"uid\":\"node-uid\"},\"pod\":{\"name\":"
               "\"thing\",\"uid\":\"thing-uid\"},\"serviceaccount\":{\"name\":\"builder\","
               "\"uid\":\"sa-uid\"}},\"nbf\":1800000000,"
               "\"sub\":\"system:serviceaccount:team:builder\"}");
    assert_true(base64url_decode(w->arena, str_cut(&rest, '.'), &head));
    assert_int_equal(json_parse(w->arena, head, &header, &w->err), 0);
    assert_int_equal(json_parse(w->arena, pki_jwks(w->pki, w->arena), &keys, &w->err), 0);
    key = json_at(json_get(keys, "keys"), 0);
    assert_true(str_eq(json_str(json_get(key, "kid")), json_str(json_get(header, "kid"))));
    assert_str(json_str(json_get(key, "crv")), "P-256");
    assert_int_equal(json_str(json_get(key, "x")).n, 43);
    assert_int_equal(json_str(json_get(key, "y")).n, 43);
    check_key_id(w, key);
}

static void test_token_round_trip(void **state)
{
    struct world *w = *state;
    static const char *const KINDS[] = {"Pod", "Secret", "Node", ""};

    for (size_t i = 0; i < 4; i++) {
        struct token_claims claims = claims_of(w, KINDS[i]), got;

        claims.warn_after = i ? 0 : w->now + 3607;
        assert_true(accepted(w, sign(w, &claims), &got));
        assert_str(got.bound_kind, KINDS[i]);
        assert_str(got.bound_name, *KINDS[i] ? "thing" : "");
        assert_str(got.bound_uid, *KINDS[i] ? "thing-uid" : "");
        assert_str(got.node_name, i == 0 ? "node-1" : "");
        assert_str(got.ns, "team");
        assert_str(got.service_account, "builder");
        assert_str(got.service_account_uid, "sa-uid");
        assert_str(got.id, "some-id");
        assert_int_equal(got.n_audiences, 2);
        assert_str(got.audiences[1], "vault");
        assert_int_equal(got.expires, claims.expires);
        assert_int_equal(got.issued, claims.issued);
        assert_int_equal(got.not_before, claims.not_before);
        assert_int_equal(got.warn_after, claims.warn_after);
    }
}

static void test_token_times(void **state)
{
    struct world *w = *state;
    struct token_claims claims = claims_of(w, "");
    struct str jwt = sign(w, &claims);

    w->now = claims.expires + 60;
    assert_true(accepted(w, jwt, NULL));
    w->now++;
    assert_false(accepted(w, jwt, NULL));
    assert_str(w->err.message, "service account token has expired");
    w->now = claims.not_before - 60;
    assert_true(accepted(w, jwt, NULL));
    w->now--;
    assert_false(accepted(w, jwt, NULL));
    assert_str(w->err.message, "service account token is not valid yet");
}

static struct str signed_by(struct world *w, EVP_PKEY *key, const char *head, struct str payload)
{
    struct str text = arena_printf(w->arena, "%s.%s", base64url_encode(w->arena, str_c(head)).p,
                                   base64url_encode(w->arena, payload).p);
    unsigned char sig[128];
    size_t n = sizeof(sig);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(ctx, sig, &n, (const unsigned char *)text.p, text.n), 1);
    EVP_MD_CTX_free(ctx);
    return arena_printf(w->arena, "%s.%s", text.p,
                        base64url_encode(w->arena, (struct str){(char *)sig, n}).p);
}

static void test_token_forgeries(void **state)
{
    struct world *w = *state;
    struct token_claims claims = claims_of(w, "Pod");
    struct str jwt = sign(w, &claims), payload = payload_of(w, jwt), rest = jwt;
    struct str head = str_cut(&rest, '.'), body = str_cut(&rest, '.'), signature = rest;
    EVP_PKEY *other = pki_key_new(&w->err), *hmac;
    struct str none = base64url_encode(w->arena, STR("{\"alg\":\"none\"}"));
    struct str jwks = pki_jwks(w->pki, w->arena);

    assert_true(accepted(w, jwt, NULL));
    /* no signature; alg none */
    assert_false(accepted(w, arena_printf(w->arena, "%s.%s.", head.p, body.p), NULL));
    assert_false(accepted(w, arena_printf(w->arena, "%.*s.%.*s.", STR_F(head), STR_F(body)), NULL));
    assert_false(accepted(w, arena_printf(w->arena, "%s.%.*s.", none.p, STR_F(body)), NULL));
    assert_false(accepted(
        w, arena_printf(w->arena, "%s.%.*s.%.*s", none.p, STR_F(body), STR_F(signature)), NULL));
    /* another key, and a DER signature */
    assert_false(accepted(w, signed_by(w, other, "{\"alg\":\"ES256\"}", payload), NULL));
    /* HS256 with our public key as the secret */
    hmac = EVP_PKEY_new_mac_key(EVP_PKEY_HMAC, NULL, (const unsigned char *)jwks.p, (int)jwks.n);
    assert_false(accepted(w, signed_by(w, hmac, "{\"alg\":\"HS256\"}", payload), NULL));
    EVP_PKEY_free(hmac);
    EVP_PKEY_free(other);
    /* a signature of zeros (CVE-2022-21449) */
    assert_false(
        accepted(w,
                 arena_printf(w->arena, "%.*s.%.*s.%s", STR_F(head), STR_F(body),
                              base64url_encode(w->arena, (struct str){(char[64]){0}, 64}).p),
                 NULL));
    /* every byte counts */
    for (size_t i = 0; i < jwt.n; i++) {
        struct str bent = arena_str(w->arena, jwt);
        char *p = (char *)(uintptr_t)bent.p;

        p[i] = p[i] == 'A' ? 'B' : 'A';
        if (accepted(w, bent, NULL))
            fail_msg("accepted with byte %zu changed", i);
    }
    assert_false(accepted(w, arena_printf(w->arena, "%.*s.x", STR_F(jwt)), NULL));
    assert_false(accepted(w, arena_printf(w->arena, "%.*s=", STR_F(jwt)), NULL));
    assert_false(accepted(w, STR(""), NULL));
    assert_false(accepted(w, STR(".."), NULL));
    assert_false(accepted(w, STR_NULL, NULL));
}

static void test_token_of_another_cluster(void **state)
{
    struct world *w = *state;
    struct token_claims claims = claims_of(w, "");
    struct str jwt = sign(w, &claims);

    close_store(w);
    assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(mkdir(w->dir, 0700), 0);
    open_store(w);
    assert_int_equal(open_pki(w), 0);
    assert_false(accepted(w, jwt, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_serving, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ca_shape, setup, teardown),
        cmocka_unit_test_setup_teardown(test_restart_keeps_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(test_serving_is_reissued, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_address_is_a_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_there_may_be_many_addresses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_lost_row_is_made_good, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_not_repaired_by_a_new_ca, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_records_are_not_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kubeconfig, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kubeconfig_for_a_token, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_shape, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_round_trip, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_times, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_forgeries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_token_of_another_cluster, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
