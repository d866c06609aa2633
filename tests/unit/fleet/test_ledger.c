/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger, in a file and on a server: append-only, written twice is there once, one writer, and
 * a format it knows. */
#include "world.h"

#include "postgres_server.h"

#include <sublet/buf.h>

#include <sqlite3.h>

static struct postgres_server server;

static struct fleet_hold a_hold(void)
{
    return (struct fleet_hold){.pod_uid = STR("u1"),
                               .tenant = STR("team-a"),
                               .name = STR("train"),
                               .node = STR("n1"),
                               .pool = STR("a100"),
                               .gpu_eq = {3, 7},
                               .begin_us = BEGIN - SECOND};
}

static void written_twice_is_there_once(void **state)
{
    struct world *w = *state;
    struct fleet_hold h = a_hold();
    struct fleet_records r;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(ledger_add_hold(w->ledger, &h, &w->err), 0);
        assert_int_equal(ledger_end_hold(w->ledger, STR("u1"), BEGIN + (5 + i) * SECOND,
                                         STR("Failed"), false, &w->err),
                         0);
        h.begin_us = BEGIN + HOUR;
    }
    assert_int_equal(
        ledger_end_hold(w->ledger, STR("unknown"), BEGIN, STR("Failed"), false, &w->err), 0);
    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), 0);
    assert_int_equal(r.n_holds, 1);
    assert_int_equal(r.holds[0].begin_us, BEGIN); /* not before the ledger's own */
    assert_int_equal(r.holds[0].end_us, BEGIN + 5 * SECOND);
    assert_int_equal(r.holds[0].gpu_eq.den, 7);
}

static void reads_what_a_period_needs(void **state)
{
    static const struct {
        int64_t from, until;
        size_t n;
    } periods[] = {
        {0, INT64_MAX, 2},
        {LEDGER_OPEN, INT64_MAX, 1},
        {BEGIN + 6 * SECOND, INT64_MAX, 1},
        {BEGIN + 5 * SECOND, INT64_MAX, 2},
        {0, BEGIN - 1, 0},
    };
    struct world *w = *state;
    struct fleet_hold h = a_hold();
    struct fleet_records r;

    assert_int_equal(ledger_add_hold(w->ledger, &h, &w->err), 0);
    assert_int_equal(
        ledger_end_hold(w->ledger, STR("u1"), BEGIN + 5 * SECOND, STR("Failed"), false, &w->err),
        0);
    h.pod_uid = STR("u2");
    assert_int_equal(ledger_add_hold(w->ledger, &h, &w->err), 0);
    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    for (size_t i = 0; i < COUNT(periods); i++) {
        assert_int_equal(
            ledger_read(w->a, w->location, periods[i].from, periods[i].until, &r, &w->err), 0);
        assert_int_equal(r.n_holds, periods[i].n);
    }
}

/* What is read of a period, as words. */
struct read_case {
    int64_t from, until;
    const char *read;
};

static void check_periods(struct world *w, const struct read_case *periods, size_t n,
                          void (*print)(struct arena *a, const struct fleet_records *r,
                                        struct buf *out))
{
    struct fleet_records r;

    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    for (size_t i = 0; i < n; i++) {
        struct buf got = BUF_INIT(0);

        assert_int_equal(
            ledger_read(w->a, w->location, periods[i].from, periods[i].until, &r, &w->err), 0);
        print(w->a, &r, &got);
        assert_str(buf_str(&got), periods[i].read);
        buf_fini(&got);
    }
}

static void print_capacities(struct arena *a, const struct fleet_records *r, struct buf *out)
{
    (void)a;
    for (size_t k = 0; k < r->n_capacities; k++)
        buf_printf(out, "%.*s%lld ", STR_F(r->capacities[k].node),
                   (long long)r->capacities[k].total.num);
}

/* One that a clock wrote with an earlier time takes effect where the one before it did. */
static void reads_the_capacities_of_a_period(void **state)
{
    static const struct read_case periods[] = {
        {0, INT64_MAX, "a1 b7 a2 a3 b8 a4 a5 "},
        {LEDGER_OPEN, INT64_MAX, "a5 b8 "},
        {BEGIN, INT64_MAX, "a1 b7 a2 a3 b8 a4 a5 "},
        {BEGIN + 25 * SECOND, INT64_MAX, "a3 b7 b8 a4 a5 "},
        {BEGIN + 25 * SECOND, BEGIN + 35 * SECOND, "a3 b7 b8 "},
        {BEGIN + 20 * SECOND, BEGIN + 25 * SECOND, "a3 b7 "},
        {BEGIN + 45 * SECOND, BEGIN + 50 * SECOND, "a5 b8 "},
        {0, BEGIN + 5 * SECOND, "a1 b7 "},
        {0, BEGIN - 1, "a1 b7 "}, /* that there is such a node */
    };
    static const struct {
        const char *node;
        int64_t after, total;
    } changes[] = {
        {"a", 0, 1},  {"b", 0, 7},  {"a", 10, 2}, {"a", 20, 3},
        {"b", 30, 8}, {"a", 40, 4}, {"a", 15, 5},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(changes); i++) {
        struct fleet_capacity c = {.node = str_c(changes[i].node),
                                   .pool = STR("a100"),
                                   .from_us = BEGIN + changes[i].after * SECOND,
                                   .total = {changes[i].total, 1},
                                   .unhealthy = {0, 1}};

        assert_int_equal(ledger_add_capacity(w->ledger, &c, &w->err), 0);
    }
    check_periods(w, periods, COUNT(periods), print_capacities);
}

static void print_prices(struct arena *a, const struct fleet_records *r, struct buf *out)
{
    for (size_t k = 0; k < r->n_prices; k++)
        buf_printf(out, "%.*s ", STR_F(exact_fraction(a, exact_of(r->prices[k].price))));
}

/* What ran before the first price costs as much as that. */
static void reads_the_prices_of_a_period(void **state)
{
    static const struct read_case periods[] = {
        {0, INT64_MAX, "5/2 3 4 "},
        {LEDGER_OPEN, INT64_MAX, "4 "},
        {BEGIN + 15 * SECOND, BEGIN + 18 * SECOND, "3 "},
        {BEGIN + 15 * SECOND, BEGIN + 25 * SECOND, "3 4 "},
        {0, BEGIN - 1, "5/2 "},
    };
    struct world *w = *state;

    for (int i = 1; i < 3; i++) {
        struct fleet_price p = {.pool = STR("a100"),
                                .currency = STR("USD"),
                                .from_us = BEGIN + i * 10 * SECOND,
                                .price = {2 + i, 1}};

        assert_int_equal(ledger_add_price(w->ledger, &p, &w->err), 0);
    }
    check_periods(w, periods, COUNT(periods), print_prices);
}

static void print_guarantees(struct arena *a, const struct fleet_records *r, struct buf *out)
{
    (void)a;
    for (size_t k = 0; k < r->n_guarantees; k++)
        buf_printf(out, "%.*s%lld ", STR_F(r->guarantees[k].tenant),
                   (long long)r->guarantees[k].guarantee.num);
}

static void reads_the_guarantees_of_a_period(void **state)
{
    static const struct read_case periods[] = {
        {0, INT64_MAX, "a1 b7 a2 a3 b8 a4 "},
        {LEDGER_OPEN, INT64_MAX, "b8 a4 "},
        {BEGIN, INT64_MAX, "a1 b7 a2 a3 b8 a4 "},
        {BEGIN + 25 * SECOND, INT64_MAX, "b7 a3 b8 a4 "},
        {BEGIN + 25 * SECOND, BEGIN + 35 * SECOND, "b7 a3 b8 "},
        {BEGIN + 20 * SECOND, BEGIN + 25 * SECOND, "b7 a3 "},
        {0, BEGIN + 5 * SECOND, "a1 b7 "},
        {0, BEGIN - 1, ""},
    };
    static const struct {
        const char *tenant;
        int64_t after, guarantee;
    } changes[] = {
        {"a", 0, 1}, {"b", 0, 7}, {"a", 10, 2}, {"a", 20, 3}, {"b", 30, 8}, {"a", 40, 4},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT(changes); i++) {
        struct fleet_guarantee g = {.tenant = str_c(changes[i].tenant),
                                    .pool = STR("a100"),
                                    .from_us = BEGIN + changes[i].after * SECOND,
                                    .bound = true,
                                    .guarantee = {changes[i].guarantee, 1},
                                    .granted = {8, 1}};

        assert_int_equal(ledger_add_guarantee(w->ledger, &g, &w->err), 0);
    }
    check_periods(w, periods, COUNT(periods), print_guarantees);
}

static void what_was_not_committed_is_not_there(void **state)
{
    struct world *w = *state;
    struct fleet_hold h = a_hold();
    struct fleet_records r;

    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    assert_int_equal(ledger_add_hold(w->ledger, &h, &w->err), 0);
    world_kill(w);
    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), 0);
    assert_int_equal(r.n_holds, 0);
    assert_int_equal(r.begin_us, BEGIN);
    world_start(w, BEGIN + HOUR);
    assert_int_equal(ledger_begin_us(w->ledger), BEGIN); /* it is older than this process */
    assert_int_equal(ledger_identity(w->ledger), 1);
}

static sqlite3 *raw(struct world *w)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(arena_printf(w->a, "%s/ledger.db", w->directory).p, &db),
                     SQLITE_OK);
    return db;
}

/* True: the database did it. */
static bool by_hand(struct world *w, const char *sql)
{
    sqlite3 *db;
    char *value;
    bool ret;

    if (ledger_is_remote(w->location)) {
        value =
            server_sql(&server, arena_printf(w->a, "SET search_path = %s; %s",
                                             strrchr(arena_cstr(w->a, w->location), '/') + 1, sql)
                                    .p);
        ret = value;
        free(value);
        return ret;
    }
    db = raw(w);
    ret = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    return ret;
}

static void rows_cannot_be_changed(void **state)
{
    static const char *const attempts[] = {
        "DELETE FROM hold",     "UPDATE hold SET gpu_num = 0",
        "DELETE FROM hold_end", "UPDATE hold_end SET end_us = 0",
        "DELETE FROM capacity", "UPDATE price SET num = 0",
        "DELETE FROM price",    "UPDATE capacity SET total_num = 0",
    };
    struct world *w = *state;
    struct fleet_hold h = a_hold();
    struct fleet_capacity c = {
        .node = STR("n"), .pool = STR("p"), .total = {1, 1}, .unhealthy = {0, 1}};

    assert_int_equal(ledger_add_hold(w->ledger, &h, &w->err), 0);
    assert_int_equal(ledger_end_hold(w->ledger, STR("u1"), BEGIN, STR("x"), false, &w->err), 0);
    assert_int_equal(ledger_add_capacity(w->ledger, &c, &w->err), 0);
    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    assert_true(by_hand(w, "SELECT gpu_num FROM hold")); /* it is there, and can be seen */
    for (size_t i = 0; i < COUNT(attempts); i++)
        assert_false(by_hand(w, attempts[i]));
    if (ledger_is_remote(w->location))
        assert_false(by_hand(w, "TRUNCATE hold, hold_end, activity"));
}

static void has_one_writer_and_many_readers(void **state)
{
    struct world *w = *state;
    struct ledger *second = NULL;
    struct fleet_records r;

    assert_int_equal(ledger_open(w->location, BEGIN, 2, &second, &w->err), -1);
    assert_ptr_equal(w->err.kind, &ERR_CONFLICT);
    assert_true(str_contains(w->err.message, STR("another process has it open")));
    assert_null(second);
    err_clear(&w->err);
    assert_int_equal(ledger_set_seen(w->ledger, BEGIN + SECOND, &w->err), 0); /* uncommitted */
    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), 0);
    assert_int_equal(r.seen_us, BEGIN);
}

static void refuses_a_newer_format_and_no_ledger(void **state)
{
    struct world *w = *state;
    struct fleet_records r;

    world_kill(w);
    assert_true(by_hand(w, "UPDATE meta SET value = 3 WHERE key = 'format'"));
    assert_int_equal(open_ledger(w->location, BEGIN, &w->ledger, &w->err), -1);
    assert_true(str_contains(w->err.message, STR("format 3 is not known")));
    err_clear(&w->err);
    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), -1);
    err_clear(&w->err);
    assert_int_equal(ledger_read(w->a, STR("/nonexistent"), 0, INT64_MAX, &r, &w->err), -1);
    assert_ptr_equal(w->err.kind, &ERR_STORAGE);
}

/* A ledger as format 1 made it, with what it had: readers know it, the writer brings it up to date,
 * and nothing of it is lost. */
static const char FORMAT_1[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID, STRICT;"
    "CREATE TABLE hold(id INTEGER PRIMARY KEY, pod_uid TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL,"
    " cluster TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL,"
    " node TEXT NOT NULL, pool TEXT NOT NULL, product TEXT NOT NULL, resources TEXT NOT NULL,"
    " gpu_num INTEGER NOT NULL, gpu_den INTEGER NOT NULL, begin_us INTEGER NOT NULL) STRICT;"
    "CREATE TABLE hold_end(hold INTEGER PRIMARY KEY REFERENCES hold(id), end_us INTEGER NOT NULL,"
    " reason TEXT NOT NULL, estimated INTEGER NOT NULL) STRICT;"
    "CREATE TABLE capacity(id INTEGER PRIMARY KEY, node TEXT NOT NULL, pool TEXT NOT NULL,"
    " product TEXT NOT NULL, from_us INTEGER NOT NULL, total_num INTEGER NOT NULL,"
    " total_den INTEGER NOT NULL, unhealthy_num INTEGER NOT NULL, unhealthy_den INTEGER NOT NULL,"
    " down INTEGER NOT NULL, estimated INTEGER NOT NULL) STRICT;"
    "CREATE TABLE price(id INTEGER PRIMARY KEY, pool TEXT NOT NULL, from_us INTEGER NOT NULL,"
    " num INTEGER NOT NULL, den INTEGER NOT NULL, currency TEXT NOT NULL) STRICT;"
    "CREATE TABLE gap(id INTEGER PRIMARY KEY, from_us INTEGER NOT NULL,"
    " until_us INTEGER NOT NULL) STRICT;"
    "CREATE TRIGGER hold_fixed BEFORE UPDATE ON hold"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
    "CREATE TRIGGER price_fixed BEFORE UPDATE ON price"
    " BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
    "INSERT INTO meta VALUES('format',1),('identity',77),('begin',1000000),('seen',9000000);"
    "INSERT INTO hold VALUES(1,'u1','team-a','c','default','train','Job/x','n1','a100','A100',"
    " 'nvidia.com/gpu=2',2,1,1000000),(2,'u2','team-a','c','default','more','','n1','a100','A100',"
    " 'nvidia.com/gpu=1',1,1,2000000);"
    "INSERT INTO hold_end VALUES(1,3000000,'Succeeded',0);"
    "INSERT INTO capacity VALUES(1,'n1','a100','A100',1000000,8,1,0,1,0,0);"
    "INSERT INTO price VALUES(1,'a100',1000000,5,2,'USD');"
    "INSERT INTO gap VALUES(1,4000000,5000000);";

static void check_old(struct world *w)
{
    struct fleet_records r;

    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), 0);
    assert_int_equal(r.n_holds, 2);
    assert_str(r.holds[0].reason, "Succeeded");
    assert_str(r.holds[0].mode, "");
    assert_int_equal(r.holds[1].end_us, FLEET_OPEN);
    assert_int_equal(r.n_capacities, 1);
    assert_int_equal(rational_cmp(r.prices[0].price, (struct rational){5, 2}), 0);
    assert_int_equal(rational_cmp(r.prices[0].borrow, (struct rational){1, 1}), 0);
    assert_int_equal(r.n_gaps, 1);
    assert_int_equal(r.n_guarantees, 0);
    assert_int_equal(r.seen_us, 9000000);
}

static void an_earlier_format_is_brought_up_to_date(void **state)
{
    struct world *w = *state;
    struct fleet_guarantee g = {
        .tenant = STR("team-a"), .pool = STR("a100"), .guarantee = {4, 1}, .granted = {6, 1}};
    struct fleet_price p = {.pool = STR("a100"),
                            .currency = STR("USD"),
                            .from_us = 1,
                            .price = {5, 2},
                            .borrow = {4, 5}};
    struct fleet_records r;
    sqlite3 *db;

    world_kill(w);
    assert_int_equal(remove(arena_printf(w->a, "%s/ledger.db", w->directory).p), 0);
    db = raw(w);
    assert_int_equal(sqlite3_exec(db, FORMAT_1, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    check_old(w);
    for (int i = 0; i < 2; i++) { /* once, and with the format that it has then */
        assert_int_equal(ledger_open(w->location, BEGIN, 1, &w->ledger, &w->err), 0);
        assert_int_equal(ledger_identity(w->ledger), 77);
        check_old(w);
        w->ledger = ledger_close(w->ledger);
    }
    assert_int_equal(ledger_open(w->location, BEGIN, 1, &w->ledger, &w->err), 0);
    g.bound = true;
    assert_int_equal(ledger_add_guarantee(w->ledger, &g, &w->err), 0);
    assert_int_equal(ledger_add_price(w->ledger, &p, &w->err), 0);
    assert_int_equal(ledger_add_price(w->ledger, &p, &w->err), 0);
    assert_int_equal(ledger_commit(w->ledger, &w->err), 0);
    assert_int_equal(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err), 0);
    assert_int_equal(r.n_guarantees, 1);
    assert_int_equal(r.guarantees[0].from_us, 9000000); /* the past stays as it was */
    assert_true(r.guarantees[0].bound);
    assert_int_equal(rational_cmp(r.guarantees[0].granted, (struct rational){6, 1}), 0);
    assert_int_equal(r.n_prices, 2); /* another factor is another price */
    assert_int_equal(r.prices[1].from_us, 9000000);
    assert_int_equal(rational_cmp(r.prices[1].borrow, (struct rational){4, 5}), 0);
}

/* --- on a server --- */

static int server_setup(void **state)
{
    (void)state;
    server_open(&server);
    return 0;
}

static int server_teardown(void **state)
{
    (void)state;
    server_close(&server);
    return 0;
}

static int world_setup_on_server(void **state)
{
    static unsigned n;
    char name[16], *location;

    world_setup(state);
    snprintf(name, sizeof(name), "world%u", n++);
    location = server_location(&server, server.directory, name);
    ((struct world *)*state)->location = arena_str(((struct world *)*state)->a, str_c(location));
    free(location);
    world_start(*state, BEGIN);
    return 0;
}

#define BOTH(setup)                                                                                \
    TEST(written_twice_is_there_once, setup), TEST(reads_what_a_period_needs, setup),              \
        TEST(reads_the_guarantees_of_a_period, setup),                                             \
        TEST(reads_the_capacities_of_a_period, setup), TEST(reads_the_prices_of_a_period, setup),  \
        TEST(what_was_not_committed_is_not_there, setup), TEST(rows_cannot_be_changed, setup),     \
        TEST(has_one_writer_and_many_readers, setup),                                              \
        TEST(refuses_a_newer_format_and_no_ledger, setup)
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, world_teardown)
int main(void)
{
    const struct CMUnitTest in_files[] = {
        BOTH(world_setup_started),
        TEST(an_earlier_format_is_brought_up_to_date, world_setup_started),
    };
    const struct CMUnitTest on_server[] = {BOTH(world_setup_on_server)};
    int failed;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    failed = cmocka_run_group_tests(in_files, NULL, NULL);
    return failed + cmocka_run_group_tests(on_server, server_setup, server_teardown);
}
