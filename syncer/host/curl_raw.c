/* SPDX-License-Identifier: Apache-2.0 */
/* Raw connections over libcurl: it resolves, connects, traverses proxies and does TLS as for any
 * other request, and then passes bytes (CURLOPT_CONNECT_ONLY). A connection is not shared. Must
 * never call a handler from within a caller's call, nor let libcurl close the socket before its
 * poll handle is stopped.
 *
 *   open -> connecting (curl's polls) -> opened() -> ready()* (a poll of our own) -> close */
#include "curl_impl.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <sublet/encode.h>

#include "kubeconfig.h"

#define RAW_MAGIC 0x72617721u

struct raw {
    unsigned magic;
    struct curl_transport *transport;
    struct wire *wire;
    struct socket_poll *poll;
    struct raw_handler handler;
};

static struct raw *raw_of(void *p)
{
    struct raw *r = p;

    assert(r->magic == RAW_MAGIC);
    return r;
}

static void *raw_open(struct transport *base, const struct raw_handler *h)
{
    struct curl_transport *t = host_curl_from(base);
    struct raw *r = NEW(struct raw);

    *r = (struct raw){.magic = RAW_MAGIC, .transport = t, .handler = *h};
    r->wire = host_curl_wire_new(t, STR("/"), 0);
    r->wire->raw = r;
    curl_easy_setopt(r->wire->easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(r->wire->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_multi_add_handle(t->multi, r->wire->easy);
    return r;
}

/* From settle(): outside of libcurl and of the caller's calls. */
void host_curl_raw_opened(struct raw *r, CURLcode result)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    unsigned never = 0;

    assert(r->magic == RAW_MAGIC && !r->poll);
    if (result == CURLE_OK)
        curl_easy_getinfo(r->wire->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (result == CURLE_OK && fd == CURL_SOCKET_BAD)
        result = CURLE_COULDNT_CONNECT;
    if (result == CURLE_OK) {
        r->poll = host_curl_poll_new(r->transport, fd);
        r->poll->raw = r;
        /* A client that stops reading (a pager) must not let the connection time out. */
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof(never));
    }
    if (result == CURLE_PEER_FAILED_VERIFICATION)
        r->transport->credentials_at = INT64_MIN / 2;
    r->handler.opened(r->handler.ctx, result == CURLE_OK ? NULL : curl_easy_strerror(result));
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct socket_poll *p = handle->data;
    struct raw *r = raw_of(p->raw);

    (void)status; /* an error shows in the next send or recv */
    (void)events;
    r->handler.ready(r->handler.ctx);
}

static void raw_want(void *raw, bool read, bool write)
{
    struct raw *r = raw_of(raw);
    int events = (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0);

    if (!r->poll)
        return;
    if (events)
        uv_poll_start(&r->poll->handle, events, on_ready);
    else
        uv_poll_stop(&r->poll->handle);
}

static ssize_t raw_send(void *raw, struct str bytes)
{
    struct raw *r = raw_of(raw);
    size_t n = 0;
    CURLcode result = curl_easy_send(r->wire->easy, bytes.p, bytes.n, &n);

    if (result == CURLE_AGAIN || (result == CURLE_OK && !n))
        return RAW_AGAIN;
    return result == CURLE_OK ? (ssize_t)n : RAW_BROKEN;
}

static ssize_t raw_recv(void *raw, char *p, size_t size)
{
    struct raw *r = raw_of(raw);
    size_t n = 0;
    CURLcode result = curl_easy_recv(r->wire->easy, p, size, &n);

    if (result == CURLE_AGAIN)
        return RAW_AGAIN;
    return result == CURLE_OK ? (ssize_t)n : RAW_BROKEN;
}

static void raw_close(void *raw)
{
    struct raw *r = raw_of(raw);

    if (r->poll)
        host_curl_poll_close(r->poll);
    host_curl_wire_free(r->wire);
    r->magic = 0;
    mem_free(r);
}

/* --- the head of a request --- */

static void add_credentials(struct buf *b, const struct curl_transport *t)
{
    struct str token = host_curl_token(t);
    struct arena *a = arena_new(0);

    if (token.n) {
        buf_printf(b, "Authorization: Bearer %.*s\r\n", STR_F(token));
    } else if (t->config->username.n) {
        struct str pair =
            arena_printf(a, "%.*s:%.*s", STR_F(t->config->username), STR_F(t->config->password));

        buf_printf(b, "Authorization: Basic %.*s\r\n", STR_F(base64_encode(a, pair)));
    }
    arena_free(a);
}

static void raw_head(struct transport *base, struct buf *b, const char *method, struct str path)
{
    const struct curl_transport *t = host_curl_from(base);
    struct str server = t->config->server;
    struct str rest = str_from(server, str_find(server, ':') + 3);
    struct str authority = str_sub(rest, 0, str_find(rest, '/'));
    struct str host = t->config->tls_server_name.n ? t->config->tls_server_name : authority;

    buf_printf(b, "%s %.*s%.*s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: sublet\r\n", method,
               STR_F(str_from(rest, authority.n)), STR_F(path), STR_F(host));
    add_credentials(b, t);
}

const struct raw_ops HOST_CURL_RAW = {.open = raw_open,
                                      .head = raw_head,
                                      .send = raw_send,
                                      .recv = raw_recv,
                                      .want = raw_want,
                                      .close = raw_close};
