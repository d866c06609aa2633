/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Parts of a statement: keys, the object inside, the rows of the ledger. */
#pragma once

#include <sublet/fleet_ledger.h>
#include <sublet/fleet_statement.h>
#include <sublet/json.h>

#define STATEMENT_FORMAT "sublet.dev/gpu-statement/v1"
#define STATEMENT_LIMIT  ((size_t)64 << 20) /* bytes */

/* --- statement_key.c --- */

/* SHA-256 of the key's public half, in hexadecimal. */
int statement_key_id(struct arena *a, struct str private_pem, struct str *ret,
                     struct err *err) MUST_CHECK;
/* Puts the signature behind an object printed by json_print_pretty(). */
int statement_sign(struct arena *a, struct str object, struct str private_pem, struct str *ret,
                   struct err *err) MUST_CHECK;
/* *ret_key: the id of the public key that signed it; empty when none of them did. *ret_given: the
 * ids of all of them, for messages. */
int statement_check_signature(struct arena *a, struct str text, struct str public_pem,
                              struct str *ret_key, struct str *ret_given,
                              struct err *err) MUST_CHECK;

/* --- statement_read.c --- */

/* A statement's object, checked but for the signature. */
int statement_read(struct arena *a, struct str text, struct statement *ret, struct str *ret_key,
                   struct err *err) MUST_CHECK;
/* What each tenant pays in each currency, out of the `lines` of a statement. */
int statement_totals(struct arena *a, const cJSON *lines, cJSON **ret, struct err *err) MUST_CHECK;

/* --- statement_rows.c: the table `statement` of the ledger --- */

struct statement_rows;
struct statement_row {
    int64_t number, from_us, until_us; /* number 0: there is none */
    struct str text;
};
int statement_rows_open(struct str location, struct statement_rows **ret,
                        struct err *err) MUST_CHECK;
struct statement_rows *statement_rows_close(struct statement_rows *r); /* takes NULL */
uint64_t statement_rows_identity(const struct statement_rows *r);
/* The one of exactly this period, and the last one, of a tenant. */
int statement_rows_find(struct statement_rows *r, struct arena *a, struct str tenant,
                        int64_t from_us, int64_t until_us, struct statement_row *ret_same,
                        struct statement_row *ret_last, struct err *err) MUST_CHECK;
/* CONFLICT when another process recorded this number first. */
int statement_rows_add(struct statement_rows *r, struct str tenant, const struct statement_row *row,
                       struct err *err) MUST_CHECK;
