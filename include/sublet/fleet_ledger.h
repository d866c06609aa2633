/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * The ledger of a host cluster: who held which GPUs from when until when, what its nodes had, what
 * it cost. An SQLite file to which rows are only added; what is written twice is there once, so
 * that a process that was killed repeats what it sees on the host and nothing is counted twice. */
#pragma once

#include <sublet/fleet_usage.h>

struct ledger;
/* Opens or creates DIRECTORY/ledger.db and locks it. A new ledger begins at now_us and has this
 * identity; one of an earlier format is brought up to date, in one transaction. STORAGE. */
int ledger_open(struct str directory, int64_t now_us, uint64_t identity, struct ledger **ret,
                struct err *err) MUST_CHECK;
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
int ledger_read(struct arena *a, struct str directory, int64_t from_us, int64_t until_us,
                struct fleet_records *ret, struct err *err) MUST_CHECK;

/* What fleet_usage_compute() makes of what ledger_read() reads, with the holds of a part of the
 * period in memory at a time. */
struct ledger_usage_request {
    struct arena *a; /* of the usage */
    struct str directory;
    int64_t from_us, until_us;
    unsigned columns;
    struct str label; /* of column USAGE_LABEL */
    size_t holds;     /* that begin in a part, about; 0: many thousands */
};
int ledger_usage(const struct ledger_usage_request *request, struct usage *ret,
                 struct err *err) MUST_CHECK;
