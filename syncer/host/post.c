/* SPDX-License-Identifier: Apache-2.0 */
/* POSTs to a tenant's servers, over a transport of their own: its connections are never the host's,
 * and it knows no credentials. Must never connect to an address that the caller does not admit,
 * follow a redirect, use a proxy, or keep more of an answer than the caller allows. */
#include <sublet/host_post.h>

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "curl_impl.h"
#include "kubeconfig.h"

#define POSTS_MAGIC 0x706f7374u
#define KEPT        8L /* idle connections */

struct sent {
    LIST_ENTRY(sent) place;
    struct host_posts *posts;
    struct wire *wire;
    struct elsewhere at;
    struct buf body;
    bool (*may_connect)(struct str address);
    char refused[INET6_ADDRSTRLEN]; /* the last address that may not be connected to; or empty */
    host_post_cb done;
    void *ctx;
};

struct host_posts {
    unsigned magic;
    struct kubeconfig none; /* no server, no credentials */
    struct transport *transport;
    LIST_HEAD(, sent) sent;
    bool stopped;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct host_posts *host_posts_new(struct uv_loop_s *loop, const struct clock *clock)
{
    struct host_posts *h = NEW(struct host_posts);

    *h = (struct host_posts){.magic = POSTS_MAGIC, .none = {.server = STR("https://webhook")}};
    LIST_INIT(&h->sent);
    h->transport = host_curl_transport_new(loop, clock, &h->none);
    curl_multi_setopt(host_curl_from(h->transport)->multi, CURLMOPT_MAXCONNECTS, KEPT);
    return h;
}

/* ---- the answer ---- */

static void finish(struct sent *s, int status, const struct err *err)
{
    struct buf body = s->body;

    LIST_REMOVE(s, place);
    s->done(s->ctx, status, buf_str(&body), err);
    host_elsewhere_fini(&s->at);
    buf_fini(&body);
    mem_free(s);
}

static void on_data(void *ctx, struct str bytes)
{
    struct sent *s = ctx;
    struct err err;

    assert(s->posts->magic == POSTS_MAGIC);
    buf_add(&s->body, bytes);
    if (!s->body.failed)
        return;
    host_curl_wire_free(s->wire);
    err_init(&err, NULL);
    err_set(&err, &ERR_TOO_LARGE, "the answer has more than %zu bytes", s->body.limit);
    buf_clear(&s->body);
    finish(s, 0, &err);
}

static void explain(const struct sent *s, const struct wire_failure *f, struct err *err)
{
    if (s->refused[0])
        err_set(err, &ERR_UNAVAILABLE, "dial tcp %s: %s: an address that no webhook may be at",
                s->at.where, s->refused);
    else
        host_elsewhere_explain(&s->at, f, err);
}

static void on_end(void *ctx, int status, int64_t retry_after_s, const struct wire_failure *failure)
{
    struct sent *s = ctx;
    struct err err;

    (void)retry_after_s;
    assert(s->posts->magic == POSTS_MAGIC);
    err_init(&err, NULL);
    if (failure)
        explain(s, failure, &err);
    finish(s, status, failure ? &err : NULL);
}

/* ---- sending ---- */

static bool print_address(const struct sockaddr *a, char *out, size_t size)
{
    const void *ip = a->sa_family == AF_INET6
                         ? (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr
                         : (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;

    return (a->sa_family == AF_INET || a->sa_family == AF_INET6) &&
           inet_ntop(a->sa_family, ip, out, (socklen_t)size);
}

/* What a name resolves to is another's choice, and may change with every look: judged here is the
 * address of this very connection. */
static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct sent *s = ctx;
    char text[INET6_ADDRSTRLEN] = "?";

    (void)purpose;
    if (!print_address(&a->addr, text, sizeof(text)) || !s->may_connect(str_c(text))) {
        memcpy(s->refused, text, sizeof(text));
        return CURL_SOCKET_BAD;
    }
    s->refused[0] = '\0';
    return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static void set_options(struct sent *s, const struct host_post *p)
{
    CURL *easy = s->wire->easy;

    host_elsewhere_set(easy, &s->at, p->name, p->port, p->path, p->ca);
    if (p->may_connect) {
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, s);
    }
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)p->body.n);
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, p->body.p);
    s->wire->headers = curl_slist_append(s->wire->headers, "Accept: application/json, */*");
    s->wire->headers = curl_slist_append(s->wire->headers, "Content-Type: application/json");
    s->wire->headers = curl_slist_append(s->wire->headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, s->wire->headers);
}

void host_posts_send(struct host_posts *h, const struct host_post *p, host_post_cb done, void *ctx)
{
    const struct wire_handler handler = {.data = on_data, .end = on_end};
    struct curl_transport *t = host_curl_from(h->transport);
    struct sent *s = NEW(struct sent);

    assert(h->magic == POSTS_MAGIC && !h->stopped);
    *s = (struct sent){.posts = h,
                       .body = BUF_INIT(p->most),
                       .may_connect = p->may_connect,
                       .done = done,
                       .ctx = ctx};
    LIST_INSERT_HEAD(&h->sent, s, place);
    host_elsewhere_init(&s->at, p->name, p->address, p->port);
    s->wire = host_curl_wire_new(t, STR("/"), p->timeout_ms);
    s->wire->handler = handler;
    s->wire->handler.ctx = s;
    s->wire->data = BUF_INIT(p->most + CURL_MAX_WRITE_SIZE);
    set_options(s, p);
    curl_multi_add_handle(t->multi, s->wire->easy);
}

/* ---- life ---- */

void host_posts_stop(struct host_posts *h)
{
    struct sent *s;
    struct err err;

    assert(h->magic == POSTS_MAGIC);
    h->stopped = true;
    err_init(&err, NULL);
    err_set(&err, &ERR_UNAVAILABLE, "the API server is shutting down");
    while ((s = LIST_FIRST(&h->sent))) {
        host_curl_wire_free(s->wire);
        finish(s, 0, &err);
    }
}

static void on_closed(void *ctx)
{
    struct host_posts *h = ctx;
    void (*closed)(void *ctx) = h->closed;
    void *closed_ctx = h->closed_ctx;

    h->magic = 0;
    mem_free(h);
    closed(closed_ctx);
}

void host_posts_close(struct host_posts *h, void (*closed)(void *ctx), void *ctx)
{
    assert(h->magic == POSTS_MAGIC && h->stopped && LIST_EMPTY(&h->sent));
    h->closed = closed;
    h->closed_ctx = ctx;
    h->transport->ops->close(h->transport, on_closed, h);
}
