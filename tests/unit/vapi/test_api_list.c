/* SPDX-License-Identifier: Apache-2.0 */
/* Long lists, and the memory they and others may take: what is made row by row is byte for byte
 * what printing one tree gives; a slow reader costs little and gets one revision; a client that
 * disconnects leaves nothing; over its budget the process refuses, and comes back. */
#include "api_harness.h"

#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>
#include <zlib.h>

#include <sublet/call.h>
#include <sublet/proto.h>
#include <sublet/yaml.h>

#define CONFIGMAPS "/api/v1/namespaces/default/configmaps"
#define BIG        (48u << 10)
#define MANY       60u
#define MIB        ((size_t)1 << 20)

/* ---- a namespace of some megabytes ---- */

static void create(struct harness *h, unsigned i, size_t bytes)
{
    struct buf b = BUF_INIT(0);

    buf_printf(&b, "{\"metadata\":{\"name\":\"c%04u\",\"labels\":{\"i\":\"%u\"}},\"data\":{", i, i);
    buf_addc(&b, "\"lines\":\"a: b\\n  <c> \\u2028\\n\",\"k\":\"");
    for (size_t n = 0; n < bytes; n += 8)
        buf_addc(&b, i % 3 ? "abcd \\n:#" : "abcdefgh");
    buf_addc(&b, "\"}}");
    assert_int_equal(
        ask(h, "POST", CONFIGMAPS, NULL, arena_str(harness_arena(h), buf_str(&b)), NULL).status,
        201);
    buf_fini(&b);
}

static struct harness *filled(const struct config *config)
{
    struct harness *h = harness_new_for(NULL, config);

    for (unsigned i = 0; i < MANY; i++)
        create(h, i, i % 2 ? BIG : 100);
    return h;
}

static struct answer list(struct harness *h, const char *query, const char *accept)
{
    struct arena *a = harness_arena(h);
    const char *headers[] = {arena_printf(a, "accept: %s", accept).p, NULL};

    return ask(h, "GET", arena_printf(a, CONFIGMAPS "%s", query).p, NULL, STR_NULL, headers);
}

static double sample(struct harness *h, const char *name)
{
    struct str rest = get(h, "/metrics").body;

    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        if (str_has_prefix(line, str_c(name)) && line.n > str_c(name).n &&
            line.p[str_c(name).n] == ' ')
            return strtod(line.p + str_c(name).n, NULL);
    }
    return -1;
}

/* ---- the forms ---- */

enum shape { OBJECTS, TABLE, PARTIAL };

struct form {
    const char *accept, *query;
    enum shape shape;
    enum table_include include;
    bool beta;
    void (*print)(struct arena *a, struct buf *b, const cJSON *tree);
};

static void as_json(struct arena *a, struct buf *b, const cJSON *tree)
{
    (void)a;
    json_print(b, tree);
    buf_char(b, '\n');
}

static void as_pretty(struct arena *a, struct buf *b, const cJSON *tree)
{
    (void)a;
    json_print_pretty(b, tree);
    buf_char(b, '\n');
}

static void as_yaml(struct arena *a, struct buf *b, const cJSON *tree)
{
    (void)a;
    yaml_print(b, tree);
}

static void as_protobuf(struct arena *a, struct buf *b, const cJSON *tree)
{
    struct str bytes;

    if (proto_encode(a, tree, &bytes))
        buf_add(b, bytes);
    else
        as_json(a, b, tree); /* it has no message */
}

#define AS_TABLE   ";as=Table;v=v1;g=meta.k8s.io"
#define JSON_TABLE ("application/json" AS_TABLE)
#define AS_PARTIAL ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
#define PROTO      "application/vnd.kubernetes.protobuf"

static const struct form FORMS[] = {
    {"application/json" AS_TABLE, "?x", TABLE, INCLUDE_METADATA, false, as_json},
    {"application/json" AS_TABLE, "?includeObject=None", TABLE, INCLUDE_NONE, false, as_json},
    {"application/json" AS_TABLE, "?includeObject=Object", TABLE, INCLUDE_OBJECT, false, as_json},
    {"application/json;as=Table;v=v1beta1;g=meta.k8s.io", "?x", TABLE, INCLUDE_METADATA, true,
     as_json},
    {"application/json" AS_TABLE, "?pretty=true&includeObject=Object", TABLE, INCLUDE_OBJECT, false,
     as_pretty},
    {"application/yaml" AS_TABLE, "?includeObject=Object", TABLE, INCLUDE_OBJECT, false, as_yaml},
    {"application/json" AS_PARTIAL, "?x", PARTIAL, INCLUDE_METADATA, false, as_json},
    {"application/yaml" AS_PARTIAL, "?x", PARTIAL, INCLUDE_METADATA, false, as_yaml},
    {PROTO AS_PARTIAL, "?x", PARTIAL, INCLUDE_METADATA, false, as_protobuf},
    {"application/json", "?pretty=1", OBJECTS, INCLUDE_METADATA, false, as_pretty},
    {"application/yaml", "?x", OBJECTS, INCLUDE_METADATA, false, as_yaml},
    {PROTO, "?x", OBJECTS, INCLUDE_METADATA, false, as_protobuf},
};
#define N_FORMS COUNT(FORMS)

/* What a list is as one tree, from the same objects read one by one. */
static cJSON *whole(struct harness *h, const struct form *form, const cJSON *plain)
{
    struct arena *a = harness_arena(h);
    const struct resource *r = harness_resource(h, "", "configmaps");
    const char *key = form->shape == TABLE ? "rows" : "items";
    cJSON *tree = form->shape == TABLE ? respond_table_head(a, r, 1, true) : json_new_object(a);

    if (form->shape != TABLE) {
        json_set_str(a, tree, "kind",
                     form->shape == PARTIAL ? STR("PartialObjectMetadataList")
                                            : STR("ConfigMapList"));
        json_set_str(a, tree, "apiVersion",
                     form->shape == PARTIAL ? STR("meta.k8s.io/v1") : STR("v1"));
    }
    json_set(a, tree, "metadata", json_copy(a, json_get(plain, "metadata")));
    if (form->shape != TABLE)
        json_set(a, tree, "items",
                 form->shape == PARTIAL && !json_count(json_get(plain, "items"))
                     ? json_new_null(a)
                     : json_new_array(a));
    if (form->beta)
        json_set_str(a, tree, "apiVersion", STR("meta.k8s.io/v1beta1"));
    json_each(item, json_get(plain, "items"))
    {
        cJSON *object = json_copy(a, item), *row;

        if (form->shape != OBJECTS) {
            json_set_first(a, object, "apiVersion", json_new_string(a, STR("v1")));
            json_set_first(a, object, "kind", json_new_string(a, STR("ConfigMap")));
        }
        row = form->shape == TABLE     ? respond_table_row(a, r, object, form->include, 1800000000)
              : form->shape == PARTIAL ? respond_partial_metadata(a, r, object)
                                       : object;
        if (form->beta)
            json_set_str(a, json_get(row, "object"), "apiVersion", STR("meta.k8s.io/v1beta1"));
        json_append(json_get(tree, key), row);
    }
    return tree;
}

/* The control plane writes objects of its own while it starts: all is read as of one revision. */
static const char *as_of(struct harness *h, const char *query)
{
    struct answer now = list(h, "?limit=1", "application/json");

    return arena_printf(harness_arena(h), "%s&resourceVersionMatch=Exact&resourceVersion=%.*s",
                        query, STR_F(json_str_at(now.json, "metadata.resourceVersion")))
        .p;
}

static void check_form(struct harness *h, const struct form *form, const char *query)
{
    struct arena *a = harness_arena(h);
    const char *more = as_of(h, query);
    struct answer plain = list(h, arena_printf(a, "?%s", more).p, "application/json");
    struct answer got = list(h, arena_printf(a, "%s&%s", form->query, more).p, form->accept);
    struct buf want = BUF_INIT(0);

    assert_int_equal(plain.status, 200);
    form->print(a, &want, whole(h, form, plain.json));
    if (got.status != 200 || !str_eq(got.body, buf_str(&want))) {
        print_error("%s%s&%s: %d, %zu bytes for %zu\n%.*s\n%.*s\n", form->accept, form->query, more,
                    got.status, got.body.n, want.n, STR_F(str_sub(got.body, 0, 600)),
                    STR_F(str_sub(buf_str(&want), 0, 600)));
        fail();
    }
    buf_fini(&want);
}

static void test_forms_are_those_of_one_tree(void **state)
{
    struct harness *h = filled(NULL);
    struct answer a;

    (void)state;
    for (size_t i = 0; i < N_FORMS; i++) {
        check_form(h, &FORMS[i], "y");
        check_form(h, &FORMS[i], "limit=7");
        check_form(h, &FORMS[i], "limit=1");
        check_form(h, &FORMS[i], "labelSelector=i%3D41");
        check_form(h, &FORMS[i], "labelSelector=none%3Dhere");
    }
    /* Short ones have a length, long ones are sent while they are made. */
    a = list(h, "?limit=1", "application/yaml");
    assert_true(has_header(&a, "content-length:"));
    a = list(h, "", "application/yaml");
    assert_true(has_header(&a, "transfer-encoding: chunked"));
    assert_true(has_header(&a, "content-type: application/yaml"));
    a = list(h, "", "application/json");
    assert_true(has_header(&a, "content-length:"));
    assert_int_equal(json_count(json_get(a.json, "items")), MANY);
    assert_int_equal(sample(h, "sublet_streamed_answers"), 0);
    assert_true(sample(h, "sublet_streamed_answers_total") > 1);
    harness_free(h);
}

/* ---- gzip ---- */

static struct str inflated(struct arena *a, struct str packed, size_t most)
{
    char *out = arena_alloc(a, most);
    z_stream z = {0};
    union {
        const char *from;
        unsigned char *to;
    } in = {.from = packed.p};

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = in.to;
    z.avail_in = (uInt)packed.n;
    z.next_out = (unsigned char *)out;
    z.avail_out = (uInt)most;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    inflateEnd(&z);
    return (struct str){out, most - z.avail_out};
}

static void test_gzip_of_any_form(void **state)
{
    static const char *const accepts[] = {"application/json", "application/yaml", PROTO,
                                          JSON_TABLE};
    struct harness *h = filled(NULL);
    struct arena *arena = harness_arena(h);

    (void)state;
    for (size_t i = 0; i < COUNT(accepts); i++) {
        const char *query = "?includeObject=Object";
        const char *headers[] = {"accept-encoding: gzip",
                                 arena_printf(arena, "accept: %s", accepts[i]).p, NULL};
        struct answer plain = list(h, query, accepts[i]);
        struct answer a =
            ask(h, "GET", arena_printf(arena, CONFIGMAPS "%s", query).p, NULL, STR_NULL, headers);
        struct str text;

        assert_int_equal(a.status, 200);
        assert_true(has_header(&a, "content-encoding: gzip"));
        assert_true(a.body.n < plain.body.n / 4);
        text = inflated(arena, a.body, plain.body.n + 1);
        assert_true(str_eq(text, plain.body));
    }
    harness_free(h);
}

/* ---- slow readers, and readers that stop early ---- */

static void turn(struct harness *h)
{
    uv_run(vapi_loop(harness_api(h)), UV_RUN_NOWAIT);
}

/* A client with a small window. */
static int connect_to(struct harness *h)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)vapi_port(harness_api(h)))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 16384;

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void request(int fd, const char *path, const char *accept)
{
    char text[512];
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: %s\r\n\r\n", path,
                     accept);

    assert_int_equal(write(fd, text, (size_t)n), n);
}

/* Nothing happens any more: the reader has what it can hold. */
static void run_until_quiet(struct harness *h)
{
    for (unsigned quiet = 0; quiet < 200;) {
        quiet = uv_run(vapi_loop(harness_api(h)), UV_RUN_NOWAIT) ? quiet + 1 : 200;
        usleep(100);
    }
}

static struct str read_all(struct harness *h, int fd)
{
    struct buf b = BUF_INIT(0);
    char room[65536];
    struct str all;
    ssize_t n;

    while ((n = read(fd, room, sizeof(room))) != 0) {
        if (n > 0)
            buf_add(&b, (struct str){room, (size_t)n});
        else
            assert_int_equal(errno, EAGAIN);
        turn(h);
    }
    all = arena_str(harness_arena(h), buf_str(&b));
    buf_fini(&b);
    return all;
}

/* The body of an answer in chunks. */
static struct str unchunk(struct arena *a, struct str answer)
{
    struct buf b = BUF_INIT(0);
    struct str rest = answer, all;

    while (str_cut(&rest, '\n').n > 1)
        continue;
    for (;;) {
        struct str line = str_cut(&rest, '\n');
        size_t n = strtoul(line.p, NULL, 16);

        assert_true(rest.n >= n);
        buf_add(&b, str_sub(rest, 0, n));
        if (!n)
            break;
        rest = str_from(rest, n + 2);
    }
    all = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return all;
}

/* What the kernel takes of a connection is some megabytes at most; the list must be more. */
static struct harness *filled_well(size_t *ret_bytes)
{
    struct harness *h = harness_new();

    for (unsigned i = 0; i < 24; i++)
        create(h, i, MIB / 2);
    *ret_bytes = 12 * MIB;
    return h;
}

static void test_a_slow_reader_costs_little(void **state)
{
    static const char *const accepts[] = {"application/yaml", PROTO, "application/json;pretty=1"};
    size_t bytes;
    struct harness *h = filled_well(&bytes);

    (void)state;
    for (size_t i = 0; i < COUNT(accepts); i++) {
        const char *path = i == 2 ? CONFIGMAPS "?pretty=1" : CONFIGMAPS;
        struct answer want = list(h, i == 2 ? "?pretty=1" : "", accepts[i]);
        int fd = connect_to(h);
        size_t before;
        struct str got;

        run_until_quiet(h);
        before = mem_in_use();
        request(fd, path, accepts[i]);
        run_until_quiet(h);
        assert_int_equal(sample(h, "sublet_streamed_answers"), 1);
        assert_true(mem_in_use() - before < 4 * MIB);
        /* The list is of the revision it began with. */
        assert_int_equal(merge(h, CONFIGMAPS "/c0023", "{\"data\":{\"k\":\"new\"}}").status, 200);
        assert_int_equal(delete_(h, CONFIGMAPS "/c0022", "").status, 200);
        got = read_all(h, fd);
        close(fd);
        assert_true(str_eq(unchunk(harness_arena(h), got), want.body));
        assert_int_equal(sample(h, "sublet_streamed_answers"), 0);
        create(h, 22, MIB / 2);
    }
    harness_free(h);
}

/* What is made of a row while it is printed does not stay with those who stop reading behind it. */
static void test_slow_readers_of_long_rows(void **state)
{
    enum { READERS = 6, KEYS = 30000 };
    struct harness *h = harness_new();
    struct arena *a = harness_arena(h);
    int fds[READERS];
    size_t before;

    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        struct buf b = BUF_INIT(0);

        buf_printf(&b, "{\"metadata\":{\"name\":\"c%04u\"},\"data\":{\"k\":\"\"", i);
        for (unsigned k = 0; k < KEYS; k++)
            buf_printf(&b, ",\"k%05u\":\"\"", k);
        buf_addc(&b, "}}");
        assert_int_equal(ask(h, "POST", CONFIGMAPS, NULL, arena_str(a, buf_str(&b)), NULL).status,
                         201);
        buf_fini(&b);
    }
    run_until_quiet(h);
    before = mem_in_use();
    for (unsigned i = 0; i < READERS; i++) {
        fds[i] = connect_to(h);
        request(fds[i], CONFIGMAPS, i % 2 ? PROTO : "application/yaml");
    }
    run_until_quiet(h);
    assert_int_equal(sample(h, "sublet_streamed_answers"), READERS);
    assert_true(mem_in_use() - before < READERS * 2 * MIB);
    for (unsigned i = 0; i < READERS; i++)
        close(fds[i]);
    run_until_quiet(h);
    assert_int_equal(sample(h, "sublet_streamed_answers"), 0);
    harness_free(h);
}

static void test_who_goes_away_leaves_nothing(void **state)
{
    static const char *const accepts[] = {"application/yaml", PROTO, "application/json",
                                          JSON_TABLE};
    size_t bytes;
    struct harness *h = filled_well(&bytes);

    (void)state;
    for (size_t i = 0; i < COUNT(accepts); i++) {
        int fd = connect_to(h);

        request(fd, CONFIGMAPS "?includeObject=Object", accepts[i]);
        run_until_quiet(h);
        assert_int_equal(sample(h, "sublet_streamed_answers"), 1);
        close(fd);
        while (sample(h, "sublet_streamed_answers") > 0)
            continue;
    }
    /* Nor does one that is under way when the process ends: it has some seconds. */
    int fd = connect_to(h);
    request(fd, CONFIGMAPS, "application/yaml");
    run_until_quiet(h);
    close(fd);
    harness_free(h);
}

/* ---- the audit log ---- */

static const cJSON *answer_told(struct arena *a, struct str log, const char *id)
{
    const cJSON *found = NULL;

    while (log.n) {
        struct str line = str_cut(&log, '\n');
        cJSON *event;

        if (line.n && !json_parse(a, line, &event, NULL) &&
            str_eqc(json_str_at(event, "auditID"), id) &&
            str_eqc(json_str_at(event, "stage"), "ResponseComplete"))
            found = event;
    }
    return found;
}

/* The event of a list has what was answered, whole, unless it is too long. */
static void test_the_audit_log_has_lists(void **state)
{
    char path[] = "/tmp/api-list-audit-XXXXXX";
    struct config config = {.audit_path = str_c(path),
                            .audit_policy = STR("apiVersion: audit.k8s.io/v1\nkind: Policy\n"
                                                "omitManagedFields: true\n"
                                                "rules: [{level: RequestResponse}]\n")};
    const char *few[] = {"audit-id: few", ("accept: application/yaml" AS_TABLE), NULL};
    const char *all[] = {"audit-id: all", "accept: application/yaml", NULL};
    int fd = mkstemp(path);
    struct harness *h = filled(&config);
    struct arena *a = arena_new(0);
    struct buf log = BUF_INIT(0);
    const cJSON *event, *rows;
    char room[65536];
    ssize_t n;

    (void)state;
    ask(h, "GET", CONFIGMAPS "?includeObject=Object&limit=9", NULL, STR_NULL, few);
    ask(h, "GET", CONFIGMAPS, NULL, STR_NULL, all);
    harness_free(h);
    while ((n = read(fd, room, sizeof(room))) > 0)
        buf_add(&log, (struct str){room, (size_t)n});
    close(fd);
    unlink(path);
    event = answer_told(a, buf_str(&log), "few");
    rows = json_get(json_get(event, "responseObject"), "rows");
    assert_str(json_str_at(event, "responseObject.kind"), "Table");
    assert_int_equal(json_count(rows), 9);
    assert_str(json_str_at(json_at(rows, 0), "object.metadata.name"), "c0000");
    event = answer_told(a, buf_str(&log), "all");
    assert_non_null(event);
    assert_null(json_get(event, "responseObject"));
    assert_str(json_str(json_get(json_get(event, "annotations"), "audit.k8s.io/truncated")),
               "true");
    buf_fini(&log);
    arena_free(a);
}

/* ---- the budget ---- */

static int message_is(const struct answer *a, int status)
{
    return a->status == status && has_header(a, "retry-after: 1");
}

static void test_over_the_budget(void **state)
{
    struct config config = {.memory_limit = (int64_t)(mem_in_use() + 64 * MIB)};
    struct harness *h = filled(&config);
    struct str large = {arena_alloc(harness_arena(h), 3 * MIB - 4096), 3 * MIB - 4096};
    const char *notice = "sublet_notices{topic=\"memory\",reason=\"MemoryBudgetUsedUp\"}";
    struct answer a;
    void *held;

    (void)state;
    /* One that could not be worked on is refused by itself. */
    a = ask(h, "POST", CONFIGMAPS, NULL, large, NULL);
    assert_true(message_is(&a, 429));
    assert_str(json_str_at(a.json, "reason"), "TooManyRequests");
    assert_int_equal(sample(h, "sublet_requests_refused_total{reason=\"memory\"}"), 1);
    assert_int_equal(list(h, "", "application/yaml").status, 200);
    assert_true(sample(h, notice) <= 0);

    held = mem_alloc(64 * MIB);
    a = list(h, "", "application/yaml");
    assert_true(message_is(&a, 429));
    a = post(h, CONFIGMAPS, "{\"metadata\":{\"name\":\"more\"}}");
    assert_true(message_is(&a, 429));
    a = get(h, CONFIGMAPS "?watch=1");
    assert_true(message_is(&a, 429));
    /* What leads out of it passes. */
    assert_int_equal(get(h, "/readyz").status, 200);
    assert_int_equal(get(h, CONFIGMAPS "/c0000").status, 200);
    assert_int_equal(delete_(h, CONFIGMAPS "/c0000", "").status, 200);
    assert_int_equal(sample(h, notice), 1);

    mem_free(held);
    harness_set_time(h, 1800000006);
    assert_int_equal(list(h, "", "application/yaml").status, 200);
    assert_int_equal(post(h, CONFIGMAPS, "{\"metadata\":{\"name\":\"more\"}}").status, 201);
    assert_true(sample(h, notice) <= 0);
    assert_int_equal(sample(h, "sublet_memory_reserved_bytes"), 0);
    harness_free(h);
}

static void test_the_last_of_it_is_for_updates(void **state)
{
    size_t limit = mem_in_use() + 160 * MIB;
    struct config config = {.memory_limit = (int64_t)limit};
    struct harness *h = harness_new_for(NULL, &config);
    void *held;

    (void)state;
    create(h, 1, 10);
    held = mem_alloc(limit - limit / 32 - mem_in_use() - 16 * MIB);
    assert_int_equal(post(h, CONFIGMAPS, "{\"metadata\":{\"name\":\"more\"}}").status, 429);
    assert_int_equal(merge(h, CONFIGMAPS "/c0001", "{\"data\":{\"k\":\"v\"}}").status, 200);
    mem_free(held);
    harness_free(h);
}

/* ---- watches ---- */

#define WATCHES                                                                                    \
    "apiserver_longrunning_requests{component=\"apiserver\",group=\"\",resource=\"configmaps\","   \
    "scope=\"namespace\",subresource=\"\",verb=\"WATCH\",version=\"v1\"}"

static void test_watches_are_bounded_in_total(void **state)
{
    static const char *const bob[] = {"x-user: bob", NULL}, *const eve[] = {"x-user: eve", NULL};
    struct config config = {.max_watches_all = 2};
    struct harness *h = harness_new_for(NULL, &config);
    struct request *mine, *his;
    struct answer a;

    (void)state;
    mine = ask_begin(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, NULL);
    his = ask_begin(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, bob);
    while (sample(h, WATCHES) < 2)
        continue;
    a = ask(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, eve);
    assert_true(message_is(&a, 429));
    assert_int_equal(sample(h, "sublet_requests_refused_total{reason=\"concurrency-limit\"}"), 1);
    harness_stop(h);
    ask_forget(h, mine);
    ask_forget(h, his);
    harness_free(h);
}

static size_t held_without_answers(struct harness *h)
{
    return mem_in_use() - arena_used(harness_arena(h));
}

static void test_a_watch_forgets_its_headers(void **state)
{
    struct harness *h = harness_new();
    char *line = arena_alloc(harness_arena(h), 12000);
    const char *headers[] = {line, line, line, line, NULL};
    struct request *first, *second;
    size_t before;

    (void)state;
    memset(line, 'x', 11999);
    memcpy(line, "x-filler: ", 10);
    create(h, 1, 10);
    /* The first keeps what a server with connections has. */
    first = ask_begin(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, NULL);
    while (sample(h, WATCHES) < 1)
        continue;
    before = held_without_answers(h);
    second = ask_begin(h, "GET", CONFIGMAPS "?watch=1", NULL, STR_NULL, headers);
    while (sample(h, WATCHES) < 2)
        continue;
    if (held_without_answers(h) >= before + (24u << 10))
        fail_msg("%zu bytes more", held_without_answers(h) - before);
    harness_stop(h);
    ask_forget(h, first);
    ask_forget(h, second);
    harness_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_are_those_of_one_tree),
        cmocka_unit_test(test_gzip_of_any_form),
        cmocka_unit_test(test_a_slow_reader_costs_little),
        cmocka_unit_test(test_slow_readers_of_long_rows),
        cmocka_unit_test(test_who_goes_away_leaves_nothing),
        cmocka_unit_test(test_the_audit_log_has_lists),
        cmocka_unit_test(test_over_the_budget),
        cmocka_unit_test(test_the_last_of_it_is_for_updates),
        cmocka_unit_test(test_watches_are_bounded_in_total),
        cmocka_unit_test(test_a_watch_forgets_its_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
