/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over libcurl: its multi interface driven by the libuv loop. Callbacks of libcurl
 * only record what happened; results are delivered to the client after libcurl has returned. Must
 * never call the client from a libcurl callback, and never block.
 *
 *   socket ready / timer -> curl_multi_socket_action -> notes -> settle(): data, then ends */
#include "curl_impl.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "kubeconfig.h"

#include <sublet/file.h>

struct curl_transport *host_curl_from(struct transport *t)
{
    struct curl_transport *c = (struct curl_transport *)(void *)t;

    assert(c->magic == CURL_MAGIC);
    return c;
}

/* --- delivery to the client --- */

void host_curl_wire_free(struct wire *w)
{
    LIST_REMOVE(w, place);
    if (w->easy) {
        curl_multi_remove_handle(w->transport->multi, w->easy);
        curl_easy_cleanup(w->easy);
    }
    curl_slist_free_all(w->headers);
    mem_free(w->body);
    mem_free(w->path);
    buf_fini(&w->data);
    w->magic = 0;
    mem_free(w);
}

static enum host_trouble trouble_of(CURLcode result)
{
    switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
        return HOST_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return HOST_DNS;
    case CURLE_COULDNT_CONNECT:
        return HOST_REFUSED;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_ISSUER_ERROR:
        return HOST_TLS;
    default:
        return HOST_BROKEN;
    }
}

static void report_failure(const struct wire_handler *handler, CURLcode result, const char *detail)
{
    struct wire_failure failure = {trouble_of(result), curl_easy_strerror(result), str_c(detail)};

    if (result == CURLE_WRITE_ERROR)
        failure.text = "the answer is too large";
    handler->end(handler->ctx, 0, 0, &failure);
}

static void report_end(struct wire *w)
{
    struct wire_handler handler = w->handler;
    char detail[CURL_ERROR_SIZE];
    CURLcode result = w->result;
    struct raw *raw = w->raw;
    curl_off_t retry_after = 0;
    long status = 0;

    if (raw) {
        w->ended = false; /* reported once; the raw connection keeps the wire */
        host_curl_raw_opened(raw, result);
        return;
    }
    curl_easy_getinfo(w->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(w->easy, CURLINFO_RETRY_AFTER, &retry_after);
    /* The CA or the token may have been rotated: re-read them. */
    if (result == CURLE_PEER_FAILED_VERIFICATION || status == 401)
        w->transport->credentials_at = INT64_MIN / 2;
    memcpy(detail, w->error, sizeof(detail));
    host_curl_wire_free(w);
    if (result == CURLE_OK)
        handler.end(handler.ctx, (int)status, (int64_t)retry_after, NULL);
    else
        report_failure(&handler, result, detail);
}

/* A wire with an undelivered head, data or end, or NULL. */
static struct wire *next_noted(struct curl_transport *t)
{
    struct wire *w = LIST_FIRST(&t->wires);

    while (w && !w->headed && !w->data.n && !w->ended)
        w = LIST_NEXT(w, place);
    return w;
}

static void note_ends(struct curl_transport *t)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(t->multi, &left))) {
        struct wire *w = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&w);
        assert(w->magic == WIRE_MAGIC);
        w->ended = true;
        w->result = message->data.result;
    }
}

static void settle(struct curl_transport *t)
{
    struct wire *w;

    if (t->settling)
        return;
    t->settling = true;
    note_ends(t);
    while ((w = next_noted(t))) {
        if (w->headed) {
            w->headed = false;
            w->handler.head(w->handler.ctx);
        } else if (w->data.n) {
            /* The handler may cancel w, which would free its buffer. */
            struct str bytes = buf_take(&w->data);

            w->data = BUF_INIT(ANSWER_LIMIT);
            w->handler.data(w->handler.ctx, bytes);
            mem_free(bytes.p);
        } else {
            report_end(w);
        }
    }
    t->settling = false;
}

/* --- libcurl's callbacks: they record only --- */

static size_t on_write(char *bytes, size_t size, size_t n, void *ctx)
{
    struct wire *w = ctx;

    assert(w->magic == WIRE_MAGIC);
    buf_add(&w->data, (struct str){bytes, size * n});
    return w->data.failed ? 0 : size * n;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct socket_poll *p = handle->data;
    struct curl_transport *t = p->transport;
    int flags = 0, running;

    assert(t->magic == CURL_MAGIC);
    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    curl_multi_socket_action(t->multi, p->fd, flags, &running);
    settle(t);
}

static void on_timer(uv_timer_t *handle)
{
    struct curl_transport *t = handle->data;
    int running;

    assert(t->magic == CURL_MAGIC);
    t->timing = true;
    curl_multi_socket_action(t->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    t->timing = false;
    settle(t);
}

static int on_timeout_wish(CURLM *multi, long timeout_ms, void *ctx)
{
    struct curl_transport *t = ctx;

    (void)multi;
    if (t->closing || timeout_ms < 0) {
        uv_timer_stop(&t->timer);
        return 0;
    }
    /* A transfer with more data requests a timeout of 0 each time. A zero timer that rearms itself
     * would starve the sockets, which libuv polls after due timers only. */
    if (!timeout_ms && t->timing)
        timeout_ms = 1;
    uv_update_time(t->loop);
    uv_timer_start(&t->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static void handle_closed(struct curl_transport *t)
{
    void (*closed)(void *ctx) = t->closed;
    void *ctx = t->closed_ctx;

    if (--t->open_handles)
        return;
    curl_slist_free_all(t->connect_to);
    buf_fini(&t->token);
    buf_fini(&t->ca);
    t->magic = 0;
    mem_free(t);
    curl_global_cleanup();
    closed(ctx);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct socket_poll *p = handle->data;
    struct curl_transport *t = p->transport;

    mem_free(p);
    handle_closed(t);
}

struct socket_poll *host_curl_poll_new(struct curl_transport *t, curl_socket_t fd)
{
    struct socket_poll *p = NEW(struct socket_poll);

    *p = (struct socket_poll){.transport = t, .fd = fd};
    uv_poll_init_socket(t->loop, &p->handle, fd);
    p->handle.data = p;
    t->open_handles++;
    return p;
}

void host_curl_poll_close(struct socket_poll *p)
{
    uv_poll_stop(&p->handle);
    uv_close((uv_handle_t *)&p->handle, on_poll_closed);
}

static int on_socket_wish(CURL *easy, curl_socket_t fd, int action, void *ctx, void *assigned)
{
    struct curl_transport *t = ctx;
    struct socket_poll *p = assigned;
    int events = 0;

    (void)easy;
    if (action == CURL_POLL_REMOVE) {
        if (p) {
            host_curl_poll_close(p);
            curl_multi_assign(t->multi, fd, NULL);
        }
        return 0;
    }
    if (!p) {
        p = host_curl_poll_new(t, fd);
        curl_multi_assign(t->multi, fd, p);
    }
    if (action & CURL_POLL_IN)
        events |= UV_READABLE;
    if (action & CURL_POLL_OUT)
        events |= UV_WRITABLE;
    uv_poll_start(&p->handle, events, on_poll);
    return 0;
}

/* The kernel detects a peer that vanished: no timer of ours is needed. */
static int on_socket_made(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    int on = 1, idle = 30, interval = 10, probes = 3, unanswered_ms = 30000;

    (void)ctx;
    (void)purpose;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered_ms, sizeof(unanswered_ms));
    return CURL_SOCKOPT_OK;
}

/* --- starting a request --- */

static void reload(struct buf *into, struct str path)
{
    struct arena *a = arena_new(0);
    struct str content;

    /* A file that cannot be read at the moment keeps the previous content. */
    if (path.n && !file_read(a, path, CREDENTIAL_LIMIT, &content, NULL)) {
        buf_clear(into);
        buf_add(into, content);
    }
    arena_free(a);
}

void host_curl_header(struct wire *w, const char *start, struct str value)
{
    struct buf line = BUF_INIT(0);

    buf_addc(&line, start);
    buf_add(&line, value);
    buf_char(&line, '\0');
    w->headers = curl_slist_append(w->headers, line.p);
    buf_fini(&line);
}

struct str host_curl_token(const struct curl_transport *t)
{
    return str_trim(t->token.n ? buf_str(&t->token) : t->config->token);
}

static void set_headers(struct wire *w, const struct wire_request *q)
{
    struct str token = host_curl_token(w->transport);

    host_curl_header(w, "Accept: ", str_c(q->accept));
    if (q->body.n)
        host_curl_header(w, "Content-Type: ", str_c(q->content_type));
    if (token.n)
        host_curl_header(w, "Authorization: Bearer ", token);
    curl_easy_setopt(w->easy, CURLOPT_HTTPHEADER, w->headers);
}

void host_curl_blob(CURL *easy, CURLoption option, struct str pem)
{
    struct curl_blob blob = {.len = pem.n, .flags = CURL_BLOB_COPY};

    if (!pem.n)
        return;
    memcpy(&blob.data, &pem.p, sizeof(blob.data)); /* libcurl's type is not const */
    curl_easy_setopt(easy, option, &blob);
}

/* A CA that is configured is the only one. libcurl would trust the system's directory besides, and
 * all of the system's where it is given none: a file without content becomes a list that it refuses
 * before anything is sent (CURLE_SSL_CACERT_BADFILE). */
static void set_trust(struct wire *w)
{
    const struct curl_transport *t = w->transport;
    const struct kubeconfig *k = t->config;
    struct str ca = t->ca.n ? buf_str(&t->ca) : k->ca;

    if (!ca.n && !k->ca_file.n)
        return;
    host_curl_blob(w->easy, CURLOPT_CAINFO_BLOB, ca.n ? ca : STR("no certificate"));
    curl_easy_setopt(w->easy, CURLOPT_CAPATH, NULL);
}

static void set_tls(struct wire *w)
{
    const struct curl_transport *t = w->transport;
    const struct kubeconfig *k = t->config;

    set_trust(w);
    host_curl_blob(w->easy, CURLOPT_SSLCERT_BLOB, k->certificate);
    host_curl_blob(w->easy, CURLOPT_SSLKEY_BLOB, k->key);
    if (k->certificate.n) {
        curl_easy_setopt(w->easy, CURLOPT_SSLCERTTYPE, "PEM");
        curl_easy_setopt(w->easy, CURLOPT_SSLKEYTYPE, "PEM");
    }
    curl_easy_setopt(w->easy, CURLOPT_SSL_VERIFYPEER, k->insecure ? 0L : 1L);
    curl_easy_setopt(w->easy, CURLOPT_SSL_VERIFYHOST, k->insecure ? 0L : 2L);
    if (t->connect_to)
        curl_easy_setopt(w->easy, CURLOPT_CONNECT_TO, t->connect_to);
}

/* With tls-server-name, the URL has that name, and CONNECT_TO the address. */
static struct str url_of(struct arena *a, const struct curl_transport *t, struct str path)
{
    const struct kubeconfig *k = t->config;
    struct str scheme = str_sub(k->server, 0, str_find(k->server, ':') + 3);
    struct str rest = str_from(k->server, scheme.n);
    struct str authority = str_sub(rest, 0, str_find(rest, '/'));
    struct str prefix = str_from(rest, authority.n);

    if (!t->connect_to)
        return arena_printf(a, "%.*s%.*s", STR_F(k->server), STR_F(path));
    return arena_printf(a, "%.*s%.*s%.*s%.*s", STR_F(scheme), STR_F(k->tls_server_name),
                        STR_F(prefix), STR_F(path));
}

static void set_method(struct wire *w, const struct wire_request *q)
{
    if (q->body.n) {
        w->body = mem_strdup(q->body);
        curl_easy_setopt(w->easy, CURLOPT_POSTFIELDS, w->body);
        curl_easy_setopt(w->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
    } else if (!strcmp(q->method, "HEAD")) {
        curl_easy_setopt(w->easy, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(w->easy, CURLOPT_CUSTOMREQUEST, q->method);
}

static void set_common(struct wire *w, struct str path, int64_t timeout_ms)
{
    const struct kubeconfig *k = w->transport->config;
    struct arena *a = arena_new(0);

    curl_easy_setopt(w->easy, CURLOPT_URL, url_of(a, w->transport, path).p);
    curl_easy_setopt(w->easy, CURLOPT_PROXY, arena_cstr(a, k->proxy_url)); /* "": none */
    if (k->username.n) {
        curl_easy_setopt(w->easy, CURLOPT_USERNAME, arena_cstr(a, k->username));
        curl_easy_setopt(w->easy, CURLOPT_PASSWORD, arena_cstr(a, k->password));
    }
    arena_free(a);
    curl_easy_setopt(w->easy, CURLOPT_PRIVATE, w);
    curl_easy_setopt(w->easy, CURLOPT_ERRORBUFFER, w->error);
    curl_easy_setopt(w->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(w->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(w->easy, CURLOPT_PIPEWAIT, 1L);
    curl_easy_setopt(w->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(w->easy, CURLOPT_USERAGENT, "sublet");
    curl_easy_setopt(w->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(w->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(w->easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
    curl_easy_setopt(w->easy, CURLOPT_WRITEFUNCTION, on_write);
    curl_easy_setopt(w->easy, CURLOPT_WRITEDATA, w);
}

struct wire *host_curl_wire_new(struct curl_transport *t, struct str path, int64_t timeout_ms)
{
    struct wire *w = NEW(struct wire);
    int64_t now = clock_mono_ms(t->clock);

    *w = (struct wire){.magic = WIRE_MAGIC, .transport = t, .data = BUF_INIT(ANSWER_LIMIT)};
    LIST_INSERT_HEAD(&t->wires, w, place);
    if (now - t->credentials_at >= CREDENTIALS_MS) {
        t->credentials_at = now;
        reload(&t->token, t->config->token_file);
        reload(&t->ca, t->config->ca_file);
    }
    w->easy = curl_easy_init();
    assert(w->easy);
    set_common(w, path, timeout_ms);
    set_tls(w);
    return w;
}

static void *curl_start(struct transport *base, const struct wire_request *q,
                        const struct wire_handler *h)
{
    struct curl_transport *t = host_curl_from(base);
    struct wire *w = host_curl_wire_new(t, q->path, q->timeout_ms);

    w->handler = *h;
    set_method(w, q);
    set_headers(w, q);
    curl_multi_add_handle(t->multi, w->easy);
    return w;
}

static void curl_cancel(struct transport *base, void *wire)
{
    struct wire *w = wire;

    host_curl_from(base);
    assert(w->magic == WIRE_MAGIC);
    host_curl_wire_free(w);
}

/* --- life --- */

static void on_timer_closed(uv_handle_t *handle)
{
    handle_closed(handle->data);
}

static void curl_close(struct transport *base, void (*closed)(void *ctx), void *ctx)
{
    struct curl_transport *t = host_curl_from(base);

    assert(LIST_EMPTY(&t->wires));
    t->closing = true;
    t->closed = closed;
    t->closed_ctx = ctx;
    curl_multi_cleanup(t->multi); /* removes its sockets through on_socket_wish() */
    uv_close((uv_handle_t *)&t->timer, on_timer_closed);
}

static struct curl_slist *connect_to(const struct kubeconfig *k)
{
    struct str rest = str_from(k->server, str_find(k->server, ':') + 3);
    struct str authority = str_sub(rest, 0, str_find(rest, '/'));
    bool has_port = str_rfind(authority, ':') < authority.n && authority.p[authority.n - 1] != ']';
    struct buf line = BUF_INIT(0);
    struct curl_slist *list;

    if (!k->tls_server_name.n)
        return NULL;
    buf_printf(&line, "::%.*s%s", STR_F(authority), has_port ? "" : ":443");
    buf_char(&line, '\0');
    list = curl_slist_append(NULL, line.p);
    buf_fini(&line);
    return list;
}

struct transport *host_curl_transport_new(struct uv_loop_s *loop, const struct clock *clock,
                                          struct kubeconfig *k)
{
    static const struct transport_ops ops = {curl_start, curl_cancel, curl_close, &HOST_CURL_RAW};
    struct curl_transport *t = NEW(struct curl_transport);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    *t = (struct curl_transport){.base = {&ops},
                                 .magic = CURL_MAGIC,
                                 .loop = loop,
                                 .clock = clock,
                                 .config = k,
                                 .connect_to = connect_to(k),
                                 .token = BUF_INIT(CREDENTIAL_LIMIT),
                                 .ca = BUF_INIT(CREDENTIAL_LIMIT),
                                 .credentials_at = INT64_MIN / 2,
                                 .open_handles = 1};
    uv_timer_init(loop, &t->timer);
    t->timer.data = t;
    t->multi = curl_multi_init();
    assert(t->multi);
    curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wish);
    curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t);
    curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION, on_timeout_wish);
    curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t);
    curl_multi_setopt(t->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    return &t->base;
}
