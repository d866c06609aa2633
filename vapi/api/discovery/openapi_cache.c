/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Finished OpenAPI documents. They are large and requested in bursts: kept while in use, and
 * dropped half a minute later. Must never hold more than MAX_BYTES, nor wake an idle process: the
 * timer runs only while a document is cached. */
#include "openapi_source.h"

#include <assert.h>
#include <string.h>

#define CACHE_MAGIC 0x0A91CAC4u
#define MAX_ENTRIES 128
#define MAX_BYTES   (24u * 1024 * 1024)
#define KEEP_MS     30000

struct blob {
    unsigned refs;
    struct str bytes; /* heap */
};

struct entry {
    struct str key; /* heap */
    struct blob *blob;
    int64_t used_ms;
};

struct cache {
    unsigned magic;
    struct vapi *api;
    uv_timer_t timer;
    struct entry entries[MAX_ENTRIES];
    size_t n, bytes;
    void (*closed)(void *ctx);
    void *ctx;
};

/* ---- blobs ---- */

struct str openapi_blob_bytes(const struct blob *b)
{
    return b->bytes;
}

struct blob *openapi_blob_ref(struct blob *b)
{
    b->refs++;
    return b;
}

void openapi_blob_unref(void *blob)
{
    struct blob *b = blob;

    if (!b)
        return;
    assert(b->refs);
    if (--b->refs)
        return;
    mem_free(b->bytes.p);
    mem_free(b);
}

/* ---- entries ---- */

static int64_t now_ms(const struct cache *c)
{
    return clock_mono_ms(vapi_clock(c->api));
}

static void drop(struct cache *c, size_t i)
{
    struct entry *e = &c->entries[i];

    c->bytes -= e->blob->bytes.n;
    openapi_blob_unref(e->blob);
    mem_free(e->key.p);
    *e = c->entries[--c->n];
}

static size_t oldest(const struct cache *c)
{
    size_t found = 0;

    for (size_t i = 1; i < c->n; i++)
        if (c->entries[i].used_ms < c->entries[found].used_ms)
            found = i;
    return found;
}

static void on_timer(uv_timer_t *timer)
{
    struct cache *c = timer->data;
    int64_t now = now_ms(c);

    assert(c->magic == CACHE_MAGIC);
    for (size_t i = c->n; i > 0; i--)
        if (now - c->entries[i - 1].used_ms >= KEEP_MS)
            drop(c, i - 1);
    if (!c->n)
        uv_timer_stop(&c->timer);
}

struct blob *openapi_cache_get(struct cache *c, struct str key)
{
    assert(c->magic == CACHE_MAGIC);
    for (size_t i = 0; i < c->n; i++) {
        if (!str_eq(c->entries[i].key, key))
            continue;
        c->entries[i].used_ms = now_ms(c);
        return c->entries[i].blob;
    }
    return NULL;
}

struct blob *openapi_cache_put(struct cache *c, struct str key, struct str bytes)
{
    struct blob *b = NEW(struct blob);

    assert(c->magic == CACHE_MAGIC && !openapi_cache_get(c, key));
    b->refs = 1;
    b->bytes = bytes;
    while (c->n && (c->n == MAX_ENTRIES || c->bytes + bytes.n > MAX_BYTES))
        drop(c, oldest(c));
    c->bytes += bytes.n;
    c->entries[c->n++] = (struct entry){mem_str(key), b, now_ms(c)};
    if (!uv_is_active((uv_handle_t *)&c->timer))
        uv_timer_start(&c->timer, on_timer, KEEP_MS, KEEP_MS / 2);
    return b;
}

/* ---- lifecycle ---- */

struct cache *openapi_cache_new(struct vapi *api)
{
    struct cache *c = NEW(struct cache);

    c->magic = CACHE_MAGIC;
    c->api = api;
    uv_timer_init(vapi_loop(api), &c->timer);
    uv_unref((uv_handle_t *)&c->timer);
    c->timer.data = c;
    return c;
}

static void on_closed(uv_handle_t *handle)
{
    struct cache *c = handle->data;
    void (*closed)(void *) = c->closed;
    void *ctx = c->ctx;

    while (c->n)
        drop(c, c->n - 1);
    c->magic = 0;
    mem_free(c);
    closed(ctx);
}

void openapi_cache_close(struct cache *c, void (*closed)(void *ctx), void *ctx)
{
    assert(c->magic == CACHE_MAGIC);
    c->closed = closed;
    c->ctx = ctx;
    uv_close((uv_handle_t *)&c->timer, on_closed);
}
