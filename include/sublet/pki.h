/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The keys of one virtual cluster: its CA, the serving certificate, client certificates, the
 * service account signing key, and JWTs. Keys live in the tenant's store (RECORD_PKI), so that one
 * file is the whole tenant and a restored copy is the same cluster. ECDSA P-256 for certificates,
 * and ES256 for tokens. */
#pragma once

#include <sublet/clock.h>
#include <sublet/err.h>

struct store;
struct pki;

struct pki_options {
    const struct clock *clock;
    const struct rng *rng;
    const struct str *names; /* DNS names and IPs of the serving certificate */
    size_t n_names;
    struct str issuer; /* of tokens, "https://kubernetes.default.svc.cluster.local" */
    struct str cluster_uid;
    int64_t life_s; /* of the serving certificate and a kubeconfig's; 0: a year */
};
/* Creates missing keys (written to the store), loads existing ones; reissues a serving certificate
 * whose names changed or which passed two thirds of its lifetime. */
int pki_open(struct store *s, const struct pki_options *options, struct pki **ret,
             struct err *err) MUST_CHECK;
struct pki *pki_free(struct pki *p);
/* What the store has lost that credentials of clients depend on, NULL: nothing. Keys of this run
 * alone stand in for it, and no record is written: the cluster is to be read, not to go on. */
const char *pki_lost(const struct pki *p);

/* Views: the CA's valid until pki_free(), the serving ones until pki_renew_serving() and
 * pki_reload(). */
struct str pki_ca_pem(const struct pki *p);      /* what clients and the server trust: one or two */
struct str pki_serving_pem(const struct pki *p); /* leaf + chain */
struct str pki_serving_key_pem(const struct pki *p);
/* Wall clock seconds: two thirds of its lifetime. */
int64_t pki_serving_renew_at(const struct pki *p);
/* When one was issued and when it expires, wall clock seconds; for the kubeconfig issued last and
 * the previous CA, 0 and 0 when there is none. */
enum pki_certificate { PKI_CA, PKI_SERVING, PKI_KUBECONFIG, PKI_PREVIOUS_CA };
void pki_lifetime(const struct pki *p, enum pki_certificate which, int64_t *ret_from,
                  int64_t *ret_end);
int pki_renew_serving(struct pki *p, struct err *err) MUST_CHECK;
/* Writes another CA, by which the previous one stays trusted, or ends the trust in the previous
 * one. It has its effect with pki_reload(), once the store has committed it. CONFLICT when there is
 * a previous one already, or none. */
int pki_rotate_ca(struct pki *p, struct err *err) MUST_CHECK;
int pki_retire_ca(struct pki *p, struct err *err) MUST_CHECK;
/* Takes the stored CA; a serving certificate of another is issued again. */
int pki_reload(struct pki *p, struct err *err) MUST_CHECK;
/* Further IPs of the serving certificate, which are known only later and may change; they are
 * stored, so that the next start serves with them. Those beyond PKI_MOST_ADDRESSES, and empty ones,
 * are left out. True: the certificate lacks one, or has one that is no more; renew it. */
#define PKI_MOST_ADDRESSES 65
bool pki_set_addresses(struct pki *p, const struct str *ips, size_t n);
/* A client certificate signed by the cluster's CA; PEM in arena. */
int pki_issue_client(struct pki *p, struct arena *a, struct str cn, const struct str *organizations,
                     size_t n, int64_t seconds, struct str *ret_cert, struct str *ret_key,
                     struct err *err) MUST_CHECK;
/* Certificate signing requests (PKCS #10, PEM): BAD_REQUEST when invalid or not signed by its key.
 * Counts of alternative names by type (X.509's GeneralName). Strings in arena. */
#define PKI_ALTERNATIVES 9
struct pki_request {
    struct str cn;
    const struct str *organizations;
    size_t n_organizations;
    size_t n_alternatives[PKI_ALTERNATIVES];
};
int pki_read_request(struct arena *a, struct str pem, struct pki_request *ret,
                     struct err *err) MUST_CHECK;
/* Signed by the cluster's CA, with usages named as in certificates.k8s.io. */
int pki_sign_request(struct pki *p, struct arena *a, struct str pem, const struct str *usages,
                     size_t n, int64_t seconds, struct str *ret_cert, struct err *err) MUST_CHECK;
int64_t pki_certificate_end(struct str pem); /* notAfter in unix seconds; 0: invalid */
/* Checks that a string holds certificates as PEM and nothing unreadable; BAD_REQUEST. */
int pki_check_bundle(struct str pem, struct err *err) MUST_CHECK;
/* The front proxy that this process is for extension API servers: its own CA, made when it is first
 * needed, PEM in arena; and the client certificate it signed, valid until the next call. */
#define PKI_FRONT_PROXY "front-proxy-client" /* its common name */
int pki_front_proxy_ca(struct pki *p, struct arena *a, struct str *ret, struct err *err) MUST_CHECK;
int pki_front_proxy(struct pki *p, struct str *ret_cert, struct str *ret_key,
                    struct err *err) MUST_CHECK;
/* A kubeconfig (YAML) with inline certificates and a client certificate of its own; with `bearer`
 * it ends where a token has to be appended. */
struct pki_kubeconfig {
    struct str name, server; /* name: of the cluster and the context; of the user with "-" and cn */
    struct str cn;
    const struct str *organizations;
    size_t n_organizations;
    struct str authority; /* PEM that verifies the server; empty: the cluster's own */
    bool insecure;        /* the server is not verified */
    bool bearer;          /* no client certificate */
};
int pki_kubeconfig(struct pki *p, struct arena *a, const struct pki_kubeconfig *want,
                   struct str *ret, struct err *err) MUST_CHECK;

/* Service account tokens: claims in Kubernetes' form (iss, aud, exp, iat, nbf, jti, sub,
 * kubernetes.io{namespace, serviceaccount{name,uid}, pod|secret|node{name,uid}, warnafter}). */
struct token_claims {
    struct str ns, service_account, service_account_uid;
    struct str bound_kind, bound_name, bound_uid; /* "Pod" | "Secret" | "Node", or empty */
    struct str node_name, node_uid;               /* with a pod: its node */
    const struct str *audiences;
    size_t n_audiences;
    int64_t issued, expires, not_before; /* seconds */
    struct str id;                       /* jti */
    int64_t warn_after;                  /* seconds; 0: none */
};
int pki_sign_token(struct pki *p, struct arena *a, const struct token_claims *claims,
                   struct str *ret_jwt, struct err *err) MUST_CHECK;
/* Checks signature, issuer, times; not audiences, nor whether the objects still exist.
 * UNAUTHORIZED. */
int pki_verify_token(const struct pki *p, struct arena *a, struct str jwt, struct token_claims *ret,
                     struct err *err) MUST_CHECK;
struct str pki_issuer(const struct pki *p);
struct str pki_jwks(const struct pki *p, struct arena *a); /* JSON Web Key Set */
