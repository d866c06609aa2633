/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a server that is away, hangs, is killed, loses answers or is full: no row is lost
 * while the process lives, none is there twice, the loop never waits, no password is printed. */
#include "world.h"

#include <signal.h>

#include <uv.h>

#include "postgres_server.h"

#define PATIENCE_MS 400

static struct postgres_server server;

struct scene {
    struct arena *a;
    struct err err;
    uv_loop_t loop;
    uv_timer_t limit;
    char *location;
    struct ledger *ledger;
    struct postgres_proxy proxy;
    size_t most_bytes;
    bool opened, failed, flushed;
    int64_t n_holds; /* that opened() reported */
    unsigned n;      /* of holds that were added */
    struct str why;
};

static void on_opened(void *ctx, const struct fleet_records *records)
{
    struct scene *s = ctx;

    s->opened = true;
    s->n_holds = (int64_t)records->n_holds;
}

static void on_changed(void *ctx)
{
    (void)ctx;
}

static void on_failed(void *ctx, const struct err *err)
{
    struct scene *s = ctx;

    s->failed = true;
    s->why = arena_str(s->a, err->message);
}

static void start(struct scene *s)
{
    const struct ledger_remote_options o = {.loop = &s->loop,
                                            .clock = &CLOCK_SYSTEM,
                                            .location = str_c(s->location),
                                            .identity = 7,
                                            .most_bytes = s->most_bytes,
                                            .patience_ms = PATIENCE_MS,
                                            .opened = on_opened,
                                            .changed = on_changed,
                                            .failed = on_failed,
                                            .ctx = s};

    s->opened = false;
    s->ledger = ledger_open_remote(&o);
    ledger_start(s->ledger);
}

static void on_limit(uv_timer_t *timer)
{
    (void)timer;
    fail_msg("it does not come");
}

/* The loop runs until then; a scene that hangs fails. */
#define UNTIL(s, condition)                                                                        \
    do {                                                                                           \
        uv_timer_start(&(s)->limit, on_limit, 60000, 0);                                           \
        while (!(condition))                                                                       \
            uv_run(&(s)->loop, UV_RUN_ONCE);                                                       \
        uv_timer_stop(&(s)->limit);                                                                \
    } while (0)

static size_t waiting(struct scene *s)
{
    struct ledger_waiting w;

    ledger_waiting(s->ledger, &w);
    return w.rows;
}

/* A turn of the loop: a pod, what its node has, and until when all was seen. */
static int turn(struct scene *s)
{
    unsigned n = s->n++;
    int64_t at = clock_wall_us(&CLOCK_SYSTEM) + (int64_t)n * SECOND;
    struct fleet_hold h = {.pod_uid = arena_printf(s->a, "u%u", n),
                           .tenant = STR("team-a"),
                           .pool = STR("a100"),
                           .gpu_eq = {1, 7},
                           .begin_us = at};
    struct fleet_capacity c = {.node = STR("n1"),
                               .pool = STR("a100"),
                               .from_us = at,
                               .total = {(int64_t)n, 1},
                               .unhealthy = {0, 1}};

    if (ledger_add_hold(s->ledger, &h, &s->err) || ledger_add_capacity(s->ledger, &c, &s->err) ||
        ledger_set_seen(s->ledger, at, &s->err))
        fail_msg("%.*s", STR_F(s->err.message));
    return ledger_commit(s->ledger, &s->err);
}

static void turns(struct scene *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(turn(s), 0);
}

static void on_flushed(void *ctx)
{
    ((struct scene *)ctx)->flushed = true;
}

static void flush(struct scene *s)
{
    s->flushed = false;
    ledger_flush(s->ledger, INT64_MAX, on_flushed, s);
    UNTIL(s, s->flushed);
}

/* Each hold and each capacity is there once, in order, and all is durable. */
static void check_rows(struct scene *s)
{
    struct fleet_records r;

    flush(s);
    assert_int_equal(waiting(s), 0);
    UNTIL(s, !ledger_trouble(s->ledger).n);
    if (ledger_read(s->a, str_c(s->location), 0, INT64_MAX, &r, &s->err))
        fail_msg("%.*s", STR_F(s->err.message));
    assert_int_equal(r.n_holds, s->n);
    assert_int_equal(r.n_capacities, s->n);
    for (unsigned i = 0; i < s->n; i++) {
        assert_int_equal(r.capacities[i].total.num, i);
        assert_str(r.holds[i].pod_uid, arena_printf(s->a, "u%u", i).p);
    }
    if (s->n)
        assert_int_equal(r.seen_us, ledger_seen_us(s->ledger));
    assert_int_equal(ledger_durable_us(s->ledger), ledger_seen_us(s->ledger));
}

/* As a kill: what waits is lost. */
static void end(struct scene *s)
{
    s->ledger = ledger_close(s->ledger);
}

static int setup(void **state)
{
    static unsigned n;
    struct scene *s = calloc(1, sizeof(*s));
    char name[16];

    s->a = arena_new(0);
    err_init(&s->err, s->a);
    uv_loop_init(&s->loop);
    uv_timer_init(&s->loop, &s->limit);
    proxy_open(&s->proxy, &server);
    snprintf(name, sizeof(name), "scene%u", n++);
    s->location = server_location(&server, s->proxy.directory, name);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    end(s);
    uv_close((uv_handle_t *)&s->limit, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    proxy_close(&s->proxy);
    arena_free(s->a);
    free(s->location);
    free(s);
    return 0;
}

/* --- scenes --- */

static void what_is_written_is_read_by_the_next_process(void **state)
{
    struct scene *s = *state;

    start(s);
    UNTIL(s, s->opened);
    assert_int_equal(s->n_holds, 0);
    assert_true(ledger_begin_us(s->ledger) > 0 && ledger_identity(s->ledger) == 7);
    turns(s, 100);
    assert_true(ledger_durable_us(s->ledger) < ledger_seen_us(s->ledger)); /* it did not wait */
    check_rows(s);
    end(s);
    start(s);
    UNTIL(s, s->opened);
    assert_int_equal(s->n_holds, 100);
    turns(s, 5);
    check_rows(s);
}

/* The server has the transaction or not: in both cases it is there once. */
static void lost_answers_to_commit(void **state)
{
    struct scene *s = *state;

    start(s);
    UNTIL(s, s->opened);
    for (unsigned i = 0; i < 6; i++) {
        s->proxy.before = i % 2;
        s->proxy.commits = 1 + i / 3;
        turns(s, 1);
        flush(s);
        turns(s, 3);
        check_rows(s);
        UNTIL(s, s->proxy.cuts > i);
    }
    assert_int_equal(s->proxy.cuts, 6);
}

static void a_server_that_is_away_at_the_start(void **state)
{
    struct scene *s = *state;

    server_end(&server, SIGKILL);
    start(s);
    UNTIL(s, ledger_trouble(s->ledger).n);
    assert_false(s->opened || s->failed);
    server_start(&server);
    UNTIL(s, s->opened);
    turns(s, 3);
    check_rows(s);
}

static void a_server_that_is_killed(void **state)
{
    struct scene *s = *state;

    start(s);
    UNTIL(s, s->opened);
    turns(s, 30);
    server_end(&server, SIGKILL);
    turns(s, 300);
    UNTIL(s, ledger_trouble(s->ledger).n);
    assert_true(waiting(s));
    server_start(&server);
    check_rows(s);
    server_end(&server, SIGINT); /* and one that is restarted */
    turns(s, 3);
    server_start(&server);
    check_rows(s);
}

/* Its processes stop: connections are taken and nothing is answered. The loop goes on, and so does
 * the end of the process. */
static void a_server_that_hangs(void **state)
{
    struct scene *s = *state;

    start(s);
    UNTIL(s, s->opened);
    turns(s, 1);
    check_rows(s);
    server_signal(&server, SIGSTOP);
    turns(s, 20);
    UNTIL(s, ledger_trouble(s->ledger).n);
    assert_true(str_contains(ledger_trouble(s->ledger), STR("does not answer")));
    server_signal(&server, SIGCONT);
    check_rows(s);
    server_signal(&server, SIGSTOP);
    turns(s, 1);
    end(s);
    server_signal(&server, SIGCONT);
}

/* Of rows that wait, looks at the host are one. */
static void what_waits_is_bounded(void **state)
{
    struct scene *s = *state;
    size_t rows;

    s->most_bytes = 20000;
    start(s);
    UNTIL(s, s->opened);
    server_end(&server, SIGKILL);
    turns(s, 1);
    UNTIL(s, ledger_trouble(s->ledger).n);
    turns(s, 1);
    rows = waiting(s);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ledger_set_seen(s->ledger, ledger_seen_us(s->ledger) + 1, &s->err), 0);
        assert_int_equal(ledger_commit(s->ledger, &s->err), 0);
    }
    assert_int_equal(waiting(s), rows);
    while (!turn(s))
        ;
    assert_ptr_equal(s->err.kind, &ERR_TOO_LARGE);
    err_clear(&s->err);
    assert_true(s->n > 20 && s->n < 1000);
    server_start(&server);
    check_rows(s); /* the last one as well */
}

static void there_is_one_writer(void **state)
{
    struct scene *s = *state;
    struct ledger *other = NULL;

    assert_int_equal(ledger_open(str_c(s->location), BEGIN, 1, &other, &s->err), 0);
    start(s);
    UNTIL(s, ledger_trouble(s->ledger).n);
    assert_str(ledger_trouble(s->ledger), "the ledger: another process has it open");
    assert_false(s->opened || s->failed);
    ledger_close(other);
    UNTIL(s, s->opened);
    assert_int_equal(ledger_identity(s->ledger), 1);
    turns(s, 1);
    check_rows(s);
}

/* A command of the admin, in the schema of the scene. */
static void by_hand(struct scene *s, const char *sql)
{
    struct str schema = str_from(str_c(s->location), str_rfind(str_c(s->location), '/') + 1);
    char *value =
        server_sql(&server, arena_printf(s->a, "SET search_path = %.*s; %s", STR_F(schema), sql).p);

    assert_non_null(value);
    free(value);
}

static const char END_SESSIONS[] =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sublet'";

/* The network ends between the two, and neither notices: the lock of the session that is lost goes
 * to the next one of this process. */
static void a_connection_that_is_cut_off(void **state)
{
    struct scene *s = *state;

    start(s);
    UNTIL(s, s->opened);
    turns(s, 2);
    check_rows(s);
    s->proxy.frozen = s->proxy.accepted;
    turns(s, 10);
    UNTIL(s, ledger_trouble(s->ledger).n);
    check_rows(s);
}

static void another_writer_or_another_past_end_it(void **state)
{
    static const struct {
        const char *sql, *why;
    } cases[] = {
        {"UPDATE meta SET value = 1 WHERE key = 'writer'",
         "another process wrote the ledger meanwhile"},
        {"UPDATE meta SET value = value - 1 WHERE key = 'turn'",
         "the server has another state of the ledger than it had: it lost transactions, or was set "
         "back to a copy"},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < COUNT(cases); i++) {
        start(s);
        UNTIL(s, s->opened);
        turns(s, 2);
        flush(s);
        by_hand(s, cases[i].sql);
        by_hand(s, END_SESSIONS);
        turns(s, 1);
        UNTIL(s, s->failed);
        assert_str(s->why, cases[i].why);
        s->failed = false;
        end(s);
    }
}

static void fill_disk(struct scene *s)
{
    by_hand(s, "CREATE FUNCTION full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE"
               " EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;"
               "CREATE TRIGGER full_disk BEFORE INSERT ON capacity EXECUTE FUNCTION full()");
}

/* The server refuses all, until no more can wait; then the end waits until what does is written. */
static void fill_up(struct scene *s)
{
    struct ledger_waiting w;

    s->most_bytes = 20000;
    start(s);
    UNTIL(s, s->opened);
    turns(s, 2);
    flush(s);
    fill_disk(s);
    while (!turn(s))
        ;
    assert_ptr_equal(s->err.kind, &ERR_TOO_LARGE);
    err_clear(&s->err);
    ledger_waiting(s->ledger, &w);
    assert_true(w.full && w.rows > 20);
    s->flushed = false;
    ledger_flush(s->ledger, INT64_MAX, on_flushed, s);
    UNTIL(s, ledger_trouble(s->ledger).n);
    assert_false(s->flushed || s->failed);
}

static void what_waits_when_full_is_written_at_the_end(void **state)
{
    struct scene *s = *state;
    struct ledger_waiting w;

    fill_up(s);
    by_hand(s, "DROP TRIGGER full_disk ON capacity");
    UNTIL(s, s->flushed);
    ledger_waiting(s->ledger, &w);
    assert_true(w.full && !w.rows && !w.transactions && !w.bytes);
    check_rows(s);
    assert_int_equal(turn(s), -1); /* it stays full: the process ends */
    assert_ptr_equal(s->err.kind, &ERR_TOO_LARGE);
    err_clear(&s->err);
    end(s);
    start(s);
    UNTIL(s, s->opened);
    assert_true(s->n_holds >= s->n - 1);
}

/* What waits can never be written: the end waits no longer. */
static void another_writer_ends_one_that_is_full(void **state)
{
    struct scene *s = *state;

    fill_up(s);
    by_hand(s, "UPDATE meta SET value = 1 WHERE key = 'writer'");
    UNTIL(s, s->failed && s->flushed);
    assert_str(s->why, "another process wrote the ledger meanwhile");
}

static void a_lost_lease_ends_one_that_is_full(void **state)
{
    struct scene *s = *state;

    fill_up(s);
    ledger_drop(s->ledger);
    assert_true(s->flushed);
    by_hand(s, "DROP TRIGGER full_disk ON capacity");
    end(s);
    start(s);
    UNTIL(s, s->opened);
    assert_int_equal(s->n_holds, 2); /* nothing is written after it */
}

/* As of a disk that is full, or rights that were taken away: it is tried until it goes. */
static void what_the_server_refuses_for_a_while(void **state)
{
    struct scene *s = *state;

    start(s);
    UNTIL(s, s->opened);
    fill_disk(s);
    turns(s, 3);
    UNTIL(s, ledger_trouble(s->ledger).n);
    assert_str(ledger_trouble(s->ledger), "PostgreSQL: no space left on device");
    by_hand(s, "DROP TRIGGER full_disk ON capacity");
    check_rows(s);
}

/* Strings with mistakes, where parts of the password stand for something else. */
static void no_password_is_printed(void **state)
{
    static const char *const strings[] = {
        "postgres://u:Zq7x/Zq8y@127.0.0.1:1/ledger",
        "postgres://u:Zq7x@Zq8y@127.0.0.1:1/ledger",
        "postgres://u:Zq7x Zq8y@127.0.0.1:1/ledger",
        "postgres://u:Zq7x%Zq8y@127.0.0.1:1/ledger",
        "postgres://u:Zq7x\"Zq8y/@127.0.0.1:1/ledger",
        "postgres://u:Zq7x#Zq8y@127.0.0.1:port/l",
        "host=127.0.0.1 port=1 password=Zq7x Zq8y",
        "host=127.0.0.1 port=1 password='Zq7x Zq8y",
        "host=127.0.0.1 password=Zq7x port=Zq8y",
        "host=127.0.0.1 port=1 password=Zq7x sslmode=Zq8y",
        "host=127.0.0.1 port=1 Zq7x=Zq8y",
        "host=127.0.0.1 port=1 options='-c Zq7x=Zq8y'",
        "Zq7x",
        "postgres://u:p@Zq7x.invalid/ledger",
        "host=Zq7x.invalid password=Zq8y",
        "host=127.0.0.1 port=1 password=",
    };
    struct scene *s = *state;
    const char *path = s->location + strlen(LEDGER_REMOTE);
    struct fleet_records r;

    for (size_t i = 0; i < COUNT(strings); i++) {
        server_write(path, strings[i], 0600);
        err_clear(&s->err);
        assert_int_equal(ledger_read(s->a, str_c(s->location), 0, INT64_MAX, &r, &s->err), -1);
        assert_ptr_equal(s->err.kind, &ERR_STORAGE);
        assert_true(s->err.message.n > 10);
        if (str_contains(s->err.message, STR("Zq")))
            fail_msg("%s: %.*s", strings[i], STR_F(s->err.message));
    }
    server_write(path, "", 0600);
    err_clear(&s->err);
    assert_int_equal(ledger_read(s->a, str_c(s->location), 0, INT64_MAX, &r, &s->err), -1);
    assert_true(str_contains(s->err.message, STR("it has no connection string")));
    server_write(path, "host=127.0.0.1", 0604);
    err_clear(&s->err);
    assert_int_equal(ledger_read(s->a, str_c(s->location), 0, INT64_MAX, &r, &s->err), -1);
    assert_true(str_contains(s->err.message, STR("everyone may read or change it (mode 0604)")));
}

/* The file is read again for each connection: a password that is changed needs no restart. */
static void a_password_that_is_changed(void **state)
{
    struct scene *s = *state;
    const char *path = s->location + strlen(LEDGER_REMOTE);
    char text[512];

    by_hand(s, "CREATE ROLE rotated LOGIN SUPERUSER PASSWORD 'Zq7xone'");
    snprintf(text, sizeof(text),
             "host=%s dbname=postgres user=rotated password=Zq7xone options='-c search_path=%s'",
             s->proxy.directory, strrchr(path, '/') + 1);
    server_write(path, text, 0600);
    start(s);
    UNTIL(s, s->opened);
    by_hand(s, "ALTER ROLE rotated PASSWORD 'Zq7xtwo'");
    by_hand(s, END_SESSIONS);
    turns(s, 1);
    UNTIL(s, str_contains(ledger_trouble(s->ledger), STR("authentication failed")));
    assert_false(str_contains(ledger_trouble(s->ledger), STR("Zq7x")));
    memcpy(strstr(text, "Zq7xone"), "Zq7xtwo", 7);
    server_write(path, text, 0600);
    check_rows(s);
}

static int group_setup(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* of the proxy */
    server_open(&server);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    server_close(&server);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_by_the_next_process),
        TEST(lost_answers_to_commit),
        TEST(a_server_that_is_away_at_the_start),
        TEST(a_server_that_is_killed),
        TEST(a_server_that_hangs),
        TEST(a_connection_that_is_cut_off),
        TEST(what_waits_is_bounded),
        TEST(what_waits_when_full_is_written_at_the_end),
        TEST(another_writer_ends_one_that_is_full),
        TEST(a_lost_lease_ends_one_that_is_full),
        TEST(there_is_one_writer),
        TEST(another_writer_or_another_past_end_it),
        TEST(what_the_server_refuses_for_a_while),
        TEST(no_password_is_printed),
        TEST(a_password_that_is_changed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
