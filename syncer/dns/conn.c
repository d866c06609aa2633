/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections of clients (RFC 7766): length-prefixed messages, several pending, answered in any
 * order. Must never buffer more than one incomplete message, nor read while AWAITED_MAX answers are
 * pending. */
#include "server.h"

#include <assert.h>
#include <string.h>

#define CONN_MAGIC 0x64636f6eu

enum { CONNS_MAX = 64, CONNS_EACH = 8, IDLE_MS = 10000, AWAITED_MAX = 16, BACKLOG_BYTES = 1 << 18 };

struct dns_conn {
    unsigned magic;
    TAILQ_ENTRY(dns_conn) place;
    struct dns *server;
    uv_tcp_t tcp;
    uv_timer_t idle;
    struct dns_ip ip;
    struct buf in;
    unsigned awaited, handles;
    bool closing, paused, reading;
};

struct out {
    uv_write_t write;
    struct str bytes;
};

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf);

/* --- closing --- */

static void maybe_free(struct dns_conn *c)
{
    struct dns *d = c->server;

    if (c->handles || c->awaited)
        return;
    buf_fini(&c->in);
    c->magic = 0;
    mem_free(c);
    dns_handle_closed(d);
}

static void on_closed(uv_handle_t *handle)
{
    struct dns_conn *c = handle->data;

    assert(c->magic == CONN_MAGIC);
    c->handles--;
    maybe_free(c);
}

void dns_conn_close(struct dns_conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    TAILQ_REMOVE(&c->server->conns, c, place);
    c->server->n_conns--;
    uv_close((uv_handle_t *)&c->tcp, on_closed);
    uv_close((uv_handle_t *)&c->idle, on_closed);
}

static void on_idle(uv_timer_t *timer)
{
    dns_conn_close(timer->data);
}

static void stay(struct dns_conn *c)
{
    uv_timer_start(&c->idle, on_idle, IDLE_MS, 0);
}

/* --- reading --- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct dns_conn *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init(c->server->room, sizeof(c->server->room));
}

static bool take_message(struct dns_conn *c)
{
    const uint8_t *b = (const uint8_t *)c->in.p;
    struct dns_reply to = {.conn = c};
    size_t n;

    if (c->in.n < 2)
        return false;
    n = (size_t)(b[0] << 8 | b[1]);
    if (n > DNS_QUERY_MAX) {
        dns_conn_close(c);
        return false;
    }
    if (c->in.n < n + 2)
        return false;
    dns_handle(c->server, (struct str){c->in.p + 2, n}, &c->ip, &to);
    buf_drop(&c->in, n + 2);
    return true;
}

/* An immediate answer calls this again from take_message(): the outer call's loop continues. */
static void go_on(struct dns_conn *c)
{
    if (c->reading)
        return;
    c->reading = true;
    while (!c->closing && c->awaited < AWAITED_MAX && take_message(c))
        ;
    c->reading = false;
    if (c->closing)
        return;
    if (c->awaited < AWAITED_MAX && c->paused) {
        c->paused = false;
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    } else if (c->awaited >= AWAITED_MAX && !c->paused) {
        c->paused = true;
        uv_read_stop((uv_stream_t *)&c->tcp);
    }
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct dns_conn *c = stream->data;

    assert(c->magic == CONN_MAGIC);
    if (nread == 0 || c->closing)
        return;
    if (nread < 0 || !dns_client_is_known(&c->server->view, &c->ip)) {
        dns_conn_close(c);
        return;
    }
    stay(c);
    buf_add(&c->in, (struct str){buf->base, (size_t)nread});
    if (c->in.failed)
        dns_conn_close(c);
    else
        go_on(c);
}

/* --- writing --- */

static void on_written(uv_write_t *write, int status)
{
    struct out *out = write->data;
    struct dns_conn *c = write->handle->data;

    mem_free(out->bytes.p);
    mem_free(out);
    if (status)
        dns_conn_close(c);
}

/* Closes the connection of a client that does not read its answers. */
void dns_conn_send(struct dns_conn *c, struct str message)
{
    struct out *out;
    char *bytes;
    uv_buf_t part;

    if (c->closing)
        return;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp) > BACKLOG_BYTES) {
        dns_conn_close(c);
        return;
    }
    bytes = mem_alloc(message.n + 2);
    bytes[0] = (char)(message.n >> 8);
    bytes[1] = (char)(message.n & 255);
    memcpy(bytes + 2, message.p, message.n);
    out = NEW(struct out);
    out->bytes = (struct str){bytes, message.n + 2};
    out->write.data = out;
    part = uv_buf_init(bytes, (unsigned)out->bytes.n);
    if (uv_write(&out->write, (uv_stream_t *)&c->tcp, &part, 1, on_written)) {
        mem_free(out->bytes.p);
        mem_free(out);
        dns_conn_close(c);
    }
}

void dns_conn_hold(struct dns_conn *c)
{
    c->awaited++;
}

void dns_conn_release(struct dns_conn *c)
{
    c->awaited--;
    if (!c->closing) {
        stay(c);
        go_on(c);
    } else {
        maybe_free(c);
    }
}

/* --- accepting --- */

static bool may_stay(struct dns_conn *c)
{
    struct dns *d = c->server;
    struct sockaddr_storage peer;
    int n = sizeof(peer);
    size_t same = 0;
    struct dns_conn *other;

    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&peer, &n))
        return false;
    dns_ip_of((const struct sockaddr *)&peer, &c->ip);
    TAILQ_FOREACH(other, &d->conns, place) same += dns_ip_eq(&other->ip, &c->ip);
    if (!dns_client_is_known(&d->view, &c->ip)) {
        d->counts[COUNT_STRANGER]++;
        return false;
    }
    return d->n_conns < CONNS_MAX && same <= CONNS_EACH; /* both count this connection */
}

void dns_conn_accept(struct dns *d)
{
    struct dns_conn *c = NEW(struct dns_conn);

    *c = (struct dns_conn){
        .magic = CONN_MAGIC, .server = d, .handles = 2, .in = BUF_INIT(2 * DNS_QUERY_MAX + 4)};
    uv_tcp_init(d->o.loop, &c->tcp);
    uv_timer_init(d->o.loop, &c->idle);
    c->tcp.data = c->idle.data = c;
    d->handles++;
    TAILQ_INSERT_TAIL(&d->conns, c, place);
    d->n_conns++;
    if (uv_accept((uv_stream_t *)&d->tcp, (uv_stream_t *)&c->tcp) || !may_stay(c)) {
        dns_conn_close(c);
        return;
    }
    stay(c);
    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}
