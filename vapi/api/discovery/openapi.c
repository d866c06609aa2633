/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * /openapi/v2 and /openapi/v3: choice of document and form, hashes and redirects, and the wait for
 * the host's descriptions. Documents are built on request, identified by a hash of their inputs (so
 * that "not modified" costs no document) and shared while they are in use. Must never announce a
 * hash for a document it could not build: without the host's descriptions the hash differs. Source:
 * kube-openapi pkg/handler and pkg/handler3.
 *
 *   v2     -> built from local data
 *   v3     -> host's index, for the hash -> 304 | 301 | cached | host's descriptions -> built */
#include "openapi.h"
#include "openapi_source.h"

#include "../respond/respond.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <sublet/encode.h>
#include <sublet/net.h>

#define OPENAPI_MAGIC 0x0A91D0C5u
#define V3            "/openapi/v3"
#define MAX_TYPES     16
#define YEAR_S        (365 * 24 * 3600)

struct openapi {
    unsigned magic;
    struct vapi *api;
    struct cache *cache;
    struct descriptions *descriptions;
    unsigned char table[OPENAPI_DIGEST];
    uint64_t generation; /* of the registry, and when it was first seen */
    int64_t modified_s;
    void (*closed)(void *ctx);
    void *ctx;
};

/* One request. */
struct document_request {
    struct openapi *o;
    struct call *c;
    bool v2, protobuf;
    struct str root; /* v3: empty for the index */
    struct str etag; /* without quotes */
    /* If-None-Match, ?hash=; copies, because the request may be freed before they are used */
    struct str known, requested;
    bool by_hash; /* the client sent the current hash */
};

static struct openapi *openapi_of(struct vapi *api)
{
    struct openapi *o = api->openapi;

    if (!o) {
        o = api->openapi = NEW(struct openapi);
        o->magic = OPENAPI_MAGIC;
        o->api = api;
        o->cache = openapi_cache_new(api);
        o->descriptions = openapi_descriptions_new(api);
        openapi_hash_table(o->table);
    }
    assert(o->magic == OPENAPI_MAGIC);
    if (o->generation != registry_generation(vapi_registry(api))) {
        o->generation = registry_generation(vapi_registry(api));
        o->modified_s = clock_wall_s(vapi_clock(api));
    }
    return o;
}

/* ---- hashes ---- */

/* In upper case, as upstream prints them. */
static struct str digest_text(struct arena *a, const unsigned char digest[OPENAPI_DIGEST])
{
    static const char digits[] = "0123456789ABCDEF";
    char *text = arena_alloc(a, 2 * OPENAPI_DIGEST + 1);

    for (size_t i = 0; i < OPENAPI_DIGEST; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    return (struct str){text, (size_t)2 * OPENAPI_DIGEST};
}

static struct str hash_of(struct openapi *o, struct arena *a, struct str root, struct str host)
{
    unsigned char digest[OPENAPI_DIGEST];

    openapi_hash(o->api, o->table, root, digest);
    if (host.n)
        sha256_parts(2, (struct str[]){{(const char *)digest, sizeof(digest)}, host}, digest);
    return digest_text(a, digest);
}

static bool matches(struct str list, struct str etag)
{
    while (list.p) {
        struct str one = str_trim(str_cut(&list, ','));

        if (str_eqc(one, "*"))
            return true;
        if (str_has_prefix(one, STR("W/")))
            one = str_from(one, 2);
        if (one.n == etag.n + 2 && one.p[0] == '"' && str_eq(str_sub(one, 1, etag.n), etag))
            return true;
    }
    return false;
}

/* ---- answers ---- */

static struct str http_date(struct arena *a, int64_t unix_s)
{
    char text[40];
    time_t when = (time_t)unix_s;
    struct tm tm;

    gmtime_r(&when, &tm);
    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return arena_str(a, str_c(text));
}

static struct str content_type(const struct document_request *q)
{
    if (!q->protobuf)
        return STR("application/json");
    return q->v2 ? STR("application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
                 : STR("application/com.github.proto-openapi.spec.v3.v1.0+protobuf");
}

static void answer_not_found(struct call *c)
{
    call_raw(c, 404, STR("text/plain; charset=utf-8"), STR("404 page not found\n"));
}

static void add_headers(const struct document_request *q)
{
    struct call *c = q->c;

    call_header(c, "etag", arena_printf(c->arena, "\"%.*s\"", STR_F(q->etag)));
    call_header(c, "last-modified", http_date(c->arena, q->o->modified_s));
    if (q->v2 || q->root.n)
        call_header(c, "vary", STR("Accept"));
    if (!q->by_hash)
        return;
    call_header(c, "cache-control", STR("public, immutable"));
    call_header(c, "expires", http_date(c->arena, clock_wall_s(vapi_clock(c->api)) + YEAR_S));
}

/* True when the client's copy is current, and 304 was answered. */
static bool answer_unchanged(const struct document_request *q)
{
    if (!matches(q->known, q->etag))
        return false;
    add_headers(q);
    call_raw(q->c, 304, content_type(q), STR(""));
    return true;
}

/* A document has one cache key per form. */
static struct str key_of(const struct document_request *q)
{
    return arena_printf(q->c->arena, "%.*s%s", STR_F(q->etag), q->protobuf ? "+" : "");
}

static void answer_document(const struct document_request *q, const cJSON *text)
{
    struct blob *b;

    if (q->c->gone) {
        call_raw(q->c, 200, content_type(q), STR(""));
        return;
    }
    b = openapi_cache_get(q->o->cache, key_of(q));
    if (!b) {
        struct openapi_request request = {q->v2, q->protobuf, q->root, text};
        struct str bytes = openapi_document(q->c->api, &request);

        b = bytes.n ? openapi_cache_put(q->o->cache, key_of(q), bytes) : NULL;
    }
    if (!b) {
        answer_not_found(q->c);
        return;
    }
    add_headers(q);
    respond_slice(
        q->c, 200, content_type(q),
        (struct net_slice){openapi_blob_bytes(b), openapi_blob_unref, openapi_blob_ref(b)});
}

static struct str document_url(struct arena *a, struct str root, struct str hash)
{
    return arena_printf(a, V3 "/%.*s?hash=%.*s", STR_F(root), STR_F(hash));
}

static void answer_moved(const struct document_request *q)
{
    struct call *c = q->c;
    struct str url = document_url(c->arena, q->root, q->etag);

    call_header(c, "location", url);
    call_header(c, "etag", arena_printf(c->arena, "\"%.*s\"", STR_F(q->etag)));
    call_header(c, "vary", STR("Accept"));
    call_raw(c, 301, content_type(q), STR(""));
}

/* ---- v3 ---- */

struct index {
    const struct document_request *q;
    cJSON *paths;
};

static void add_to_index(void *ctx, struct str root)
{
    struct index *x = ctx;
    struct openapi *o = x->q->o;
    struct arena *a = x->q->c->arena;
    struct str hash = hash_of(o, a, root, openapi_descriptions_hash(o->descriptions, root));
    cJSON *entry = json_ensure_object(a, x->paths, arena_cstr(a, root));

    json_set_str(a, entry, "serverRelativeURL", document_url(a, root, hash));
}

static void answer_index(struct document_request *q)
{
    struct arena *a = q->c->arena;
    cJSON *tree = json_new_object(a);
    struct index x = {q, json_ensure_object(a, tree, "paths")};
    unsigned char digest[OPENAPI_DIGEST];
    struct str text;

    openapi_each_root(q->c->api, add_to_index, &x);
    text = json_text(a, tree);
    sha256(text, digest);
    q->etag = digest_text(a, digest);
    if (answer_unchanged(q))
        return;
    add_headers(q);
    call_raw(q->c, 200, STR("application/json"), text);
}

/* The host sent no descriptions after all: this document differs from the announced one. */
static void on_text(void *ctx, const cJSON *schemas)
{
    struct document_request *q = ctx;

    assert(q->o->magic == OPENAPI_MAGIC);
    if (!schemas) {
        q->by_hash = false;
        q->etag = hash_of(q->o, q->c->arena, q->root, STR(""));
    }
    answer_document(q, schemas);
}

static void on_index(void *ctx)
{
    struct document_request *q = ctx;
    struct openapi *o = q->o;
    struct str host;

    assert(o->magic == OPENAPI_MAGIC);
    if (!q->root.n) {
        answer_index(q);
        return;
    }
    host = openapi_descriptions_hash(o->descriptions, q->root);
    q->etag = hash_of(o, q->c->arena, q->root, host);
    if (q->requested.n && !str_eq(q->requested, q->etag)) {
        answer_moved(q);
        return;
    }
    q->by_hash = q->requested.n;
    if (answer_unchanged(q))
        return;
    if (!host.n || openapi_cache_get(o->cache, key_of(q)))
        answer_document(q, NULL);
    else
        openapi_descriptions_want(o->descriptions, q->root, on_text, q);
}

/* ---- requests ---- */

static bool accepts(struct str clause, const char *subtype)
{
    struct str rest = clause, type = str_cut(&rest, '/');

    return (str_eqc(type, "application") || str_eqc(type, "*")) && rest.p &&
           (str_eqc(rest, subtype) || str_eqc(rest, "*"));
}

/* False when the client accepts none of the available forms. */
static bool choose_form(struct document_request *q)
{
    static const char *const forms[2][2] = {
        {"com.github.proto-openapi.spec.v3@v1.0+protobuf",
         "com.github.proto-openapi.spec.v3.v1.0+protobuf"},
        {"com.github.proto-openapi.spec.v2@v1.0+protobuf",
         "com.github.proto-openapi.spec.v2.v1.0+protobuf"},
    };
    struct str types[MAX_TYPES];
    size_t n = respond_accepted(net_header(q->c->request, "accept"), types, MAX_TYPES);

    for (size_t i = 0; i < n; i++) {
        if (accepts(types[i], "json"))
            return true;
        q->protobuf = accepts(types[i], forms[q->v2][0]) || accepts(types[i], forms[q->v2][1]);
        if (q->protobuf)
            return true;
    }
    return false;
}

struct search {
    struct str root;
    bool found;
};

static void on_root(void *ctx, struct str root)
{
    struct search *s = ctx;

    s->found |= str_eq(root, s->root);
}

static bool is_root(struct vapi *api, struct str root)
{
    struct search s = {root, false};

    openapi_each_root(api, on_root, &s);
    return s.found;
}

static void handle(struct document_request *q)
{
    bool index = !q->v2 && !q->root.n;

    if (!index && !q->v2 && !is_root(q->c->api, q->root)) {
        answer_not_found(q->c);
    } else if (!index && !choose_form(q)) {
        call_header(q->c, "vary", STR("Accept"));
        call_raw(q->c, 406, STR("text/plain; charset=utf-8"), STR(""));
    } else if (q->v2) {
        q->etag = hash_of(q->o, q->c->arena, STR(""), STR(""));
        if (!answer_unchanged(q))
            answer_document(q, NULL);
    } else {
        openapi_descriptions_want_index(q->o->descriptions, on_index, q);
    }
}

bool openapi_handle(struct call *c, struct str path)
{
    bool v2 = str_eqc(path, "/openapi/v2");
    bool index = str_eqc(path, V3) || str_eqc(path, V3 "/");
    struct query query;
    struct document_request *q;

    if (!v2 && !index && !str_has_prefix(path, STR(V3 "/")))
        return false;
    q = ARENA_NEW(c->arena, struct document_request);
    q->o = openapi_of(c->api);
    q->c = c;
    q->v2 = v2;
    query_parse(c->arena, c->request->query, &query);
    q->requested = arena_str(c->arena, query_get(&query, "hash"));
    q->known = arena_str(c->arena, net_header(c->request, "if-none-match"));
    if (!v2 && !index)
        q->root = str_from(path, sizeof(V3 "/") - 1);
    handle(q);
    return true;
}

/* ---- lifecycle ---- */

static void on_cache_closed(void *ctx)
{
    struct openapi *o = ctx;
    void (*closed)(void *) = o->closed;
    void *closed_ctx = o->ctx;

    openapi_descriptions_free(o->descriptions);
    o->magic = 0;
    mem_free(o);
    closed(closed_ctx);
}

void openapi_close(struct openapi *o, void (*closed)(void *ctx), void *ctx)
{
    assert(o->magic == OPENAPI_MAGIC);
    o->closed = closed;
    o->ctx = ctx;
    openapi_cache_close(o->cache, on_cache_closed, o);
}
