/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The ledger in PostgreSQL, for the thread that writes it. */
#pragma once

#include "ledger_db.h"

/* As ledger_postgres.open() for a writer. stop_fd: readable, every call fails at once; -1: none.
 * former: the server's process of a connection that this process lost, which is ended if it still
 * has the lock; 0: none. */
int ledger_postgres_open(struct str file, int stop_fd, int64_t patience_ms, int former,
                         struct ledger_db **ret, struct err *err) MUST_CHECK;
int ledger_postgres_pid(struct ledger_db *db);
