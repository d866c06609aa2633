/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The Lease on the host, by which one process of a virtual cluster at a time may write. leader.c
 * applies its state to the API; this knows the host's answers, the clock, and the records that
 * prove which process is dead. */
#pragma once

#include <sublet/host.h>
#include <sublet/store.h>

struct lease;
struct turns;

/* The cluster's uid on what stands for no virtual object: the Lease, and the kubeconfig's
 * Secret. */
#define NOTE_CLUSTER "sublet.dev/cluster-uid"

enum sync_lease_state {
    LEASE_UNKNOWN,    /* the host's first answer is outstanding */
    LEASE_HELD,       /* confirmed, and not too long ago */
    LEASE_AWAY,       /* not confirmed: the host does not answer, or not with a Lease */
    LEASE_WAITING,    /* another process holds it, and may live */
    LEASE_SUPERSEDED, /* newer data holds or held it, by epoch or by turns: for good */
    LEASE_WITHOUT,    /* the host does not permit Leases: processes are not kept apart */
    LEASE_RELEASED,   /* released: the process ends */
    N_LEASE_STATES
};

/* The holder according to the host; its strings live until the next answer. */
struct lease_holder {
    struct str identity; /* empty: released */
    struct str epoch, cluster_uid;
    struct str fork; /* "EPOCH@BRANCH ...": where its data branched off from each epoch (turns.h) */
};

struct lease_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    const struct rng *rng;
    struct host *host;
    struct store *store;
    struct str host_namespace, name; /* of the Lease */
    struct str holder;               /* prefix of this process's holderIdentity */
    struct str data_dir;             /* its file `lock` proves which processes are dead */
    struct str cluster_uid, epoch;
    struct str fork; /* of this data; see lease_holder */
    int64_t duration_ms;
    bool force; /* takes it from a live holder of older data, once; else begins a new life */
    /* other: the holder, in WAITING and SUPERSEDED. HELD is reported each time the Lease is taken,
     * not for renewals. */
    void (*changed)(void *ctx, enum sync_lease_state now, const struct lease_holder *other);
    /* Another host answers, or one that was restored to an earlier state. Called before HELD. */
    void (*host_changed)(void *ctx, const char *why);
    /* force, and another process leads with data that is not older: this data goes on in a life
     * later than that. To be opened anew; until then nothing is sent. */
    void (*new_life)(void *ctx, struct str epoch, int64_t revision);
    void (*confirmed)(void *ctx); /* see sync_lease_confirmed_since() */
    void (*certain)(void *ctx);   /* see sync_lease_doubt() */
    void *ctx;
};
/* Strings are copied; host and store outlive it. */
struct lease *sync_lease_new(const struct lease_options *options);
/* Reads the Lease, and takes it if that is permitted. */
void sync_lease_start(struct lease *l);
/* The host answers again: retries now instead of after its backoff. */
void sync_lease_kick(struct lease *l);
/* The connection to the host broke: the next answer may come from another host, or another process
 * may lead by then. Requests that change the host wait until a renewal sent after this is answered;
 * certain() reports that. */
void sync_lease_doubt(struct lease *l);
bool sync_lease_is_doubted(const struct lease *l);
/* Releases it, so that the next process need not wait for it to expire; done() within a second,
 * never from within this call. No request is sent and no other callback comes afterwards. */
void sync_lease_release(struct lease *l, void (*done)(void *ctx), void *ctx);
/* After host_stop(), once the host's answers were delivered. Closes on the loop. */
void sync_lease_close(struct lease *l, void (*closed)(void *ctx), void *ctx);

enum sync_lease_state sync_lease_state(const struct lease *l);
const struct turns *sync_lease_turns(const struct lease *l);
struct str sync_lease_fork(const struct lease *l); /* of our data */
const char *sync_lease_identity(const struct lease *l);
/* Confirmed, and not too old: requests that change the host may go out. */
bool sync_lease_may_act(const struct lease *l);
/* Was a renewal sent at or after mono_ms answered? If not, starts one, and confirmed() reports its
 * answer. */
bool sync_lease_confirmed_since(struct lease *l, int64_t mono_ms);
/* Records the Lease's uid and sequence, in the transaction of the caller's own records. */
void sync_lease_note(struct lease *l);
/* Has data of this store had a Lease? Then a process waits when the host has none. */
bool sync_lease_is_known(struct store *store);
/* The host was restored to an earlier state: forgets its Lease's uid and sequence, and whether it
 * is still ours. */
void sync_lease_forget_host(struct lease *l);

/* For tests, which own the clock: monotonic ms of the next timer, INT64_MAX for none; and that the
 * clock was moved. */
int64_t sync_lease_next_due(const struct lease *l);
void sync_lease_wake(struct lease *l);
