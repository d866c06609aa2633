/* SPDX-License-Identifier: Apache-2.0
 * The matrix of writes against what is there, committed or under way; limits; batches and the order
 * of answers; resources. */
#include "harness.h"

#include <stdio.h>
#include <sublet/store_admin.h>
#include <string.h>

static void test_first_revision(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    assert_int_equal(store_revision(f->store), 1);
    assert_int_equal(store_next_revision(f->store), 2);
    assert_int_equal(store_oldest_revision(f->store), 1);
    assert_int_equal(put(f, "a", "x", 1), 2);
    assert_int_equal(store_revision(f->store), 1);
    assert_true(fixture_sync(f));
    assert_int_equal(store_revision(f->store), 2);
    fixture_reopen(f);
    assert_int_equal(store_revision(f->store), 2);
    assert_int_equal(store_next_revision(f->store), 3);
}

/* What is there before the write. With `synced` it is committed, else under way. */
enum before { ABSENT, PRESENT, GONE };

struct matrix_row {
    enum before before;
    enum store_op op;
    int expected; /* 0: none, 1: the right revision, 2: a wrong one */
    const struct err_kind *error;
};

static const struct matrix_row MATRIX[] = {
    {ABSENT, STORE_CREATE, 0, NULL},
    {ABSENT, STORE_UPDATE, 2, &ERR_NOT_FOUND},
    {ABSENT, STORE_DELETE, 2, &ERR_NOT_FOUND},
    {PRESENT, STORE_CREATE, 0, &ERR_ALREADY_EXISTS},
    {PRESENT, STORE_UPDATE, 1, NULL},
    {PRESENT, STORE_UPDATE, 2, &ERR_CONFLICT},
    {PRESENT, STORE_DELETE, 1, NULL},
    {PRESENT, STORE_DELETE, 2, &ERR_CONFLICT},
    {GONE, STORE_CREATE, 0, NULL},
    {GONE, STORE_UPDATE, 1, &ERR_NOT_FOUND},
    {GONE, STORE_DELETE, 1, &ERR_NOT_FOUND},
};

static void check_row(struct fixture *f, const struct matrix_row *row, const char *name,
                      bool synced)
{
    int64_t revision = 1;
    const struct store_object *o;

    if (row->before != ABSENT)
        revision = put(f, "ns", name, 1);
    if (row->before == GONE)
        delete (f, "ns", name);
    if (synced)
        assert_true(fixture_sync(f));
    o = store_latest(f->store, f->pods, STR("ns"), str_c(name));
    assert_int_equal(o != NULL, row->before == PRESENT);

    int64_t expected = row->expected == 0 ? 0 : row->expected == 1 ? revision : revision + 1000;
    int64_t got = try_write(f, row->op, "ns", name, 2, expected);
    assert_int_equal(got > 0, row->error == NULL);
    assert_ptr_equal(f->err.kind, row->error);

    int want = row->error ? (row->before == PRESENT ? 1 : -1) : row->op == STORE_DELETE ? -1 : 2;
    assert_int_equal(latest(f, "ns", name), want);
    assert_true(fixture_sync(f));
    assert_int_equal(committed(f, "ns", name), want);
    assert_int_equal(latest(f, "ns", name), want);
}

static void test_matrix(void **state)
{
    struct fixture *f = *state;
    char name[32];

    fixture_open(f);
    for (size_t i = 0; i < COUNT(MATRIX); i++) {
        for (int synced = 0; synced < 2; synced++) {
            snprintf(name, sizeof(name), "row-%zu-%d", i, synced);
            check_row(f, &MATRIX[i], name, synced);
        }
    }
}

static void test_two_views(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    put(f, "a", "x", 1);
    assert_int_equal(committed(f, "a", "x"), -1);
    assert_int_equal(latest(f, "a", "x"), 1);
    assert_int_equal(store_count(f->store, f->pods), 0);
    assert_true(fixture_sync(f));
    assert_int_equal(committed(f, "a", "x"), 1);
    assert_int_equal(store_count(f->store, f->pods), 1);
    put(f, "a", "x", 2);
    delete (f, "a", "x");
    assert_int_equal(committed(f, "a", "x"), 1);
    assert_int_equal(latest(f, "a", "x"), -1);
    put(f, "a", "x", 3);
    assert_int_equal(latest(f, "a", "x"), 3);
    assert_true(fixture_sync(f));
    assert_int_equal(committed(f, "a", "x"), 3);
    assert_int_equal(store_count(f->store, f->pods), 1);
    assert_int_equal(store_count(f->store, STORE_ALL_RESOURCES), 1);
}

struct chain {
    struct fixture *f;
    int order[8], n;
    int id;
};

struct link {
    struct chain *chain;
    int id;
};

static void on_link(void *ctx, const struct err *err)
{
    struct link *l = ctx;

    assert_null(err);
    l->chain->order[l->chain->n++] = l->id;
}

/* Each answer sees its own write, and answers come in the order of the writes. */
static void test_answer_order(void **state)
{
    struct fixture *f = *state;
    struct chain chain = {.f = f};
    struct link links[6];

    fixture_open(f);
    for (int i = 0; i < 6; i++) {
        links[i] = (struct link){&chain, i};
        /* 0 waits for nothing, 2 and 3 share a write. */
        if (i && i != 3)
            put(f, "a", "x", i);
        store_on_commit(f->store, on_link, &links[i]);
        /* Half of them come while the batch before is with the writer. */
        if (i == 2)
            uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    while (chain.n < 6)
        uv_run(&f->loop, UV_RUN_ONCE);
    for (int i = 0; i < 6; i++)
        assert_int_equal(chain.order[i], i);
    assert_int_equal(committed(f, "a", "x"), 5);
}

struct again {
    struct fixture *f;
    int left;
};

static void on_again(void *ctx, const struct err *err)
{
    struct again *a = ctx;

    assert_null(err);
    assert_int_equal(committed(a->f, "a", "loop"), a->left);
    if (!a->left--)
        return;
    put(a->f, "a", "loop", a->left);
    store_on_commit(a->f->store, on_again, a);
}

static void test_writes_from_answers(void **state)
{
    struct fixture *f = *state;
    struct again a = {f, 20};

    fixture_open(f);
    put(f, "a", "loop", 20);
    store_on_commit(f->store, on_again, &a);
    fixture_settle(f);
    assert_int_equal(a.left, -1);
    assert_int_equal(committed(f, "a", "loop"), 0);
}

/* What is written in one tick is one transaction: the log on disk grows by one commit. */
static void on_timer(uv_timer_t *timer)
{
    struct fixture *f = timer->data;

    put(f, "a", "timer", 1);
}

static void test_write_from_timer(void **state)
{
    struct fixture *f = *state;
    uv_timer_t timer;

    fixture_open(f);
    uv_timer_init(&f->loop, &timer);
    timer.data = f;
    uv_timer_start(&timer, on_timer, 1, 0);
    fixture_settle(f); /* would hang, or return without the write, if the flush were missed */
    assert_int_equal(committed(f, "a", "timer"), 1);
    uv_close((uv_handle_t *)&timer, NULL);
    fixture_settle(f);
}

static void test_object_limit(void **state)
{
    struct fixture *f = *state;

    f->options.max_objects = 3;
    fixture_open(f);
    put(f, "a", "1", 1);
    put(f, "a", "2", 1);
    assert_true(fixture_sync(f));
    put(f, "a", "3", 1);
    assert_int_equal(try_write(f, STORE_CREATE, "a", "4", 1, 0), -1);
    assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
    put(f, "a", "3", 2);
    delete (f, "a", "1");
    put(f, "a", "4", 1);
    assert_int_equal(try_write(f, STORE_CREATE, "a", "5", 1, 0), -1);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(try_write(f, STORE_CREATE, "a", "5", 1, 0), -1);
    assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
    assert_int_equal(store_count(f->store, f->pods), 3);
}

static int64_t write_bytes(struct fixture *f, enum store_op op, const char *name, size_t n,
                           int64_t expected)
{
    static char text[4096];
    int64_t revision = store_next_revision(f->store);
    struct store_write w = {.op = op,
                            .resource = f->pods,
                            .expected = expected,
                            .name = str_c(name),
                            .bytes = {text, n}};

    memset(text, 'x', sizeof(text));
    err_clear(&f->err);
    return store_write(f->store, &w, &f->err) ? -1 : revision;
}

static void test_byte_limit(void **state)
{
    struct fixture *f = *state;

    f->options.max_bytes = 1000;
    fixture_open(f);
    int64_t a = write_bytes(f, STORE_CREATE, "a", 499, 0);
    int64_t b = write_bytes(f, STORE_CREATE, "b", 499, 0);
    assert_true(a > 0 && b > 0);
    assert_int_equal(write_bytes(f, STORE_CREATE, "c", 1, 0), -1);
    assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
    /* Updates may go an eighth beyond, and no further. */
    assert_int_equal(write_bytes(f, STORE_UPDATE, "a", 699, a), -1);
    assert_ptr_equal(f->err.kind, &ERR_FORBIDDEN);
    a = write_bytes(f, STORE_UPDATE, "a", 599, a);
    assert_true(a > 0);
    /* What shrinks always passes. */
    b = write_bytes(f, STORE_UPDATE, "b", 498, b);
    assert_true(b > 0);
    assert_true(fixture_sync(f));
    assert_int_equal(store_bytes(f->store), 600 + 499);
    assert_true(write_bytes(f, STORE_DELETE, "a", 10, a) > 0);
    assert_true(write_bytes(f, STORE_CREATE, "c", 499, 0) > 0);
    assert_true(fixture_sync(f));
    assert_int_equal(store_bytes(f->store), 500 + 499);
}

static void test_advance(void **state)
{
    struct fixture *f = *state;
    int64_t first, used;

    fixture_open(f);
    first = put(f, "ns", "a", 1);
    assert_true(fixture_sync(f));
    store_advance(f->store);
    assert_int_equal(store_revision(f->store), first); /* not before it is durable */
    assert_true(fixture_sync(f));
    used = store_revision(f->store);
    assert_int_equal(used, first + 1);
    assert_int_equal(committed(f, "ns", "a"), 1);

    fixture_reopen(f);
    assert_int_equal(store_revision(f->store), used);
    store_advance(f->store);
    store_advance(f->store);
    assert_int_equal(put(f, "ns", "a", 2), used + 3);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(store_revision(f->store), used + 3);
    assert_int_equal(committed(f, "ns", "a"), 2);
}

static void test_resources(void **state)
{
    struct fixture *f = *state;
    char name[32];

    fixture_open(f);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "kind-%d.example.com", i);
        unsigned id = store_resource(f->store, str_c(name));
        assert_int_equal(id, f->pods + 1 + (unsigned)i);
        assert_int_equal(store_resource(f->store, str_c(name)), id);
        assert_true(try_write_of(f, id, STORE_CREATE, "", "same-name", i, 0) > 0);
    }
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "kind-%d.example.com", i);
        unsigned id = store_resource(f->store, str_c(name));
        assert_int_equal(value_of(store_get(f->store, id, STR(""), STR("same-name"))), i);
        assert_int_equal(store_count(f->store, id), 1);
    }
}

static void test_resources_are_bounded(void **state)
{
    struct fixture *f = *state;
    char name[32];

    fixture_open(f);
    for (unsigned i = f->pods + 1; i <= 65535; i++) {
        snprintf(name, sizeof(name), "kind-%u", i);
        assert_int_equal(store_resource(f->store, str_c(name)), i);
    }
    assert_int_equal(store_resource(f->store, STR("one-more")), 0);
    assert_int_equal(store_resource(f->store, STR("kind-65535")), 65535);
    assert_true(try_write_of(f, 65535, STORE_CREATE, "", "x", 1, 0) > 0);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    /* Only what was used is remembered. */
    assert_int_equal(store_resource(f->store, STR("kind-65535")), 65535);
    assert_int_equal(store_count(f->store, 65535), 1);
    assert_in_range(f->pods, 1, 2);
    assert_in_range(store_resource(f->store, STR("one-more")), 1, 3);
}

static void test_unused_resources_leave(void **state)
{
    struct fixture *f = *state;
    char name[32];

    f->options.history_events = 1;
    fixture_open(f);
    for (int i = 0; i < 1100; i++) {
        snprintf(name, sizeof(name), "kind-%d", i);
        unsigned id = store_resource(f->store, str_c(name));
        int64_t revision = try_write_of(f, id, STORE_CREATE, "", "x", i, 0);
        if (i != 1000)
            assert_true(try_write_of(f, id, STORE_DELETE, "", "x", i, revision) > 0);
    }
    assert_true(fixture_sync(f));
    for (int i = 0; i < 60; i++) {
        put(f, "a", "x", i); /* takes the dead rows along */
        assert_true(fixture_sync(f));
    }
    unsigned used = store_resource(f->store, STR("kind-1000"));
    fixture_reopen(f);
    assert_int_equal(store_resource(f->store, STR("kind-1000")), used);
    assert_int_equal(value_of(store_get(f->store, used, STR(""), STR("x"))), 1000);
    assert_int_equal(committed(f, "a", "x"), 59);
    fixture_close(f);
    assert_int_equal(query(f, "SELECT count(*) FROM resource"), 2);
}

static void on_silent_close(void *ctx)
{
    (void)ctx;
}

static void test_close_commits(void **state)
{
    struct fixture *f = *state;
    struct chain chain = {.f = f};
    struct link l = {&chain, 7};

    fixture_open(f);
    put(f, "a", "x", 1);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    put(f, "a", "y", 2);
    store_on_commit(f->store, on_link, &l);
    store_close(f->store, on_silent_close, NULL);
    f->store = NULL;
    fixture_settle(f);
    assert_int_equal(chain.n, 1);
    assert_int_equal(file_size(f, "state.db-wal"), EMPTY_LOG);
    fixture_open(f);
    assert_int_equal(committed(f, "a", "x"), 1);
    assert_int_equal(committed(f, "a", "y"), 2);
}

static void test_read_only(void **state)
{
    struct fixture *f = *state;
    struct str value;

    fixture_open(f);
    put(f, "ns", "x", 1);
    store_set_read_only(f->store, "another process writes");
    assert_string_equal(store_read_only(f->store), "another process writes");
    assert_true(fixture_sync(f)); /* what was under way is committed */
    assert_int_equal(committed(f, "ns", "x"), 1);
    assert_int_equal(try_write(f, STORE_CREATE, "ns", "y", 1, 0), -1);
    assert_ptr_equal(f->err.kind, &ERR_UNAVAILABLE);
    assert_true(str_eqc(f->err.message, "another process writes"));
    assert_int_equal(f->err.retry_after, STORE_READ_ONLY_RETRY_S);
    assert_int_equal(try_write(f, STORE_DELETE, "ns", "x", 1, store_revision(f->store)), -1);
    store_record_put(f->store, RECORD_META, STR("k"), STR("v"));
    assert_true(fixture_sync(f));
    assert_true(store_record_get(f->store, RECORD_META, STR("k"), &value));
    store_set_read_only(f->store, NULL);
    assert_null(store_read_only(f->store));
    put(f, "ns", "y", 2);
    assert_true(fixture_sync(f));
    assert_int_equal(committed(f, "ns", "y"), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(first_revision),
        TEST(matrix),
        TEST(two_views),
        TEST(answer_order),
        TEST(writes_from_answers),
        TEST(write_from_timer),
        TEST(object_limit),
        TEST(byte_limit),
        TEST(advance),
        TEST(read_only),
        TEST(resources),
        TEST(close_commits),
        TEST(resources_are_bounded),
        TEST(unused_resources_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
