/* SPDX-License-Identifier: Apache-2.0
 *
 * The listening socket, the limits of all connections together, and time. Why: an idle tenant must
 * cost no CPU, so there is one timer for all connections: it ticks while a peer or the handler is
 * awaited, otherwise sleeps until the oldest idle connection is due, and is off without
 * connections. Must never accept beyond max_connections, and never free itself before all handles
 * are closed. */
#include "server.h"

#include <assert.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <sublet/clock.h>

#define BACKLOG         1024
#define SWEEP_MS        1000
#define MAX_CONNECTIONS 4096u
#define SILENT_MS       1000 /* without a header, when there is no room */

#define DEFAULT(field, value)                                                                      \
    do {                                                                                           \
        if (!(field))                                                                              \
            (field) = (value);                                                                     \
    } while (0)

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* At most half of our file descriptors: the others are for the store, the host and streams to it,
 * and for accepting the connection that an idle one makes room for. */
static unsigned default_connections(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur / 2 >= MAX_CONNECTIONS)
        return MAX_CONNECTIONS;
    return files.rlim_cur > 2 ? (unsigned)(files.rlim_cur / 2) : 1;
}

static void on_prepare(uv_prepare_t *handle)
{
    struct net_server *s = handle->data;
    struct conn_list batch = TAILQ_HEAD_INITIALIZER(batch);
    struct net_conn *c;

    assert(s->magic == SERVER_MAGIC);
    /* A connection that becomes dirty meanwhile waits for the next iteration: none starves the
     * others. */
    TAILQ_CONCAT(&batch, &s->dirty, in_dirty);
    while ((c = TAILQ_FIRST(&batch)) != NULL) {
        TAILQ_REMOVE(&batch, c, in_dirty);
        c->dirty = false;
        conn_flush(c);
    }
    if (TAILQ_EMPTY(&s->dirty))
        uv_idle_stop(&s->again);
}

void net_server_on_again(uv_idle_t *handle)
{
    (void)handle; /* the active handle keeps the loop awake */
}

struct net_server *net_server_new(uv_loop_t *loop, const struct net_options *options)
{
    struct net_server *s = NEW(struct net_server);
    int64_t ms;

    s->magic = SERVER_MAGIC;
    s->loop = loop;
    s->options = *options;
    s->options.tls = NULL;

    DEFAULT(s->options.max_body, (3u << 20) + (64u << 10));
    DEFAULT(s->options.max_header_bytes, 64u << 10);
    DEFAULT(s->options.max_connections, default_connections());
    DEFAULT(s->options.max_streams, 250u);
    DEFAULT(s->options.max_requests, 2000u);
    DEFAULT(s->options.header_timeout_ms, 10000);
    DEFAULT(s->options.body_timeout_ms, 60000);
    DEFAULT(s->options.idle_timeout_ms, 180000);
    DEFAULT(s->options.stalled_ms, 60000);

    /* Once a second, or finer when a configured timeout is shorter. */
    ms = min_i64(min_i64(s->options.header_timeout_ms, s->options.body_timeout_ms),
                 min_i64(s->options.idle_timeout_ms, s->options.stalled_ms));
    ms = min_i64(ms / 2, SWEEP_MS);
    s->sweep_ms = ms < 10 ? 10 : ms;

    TAILQ_INIT(&s->conns);
    TAILQ_INIT(&s->busy);
    TAILQ_INIT(&s->idle);
    TAILQ_INIT(&s->dirty);
    uv_tcp_init(loop, &s->listener);
    uv_prepare_init(loop, &s->prepare);
    uv_idle_init(loop, &s->again);
    uv_timer_init(loop, &s->sweep);
    s->listener.data = s->prepare.data = s->again.data = s->sweep.data = s;
    s->handles = 4;
    uv_prepare_start(&s->prepare, on_prepare);
    uv_unref((uv_handle_t *)&s->prepare);
    uv_unref((uv_handle_t *)&s->again);
    return s;
}

struct str net_server_date(struct net_server *s)
{
    int64_t now = clock_wall_s(&CLOCK_SYSTEM);
    time_t t = (time_t)now;
    struct tm tm;

    if (now != s->date_at) {
        gmtime_r(&t, &tm);
        strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        s->date_at = now;
    }
    return str_c(s->date);
}

/* The sweep. */

static void on_sweep(uv_timer_t *timer);

static void start_sweep(struct net_server *s, int mode, int64_t after)
{
    s->sweep_mode = mode;
    uv_timer_start(&s->sweep, on_sweep, (uint64_t)(after < s->sweep_ms ? s->sweep_ms : after), 0);
}

static void schedule_sweep(struct net_server *s)
{
    int64_t now = (int64_t)uv_now(s->loop);
    struct net_conn *oldest = TAILQ_FIRST(&s->idle);

    if (!TAILQ_EMPTY(&s->busy) || (s->closing && s->n_conns))
        start_sweep(s, SWEEP_FAST, s->sweep_ms);
    else if (oldest && !s->closing)
        start_sweep(s, SWEEP_SLOW, oldest->idle_since + s->options.idle_timeout_ms - now);
    else
        s->sweep_mode = SWEEP_OFF;
}

void net_server_need_sweep(struct net_server *s, enum conn_class class)
{
    if (s->closing)
        return;
    if ((class == CLASS_BUSY && s->sweep_mode != SWEEP_FAST) ||
        (class == CLASS_IDLE && s->sweep_mode == SWEEP_OFF))
        schedule_sweep(s);
}

static void close_all(struct net_server *s)
{
    struct net_conn *c;

    TAILQ_FOREACH(c, &s->conns, in_server)
    {
        conn_close(c);
    }
}

static void on_sweep(uv_timer_t *timer)
{
    struct net_server *s = timer->data;
    int64_t now = (int64_t)uv_now(s->loop);
    struct net_conn *c, *idle;

    assert(s->magic == SERVER_MAGIC);

    c = TAILQ_FIRST(&s->busy);
    while (c) {
        struct net_conn *next = TAILQ_NEXT(c, in_class);

        conn_sweep(c, now);
        c = next;
    }

    idle = TAILQ_FIRST(&s->idle);
    while (idle && now - idle->idle_since >= s->options.idle_timeout_ms) {
        struct net_conn *next = TAILQ_NEXT(idle, in_class);

        conn_goodbye(idle);
        idle = next;
    }
    if (s->closing && now >= s->close_by)
        close_all(s);
    schedule_sweep(s);
}

/* Accepting. */

static void on_refused(uv_handle_t *handle)
{
    mem_free(handle);
}

/* The oldest idle connection makes room; its GOAWAY is sent before it closes. */
static bool make_room(struct net_server *s)
{
    struct net_conn *oldest;

    if (s->n_conns < s->options.max_connections)
        return true;
    oldest = TAILQ_FIRST(&s->idle);
    if (!oldest) {
        /* A connection that has sent no whole header for SILENT_MS; otherwise many such connections
         * would keep all others out. */
        int64_t now = (int64_t)uv_now(s->loop);

        TAILQ_FOREACH(oldest, &s->busy, in_class)
        {
            if (oldest->state != CONN_LINGER && oldest->since && !oldest->n_exchanges &&
                now - oldest->since >= SILENT_MS)
                break;
        }
    }
    if (!oldest)
        return false;
    conn_goodbye(oldest);
    conn_flush(oldest);
    conn_close(oldest);
    return true;
}

static void describe_peer(struct net_conn *c)
{
    struct sockaddr_storage address;
    char host[INET6_ADDRSTRLEN];
    struct buf text = BUF_INIT(sizeof(c->peer) - 1);
    int n = (int)sizeof(address);
    bool v6;

    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&address, &n) < 0)
        return;
    v6 = address.ss_family == AF_INET6;
    if (v6)
        uv_ip6_name((struct sockaddr_in6 *)&address, host, sizeof(host));
    else
        uv_ip4_name((struct sockaddr_in *)&address, host, sizeof(host));
    buf_printf(&text, v6 ? "[%s]:%u" : "%s:%u", host,
               ntohs(v6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                        : ((struct sockaddr_in *)&address)->sin_port));
    memcpy(c->peer, text.p, text.n);
    buf_fini(&text);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct net_server *s = listener->data;
    struct net_conn *c;

    assert(s->magic == SERVER_MAGIC);
    if (status < 0 || s->closing)
        return;
    if (!make_room(s)) {
        uv_tcp_t *tcp = NEW(uv_tcp_t);

        s->refused++;
        uv_tcp_init(s->loop, tcp);
        uv_accept((uv_stream_t *)&s->listener, (uv_stream_t *)tcp);
        uv_close((uv_handle_t *)tcp, on_refused);
        return;
    }
    s->accepted++;
    c = conn_new(s);
    uv_tcp_init(s->loop, &c->tcp);
    c->tcp.data = c;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) < 0) {
        conn_close(c);
        return;
    }
    describe_peer(c);
    conn_start(c);
}

/* Listening. */

/* "host:port", "[v6]:port", ":port" (every address). */
static bool split_address(struct str address, char *host, size_t room, uint64_t *ret_port)
{
    size_t colon = str_rfind(address, ':');
    struct str name = str_sub(address, 0, colon);

    if (colon >= address.n || !str_to_u64(str_from(address, colon + 1), ret_port) ||
        *ret_port > 65535)
        return false;
    if (name.n >= 2 && name.p[0] == '[' && name.p[name.n - 1] == ']')
        name = str_sub(name, 1, name.n - 2);
    if (!name.n)
        name = STR("::");
    if (name.n >= room)
        return false;
    memcpy(host, name.p, name.n);
    host[name.n] = '\0';
    return true;
}

static int resolve_address(struct str address, struct sockaddr_storage *ret, struct err *err)
{
    char host[INET6_ADDRSTRLEN + 1];
    uint64_t port;

    if (split_address(address, host, sizeof(host), &port)) {
        if (uv_ip4_addr(host, (int)port, (struct sockaddr_in *)ret) == 0 ||
            uv_ip6_addr(host, (int)port, (struct sockaddr_in6 *)ret) == 0)
            return 0;
    }
    return err_set(err, &ERR_BAD_REQUEST, "listen address \"%.*s\" is not IP:port", STR_F(address));
}

static int start_listening(struct net_server *s, struct err *err)
{
    struct sockaddr_storage address;
    int status;

    memset(&address, 0, sizeof(address));
    if (resolve_address(s->options.address, &address, err) < 0)
        return -1;
    status = uv_tcp_bind(&s->listener, (struct sockaddr *)&address, 0);
    if (status == 0)
        status = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
    if (status < 0)
        return err_set(err, &ERR_UNAVAILABLE, "listen on %.*s: %s", STR_F(s->options.address),
                       uv_strerror(status));
    s->listening = true;
    return 0;
}

bool net_is_loopback(struct str address)
{
    return str_has_prefix(address, STR("127.")) || str_has_prefix(address, STR("[::1]:"));
}

/* Requests are judged by the certificate of their connection, and streams when they begin. */
static void close_distrusted(struct net_server *s)
{
    struct net_conn *c;

    TAILQ_FOREACH(c, &s->conns, in_server)
    {
        if (!tls_peer_is_trusted(c))
            conn_close(c);
    }
}

int net_set_tls(struct net_server *s, const struct net_tls *tls, struct err *err)
{
    SSL_CTX *ctx = tls_context(tls, err);

    if (!ctx)
        return -1;
    SSL_CTX_free(s->tls); /* connections hold their own reference */
    s->tls = ctx;
    if (!s->bio)
        s->bio = tls_bio_method();
    close_distrusted(s);
    return 0;
}

int net_listen(struct uv_loop_s *loop, const struct net_options *options, struct net_server **ret,
               struct err *err)
{
    struct net_server *s = net_server_new(loop, options);

    if ((options->tls && net_set_tls(s, options->tls, err) < 0) || start_listening(s, err) < 0) {
        net_close(s, 0, NULL, NULL);
        return -1;
    }
    s->options.address = STR_NULL; /* the caller's memory */
    *ret = s;
    return 0;
}

unsigned net_port(const struct net_server *s)
{
    struct sockaddr_storage address;
    int n = (int)sizeof(address);

    if (uv_tcp_getsockname(&s->listener, (struct sockaddr *)&address, &n) < 0)
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

void net_stats(const struct net_server *s, struct net_stats *ret)
{
    *ret = (struct net_stats){.connections = s->n_conns,
                              .requests = s->running,
                              .body_bytes = s->bodies,
                              .accepted = s->accepted,
                              .refused = s->refused,
                              .answered = s->answered,
                              .too_many_requests = s->too_many_requests};
}

/* Closing. */

static void on_handle_closed(uv_handle_t *handle)
{
    struct net_server *s = handle->data;
    void (*closed)(void *ctx) = s->closed;
    void *ctx = s->closed_ctx;

    assert(s->magic == SERVER_MAGIC);
    if (--s->handles)
        return;
    assert(!s->n_conns && !s->running && !s->bodies && !s->heads);
    SSL_CTX_free(s->tls);
    BIO_meth_free(s->bio);
    mem_free(s->scratch);
    s->magic = NET_POISON;
    mem_free(s);
    if (closed)
        closed(ctx);
}

static void close_handles(struct net_server *s)
{
    uv_close((uv_handle_t *)&s->prepare, on_handle_closed);
    uv_close((uv_handle_t *)&s->again, on_handle_closed);
    uv_close((uv_handle_t *)&s->sweep, on_handle_closed);
}

void net_server_conn_closed(struct net_server *s)
{
    if (s->n_conns)
        return;
    s->scratch = mem_free(s->scratch);
    if (s->closing)
        close_handles(s);
}

void net_close(struct net_server *s, int64_t grace_ms, void (*closed)(void *ctx), void *ctx)
{
    struct net_conn *c;

    assert(s->magic == SERVER_MAGIC && !s->closing);
    s->closing = true;
    s->closed = closed;
    s->closed_ctx = ctx;
    s->close_by = (int64_t)uv_now(s->loop) + grace_ms;
    uv_close((uv_handle_t *)&s->listener, on_handle_closed);
    if (!s->n_conns) {
        close_handles(s);
        return;
    }
    TAILQ_FOREACH(c, &s->conns, in_server)
    {
        struct net_exchange *x;

        TAILQ_FOREACH(x, &c->exchanges, in_conn)
        {
            if (x->state == X_STREAMING && !x->ended && !x->whole)
                net_end(x);
        }
        conn_goodbye(c);
    }
    if (grace_ms <= 0)
        close_all(s);
    schedule_sweep(s);
}
