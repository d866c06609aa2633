/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges with a tenant's servers, passed on as they arrive, over a transport of their own: its
 * connections are never the host's, and it knows no credentials but the caller's. Must never hold
 * more of an answer than libcurl reads at once, nor more of a head than HEAD_LIMIT.
 *
 *   open -> head lines -> head() -> data()* -> end()      host_forward_close(): freed, no event */
#include <sublet/host_forward.h>

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <sys/queue.h>

#include "curl_impl.h"
#include "kubeconfig.h"

#define FORWARDS_MAGIC 0x66777273u
#define FORWARD_MAGIC  0x66777264u
#define KEPT           16L /* idle connections */
#define HEAD_LIMIT     65536
#define HEAD_HEADERS   128

struct forward {
    unsigned magic;
    LIST_ENTRY(forward) place;
    struct host_forwards *all;
    struct wire *wire;
    struct elsewhere at;
    struct arena *arena; /* the head; NULL after it was delivered */
    struct net_header headers[HEAD_HEADERS];
    size_t n_headers, head_bytes;
    bool whole_head, too_large;
    struct forward_events events;
    void *ctx;
};

struct host_forwards {
    unsigned magic;
    struct kubeconfig none; /* no server, no credentials */
    struct transport *transport;
    LIST_HEAD(, forward) list;
    bool stopped;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct host_forwards *host_forwards_new(struct uv_loop_s *loop, const struct clock *clock)
{
    struct host_forwards *h = NEW(struct host_forwards);

    *h = (struct host_forwards){.magic = FORWARDS_MAGIC,
                                .none = {.server = STR("https://extension")}};
    LIST_INIT(&h->list);
    h->transport = host_curl_transport_new(loop, clock, &h->none);
    curl_multi_setopt(host_curl_from(h->transport)->multi, CURLMOPT_MAXCONNECTS, KEPT);
    return h;
}

/* Its wire is freed already. */
static void forward_free(struct forward *f)
{
    LIST_REMOVE(f, place);
    host_elsewhere_fini(&f->at);
    if (f->arena)
        arena_free(f->arena);
    f->magic = 0;
    mem_free(f);
}

/* ---- the head, line by line: libcurl's callback, which only records ---- */

static void begin_head(struct forward *f)
{
    f->n_headers = f->head_bytes = 0;
    arena_reset(f->arena);
}

static void add_line(struct forward *f, struct str line)
{
    struct str value = line, name = str_trim(str_cut(&value, ':'));
    char *text = arena_cstr(f->arena, name);

    if (!value.p || !name.n)
        return;
    for (size_t i = 0; i < name.n; i++)
        text[i] = (char)tolower((unsigned char)text[i]);
    f->headers[f->n_headers++] =
        (struct net_header){{text, name.n}, arena_str(f->arena, str_trim(value))};
}

/* An interim answer has a head of its own, which is dropped; so are trailers. */
static size_t on_line(char *bytes, size_t size, size_t n, void *ctx)
{
    struct forward *f = ctx;
    struct str line = {bytes, size * n};
    long status = 0;

    assert(f->magic == FORWARD_MAGIC);
    if (f->whole_head)
        return line.n;
    if (str_has_prefix(line, STR("HTTP/"))) {
        begin_head(f);
        return line.n;
    }
    f->head_bytes += line.n;
    f->too_large = f->head_bytes > HEAD_LIMIT || f->n_headers == HEAD_HEADERS;
    if (f->too_large)
        return 0;
    if (str_trim(line).n) {
        add_line(f, line);
        return line.n;
    }
    curl_easy_getinfo(f->wire->easy, CURLINFO_RESPONSE_CODE, &status);
    f->whole_head = f->wire->headed = status >= 200;
    return line.n;
}

/* ---- events ---- */

static void on_head(void *ctx)
{
    struct forward *f = ctx;
    struct arena *head = f->arena;
    long status = 0;

    assert(f->magic == FORWARD_MAGIC);
    curl_easy_getinfo(f->wire->easy, CURLINFO_RESPONSE_CODE, &status);
    f->arena = NULL;
    f->events.head(f->ctx, (int)status, f->headers, f->n_headers); /* may close f */
    arena_free(head);
}

static void on_data(void *ctx, struct str bytes)
{
    struct forward *f = ctx;

    assert(f->magic == FORWARD_MAGIC);
    f->events.data(f->ctx, bytes);
}

static void finish(struct forward *f, const struct err *err)
{
    struct forward_events events = f->events;
    void *ctx = f->ctx;

    forward_free(f);
    events.end(ctx, err);
}

static void on_end(void *ctx, int status, int64_t retry_after_s, const struct wire_failure *failure)
{
    struct forward *f = ctx;
    struct arena *a;
    struct err err;

    (void)status;
    (void)retry_after_s;
    assert(f->magic == FORWARD_MAGIC);
    if (!failure) {
        finish(f, NULL);
        return;
    }
    a = arena_new(0);
    err_init(&err, a);
    if (f->too_large)
        err_set(&err, &ERR_UNAVAILABLE,
                "net/http: server response headers exceeded %d bytes; aborted", HEAD_LIMIT);
    else
        host_elsewhere_explain(&f->at, failure, &err);
    finish(f, &err);
    arena_free(a);
}

/* ---- sending ---- */

static void set_body(CURL *easy, const struct forward_request *q)
{
    if (!strcmp(q->method, "HEAD")) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (q->body.n || !strcmp(q->method, "POST") || !strcmp(q->method, "PUT")) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
        curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, q->body.n ? q->body.p : "");
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, q->method);
}

/* libcurl leaves a header out that has no value, unless it ends in a semicolon; and it would send
 * some of its own. */
static void set_headers(struct wire *w, const struct forward_request *q)
{
    static const char *const own[] = {"Accept:", "Content-Type:", "Expect:", "User-Agent:"};
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < COUNT(own); i++) {
        bool sent = false;

        for (size_t k = 0; k < q->n_headers; k++)
            sent |= str_eq_nocase(q->headers[k].name, (struct str){own[i], strlen(own[i]) - 1});
        if (!sent)
            host_curl_header(w, own[i], STR(""));
    }
    for (size_t i = 0; i < q->n_headers; i++) {
        struct net_header h = q->headers[i];

        host_curl_header(w, arena_printf(a, "%.*s%s", STR_F(h.name), h.value.n ? ": " : ";").p,
                         h.value);
    }
    curl_easy_setopt(w->easy, CURLOPT_HTTPHEADER, w->headers);
    arena_free(a);
}

static void set_client(CURL *easy, const struct forward_request *q)
{
    if (q->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    if (!q->certificate.n)
        return;
    host_curl_blob(easy, CURLOPT_SSLCERT_BLOB, q->certificate);
    host_curl_blob(easy, CURLOPT_SSLKEY_BLOB, q->key);
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
}

struct forward *host_forward_open(struct host_forwards *h, struct str name, struct str address,
                                  const struct forward_request *q,
                                  const struct forward_events *events, void *ctx)
{
    const struct wire_handler handler = {.head = on_head, .data = on_data, .end = on_end};
    struct curl_transport *t = host_curl_from(h->transport);
    struct forward *f = NEW(struct forward);
    CURL *easy;

    assert(h->magic == FORWARDS_MAGIC && !h->stopped);
    *f = (struct forward){
        .magic = FORWARD_MAGIC, .all = h, .arena = arena_new(0), .events = *events, .ctx = ctx};
    LIST_INSERT_HEAD(&h->list, f, place);
    host_elsewhere_init(&f->at, name, address, (unsigned)q->port);
    f->wire = host_curl_wire_new(t, STR("/"), q->timeout_ms);
    f->wire->handler = handler;
    f->wire->handler.ctx = f;
    easy = f->wire->easy;
    host_elsewhere_set(easy, &f->at, name, (unsigned)q->port, q->path, q->ca);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_line);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, f);
    set_body(easy, q);
    set_client(easy, q);
    set_headers(f->wire, q);
    curl_multi_add_handle(t->multi, easy);
    return f;
}

void host_forward_pause(struct forward *f, bool pause)
{
    assert(f->magic == FORWARD_MAGIC);
    curl_easy_pause(f->wire->easy, pause ? CURLPAUSE_RECV : CURLPAUSE_CONT);
}

void host_forward_close(struct forward *f)
{
    if (!f)
        return;
    assert(f->magic == FORWARD_MAGIC);
    host_curl_wire_free(f->wire);
    forward_free(f);
}

/* ---- life ---- */

void host_forwards_stop(struct host_forwards *h)
{
    struct forward *f;
    struct err err;

    assert(h->magic == FORWARDS_MAGIC);
    h->stopped = true;
    err_init(&err, NULL);
    err_set(&err, &ERR_UNAVAILABLE, "the API server is shutting down");
    while ((f = LIST_FIRST(&h->list))) {
        host_curl_wire_free(f->wire);
        finish(f, &err);
    }
}

static void on_closed(void *ctx)
{
    struct host_forwards *h = ctx;
    void (*closed)(void *ctx) = h->closed;
    void *closed_ctx = h->closed_ctx;

    h->magic = 0;
    mem_free(h);
    closed(closed_ctx);
}

void host_forwards_close(struct host_forwards *h, void (*closed)(void *ctx), void *ctx)
{
    assert(h->magic == FORWARDS_MAGIC && h->stopped && LIST_EMPTY(&h->list));
    h->closed = closed;
    h->closed_ctx = ctx;
    h->transport->ops->close(h->transport, on_closed, h);
}
