/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of reviews by namespace. Must keep no token, only its SHA-256, and never grow with the
 * names that callers invent. */
#include "review_rates.h"

#include <assert.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/token_bucket.h>

#define RATES_MAGIC     0x72726174u
#define MOST_NAMESPACES 10000

static const struct token_rate OF_ALL = {.burst = 40, .n = 20, .period = 1000};
static const struct token_rate OF_ONE = {.burst = 4, .n = 1, .period = 2000};

struct rate {
    struct map_entry by_ns;
    struct str ns; /* on the heap */
    struct token_bucket known, unknown;
    bool has_known;
    unsigned char token[32]; /* the hash of the known one */
};
struct fleet_review_rates {
    unsigned magic;
    struct map by_ns;
    struct token_bucket unknown; /* of all namespaces */
};

struct fleet_review_rates *fleet_review_rates_new(void)
{
    struct fleet_review_rates *r = NEW(struct fleet_review_rates);

    r->magic = RATES_MAGIC;
    return r;
}

static void drop(struct fleet_review_rates *r, struct rate *one)
{
    map_remove(&r->by_ns, &one->by_ns);
    mem_free(one->ns.p);
    mem_free(one);
}

static void drop_unknown(void *ctx, struct map_entry *e)
{
    struct rate *one = CONTAINER(e, struct rate, by_ns);

    if (!one->has_known)
        drop(ctx, one);
}

static void drop_any(void *ctx, struct map_entry *e)
{
    drop(ctx, CONTAINER(e, struct rate, by_ns));
}

struct fleet_review_rates *fleet_review_rates_free(struct fleet_review_rates *r)
{
    if (!r)
        return NULL;
    assert(r->magic == RATES_MAGIC);
    map_each(&r->by_ns, drop_any, r);
    r->magic = 0;
    return mem_free(r);
}

/* Names that no token was permitted for make room; NULL: there is none. */
static struct rate *rate_of(struct fleet_review_rates *r, struct str ns)
{
    struct map_entry *e = map_get(&r->by_ns, ns);
    struct rate *one;

    if (e)
        return CONTAINER(e, struct rate, by_ns);
    if (map_count(&r->by_ns) >= MOST_NAMESPACES)
        map_each(&r->by_ns, drop_unknown, r);
    if (map_count(&r->by_ns) >= MOST_NAMESPACES)
        return NULL;
    one = NEW(struct rate);
    one->ns = mem_str(ns);
    map_put(&r->by_ns, &one->by_ns, one->ns);
    return one;
}

static bool is_known(const struct rate *one, const unsigned char hash[32])
{
    return one->has_known && !memcmp(one->token, hash, sizeof(one->token));
}

enum review_leave fleet_review_rates_take(struct fleet_review_rates *r, struct str ns,
                                          struct str token, int64_t now_ms)
{
    struct rate *one = rate_of(r, ns);
    unsigned char hash[32];

    assert(r->magic == RATES_MAGIC);
    if (!one)
        return REVIEW_NOT_NOW;
    sha256(token, hash);
    if (is_known(one, hash))
        return token_bucket_take(&one->known, &OF_ONE, now_ms) ? REVIEW_OF_KNOWN : REVIEW_NOT_NOW;
    return token_bucket_take(&one->unknown, &OF_ONE, now_ms) &&
                   token_bucket_take(&r->unknown, &OF_ALL, now_ms)
               ? REVIEW_OF_UNKNOWN
               : REVIEW_NOT_NOW;
}

void fleet_review_rates_note(struct fleet_review_rates *r, struct str ns, struct str token,
                             bool permitted)
{
    struct map_entry *e = map_get(&r->by_ns, ns);
    struct rate *one = e ? CONTAINER(e, struct rate, by_ns) : NULL;
    unsigned char hash[32];

    assert(r->magic == RATES_MAGIC);
    if (!one)
        return;
    sha256(token, hash);
    if (permitted) {
        memcpy(one->token, hash, sizeof(one->token));
        one->has_known = true;
    } else if (is_known(one, hash)) {
        one->has_known = false;
    }
}
