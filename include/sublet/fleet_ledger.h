/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * The ledger of a host cluster: who held which GPUs from when until when, what its nodes had, what
 * it cost. A database to which rows are only added, an SQLite file or one of a PostgreSQL server;
 * what is written twice is there once, so that a process that was killed repeats what it sees on
 * the host and nothing is counted twice. */
#pragma once

#include <sublet/clock.h>
#include <sublet/fleet_usage.h>

struct ledger;
/* A location is a directory, of ledger.db, or `postgres:` and the file of a connection string. */
#define LEDGER_REMOTE "postgres:"
static inline bool ledger_is_remote(struct str location)
{
    return str_has_prefix(location, STR(LEDGER_REMOTE));
}

/* Opens or creates the ledger and locks it. One that was not there begins at now_us and has this
 * identity; one of an earlier format is brought up to date, in one transaction. STORAGE, CONFLICT:
 * another process has it open. */
int ledger_open(struct str location, int64_t now_us, uint64_t identity, struct ledger **ret,
                struct err *err) MUST_CHECK;
/* A ledger on a server, for a loop that must not wait for one: what is committed is written by a
 * thread, in order and once, however long the server is away; up to a limit, it waits in memory. */
struct uv_loop_s;
struct fleet_records;
struct ledger_remote_options {
    struct uv_loop_s *loop;
    const struct clock *clock; /* whose wall time any thread may read */
    struct str location;
    uint64_t identity;   /* of one that was not there */
    size_t most_bytes;   /* that wait; 0: 32 MiB */
    int64_t patience_ms; /* with a server that does not answer; 0: 10 s */
    /* From the loop. Opened, once: no row can be added before; what LEDGER_OPEN reads, during the
     * call. Changed: what is durable, or the trouble. Failed, once: it cannot be written again. */
    void (*opened)(void *ctx, const struct fleet_records *records);
    void (*changed)(void *ctx);
    void (*failed)(void *ctx, const struct err *err);
    void *ctx;
};
struct ledger *ledger_open_remote(const struct ledger_remote_options *options);
void ledger_start(struct ledger *l); /* opens it, and tries until it can */
/* Until then all is on record for good; of a directory, with each commit. */
int64_t ledger_durable_us(const struct ledger *l);
/* Why it is not written now, and is tried again; empty: it is. */
struct str ledger_trouble(const struct ledger *l);
struct ledger_waiting {
    size_t transactions, rows, bytes; /* not yet durable */
    bool full;                        /* a commit was TOO_LARGE: nothing may follow it */
};
void ledger_waiting(struct ledger *l, struct ledger_waiting *ret);
/* done() when nothing waits, or can be written, or after so long; INT64_MAX: no end. */
void ledger_flush(struct ledger *l, int64_t most_ms, void (*done)(void *ctx), void *ctx);
void ledger_drop(struct ledger *l); /* nothing is written from now on */
/* Without a commit: what was written since the last one is undone, as by a kill. Takes NULL. */
struct ledger *ledger_close(struct ledger *l);

uint64_t ledger_identity(const struct ledger *l); /* one process at a time has it */
int64_t ledger_begin_us(const struct ledger *l);  /* nothing is on record before it */
int64_t ledger_seen_us(const struct ledger *l);   /* until then all was observed */

/* Each belongs to the transaction of the next commit. A begin before the ledger's own is moved to
 * it, an end before its begin to the begin. end_us of a hold is not read. A pod's second hold, and
 * the second end of one, change nothing. */
int ledger_add_hold(struct ledger *l, const struct fleet_hold *hold, struct err *err) MUST_CHECK;
int ledger_end_hold(struct ledger *l, struct str pod_uid, int64_t end_us, struct str reason,
                    bool estimated, struct err *err) MUST_CHECK;
int ledger_add_capacity(struct ledger *l, const struct fleet_capacity *c,
                        struct err *err) MUST_CHECK;
/* Nothing when the pool's last one on record is the same. Another one is valid from the later of
 * its from_us, the last one's, and what was seen: it never changes what the past cost. */
int ledger_add_price(struct ledger *l, const struct fleet_price *price, struct err *err) MUST_CHECK;
/* From the later of its from_us, the last one's of both, and what was seen. */
int ledger_add_guarantee(struct ledger *l, const struct fleet_guarantee *g,
                         struct err *err) MUST_CHECK;
/* From the later of from_us and what was seen. Nothing of a pod without a hold. */
int ledger_add_activity(struct ledger *l, struct str pod_uid, int64_t from_us, enum fleet_use use,
                        struct err *err) MUST_CHECK;
int ledger_add_gap(struct ledger *l, const struct fleet_gap *gap, struct err *err) MUST_CHECK;
int ledger_set_seen(struct ledger *l, int64_t now_us, struct err *err) MUST_CHECK; /* only grows */
int ledger_commit(struct ledger *l, struct err *err) MUST_CHECK;

/* The committed records of one moment, also while another process writes: all but holds that ended
 * before from_us or began after until_us, and capacities, prices and guarantees that another one
 * followed by from_us or that are later than until_us (but the first of a node's capacities and of
 * a pool's prices). From LEDGER_OPEN on: holds that have not ended, the last of the others. */
#define LEDGER_OPEN INT64_MAX
int ledger_read(struct arena *a, struct str location, int64_t from_us, int64_t until_us,
                struct fleet_records *ret, struct err *err) MUST_CHECK;

/* What fleet_usage_compute() makes of what ledger_read() reads, with the holds of a part of the
 * period in memory at a time. */
struct ledger_usage_request {
    struct arena *a; /* of the usage */
    struct str location;
    int64_t from_us, until_us;
    unsigned columns;
    struct str label; /* of column USAGE_LABEL */
    size_t holds;     /* that begin in a part, about; 0: many thousands */
};
int ledger_usage(const struct ledger_usage_request *request, struct usage *ret,
                 struct err *err) MUST_CHECK;
