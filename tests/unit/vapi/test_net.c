/* SPDX-License-Identifier: Apache-2.0 */
/* The server as clients see it: libcurl over HTTP/1.1 and HTTP/2, clear and TLS. */
#include "net_harness.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../vapi/auth/pki_cert.h"
#include "../../../vapi/net/server.h"

/* One request with libcurl. */
struct get {
    const char *path, *method;
    long version; /* CURL_HTTP_VERSION_* */
    struct str body;
    const struct identity *client, *ca;
    struct curl_slist *headers;
    /* what came */
    CURLcode result;
    long status, used_version;
    struct buf answer, head;
    size_t stop_after; /* bytes, then the client disconnects */
};

static size_t on_data(char *p, size_t size, size_t n, void *ctx)
{
    struct get *g = ctx;

    buf_add(&g->answer, (struct str){p, size * n});
    return g->stop_after && g->answer.n >= g->stop_after ? 0 : size * n;
}

static size_t on_head(char *p, size_t size, size_t n, void *ctx)
{
    struct get *g = ctx;

    buf_add(&g->head, (struct str){p, size * n});
    return size * n;
}

static void blob(CURL *easy, CURLoption option, struct str pem)
{
    struct curl_blob b = {.data = (void *)(uintptr_t)pem.p, .len = pem.n, .flags = CURL_BLOB_COPY};

    curl_easy_setopt(easy, option, &b);
}

static CURL *prepare(struct net_fixture *f, struct get *g)
{
    CURL *easy = curl_easy_init();
    const struct identity *ca = g->ca ? g->ca : &f->ca;
    char url[256];

    snprintf(url, sizeof(url), "%s://127.0.0.1:%u%s", f->tls ? "https" : "http", f->port, g->path);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, g->version);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, g);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, g);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
    /* curl 7.88 hangs now and then on the end of an HTTP/2 stream that it read in several pieces.
     */
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 512 * 1024L);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, (long)(getenv("NET_TEST_VERBOSE") != NULL));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, g->headers);
    if (g->method)
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, g->method);
    if (g->body.p) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, g->body.p);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)g->body.n);
    }
    if (f->tls)
        blob(easy, CURLOPT_CAINFO_BLOB, ca->cert_pem);
    if (g->client) {
        blob(easy, CURLOPT_SSLCERT_BLOB, g->client->cert_pem);
        blob(easy, CURLOPT_SSLKEY_BLOB, g->client->key_pem);
    }
    return easy;
}

static void finish(CURL *easy, struct get *g)
{
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &g->status);
    curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &g->used_version);
    curl_easy_cleanup(easy);
}

static void do_get(struct net_fixture *f, void *arg)
{
    struct get *g = arg;
    CURL *easy = prepare(f, g);

    if (g->method && strcmp(g->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    g->result = curl_easy_perform(easy);
    finish(easy, g);
}

static void free_get(struct get *g)
{
    buf_fini(&g->answer);
    buf_fini(&g->head);
    curl_slist_free_all(g->headers);
    g->headers = NULL;
}

static void fetch(struct net_fixture *f, struct get *g)
{
    net_fixture_run(f, do_get, g);
    if (g->result != CURLE_OK && !g->stop_after)
        fail_msg("%s: %s", g->path, curl_easy_strerror(g->result));
}

static const struct {
    bool tls;
    long version, used;
} PROTOCOLS[] = {
    {false, CURL_HTTP_VERSION_1_1, CURL_HTTP_VERSION_1_1},
    {false, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE, CURL_HTTP_VERSION_2_0},
    {true, CURL_HTTP_VERSION_1_1, CURL_HTTP_VERSION_1_1},
    {true, CURL_HTTP_VERSION_2TLS, CURL_HTTP_VERSION_2_0},
};
#define EACH_PROTOCOL(i) for (size_t i = 0; i < COUNT(PROTOCOLS); i++)

static void test_hello(void **state)
{
    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {.path = "/hello", .version = PROTOCOLS[i].version};

        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &g);
        assert_int_equal(g.status, 200);
        assert_int_equal(g.used_version, PROTOCOLS[i].used);
        assert_str(buf_str(&g.answer), "hello");
        assert_true(str_contains(buf_str(&g.head), STR("content-length: 5\r\n")));
        assert_true(str_contains(buf_str(&g.head), STR("content-type: text/plain\r\n")));
        assert_true(str_contains(buf_str(&g.head), STR(" GMT\r\n")));
        free_get(&g);
        net_fixture_close(&f);
    }
}

static void test_request_as_sent(void **state)
{
    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {
            .path = "/request?a=%20b&c", .version = PROTOCOLS[i].version, .method = "PATCH"};
        char want[128];

        g.headers = curl_slist_append(NULL, "X-Mixed-Case:  a value ");
        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &g);
        snprintf(want, sizeof(want), "PATCH /request ? a=%%20b&c @ 127.0.0.1:%u v%d\n", f.port,
                 PROTOCOLS[i].used == CURL_HTTP_VERSION_2_0 ? 2 : 1);
        assert_true(str_has_prefix(buf_str(&g.answer), str_c(want)));
        assert_true(str_contains(buf_str(&g.answer), STR("\nx-mixed-case=a value\n")));
        free_get(&g);
        net_fixture_close(&f);
    }
}

static void test_head_and_empty(void **state)
{
    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get head = {
            .path = "/size?123456", .method = "HEAD", .version = PROTOCOLS[i].version};
        struct get none = {.path = "/size?0", .version = PROTOCOLS[i].version};

        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &head);
        assert_int_equal(head.status, 200);
        assert_int_equal(head.answer.n, 0);
        assert_true(str_contains(buf_str(&head.head), STR("content-length: 123456\r\n")));
        assert_int_equal(f.released, 4);
        fetch(&f, &none);
        assert_int_equal(none.status, 200);
        assert_true(str_contains(buf_str(&none.head), STR("content-length: 0\r\n")));
        free_get(&head);
        free_get(&none);
        net_fixture_close(&f);
    }
}

static struct str random_body(size_t n)
{
    char *p = mem_alloc(n);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)(rand() >> 5);
    return (struct str){p, n};
}

static void test_big_bodies(void **state)
{
    struct str body = random_body(2900u * 1024);

    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {.path = "/echo", .version = PROTOCOLS[i].version, .body = body};

        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &g);
        assert_int_equal(g.status, 200);
        assert_true(str_eq(buf_str(&g.answer), body));
        free_get(&g);
        net_fixture_close(&f);
    }
    mem_free((void *)(uintptr_t)body.p);
}

static void test_too_large(void **state)
{
    struct net_options options = {.max_body = 100000};
    struct str body = random_body(300000);

    (void)state;
    EACH_PROTOCOL(i)
    {
        for (int chunked = 0; chunked < 2; chunked++) {
            struct net_fixture f;
            struct get g = {.path = "/echo", .version = PROTOCOLS[i].version, .body = body};

            if (chunked)
                g.headers = curl_slist_append(NULL, PROTOCOLS[i].used == CURL_HTTP_VERSION_1_1
                                                        ? "Transfer-Encoding: chunked"
                                                        : "Content-Length:");
            g.headers = curl_slist_append(g.headers, "Expect:");
            net_fixture_open(&f, PROTOCOLS[i].tls, &options);
            fetch(&f, &g);
            assert_int_equal(g.status, 413);
            assert_int_equal(f.requests, 0);
            assert_str(buf_str(&g.answer),
                       "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                       "\"status\":\"Failure\",\"message\":\"Request entity too large: limit is "
                       "100000\",\"reason\":\"RequestEntityTooLarge\",\"code\":413}\n");
            free_get(&g);
            net_fixture_close(&f);
        }
    }
    mem_free((void *)(uintptr_t)body.p);
}

static void test_headers_too_large(void **state)
{
    struct net_options options = {.max_header_bytes = 8192};
    char *line = mem_alloc(10000);

    (void)state;
    memset(line, 'x', 9999);
    memcpy(line, "x-long: ", 8);
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {.path = "/hello", .version = PROTOCOLS[i].version};

        g.headers = curl_slist_append(NULL, line);
        net_fixture_open(&f, PROTOCOLS[i].tls, &options);
        fetch(&f, &g);
        assert_int_equal(g.status, 431);
        assert_int_equal(f.requests, 0);
        assert_true(str_contains(buf_str(&g.answer), STR("\"code\":431}")));
        free_get(&g);
        net_fixture_close(&f);
    }
    mem_free(line);
}

static void test_busy(void **state)
{
    struct net_options options = {.max_requests = 1};

    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get watch = {.path = "/watch", .version = PROTOCOLS[i].version, .stop_after = 6};
        struct get g = {.path = "/hello", .version = PROTOCOLS[i].version};
        struct net_stats stats;
        int fd;

        net_fixture_open(&f, PROTOCOLS[i].tls, &options);
        fetch(&f, &watch); /* streams do not count */
        fetch(&f, &g);
        assert_int_equal(g.status, 200);
        free_get(&g);
        free_get(&watch);
        if (!PROTOCOLS[i].tls) {
            fd = raw_connect(&f);
            raw_send(fd, STR("GET /never HTTP/1.1\r\nhost: x\r\n\r\n"));
            while (f.running == 0)
                uv_run(&f.loop, UV_RUN_ONCE);
            fetch(&f, &g);
            assert_int_equal(g.status, 429);
            assert_true(str_contains(buf_str(&g.head), STR("retry-after: 1\r\n")));
            assert_true(str_contains(buf_str(&g.answer), STR("\"reason\":\"TooManyRequests\"")));
            free_get(&g);
            close(fd);
            net_stats(f.server, &stats);
            assert_int_equal(stats.accepted, 4);
            assert_int_equal(stats.requests, 1);
            assert_int_equal(stats.answered, 3);
            assert_int_equal(stats.too_many_requests, 1);
        }
        net_fixture_close(&f);
    }
}

#define STREAMS 100

struct many {
    struct get gets[STREAMS];
    long connections;
};

static void do_many(struct net_fixture *f, void *arg)
{
    struct many *m = arg;
    CURLM *multi = curl_multi_init();
    CURL *easies[STREAMS];
    int running = 1;

    curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    for (size_t i = 0; i < STREAMS; i++) {
        easies[i] = prepare(f, &m->gets[i]);
        curl_multi_add_handle(multi, easies[i]);
    }
    while (running) {
        curl_multi_perform(multi, &running);
        if (running)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    for (size_t i = 0; i < STREAMS; i++) {
        long n;

        curl_easy_getinfo(easies[i], CURLINFO_NUM_CONNECTS, &n);
        m->connections += n;
        curl_multi_remove_handle(multi, easies[i]);
        finish(easies[i], &m->gets[i]);
    }
    curl_multi_cleanup(multi);
}

static void test_concurrent_streams(void **state)
{
    struct net_fixture f;
    struct many *m = NEW(struct many);
    static const char *const PATHS[] = {"/later", "/size?200000", "/stream?300000", "/hello"};
    static const size_t SIZES[] = {5, 200000, 300000, 5};

    (void)state;
    net_fixture_open(&f, true, NULL);
    for (size_t i = 0; i < STREAMS; i++)
        m->gets[i] = (struct get){.path = PATHS[i % 4], .version = CURL_HTTP_VERSION_2TLS};
    net_fixture_run(&f, do_many, m);

    assert_int_equal(m->connections, 1);
    assert_int_equal(f.requests, STREAMS);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_int_equal(m->gets[i].status, 200);
        assert_int_equal(m->gets[i].answer.n, SIZES[i % 4]);
        free_get(&m->gets[i]);
    }
    mem_free(m);
    net_fixture_close(&f);
}

static void test_stream(void **state)
{
    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {.path = "/stream?5000000", .version = PROTOCOLS[i].version};

        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &g);
        assert_int_equal(g.answer.n, 5000000);
        for (size_t k = 0; k < g.answer.n; k++) {
            if (g.answer.p[k] != (char)('a' + k % 40000 % 23))
                fail_msg("byte %zu is wrong", k);
        }
        assert_true(f.drained > 0);
        assert_true(f.max_backlog <= 256 * 1024 + 2 * 40000);
        assert_int_equal(f.released, 125);
        free_get(&g);
        net_fixture_close(&f);
    }
}

static void test_client_goes_away(void **state)
{
    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {
            .path = "/stream?50000000", .version = PROTOCOLS[i].version, .stop_after = 500000};
        struct get watch = {.path = "/watch", .version = PROTOCOLS[i].version, .stop_after = 6};

        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &g);
        fetch(&f, &watch);
        assert_int_equal(g.result, CURLE_WRITE_ERROR);
        while (f.closed < 2)
            uv_run(&f.loop, UV_RUN_ONCE);
        free_get(&g);
        free_get(&watch);
        net_fixture_close(&f);
    }
}

static void test_server_aborts(void **state)
{
    (void)state;
    EACH_PROTOCOL(i)
    {
        struct net_fixture f;
        struct get g = {.path = "/abort", .version = PROTOCOLS[i].version, .stop_after = SIZE_MAX};

        net_fixture_open(&f, PROTOCOLS[i].tls, NULL);
        fetch(&f, &g);
        assert_int_not_equal(g.result, CURLE_OK);
        assert_int_equal(f.released, 1);
        free_get(&g);
        net_fixture_close(&f);
    }
}

static void check_peer(struct net_fixture *f, const struct identity *client, const char *want)
{
    struct get g = {.path = "/peer", .version = CURL_HTTP_VERSION_2TLS, .client = client};

    fetch(f, &g);
    assert_str(buf_str(&g.answer), want);
    free_get(&g);
}

static void free_identity(struct identity *id)
{
    X509_free(id->cert);
    EVP_PKEY_free(id->key);
}

static void test_client_certificates(void **state)
{
    struct net_fixture f;
    struct identity good, wrong_use, other_ca, stranger, expired;

    (void)state;
    net_fixture_open(&f, true, NULL);
    good = net_identity(&f, &f.ca, CERT_CLIENT, "alice", "system:masters");
    wrong_use = net_identity(&f, &f.ca, CERT_SERVER, "mallory", "system:masters");
    other_ca = net_identity(&f, NULL, CERT_CA, "other-ca", NULL);
    stranger = net_identity(&f, &other_ca, CERT_CLIENT, "admin", "system:masters");
    f.life = -60;
    expired = net_identity(&f, &f.ca, CERT_CLIENT, "bob", "system:masters");

    check_peer(&f, NULL, "||");
    check_peer(&f, &good, "alice|system:masters,second,|");
    check_peer(&f, &wrong_use, "||rejected");
    check_peer(&f, &stranger, "||rejected");
    check_peer(&f, &expired, "||rejected");

    free_identity(&good);
    free_identity(&wrong_use);
    free_identity(&other_ca);
    free_identity(&stranger);
    free_identity(&expired);
    net_fixture_close(&f);
}

/* A certificate that ends while its connection is open names no user from then on. */
static void do_two_requests(struct net_fixture *f, void *arg)
{
    struct get *g = arg;
    CURL *easy = prepare(f, g);

    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 0L);
    curl_easy_perform(easy);
    __atomic_store_n(&f->client_turn, 1, __ATOMIC_RELEASE);
    uv_async_send(&f->done);
    while (__atomic_load_n(&f->client_turn, __ATOMIC_ACQUIRE) == 1)
        usleep(1000);
    g->result = curl_easy_perform(easy);
    finish(easy, g);
}

static void test_certificate_ends(void **state)
{
    struct net_fixture f;
    struct get g = {.path = "/peer", .version = CURL_HTTP_VERSION_2TLS};
    struct identity alice;
    struct net_conn *c;

    (void)state;
    net_fixture_open(&f, true, NULL);
    alice = net_identity(&f, &f.ca, CERT_CLIENT, "alice", NULL);
    g.client = &alice;
    net_fixture_start(&f, do_two_requests, &g);
    uv_run(&f.loop, UV_RUN_DEFAULT);
    assert_int_equal(f.client_turn, 1);
    c = TAILQ_FIRST(&f.server->conns);
    assert_true(c->peer_expires > clock_wall_s(&CLOCK_SYSTEM));
    c->peer_expires = clock_wall_s(&CLOCK_SYSTEM) - 1;
    __atomic_store_n(&f.client_turn, 2, __ATOMIC_RELEASE);
    net_fixture_wait(&f);
    assert_str(buf_str(&g.answer), "alice||||rejected");
    free_get(&g);
    free_identity(&alice);
    net_fixture_close(&f);
}

/* Nor does one of an authority that is trusted no more, on a connection from before. */
static void test_an_authority_is_retired(void **state)
{
    struct net_fixture f;
    struct get kept = {.path = "/peer", .version = CURL_HTTP_VERSION_2TLS}, cut = kept;
    struct get *gets[] = {&kept, &cut};
    struct identity alice, other;
    struct net_tls tls;
    struct err err = {0};

    (void)state;
    net_fixture_open(&f, true, NULL);
    alice = net_identity(&f, &f.ca, CERT_CLIENT, "alice", NULL);
    other = net_identity(&f, NULL, CERT_CA, "other-ca", NULL);
    tls = (struct net_tls){.certificate = f.leaf.cert_pem, .key = f.leaf.key_pem};
    for (size_t i = 0; i < COUNT(gets); i++) {
        gets[i]->client = &alice;
        net_fixture_start(&f, do_two_requests, gets[i]);
        uv_run(&f.loop, UV_RUN_DEFAULT);
        assert_int_equal(f.client_turn, 1);
        tls.client_ca = i ? other.cert_pem : f.ca.cert_pem;
        assert_int_equal(net_set_tls(f.server, &tls, &err), 0);
        __atomic_store_n(&f.client_turn, 2, __ATOMIC_RELEASE);
        net_fixture_wait(&f);
    }
    assert_str(buf_str(&kept.answer), "alice||alice||");
    assert_str(buf_str(&cut.answer), "alice||||rejected");
    free_get(&kept);
    free_get(&cut);
    free_identity(&alice);
    free_identity(&other);
    net_fixture_close(&f);
}

/* Whoever holds one open reads along: a watch, a pipe of exec. */
static void test_streams_of_a_retired_authority_end(void **state)
{
    static const long versions[] = {CURL_HTTP_VERSION_1_1, CURL_HTTP_VERSION_2TLS};

    (void)state;
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct net_fixture f;
        struct get watch = {.path = "/watch", .version = versions[i]};
        struct identity alice, other;
        struct net_tls tls;
        struct err err = {0};

        net_fixture_open(&f, true, NULL);
        alice = net_identity(&f, &f.ca, CERT_CLIENT, "alice", NULL);
        other = net_identity(&f, NULL, CERT_CA, "other-ca", NULL);
        tls = (struct net_tls){f.leaf.cert_pem, f.leaf.key_pem, f.ca.cert_pem};
        watch.client = &alice;
        net_fixture_start(&f, do_get, &watch);
        while (!f.requests)
            uv_run(&f.loop, UV_RUN_ONCE);
        TAILQ_FIRST(&f.server->conns)->peer_expires = 1; /* by its time alone it is not cut off */
        assert_int_equal(net_set_tls(f.server, &tls, &err), 0);
        uv_run(&f.loop, UV_RUN_NOWAIT);
        uv_run(&f.loop, UV_RUN_NOWAIT);
        assert_int_equal(f.closed, 0);
        tls.client_ca = other.cert_pem;
        assert_int_equal(net_set_tls(f.server, &tls, &err), 0);
        net_fixture_wait(&f);
        assert_int_not_equal(watch.result, CURLE_OK);
        assert_int_not_equal(watch.result, CURLE_OPERATION_TIMEDOUT);
        assert_int_equal(f.closed, 1);
        free_get(&watch);
        free_identity(&alice);
        free_identity(&other);
        net_fixture_close(&f);
    }
}

/* Who showed a certificate gets no ticket: sessions are not resumed into identities. */
struct resumption {
    const struct identity *client;
    bool resumable, reused;
};

static SSL *shake_hands(struct net_fixture *f, SSL_CTX *ctx, SSL_SESSION *session, int *ret_fd)
{
    static const char ASK[] = "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";
    SSL *ssl = SSL_new(ctx);
    char got[1024];

    *ret_fd = raw_connect(f);
    SSL_set_fd(ssl, *ret_fd);
    if (session)
        SSL_set_session(ssl, session);
    if (SSL_connect(ssl) != 1 || SSL_write(ssl, ASK, sizeof(ASK) - 1) <= 0 ||
        SSL_read(ssl, got, sizeof(got)) <= 0)
        abort();
    return ssl;
}

static void hang_up(SSL *ssl, int fd)
{
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

static void do_resume(struct net_fixture *f, void *arg)
{
    struct resumption *r = arg;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_SESSION *session;
    SSL *ssl;
    int fd;

    if (r->client) {
        SSL_CTX_use_certificate(ctx, r->client->cert);
        SSL_CTX_use_PrivateKey(ctx, r->client->key);
    }
    ssl = shake_hands(f, ctx, NULL, &fd);
    session = SSL_get1_session(ssl);
    r->resumable = SSL_SESSION_is_resumable(session) == 1;
    hang_up(ssl, fd);
    ssl = shake_hands(f, ctx, session, &fd);
    r->reused = SSL_session_reused(ssl) == 1;
    hang_up(ssl, fd);
    SSL_SESSION_free(session);
    SSL_CTX_free(ctx);
}

static void test_tickets(void **state)
{
    struct net_fixture f;
    struct identity alice;
    struct resumption anonymous = {0}, named = {.client = &alice};

    (void)state;
    net_fixture_open(&f, true, NULL);
    alice = net_identity(&f, &f.ca, CERT_CLIENT, "alice", NULL);
    net_fixture_run(&f, do_resume, &anonymous);
    assert_true(anonymous.resumable && anonymous.reused);
    net_fixture_run(&f, do_resume, &named);
    assert_false(named.resumable || named.reused);
    free_identity(&alice);
    net_fixture_close(&f);
}

/* What is no TLS of today, and what is no TLS at all. */
static void do_old_tls(struct net_fixture *f, void *arg)
{
    struct get *g = arg;
    CURL *easy = prepare(f, g);

    curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                     CURL_SSLVERSION_TLSv1_0 | CURL_SSLVERSION_MAX_TLSv1_1);
    curl_easy_setopt(easy, CURLOPT_SSL_CIPHER_LIST, "ALL:@SECLEVEL=0");
    g->result = curl_easy_perform(easy);
    finish(easy, g);
}

static void do_no_tls(struct net_fixture *f, void *arg)
{
    static const char *const WORDS[] = {"", "GET /hello HTTP/1.1\r\nhost: x\r\n\r\n",
                                        "\x16\x03\x01\xff\xff", "\x16\x03\x01\x02\x00\x01\x00\x01"};
    unsigned *closed = arg;

    for (size_t i = 0; i < 4; i++) {
        int fd = raw_connect(f);

        raw_send(fd, str_c(WORDS[i]));
        *closed += raw_closed(fd);
        close(fd);
    }
}

static void test_no_tls(void **state)
{
    struct net_options options = {.header_timeout_ms = 300};
    struct net_fixture f;
    struct get g = {.path = "/hello", .version = CURL_HTTP_VERSION_1_1};
    unsigned closed = 0;

    (void)state;
    net_fixture_open(&f, true, &options);
    net_fixture_run(&f, do_old_tls, &g);
    assert_int_equal(g.result, CURLE_SSL_CONNECT_ERROR);
    net_fixture_run(&f, do_no_tls, &closed);
    assert_int_equal(closed, 4);
    assert_int_equal(f.requests, 0);
    free_get(&g);
    net_fixture_close(&f);
}

static void test_rotation(void **state)
{
    struct net_fixture f;
    struct identity ca, leaf;
    struct net_tls tls;
    struct err err = {0};
    struct get before = {.path = "/hello", .version = CURL_HTTP_VERSION_2TLS}, after = before;

    (void)state;
    net_fixture_open(&f, true, NULL);
    fetch(&f, &before);
    ca = net_identity(&f, NULL, CERT_CA, "new-ca", NULL);
    leaf = net_identity(&f, &ca, CERT_SERVER, "server", NULL);
    tls = (struct net_tls){.certificate = leaf.cert_pem, .key = leaf.key_pem};
    assert_int_equal(net_set_tls(f.server, &tls, &err), 0);
    after.ca = &ca;
    fetch(&f, &after);
    assert_int_equal(after.status, 200);

    tls.key = f.leaf.key_pem; /* does not match: refused, and the previous one stays */
    assert_int_equal(net_set_tls(f.server, &tls, &err), -1);
    free_get(&after);
    fetch(&f, &after);
    assert_int_equal(after.status, 200);

    free_get(&before);
    free_get(&after);
    free_identity(&ca);
    free_identity(&leaf);
    net_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_request_as_sent),
        cmocka_unit_test(test_head_and_empty),
        cmocka_unit_test(test_big_bodies),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_headers_too_large),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_concurrent_streams),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_client_goes_away),
        cmocka_unit_test(test_server_aborts),
        cmocka_unit_test(test_client_certificates),
        cmocka_unit_test(test_certificate_ends),
        cmocka_unit_test(test_an_authority_is_retired),
        cmocka_unit_test(test_streams_of_a_retired_authority_end),
        cmocka_unit_test(test_tickets),
        cmocka_unit_test(test_no_tls),
        cmocka_unit_test(test_rotation),
    };
    int failed;

    curl_global_init(CURL_GLOBAL_ALL);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
