/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection: its socket, its output, and its place in the server's lists. Why: everything
 * produced for a peer within one loop iteration leaves in one write, and a peer that stalls, idles
 * or floods is detected here, whatever protocol it speaks. Must never block, keep an empty buffer,
 * or free anything before the socket's close callback. */
#include "server.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>

int64_t conn_now(const struct net_conn *c)
{
    return (int64_t)uv_now(c->server->loop);
}

struct net_conn *conn_new(struct net_server *s)
{
    struct net_conn *c = NEW(struct net_conn);

    c->magic = CONN_MAGIC;
    c->server = s;
    c->state = CONN_OPEN;
    TAILQ_INIT(&c->exchanges);
    TAILQ_INIT(&c->in_flight);
    c->out = BUF_INIT(0);
    c->held = BUF_INIT(0);
    c->first = BUF_INIT(0);
    c->since = c->progress_at = conn_now(c);
    TAILQ_INSERT_TAIL(&s->conns, c, in_server);
    s->n_conns++;
    if (!s->scratch)
        s->scratch = NEW(struct scratch);
    return c;
}

static void leave_class(struct net_conn *c)
{
    struct net_server *s = c->server;

    if (c->class == CLASS_BUSY)
        TAILQ_REMOVE(&s->busy, c, in_class);
    else if (c->class == CLASS_IDLE)
        TAILQ_REMOVE(&s->idle, c, in_class);
    c->class = CLASS_QUIET;
}

struct net_conn *conn_free(struct net_conn *c)
{
    struct net_server *s = c->server;
    struct net_exchange *x;

    assert(c->magic == CONN_MAGIC && c->state == CONN_CLOSING);
    while ((x = TAILQ_FIRST(&c->exchanges)) != NULL) {
        exchange_close(x);
    }
    assert(!c->receiving && !c->backlogged && TAILQ_EMPTY(&c->in_flight));

    if (c->proto)
        c->proto->fini(c);
    SSL_free(c->ssl);
    arena_free(c->peer_arena);
    buf_fini(&c->first);
    buf_fini(&c->held);
    buf_fini(&c->out);
    if (c->dirty)
        TAILQ_REMOVE(&s->dirty, c, in_dirty);
    TAILQ_REMOVE(&s->conns, c, in_server);
    s->n_conns--;
    c->magic = NET_POISON;
    mem_free(c);
    net_server_conn_closed(s);
    return NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct net_conn *c = handle->data;

    assert(c->magic == CONN_MAGIC);
    mem_free(c->writing);
    conn_free(c);
}

void conn_close(struct net_conn *c)
{
    if (c->state == CONN_CLOSING)
        return;
    leave_class(c);
    c->state = CONN_CLOSING;
    if (!c->detached)
        uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* The class that decides what the sweep checks. */
static enum conn_class classify(const struct net_conn *c)
{
    if (c->state != CONN_OPEN || c->since || c->receiving || c->backlogged || c->out.n ||
        c->writing || c->finishing)
        return CLASS_BUSY;
    return c->n_exchanges ? CLASS_QUIET : CLASS_IDLE;
}

static void update_class(struct net_conn *c)
{
    struct net_server *s = c->server;
    enum conn_class class;

    if (c->state == CONN_CLOSING || c->detached)
        return;
    class = classify(c);
    if (class == c->class)
        return;

    leave_class(c);
    c->class = class;
    if (class == CLASS_BUSY) {
        c->progress_at = conn_now(c);
        TAILQ_INSERT_TAIL(&s->busy, c, in_class);
    } else if (class == CLASS_IDLE) {
        c->idle_since = conn_now(c);
        TAILQ_INSERT_TAIL(&s->idle, c, in_class);
    }
    net_server_need_sweep(s, class);
}

/* Input. */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct net_conn *c = handle->data;

    (void)suggested;
    *ret = uv_buf_init(c->server->scratch->read, NET_READ);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct net_conn *c = stream->data;

    assert(c->magic == CONN_MAGIC);
    if (n == 0 || c->state == CONN_CLOSING)
        return;
    if (n > 0)
        conn_feed(c, (struct str){buf->base, (size_t)n});
    else if (n == UV_EOF)
        conn_end_of_input(c);
    else
        conn_close(c);
    update_class(c);
}

static void update_reading(struct net_conn *c)
{
    bool full = c->writing && c->out.n >= NET_OUT_HIGH;
    bool want = (!c->hold || c->held.n < NET_HELD_MAX / 2) && !full && !c->peer_gone;

    if (c->state == CONN_CLOSING || c->detached || want == c->reading)
        return;
    c->reading = want;
    if (want && uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) < 0)
        conn_close(c);
    else if (!want)
        uv_read_stop((uv_stream_t *)&c->tcp);
}

void conn_feed(struct net_conn *c, struct str bytes)
{
    if (c->state == CONN_LINGER || c->finishing)
        return;

    if (c->hold || c->held.n) {
        buf_add(&c->held, bytes);
        update_reading(c);
        return;
    }
    if (c->ssl) {
        c->input = bytes;
        tls_feed(c);
        buf_add(&c->held, c->input);
        c->input = STR_NULL;
    } else {
        conn_receive_plain(c, bytes);
    }
    conn_dirty(c);
}

void conn_hold(struct net_conn *c, bool hold)
{
    if (c->hold == hold)
        return;
    c->hold = hold;
    if (!hold && c->state != CONN_CLOSING && !c->finishing) {
        struct buf held = c->held;

        /* Held bytes take the same path as new bytes, which may put the connection on hold
         * again. */
        c->held = BUF_INIT(0);
        /* Runs without held bytes too: OpenSSL may keep decrypted ones. */
        conn_feed(c, buf_str(&held));
        buf_fini(&held);
    }
    update_reading(c);
}

void conn_end_of_input(struct net_conn *c)
{
    c->peer_gone = true;
    update_reading(c);
    if (c->state == CONN_OPEN && c->proto && !c->finishing)
        c->proto->end_of_input(c);
    else
        conn_close(c);
}

/* Plaintext, or TLS without ALPN: the preface identifies HTTP/2 with prior knowledge. */
static bool detect(struct net_conn *c, struct str bytes)
{
    struct str preface = HTTP2_PREFACE, seen;

    buf_add(&c->first, bytes);
    seen = buf_str(&c->first);
    if (seen.n < preface.n && str_has_prefix(preface, seen))
        return false;
    if (str_has_prefix(seen, preface))
        http2_open(c);
    else
        http1_open(c);
    return true;
}

void conn_receive_plain(struct net_conn *c, struct str bytes)
{
    struct buf first;

    if (c->proto) {
        c->proto->receive(c, bytes);
        return;
    }
    if (!detect(c, bytes))
        return;
    first = c->first;
    c->first = BUF_INIT(0);
    c->proto->receive(c, buf_str(&first));
    buf_fini(&first);
}

/* Output. */

bool conn_has_room(const struct net_conn *c)
{
    return c->out.n < NET_OUT_HIGH;
}

static void send_stage(struct net_conn *c)
{
    struct scratch *scratch = c->server->scratch;

    if (scratch->staged)
        tls_write(c, (struct str){scratch->stage, scratch->staged});
    scratch->staged = 0;
}

/* A whole TLS record is usually the first of many: reserves room for the whole flush at once,
 * instead of growing the buffer by copies. */
static void reserve_flush(struct net_conn *c)
{
    if (!c->out.cap)
        buf_reserve(&c->out, NET_OUT_HIGH + 2 * NET_RECORD);
}

/* Small pieces are gathered, so that one TLS record carries many of them; a big piece is encrypted
 * in place. */
void conn_send(struct net_conn *c, struct str bytes)
{
    struct scratch *scratch = c->server->scratch;

    if (!c->ssl) {
        buf_add(&c->out, bytes);
        return;
    }
    while (bytes.n) {
        size_t n = bytes.n / NET_RECORD * NET_RECORD;

        if (!scratch->staged && n) {
            reserve_flush(c);
            tls_write(c, str_sub(bytes, 0, n));
        } else {
            n = NET_RECORD - scratch->staged < bytes.n ? NET_RECORD - scratch->staged : bytes.n;
            memcpy(scratch->stage + scratch->staged, bytes.p, n);
            scratch->staged += n;
            if (scratch->staged == NET_RECORD) {
                reserve_flush(c);
                send_stage(c);
            }
        }
        bytes = str_from(bytes, n);
    }
}

static void written(struct net_conn *c, uint64_t seq)
{
    c->written_seq = seq;
    c->progress_at = conn_now(c);
    c->progress_left = 0;
    conn_acknowledge(c);
}

static void on_write(uv_write_t *req, int status)
{
    struct net_conn *c = req->data;

    assert(c->magic == CONN_MAGIC);
    mem_free(c->writing);
    c->writing = NULL;
    if (c->state == CONN_CLOSING)
        return;
    if (status < 0) {
        conn_close(c);
        return;
    }
    written(c, c->writing_seq);
    conn_dirty(c);
}

static void write_rest(struct net_conn *c, size_t done)
{
    uv_buf_t piece = uv_buf_init(c->out.p + done, (unsigned)(c->out.n - done));

    c->writing = c->out.p;
    c->out = BUF_INIT(0);
    c->writing_seq = c->seq;
    c->progress_left = 0;
    c->write.data = c;
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &piece, 1, on_write) < 0) {
        mem_free(c->writing);
        c->writing = NULL;
        conn_close(c);
    }
}

/* The last piece is tried at once and costs no write request. While more output follows, the
 * completed request triggers the next frames. */
static void write_out(struct net_conn *c, bool more)
{
    int n = 0;

    if (c->writing || !c->out.n || c->state == CONN_CLOSING)
        return;
    if (c->detached) {
        n = (int)c->out.n;
    } else if (!more) {
        uv_buf_t piece = uv_buf_init(c->out.p, (unsigned)c->out.n);

        n = uv_try_write((uv_stream_t *)&c->tcp, &piece, 1);
        if (n < 0 && n != UV_EAGAIN) {
            conn_close(c);
            return;
        }
        n = n < 0 ? 0 : n;
    }
    if ((size_t)n < c->out.n) {
        write_rest(c, (size_t)n);
        return;
    }
    buf_fini(&c->out);
    written(c, c->seq);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    struct net_conn *c = req->data;

    if (status < 0 && c->state != CONN_CLOSING)
        conn_close(c);
}

/* All output is written: shuts down our half and waits for the peer's. Closing at once with unread
 * bytes in the kernel would reset the connection and destroy the last answer. */
static void linger(struct net_conn *c)
{
    if (c->ssl && !c->broken) {
        c->broken = true;
        ERR_clear_error();
        SSL_shutdown(c->ssl);
        write_out(c, false);
        if (c->writing || c->state == CONN_CLOSING)
            return;
    }
    if (c->peer_gone || c->detached) {
        conn_close(c);
        return;
    }
    c->state = CONN_LINGER;
    c->since = conn_now(c);
    buf_fini(&c->held);
    c->hold = false;
    c->shutdown.data = c;
    if (uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, on_shutdown) < 0)
        conn_close(c);
}

void conn_flush(struct net_conn *c)
{
    bool more;

    if (c->state == CONN_CLOSING)
        return;
    c->seq++;
    if (c->state == CONN_OPEN && c->proto && !c->broken) {
        c->proto->pump(c);
        send_stage(c);
    }
    more = !conn_has_room(c);
    write_out(c, more);

    if (c->state == CONN_OPEN && c->proto && !c->finishing)
        c->proto->settle(c);
    if (c->finishing && c->state <= CONN_OPEN && !c->out.n && !c->writing)
        linger(c);
    update_reading(c);
    update_class(c);
}

void conn_dirty(struct net_conn *c)
{
    struct net_server *s = c->server;

    if (c->dirty || c->state == CONN_CLOSING)
        return;
    c->dirty = true;
    uv_idle_start(&s->again, net_server_on_again);
    TAILQ_INSERT_TAIL(&s->dirty, c, in_dirty);
}

void conn_finish(struct net_conn *c)
{
    c->finishing = true;
    conn_dirty(c);
}

void conn_goodbye(struct net_conn *c)
{
    if (c->goodbye_sent || c->state == CONN_CLOSING)
        return;
    c->goodbye_sent = true;
    if (c->proto)
        c->proto->goodbye(c);
    else
        conn_close(c);
    conn_dirty(c);
}

/* Time. */

static bool output_stalled(struct net_conn *c, int64_t now)
{
    size_t left = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp);

    if (!c->writing || c->patient)
        return false;
    if (left != c->progress_left) {
        c->progress_left = left;
        c->progress_at = now;
    }
    return now - c->progress_at >= c->server->options.stalled_ms;
}

static bool exchange_late(const struct net_exchange *x, int64_t now)
{
    int64_t age = now - x->since;
    int64_t timeout, allowed;

    if (x->discarding)
        return age >= NET_LINGER_MS;
    if (x->state == X_HEAD && x->conn->http2)
        return age >= x->conn->server->options.header_timeout_ms;

    /* An announced body must neither pause for long nor arrive slower than the minimum rate. */
    timeout = x->conn->server->options.body_timeout_ms;
    allowed = timeout + (int64_t)x->body.n * 1000 / NET_MIN_RATE;
    return x->state == X_BODY && (now - x->last_byte >= timeout || now - x->since >= allowed);
}

static bool answer_stalled(const struct net_exchange *x, int64_t now)
{
    return x->backlogged && !x->patient &&
           now - x->progress_at >= x->conn->server->options.stalled_ms;
}

void conn_sweep(struct net_conn *c, int64_t now)
{
    const struct net_options *o = &c->server->options;
    bool late;

    if (c->state == CONN_LINGER)
        late = now - c->since >= NET_LINGER_MS;
    else
        late = c->since && now - c->since >= o->header_timeout_ms;

    if (late || output_stalled(c, now)) {
        conn_close(c);
    } else if (c->proto) {
        struct net_exchange *x;

        TAILQ_FOREACH(x, &c->exchanges, in_conn)
        {
            if (exchange_late(x, now) || answer_stalled(x, now))
                net_abort(x);
        }
    }
}

/* Start. */

/* Detects a peer that vanished without closing: it is probed when idle, and given up when it
 * acknowledges nothing. */
static void watch_peer(struct net_conn *c)
{
    unsigned timeout = (unsigned)c->server->options.stalled_ms;
    int interval = 15, count = 5;
    uv_os_fd_t fd;

    uv_tcp_nodelay(&c->tcp, 1);
    uv_tcp_keepalive(&c->tcp, 1, 60);
    if (uv_fileno((uv_handle_t *)&c->tcp, &fd) < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

/* The kernel counts probes of a closed window as unacknowledged: this stops it from giving up as
 * well. */
void conn_be_patient(struct net_conn *c)
{
    unsigned never = 0;
    uv_os_fd_t fd;

    if (c->patient || c->detached)
        return;
    c->patient = true;
    if (uv_fileno((uv_handle_t *)&c->tcp, &fd) == 0)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof(never));
}

void conn_start(struct net_conn *c)
{
    c->tcp.data = c;
    watch_peer(c);
    if (c->server->tls) {
        c->state = CONN_HANDSHAKE;
        tls_attach(c);
    }
    update_reading(c);
    update_class(c);
}
