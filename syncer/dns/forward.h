/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Queries to other resolvers: over UDP with a random port and id, over TCP where the answer is
 * truncated, to the next server where one does not answer; answers are cached. Equal pending
 * queries share one exchange. */
#pragma once

#include <sys/queue.h>

#include <uv.h>

#include <sublet/clock.h>

#include "cache.h"
#include "policy.h"

enum { DNS_EXCHANGES_MAX = 256 };

/* A caller that waits for an answer; embedded in its own struct. */
struct dns_wait {
    TAILQ_ENTRY(dns_wait) place;
    struct dns_exchange *exchange; /* NULL: it does not wait */
    /* answer NULL: no server answered. Else the callee empties it. */
    void (*done)(struct dns_wait *w, struct dns_answer *answer);
};

struct dns_forwarder;
struct dns_forwarder *dns_forwarder_new(uv_loop_t *loop, const struct clock *clock,
                                        const struct rng *rng, size_t cache_bytes);
/* True: *ret was in the cache. */
bool dns_forwarder_recall(struct dns_forwarder *f, const struct dns_query *q,
                          struct dns_answer *ret);
/* done() is called once, never before this returns, or not at all after dns_forwarder_forget().
 * False: too many are pending. upstream lives as long as the forwarder. */
bool dns_forwarder_send(struct dns_forwarder *f, const struct dns_query *q,
                        const struct dns_upstream *upstream, struct dns_wait *w);
void dns_forwarder_forget(struct dns_wait *w);
const struct dns_cache *dns_forwarder_cache(const struct dns_forwarder *f);
/* Only when no query is pending. */
void dns_forwarder_close(struct dns_forwarder *f, void (*closed)(void *ctx), void *ctx);
