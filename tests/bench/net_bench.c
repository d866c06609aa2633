/* SPDX-License-Identifier: Apache-2.0
 * Measures the HTTP server alone: memory of an idle TLS connection that speaks HTTP/2, then rates
 * with h2load where it is installed. Prints numbers and judges none. Usage: net-bench [connections]
 */
#include <sublet/clock.h>
#include <sublet/net.h>

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "../../vapi/auth/pki_cert.h"

#define HOUR 3600

static char body[1024];

struct bench {
    uv_loop_t loop;
    struct net_server *server;
    unsigned port, requests;
    bool stop;
};

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %.*s\n", what, err ? (int)err->message.n : 0, err ? err->message.p : "");
    exit(1);
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *r)
{
    static const struct net_header TYPE = {{"content-type", 12}, {"application/json", 16}};
    struct bench *b = ctx;
    struct net_slice slice = {.bytes = {body, sizeof(body)}};

    b->requests++;
    if (!str_eqc(r->path, "/big")) {
        net_respond(x, 200, &TYPE, 1, &slice, 1);
        return;
    }
    net_begin(x, 200, &TYPE, 1);
    for (unsigned i = 0; i < 1024; i++)
        net_write(x, &slice, 1);
    net_end(x);
}

static void make_tls(struct arena *a, struct net_tls *ret)
{
    struct str names[] = {STR("127.0.0.1")};
    struct err err = {0};
    EVP_PKEY *key = pki_key_new(&err);
    X509 *cert;
    struct cert_request request = {
        .use = CERT_SERVER,
        .cn = STR("bench"),
        .names = names,
        .n_names = 1,
        .not_before = clock_wall_s(&CLOCK_SYSTEM) - HOUR,
        .not_after = clock_wall_s(&CLOCK_SYSTEM) + HOUR,
        .rng = &RNG_SYSTEM,
    };

    request.use = CERT_CA; /* signed by itself */
    if (!key || pki_cert_issue(&request, key, NULL, NULL, &cert, &err) < 0)
        die("certificate", &err);
    *ret = (struct net_tls){.certificate = pki_cert_pem(a, cert),
                            .key = pki_key_pem(a, key),
                            .client_ca = pki_cert_pem(a, cert)};
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void start(struct bench *b, bool tls, unsigned connections)
{
    struct arena *a = arena_new(0);
    struct net_tls pem;
    struct net_options o = {.address = STR("127.0.0.1:0"),
                            .max_connections = connections + 100,
                            .handler = {on_request, b}};
    struct err err = {0};

    if (tls) {
        make_tls(a, &pem);
        o.tls = &pem;
    }
    if (net_listen(&b->loop, &o, &b->server, &err) < 0)
        die("listen", &err);
    b->port = net_port(b->server);
    arena_free(a);
}

/* The child: opens connections, sends one request on each, then sleeps until it is killed. */
static void hold(unsigned port, unsigned connections)
{
    static const char HELLO[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\0\4\0\0\0\0\0"             /* SETTINGS */
                                "\0\0\6\1\5\0\0\0\1\x82\x87\x84" /* HEADERS: GET / */
                                "\x41\1x";                       /* :authority */
    static const unsigned char ALPN[] = "\x02h2";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    char got[4096];

    SSL_CTX_set_alpn_protos(ctx, ALPN, sizeof(ALPN) - 1);
    for (unsigned i = 0; i < connections; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        SSL *ssl = SSL_new(ctx);

        SSL_set_fd(ssl, fd);
        if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || SSL_connect(ssl) != 1 ||
            SSL_write(ssl, HELLO, sizeof(HELLO) - 1) <= 0 || SSL_read(ssl, got, sizeof(got)) <= 0)
            exit(1);
    }
    pause();
}

/* Pages of this process alone. */
static size_t private_bytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    size_t kib, total = 0;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Private_Dirty: %zu kB", &kib) == 1)
            total += kib * 1024;
    }
    if (file)
        fclose(file);
    return total;
}

static double cpu_seconds(void)
{
    struct rusage r;

    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void measure_memory(struct bench *b, unsigned connections)
{
    size_t before, after, pages;
    pid_t child = fork();

    if (child == 0)
        hold(b->port, connections);
    before = mallinfo2().uordblks;
    pages = private_bytes();
    while (b->requests < connections)
        uv_run(&b->loop, UV_RUN_ONCE);
    for (unsigned i = 0; i < 100; i++)
        uv_run(&b->loop, UV_RUN_NOWAIT);
    after = mallinfo2().uordblks;
    pages = private_bytes() - pages;
    printf("an idle TLS connection (HTTP/2): %zu bytes of heap, %zu of pages\n",
           (after - before) / connections, pages / connections);
    fflush(stdout);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void on_exit_of_child(uv_process_t *p, int64_t status, int signal)
{
    struct bench *b = p->data;

    (void)status;
    (void)signal;
    b->stop = true;
    uv_close((uv_handle_t *)p, NULL);
}

static void load(struct bench *b, const char *scheme, const char *path, const char *n,
                 const char *version)
{
    char url[64];
    const char *args[] = {"h2load", "-n", n, "-c", "4", "-m", "32", version, url, NULL};
    uv_stdio_container_t stdio[3] = {{.flags = UV_IGNORE},
                                     {.flags = UV_INHERIT_FD, .data.fd = 1},
                                     {.flags = UV_INHERIT_FD, .data.fd = 2}};
    uv_process_options_t o = {.file = "h2load",
                              .args = (char **)(uintptr_t)args,
                              .exit_cb = on_exit_of_child,
                              .stdio_count = 3,
                              .stdio = stdio};
    uv_process_t process = {.data = b};

    double cpu = cpu_seconds();
    unsigned requests = b->requests;

    snprintf(url, sizeof(url), "%s://127.0.0.1:%u%s", scheme, b->port, path);
    printf("--- %s %s\n", version, url);
    fflush(stdout);
    b->stop = uv_spawn(&b->loop, &process, &o) < 0;
    while (!b->stop)
        uv_run(&b->loop, UV_RUN_ONCE);
    uv_run(&b->loop, UV_RUN_NOWAIT);
    if (b->requests > requests)
        printf("server: %.1f us of CPU per request\n",
               (cpu_seconds() - cpu) * 1e6 / (b->requests - requests));
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    uint64_t connections = 500;

    if (argc > 1 && (!str_to_u64(str_c(argv[1]), &connections) || connections > 10000))
        die("usage: net-bench [connections]", NULL);
    uv_loop_init(&b.loop);
    start(&b, true, (unsigned)connections);
    measure_memory(&b, (unsigned)connections);
    load(&b, "https", "/small", "200000", "--npn-list=h2");
    load(&b, "https", "/big", "2000", "--npn-list=h2");
    load(&b, "https", "/small", "200000", "--h1");
    start(&b, false, 100);
    load(&b, "http", "/small", "200000", "--npn-list=h2");
    return 0;
}
