/* SPDX-License-Identifier: Apache-2.0 */
/* A GET of a server that is not the host: what it sends, what it takes of it, and its ends. */
#include "fake_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <sublet/host_get.h>

#include "host/curl_impl.h"
#include "host/kubeconfig.h"

struct seen {
    bool over;
    int status;
    const struct err_kind *failure;
    enum host_trouble trouble;
    char body[64], message[128];
    size_t n;
};

static void on_done(void *ctx, const struct host_get_answer *answer, const struct err *err)
{
    struct seen *seen = ctx;

    assert_false(seen->over);
    seen->over = true;
    seen->status = answer->status;
    seen->n = answer->body.n;
    seen->trouble = answer->trouble;
    seen->failure = err ? err->kind : NULL;
    snprintf(seen->body, sizeof(seen->body), "%.*s", STR_F(str_clip(answer->body, 63)));
    if (err)
        snprintf(seen->message, sizeof(seen->message), "%.*s", STR_F(err->message));
}

static void answer(struct fake_server *s, struct net_exchange *x, const struct net_request *r)
{
    static const struct net_header plain = {{"content-type", 12}, {"text/plain", 10}};
    static const struct net_header moved = {{"location", 8}, {"/metrics", 8}};
    static const char zeros[4096];
    const struct net_slice slice = {{zeros, sizeof(zeros)}, NULL, NULL};

    assert_true(str_eqc(net_header(r, "accept"), "text/plain"));
    if (str_eqc(r->path, "/metrics")) {
        fake_reply(x, 200, "x 1\n");
    } else if (str_eqc(r->path, "/moved")) {
        net_respond(x, 302, &moved, 1, NULL, 0);
    } else if (str_eqc(r->path, "/big")) {
        net_begin(x, 200, &plain, 1);
        for (size_t i = 0; i < 64; i++)
            net_write(x, &slice, 1);
    } else if (str_eqc(r->path, "/refuse")) {
        fake_reply(x, 403, "no");
    } else {
        assert_true(str_eqc(r->path, "/silent"));
        net_begin(x, 200, &plain, 1);
        *(bool *)s->ctx = true;
    }
}

static struct host_get *get(struct fake_server *s, struct seen *seen, const char *path,
                            struct str token_file)
{
    const struct host_get_options o = {.loop = &s->loop,
                                       .clock = &CLOCK_SYSTEM,
                                       .server =
                                           arena_printf(s->arena, "http://127.0.0.1:%u", s->port),
                                       .path = str_c(path),
                                       .accept = "text/plain",
                                       .token_file = token_file,
                                       .max_bytes = 65536,
                                       .timeout_ms = str_eqc(str_c(path), "/silent") ? 300 : 20000};

    *seen = (struct seen){0};
    return host_get_send(&o, on_done, seen);
}

static void test_answers(void **state)
{
    char token[] = "/tmp/sublet-get-XXXXXX";
    struct fake_server s;
    struct seen seen;
    bool arrived = false;
    int fd = mkstemp(token);

    (void)state;
    assert_int_equal(write(fd, "mine\n", 5), 5);
    close(fd);
    fake_open(&s, answer, NULL);
    s.ctx = &arrived;
    get(&s, &seen, "/metrics", STR(""));
    fake_run_until(&s, &seen.over);
    assert_null(seen.failure);
    assert_int_equal(seen.status, 200);
    assert_string_equal(seen.body, "x 1\n");
    /* The host's credentials are not sent; a token of its own is. */
    assert_string_equal(s.last_authorization, "");
    get(&s, &seen, "/metrics", str_c(token));
    fake_run_until(&s, &seen.over);
    assert_string_equal(s.last_authorization, "Bearer mine");

    get(&s, &seen, "/moved", STR(""));
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_UNAVAILABLE);
    assert_int_equal(seen.status, 302);
    get(&s, &seen, "/refuse", STR(""));
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_UNAVAILABLE);
    assert_string_equal(seen.message, "an answer with status 403");
    assert_string_equal(seen.body, "no");

    get(&s, &seen, "/big", STR(""));
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_TOO_LARGE);
    assert_int_equal(seen.n, 0);
    get(&s, &seen, "/silent", STR(""));
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_TIMEOUT);
    unlink(token);
    fake_close(&s);
}

static void test_no_answer(void **state)
{
    struct fake_server s;
    struct seen seen;
    bool arrived = false;
    struct host_get *g;

    (void)state;
    fake_open(&s, answer, NULL);
    s.ctx = &arrived;
    /* Cancelled while it is under way: no callback. */
    g = get(&s, &seen, "/silent", STR(""));
    fake_run_until(&s, &arrived);
    host_get_cancel(g);
    host_get_cancel(NULL);
    fake_go_away(&s);
    assert_false(seen.over);
    get(&s, &seen, "/metrics", STR(""));
    fake_run_until(&s, &seen.over);
    assert_ptr_equal(seen.failure, &ERR_UNAVAILABLE);
    assert_int_equal(seen.status, 0);
    assert_null(strstr(seen.message, "127.0.0.1"));
    fake_close(&s);
}

/* Answers that would not fit beside those of others fail, and what each held comes back. */
static void test_budget(void **state)
{
    struct host_get_budget budget = {.most = 6};
    struct fake_server s;
    struct seen seen[2];
    struct host_get_options o;

    (void)state;
    fake_open(&s, answer, NULL);
    o = (struct host_get_options){.loop = &s.loop,
                                  .clock = &CLOCK_SYSTEM,
                                  .server = arena_printf(s.arena, "http://127.0.0.1:%u", s.port),
                                  .path = STR("/metrics"), /* answers with 4 bytes */
                                  .accept = "text/plain",
                                  .max_bytes = 65536,
                                  .budget = &budget,
                                  .timeout_ms = 20000};
    for (size_t i = 0; i < 2; i++) {
        seen[i] = (struct seen){0};
        host_get_send(&o, on_done, &seen[i]);
        fake_run_until(&s, &seen[i].over);
        assert_null(seen[i].failure);
        assert_int_equal(budget.used, 0);
    }
    budget.used = 3; /* another one's */
    seen[0] = (struct seen){0};
    host_get_send(&o, on_done, &seen[0]);
    fake_run_until(&s, &seen[0].over);
    assert_ptr_equal(seen[0].failure, &ERR_TOO_MANY_REQUESTS);
    assert_int_equal(seen[0].n, 0);
    assert_int_equal(budget.used, 3);
    fake_close(&s);
}

/* --- its CA --- */

static const char CERTIFICATE[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBcTCCARegAwIBAgIUStkse1uimVCgmUEtqITpcyw1HFUwCgYIKoZIzj0EAwIw\n"
    "DTELMAkGA1UEAwwCY2EwIBcNMjYxMTI4MDkzNDIwWhgPMjEyNjExMDQwOTM0MjBa\n"
    "MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0x5d1h5o\n"
    "pHURByU/p4aMy29NLwL0xBxYN1Aj68xHBS5cVKHiQBy552iwscvJsLeQVxkLZJEM\n"
    "doBU9ySWPf9sxqNTMFEwHQYDVR0OBBYEFOzsU6sSpEVpzU+qzhglKOoamSlTMB8G\n"
    "A1UdIwQYMBaAFOzsU6sSpEVpzU+qzhglKOoamSlTMA8GA1UdEwEB/wQFMAMBAf8w\n"
    "CgYIKoZIzj0EAwIDSAAwRQIgCsB+UrjMIS6XeBomSUwXgK9WOzcGZXVRfdL8B1+j\n"
    "sZACIQCSB9ZRDbfkex+jag+qYWFkKER2JbZjmwvre5LLcqRMbQ==\n"
    "-----END CERTIFICATE-----\n";

/* What a GET of https ends with when its CA is this file; content NULL: there is none. */
static void get_tls(struct fake_server *s, struct seen *seen, const char *content, bool *ret_good)
{
    char file[] = "/tmp/sublet-ca-XXXXXX";
    int fd = mkstemp(file);
    struct host_get_options o = {.loop = &s->loop,
                                 .clock = &CLOCK_SYSTEM,
                                 .server = arena_printf(s->arena, "https://127.0.0.1:%u", s->port),
                                 .path = STR("/metrics"),
                                 .accept = "text/plain",
                                 .ca_file = arena_str(s->arena, str_c(file)),
                                 .max_bytes = 65536,
                                 .timeout_ms = 20000};
    struct err err;

    if (content)
        assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    close(fd);
    if (!content)
        unlink(file);
    err_init(&err, s->arena);
    *ret_good = !host_get_check_ca(o.ca_file, &err);
    if (!*ret_good)
        assert_true(str_contains(err.message, o.ca_file));
    *seen = (struct seen){0};
    host_get_send(&o, on_done, seen);
    fake_run_until(s, &seen->over);
    unlink(file);
    assert_ptr_equal(seen->failure, &ERR_UNAVAILABLE);
    assert_int_equal(seen->trouble, HOST_TLS);
}

/* A CA that cannot be read is an error before anything is sent, and no leave to trust others. */
static void test_no_ca_no_request(void **state)
{
    static const char *const bad[] = {NULL, "", "\n", "nonsense",
                                      "-----BEGIN CERTIFICATE-----\nAAAA\n"
                                      "-----END CERTIFICATE-----\n"};
    const char *refusal = curl_easy_strerror(CURLE_SSL_CACERT_BADFILE);
    struct fake_server s;
    struct seen seen;
    bool good;

    (void)state;
    fake_open(&s, answer, NULL);
    for (size_t i = 0; i < COUNT(bad); i++) {
        get_tls(&s, &seen, bad[i], &good);
        assert_false(good);
        assert_string_equal(seen.message, refusal);
    }
    /* With a good one it comes to the server, which speaks no TLS. */
    get_tls(&s, &seen, CERTIFICATE, &good);
    assert_true(good);
    assert_string_not_equal(seen.message, refusal);
    assert_int_equal(s.requests, 0);
    fake_close(&s);
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

/* --- what else it would trust: the options of libcurl, as they are set --- */

static struct {
    bool set;
    const void *value;
} directory; /* CURLOPT_CAPATH */

#undef curl_easy_setopt
CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    void *value;
    va_list rest;

    va_start(rest, option);
    value = va_arg(rest, void *); /* every argument of it has this size here */
    va_end(rest);
    if (option == CURLOPT_CAPATH) {
        directory.set = true;
        directory.value = value;
    }
    return __real_curl_easy_setopt(easy, option, value);
}

static bool trusts_directory(struct fake_server *s, struct kubeconfig *k)
{
    struct transport *t = host_curl_transport_new(&s->loop, &CLOCK_SYSTEM, k);
    bool closed = false;

    directory.set = false;
    host_curl_wire_free(host_curl_wire_new(host_curl_from(t), STR("/"), 1000));
    t->ops->close(t, on_closed, &closed);
    fake_run_until(s, &closed);
    return !directory.set || directory.value;
}

/* libcurl trusts the directory of the system's CAs besides those it is given. */
static void test_no_other_ca(void **state)
{
    struct kubeconfig k = {.server = STR("https://127.0.0.1:1")};
    struct fake_server s;

    (void)state;
    fake_open(&s, answer, NULL);
    assert_true(trusts_directory(&s, &k));
    k.ca = str_c(CERTIFICATE);
    assert_false(trusts_directory(&s, &k));
    k.ca = STR("");
    k.ca_file = STR("/nonexistent/ca.crt");
    assert_false(trusts_directory(&s, &k));
    fake_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),     cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_budget),      cmocka_unit_test(test_no_ca_no_request),
        cmocka_unit_test(test_no_other_ca),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
