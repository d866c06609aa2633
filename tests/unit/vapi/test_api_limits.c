/* SPDX-License-Identifier: Apache-2.0 */
/* What bounds a request, and what is reported of it: deadlines, turns and seats, streams per user,
 * warnings, /metrics. */
#include "api_harness.h"

#include "test.h"

#include <stdlib.h>

#include <uv.h>

#include <sublet/metrics.h>

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"

/* ---- a hook that does not answer until the test says so ---- */

static struct stall {
    struct harness *h;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
    bool called;
    unsigned to_stall; /* calls that are held back; the others pass */
    int64_t jump_s;    /* how far the clock goes meanwhile */
} STALL;

struct pass {
    uv_idle_t idle;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
};

static void on_pass_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void on_pass(uv_idle_t *idle)
{
    struct pass *p = idle->data;

    uv_close((uv_handle_t *)idle, on_pass_closed);
    p->done(p->ctx, NULL);
}

static void admit(void *ctx, struct arena *a, const struct resource *r, cJSON *object,
                  const cJSON *old, bool dry_run, void (*done)(void *ctx, const struct err *err),
                  void *done_ctx)
{
    struct pass *p;

    (void)ctx, (void)a, (void)r, (void)object, (void)old, (void)dry_run;
    if (STALL.to_stall) {
        STALL.to_stall--;
        STALL.done = done;
        STALL.ctx = done_ctx;
        STALL.called = true;
        if (STALL.jump_s)
            harness_set_time(STALL.h, 1800000000 + STALL.jump_s);
        return;
    }
    p = NEW(struct pass);
    *p = (struct pass){.done = done, .ctx = done_ctx};
    uv_idle_init(vapi_loop(harness_api(STALL.h)), &p->idle);
    p->idle.data = p;
    uv_idle_start(&p->idle, on_pass);
}

static bool wants(void *ctx, const struct resource *r, const cJSON *object, const cJSON *old)
{
    (void)ctx, (void)old;
    return STALL.h && str_eqc(r->plural, "configmaps") && object;
}

static struct harness *stalling(const struct config *config)
{
    static const struct vapi_hooks hooks = {.admit = admit, .wants_admit = wants};
    struct harness *h;

    STALL = (struct stall){0};
    h = harness_new_for(&hooks, config);
    STALL.h = h;
    return h;
}

static void go_on(void)
{
    STALL.done(STALL.ctx, NULL);
    STALL.done = NULL;
}

static struct str message(const struct answer *a)
{
    return json_str_at(a->json, "message");
}

static struct request *create(struct harness *h, const char *name, const char *query,
                              const char *const *headers)
{
    struct arena *a = harness_arena(h);

    return ask_begin(h, "POST", arena_printf(a, "%s%s", CONFIGMAPS, query).p, NULL,
                     arena_printf(a, "{\"metadata\":{\"name\":\"%s\"}}", name), headers);
}

/* ---- deadlines ---- */

static void a_late_write_goes_on(void **state)
{
    struct harness *h = stalling(NULL);
    struct request *r;
    struct answer a;

    (void)state;
    STALL.to_stall = 1;
    STALL.jump_s = 1;
    r = create(h, "late", "?timeout=30ms", NULL);
    a = ask_end(h, r);
    assert_int_equal(a.status, 504);
    assert_str(a.body,
               "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not "
               "complete within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},"
               "\"code\":504}\n");
    assert_true(has_header(&a, "content-type: text/plain; charset=utf-8"));
    assert_true(STALL.called);
    assert_int_equal(get(h, CONFIGMAPS "/late").status, 404);
    go_on();
    for (int i = 0; i < 200; i++)
        if (get(h, CONFIGMAPS "/late").status == 200)
            break;
    assert_int_equal(get(h, CONFIGMAPS "/late").status, 200);
    harness_free(h);
}

static void the_default_is_a_minute(void **state)
{
    struct config config = {.request_timeout_ms = 30};
    struct harness *h = stalling(&config);
    struct answer a;

    (void)state;
    STALL.to_stall = 1;
    STALL.jump_s = 1;
    a = ask_end(h, create(h, "late", "?timeout=1h", NULL));
    assert_int_equal(a.status, 504);
    go_on();
    harness_free(h);
}

static void a_timeout_must_be_a_duration(void **state)
{
    struct harness *h = harness_new();
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"never", "invalid duration \"never\""},
        {"-", "invalid duration \"-\""},
        {"1", "missing unit in duration \"1\""},
        {"1h2x", "unknown unit \"x\" in duration \"1h2x\""},
        {"1h.s", "invalid duration \"1h.s\""},
    };
    struct arena *arena = harness_arena(h);

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer a = get(h, arena_printf(arena, "%s?timeout=%s", CONFIGMAPS, cases[i].text).p);

        assert_int_equal(a.status, 400);
        assert_str(message(&a),
                   arena_printf(arena, "invalid timeout specified in the request URL - time: %s",
                                cases[i].problem)
                       .p);
    }
    assert_int_equal(get(h, CONFIGMAPS "?timeout=0").status, 200);
    assert_int_equal(get(h, CONFIGMAPS "?timeout=1ns").status, 200);
    harness_free(h);
}

/* ---- seats ---- */

/* -1: it is not reported (yet). */
static double sample(struct harness *h, const char *line)
{
    struct answer a = get(h, "/metrics");
    struct str rest = a.body;

    while (rest.p) {
        struct str one = str_cut(&rest, '\n');

        if (str_has_prefix(one, str_c(line)) && one.n > strlen(line) && one.p[strlen(line)] == ' ')
            return strtod(arena_cstr(harness_arena(h), str_from(one, strlen(line))), NULL);
    }
    return -1;
}

static void writes_wait_for_seats(void **state)
{
    static const char *const bob[] = {"x-user: bob", NULL};
    struct config config = {.max_mutating = 1};
    struct harness *h = stalling(&config);
    struct request *r[3];

    (void)state;
    STALL.to_stall = 1;
    r[0] = create(h, "a", "", NULL);
    harness_run_until(h, &STALL.called);
    r[1] = create(h, "b", "", NULL);
    r[2] = create(h, "c", "", bob);
    while (sample(h, "apiserver_flowcontrol_current_inqueue_requests"
                     "{priority_level=\"catch-all\"}") < 2)
        continue;
    assert_int_equal(sample(h, "apiserver_current_inflight_requests{request_kind=\"mutating\"}"),
                     1);
    assert_int_equal(get(h, CONFIGMAPS "/b").status, 404); /* reads have seats of their own */
    go_on();
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_end(h, r[i]).status, 201);
    assert_int_equal(sample(h, "apiserver_current_inflight_requests{request_kind=\"mutating\"}"),
                     0);
    assert_int_equal(sample(h, "sublet_requests_queued_total"), 2);
    harness_free(h);
}

static void nobody_waits_for_ever(void **state)
{
    struct config config = {.max_mutating = 1};
    struct harness *h = stalling(&config);
    struct request *first, *second;
    struct answer a;

    (void)state;
    STALL.to_stall = 1;
    first = create(h, "a", "", NULL);
    harness_run_until(h, &STALL.called);
    second = create(h, "b", "?timeout=80ms", NULL);
    while (sample(h, "sublet_requests_queued_total") < 1)
        continue;
    harness_set_time(h, 1800000001);
    a = ask_end(h, second);
    assert_int_equal(a.status, 429);
    assert_str(message(&a), "Too many requests, please try again later.");
    assert_str(json_str_at(a.json, "reason"), "TooManyRequests");
    assert_int_equal(json_i64_at(a.json, "details.retryAfterSeconds", 0), 1);
    assert_true(has_header(&a, "retry-after: 1"));
    assert_int_equal(sample(h, "sublet_requests_refused_total{reason=\"time-out\"}"), 1);
    go_on();
    assert_int_equal(ask_end(h, first).status, 201);
    assert_int_equal(get(h, CONFIGMAPS "/b").status, 404);
    harness_free(h);
}

static void streams_are_counted_by_user(void **state)
{
    static const char *const bob[] = {"x-user: bob", NULL};
    struct config config = {.max_watches = 1};
    struct harness *h = harness_new_for(NULL, &config);
    struct request *mine, *his;
    struct answer a;

    (void)state;
    mine = ask_begin(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, NULL);
    while (sample(h, "apiserver_longrunning_requests{component=\"apiserver\",group="
                     "\"\",resource=\"configmaps\",scope=\"namespace\",subresource=\"\",verb="
                     "\"WATCH\",version=\"v1\"}") < 1)
        continue;
    a = get(h, CONFIGMAPS "?watch=1");
    assert_int_equal(a.status, 429);
    his = ask_begin(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, bob);
    while (sample(h, "apiserver_longrunning_requests{component=\"apiserver\",group="
                     "\"\",resource=\"configmaps\",scope=\"namespace\",subresource=\"\",verb="
                     "\"WATCH\",version=\"v1\"}") < 2)
        continue;
    harness_stop(h);
    ask_forget(h, mine);
    ask_forget(h, his);
    harness_free(h);
}

/* ---- warnings ---- */

static unsigned count(struct str text, const char *part)
{
    unsigned n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += str_has_prefix(str_from(text, i), str_c(part));
    return n;
}

static struct answer warned(struct harness *h, size_t fields, size_t length)
{
    struct arena *a = harness_arena(h);
    struct buf b = BUF_INIT(0);
    struct answer answer;

    buf_addc(&b, "{\"metadata\":{\"name\":\"w\"}");
    for (size_t i = 0; i < fields; i++) {
        buf_printf(&b, ",\"u%03zu", i);
        for (size_t k = 4; k < length; k++)
            buf_addc(&b, "\xc3\xa9");
        buf_addc(&b, "\":1");
    }
    buf_char(&b, '}');
    answer = ask(h, "POST", CONFIGMAPS "?dryRun=All", NULL, arena_str(a, buf_str(&b)), NULL);
    buf_fini(&b);
    return answer;
}

static void warnings_are_bounded(void **state)
{
    struct harness *h = harness_new();
    struct answer a = warned(h, 30, 20);

    (void)state;
    assert_int_equal(a.status, 201);
    assert_int_equal(count(a.headers, "warning: 299 - \"unknown field"), 30);
    a = warned(h, 3, 1000); /* within 4096 characters: as they are */
    assert_int_equal(count(a.headers, "warning: 299"), 3);
    assert_true(a.headers.n > 6000);
    a = warned(h, 50, 1000); /* beyond: 256 characters of each, 4096 in all */
    assert_int_equal(count(a.headers, "warning: 299"), 16);
    assert_true(a.headers.n < 16 * (2 * 256 + 32) + 1000);
    harness_free(h);
}

/* ---- metrics ---- */

static bool is_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
              (i && c >= '0' && c <= '9')))
            return false;
    }
    return s.n > 0;
}

/* Labels up to the closing brace; what follows it. */
static struct str skip_labels(struct str s)
{
    while (s.n && s.p[0] != '}') {
        struct str name = str_cut(&s, '=');
        size_t i = 1;

        assert_true(is_name(name));
        assert_true(s.n && s.p[0] == '"');
        for (; i < s.n && s.p[i] != '"'; i++)
            i += s.p[i] == '\\';
        s = str_from(s, i + 1);
        if (s.n && s.p[0] == ',')
            s = str_from(s, 1);
    }
    assert_true(s.n);
    return str_from(s, 1);
}

/* The name of the family a sample belongs to. */
static bool of_family(struct str name, struct str family)
{
    static const char *const suffixes[] = {"", "_bucket", "_sum", "_count"};

    for (size_t i = 0; i < 4; i++)
        if (str_has_prefix(name, family) && str_eqc(str_from(name, family.n), suffixes[i]))
            return true;
    return false;
}

static void check_sample(struct arena *a, struct str line, struct str family)
{
    size_t end =
        str_find(line, '{') < str_find(line, ' ') ? str_find(line, '{') : str_find(line, ' ');
    struct str name = str_sub(line, 0, end), rest = str_from(line, end);
    char *stop;

    assert_true(is_name(name));
    if (!of_family(name, family))
        fail_msg("%.*s is not in %.*s", STR_F(name), STR_F(family));
    if (rest.p[0] == '{')
        rest = skip_labels(str_from(rest, 1));
    assert_true(rest.n > 1 && rest.p[0] == ' ');
    strtod(arena_cstr(a, str_from(rest, 1)), &stop);
    assert_int_equal(*stop, '\0');
}

static bool seen_before(struct str all, struct str line)
{
    struct str head = str_sub(line, 0, str_rfind(line, ' ') + 1);
    struct str before = {all.p, (size_t)(line.p - all.p)};

    while (before.n) {
        struct str one = str_cut(&before, '\n');

        if (str_has_prefix(one, head))
            return true;
    }
    return false;
}

/* The labels of a sample are those its row declares. */
static void check_labels(struct str line)
{
    static const struct {
        const char *name, *labels;
    } rows[] = {
#define METRIC(id, type, name, labels, help) {name, labels},
#include <sublet/tbl/metrics.h>
#undef METRIC
    };
    struct str head = str_sub(line, 0, str_rfind(line, ' ')), name = str_cut(&head, '{');
    struct buf labels = BUF_INIT(0);

    while (str_find(head, '=') < head.n) {
        struct str label = str_cut(&head, '=');

        if (!str_eqc(label, "le"))
            buf_printf(&labels, "%s%.*s", labels.n ? "," : "", STR_F(label));
        head = str_from(head, 1);
        str_cut(&head, '"');
        head = str_from(head, head.n > 0 && head.p[0] == ',');
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct str rest = str_has_prefix(name, str_c(rows[i].name))
                              ? str_from(name, strlen(rows[i].name))
                              : STR("no");

        if (!rest.n || str_eqc(rest, "_bucket") || str_eqc(rest, "_sum") || str_eqc(rest, "_count"))
            assert_str(buf_str(&labels), rows[i].labels);
    }
    buf_fini(&labels);
}

static void metrics_can_be_scraped(void **state)
{
    struct harness *h = harness_new();
    struct str all, rest, family = STR("");
    unsigned samples = 0;
    struct answer a;

    (void)state;
    post(h, CONFIGMAPS, "{\"metadata\":{\"name\":\"a\"}}");
    get(h, CONFIGMAPS);
    get(h, CONFIGMAPS "/none");
    get(h, "/nowhere");
    a = get(h, "/metrics");
    assert_int_equal(a.status, 200);
    assert_true(has_header(&a, "content-type: text/plain; version=0.0.4"));
    all = rest = a.body;
    assert_true(str_has_suffix(all, STR("\n")));
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        assert_false(seen_before(all, line));
        if (str_has_prefix(line, STR("# HELP "))) {
            struct str words = str_from(line, 7);

            family = str_cut(&words, ' ');
            assert_true(words.n > 0);
        } else if (str_has_prefix(line, STR("# TYPE "))) {
            assert_true(str_has_prefix(str_from(line, 7), family));
        } else {
            check_sample(harness_arena(h), line, family);
            check_labels(line);
            samples++;
        }
    }
    assert_true(samples > 50);
    assert_int_equal(
        sample(h, "apiserver_request_total{code=\"404\",component=\"apiserver\",dry_run=\"\",group="
                  "\"\",resource=\"configmaps\",scope=\"resource\",subresource=\"\",verb=\"GET\","
                  "version=\"v1\"}"),
        1);
    assert_int_equal(sample(h, "apiserver_storage_objects{resource=\"configmaps\"}"), 1);
    harness_free(h);
}

#define H "apiserver_request_duration_seconds"
static void labels_are_escaped(void **state)
{
    static const double bounds[] = {0.1, 1};
    uint64_t counts[] = {1, 2, 3};
    struct metrics_histogram histogram = {counts, 1500000};
    struct buf out = BUF_INIT(0), labels = BUF_INIT(0);

    (void)state;
    metrics_label(&labels, "a", STR("x\"\\\ny"));
    metrics_label(&labels, "b", STR(""));
    metrics_sample(&out, METRIC_WORKQUEUE_DEPTH, buf_str(&labels), 0.25);
    metrics_single(&out, METRIC_STORE_BYTES, 1e15);
    metrics_histogram(&out, METRIC_REQUEST_DURATION, STR("l=\"1\""), bounds, 2, &histogram);
    assert_str(buf_str(&out),
               "workqueue_depth{a=\"x\\\"\\\\\\ny\",b=\"\"} 0.25\n"
               "# HELP sublet_store_live_bytes Bytes of all live objects.\n"
               "# TYPE sublet_store_live_bytes gauge\nsublet_store_live_bytes 1e+15\n" H
               "_bucket{l=\"1\",le=\"0.1\"} 1\n" H "_bucket{l=\"1\",le=\"1\"} 3\n" H
               "_bucket{l=\"1\",le=\"+Inf\"} 6\n" H "_sum{l=\"1\"} 1.5\n" H "_count{l=\"1\"} 6\n");
    buf_fini(&out);
    buf_fini(&labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_write_goes_on),
        cmocka_unit_test(the_default_is_a_minute),
        cmocka_unit_test(a_timeout_must_be_a_duration),
        cmocka_unit_test(writes_wait_for_seats),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(streams_are_counted_by_user),
        cmocka_unit_test(warnings_are_bounded),
        cmocka_unit_test(metrics_can_be_scraped),
        cmocka_unit_test(labels_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
