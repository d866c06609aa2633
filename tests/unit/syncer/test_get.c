/* SPDX-License-Identifier: Apache-2.0 */
/* A GET of a server that is not the host: what it sends, what it takes of it, and its ends. */
#include "fake_server.h"

#include <stdlib.h>
#include <unistd.h>

#include <sublet/host_get.h>

struct seen {
    bool over;
    int status;
    const struct err_kind *failure;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_no_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
