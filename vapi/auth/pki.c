/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity of one virtual cluster: its CA, its serving certificate, its token key. Why: they
 * live in the tenant's store, so that a restored copy is the same cluster and every kubeconfig and
 * token it issued stays valid. Must never replace a stored token key, readable or not: that would
 * silently invalidate every credential of the tenant. */
#include "pki_impl.h"

#include <assert.h>

#include <openssl/err.h>

#include <sublet/buf.h>
#include <sublet/encode.h>

#include "jwt.h"

#define MAX_NAMES 100

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

static void keep_serving(struct pki *p, const struct pki_pair *pair)
{
    struct str parts[2];

    forget_serving(p);
    p->serving = pair->cert;
    p->serving_key = pair->key;
    parts[0] = pki_cert_pem(p->serving_arena, pair->cert);
    parts[1] = p->chain_pem;
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
    struct pki_pair pair;

    if (pki_pair_issue(p, &request, &pair, err))
        return -1;
    keep_serving(p, &pair);
    pki_record_put(p, "serving.crt", pki_cert_pem(p->serving_arena, pair.cert));
    pki_record_put(p, "serving.key", p->serving_key_pem);
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
int pki_load_serving(struct pki *p, struct err *err)
{
    struct pki_pair pair;

    if (!pki_pair_load(p, "serving.crt", "serving.key", &pair))
        return pki_renew_serving(p, err);
    bool good = X509_verify(pair.cert, p->ca_key) == 1 &&
                pki_cert_has_names(pair.cert, p->names, p->n_names) &&
                !outlives_option(p, pair.cert) && renew_at(pair.cert) > clock_wall_s(p->clock);
    ERR_clear_error();
    if (good) {
        keep_serving(p, &pair);
        return 0;
    }
    pki_pair_free(&pair);
    return pki_renew_serving(p, err);
}

/* As they are stored: IP,IP. */
static void add_addresses(struct pki *p, struct str text)
{
    struct str rest = arena_str(p->arena, text);

    p->n_names = p->n_options;
    while (rest.n && p->n_names < p->n_options + PKI_MOST_ADDRESSES) {
        struct str ip = str_cut(&rest, ',');
        bool known = false;

        for (size_t i = 0; i < p->n_names; i++)
            known |= str_eq(p->names[i], ip);
        if (ip.n && !known)
            p->names[p->n_names++] = ip;
    }
}

bool pki_set_addresses(struct pki *p, const struct str *ips, size_t n)
{
    struct buf text = BUF_INIT(0);

    assert(p->magic == PKI_MAGIC);
    for (size_t i = 0; i < n && i < PKI_MOST_ADDRESSES; i++)
        buf_printf(&text, "%s%.*s", text.n && ips[i].n ? "," : "", STR_F(ips[i]));
    if (!str_eq(pki_record_get(p, "serving.address"), buf_str(&text))) {
        pki_record_put(p, "serving.address", buf_str(&text));
        add_addresses(p, buf_str(&text));
    }
    buf_fini(&text);
    return !pki_cert_has_names(p->serving, p->names, p->n_names);
}

/* The token key. */

static int load_token_key(struct pki *p, struct err *err)
{
    struct str pem = pki_record_get(p, "token.key");

    if (pem.p)
        p->token_key = pki_key_read(pem);
    if (!p->lost && !p->token_key && (pem.p || pki_record_lost(p, "token.key")))
        p->lost = "token key";
    if (!p->token_key)
        p->token_key = pki_key_new(err);
    if (!p->token_key)
        return -1;
    pki_record_put_twice(p, "token.key", pki_key_pem(p->arena, p->token_key));
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
    p->names = arena_alloc(p->arena, (options->n_names + PKI_MOST_ADDRESSES) * sizeof(*p->names));
    p->n_options = options->n_names;
    for (size_t i = 0; i < options->n_names; i++)
        p->names[i] = arena_str(p->arena, options->names[i]);
    add_addresses(p, pki_record_get(p, "serving.address"));

    if (pki_load_ca(p, err) < 0 || pki_load_serving(p, err) < 0 || load_token_key(p, err) < 0) {
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
    pki_forget_ca(p);
    pki_proxy_forget(p);
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
    const X509 *certs[] = {
        [PKI_CA] = p->ca, [PKI_SERVING] = p->serving, [PKI_PREVIOUS_CA] = p->previous};
    const X509 *cert = which == PKI_KUBECONFIG ? NULL : certs[which];

    *ret_from = cert ? made_at(cert) : which == PKI_KUBECONFIG ? p->config_from : 0;
    *ret_end = cert ? pki_cert_not_after(cert) : which == PKI_KUBECONFIG ? p->config_end : 0;
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
    struct pki_pair pair;

    if (pki_pair_issue(p, &request, &pair, err))
        return -1;
    *ret_cert = pki_cert_pem(a, pair.cert);
    *ret_key = pki_key_pem(a, pair.key);
    pki_pair_free(&pair);
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

/* The client certificate issued last is the one whose renewal is due by pki_lifetime(). */
static int add_client(struct pki *p, struct arena *a, const struct pki_kubeconfig *want,
                      struct buf *b, struct err *err)
{
    struct str cert, key;

    if (pki_issue_client(p, a, want->cn, want->organizations, want->n_organizations, p->lifetime,
                         &cert, &key, err) < 0)
        return -1;
    p->config_from = clock_wall_s(p->clock);
    p->config_end = leaf_end(p, p->lifetime);
    add_data(b, a, "client-certificate-data", cert);
    add_data(b, a, "client-key-data", key);
    return 0;
}

/* Names are written as JSON strings, which are valid YAML. The user is last, so that a token can be
 * appended. */
int pki_kubeconfig(struct pki *p, struct arena *a, const struct pki_kubeconfig *want,
                   struct str *ret, struct err *err)
{
    struct str user = arena_printf(a, "%.*s-%.*s", STR_F(want->name), STR_F(want->cn));
    struct buf b = BUF_INIT(0);
    int failed = 0;

    buf_addc(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: ");
    buf_json_string(&b, want->name);
    buf_addc(&b, "\n  cluster:\n    server: ");
    buf_json_string(&b, want->server);
    buf_char(&b, '\n');
    if (want->insecure)
        buf_addc(&b, "    insecure-skip-tls-verify: true\n");
    else
        add_data(&b, a, "certificate-authority-data",
                 want->authority.n ? want->authority : p->ca_pem);
    buf_addc(&b, "contexts:\n- name: ");
    buf_json_string(&b, want->name);
    buf_addc(&b, "\n  context:\n    cluster: ");
    buf_json_string(&b, want->name);
    buf_addc(&b, "\n    user: ");
    buf_json_string(&b, user);
    buf_addc(&b, "\ncurrent-context: ");
    buf_json_string(&b, want->name);
    buf_addc(&b, "\nusers:\n- name: ");
    buf_json_string(&b, user);
    buf_addc(&b, "\n  user:\n");
    if (want->bearer)
        buf_addc(&b, "    token: ");
    else
        failed = add_client(p, a, want, &b, err);
    if (!failed)
        *ret = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return failed;
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
