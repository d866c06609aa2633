/* SPDX-License-Identifier: Apache-2.0 */
/* A map and an LRU list. Must never hold more than its limit, nor return an expired answer. */
#include "cache.h"

#include <string.h>
#include <sys/queue.h>

#include <sublet/hash.h>

enum { KEY_MAX = DNS_NAME_MAX + 3 };

struct entry {
    struct map_entry entry;
    TAILQ_ENTRY(entry) used;
    int64_t from_ms, until_ms;
    struct str key, bytes;
};
TAILQ_HEAD(entries, entry);

struct dns_cache {
    struct map map;
    struct entries used; /* most recently used first */
    size_t bytes, max;
};

struct dns_cache *dns_cache_new(size_t max_bytes)
{
    struct dns_cache *c = NEW(struct dns_cache);
    TAILQ_INIT(&c->used);
    c->max = max_bytes;
    return c;
}

static size_t weight(const struct entry *e)
{
    return sizeof(*e) + e->key.n + e->bytes.n;
}

static void drop(struct dns_cache *c, struct entry *e)
{
    c->bytes -= weight(e);
    map_remove(&c->map, &e->entry);
    TAILQ_REMOVE(&c->used, e, used);
    mem_free(e->key.p);
    mem_free(e->bytes.p);
    mem_free(e);
}

struct dns_cache *dns_cache_free(struct dns_cache *c)
{
    if (!c)
        return NULL;
    while (!TAILQ_EMPTY(&c->used))
        drop(c, TAILQ_FIRST(&c->used));
    mem_free(c);
    return NULL;
}

/* All that an answer depends on: name, type, and the flags sent to the other server. */
static struct str key_of(const struct dns_query *q, char room[KEY_MAX])
{
    size_t n = q->name.n;

    memcpy(room, q->name.b, n);
    room[n++] = (char)(q->type >> 8);
    room[n++] = (char)(q->type & 255);
    room[n++] = (char)(q->dnssec_ok | q->checking_disabled << 1);
    return (struct str){room, n};
}

static struct entry *find(const struct dns_cache *c, const struct dns_query *q)
{
    char room[KEY_MAX];
    struct map_entry *e = map_get(&c->map, key_of(q, room));

    return e ? CONTAINER(e, struct entry, entry) : NULL;
}

void dns_cache_put(struct dns_cache *c, const struct dns_query *q, const struct dns_answer *a,
                   int64_t now_ms)
{
    uint32_t ttl = dns_answer_ttl(a);
    struct entry *e = find(c, q);
    struct buf bytes = BUF_INIT(0);
    char room[KEY_MAX];

    if (e)
        drop(c, e);
    if (!ttl || !c->max)
        return;
    dns_answer_freeze(q, a, &bytes);
    e = NEW(struct entry);
    e->key = mem_str(key_of(q, room));
    e->bytes = buf_take(&bytes);
    e->from_ms = now_ms;
    e->until_ms = now_ms + (int64_t)1000 * (ttl < DNS_CACHE_TTL_MAX ? ttl : DNS_CACHE_TTL_MAX);
    map_put(&c->map, &e->entry, e->key);
    TAILQ_INSERT_HEAD(&c->used, e, used);
    c->bytes += weight(e);
    while (c->bytes > c->max)
        drop(c, TAILQ_LAST(&c->used, entries));
}

bool dns_cache_get(struct dns_cache *c, const struct dns_query *q, int64_t now_ms,
                   struct dns_answer *ret)
{
    struct entry *e = find(c, q);

    if (!e)
        return false;
    if (now_ms >= e->until_ms || !dns_answer_thaw(e->bytes, ret)) {
        drop(c, e);
        return false;
    }
    dns_answer_age(ret, (uint32_t)((now_ms - e->from_ms) / 1000));
    TAILQ_REMOVE(&c->used, e, used);
    TAILQ_INSERT_HEAD(&c->used, e, used);
    return true;
}

size_t dns_cache_bytes(const struct dns_cache *c)
{
    return c->bytes;
}

size_t dns_cache_count(const struct dns_cache *c)
{
    return map_count(&c->map);
}
