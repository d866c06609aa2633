/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * Statements: what a closed period cost, as a signed file. One JSON object whose last line before
 * the closing brace is its signature, Ed25519 over all bytes before that line. Each has the SHA-256
 * of the statement before it; from number 1 on they cover time without gap or overlap. A statement
 * is of the whole host, or of one tenant, with a chain of its own and no other tenant's lines. */
#pragma once

#include <sublet/err.h>

struct statement {
    struct str name; /* of its file, for messages */
    struct str ledger, tenant, previous;
    int64_t number, from_us, until_us;
    struct str sha256; /* of all its bytes, in hexadecimal */
};

/* A new Ed25519 key, PEM (PKCS #8). */
int statement_key_new(struct arena *a, struct str *ret_private, struct err *err) MUST_CHECK;
/* The public half, PEM (SubjectPublicKeyInfo). BAD_REQUEST when it is no Ed25519 key. */
int statement_key_public(struct arena *a, struct str private_pem, struct str *ret_public,
                         struct err *err) MUST_CHECK;

struct statement_request {
    struct str location; /* of the ledger */
    struct str tenant;   /* empty: the whole host */
    int64_t from_us, until_us, now_us;
    struct str private_pem; /* empty: only what was issued before */
};
/* The statement of a period: the recorded one, if there is one, otherwise it is signed and recorded
 * in the ledger. *ret_differs: the ledger has learnt since of what was not known when the statement
 * was issued. BAD_REQUEST says why a period has none. */
int statement_issue(struct arena *a, const struct statement_request *request, struct str *ret,
                    bool *ret_differs, struct err *err) MUST_CHECK;

/* Its signature by one of the public keys (PEM, one after the other), then that its own sums agree.
 * BAD_REQUEST says what does not hold. */
int statement_verify(struct arena *a, struct str text, struct str public_pem, struct statement *ret,
                     struct err *err) MUST_CHECK;
/* next is the statement after before. BAD_REQUEST names one that is missing or out of order. */
int statement_follows(const struct statement *before, const struct statement *next,
                      struct err *err) MUST_CHECK;
