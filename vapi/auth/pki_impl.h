/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/auth (private)
 *
 * The state of a cluster's identity, shared by pki.c (leaves, tokens) and pki_ca.c. */
#pragma once

#include <sublet/pki.h>

#include "pki_cert.h"

#define PKI_MAGIC     0x706b6921u
#define YEAR          (365LL * 24 * 3600)
#define LEAF_LIFETIME YEAR
#define SKEW          300 /* seconds of clock skew of other machines */

/* A certificate and its key. */
struct pki_pair {
    X509 *cert;
    EVP_PKEY *key;
};

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

    X509 *ca, *previous, *serving; /* previous: the CA that is still trusted, or NULL */
    EVP_PKEY *ca_key, *serving_key, *token_key;
    struct str ca_pem;    /* what is trusted: the CA and the previous one */
    struct str chain_pem; /* what follows a leaf: leads to either of them */
    struct str serving_pem, serving_key_pem, token_key_id;

    struct pki_pair proxy_ca;  /* empty until it is needed */
    struct arena *proxy_arena; /* of the next two; NULL: none is issued */
    struct str proxy_certificate, proxy_key;
    int64_t proxy_renew_at;
};

/* --- pki_ca.c --- */
int pki_load_ca(struct pki *p, struct err *err) MUST_CHECK;
void pki_forget_ca(struct pki *p);

/* Records of RECORD_PKI. Where something is lost nothing is written. */
void pki_record_put(struct pki *p, const char *key, struct str value);
/* Credentials of clients depend on it: it cannot be created again. */
void pki_record_put_twice(struct pki *p, const char *key, struct str value);
struct str pki_record_get(struct pki *p, const char *key); /* STR_NULL: there is none */
/* A missing record may be damage: a generated one must not replace it. */
bool pki_record_lost(struct pki *p, const char *key);

void pki_pair_free(struct pki_pair *pair);
/* False, with *ret empty, unless both records can be read and belong together. */
bool pki_pair_load(struct pki *p, const char *cert, const char *key, struct pki_pair *ret);
/* Creates a key and a certificate for it, signed by the CA (by itself when there is none yet). */
int pki_pair_issue(struct pki *p, const struct cert_request *request, struct pki_pair *ret,
                   struct err *err) MUST_CHECK;

/* --- pki_proxy.c --- */
void pki_proxy_forget(struct pki *p);

/* --- pki.c --- */
/* Takes the stored serving certificate, or issues another where it does not serve any more. */
int pki_load_serving(struct pki *p, struct err *err) MUST_CHECK;
