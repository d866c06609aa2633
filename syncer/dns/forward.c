/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges with other resolvers. Must never accept an answer unless its server, its port, its id
 * and its question section match the query (RFC 5452).
 *
 *   UDP --answer--------------------------------> finished: waiters, cache
 *    |  '-- truncated --> TCP --answer----------^
 *    |                     '-- broken, late --.
 *    '-- late, refused, failed ---------------+--> the next server, with a new port and id: UDP
 *                                             '--> none is left: finished, without an answer */
#include "forward.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/hash.h>

#define FORWARDER_MAGIC 0x64666f72u
#define EXCHANGE_MAGIC  0x64657863u

enum { ATTEMPTS = 3, ATTEMPT_MS = 1500, MISMATCHES_MAX = 16, BIND_TRIES = 8, PORT_LOW = 10000 };
enum { KEY_MAX = DNS_NAME_MAX + 3 + sizeof(void *), UDP_ROOM = 4096 };

TAILQ_HEAD(waits, dns_wait);

/* One attempt has a socket of its own, so that each has another port. */
struct attempt {
    struct dns_exchange *exchange; /* NULL: it is over */
    struct dns_forwarder *forwarder;
    union {
        uv_handle_t handle;
        uv_udp_t udp;
        uv_tcp_t tcp;
    } u;
    uv_connect_t connect;
    uv_write_t write;
    struct buf out, in; /* of TCP */
};

struct dns_exchange {
    unsigned magic;
    struct map_entry entry;
    char key[KEY_MAX];
    struct dns_forwarder *forwarder;
    struct dns_query query;
    const struct dns_upstream *upstream;
    struct attempt *attempt;
    uv_timer_t timer;
    size_t server; /* index of the one being queried */
    unsigned attempts, mismatches;
    uint16_t id;
    struct waits waits;
};

struct dns_forwarder {
    unsigned magic;
    uv_loop_t *loop;
    const struct clock *clock;
    const struct rng *rng;
    struct dns_cache *cache;
    struct map exchanges; /* by query and upstream */
    size_t handles;       /* not closed yet */
    size_t first;         /* the server that answered last, which is tried first */
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
    char room[UDP_ROOM]; /* read buffer of all sockets; consumed within the read callback */
};

static void try_next_server(struct dns_exchange *x);
static void on_late(uv_timer_t *timer);

/* --- handles --- */

static void maybe_closed(struct dns_forwarder *f)
{
    void (*closed)(void *ctx) = f->closed;
    void *ctx = f->closed_ctx;

    if (!f->closing || f->handles)
        return;
    dns_cache_free(f->cache);
    f->magic = 0;
    mem_free(f);
    closed(ctx);
}

static void on_attempt_closed(uv_handle_t *handle)
{
    struct attempt *t = handle->data;
    struct dns_forwarder *f = t->forwarder;

    buf_fini(&t->out);
    buf_fini(&t->in);
    mem_free(t);
    f->handles--;
    maybe_closed(f);
}

static void end_attempt(struct dns_exchange *x)
{
    struct attempt *t = x->attempt;

    if (!t)
        return;
    x->attempt = NULL;
    t->exchange = NULL;
    uv_close(&t->u.handle, on_attempt_closed);
}

static struct attempt *new_attempt(struct dns_exchange *x)
{
    struct attempt *t = NEW(struct attempt);

    end_attempt(x);
    *t = (struct attempt){.exchange = x,
                          .forwarder = x->forwarder,
                          .out = BUF_INIT(DNS_UDP_PLAIN),
                          .in = BUF_INIT(DNS_TCP_MAX + 2)};
    x->attempt = t;
    x->forwarder->handles++;
    return t;
}

static void on_exchange_closed(uv_handle_t *handle)
{
    struct dns_exchange *x = handle->data;
    struct dns_forwarder *f = x->forwarder;

    assert(x->magic == EXCHANGE_MAGIC);
    x->magic = 0;
    mem_free(x);
    f->handles--;
    maybe_closed(f);
}

/* No query can join it any more; freed when its timer is closed. */
static void close_exchange(struct dns_exchange *x)
{
    end_attempt(x);
    map_remove(&x->forwarder->exchanges, &x->entry);
    uv_close((uv_handle_t *)&x->timer, on_exchange_closed);
}

/* --- results --- */

static void copy_answer(const struct dns_answer *from, struct dns_answer *to)
{
    *to = *from;
    to->answer = ldns_rr_list_clone(from->answer);
    to->authority = ldns_rr_list_clone(from->authority);
    to->additional = ldns_rr_list_new();
    to->answer =
        to->answer ? to->answer : ldns_rr_list_new(); /* ldns clones an empty one as NULL */
    to->authority = to->authority ? to->authority : ldns_rr_list_new();
}

/* answer NULL: no resolver answered. */
static void finish(struct dns_exchange *x, struct dns_answer *answer)
{
    struct dns_forwarder *f = x->forwarder;
    struct waits waits = TAILQ_HEAD_INITIALIZER(waits);
    struct dns_wait *w;

    TAILQ_CONCAT(&waits, &x->waits, place);
    if (answer) {
        f->first = x->server;
        dns_cache_put(f->cache, &x->query, answer, clock_mono_ms(f->clock));
    }
    TAILQ_FOREACH(w, &waits, place) w->exchange = NULL;
    close_exchange(x);
    while ((w = TAILQ_FIRST(&waits))) {
        struct dns_answer copy;

        TAILQ_REMOVE(&waits, w, place);
        if (answer)
            copy_answer(answer, &copy);
        w->done(w, answer ? &copy : NULL);
    }
    if (answer)
        dns_answer_fini(answer);
}

/* An answer is final, unless it is a failure and another server is left. */
static void settle(struct dns_exchange *x, struct dns_answer *answer)
{
    bool failed = answer->rcode != LDNS_RCODE_NOERROR && answer->rcode != LDNS_RCODE_NXDOMAIN;

    if (failed && x->upstream->n > 1 && x->attempts < ATTEMPTS) {
        dns_answer_fini(answer);
        try_next_server(x);
        return;
    }
    finish(x, answer);
}

/* --- TCP --- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct attempt *t = handle->data;

    (void)suggested;
    *buf = uv_buf_init(t->forwarder->room, sizeof(t->forwarder->room));
}

/* The message after its length; STR_NULL while it is incomplete. */
static struct str whole_message(const struct buf *in)
{
    const uint8_t *b = (const uint8_t *)in->p;
    size_t n = in->n < 2 ? DNS_TCP_MAX : (size_t)(b[0] << 8 | b[1]);

    return in->n < n + 2 ? STR_NULL : (struct str){in->p + 2, n};
}

static void on_tcp_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct attempt *t = stream->data;
    struct dns_exchange *x = t->exchange;
    struct dns_answer answer;
    struct str message;
    bool cut;

    if (!x || nread == 0)
        return;
    if (nread > 0)
        buf_add(&t->in, (struct str){buf->base, (size_t)nread});
    message = whole_message(&t->in);
    if (message.p && dns_answer_parse(message, &x->query, x->id, &answer, &cut))
        settle(x, &answer);
    else if (nread < 0 || message.p || t->in.failed)
        try_next_server(x);
}

static void on_tcp_written(uv_write_t *w, int status)
{
    struct attempt *t = w->data;

    if (t->exchange && status)
        try_next_server(t->exchange);
}

static void on_tcp_connected(uv_connect_t *c, int status)
{
    struct attempt *t = c->data;
    uv_buf_t out = uv_buf_init(t->out.p, (unsigned)t->out.n);

    if (!t->exchange)
        return;
    t->write.data = t;
    if (status || uv_read_start((uv_stream_t *)&t->u.tcp, on_alloc, on_tcp_read) ||
        uv_write(&t->write, (uv_stream_t *)&t->u.tcp, &out, 1, on_tcp_written))
        try_next_server(t->exchange);
}

static void send_over_tcp(struct dns_exchange *x)
{
    struct attempt *t = new_attempt(x);
    struct sockaddr_storage to;
    struct buf query = BUF_INIT(DNS_UDP_PLAIN);

    uv_tcp_init(x->forwarder->loop, &t->u.tcp);
    t->u.handle.data = t;
    t->connect.data = t;
    uv_timer_start(&x->timer, on_late, ATTEMPT_MS, 0);
    x->id = (uint16_t)rng_u64(x->forwarder->rng);
    dns_query_print(&x->query, x->id, &query);
    buf_char(&t->out, (char)(query.n >> 8));
    buf_char(&t->out, (char)(query.n & 255));
    buf_add(&t->out, buf_str(&query));
    buf_fini(&query);
    dns_endpoint_sockaddr(&x->upstream->servers[x->server], &to);
    if (uv_tcp_connect(&t->connect, &t->u.tcp, (const struct sockaddr *)&to, on_tcp_connected))
        try_next_server(x);
}

/* --- UDP --- */

static void on_udp_read(uv_udp_t *udp, ssize_t nread, const uv_buf_t *buf,
                        const struct sockaddr *from, unsigned flags)
{
    struct attempt *t = udp->data;
    struct dns_exchange *x = t->exchange;
    struct dns_answer answer;
    bool cut;

    if (!x || (nread == 0 && !from))
        return;
    if (nread < 0) { /* no resolver listens there */
        try_next_server(x);
    } else if (flags & UV_UDP_PARTIAL || !dns_answer_parse((struct str){buf->base, (size_t)nread},
                                                           &x->query, x->id, &answer, &cut)) {
        if (++x->mismatches > MISMATCHES_MAX) /* a spoofing attempt */
            try_next_server(x);
    } else if (cut) {
        dns_answer_fini(&answer);
        send_over_tcp(x);
    } else {
        settle(x, &answer);
    }
}

/* A random port; after BIND_TRIES that are in use, one of the kernel's choice. */
static int bind_anywhere(struct dns_exchange *x, uv_udp_t *udp, int family)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    for (int i = 0; i <= BIND_TRIES; i++) {
        uint64_t random = rng_u64(x->forwarder->rng);
        uint16_t port = (uint16_t)(PORT_LOW + random % (65536 - PORT_LOW));

        v4.sin_port = v6.sin6_port = htons(i < BIND_TRIES ? port : 0);
        if (!uv_udp_bind(
                udp,
                family == AF_INET ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6, 0))
            return 0;
    }
    return -1;
}

static void send_over_udp(struct dns_exchange *x)
{
    struct attempt *t = new_attempt(x);
    struct sockaddr_storage to;
    uv_buf_t out;

    uv_udp_init(x->forwarder->loop, &t->u.udp);
    t->u.handle.data = t;
    x->id = (uint16_t)rng_u64(x->forwarder->rng);
    dns_query_print(&x->query, x->id, &t->out);
    dns_endpoint_sockaddr(&x->upstream->servers[x->server], &to);
    out = uv_buf_init(t->out.p, (unsigned)t->out.n);
    /* Connected: the kernel drops datagrams of other senders. A failure to send counts as a lost
     * datagram: the timer tries the next server. */
    if (!bind_anywhere(x, &t->u.udp, to.ss_family) &&
        !uv_udp_connect(&t->u.udp, (const struct sockaddr *)&to) &&
        !uv_udp_recv_start(&t->u.udp, on_alloc, on_udp_read))
        uv_udp_try_send(&t->u.udp, &out, 1, NULL);
}

static void on_late(uv_timer_t *timer)
{
    struct dns_exchange *x = timer->data;

    assert(x->magic == EXCHANGE_MAGIC);
    try_next_server(x);
}

static void try_next_server(struct dns_exchange *x)
{
    if (x->attempts++ == ATTEMPTS) {
        finish(x, NULL);
        return;
    }
    x->server = (x->server + 1) % x->upstream->n;
    x->mismatches = 0;
    uv_timer_start(&x->timer, on_late, ATTEMPT_MS, 0);
    send_over_udp(x);
}

/* --- interface --- */

static struct str key_of(const struct dns_query *q, const struct dns_upstream *upstream,
                         char room[KEY_MAX])
{
    size_t n = q->name.n;

    memcpy(room, q->name.b, n);
    room[n++] = (char)(q->type >> 8);
    room[n++] = (char)(q->type & 255);
    room[n++] = (char)(q->dnssec_ok | q->checking_disabled << 1);
    memcpy(room + n, &upstream, sizeof(upstream));
    return (struct str){room, n + sizeof(upstream)};
}

static struct dns_exchange *exchange_new(struct dns_forwarder *f, const struct dns_query *q,
                                         const struct dns_upstream *upstream)
{
    struct dns_exchange *x = NEW(struct dns_exchange);

    *x = (struct dns_exchange){
        .magic = EXCHANGE_MAGIC, .forwarder = f, .query = *q, .upstream = upstream};
    TAILQ_INIT(&x->waits);
    x->server =
        (f->first + upstream->n - 1) % upstream->n; /* try_next_server() takes the next one */
    uv_timer_init(f->loop, &x->timer);
    x->timer.data = x;
    f->handles++;
    map_put(&f->exchanges, &x->entry, key_of(q, upstream, x->key));
    return x;
}

bool dns_forwarder_recall(struct dns_forwarder *f, const struct dns_query *q,
                          struct dns_answer *ret)
{
    return dns_cache_get(f->cache, q, clock_mono_ms(f->clock), ret);
}

bool dns_forwarder_send(struct dns_forwarder *f, const struct dns_query *q,
                        const struct dns_upstream *upstream, struct dns_wait *w)
{
    char room[KEY_MAX];
    struct map_entry *e = map_get(&f->exchanges, key_of(q, upstream, room));
    struct dns_exchange *x = e ? CONTAINER(e, struct dns_exchange, entry) : NULL;

    assert(f->magic == FORWARDER_MAGIC && !f->closing);
    if (!x) {
        if (map_count(&f->exchanges) >= DNS_EXCHANGES_MAX)
            return false;
        x = exchange_new(f, q, upstream);
        try_next_server(x);
    }
    w->exchange = x;
    TAILQ_INSERT_TAIL(&x->waits, w, place);
    return true;
}

void dns_forwarder_forget(struct dns_wait *w)
{
    if (w->exchange)
        TAILQ_REMOVE(&w->exchange->waits, w, place);
    w->exchange = NULL;
}

/* --- opening and closing --- */

struct dns_forwarder *dns_forwarder_new(uv_loop_t *loop, const struct clock *clock,
                                        const struct rng *rng, size_t cache_bytes)
{
    struct dns_forwarder *f = NEW(struct dns_forwarder);

    *f = (struct dns_forwarder){.magic = FORWARDER_MAGIC, .loop = loop, .clock = clock, .rng = rng};
    f->cache = dns_cache_new(cache_bytes);
    return f;
}

const struct dns_cache *dns_forwarder_cache(const struct dns_forwarder *f)
{
    return f->cache;
}

static void close_one(void *ctx, struct map_entry *e)
{
    struct dns_exchange *x = CONTAINER(e, struct dns_exchange, entry);

    (void)ctx;
    assert(TAILQ_EMPTY(&x->waits));
    close_exchange(x);
}

static void on_nothing_closed(uv_handle_t *handle)
{
    struct dns_forwarder *f = handle->data;

    mem_free(handle);
    f->handles--;
    maybe_closed(f);
}

/* Calls closed() from the loop, also when nothing is open. */
void dns_forwarder_close(struct dns_forwarder *f, void (*closed)(void *ctx), void *ctx)
{
    uv_timer_t *turn = NEW(uv_timer_t);

    f->closing = true;
    f->closed = closed;
    f->closed_ctx = ctx;
    map_each(&f->exchanges, close_one, NULL);
    uv_timer_init(f->loop, turn);
    turn->data = f;
    f->handles++;
    uv_close((uv_handle_t *)turn, on_nothing_closed);
}
