/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI documents: forms, hashes, and the host's descriptions with a host that is quick, slow,
 * silent or wrong. What the documents hold is compared with a real server by the integration suite.
 */
#include "../../../vapi/api/discovery/openapi.h"
#include "api_harness.h"

#include "test.h"

#define APPS  "/openapi/v3/apis/apps/v1"
#define BATCH "/openapi/v3/apis/batch/v1"
#define WORDS "what the host says of it"

/* ---- a host ---- */

struct question {
    struct fake_host *host;
    struct question *next;
    uv_timer_t timer;
    struct str path;
    void (*done)(void *ctx, struct str body, const struct err *err);
    void *ctx;
};

struct fake_host {
    struct harness *h;
    struct question *questions; /* newest first */
    unsigned n_index, n_documents, open;
    bool index_fails, document_fails, garbage;
    unsigned delay_ms;
};

static const char INDEX[] =
    "{\"paths\":{\"apis/apps/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/apps/v1?hash=A1\"},"
    "\"apis/batch/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/batch/v1?hash=B2\"},"
    "\"apis/other-team.example/v1\":{\"serverRelativeURL\":"
    "\"/openapi/v3/apis/other-team.example/v1?hash=C3\"}}}";
static const char DOCUMENT[] =
    "{\"components\":{\"schemas\":{"
    "\"io.k8s.api.apps.v1.DeploymentSpec\":{\"description\":\"" WORDS
    "\",\"properties\":{\"replicas\":{\"description\":\"how many, says the host\"},"
    "\"secret\":{\"description\":\"a field of a newer host\"}}},"
    "\"example.other-team.v1.Hidden\":{\"description\":\"of another team\"}}}}";

static void on_question_closed(uv_handle_t *handle)
{
    struct question *q = handle->data;

    q->host->open--;
    mem_free(q->path.p);
    mem_free(q);
}

static void on_answer(uv_timer_t *timer)
{
    struct question *q = timer->data;
    struct fake_host *host = q->host;
    bool index = str_eqc(q->path, "/openapi/v3");
    bool fails = index ? host->index_fails : host->document_fails;
    struct err err;

    err_init(&err, NULL);
    if (fails && err_set(&err, &ERR_TIMEOUT, "the host is away"))
        q->done(q->ctx, STR(""), &err);
    else
        q->done(q->ctx, host->garbage ? STR("{") : index ? str_c(INDEX) : str_c(DOCUMENT), NULL);
    uv_close((uv_handle_t *)timer, on_question_closed);
}

static void ask_host(void *ctx, struct str path, int64_t timeout_ms,
                     void (*done)(void *done_ctx, struct str body, const struct err *err),
                     void *done_ctx)
{
    struct fake_host *host = ctx;
    struct question *q = NEW(struct question);

    assert_in_range(timeout_ms, 1, 5000);
    assert_false(str_contains(path, STR("other-team")));
    *(str_eqc(path, "/openapi/v3") ? &host->n_index : &host->n_documents) += 1;
    *q = (struct question){host, host->questions, {0}, mem_str(path), done, done_ctx};
    host->questions = q;
    host->open++;
    q->timer.data = q;
    uv_timer_init(vapi_loop(harness_api(host->h)), &q->timer);
    uv_timer_start(&q->timer, on_answer, host->delay_ms, 0);
}

static int setup(void **state)
{
    struct fake_host *host = NEW(struct fake_host);
    struct vapi_hooks hooks = {.ctx = host, .openapi = ask_host};

    host->h = harness_new_with(&hooks);
    *state = host;
    return 0;
}

static int teardown(void **state)
{
    struct fake_host *host = *state;

    harness_free(host->h);
    assert_int_equal(host->open, 0);
    mem_free(host);
    return 0;
}

/* ---- helpers ---- */

static struct answer get_with(struct harness *h, const char *path, const char *header)
{
    return ask(h, "GET", path, NULL, STR(""), (const char *const[]){header, NULL});
}

static const char *url_of(struct harness *h, const char *root)
{
    struct answer index = get(h, "/openapi/v3");
    const cJSON *entry;

    assert_int_equal(index.status, 200);
    entry = json_get(json_get(index.json, "paths"), root);
    return arena_cstr(harness_arena(h), json_str_at(entry, "serverRelativeURL"));
}

static const cJSON *schema_in(const struct answer *a, const char *name)
{
    return json_get(json_path(a->json, "components.schemas"), name);
}

static struct str spec_text(const struct answer *a)
{
    return json_str(json_get(schema_in(a, "io.k8s.api.apps.v1.DeploymentSpec"), "description"));
}

/* ---- tests ---- */

static void test_forms(void **state)
{
    struct fake_host *host = *state;
    struct harness *h = host->h;
    struct answer a = get(h, "/openapi/v2");

    assert_int_equal(a.status, 200);
    assert_str(json_str_at(a.json, "swagger"), "2.0");
    assert_non_null(json_get(json_get(a.json, "definitions"), "io.k8s.api.core.v1.ConfigMap"));
    assert_true(has_header(&a, "vary: Accept"));
    assert_int_equal(host->n_index, 0);

    a = get_with(h, "/openapi/v2",
                 "accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
    assert_int_equal(a.status, 200);
    assert_true(
        has_header(&a, "content-type: application/com.github.proto-openapi.spec.v2.v1.0+protobuf"));
    assert_memory_equal(a.body.p,
                        "\x0a\x03"
                        "2.0",
                        5);

    assert_int_equal(get_with(h, "/openapi/v2", "accept: text/html").status, 406);
    assert_int_equal(get_with(h, APPS, "accept: text/html").status, 406);
    assert_int_equal(get_with(h, "/openapi/v2", "accept: text/html, */*;q=0.1").status, 200);
    assert_int_equal(get_with(h, "/openapi/v2", "if-none-match: *").status, 304);
    assert_int_equal(get(h, "/openapi/v3/apis/none/v1").status, 404);
    assert_int_equal(get(h, "/openapi/v4").status, 404);
}

static void test_hashes(void **state)
{
    struct fake_host *host = *state;
    struct harness *h = host->h;
    const char *url = url_of(h, "apis/apps/v1"), *hash = strchr(url, '=') + 1;
    char known[160];
    struct answer a = get(h, url);

    assert_int_equal(a.status, 200);
    assert_true(has_header(&a, "cache-control: public, immutable"));
    snprintf(known, sizeof known, "etag: \"%s\"", hash);
    assert_true(has_header(&a, known));
    snprintf(known, sizeof known, "if-none-match: \"x\", W/\"%s\"", hash);
    assert_int_equal(get_with(h, url, known).status, 304);
    a = get(h, APPS "?hash=0");
    assert_int_equal(a.status, 301);
    snprintf(known, sizeof known, "location: %s", url);
    assert_true(has_header(&a, known));
    a = get(h, APPS);
    assert_int_equal(a.status, 200);
    assert_false(has_header(&a, "cache-control: public, immutable"));
}

static void test_text(void **state)
{
    struct fake_host *host = *state;
    struct harness *h = host->h;
    struct answer a = get(h, url_of(h, "apis/apps/v1"));
    const cJSON *spec = schema_in(&a, "io.k8s.api.apps.v1.DeploymentSpec");

    assert_str(spec_text(&a), WORDS);
    assert_str(json_str_at(spec, "properties.replicas.description"), "how many, says the host");
    assert_null(json_get(json_get(spec, "properties"), "secret"));
    assert_null(schema_in(&a, "example.other-team.v1.Hidden"));
    get(h, APPS);
    assert_int_equal(host->n_index, 1);
    assert_int_equal(host->n_documents, 1);
    /* In protobuf it is another document to keep. */
    a = get_with(h, APPS, "accept: application/com.github.proto-openapi.spec.v3@v1.0+protobuf");
    assert_true(str_contains(a.body, STR(WORDS)));
    assert_int_equal(host->n_documents, 2);
}

static void test_shared(void **state)
{
    struct fake_host *host = *state;
    struct harness *h = host->h;
    struct request *waiting[4];
    struct answer a;

    host->delay_ms = 20;
    for (size_t i = 0; i < 4; i++)
        waiting[i] = ask_begin(h, "GET", APPS, NULL, STR(""), NULL);
    for (size_t i = 0; i < 4; i++) {
        a = ask_end(h, waiting[i]);
        assert_int_equal(a.status, 200);
        assert_str(spec_text(&a), WORDS);
    }
    assert_int_equal(host->n_index, 1);
    assert_int_equal(host->n_documents, 1);
}

static void test_no_document(void **state)
{
    struct fake_host *host = *state;
    struct harness *h = host->h;
    const char *url = url_of(h, "apis/apps/v1"), *other;
    struct answer a;

    host->document_fails = true;
    a = get(h, url);
    assert_int_equal(a.status, 200);
    assert_int_equal(spec_text(&a).n, 0);
    assert_false(has_header(&a, "cache-control: public, immutable"));
    /* It is left alone for a while: the index promises no descriptions now. */
    other = url_of(h, "apis/apps/v1");
    assert_string_not_equal(url, other);
    assert_true(str_contains(get(h, other).headers, STR("immutable")));
    get(h, BATCH);
    assert_int_equal(host->n_index, 1);
    assert_int_equal(host->n_documents, 1);
    /* Then it is requested again. */
    host->document_fails = false;
    harness_set_time(h, 1800000000 + 60);
    assert_string_equal(url, url_of(h, "apis/apps/v1"));
    a = get(h, url);
    assert_str(spec_text(&a), WORDS);
}

static void test_no_index(void **state)
{
    struct fake_host *host = *state;
    struct harness *h = host->h;
    struct answer a;

    host->index_fails = true;
    a = get(h, url_of(h, "apis/apps/v1"));
    assert_int_equal(a.status, 200);
    assert_int_equal(spec_text(&a).n, 0);
    assert_int_equal(host->n_documents, 0);
}

static void test_garbage(void **state)
{
    struct fake_host *host = *state;
    struct answer a;

    host->garbage = true;
    a = get(host->h, APPS);
    assert_int_equal(a.status, 200);
    assert_int_equal(spec_text(&a).n, 0);
}

/* The client may disconnect, and the server end, while the host is slow. */
static void test_end_while_waiting(void **state)
{
    struct fake_host *host = *state;
    struct request *r;

    get(host->h, "/openapi/v3");
    host->delay_ms = 50;
    r = ask_begin(host->h, "GET", APPS, NULL, STR(""), NULL);
    ask(host->h, "GET", "/api/v1/namespaces/default/configmaps", NULL, STR(""), NULL);
    harness_stop(host->h);
    ask_forget(host->h, r);
}

static void test_messages(void **state)
{
    struct arena *a = arena_new(0);
    struct buf out = BUF_INIT(0);
    cJSON *tree;
    struct err err;
    /* NamedSchema{name "A", value {required "b", type {value "object"}, x-y: true}} */
    static const char want[] = "\x0a\x26"
                               "\x0a\x01"
                               "A"
                               "\x12\x21"
                               "\x9a\x01\x01"
                               "b"
                               "\xb2\x01\x08\x0a\x06"
                               "object"
                               "\xfa\x01\x0f\x0a\x03"
                               "x-y"
                               "\x12\x08\x12\x06"
                               "\"yes\"\n";

    (void)state;
    err_init(&err, a);
    assert_int_equal(json_parse(a,
                                STR("{\"type\":\"object\",\"required\":[\"b\"],\"x-y\":\"yes\"}"),
                                &tree, &err),
                     0);
    gnostic_add_named(&out, GNOSTIC_V2_SCHEMA, STR("A"), tree);
    if (out.n != sizeof want - 1 || memcmp(out.p, want, out.n) != 0)
        for (size_t i = 0; i < out.n; i++)
            print_error("%02x ", (unsigned char)out.p[i]);
    assert_int_equal(out.n, sizeof want - 1);
    assert_memory_equal(out.p, want, out.n);
    buf_fini(&out);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hashes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_document, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_index, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_end_while_waiting, setup, teardown),
        cmocka_unit_test(test_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
