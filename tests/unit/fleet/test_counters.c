/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of the ledger are its report, and never less than before: when records come late,
 * when the clock goes back, and when the process is another one. */
#include "world.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>
#include <uv.h>

#include "usage/counter_book.h"
#include "usage/counters.h"

#define DO(call)                                                                                   \
    do {                                                                                           \
        err_clear(&w->err);                                                                        \
        if (call)                                                                                  \
            fail_msg("%.*s", STR_F(w->err.message));                                               \
    } while (0)
#define MINUTE (60 * SECOND)

static struct counter_book *book_new(struct world *w)
{
    return fleet_book_new(str_c(w->directory), w->location, ledger_identity(w->ledger));
}

static struct counter_book *again(struct world *w, struct counter_book *b)
{
    fleet_book_free(b);
    return book_new(w);
}

/* What a scrape of then says. */
static struct str count(struct world *w, struct counter_book *b, int64_t seen_us)
{
    struct buf out = BUF_INIT(0);
    struct str text;

    DO(ledger_set_seen(w->ledger, seen_us, &w->err));
    DO(ledger_commit(w->ledger, &w->err));
    DO(fleet_book_count(b, ledger_seen_us(w->ledger), &w->err));
    fleet_book_write(b, &out);
    text = arena_str(w->a, buf_str(&out));
    buf_fini(&out);
    return text;
}

static void has(struct str all, const char *line)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (!str_contains(all, str_c(whole)))
        fail_msg("\"%s\" is not in:\n%.*s", line, STR_F(all));
}

static void hold(struct world *w, const char *uid, const char *tenant, int64_t gpus, int64_t begin)
{
    const struct fleet_hold h = {.pod_uid = str_c(uid),
                                 .tenant = str_c(tenant),
                                 .name = str_c(uid),
                                 .node = STR("n1"),
                                 .pool = STR("a100"),
                                 .product = STR("A100"),
                                 .gpu_eq = {gpus, 1},
                                 .begin_us = begin};

    DO(ledger_add_hold(w->ledger, &h, &w->err));
}

static void end(struct world *w, const char *uid, int64_t at)
{
    DO(ledger_end_hold(w->ledger, str_c(uid), at, STR("Succeeded"), false, &w->err));
}

static void price(struct world *w, int64_t at, int64_t of_an_hour, const char *currency)
{
    const struct fleet_price p = {.pool = STR("a100"),
                                  .currency = str_c(currency),
                                  .from_us = at,
                                  .price = {of_an_hour, 1},
                                  .borrow = {1, 2}};

    DO(ledger_add_price(w->ledger, &p, &w->err));
}

#define OF_A   "pool=\"a100\",tenant=\"team-a\"} "
#define WITHIN "sublet_fleet_gpu_seconds_total{borrowed=\"false\"," OF_A
#define BEYOND "sublet_fleet_gpu_seconds_total{borrowed=\"true\"," OF_A
#define COST   "sublet_fleet_gpu_cost_micros_total{currency=\"USD\"," OF_A
#define EUROS  "sublet_fleet_gpu_cost_micros_total{currency=\"EUR\"," OF_A

static void counts_what_is_held_borrowed_and_paid(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);
    const struct fleet_guarantee g = {.tenant = STR("team-a"),
                                      .pool = STR("a100"),
                                      .from_us = BEGIN + 2 * HOUR,
                                      .bound = true,
                                      .guarantee = {1, 1},
                                      .granted = {4, 1}};
    struct str all = count(w, b, BEGIN + 1);

    assert_false(str_contains(all, STR("tenant=")));
    hold(w, "u1", "team-a", 2, BEGIN); /* of 2.50 USD */
    all = count(w, b, BEGIN + 1500001);
    has(all, WITHIN "3.000002");
    has(all, BEYOND "0");
    has(all, COST "2083"); /* 2083.3: rounded down */
    has(all, "sublet_fleet_gpu_counted_timestamp_seconds 1790000001.500001");
    count(w, b, BEGIN + HOUR);
    price(w, BEGIN + HOUR, 5, "USD");
    all = count(w, b, BEGIN + 2 * HOUR);
    has(all, WITHIN "14400");
    has(all, COST "15000000");
    DO(ledger_add_guarantee(w->ledger, &g, &w->err));
    all = count(w, b, BEGIN + 3 * HOUR);
    has(all, WITHIN "18000");
    has(all, BEYOND "3600");
    has(all, COST "22500000"); /* half of 5 USD for what is borrowed */
    price(w, BEGIN + 3 * HOUR, 7, "EUR");
    all = count(w, b, BEGIN + 9 * HOUR);
    has(all, COST "22500000");
    has(all, EUROS "63000000");
    end(w, "u1", BEGIN + 9 * HOUR);
    assert_true(str_eq(count(w, b, BEGIN + 9 * HOUR), all));
    all = count(w, b, BEGIN + 99 * HOUR);
    has(all, WITHIN "39600");
    has(all, BEYOND "25200");
    fleet_book_free(b);
}

static void never_goes_down(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);

    hold(w, "u1", "team-a", 1, BEGIN);
    has(count(w, b, BEGIN + HOUR), WITHIN "3600");
    end(w, "u1", BEGIN + HOUR - MINUTE); /* it had ended by then */
    has(count(w, b, BEGIN + HOUR + SECOND), WITHIN "3600");
    b = again(w, b);
    has(count(w, b, BEGIN + HOUR + 2 * SECOND), WITHIN "3600");
    hold(w, "u2", "team-a", 1, BEGIN + HOUR + 2 * SECOND);
    has(count(w, b, BEGIN + HOUR + MINUTE), WITHIN "3600"); /* 3598 */
    has(count(w, b, BEGIN + HOUR + MINUTE + 9 * SECOND), WITHIN "3607");
    has(count(w, b, BEGIN + 50 * HOUR), WITHIN "179938"); /* settled: the two minutes are not */
    b = again(w, b);
    has(count(w, b, BEGIN + 51 * HOUR), WITHIN "183538");
    fleet_book_free(b);
}

static void a_clock_that_goes_back_takes_nothing(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);

    DO(observer_node(w->observer, world_node(w, "n1", 8, 8, true, BEGIN), BEGIN, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN, 0), BEGIN, &w->err));
    DO(observer_seen(w->observer, BEGIN + 10 * HOUR, &w->err));
    has(count(w, b, BEGIN + 10 * HOUR), WITHIN "36000");
    /* It was ahead by nine hours. */
    DO(observer_seen(w->observer, BEGIN + HOUR, &w->err));
    has(count(w, b, BEGIN + HOUR), WITHIN "36000");
    DO(observer_pod(w->observer, world_pod(w, "u1", "n1", 1, BEGIN, BEGIN + 2 * HOUR),
                    BEGIN + 2 * HOUR, &w->err));
    DO(observer_pod(w->observer, world_pod(w, "u2", "n1", 2, BEGIN + 2 * HOUR, 0), BEGIN + 2 * HOUR,
                    &w->err));
    has(count(w, b, BEGIN + 2 * HOUR), WITHIN "39600"); /* 9 h, and the last one of two */
    b = again(w, b);
    has(count(w, b, BEGIN + 2 * HOUR), WITHIN "64800"); /* 2 h, and 8 h of two, until 10 h */
    has(count(w, b, BEGIN + 11 * HOUR), WITHIN "72000");
    fleet_book_free(b);
}

static void what_comes_very_late_counts_the_next_day(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);

    hold(w, "u1", "team-a", 1, BEGIN);
    has(count(w, b, BEGIN + 10 * HOUR), WITHIN "36000");
    hold(w, "u2", "team-a", 1, BEGIN); /* settled are nine hours */
    has(count(w, b, BEGIN + 10 * HOUR), WITHIN "39600");
    has(count(w, b, BEGIN + 34 * HOUR - 1), WITHIN "212399.999998");
    has(count(w, b, BEGIN + 34 * HOUR), WITHIN "244800");
    has(count(w, b, BEGIN + 35 * HOUR), WITHIN "252000");
    fleet_book_free(b);
}

static void another_ledger_begins_anew(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);

    hold(w, "u1", "team-a", 1, BEGIN);
    has(count(w, b, BEGIN + HOUR), WITHIN "3600");
    end(w, "u1", BEGIN);
    b = again(w, b);
    has(count(w, b, BEGIN + HOUR), WITHIN "3600");
    fleet_book_free(b);
    b = fleet_book_new(str_c(w->directory), w->location, 77);
    assert_false(str_contains(count(w, b, BEGIN + HOUR), STR("{"))); /* a hold of no time */
    fleet_book_free(b);
}

/* --- as the report --- */

struct sample {
    struct str key; /* without the value */
    uint64_t value; /* GPU microseconds, or millionths of the currency */
};
struct samples {
    struct sample items[64];
    size_t n;
};

static void expect(struct samples *s, struct str key, struct exact v, int64_t times)
{
    uint64_t value = (uint64_t)(v.num * times / v.den);

    for (size_t i = 0; i < s->n; i++)
        if (str_eq(s->items[i].key, key)) {
            s->items[i].value = value > s->items[i].value ? value : s->items[i].value;
            return;
        }
    s->items[s->n++] = (struct sample){key, value};
}

/* The lines of a report by tenant and pool; in this world they are of one currency. */
static void expect_report(struct world *w, struct samples *s)
{
    struct ledger_usage_request q = {.a = w->a,
                                     .location = w->location,
                                     .until_us = INT64_MAX,
                                     .columns = 1u << USAGE_TENANT | 1u << USAGE_POOL};
    struct usage u;

    DO(ledger_usage(&q, &u, &w->err));
    for (size_t i = 0; i < u.n_lines && u.lines[i]->kind == USAGE_HELD; i++) {
        const struct fleet_usage_line *l = u.lines[i];
        struct str who =
            arena_printf(w->a, "pool=\"a100\",tenant=\"%.*s\"} ", STR_F(l->values[USAGE_TENANT]));
        struct exact within;

        assert_true(exact_sub(l->gpu_us, l->borrowed, &within));
        expect(s, arena_printf(w->a, "seconds_total{borrowed=\"false\",%.*s", STR_F(who)), within,
               1);
        expect(s, arena_printf(w->a, "seconds_total{borrowed=\"true\",%.*s", STR_F(who)),
               l->borrowed, 1);
        expect(s, arena_printf(w->a, "micros_total{currency=\"USD\",%.*s", STR_F(who)), l->cost,
               1000000);
    }
}

static void compare(struct world *w, const struct samples *s, struct str all)
{
    for (size_t i = 0; i < s->n; i++) {
        struct str key = s->items[i].key;
        unsigned long long v = s->items[i].value, whole = v / 1000000, part = v % 1000000;

        if (str_has_prefix(key, STR("micros")))
            has(all, arena_printf(w->a, "sublet_fleet_gpu_cost_%.*s%llu", STR_F(key), v).p);
        else if (part)
            has(all,
                arena_printf(w->a, "sublet_fleet_gpu_%.*s%llu.%06llu", STR_F(key), whole, part).p);
        else
            has(all, arena_printf(w->a, "sublet_fleet_gpu_%.*s%llu", STR_F(key), whole).p);
    }
}

static void change(struct world *w, uint64_t *seed, int64_t now, int *n)
{
    static const char *const tenants[] = {"team-a", "team-b", "team-c"};
    const struct fleet_guarantee g = {.tenant = str_c(tenants[BELOW(seed, 3)]),
                                      .pool = STR("a100"),
                                      .from_us = now,
                                      .bound = true,
                                      .guarantee = {BELOW(seed, 9), 2},
                                      .granted = {8, 1}};

    switch (BELOW(seed, 4)) {
    case 0:
        price(w, now, 1 + BELOW(seed, 9), "USD");
        break;
    case 1:
        DO(ledger_add_guarantee(w->ledger, &g, &w->err));
        break;
    case 2:
        if (*n)
            end(w, arena_printf(w->a, "u%d", (int)BELOW(seed, *n)).p, now - BELOW(seed, HOUR / 2));
        break;
    default:
        hold(w, arena_printf(w->a, "u%d", (*n)++).p, tenants[BELOW(seed, 3)], 1 + BELOW(seed, 4),
             now - BELOW(seed, HOUR / 2));
    }
}

/* Whatever happens less than an hour late, and whatever process counts: the most that a report has
 * said. */
static void is_the_report_of_the_moment(void **state)
{
    struct world *w = *state;

    for (uint64_t seed = 20261128, history = 0; history < 8; history++) {
        struct counter_book *b = book_new(w);
        struct samples most = {.n = 0};
        int64_t now = BEGIN;
        int n = 0;

        price(w, BEGIN, 3, "USD");
        for (int i = 0; i < 40; i++) {
            struct str all;

            now += 1 + BELOW(&seed, HOUR);
            change(w, &seed, now, &n);
            all = count(w, b, now);
            expect_report(w, &most);
            compare(w, &most, all);
            if (BELOW(&seed, 12) == 0)
                b = again(w, b);
        }
        assert_true(most.n > 6);
        fleet_book_free(b);
        world_close(w);
        world_open(w);
        w->pool.price = STR("3");
        w->pool.borrow_factor = STR("0.5");
        world_start(w, BEGIN);
    }
}

/* --- bounds --- */

static void series_are_bounded_and_stay(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);
    struct str all;
    size_t lines = 0;

    for (int i = 0; i < 5002; i++)
        hold(w, arena_printf(w->a, "u%d", i).p, arena_printf(w->a, "t%04d", i).p, 1, BEGIN);
    all = count(w, b, BEGIN + 2 * SECOND);
    for (struct str rest = all; rest.p;)
        lines += str_has_prefix(str_cut(&rest, '\n'), STR("sublet_fleet_gpu_seconds_total{"));
    assert_int_equal(lines, 10000);
    assert_int_equal(fleet_book_refused(b), 4);
    hold(w, "first", "a", 1, BEGIN); /* of all names */
    b = again(w, b);
    all = count(w, b, BEGIN + 3 * SECOND);
    has(all, "sublet_fleet_gpu_seconds_total{borrowed=\"false\",pool=\"a100\",tenant=\"t4999\"} 3");
    assert_false(str_contains(all, STR("borrowed=\"false\",pool=\"a100\",tenant=\"a\"")));
    assert_int_equal(fleet_book_refused(b), 6);
    fleet_book_free(b);
}

/* Two years of what twenty tenants are granted, twice an hour: more than fits into the memory of a
 * count, but not of a month. */
static void a_ledger_of_years_is_counted(void **state)
{
    struct world *w = *state;
    struct counter_book *b = book_new(w);
    struct str sql = arena_printf(
        w->a,
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 699999)"
        " INSERT INTO guarantee(tenant, pool, from_us, bound, num, den, granted_num, granted_den,"
        " labels) SELECT 'team-' || char(97 + i %% 20), 'a100', %lld + (i / 20) * 1800000000, 1,"
        " 1, 1, i %% 8, 1, '' FROM n",
        (long long)BEGIN);
    sqlite3 *db = NULL;

    hold(w, "u1", "team-a", 3, BEGIN);
    DO(ledger_commit(w->ledger, &w->err));
    assert_int_equal(sqlite3_open(arena_printf(w->a, "%s/ledger.db", w->directory).p, &db),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql.p, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    has(count(w, b, BEGIN + 17500 * HOUR), WITHIN "63000000");
    has(count(w, b, BEGIN + 17501 * HOUR), BEYOND "126007200");
    fleet_book_free(b);
}

/* --- on the loop --- */

struct now {
    int64_t ms;
};

static int64_t mono_ms(void *ctx)
{
    return ((struct now *)ctx)->ms;
}

static struct str shown(struct world *w, const struct counters *c)
{
    struct buf out = BUF_INIT(0);
    struct str text;

    fleet_counters_metrics(c, &out);
    text = arena_str(w->a, buf_str(&out));
    buf_fini(&out);
    return text;
}

static struct str ask(struct world *w, uv_loop_t *loop, struct counters *c, int64_t seen_us)
{
    DO(ledger_set_seen(w->ledger, seen_us, &w->err));
    DO(ledger_commit(w->ledger, &w->err));
    fleet_counters_ask(c, seen_us);
    fleet_counters_ask(c, seen_us); /* one is under way, or none is due */
    uv_run(loop, UV_RUN_DEFAULT);
    return shown(w, c);
}

/* Returns what is logged meanwhile. */
static struct str ask_logged(struct world *w, uv_loop_t *loop, struct counters *c, int64_t seen_us)
{
    char seen[4096];
    int ends[2], saved = dup(STDERR_FILENO);
    ssize_t n;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    ask(w, loop, c, seen_us);
    dup2(saved, STDERR_FILENO);
    n = read(ends[0], seen, sizeof(seen));
    close(ends[0]);
    close(ends[1]);
    close(saved);
    return arena_str(w->a, (struct str){seen, n > 0 ? (size_t)n : 0});
}

static void is_counted_on_demand(void **state)
{
    struct world *w = *state;
    struct now now = {1000};
    const struct clock clock = {.mono_ms = mono_ms, .ctx = &now};
    uv_loop_t loop;
    struct counters_options o = {.loop = &loop,
                                 .clock = &clock,
                                 .directory = str_c(w->directory),
                                 .location = w->location,
                                 .identity = ledger_identity(w->ledger)};
    struct counters *c = fleet_counters_new(&o);
    struct str blocker = arena_printf(w->a, "%s/" COUNTER_FILE ".new", w->directory), log;

    uv_loop_init(&loop);
    hold(w, "u1", "team-a", 1, BEGIN);
    assert_int_equal(shown(w, c).n, 0); /* no zero: it is absent */
    fleet_counters_metrics(NULL, NULL);
    fleet_counters_ask(NULL, 0);
    has(ask(w, &loop, c, BEGIN + 5 * SECOND), WITHIN "5");
    now.ms += 29999;
    has(ask(w, &loop, c, BEGIN + 34 * SECOND), WITHIN "5");
    now.ms += 1;
    has(ask(w, &loop, c, BEGIN + 35 * SECOND), WITHIN "35");

    /* What cannot be written is not shown, and a line of the log says why, once. */
    assert_int_equal(mkdir(blocker.p, 0700), 0);
    now.ms += 30000;
    log = ask_logged(w, &loop, c, BEGIN + 65 * SECOND);
    assert_true(str_contains(log, STR("fleet: GPU time and cost are not counted error=\"")));
    assert_true(str_contains(log, blocker));
    has(shown(w, c), WITHIN "35");
    now.ms += 30000;
    assert_int_equal(ask_logged(w, &loop, c, BEGIN + 66 * SECOND).n, 0);
    assert_int_equal(rmdir(blocker.p), 0);
    now.ms += 30000;
    log = ask_logged(w, &loop, c, BEGIN + 95 * SECOND);
    assert_true(str_contains(log, STR("fleet: GPU time and cost are counted again")));
    has(shown(w, c), WITHIN "95");

    now.ms += 30000;
    fleet_counters_ask(c, BEGIN + 95 * SECOND);
    fleet_counters_free(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup_started, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(counts_what_is_held_borrowed_and_paid),
        TEST(never_goes_down),
        TEST(a_clock_that_goes_back_takes_nothing),
        TEST(what_comes_very_late_counts_the_next_day),
        TEST(another_ledger_begins_anew),
        TEST(is_the_report_of_the_moment),
        TEST(series_are_bounded_and_stay),
        TEST(a_ledger_of_years_is_counted),
        TEST(is_counted_on_demand),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
