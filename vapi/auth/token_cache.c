/* SPDX-License-Identifier: Apache-2.0
 *
 * Verified tokens by their SHA-256. Why: verifying an ECDSA signature costs more than answering a
 * GET, and a client sends the same token with every request. Must never store a token itself, treat
 * one as valid past its end or before the time it was verified, or grow beyond its limit. */
#include "token_cache.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include <sublet/encode.h>
#include <sublet/hash.h>

#define CACHE_MAGIC 0x746f6b63u
#define KEY_SIZE    32

struct entry {
    unsigned char key[KEY_SIZE];
    int64_t verified;
    struct token_claims claims; /* in `text` */
    TAILQ_ENTRY(entry) in_use;
    UT_hash_handle hh;
    _Alignas(struct str) char text[];
};

struct token_cache {
    unsigned magic;
    size_t limit;
    struct entry *entries;
    TAILQ_HEAD(, entry) used; /* the least recently used first */
};

/* The strings of claims, so that one loop copies them. */
#define N_STRINGS 9
static void strings_of(struct token_claims *c, struct str *ret[N_STRINGS])
{
    struct str *all[N_STRINGS] = {
        &c->ns,         &c->service_account, &c->service_account_uid,
        &c->bound_kind, &c->bound_name,      &c->bound_uid,
        &c->node_name,  &c->node_uid,        &c->id,
    };

    memcpy(ret, all, sizeof(all));
}

static size_t size_of(const struct token_claims *claims)
{
    struct token_claims c = *claims;
    struct str *strings[N_STRINGS];
    size_t size = c.n_audiences * sizeof(struct str);

    strings_of(&c, strings);
    for (size_t i = 0; i < N_STRINGS; i++)
        size += strings[i]->n;
    for (size_t i = 0; i < c.n_audiences; i++)
        size += c.audiences[i].n;
    return size;
}

static struct str move(struct str from, char **to)
{
    struct str s = {*to, from.n};

    if (from.n)
        memcpy(*to, from.p, from.n);
    *to += from.n;
    return s;
}

/* Copies everything claims point at into size_of() bytes at `at`, aligned for struct str. */
static void copy_claims(struct token_claims *ret, const struct token_claims *claims, char *at)
{
    struct str *strings[N_STRINGS], *audiences = (struct str *)(void *)at;

    *ret = *claims;
    at += claims->n_audiences * sizeof(*audiences);
    strings_of(ret, strings);
    for (size_t i = 0; i < N_STRINGS; i++)
        *strings[i] = move(*strings[i], &at);
    for (size_t i = 0; i < claims->n_audiences; i++)
        audiences[i] = move(claims->audiences[i], &at);
    ret->audiences = audiences;
}

struct token_cache *token_cache_new(size_t limit)
{
    struct token_cache *c = NEW(struct token_cache);

    assert(limit);
    *c = (struct token_cache){.magic = CACHE_MAGIC, .limit = limit};
    TAILQ_INIT(&c->used);
    return c;
}

static void forget(struct token_cache *c, struct entry *e)
{
    TAILQ_REMOVE(&c->used, e, in_use);
    HASH_DEL(c->entries, e);
    mem_free(e);
}

struct token_cache *token_cache_free(struct token_cache *c)
{
    struct entry *e;

    if (!c)
        return NULL;
    assert(c->magic == CACHE_MAGIC);
    while ((e = TAILQ_FIRST(&c->used)) != NULL)
        forget(c, e);
    c->magic = 0;
    return mem_free(c);
}

static struct entry *find(struct token_cache *c, const unsigned char key[KEY_SIZE])
{
    struct entry *e;

    assert(c->magic == CACHE_MAGIC);
    HASH_FIND(hh, c->entries, key, KEY_SIZE, e);
    return e;
}

bool token_cache_get(struct token_cache *c, struct arena *a, struct str jwt, int64_t now,
                     struct token_claims *ret)
{
    unsigned char key[KEY_SIZE];
    struct entry *e;

    sha256(jwt, key);
    e = find(c, key);
    if (!e)
        return false;
    if (now >= e->claims.expires || now < e->verified) {
        forget(c, e);
        return false;
    }
    TAILQ_REMOVE(&c->used, e, in_use);
    TAILQ_INSERT_TAIL(&c->used, e, in_use);
    copy_claims(ret, &e->claims, arena_alloc(a, size_of(&e->claims)));
    return true;
}

void token_cache_put(struct token_cache *c, struct str jwt, int64_t now,
                     const struct token_claims *claims)
{
    unsigned char key[KEY_SIZE];
    struct entry *e;

    if (now >= claims->expires)
        return;
    sha256(jwt, key);
    e = find(c, key);
    if (e)
        forget(c, e);
    if (HASH_COUNT(c->entries) >= c->limit)
        forget(c, TAILQ_FIRST(&c->used));

    e = mem_alloc(sizeof(*e) + size_of(claims));
    memcpy(e->key, key, KEY_SIZE);
    e->verified = now;
    copy_claims(&e->claims, claims, e->text);
    HASH_ADD(hh, c->entries, key, KEY_SIZE, e);
    TAILQ_INSERT_TAIL(&c->used, e, in_use);
}
