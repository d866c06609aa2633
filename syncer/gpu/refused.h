/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Owners whose pod or claim was refused because a pool was full, until something of theirs fits.
 * Nothing of it is stored: their controllers also try again by themselves. */
#pragma once

#include <sys/queue.h>

#include <sublet/clock.h>
#include <sublet/pool.h>

/* The kinds whose controllers create pods, or for a pod claims. */
struct refused_kind {
    const char *kind, *group, *plural;
};
struct refused_owner {
    const struct refused_kind *kind; /* NULL: there is none that could try again */
    struct str ns, name, uid;
    struct str pool;  /* the only one that can serve the pod; empty: it names none */
    int64_t priority; /* of the pod */
};
/* Of an owner, what lacks() found at a revision of it: its to keep. Revision 0: nothing yet. */
struct refused_count {
    int64_t revision;
    size_t n;
    bool gone; /* there is no such owner any more */
};
typedef size_t (*refused_lacks)(void *ctx, const struct refused_owner *owner,
                                struct refused_count *known);
/* The controller of an object; its strings are the object's. */
struct refused_owner sync_refused_owner(const cJSON *object);

struct refusal;
TAILQ_HEAD(refusals, refusal);

/* In order: the highest priority first, then who was refused first. What exceeds by itself all that
 * its binding can ever grant is not kept. A full list loses the one that was refused longest ago.
 */
void sync_refused_add(struct refusals *list, const struct pool_choice *choice,
                      const struct refused_owner *owner);
/* The owner of what no pool serves now, whatever comes free: after those that are in the list. Only
 * a later change of pools wakes it: of a wave with a greater number. A full list loses the one that
 * was refused longest ago. */
void sync_refused_add_unserved(struct refusals *list, const struct refused_owner *owner,
                               uint64_t wave);
/* A step of a wave: calls retry() for some of those that were there before it and that a binding of
 * today may serve, in order; they leave the list. True: others are left for another step. */
bool sync_refused_wake_wave(struct refusals *list, uint64_t wave, const struct config *config,
                            bool (*retry)(void *ctx, const struct refused_owner *owner), void *ctx);
/* Are there so many that the next one costs another its place? */
bool sync_refused_is_full(const struct refusals *list);
/* Forgets owners that are gone, by lacks() of each. */
void sync_refused_prune(struct refusals *list, refused_lacks lacks, void *ctx);
/* Something of this owner was created: it goes behind the others if it is refused again. */
void sync_refused_drop(struct refusals *list, struct str uid);
/* Calls retry() for those of the pool that fit one after the other beside what is used. False: the
 * owner needs nothing any more, and leaves the list. */
void sync_refused_wake(struct refusals *list, const struct config_binding *binding,
                       struct rational used, const struct clock *clock,
                       bool (*retry)(void *ctx, const struct refused_owner *owner), void *ctx);
/* What owners lack in the pool of the binding, by lacks() of each; it stops at the binding's
 * `most`. */
struct rational sync_refused_lack(struct refusals *list, const struct config_binding *binding,
                                  refused_lacks lacks, void *ctx);
void sync_refused_fini(struct refusals *list);
