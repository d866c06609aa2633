/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of reviews by namespace and address. A process has another token each hour: by its address
 * it is known before the host has seen the next one. Must keep no token, only its SHA-256, and
 * never grow with the names that callers invent, nor with the addresses they have. */
#include "review_rates.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/token_bucket.h>

#define RATES_MAGIC     0x72726174u
#define MOST_NAMESPACES 10000
#define MOST_ADDRESSES  10000

static const struct token_rate OF_ALL = {.burst = 40, .n = 20, .period = 1000};
/* An address alone takes half of what a namespace has; many tenants may come from one. */
static const struct token_rate OF_NAMESPACE = {.burst = 16, .n = 4, .period = 1000};
static const struct token_rate OF_ADDRESS = {.burst = 8, .n = 2, .period = 1000};
static const struct token_rate OF_ONE = {.burst = 4, .n = 1, .period = 2000};

/* Of IPv6 the network, of which a machine has all. */
struct address {
    char bytes[INET6_ADDRSTRLEN];
    size_t n;
};
struct rate {
    struct map_entry by_ns;
    struct str ns; /* on the heap */
    struct token_bucket known, home, unknown;
    bool has_known, has_home;
    unsigned char token[32]; /* the hash of the known one */
    struct address at;       /* where one that was permitted came from last */
};
/* Of one that sends tokens that are not known. */
struct stranger {
    struct map_entry by_address;
    struct address address;
    struct token_bucket bucket;
};
struct fleet_review_rates {
    unsigned magic;
    struct map by_ns, strangers;
    struct token_bucket unknown; /* of all namespaces */
};

struct fleet_review_rates *fleet_review_rates_new(void)
{
    struct fleet_review_rates *r = NEW(struct fleet_review_rates);

    r->magic = RATES_MAGIC;
    return r;
}

/* --- addresses --- */

static struct address address_of(struct str peer)
{
    struct str host = str_sub(peer, 0, str_rfind(peer, ':'));
    struct address ret = {.n = 0};
    struct in6_addr six;
    char text[INET6_ADDRSTRLEN];

    if (host.n > 2 && host.p[0] == '[')
        host = str_sub(host, 1, host.n - 2);
    if (host.n >= sizeof(text))
        return ret;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    if (inet_pton(AF_INET6, text, &six) == 1 && !IN6_IS_ADDR_V4MAPPED(&six)) {
        ret.n = 8;
        memcpy(ret.bytes, &six, ret.n);
        return ret;
    }
    ret.n = host.n;
    memcpy(ret.bytes, text, ret.n);
    return ret;
}

static struct str address_str(const struct address *a)
{
    return (struct str){a->bytes, a->n};
}

static void drop_stranger(void *ctx, struct map_entry *e)
{
    struct fleet_review_rates *r = ctx;
    struct stranger *one = CONTAINER(e, struct stranger, by_address);

    map_remove(&r->strangers, e);
    mem_free(one);
}

/* Once there are too many, all have theirs anew: the rate of all bounds them. */
static struct token_bucket *bucket_of(struct fleet_review_rates *r, const struct address *a)
{
    struct map_entry *e = map_get(&r->strangers, address_str(a));
    struct stranger *one;

    if (e)
        return &CONTAINER(e, struct stranger, by_address)->bucket;
    if (map_count(&r->strangers) >= MOST_ADDRESSES)
        map_each(&r->strangers, drop_stranger, r);
    one = NEW(struct stranger);
    one->address = *a;
    map_put(&r->strangers, &one->by_address, address_str(&one->address));
    return &one->bucket;
}

/* --- namespaces --- */

static void drop(struct fleet_review_rates *r, struct rate *one)
{
    map_remove(&r->by_ns, &one->by_ns);
    mem_free(one->ns.p);
    mem_free(one);
}

static void drop_unknown(void *ctx, struct map_entry *e)
{
    struct rate *one = CONTAINER(e, struct rate, by_ns);

    if (!one->has_home)
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
    map_each(&r->strangers, drop_stranger, r);
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

static bool is_home(const struct rate *one, const struct address *a)
{
    return one->has_home && str_eq(address_str(&one->at), address_str(a));
}

enum review_leave fleet_review_rates_take(struct fleet_review_rates *r, struct str ns,
                                          struct str token, struct str peer, int64_t now_ms)
{
    struct address from = address_of(peer);
    struct rate *one = rate_of(r, ns);
    unsigned char hash[32];

    assert(r->magic == RATES_MAGIC);
    if (!one)
        return REVIEW_NOT_NOW;
    sha256(token, hash);
    if (is_known(one, hash))
        return token_bucket_take(&one->known, &OF_ONE, now_ms) ? REVIEW_OF_KNOWN : REVIEW_NOT_NOW;
    if (is_home(one, &from) && token_bucket_take(&one->home, &OF_ONE, now_ms))
        return REVIEW_OF_KNOWN;
    return token_bucket_take(bucket_of(r, &from), &OF_ADDRESS, now_ms) &&
                   token_bucket_take(&one->unknown, &OF_NAMESPACE, now_ms) &&
                   token_bucket_take(&r->unknown, &OF_ALL, now_ms)
               ? REVIEW_OF_UNKNOWN
               : REVIEW_NOT_NOW;
}

void fleet_review_rates_note(struct fleet_review_rates *r, struct str ns, struct str token,
                             struct str peer, bool permitted)
{
    struct map_entry *e = map_get(&r->by_ns, ns);
    struct rate *one = e ? CONTAINER(e, struct rate, by_ns) : NULL;
    unsigned char hash[32];

    assert(r->magic == RATES_MAGIC);
    if (!one && permitted) /* it made room for names that callers invented meanwhile */
        one = rate_of(r, ns);
    if (!one)
        return;
    sha256(token, hash);
    if (permitted) {
        memcpy(one->token, hash, sizeof(one->token));
        one->at = address_of(peer);
        one->has_known = one->has_home = true;
    } else if (is_known(one, hash)) {
        one->has_known = false;
    }
}
