/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The Lease on the host by which one process of a virtual cluster is the one that writes. What it
 * means for the API is leader.c's; this knows the host's answers, the clock, and the records that
 * prove which process is dead. */
#pragma once

#include <sublet/host.h>
#include <sublet/store.h>

struct lease;

enum lease_state {
    LEASE_ASKED,      /* the host's first answer is outstanding */
    LEASE_HELD,       /* confirmed, and not too long ago */
    LEASE_AWAY,       /* not confirmed: no answer that says who holds it */
    LEASE_WAITING,    /* another process holds it, and may live */
    LEASE_SUPERSEDED, /* a newer epoch holds or held it: for good */
    LEASE_WITHOUT,    /* the host does not permit Leases: processes are not kept apart */
    LEASE_RELEASED,   /* given up: the process ends */
    N_LEASE_STATES
};

/* Whoever the host says holds it; all of it lives until the next answer. */
struct lease_holder {
    struct str identity; /* empty: released */
    struct str epoch, cluster_uid, fork;
};

struct lease_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    const struct rng *rng;
    struct host *host;
    struct store *store;
    struct str host_namespace, name; /* of the Lease */
    struct str holder;               /* who we are: the prefix of our identity */
    struct str data_dir;             /* its file `lock` proves which processes are dead */
    struct str cluster_uid, epoch;
    struct str fork; /* "EPOCH@REVISION": up to where our data is that epoch's, too */
    int64_t duration_ms;
    bool force; /* takes it from a live holder, and from a newer epoch; once */
    /* Never from within a call of the functions below but lease_free(). other: set in WAITING and
     * SUPERSEDED. HELD comes once per time it is taken, not per renewal. */
    void (*changed)(void *ctx, enum lease_state now, const struct lease_holder *other);
    /* It is not the host of before, or one that was restored to an earlier state. Before HELD. */
    void (*host_changed)(void *ctx, const char *why);
    void (*confirmed)(void *ctx); /* what lease_confirmed_since() waited for */
    void (*certain)(void *ctx);   /* a doubt is over */
    void *ctx;
};
/* Strings are copied; host and store outlive it. */
struct lease *lease_new(const struct lease_options *options);
/* Asks the host. */
void lease_start(struct lease *l);
/* The host is back: looks now instead of later. */
void lease_kick(struct lease *l);
/* The connection to the host broke: what answers next may be another host, or one where another
 * process leads. Requests that change the host wait until a renewal sent after this is answered;
 * certain() says so. */
void lease_doubt(struct lease *l);
bool lease_is_doubted(const struct lease *l);
/* Gives it up, so that the next process waits for nothing; done() within a second, never from
 * within this call. Nothing else is asked or told afterwards. */
void lease_release(struct lease *l, void (*done)(void *ctx), void *ctx);
/* After host_stop(), when the host's answers were delivered. Closes on the loop. */
void lease_close(struct lease *l, void (*closed)(void *ctx), void *ctx);

enum lease_state lease_state(const struct lease *l);
const char *lease_identity(const struct lease *l);
/* Confirmed, and not too old: requests that change the host may go out. */
bool lease_may_act(const struct lease *l);
/* A renewal sent at or after mono_ms was answered; else starts one: when it is, confirmed() comes.
 */
bool lease_confirmed_since(struct lease *l, int64_t mono_ms);
/* Puts what is known of the Lease on record, in the transaction of the caller's own records. */
void lease_note(struct lease *l);
/* The host is known to have gone back: what its Lease says now is where it begins, and another
 * process may have it by then. */
void lease_forget_host(struct lease *l);

/* For whoever owns the clock (tests): monotonic ms of what is next, INT64_MAX for nothing; and that
 * the clock was moved. */
int64_t lease_next_due(const struct lease *l);
void lease_wake(struct lease *l);
