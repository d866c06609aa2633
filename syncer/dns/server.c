/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets, and the steps of a query: known client? -> parsed -> answered from the zone, the
 * cache, or by another resolver. Must never answer, nor forward for, an address that is not a
 * client's; must never wait for anything but another resolver. */
#include "server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include <sublet/metrics.h>

#define DNS_MAGIC 0x646e7373u

enum { LISTEN_BACKLOG = 64 };

/* A query that is forwarded to another resolver. */
struct dns_job {
    TAILQ_ENTRY(dns_job) place;
    struct dns *server;
    struct dns_wait wait;
    struct dns_query query, at;
    const struct dns_upstream *upstream;
    struct dns_answer answer; /* the aliases before the forwarded answer */
    struct dns_reply to;
};

/* --- answers --- */

static void reply(struct dns *d, const struct dns_query *q, const struct dns_answer *a,
                  const struct dns_reply *to)
{
    struct buf out = BUF_INIT(DNS_TCP_MAX);
    uv_buf_t part;

    dns_answer_print(q, a, d->policy.forward.n > 0, dns_answer_limit(q, to->conn != NULL), &out);
    part = uv_buf_init(out.p, (unsigned)out.n);
    if (to->conn)
        dns_conn_send(to->conn, buf_str(&out));
    else /* a datagram that the kernel rejects is lost, as any may be */
        uv_udp_try_send(&d->udp, &part, 1, (const struct sockaddr *)&to->peer);
    buf_fini(&out);
}

static void reply_rcode(struct dns *d, const struct dns_query *q, ldns_pkt_rcode rcode,
                        const struct dns_reply *to)
{
    struct dns_answer a;

    dns_answer_init(&a);
    a.rcode = rcode;
    reply(d, q, &a, to);
    dns_answer_fini(&a);
}

/* --- forwarding --- */

static void job_free(struct dns_job *j)
{
    struct dns *d = j->server;

    TAILQ_REMOVE(&d->jobs, j, place);
    d->n_jobs--;
    dns_forwarder_forget(&j->wait);
    dns_answer_fini(&j->answer);
    if (j->to.conn)
        dns_conn_release(j->to.conn);
    mem_free(j);
}

static void on_forwarded(struct dns_wait *w, struct dns_answer *answer)
{
    struct dns_job *j = CONTAINER(w, struct dns_job, wait);
    struct dns *d = j->server;

    assert(d->magic == DNS_MAGIC);
    d->counts[answer ? COUNT_FORWARDED : COUNT_FAILED]++;
    if (answer)
        dns_answer_append(&d->view, &j->at, j->upstream, &j->answer, answer);
    else
        j->answer.rcode = LDNS_RCODE_SERVFAIL;
    reply(d, &j->query, &j->answer, &j->to);
    job_free(j);
}

/* Takes ownership of draft->answer. */
static void forward(struct dns *d, const struct dns_job *draft, const struct dns_ip *ip)
{
    struct dns_job *j = NEW(struct dns_job);

    *j = *draft;
    j->wait = (struct dns_wait){.done = on_forwarded};
    TAILQ_INSERT_TAIL(&d->jobs, j, place);
    d->n_jobs++;
    if (j->to.conn)
        dns_conn_hold(j->to.conn);
    if (d->n_jobs >= DNS_JOBS_MAX || !dns_rates_take(d->rates, ip, clock_mono_ms(d->o.clock)) ||
        !dns_forwarder_send(d->forwarder, &j->at, j->upstream, &j->wait)) {
        d->counts[COUNT_LIMITED]++;
        reply_rcode(d, &j->query, LDNS_RCODE_SERVFAIL, &j->to);
        job_free(j);
    }
}

static void answer_or_forward(struct dns *d, struct dns_job *draft, const struct dns_ip *ip)
{
    struct dns_answer cached;
    enum dns_outcome outcome = dns_answer_query(d->scratch, &d->view, &draft->query, ip, d->turn++,
                                                &draft->answer, &draft->at, &draft->upstream);
    enum dns_count count = COUNT_OWN;

    if (outcome == DNS_FORWARD && dns_forwarder_recall(d->forwarder, &draft->at, &cached)) {
        dns_answer_append(&d->view, &draft->at, draft->upstream, &draft->answer, &cached);
        count = COUNT_CACHED;
    } else if (outcome == DNS_FORWARD) {
        forward(d, draft, ip);
        return;
    }
    d->counts[count]++;
    reply(d, &draft->query, &draft->answer, &draft->to);
    dns_answer_fini(&draft->answer);
}

void dns_handle(struct dns *d, struct str bytes, const struct dns_ip *ip,
                const struct dns_reply *to)
{
    struct dns_job draft = {.server = d, .to = *to};
    ldns_pkt_rcode rcode;
    enum dns_verdict verdict = dns_query_parse(bytes, &draft.query, &rcode);

    if (verdict == DNS_VERDICT_GOOD) {
        answer_or_forward(d, &draft, ip);
        arena_reset(d->scratch);
        return;
    }
    d->counts[COUNT_MALFORMED]++;
    if (verdict == DNS_VERDICT_REFUSE)
        reply_rcode(d, &draft.query, rcode, to);
}

/* --- UDP --- */

static void on_hold(uv_timer_t *timer);

static void on_known(void *ctx, struct str bytes, const void *peer)
{
    struct dns *d = ctx;
    struct dns_reply to = {.conn = NULL};
    struct dns_ip ip;

    memcpy(&to.peer, peer, sizeof(to.peer));
    dns_ip_of((const struct sockaddr *)&to.peer, &ip);
    dns_handle(d, bytes, &ip, &to);
}

static void release_held(struct dns *d)
{
    int64_t now = clock_mono_ms(d->o.clock), next;

    d->counts[COUNT_STRANGER] += dns_held_release(d->held, &d->view, now, on_known, d, &next);
    if (next)
        uv_timer_start(&d->hold, on_hold, next > now ? (uint64_t)(next - now) : 0, 0);
    else
        uv_timer_stop(&d->hold);
}

static void on_hold(uv_timer_t *timer)
{
    release_held(timer->data);
}

static void on_zone_changed(void *ctx)
{
    struct dns *d = ctx;

    assert(d->magic == DNS_MAGIC);
    if (d->held && uv_is_active((const uv_handle_t *)&d->hold))
        release_held(d);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct dns *d = handle->data;

    (void)suggested;
    *buf = uv_buf_init(d->room, sizeof(d->room));
}

static void on_datagram(uv_udp_t *udp, ssize_t nread, const uv_buf_t *buf,
                        const struct sockaddr *from, unsigned flags)
{
    struct dns *d = udp->data;
    struct str bytes = {buf->base, nread > 0 ? (size_t)nread : 0};
    struct dns_reply to = {.conn = NULL};
    struct dns_ip ip;

    assert(d->magic == DNS_MAGIC);
    if (!from || nread <= 0 || flags & UV_UDP_PARTIAL)
        return;
    memcpy(&to.peer, from,
           from->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    dns_ip_of(from, &ip);
    if (dns_client_is_known(&d->view, &ip))
        dns_handle(d, bytes, &ip, &to);
    else if (dns_held_add(d->held, &ip, bytes, &to.peer, clock_mono_ms(d->o.clock)))
        release_held(d);
    else
        d->counts[COUNT_STRANGER]++;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct dns *d = listener->data;

    assert(d->magic == DNS_MAGIC);
    if (!status && !d->closing)
        dns_conn_accept(d);
}

/* --- opening --- */

static int listen_error(struct dns *d, int failure, struct err *err)
{
    return err_set(err, &ERR_UNAVAILABLE, "dns: cannot listen at %.*s: %s",
                   STR_F(d->o.config->dns_listen), uv_strerror(failure));
}

/* With port 0, UDP uses the port that TCP got. */
static int open_sockets(struct dns *d, struct err *err)
{
    struct dns_endpoint at = d->policy.listen;
    struct sockaddr_storage address;
    const struct sockaddr *name = (const struct sockaddr *)&address;
    int failed;

    dns_endpoint_sockaddr(&at, &address);
    failed = uv_tcp_bind(&d->tcp, name, 0);
    failed = failed ? failed : uv_listen((uv_stream_t *)&d->tcp, LISTEN_BACKLOG, on_connection);
    if (failed)
        return listen_error(d, failed, err);
    at.port = dns_port(d);
    dns_endpoint_sockaddr(&at, &address);
    failed = uv_udp_bind(&d->udp, name, 0);
    failed = failed ? failed : uv_udp_recv_start(&d->udp, on_alloc, on_datagram);
    return failed ? listen_error(d, failed, err) : 0;
}

static void init_handles(struct dns *d)
{
    uv_udp_init(d->o.loop, &d->udp);
    uv_tcp_init(d->o.loop, &d->tcp);
    uv_timer_init(d->o.loop, &d->hold);
    d->udp.data = d->tcp.data = d->hold.data = d;
    d->handles = 4; /* and the forwarder */
}

static void on_given_up(void *ctx)
{
    (void)ctx;
}

int dns_open(const struct dns_options *options, struct dns **ret, struct err *err)
{
    struct dns *d = NEW(struct dns);

    d->magic = DNS_MAGIC;
    d->o = *options;
    d->arena = arena_new(0);
    TAILQ_INIT(&d->conns);
    TAILQ_INIT(&d->jobs);
    if (dns_policy_load(d->arena, options->config, options->resolv, &d->policy, err)) {
        arena_free(d->arena);
        mem_free(d);
        return -1;
    }
    d->scratch = arena_new(0);
    d->zone = dns_zone_new();
    d->view = (struct dns_view){.zone = d->zone, .policy = &d->policy};
    d->rates = dns_rates_new(options->config->dns_forward_rate, rng_u64(options->rng));
    d->held = dns_held_new();
    d->forwarder = dns_forwarder_new(options->loop, options->clock, options->rng,
                                     (size_t)options->config->dns_cache);
    init_handles(d);
    if (open_sockets(d, err)) {
        dns_close(d, on_given_up, NULL);
        return -1;
    }
    d->feed = dns_feed_open(options->store, d->zone, d->policy.nodes, on_zone_changed, d);
    *ret = d;
    return 0;
}

unsigned dns_port(const struct dns *d)
{
    struct sockaddr_storage name;
    int n = sizeof(name);
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (uv_tcp_getsockname(&d->tcp, (struct sockaddr *)&name, &n))
        return 0;
    memcpy(&v4, &name, sizeof(v4));
    memcpy(&v6, &name, sizeof(v6));
    return ntohs(name.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

/* --- metrics --- */

void dns_write_metrics(void *dns, struct buf *out)
{
    static const char *const names[N_DNS_COUNT] = {"own",     "cached",   "forwarded", "failed",
                                                   "limited", "stranger", "malformed"};
    const struct dns *d = dns;
    const struct dns_cache *cache = dns_forwarder_cache(d->forwarder);

    metrics_family(out, METRIC_DNS_QUESTIONS);
    for (int i = 0; i < N_DNS_COUNT; i++) {
        struct buf label = BUF_INIT(0);

        metrics_label(&label, "outcome", str_c(names[i]));
        metrics_sample_u64(out, METRIC_DNS_QUESTIONS, buf_str(&label), d->counts[i]);
        buf_fini(&label);
    }
    metrics_single_u64(out, METRIC_DNS_CACHE_BYTES, dns_cache_bytes(cache));
}

/* --- closing --- */

void dns_handle_closed(struct dns *d)
{
    void (*closed)(void *ctx) = d->closed;
    void *ctx = d->closed_ctx;

    if (--d->handles || !d->closing)
        return;
    assert(!d->n_conns && !d->n_jobs);
    dns_held_free(d->held);
    dns_rates_free(d->rates);
    dns_zone_free(d->zone);
    arena_free(d->scratch);
    arena_free(d->arena);
    d->magic = 0;
    mem_free(d);
    closed(ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    dns_handle_closed(handle->data);
}

static void on_forwarder_closed(void *ctx)
{
    dns_handle_closed(ctx);
}

void dns_close(struct dns *d, void (*closed)(void *ctx), void *ctx)
{
    struct dns_job *j;
    struct dns_conn *c;

    assert(d->magic == DNS_MAGIC && !d->closing);
    d->closing = true;
    d->closed = closed;
    d->closed_ctx = ctx;
    d->feed = dns_feed_close(d->feed);
    while ((c = TAILQ_FIRST(&d->conns)))
        dns_conn_close(c);
    while ((j = TAILQ_FIRST(&d->jobs)))
        job_free(j);
    uv_close((uv_handle_t *)&d->udp, on_handle_closed);
    uv_close((uv_handle_t *)&d->tcp, on_handle_closed);
    uv_close((uv_handle_t *)&d->hold, on_handle_closed);
    dns_forwarder_close(d->forwarder, on_forwarder_closed, d);
}
