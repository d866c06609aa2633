/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of one virtual cluster: its CA, its serving certificate, its token key. Why: they
 * live in the tenant's store, so that a restored copy is the same cluster and every kubeconfig and
 * token it issued stays valid. Must never replace a stored CA or token key, readable or not: that
 * would silently invalidate every credential of the tenant. */
#include <sublet/pki.h>

#include <assert.h>

#include <openssl/err.h>

#include <sublet/buf.h>
#include <sublet/encode.h>
#include <sublet/store.h>
#include <sublet/store_quarantine.h>

#include "jwt.h"
#include "pki_cert.h"

#define PKI_MAGIC     0x706b6921u
#define YEAR          (365LL * 24 * 3600)
#define CA_LIFETIME   (10 * YEAR)
#define LEAF_LIFETIME YEAR
#define SKEW          300 /* seconds of clock skew of other machines */
#define MAX_NAMES     100

struct pki {
    unsigned magic;
    struct store *store;
    const struct clock *clock;
    const struct rng *rng;
    struct arena *arena, *serving_arena;
    struct str *names; /* the options', and the address if there is one */
    size_t n_options, n_names;
    struct str issuer, cluster_uid;
    int64_t lifetime, config_from, config_end;
    const char *lost; /* see pki_lost() */

    X509 *ca, *serving;
    EVP_PKEY *ca_key, *serving_key, *token_key;
    struct str ca_pem, serving_pem, serving_key_pem, token_key_id;
};

/* Records. */

static void put(struct pki *p, const char *key, struct str value)
{
    if (!p->lost)
        store_record_put(p->store, RECORD_PKI, str_c(key), value);
}

/* Credentials of clients depend on it: it cannot be created again. */
static void put_twice(struct pki *p, const char *key, struct str value)
{
    if (!p->lost)
        store_record_put_twice(p->store, RECORD_PKI, str_c(key), value);
}

static struct str get(struct pki *p, const char *key)
{
    struct str value;

    return store_record_get_either(p->store, RECORD_PKI, str_c(key), &value) ? value : STR_NULL;
}

/* A missing record may be damage: a generated one must not replace it. */
static bool is_lost(struct pki *p, const char *key)
{
    return !get(p, key).p && store_record_damaged(p->store, RECORD_PKI, str_c(key));
}

/* A certificate and its key, stored as "<name>.crt" and "<name>.key". */
struct pair {
    X509 *cert;
    EVP_PKEY *key;
};

static void pair_free(struct pair *pair)
{
    X509_free(pair->cert);
    EVP_PKEY_free(pair->key);
    *pair = (struct pair){NULL, NULL};
}

/* False, with *ret unchanged, unless both can be read and belong together. */
static bool pair_load(struct pki *p, const char *cert, const char *key, struct pair *ret)
{
    ret->cert = pki_cert_read(get(p, cert));
    ret->key = pki_key_read(get(p, key));
    bool good = ret->cert && ret->key && X509_check_private_key(ret->cert, ret->key) == 1;

    ERR_clear_error();
    if (!good)
        pair_free(ret);
    return good;
}

/* Creates a key and a certificate for it, signed by the CA (by itself when there is none yet). */
static int pair_issue(struct pki *p, const struct cert_request *request, struct pair *ret,
                      struct err *err)
{
    *ret = (struct pair){.key = pki_key_new(err)};
    if (ret->key && pki_cert_issue(request, ret->key, p->ca, p->ca_key, &ret->cert, err) == 0)
        return 0;
    pair_free(ret);
    return -1;
}

/* The CA. */

static int make_ca(struct pki *p, struct err *err)
{
    int64_t now = clock_wall_s(p->clock);
    struct cert_request request = {
        .use = CERT_CA,
        .cn = arena_printf(p->arena, "sublet-ca-%.*s", STR_F(str_sub(p->cluster_uid, 0, 36))),
        .not_before = now - SKEW,
        .not_after = now + CA_LIFETIME,
        .rng = p->rng,
    };

    struct pair ca;

    if (pair_issue(p, &request, &ca, err))
        return -1;
    p->ca = ca.cert;
    p->ca_key = ca.key;
    p->ca_pem = pki_cert_pem(p->arena, p->ca);
    put_twice(p, "ca.crt", p->ca_pem);
    put_twice(p, "ca.key", pki_key_pem(p->arena, p->ca_key));
    return 0;
}

static int load_ca(struct pki *p, struct err *err)
{
    bool lost = is_lost(p, "ca.crt") || is_lost(p, "ca.key");
    struct pair ca;

    if (!lost && !get(p, "ca.crt").p && !get(p, "ca.key").p)
        return make_ca(p, err);
    if (lost || !pair_load(p, "ca.crt", "ca.key", &ca)) {
        p->lost = "CA";
        return make_ca(p, err);
    }
    p->ca = ca.cert;
    p->ca_key = ca.key;
    p->ca_pem = arena_str(p->arena, get(p, "ca.crt"));
    put_twice(p, "ca.crt", p->ca_pem);
    put_twice(p, "ca.key", get(p, "ca.key"));
    return 0;
}

/* A leaf never outlives its CA. */
static int64_t leaf_end(const struct pki *p, int64_t seconds)
{
    int64_t end = clock_wall_s(p->clock) + seconds, last = pki_cert_not_after(p->ca);

    return end < last ? end : last;
}

/* The serving certificate. */

static int check_names(const struct pki_options *o, struct err *err)
{
    if (!o->n_names || o->n_names > MAX_NAMES)
        return err_set(err, &ERR_BAD_REQUEST, "pki: a serving certificate has 1 to %d names",
                       MAX_NAMES);
    for (size_t i = 0; i < o->n_names; i++) {
        struct str name = o->names[i];
        bool ok = name.n > 0 && name.n <= 253;

        for (size_t k = 0; ok && k < name.n; k++)
            ok = name.p[k] > ' ' && name.p[k] < 0x7f;
        if (!ok)
            return err_set(err, &ERR_BAD_REQUEST, "pki: \"%.*s\" is not a name of a server",
                           STR_F(name));
    }
    return 0;
}

static void forget_serving(struct pki *p)
{
    X509_free(p->serving);
    EVP_PKEY_free(p->serving_key);
    p->serving = NULL;
    p->serving_key = NULL;
    p->serving_pem = p->serving_key_pem = STR_NULL;
    if (p->serving_arena)
        arena_free(p->serving_arena);
    p->serving_arena = arena_new(0);
}

static void keep_serving(struct pki *p, const struct pair *pair)
{
    struct str parts[2];

    forget_serving(p);
    p->serving = pair->cert;
    p->serving_key = pair->key;
    parts[0] = pki_cert_pem(p->serving_arena, pair->cert);
    parts[1] = p->ca_pem;
    p->serving_pem = arena_concat(p->serving_arena, 2, parts);
    p->serving_key_pem = pki_key_pem(p->serving_arena, pair->key);
}

int pki_renew_serving(struct pki *p, struct err *err)
{
    struct cert_request request = {
        .use = CERT_SERVER,
        .cn = STR("kube-apiserver"),
        .names = p->names,
        .n_names = p->n_names,
        .not_before = clock_wall_s(p->clock) - SKEW,
        .not_after = leaf_end(p, p->lifetime),
        .rng = p->rng,
    };
    struct pair pair;

    if (pair_issue(p, &request, &pair, err))
        return -1;
    keep_serving(p, &pair);
    put(p, "serving.crt", pki_cert_pem(p->serving_arena, pair.cert));
    put(p, "serving.key", p->serving_key_pem);
    return 0;
}

/* The certificate was issued later than it says. */
static int64_t made_at(const X509 *cert)
{
    return pki_cert_not_before(cert) + SKEW;
}

static int64_t renew_at(const X509 *cert)
{
    return made_at(cert) + (pki_cert_not_after(cert) - made_at(cert)) / 3 * 2;
}

/* Whether a new certificate would have a much shorter lifetime: the option may have changed. */
static bool outlives_option(const struct pki *p, const X509 *cert)
{
    return pki_cert_not_after(cert) - made_at(cert) > p->lifetime;
}

/* Unlike the CA, an unreadable serving certificate is harmless: it is issued again. */
static int load_serving(struct pki *p, struct err *err)
{
    struct pair pair;

    if (!pair_load(p, "serving.crt", "serving.key", &pair))
        return pki_renew_serving(p, err);
    bool good = X509_verify(pair.cert, p->ca_key) == 1 &&
                pki_cert_has_names(pair.cert, p->names, p->n_names) &&
                !outlives_option(p, pair.cert) && renew_at(pair.cert) > clock_wall_s(p->clock);
    ERR_clear_error();
    if (good) {
        keep_serving(p, &pair);
        return 0;
    }
    pair_free(&pair);
    return pki_renew_serving(p, err);
}

static void add_address(struct pki *p, struct str ip)
{
    p->n_names = p->n_options;
    for (size_t i = 0; i < p->n_options; i++) {
        if (str_eq(p->names[i], ip))
            return;
    }
    if (ip.n)
        p->names[p->n_names++] = arena_str(p->arena, ip);
}

bool pki_set_address(struct pki *p, struct str ip)
{
    assert(p->magic == PKI_MAGIC);
    if (!str_eq(get(p, "serving.address"), ip))
        put(p, "serving.address", ip);
    add_address(p, ip);
    return !pki_cert_has_names(p->serving, p->names, p->n_names);
}

/* The token key. */

static int load_token_key(struct pki *p, struct err *err)
{
    struct str pem = get(p, "token.key");

    if (pem.p)
        p->token_key = pki_key_read(pem);
    if (!p->lost && !p->token_key && (pem.p || is_lost(p, "token.key")))
        p->lost = "token key";
    if (!p->token_key)
        p->token_key = pki_key_new(err);
    if (!p->token_key)
        return -1;
    put_twice(p, "token.key", pki_key_pem(p->arena, p->token_key));
    return jwt_key_id(p->arena, p->token_key, &p->token_key_id, err);
}

/* Lifecycle. */

int pki_open(struct store *s, const struct pki_options *options, struct pki **ret, struct err *err)
{
    struct pki *p;

    if (check_names(options, err) < 0)
        return -1;
    p = NEW(struct pki);
    p->magic = PKI_MAGIC;
    p->store = s;
    p->clock = options->clock;
    p->rng = options->rng;
    p->arena = arena_new(0);
    p->issuer = arena_str(p->arena, options->issuer);
    p->cluster_uid = arena_str(p->arena, options->cluster_uid);
    p->lifetime = options->life_s ? options->life_s : LEAF_LIFETIME;
    p->names = arena_alloc(p->arena, (options->n_names + 1) * sizeof(*p->names));
    p->n_options = options->n_names;
    for (size_t i = 0; i < options->n_names; i++)
        p->names[i] = arena_str(p->arena, options->names[i]);
    add_address(p, get(p, "serving.address"));

    if (load_ca(p, err) < 0 || load_serving(p, err) < 0 || load_token_key(p, err) < 0) {
        pki_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

struct pki *pki_free(struct pki *p)
{
    if (!p)
        return NULL;
    assert(p->magic == PKI_MAGIC);
    forget_serving(p);
    X509_free(p->ca);
    EVP_PKEY_free(p->ca_key);
    EVP_PKEY_free(p->token_key);
    arena_free(p->serving_arena);
    arena_free(p->arena);
    p->magic = 0xdeadbeef;
    return mem_free(p);
}

const char *pki_lost(const struct pki *p)
{
    assert(p->magic == PKI_MAGIC);
    return p->lost;
}

struct str pki_ca_pem(const struct pki *p)
{
    return p->ca_pem;
}

struct str pki_serving_pem(const struct pki *p)
{
    return p->serving_pem;
}

struct str pki_serving_key_pem(const struct pki *p)
{
    return p->serving_key_pem;
}

int64_t pki_serving_renew_at(const struct pki *p)
{
    return renew_at(p->serving);
}

void pki_lifetime(const struct pki *p, enum pki_certificate which, int64_t *ret_from,
                  int64_t *ret_end)
{
    const X509 *cert = which == PKI_CA ? p->ca : p->serving;

    *ret_from = which == PKI_KUBECONFIG ? p->config_from : made_at(cert);
    *ret_end = which == PKI_KUBECONFIG ? p->config_end : pki_cert_not_after(cert);
}

/* Client certificates. */

int pki_issue_client(struct pki *p, struct arena *a, struct str cn, const struct str *organizations,
                     size_t n, int64_t seconds, struct str *ret_cert, struct str *ret_key,
                     struct err *err)
{
    struct cert_request request = {
        .use = CERT_CLIENT,
        .cn = cn,
        .organizations = organizations,
        .n_organizations = n,
        .not_before = clock_wall_s(p->clock) - SKEW,
        .not_after = leaf_end(p, seconds),
        .rng = p->rng,
    };
    struct pair pair;

    if (pair_issue(p, &request, &pair, err))
        return -1;
    *ret_cert = pki_cert_pem(a, pair.cert);
    *ret_key = pki_key_pem(a, pair.key);
    pair_free(&pair);
    return 0;
}

/* A long-lived certificate ends earlier by as much as it was backdated. */
#define LONG_LIFETIME (8 * 3600)

int pki_sign_request(struct pki *p, struct arena *a, struct str pem, const struct str *usages,
                     size_t n, int64_t seconds, struct str *ret_cert, struct err *err)
{
    int64_t backdate = seconds < LONG_LIFETIME ? 0 : SKEW;
    struct cert_request request = {
        .not_before = clock_wall_s(p->clock) - SKEW,
        .not_after = leaf_end(p, seconds - backdate),
        .rng = p->rng,
        .usages = usages,
        .n_usages = n,
    };
    X509 *cert;

    if (pki_request_issue(&request, a, pem, p->ca, p->ca_key, &cert, err))
        return -1;
    *ret_cert = pki_cert_pem(a, cert);
    X509_free(cert);
    return 0;
}

int64_t pki_certificate_end(struct str pem)
{
    X509 *cert = pki_cert_read(pem);
    int64_t end = cert ? pki_cert_not_after(cert) : 0;

    X509_free(cert);
    return end;
}

int pki_check_bundle(struct str pem, struct err *err)
{
    size_t n = pki_cert_count(pem);

    return n ? 0 : err_set(err, &ERR_BAD_REQUEST, "holds no certificate, or one that is broken");
}

static void add_data(struct buf *b, struct arena *a, const char *key, struct str pem)
{
    buf_printf(b, "    %s: %s\n", key, base64_encode(a, pem).p);
}

/* Names are written as JSON strings, which are valid YAML. */
int pki_kubeconfig(struct pki *p, struct arena *a, struct str name, struct str server,
                   struct str cn, const struct str *organizations, size_t n, struct str *ret,
                   struct err *err)
{
    struct str cert, key, user = arena_printf(a, "%.*s-%.*s", STR_F(name), STR_F(cn));
    struct buf b = BUF_INIT(0);

    if (pki_issue_client(p, a, cn, organizations, n, p->lifetime, &cert, &key, err) < 0)
        return -1;
    p->config_from = clock_wall_s(p->clock);
    p->config_end = leaf_end(p, p->lifetime);
    buf_addc(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: ");
    buf_json_string(&b, name);
    buf_addc(&b, "\n  cluster:\n    server: ");
    buf_json_string(&b, server);
    buf_char(&b, '\n');
    add_data(&b, a, "certificate-authority-data", p->ca_pem);
    buf_addc(&b, "users:\n- name: ");
    buf_json_string(&b, user);
    buf_addc(&b, "\n  user:\n");
    add_data(&b, a, "client-certificate-data", cert);
    add_data(&b, a, "client-key-data", key);
    buf_addc(&b, "contexts:\n- name: ");
    buf_json_string(&b, name);
    buf_addc(&b, "\n  context:\n    cluster: ");
    buf_json_string(&b, name);
    buf_addc(&b, "\n    user: ");
    buf_json_string(&b, user);
    buf_addc(&b, "\ncurrent-context: ");
    buf_json_string(&b, name);
    buf_char(&b, '\n');
    *ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return 0;
}

/* Tokens. */

int pki_sign_token(struct pki *p, struct arena *a, const struct token_claims *claims,
                   struct str *ret_jwt, struct err *err)
{
    return jwt_sign(a, p->token_key, p->token_key_id, p->issuer, claims, ret_jwt, err);
}

int pki_verify_token(const struct pki *p, struct arena *a, struct str jwt, struct token_claims *ret,
                     struct err *err)
{
    return jwt_verify(a, p->token_key, p->token_key_id, p->issuer, clock_wall_s(p->clock), jwt, ret,
                      err);
}

struct str pki_jwks(const struct pki *p, struct arena *a)
{
    return jwt_key_set(a, p->token_key, p->token_key_id);
}

struct str pki_issuer(const struct pki *p)
{
    assert(p->magic == PKI_MAGIC);
    return p->issuer;
}
