/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Who may have how much of which pool, and the next writes on the way there. Pure and exact: it
 * knows no host, no clock and no object. */
#pragma once

#include <sublet/err.h>
#include <sublet/rational.h>

#define SHARE_NO_POOL SIZE_MAX

enum share_state {
    SHARE_READY,
    SHARE_INVALID,
    SHARE_POOL_NOT_FOUND,
    SHARE_POOL_DEDICATED,
    SHARE_ALREADY_BOUND,
    SHARE_OVERCOMMITTED,
    N_SHARE_STATES
};
/* CLOSED: what is held stays, and nothing is granted beyond it; DRAINED: nothing is granted. */
enum share_door { SHARE_OPEN, SHARE_CLOSED, SHARE_DRAINED };
enum share_write { SHARE_KEEP, SHARE_WRITE_GRANT, SHARE_WRITE_QUOTA };

/* total >= capacity >= 0. What is not healthy is still promised to guarantees: health takes no
 * grant, only what may be borrowed. */
struct share_pool {
    struct rational total;    /* of all nodes, or what is declared: decides which guarantees fit */
    struct rational healthy;  /* not read here */
    struct rational capacity; /* of total, what pods of namespaces without a binding leave */
    struct rational serving;  /* of capacity, what is healthy */
    struct rational stranded; /* what is not, but held by pods of bindings */
    int64_t parts;            /* a pod holds a multiple of 1/parts; 0 is 1 */
    bool dedicated;
    enum share_door door;
    /* ret */
    struct rational guaranteed, granted; /* sums over bindings that are ready; of targets */
    int64_t unit;                        /* all quantities are taken for multiples of 1/unit */
    bool overcommitted;                  /* a guarantee is refused */
    bool short_of;                       /* healthy GPUs are fewer than the guarantees */
    bool overflow;                       /* a sum does not fit: nothing may be written */
};
/* In an array by age, the oldest first. Quantities are GPUs, never negative. A binding that was
 * deleted stays in the array, invalid, as long as it has a quota or pods that hold. What tenants
 * and the host say (wants, holds, grant, quota, pending) may be anything: it is rounded up to the
 * pool's unit, so that no sum depends on it. */
struct share_binding {
    size_t pool;    /* its index, or SHARE_NO_POOL */
    size_t tenant;  /* a number of the namespace, below the number of bindings */
    bool invalid;   /* its spec makes no sense */
    bool closed;    /* it is granted nothing beyond what it holds */
    bool was_ready; /* with this spec, as the host shows: it stays so when nodes are fewer */
    struct rational guarantee, burst, lend;
    struct rational lent;        /* of the guarantee, by the last targets; as the host shows */
    int64_t paused_until_s;      /* until then `lend` is at most ... ; 0: it is not paused; ret */
    struct rational paused_lend; /* ... this; ret */
    bool says; /* wants is what the tenant reports; else it wants all it may have */
    struct rational wants;
    struct rational holds;  /* by its pods */
    struct rational placed; /* of it, by pods on nodes */
    struct rational grant;  /* that the host shows now */
    struct rational quota;  /* of the ResourceQuota, the same */
    /* The greater value of a write whose outcome is not known yet: it may hold already. */
    struct rational pending;
    /* ret */
    enum share_state state;
    struct rational target;
    enum share_write write;
    struct rational value;
};

/* Before share_targets(). A lender that wants what is lent of its guarantee takes that back, and
 * does not lend it again for so long: each way costs borrowers a notice. Lowers `lend`, to a number
 * that has the unit of the spec and of pods (parts: as of the pool). */
void share_pause(struct share_binding *b, int64_t now_s, int64_t pause_s, int64_t parts);
/* The targets: their sum is at most the capacity, and of what is placed none within a guarantee is
 * beyond its target. A binding whose fractions have no common unit with those of older ones is
 * invalid. */
void share_targets(struct share_binding *b, size_t n, struct share_pool *pools, size_t n_pools);
/* After share_targets(). Of each binding the one write that is safe now, whatever became of the
 * others: after any of them the sum of max(grant, quota) over a pool is at most its capacity, if it
 * was before. A quota is lowered only in the version of its object that was observed, and only
 * where what that has charged is at most the value: the caller sees to both. */
void share_writes(struct share_binding *b, size_t n, struct share_pool *pools, size_t n_pools);
/* After share_targets(): what others may have of its guarantee. */
struct rational share_lent(const struct share_binding *b, const struct share_pool *pools);
