/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The writer of a ledger whose database is a server, for a loop that must not wait for one. The
 * loop hands over transactions; a thread of its own has the connection and writes them in order,
 * each once, also when the connection is lost before the answer to a COMMIT: the transaction has
 * its number in it. While the server is away they wait, up to a limit.
 *
 *   CLOSED --start--> OPENING --set up, rows read--> OPEN --connection lost--> AWAY
 *                        ^  '--failure, pause--'       ^                        |
 *                        |                             '--same writer, turn-----'
 *   all of them --drop, close--> ended;   AWAY --another writer, other turn--> failed */
#pragma once

#include <sublet/clock.h>
#include <sublet/fleet_ledger.h>

#include "ledger_db.h"

struct ledger_queue;
struct ledger_queue_options {
    struct ledger_remote_options remote;
    /* From the loop, once: what the ledger is; the records are valid during the call. */
    void (*opened)(void *ctx, const struct ledger_origin *origin,
                   const struct fleet_records *records);
    void *ctx;
};
struct ledger_queue *ledger_queue_new(const struct ledger_queue_options *options);
/* Waits for the thread, which ends at once; what was not written is lost. Takes NULL. */
struct ledger_queue *ledger_queue_free(struct ledger_queue *q);

/* A database that takes rows and has none to read: strings that are bound must live until the step.
 * Queries are prepared before the start. */
struct ledger_db *ledger_queue_db(struct ledger_queue *q);
void ledger_queue_start(struct ledger_queue *q);
/* The rows since the last one are a transaction, with which all is on record until seen_us.
 * TOO_LARGE: no more of them may follow; this one waits with the others. */
int ledger_queue_commit(struct ledger_queue *q, int64_t seen_us, struct err *err) MUST_CHECK;

int64_t ledger_queue_durable_us(const struct ledger_queue *q);
struct str ledger_queue_trouble(const struct ledger_queue *q);
void ledger_queue_waiting(struct ledger_queue *q, struct ledger_waiting *ret);
void ledger_queue_flush(struct ledger_queue *q, int64_t most_ms, void (*done)(void *ctx),
                        void *ctx);
void ledger_queue_drop(struct ledger_queue *q);
