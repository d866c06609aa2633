/* SPDX-License-Identifier: Apache-2.0 */
/* Clients by address. Must never use more than a bounded memory for unknown clients. */
#include "clients.h"

#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <sublet/token_bucket.h>

enum { BUCKETS = 256, BURST_SECONDS = 2 };

bool dns_client_is_known(const struct dns_view *view, const struct dns_ip *ip)
{
    for (size_t i = 0; i < view->policy->n_clients; i++)
        if (dns_range_has(&view->policy->clients[i], ip))
            return true;
    return dns_zone_has_pod(view->zone, STR_NULL, ip);
}

/* --- rates --- */

struct dns_rates {
    struct token_rate rate;
    uint64_t seed;
    struct token_bucket buckets[BUCKETS];
};

struct dns_rates *dns_rates_new(int64_t per_second, uint64_t seed)
{
    struct dns_rates *r = NEW(struct dns_rates);

    r->rate =
        (struct token_rate){.burst = per_second * BURST_SECONDS, .n = per_second, .period = 1000};
    r->seed = seed;
    return r;
}

struct dns_rates *dns_rates_free(struct dns_rates *r)
{
    return mem_free(r);
}

bool dns_rates_take(struct dns_rates *r, const struct dns_ip *ip, int64_t now_ms)
{
    uint64_t hash = str_hash((struct str){(const char *)ip->b, sizeof(ip->b)}, r->seed);

    return token_bucket_take(&r->buckets[hash % BUCKETS], &r->rate, now_ms);
}

/* --- held queries --- */

struct held {
    TAILQ_ENTRY(held) place;
    struct dns_ip ip;
    int64_t until_ms;
    struct sockaddr_storage peer;
    struct str bytes;
};
TAILQ_HEAD(helds, held);

struct dns_held {
    struct helds list; /* the oldest first */
    size_t n;
};

struct dns_held *dns_held_new(void)
{
    struct dns_held *h = NEW(struct dns_held);

    TAILQ_INIT(&h->list);
    return h;
}

static void drop(struct dns_held *h, struct held *one)
{
    TAILQ_REMOVE(&h->list, one, place);
    h->n--;
    mem_free(one->bytes.p);
    mem_free(one);
}

struct dns_held *dns_held_free(struct dns_held *h)
{
    while (!TAILQ_EMPTY(&h->list))
        drop(h, TAILQ_FIRST(&h->list));
    return mem_free(h);
}

bool dns_held_add(struct dns_held *h, const struct dns_ip *ip, struct str bytes, const void *peer,
                  int64_t now_ms)
{
    struct held *one;
    size_t same = 0;

    TAILQ_FOREACH(one, &h->list, place) same += dns_ip_eq(&one->ip, ip);
    if (h->n == DNS_HELD_MAX || same == DNS_HELD_EACH || bytes.n > DNS_HELD_BYTES)
        return false;
    one = NEW(struct held);
    one->ip = *ip;
    one->until_ms = now_ms + DNS_HELD_MS;
    one->bytes = mem_str(bytes);
    memcpy(&one->peer, peer, sizeof(one->peer));
    TAILQ_INSERT_TAIL(&h->list, one, place);
    h->n++;
    return true;
}

size_t dns_held_release(struct dns_held *h, const struct dns_view *view, int64_t now_ms,
                        dns_held_cb each, void *ctx, int64_t *ret_next)
{
    size_t dropped = 0;
    struct held *one, *next;

    for (one = TAILQ_FIRST(&h->list); one; one = next) {
        next = TAILQ_NEXT(one, place);
        if (dns_client_is_known(view, &one->ip))
            each(ctx, one->bytes, &one->peer);
        else if (one->until_ms > now_ms)
            continue;
        else
            dropped++;
        drop(h, one);
    }
    one = TAILQ_FIRST(&h->list);
    *ret_next = one ? one->until_ms : 0;
    return dropped;
}
