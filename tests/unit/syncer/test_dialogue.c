/* SPDX-License-Identifier: Apache-2.0 */
/* What the client says about the dialogue as a whole: why there is none, which rights are missing,
 * and when that is over; and that dry runs have a rate of their own. */
#include "fake_server.h"

#include <sublet/host_trouble.h>

struct outcome {
    bool done;
    const struct err_kind *kind;
};

struct heard {
    bool trouble_changed, right_changed, granted;
    unsigned troubles;
    enum host_trouble now;
    char detail[512], right[96];
};

static void on_done(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct outcome *o = ctx;

    (void)answer;
    o->done = true;
    o->kind = err ? err->kind : NULL;
}

static void on_trouble(void *ctx, enum host_trouble now, struct str detail)
{
    struct heard *h = ctx;

    h->trouble_changed = true;
    h->troubles++;
    h->now = now;
    snprintf(h->detail, sizeof(h->detail), "%.*s", STR_F(detail));
}

static void on_right(void *ctx, struct str right, bool granted, struct str detail)
{
    struct heard *h = ctx;

    h->right_changed = true;
    h->granted = granted;
    snprintf(h->right, sizeof(h->right), "%.*s", STR_F(right));
    snprintf(h->detail, sizeof(h->detail), "%.*s", STR_F(detail));
}

static void listen_to(struct fake_server *s, struct heard *h)
{
    *h = (struct heard){0};
    host_on_trouble(s->host, on_trouble, h);
    host_on_right(s->host, on_right, h);
}

static struct outcome ask(struct fake_server *s, const char *method, const char *path)
{
    struct host_request q = {.method = method, .path = str_c(path), .body = STR("{}")};
    struct outcome o = {0};

    if (!strcmp(method, "GET"))
        q.body = STR_NULL;
    host_send(s->host, &q, on_done, &o);
    fake_run_until(s, &o.done);
    return o;
}

/* --- the dialogue as a whole --- */

static void answer_status(struct fake_server *s, struct net_exchange *x,
                          const struct net_request *r)
{
    (void)r;
    fake_reply(x, *(int *)s->ctx, "{}");
}

static void test_trouble_is_told_once_and_ends(void **state)
{
    struct fake_server s;
    struct heard h;
    int status = 200;

    (void)state;
    fake_open(&s, answer_status, NULL);
    s.ctx = &status;
    listen_to(&s, &h);
    ask(&s, "GET", "/api/v1/pods");
    assert_int_equal(h.troubles, 0); /* it begins well */
    status = 401;
    for (int i = 0; i < 3; i++)
        ask(&s, "GET", "/api/v1/pods");
    assert_int_equal(h.troubles, 1);
    assert_int_equal(h.now, HOST_UNAUTHORIZED);
    assert_string_equal(HOST_TROUBLES[h.now].reason, "Unauthorized");
    status = 404; /* an answer to us all the same */
    ask(&s, "GET", "/api/v1/pods");
    assert_int_equal(h.troubles, 2);
    assert_int_equal(h.now, HOST_FINE);
    status = 500;
    ask(&s, "GET", "/api/v1/pods");
    ask(&s, "GET", "/api/v1/pods");
    assert_int_equal(h.troubles, 2);
    ask(&s, "GET", "/api/v1/pods");
    assert_int_equal(h.now, HOST_ERRORS);
    fake_close(&s);
}

static void test_no_connection(void **state)
{
    struct fake_server s;
    struct heard h;
    int status = 200;

    (void)state;
    fake_open(&s, answer_status, NULL);
    s.ctx = &status;
    listen_to(&s, &h);
    fake_go_away(&s);
    ask(&s, "GET", "/api/v1/pods");
    assert_int_equal(h.now, HOST_REFUSED);
    assert_non_null(strstr(h.detail, "127.0.0.1")); /* for the log: libcurl's own words */
    assert_null(strstr(HOST_TROUBLES[h.now].message, "127.0.0.1"));
    h.trouble_changed = false;
    fake_come_back(&s);
    fake_run_until(&s, &h.trouble_changed); /* by a probe */
    assert_int_equal(h.now, HOST_FINE);
    assert_int_equal(h.troubles, 2);
    fake_close(&s);
}

static void test_no_trust(void **state)
{
    struct fake_server s, plain;
    struct heard h;

    (void)state;
    fake_open(&plain, answer_status, NULL);
    fake_open_at(&s, "https", plain.port); /* it does not speak TLS */
    listen_to(&s, &h);
    uv_loop_t *loop = &plain.loop;
    struct host_request q = {.method = "GET", .path = STR("/version")};
    struct outcome o = {0};

    host_send(s.host, &q, on_done, &o);
    while (!h.trouble_changed) {
        uv_run(loop, UV_RUN_NOWAIT);
        uv_run(&s.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(h.now, HOST_TLS);
    assert_string_equal(HOST_TROUBLES[h.now].reason, "TLSVerificationFailed");
    fake_close(&s);
    fake_close(&plain);
}

/* --- rights --- */

#define DENIED(verb, plural)                                                                       \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"" plural      \
    " is forbidden: User \\\"u\\\" cannot " verb " resource \\\"" plural                           \
    "\\\" in API group \\\"\\\" in the namespace "                                                 \
    "\\\"n\\\"\",\"reason\":\"Forbidden\",\"code\":403}"
#define OVER_QUOTA                                                                                 \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"pods "        \
    "\\\"a\\\" is forbidden: exceeded quota: q\",\"reason\":\"Forbidden\",\"code\":403}"

static void answer_denied(struct fake_server *s, struct net_exchange *x,
                          const struct net_request *r)
{
    int *mode = s->ctx;

    (void)r;
    fake_reply(x, *mode == 200 ? 200 : 403,
               *mode == 1   ? DENIED("create", "services")
               : *mode == 2 ? OVER_QUOTA
                            : "{}");
}

static void test_missing_right_is_told_once_and_ends(void **state)
{
    static const char path[] = "/api/v1/namespaces/n/services?dryRun=All";
    struct fake_server s;
    struct heard h;
    int mode = 2;

    (void)state;
    fake_open(&s, answer_denied, NULL);
    s.ctx = &mode;
    listen_to(&s, &h);
    assert_ptr_equal(ask(&s, "POST", path).kind, &ERR_FORBIDDEN);
    assert_false(h.right_changed); /* a quota is no missing right */
    mode = 1;
    ask(&s, "POST", path);
    assert_true(h.right_changed && !h.granted);
    assert_string_equal(h.right, "create services");
    assert_non_null(strstr(h.detail, "User \"u\" cannot create"));
    h.right_changed = false;
    ask(&s, "POST", path);
    assert_false(h.right_changed);
    mode = 200;
    ask(&s, "GET", "/api/v1/namespaces/n/services/x");
    assert_false(h.right_changed); /* another right */
    ask(&s, "POST", path);
    assert_true(h.right_changed && h.granted);
    assert_int_equal(h.troubles, 0);
    fake_close(&s);
}

/* --- dry runs --- */

static void test_dry_runs_have_a_rate_of_their_own(void **state)
{
    /* Four at once, two of them only for what a write waits for. */
    struct host_options options = {.dry_qps = 1, .backoff_ms = 1, .backoff_max_ms = 20};
    struct host_request dry = {
        .method = "POST", .path = STR("/x"), .body = STR("{}"), .timeout_ms = 300, .dry_run = true};
    struct host_request urgent = dry, work = {.method = "GET", .path = STR("/y")};
    struct outcome patient[8] = {0}, now[3] = {0}, other[40] = {0};
    unsigned answered = 0, no_turn = 0;
    struct fake_server s;
    int status = 200;

    (void)state;
    urgent.urgent = true;
    fake_open(&s, answer_status, &options);
    s.ctx = &status;
    assert_true(host_has_dry_turn(s.host));
    for (size_t i = 0; i < 8; i++)
        host_send(s.host, &dry, on_done, &patient[i]);
    for (size_t i = 0; i < 3; i++)
        host_send(s.host, &urgent, on_done, &now[i]);
    for (size_t i = 0; i < 40; i++)
        host_send(s.host, &work, on_done, &other[i]);
    assert_false(host_has_dry_turn(s.host));
    fake_run_until(&s, &other[39].done);
    for (size_t i = 0; i < 40; i++)
        assert_true(other[i].done && !other[i].kind);
    fake_run_until(&s, &patient[7].done);
    for (size_t i = 0; i < 8; i++) {
        answered += patient[i].done && !patient[i].kind;
        no_turn += patient[i].kind == &ERR_TOO_MANY_REQUESTS;
    }
    assert_int_equal(answered, 2);
    assert_int_equal(no_turn, 6);
    assert_true(now[0].done && !now[0].kind);
    assert_true(now[1].done && !now[1].kind);
    fake_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trouble_is_told_once_and_ends),
        cmocka_unit_test(test_no_connection),
        cmocka_unit_test(test_no_trust),
        cmocka_unit_test(test_missing_right_is_told_once_and_ends),
        cmocka_unit_test(test_dry_runs_have_a_rate_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
