/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: issued once, chained, and every way to change, leave out or reorder one is found. */
#include "world.h"

#include <sqlite3.h>
#include <stdarg.h>

#include <sublet/fleet_statement.h>

#include "usage/statement.h"

/* BEGIN is 2026-09-21T14:13:20Z. */
#define DAY (24 * HOUR)

struct state {
    struct world w;
    struct str private_pem, public_pem;
};

static int setup(void **state)
{
    struct state *s = calloc(1, sizeof(*s));
    struct world *w = &s->w;

    world_open(w);
    world_start(w, BEGIN);
    assert_int_equal(
        observer_node(w->observer, world_node(w, "n1", 8, 7, true, BEGIN), BEGIN, &w->err), 0);
    assert_int_equal(observer_nodes_listed(w->observer, BEGIN, &w->err), 0);
    assert_int_equal(
        observer_pod(w->observer, world_pod(w, "u1", "n1", 3, BEGIN, 0), BEGIN, &w->err), 0);
    assert_int_equal(statement_key_new(w->a, &s->private_pem, &w->err), 0);
    assert_int_equal(statement_key_public(w->a, s->private_pem, &s->public_pem, &w->err), 0);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct state *s = *state;

    world_close(&s->w);
    free(s);
    return 0;
}

static void observe_until(struct state *s, int64_t us)
{
    assert_int_equal(observer_seen(s->w.observer, us, &s->w.err), 0);
    assert_int_equal(ledger_commit(s->w.ledger, &s->w.err), 0);
}

static struct statement_request request(const struct state *s, int64_t from, int64_t until)
{
    return (struct statement_request){.location = s->w.location,
                                      .from_us = from,
                                      .until_us = until,
                                      .now_us = BEGIN + 100 * DAY,
                                      .private_pem = s->private_pem};
}

static struct str issue(struct state *s, struct statement_request o)
{
    struct str text;
    struct err err;
    bool differs;

    err_init(&err, s->w.a);
    assert_ok(statement_issue(s->w.a, &o, &text, &differs, &err));
    assert_false(differs);
    return text;
}

static void refused(struct state *s, struct statement_request o, const char *why)
{
    struct str text;
    struct err err;
    bool differs;

    err_init(&err, s->w.a);
    assert_int_equal(statement_issue(s->w.a, &o, &text, &differs, &err), -1);
    if (!str_contains(err.message, str_c(why)))
        fail_msg("got \"%.*s\", want \"%s\"", STR_F(err.message), why);
}

static struct statement verified(struct state *s, struct str text, const char *name)
{
    struct statement ret;
    struct err err;

    err_init(&err, s->w.a);
    assert_ok(statement_verify(s->w.a, text, s->public_pem, &ret, &err));
    ret.name = str_c(name);
    return ret;
}

static void not_verified(struct state *s, struct str text, struct str public_pem, const char *why)
{
    struct statement ret;
    struct err err;

    err_init(&err, s->w.a);
    assert_int_equal(statement_verify(s->w.a, text, public_pem, &ret, &err), -1);
    if (!str_contains(err.message, str_c(why)))
        fail_msg("got \"%.*s\", want \"%s\"", STR_F(err.message), why);
}

static void issues_a_closed_period_once(void **state)
{
    struct state *s = *state;
    struct statement_request o = request(s, BEGIN, BEGIN + DAY);
    struct str text;
    cJSON *root, *total;

    observe_until(s, BEGIN + DAY + HOUR);
    text = issue(s, o);
    assert_int_equal(verified(s, text, "a").number, 1);
    root = world_parse(&s->w, text);
    assert_int_equal(json_count(json_get(root, "lines")), 3);
    total = json_at(json_get(root, "totals"), 0);
    assert_str(json_str(json_get(total, "tenant")), "team-a");
    assert_str(json_str(json_get(total, "gpuHoursExact")), "72");
    assert_str(json_str(json_get(total, "cost")), "180.00");

    /* Again, with another key, or with none: the same bytes. */
    assert_true(str_eq(issue(s, o), text));
    assert_int_equal(statement_key_new(s->w.a, &o.private_pem, &s->w.err), 0);
    assert_true(str_eq(issue(s, o), text));
    o.private_pem = STR("");
    assert_true(str_eq(issue(s, o), text));
}

static void says_why_a_period_has_none(void **state)
{
    struct state *s = *state;
    struct statement_request o = request(s, BEGIN, BEGIN + DAY);

    observe_until(s, BEGIN + DAY - SECOND);
    refused(s, o,
            "was not observed to its end at 2026-09-22T14:13:20Z: the host was last "
            "observed at 2026-09-22T14:13:19Z");
    observe_until(s, BEGIN + 3 * DAY);
    o.now_us = BEGIN + DAY - 1;
    refused(s, o, "the period is not over: it ends at 2026-09-22T14:13:20Z");
    o.now_us = BEGIN + 2 * DAY; /* the clock of the observer was ahead, once */
    refused(s, o, "which is in the future: a clock was wrong");
    refused(s, request(s, BEGIN - DAY, BEGIN), "the ledger begins later");
    refused(s, request(s, BEGIN, BEGIN), "the period is empty");
    o = request(s, BEGIN, BEGIN + DAY);
    o.private_pem = STR("");
    refused(s, o, "no key to sign one");
    o.private_pem = s->public_pem;
    refused(s, o, "no private Ed25519 key");
    issue(s, request(s, BEGIN, BEGIN + DAY));
    refused(s, request(s, BEGIN + 2 * DAY, BEGIN + 3 * DAY), "statement 1 ends at");
    refused(s, request(s, BEGIN, BEGIN + 2 * DAY), "statement 1 ends at");
    refused(s, request(s, BEGIN + DAY - HOUR, BEGIN + 2 * DAY), "statement 1 ends at");
}

static void a_chain_shows_what_is_missing(void **state)
{
    static const char *const names[] = {"a.json", "b.json", "c.json"};
    struct state *s = *state;
    struct statement all[3], other;
    struct err err;

    err_init(&err, s->w.a);
    observe_until(s, BEGIN + 4 * DAY);
    for (int i = 0; i < 3; i++)
        all[i] =
            verified(s, issue(s, request(s, BEGIN + i * DAY, BEGIN + (i + 1) * DAY)), names[i]);
    assert_ok(statement_follows(&all[0], &all[1], &err));
    assert_ok(statement_follows(&all[1], &all[2], &err));
    assert_int_equal(statement_follows(&all[0], &all[2], &err), -1);
    assert_str(err.message, "number 2 is missing between a.json and c.json");
    assert_int_equal(statement_follows(&all[1], &all[0], &err), -1);
    assert_str(err.message, "a.json is number 1 and stands behind number 2, b.json: out of order");
    other = all[1];
    other.sha256 = all[0].sha256;
    assert_int_equal(statement_follows(&other, &all[2], &err), -1);
    assert_true(str_contains(err.message, STR("c.json does not follow b.json")));
    other = all[1];
    other.tenant = STR("team-a");
    assert_int_equal(statement_follows(&all[0], &other, &err), -1);
    assert_true(str_contains(err.message, STR("of another ledger or tenant")));
}

static void any_changed_byte_is_found(void **state)
{
    struct state *s = *state;
    struct str text, other_private, other_public;
    char *copy;

    observe_until(s, BEGIN + DAY);
    text = issue(s, request(s, BEGIN, BEGIN + DAY));
    copy = arena_cstr(s->w.a, text);
    for (size_t i = 0; i < text.n; i++) {
        struct statement unused;

        copy[i] ^= 1;
        if (!statement_verify(s->w.a, (struct str){copy, text.n}, s->public_pem, &unused, NULL))
            fail_msg("byte %zu changed, and it verifies", i);
        copy[i] ^= 1;
    }
    for (size_t n = 0; n < text.n; n += 7)
        not_verified(s, str_sub(text, 0, n), s->public_pem, "does not end in a signature");
    copy[text.n / 2] ^= 1;
    not_verified(s, (struct str){copy, text.n}, s->public_pem, "a byte was changed");
    assert_int_equal(statement_key_new(s->w.a, &other_private, &s->w.err), 0);
    assert_int_equal(statement_key_public(s->w.a, other_private, &other_public, &s->w.err), 0);
    not_verified(s, text, other_public, "it is signed with key ");
    not_verified(s, text, STR("-----BEGIN"), "no public Ed25519 keys");
    /* One of several. */
    s->public_pem = arena_printf(s->w.a, "%.*s%.*s", STR_F(other_public), STR_F(s->public_pem));
    verified(s, text, "a");
}

struct change {
    const char *from, *to, *why;
};

static void changes_are_found(struct state *s, struct str text, const struct change *cases,
                              size_t n)
{
    struct arena *a = s->w.a;
    struct str key;
    struct statement unused;
    struct err err;

    err_init(&err, a);
    assert_ok(statement_read(a, text, &unused, &key, &err));
    for (size_t i = 0; i < n; i++) {
        const char *p = strstr(arena_cstr(a, text), cases[i].from);

        if (!p)
            fail_msg("%s is not in:\n%.*s", cases[i].from, STR_F(text));
        struct str rest = str_from(text, text.n - strlen(p));
        struct str changed =
            arena_printf(a, "%.*s%s%.*s", STR_F(str_sub(text, 0, text.n - rest.n)), cases[i].to,
                         STR_F(str_from(rest, strlen(cases[i].from))));
        assert_int_equal(statement_read(a, changed, &unused, &key, &err), -1);
        if (!str_contains(err.message, str_c(cases[i].why)))
            fail_msg("got \"%.*s\", want \"%s\"", STR_F(err.message), cases[i].why);
    }
}

/* What an issuer signs must add up as well. */
static void signed_sums_are_checked(void **state)
{
    static const struct change cases[] = {
        {"\"gpuHoursExact\": \"72\"", "\"gpuHoursExact\": \"71\"", "gpuHours is not gpuHoursExact"},
        {"\"gpuHoursExact\": \"72\"", "\"gpuHoursExact\": \"144/2\"", "no fraction in lowest"},
        {"\"costExact\": \"180\"", "\"costExact\": \"180.0\"", "no fraction in lowest terms"},
        {"\"cost\": \"180.000000000\"", "\"cost\": \"180.000000001\"", "cost is not costExact"},
        {"\"cost\": \"180.00\"", "\"cost\": \"180.01\"", "totals are not the sums"},
        {"\"priceExact\": \"5/2\"", "\"priceExact\": \"7/2\"", "not GPU hours times a price"},
        {"\"held\": \"72\"", "\"held\": \"73\"", "the lines are not what is held of pool"},
        {"\"capacity\": \"192\"", "\"capacity\": \"193\"", "are not the capacity of pool"},
        {"\"kind\": \"idle\"", "\"kind\": \"spare\"", "unknown kind of line"},
        {"\"month\": \"2026-09\",\n      \"capacity\"",
         "\"month\": \"2026-10\",\n      \"capacity\"", "the lines are not what is"},
        {"\"number\": 1", "\"number\": 0", "it has no number"},
        {"\"number\": 1", "\"number\": 2", "number 1, and no other"},
        {"gpu-statement/v1", "gpu-statement/v2", "its format is not known"},
        {"\"ledger\"", "\"number\": 1,\n  \"ledger\"", "a key stands twice"},
    };
    struct state *s = *state;

    observe_until(s, BEGIN + DAY);
    changes_are_found(s, issue(s, request(s, BEGIN, BEGIN + DAY)), cases, COUNT(cases));
}

/* 3 GPUs, 2 of them guaranteed, at 2.50 and 4/5 of it; another tenant's guarantee is not used. */
static void what_is_borrowed_is_checked(void **state)
{
    static const struct change cases[] = {
        {"\"guaranteedExact\": \"48\"", "\"guaranteedExact\": \"47\"", "guaranteed is not"},
        {"\"guaranteed\": \"48.000000000\",\n      \"guaranteedExact\": \"48\"",
         "\"guaranteed\": \"47.000000000\",\n      \"guaranteedExact\": \"47\"",
         "are not the hours of a line"},
        {"\"borrowFactorExact\": \"4/5\"", "\"borrowFactorExact\": \"1\"", "times a price"},
        {"\"borrowed\": \"24\"", "\"borrowed\": \"25\"", "not what is borrowed of pool"},
    };
    struct state *s = *state;
    struct world *w = &s->w;
    struct fleet_price price = {.pool = STR("a100"),
                                .currency = STR("USD"),
                                .from_us = BEGIN,
                                .price = {5, 2},
                                .borrow = {4, 5}};
    struct fleet_guarantee g = {.tenant = STR("team-a"),
                                .pool = STR("a100"),
                                .from_us = BEGIN,
                                .bound = true,
                                .guarantee = {2, 1},
                                .granted = {4, 1}};
    struct statement_request o = request(s, BEGIN, BEGIN + DAY);
    cJSON *line;
    struct str text;

    assert_int_equal(ledger_add_price(w->ledger, &price, &w->err), 0);
    assert_int_equal(ledger_add_guarantee(w->ledger, &g, &w->err), 0);
    g.tenant = STR("team-b");
    assert_int_equal(ledger_add_guarantee(w->ledger, &g, &w->err), 0);
    observe_until(s, BEGIN + DAY);
    text = issue(s, o);
    verified(s, text, "a");
    line = json_at(json_get(world_parse(w, text), "lines"), 0);
    assert_str(json_str(json_get(line, "gpuHoursExact")), "72");
    assert_str(json_str(json_get(line, "costExact")), "168");
    changes_are_found(s, text, cases, COUNT(cases));
    o.tenant = STR("team-b");
    text = issue(s, o);
    verified(s, text, "b");
    line = json_at(json_get(world_parse(w, text), "lines"), 0);
    assert_str(json_str(json_get(line, "reservedUnusedExact")), "48");
    assert_str(json_str(json_get(line, "gpuHoursExact")), "0");
}

/* The ledger as format 1 had it. */
static void downgrade(struct world *w)
{
    static const char sql[] =
        "DROP TABLE guarantee; DROP TABLE activity; ALTER TABLE hold DROP COLUMN mode;"
        "ALTER TABLE price DROP COLUMN borrow_num; ALTER TABLE price DROP COLUMN borrow_den;"
        "UPDATE meta SET value = 1 WHERE key = 'format';";
    sqlite3 *db;

    assert_int_equal(sqlite3_open(arena_printf(w->a, "%s/ledger.db", w->directory).p, &db),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

static void a_chain_goes_on_when_guarantees_begin(void **state)
{
    static const struct change unknown[] = {
        {"gpu-statement/v1", "gpu-statement/v2",
         "not known to this version, which reads sublet.dev/gpu-statement/v1: "
         "\"sublet.dev/gpu-statement/v2\""}};
    struct state *s = *state;
    struct world *w = &s->w;
    struct fleet_guarantee g = {.tenant = STR("team-a"),
                                .pool = STR("a100"),
                                .from_us = BEGIN + DAY,
                                .bound = true,
                                .guarantee = {2, 1},
                                .granted = {4, 1}};
    struct str text[2];
    struct statement before, after;
    struct err err;

    err_init(&err, w->a);
    observe_until(s, BEGIN + DAY);
    world_kill(w);
    downgrade(w);
    text[0] = issue(s, request(s, BEGIN, BEGIN + DAY));
    world_start(w, BEGIN + DAY); /* brings it up to date */
    assert_int_equal(ledger_add_guarantee(w->ledger, &g, &w->err), 0);
    observe_until(s, BEGIN + 2 * DAY);
    text[1] = issue(s, request(s, BEGIN + DAY, BEGIN + 2 * DAY));
    before = verified(s, text[0], "before");
    after = verified(s, text[1], "after");
    assert_ok(statement_follows(&before, &after, &err));
    assert_int_equal(statement_follows(&after, &before, &err), -1);
    assert_false(str_contains(text[0], STR("borrowedExact")));
    assert_true(str_contains(text[1], STR("\"borrowedExact\": \"24\"")));
    assert_true(str_eq(issue(s, request(s, BEGIN, BEGIN + DAY)), text[0]));
    changes_are_found(s, text[1], unknown, COUNT(unknown));
}

static void a_tenant_sees_its_own_lines(void **state)
{
    struct state *s = *state;
    struct statement_request o = request(s, BEGIN, BEGIN + DAY);
    struct statement of_tenant;
    struct str text;

    observe_until(s, BEGIN + DAY);
    issue(s, o);
    o.tenant = STR("team-b");
    refused(s, o, "tenant \"team-b\" held no GPUs in the period");
    o.tenant = STR("team-a");
    text = issue(s, o);
    of_tenant = verified(s, text, "a");
    assert_int_equal(of_tenant.number, 1);
    assert_str(of_tenant.tenant, "team-a");
    assert_false(str_contains(text, STR("idle")));
    assert_false(str_contains(text, STR("capacity")));
}

static void what_is_learnt_later_changes_nothing(void **state)
{
    struct state *s = *state;
    struct world *w = &s->w;
    struct statement_request o = request(s, BEGIN, BEGIN + DAY);
    struct str text, again;
    struct err err;
    bool differs;

    err_init(&err, w->a);
    observe_until(s, BEGIN + DAY);
    text = issue(s, o);
    assert_ok(observer_pod(w->observer, world_pod(w, "u1", "n1", 3, BEGIN, BEGIN + HOUR),
                           BEGIN + DAY + HOUR, &err));
    observe_until(s, BEGIN + DAY + 2 * HOUR);
    assert_ok(statement_issue(w->a, &o, &again, &differs, &err));
    assert_true(differs);
    assert_true(str_eq(text, again));
}

static void prices_of_the_period_are_named(void **state)
{
    struct state *s = *state;
    struct world *w = &s->w;
    cJSON *root;

    for (int i = 1; i <= 4; i++) {
        struct fleet_price price = {.pool = STR("a100"),
                                    .currency = STR("USD"),
                                    .from_us = BEGIN + i * DAY,
                                    .price = {i, 1}};

        assert_int_equal(ledger_add_price(w->ledger, &price, &w->err), 0);
    }
    observe_until(s, BEGIN + 5 * DAY);
    root = world_parse(w, issue(s, request(s, BEGIN + 2 * DAY + HOUR, BEGIN + 3 * DAY + HOUR)));
    assert_int_equal(json_count(json_get(root, "prices")), 2);
    assert_str(json_str(json_get(json_at(json_get(root, "prices"), 0), "priceExact")), "2");
    assert_str(json_str(json_get(json_at(json_get(root, "prices"), 1), "priceExact")), "3");
}

static void the_table_is_append_only(void **state)
{
    struct state *s = *state;
    sqlite3 *db;

    observe_until(s, BEGIN + DAY);
    issue(s, request(s, BEGIN, BEGIN + DAY));
    assert_int_equal(sqlite3_open(arena_printf(s->w.a, "%s/ledger.db", s->w.directory).p, &db),
                     SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM statement", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    assert_int_equal(sqlite3_exec(db, "UPDATE statement SET text = ''", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    sqlite3_close(db);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(issues_a_closed_period_once),
        TEST(says_why_a_period_has_none),
        TEST(a_chain_shows_what_is_missing),
        TEST(any_changed_byte_is_found),
        TEST(signed_sums_are_checked),
        TEST(what_is_borrowed_is_checked),
        TEST(a_chain_goes_on_when_guarantees_begin),
        TEST(a_tenant_sees_its_own_lines),
        TEST(what_is_learnt_later_changes_nothing),
        TEST(prices_of_the_period_are_named),
        TEST(the_table_is_append_only),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
