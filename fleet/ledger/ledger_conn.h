/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * A connection to a PostgreSQL server, for a thread that may wait but must not hang: each call ends
 * by its deadline, whatever the server or the network does (a name that is resolved takes as long
 * as the resolver lets it). After a failure of the connection itself it is of no more use. No error
 * has any part of the connection string in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

#include <sublet/err.h>

struct ledger_conn;
struct ledger_conn_options {
    struct str file;     /* of the connection string; others than owner and group cannot read it */
    bool writes;         /* of several hosts, one that takes writes */
    int64_t patience_ms; /* without an answer */
    int stop_fd;         /* readable: every call ends at once; -1: none */
};
/* STORAGE. */
int ledger_conn_open(const struct ledger_conn_options *options, struct ledger_conn **ret,
                     struct err *err) MUST_CHECK;
struct ledger_conn *ledger_conn_close(struct ledger_conn *c); /* takes NULL */
int ledger_conn_pid(const struct ledger_conn *c);             /* of the server's process */

/* Commands without rows, of one string. */
int ledger_conn_run(struct ledger_conn *c, const char *sql, struct err *err) MUST_CHECK;
/* The same; *ret_tag is what the server says it did, valid until the next call. */
int ledger_conn_run_tag(struct ledger_conn *c, const char *sql, struct str *ret_tag,
                        struct err *err) MUST_CHECK;

int ledger_conn_prepare(struct ledger_conn *c, const char *name, const char *sql, int n,
                        const Oid *types, struct err *err) MUST_CHECK;
/* Its rows follow one by one. */
int ledger_conn_send(struct ledger_conn *c, const char *name, int n, const char *const *values,
                     struct err *err) MUST_CHECK;
/* *ret: a row for the caller to PQclear(), or NULL behind the last one. CONFLICT: the server
 * refuses the values (classes 22 and 23), among them a unique key that is there. */
int ledger_conn_row(struct ledger_conn *c, PGresult **ret, struct err *err) MUST_CHECK;
/* What is left of an answer, at most so many rows; more end the connection. */
void ledger_conn_drain(struct ledger_conn *c, unsigned most);
