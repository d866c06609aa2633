/* SPDX-License-Identifier: Apache-2.0
 * Damaged rows: whatever is wrong with one, its object is right, or in quarantine, or deleted, and
 * everything else is served. */
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_quarantine.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Revisions: x 2 and 3, y 4, gone 5 to 6. */
static void fill(struct fixture *f)
{
    fixture_open(f);
    put(f, "a", "x", 1);
    put(f, "a", "x", 2);
    put(f, "a", "y", 3);
    put(f, "a", "gone", 4);
    delete (f, "a", "gone");
    store_record_put(f->store, RECORD_MAPPING, STR("k"), STR("v"));
    store_record_put(f->store, RECORD_MAPPING, STR("l"), STR("w"));
    assert_true(fixture_sync(f));
    fixture_close(f);
}

enum state { RIGHT, HIDDEN };

struct row {
    const char *sql;
    enum state x, y, record;
    bool blind;          /* absence proves nothing */
    size_t records_left; /* that are reported once it is written again */
};

static const struct row ROWS[] = {
    {"UPDATE version SET bytes = '{\"v\":9,\"rv\":3}' WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET name = 'z' WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET type = 7 WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET type = 2 WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET resource = 9 WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET uid = 7 WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET at = 'x' WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET revision = -3 WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET revision = 900 WHERE revision = 3", .x = HIDDEN},
    {"UPDATE version SET sum = 1 WHERE revision = 3", .x = HIDDEN},
    {"DELETE FROM version WHERE revision = 3", .x = HIDDEN},
    {"DELETE FROM version WHERE revision IN (2, 3)", .x = HIDDEN},
    {"DELETE FROM version WHERE revision = 4", .y = HIDDEN},
    {"DELETE FROM version WHERE revision = 2"},
    {"DELETE FROM version WHERE revision = 6"},
    {"UPDATE version SET ns = '' WHERE revision = 6"},
    {"DELETE FROM version", .x = HIDDEN, .y = HIDDEN},
    {"UPDATE trail SET key = 5 WHERE revision = 3"},
    {"UPDATE trail SET revision = 77 WHERE revision = 3"},
    {"DELETE FROM trail WHERE revision > 2"},
    {"UPDATE resource SET name = 'podz'", .x = HIDDEN, .y = HIDDEN},
    {"UPDATE resource SET id = 3", .x = HIDDEN, .y = HIDDEN},
    {"DELETE FROM resource", .x = HIDDEN, .y = HIDDEN},
    {"UPDATE record SET value = 'x' WHERE key = CAST('k' AS BLOB)", .record = HIDDEN},
    {"UPDATE record SET kind = 77 WHERE key = CAST('k' AS BLOB)", .record = HIDDEN,
     .records_left = 1},
    {"DELETE FROM record WHERE key = CAST('k' AS BLOB)", .record = HIDDEN, .records_left = 1},
    {"UPDATE meta SET value = 1000 WHERE key = 'floor'"},
    {"DELETE FROM meta WHERE key = 'floor'"},
    {"UPDATE meta SET value = 'x' WHERE key = 'revision'"},
    {"DELETE FROM meta"},
    {"DELETE FROM trail WHERE revision = 4; UPDATE version SET name = 'q' WHERE revision = 4",
     .y = HIDDEN, .blind = true},
};

static void damage(struct fixture *f, const char *sql)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_total_changes(db) > 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void expect(struct fixture *f, const struct row *row, const char *name, enum state state,
                   int value)
{
    if (committed(f, "a", name) != (state == RIGHT ? value : -1))
        fail_msg("%s: %s is %d", row->sql, name, committed(f, "a", name));
    assert_false(store_is_absent(f->store, f->pods, STR("a"), str_c(name)));
    if (state == RIGHT || row->blind)
        return;
    if (!store_quarantined(f->store, f->pods, STR("a"), str_c(name)))
        fail_msg("%s: %s is not in quarantine", row->sql, name);
    assert_int_equal(try_write(f, STORE_CREATE, "a", name, 1, 0), -1);
    assert_ptr_equal(f->err.kind, &ERR_ALREADY_EXISTS);
}

static void expect_row(struct fixture *f, const struct row *row)
{
    struct store_damage d;
    struct str value;

    expect(f, row, "x", row->x, 2);
    expect(f, row, "y", row->y, 3);
    assert_int_equal(committed(f, "a", "gone"), -1);
    assert_int_equal(store_is_absent(f->store, f->pods, STR("a"), STR("gone")), !row->blind);
    assert_int_equal(store_is_damaged(f->store), row->blind);
    assert_int_equal(store_is_whole(f->store, f->pods, STR("a")),
                     !row->blind && !row->x && !row->y);
    assert_int_equal(store_is_whole(f->store, f->pods, STR_NULL),
                     !row->blind && !row->x && !row->y);
    assert_int_equal(store_is_whole(f->store, f->pods, STR("b")), !row->blind);
    store_damage(f->store, &d);
    assert_int_equal(d.objects + d.nameless, row->blind ? 0 : (row->x ? 1 : 0) + (row->y ? 1 : 0));
    assert_int_equal(store_record_get(f->store, RECORD_MAPPING, STR("k"), &value),
                     row->record == RIGHT);
    assert_int_equal(store_record_damaged(f->store, RECORD_MAPPING, STR("k")),
                     row->record == HIDDEN);
    assert_false(store_record_damaged(f->store, RECORD_MAPPING, STR("l")));
    assert_true(store_revision(f->store) >= 6);
}

/* A delete that names the revision ends it, as it does for what cannot be read. */
static void end(struct fixture *f, const char *name, enum state state)
{
    if (state == RIGHT)
        return;
    const struct store_object *o = store_quarantined(f->store, f->pods, STR("a"), str_c(name));
    assert_true(try_write(f, STORE_DELETE, "a", name, 1, o->revision) > 0);
    assert_true(fixture_sync(f));
    assert_true(store_is_absent(f->store, f->pods, STR("a"), str_c(name)));
    assert_true(put(f, "a", name, 50) > 0);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const struct row *row = &ROWS[i];
        struct fixture f;

        fixture_init(&f);
        fill(&f);
        damage(&f, row->sql);
        fixture_open(&f);
        expect_row(&f, row);
        int64_t revision = store_revision(f.store);
        fixture_reopen(&f); /* what is known of it stays known */
        expect_row(&f, row);
        assert_true(store_revision(f.store) >= revision);
        if (!row->blind) {
            end(&f, "x", row->x);
            end(&f, "y", row->y);
            store_record_put(f.store, RECORD_MAPPING, STR("k"), STR("new"));
            assert_true(put(&f, "b", "new", 1) > revision);
            assert_true(fixture_sync(&f));
            fixture_reopen(&f);
            assert_int_equal(committed(&f, "b", "new"), 1);
            assert_int_equal(committed(&f, "a", "x"), row->x ? 50 : 2);
            assert_int_equal(committed(&f, "a", "y"), row->y ? 50 : 3);
            assert_int_equal(committed(&f, "a", "gone"), -1);
            /* A row that was written over is counted once; which one is missing is unknown. */
            struct store_damage d;
            store_damage(f.store, &d);
            assert_int_equal(d.records, row->records_left);
        }
        fixture_fini(&f);
    }
}

#define PAD_KEYS 600

static void fill_pages(struct fixture *f)
{
    char name[16];

    fixture_open(f);
    for (int i = 0; i < PAD_KEYS; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_close(f);
}

static void spoil(struct fixture *f, int page)
{
    static const char noise[4096] = {1, 2, 3};
    char path[128];

    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, (page - 1) * 4096, SEEK_SET);
    assert_int_equal(fwrite(noise, 1, sizeof(noise), file), sizeof(noise));
    fclose(file);
}

/* One page after another is lost: all other rows are served, from a file that is whole again. */
static void test_pages(void **state)
{
    int refused = 0, salvaged = 0, hidden = 0;

    (void)state;
    for (int page = 1, pages = 2; page <= pages; page++) {
        struct fixture f;
        fixture_init(&f);
        fill_pages(&f);
        pages = (int)(file_size(&f, "state.db") / 4096);
        spoil(&f, page);
        if (store_open(&f.loop, &f.options, &f.store, &f.err)) {
            f.store = NULL;
            refused++;
            fixture_fini(&f);
            continue;
        }
        f.pods = store_resource(f.store, STR("pods"));
        int lost = count_hidden(&f, PAD_KEYS);
        struct store_damage d;
        store_damage(f.store, &d);
        assert_true(d.salvaged);
        assert_true(file_size(&f, "state.db.damaged") > 0);
        salvaged++;
        hidden += lost;
        put(&f, "a", "new", 1);
        assert_true(fixture_sync(&f));
        fixture_reopen(&f);
        assert_int_equal(count_hidden(&f, PAD_KEYS), lost);
        assert_int_equal(committed(&f, "a", "new"), 1);
        fixture_close(&f);
        assert_int_equal(query(&f, "SELECT count(*) FROM pragma_integrity_check"
                                   " WHERE integrity_check = 'ok'"),
                         1);
        fixture_fini(&f);
    }
    print_message("%d refused, %d salvaged, %d of %d objects hidden by each\n", refused, salvaged,
                  hidden / salvaged, PAD_KEYS);
    assert_true(salvaged > 20 && refused <= 2);
}

/* Each damaged file stays, whatever was kept before it: rows of it may be had by other means. */
static void test_every_damaged_file_stays(void **state)
{
    static const char *const names[] = {"state.db.damaged", "state.db.damaged.2",
                                        "state.db.damaged.3"};
    static const char *const objects[] = {"first", "second", "third"};
    struct fixture f;

    (void)state;
    fixture_init(&f);
    fill_pages(&f);
    for (size_t i = 0; i < COUNT(names); i++) {
        spoil(&f, (int)(file_size(&f, "state.db") / 4096));
        assert_int_equal(file_size(&f, names[i]), -1);
        fixture_open(&f);
        assert_true(file_size(&f, names[i]) > 0);
        put(&f, "a", objects[i], 1);
        assert_true(fixture_sync(&f));
        fixture_close(&f);
    }
    fixture_fini(&f);
}

static void damage_row(struct fixture *f, int64_t revision)
{
    char sql[96];

    snprintf(sql, sizeof(sql), "UPDATE version SET sum = 1 WHERE revision = %lld",
             (long long)revision);
    damage(f, sql);
    for (int i = 0; i < 2; i++) { /* what is known of it already makes no other copy */
        fixture_open(f);
        put(f, "b", "after", 1);
        assert_true(fixture_sync(f));
        fixture_close(f);
    }
}

/* A row that is removed is in a copy, also where there is one of an earlier damage. */
static void test_removed_rows_are_kept(void **state)
{
    struct fixture *f = *state;
    int64_t newest;

    fill(f);
    damage_row(f, 3); /* of x, whose row before it goes */
    assert_true(file_size(f, "state.db.damaged") > 0);
    assert_int_equal(file_size(f, "state.db.damaged.2"), -1);
    damage_row(f, 4); /* of y: it stays where it is */
    assert_int_equal(file_size(f, "state.db.damaged.2"), -1);

    fixture_open(f);
    put(f, "a", "z", 1);
    newest = put(f, "a", "z", 2);
    assert_true(fixture_sync(f));
    fixture_close(f);
    damage_row(f, newest);
    assert_true(file_size(f, "state.db.damaged.2") > 0);
    assert_int_equal(file_size(f, "state.db.damaged.3"), -1);
}

static bool copies_are_full(struct fixture *f)
{
    struct store_damage d;

    fixture_open(f);
    store_damage(f->store, &d);
    fixture_close(f);
    return d.copies_full;
}

static void put_copy(struct fixture *f, const char *name)
{
    FILE *file = fopen(path_in(f, name), "w");

    assert_non_null(file);
    assert_int_equal(fputs(name, file) < 0 || fclose(file), 0);
}

/* The first eight stay and the newest does, and it is said before one is replaced. */
static void test_the_ninth_copy_is_replaced(void **state)
{
    struct fixture *f = *state;
    char name[32] = "state.db.damaged";

    fill(f);
    for (int i = 1; i < 9; i++) {
        if (i > 1)
            snprintf(name, sizeof(name), "state.db.damaged.%d", i);
        put_copy(f, name);
    }
    assert_false(copies_are_full(f));
    put_copy(f, "state.db.damaged.9");
    assert_true(copies_are_full(f));
    damage_row(f, 3); /* of x, whose row before it goes */
    assert_true(file_size(f, "state.db.damaged.9") > 4096);
    assert_int_equal(file_size(f, "state.db.damaged.8"), strlen("state.db.damaged.8"));
    assert_int_equal(file_size(f, "state.db.damaged"), strlen("state.db.damaged"));
    assert_int_equal(file_size(f, "state.db.damaged.10"), -1);
    assert_int_equal(unlink(path_in(f, "state.db.damaged.9")), 0);
    assert_false(copies_are_full(f));
    put_copy(f, "state.db-wal.damaged.9");
    assert_true(copies_are_full(f));
}

static void on_rebuilt(void *ctx, const struct err *err)
{
    int *rebuilt = ctx;

    assert_null(err);
    ++*rebuilt;
}

/* Deletes and writes every second key until a write meets the damage; then all go through. */
static bool write_all(struct fixture *f, int *rebuilt)
{
    char name[16];
    bool failed = false;

    for (int i = 0; i < PAD_KEYS; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        if (i % 2)
            put(f, "a", name, i);
        else if (store_latest(f->store, f->pods, STR("a"), str_c(name)))
            delete (f, "a", name);
        if (fixture_sync(f))
            continue;
        assert_false(failed);
        failed = true;
        fixture_settle(f);
        assert_int_equal(*rebuilt, 1);
        i--;
    }
    return failed;
}

static void check_written(struct fixture *f)
{
    char name[16];

    for (int i = 0; i < PAD_KEYS; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        assert_int_equal(committed(f, "a", name), i % 2 ? i : -1);
        assert_int_equal(store_is_absent(f->store, f->pods, STR("a"), str_c(name)), !(i % 2));
    }
}

/* A page, or the file from there on, is lost while the store serves. Once a write meets it the file
 * is made again of what is in memory: no object is lost, none that was deleted comes back, records
 * are there. False: no write met it. */
static bool rebuild_without(void (*lose)(struct fixture *f, int page), int page, int *ret_pages)
{
    struct fixture f;
    int rebuilt = 0;
    struct str value;

    fixture_init(&f);
    fixture_in_memory(&f);
    fill_pages(&f);
    fixture_open(&f);
    store_on_rebuilt(f.store, on_rebuilt, &rebuilt);
    store_record_put(f.store, RECORD_MAPPING, STR("key"), STR("value"));
    assert_true(fixture_sync(&f));
    struct store_watch *w = open_watch(&f, f.pods, store_revision(f.store), NULL);
    fixture_quiet(&f); /* no page of the file is in memory */
    *ret_pages = (int)(file_size(&f, "state.db") / 4096);
    lose(&f, page);
    if (!write_all(&f, &rebuilt)) {
        store_watch_close(w);
        fixture_fini(&f);
        return false;
    }
    bool expired = false;
    while (next_event(&f, w, &expired))
        ;
    store_watch_close(w);
    struct store_damage d;
    store_damage(f.store, &d);
    assert_true(d.salvaged && d.history && !d.objects && !d.nameless && !d.unattributed);
    assert_true(file_size(&f, "state.db.damaged") > 0);
    for (int i = 0; i < 2; i++) {
        check_written(&f);
        assert_true(store_record_get(f.store, RECORD_MAPPING, STR("key"), &value));
        assert_true(str_eqc(value, "value"));
        fixture_reopen(&f);
    }
    store_damage(f.store, &d);
    assert_true(d.salvaged);
    fixture_next_day(&f);
    fixture_reopen(&f);
    store_damage(f.store, &d);
    assert_false(d.salvaged || d.own_account || d.records || d.objects || d.unattributed);
    fixture_close(&f);
    assert_int_equal(query(&f, "SELECT count(*) FROM pragma_integrity_check"
                               " WHERE integrity_check = 'ok'"),
                     1);
    fixture_fini(&f);
    return true;
}

static void test_rebuild(void **state)
{
    int rebuilds = 0;

    (void)state;
    for (int page = 1, pages = 2; page <= pages; page++)
        rebuilds += rebuild_without(spoil, page, &pages);
    print_message("%d files rebuilt while they served\n", rebuilds);
    assert_true(rebuilds >= 3);
}

/* The file ends before this page. */
static void cut(struct fixture *f, int page)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    assert_int_equal(truncate(path, (page - 1) * (off_t)4096), 0);
}

static void test_rebuild_without_the_tail(void **state)
{
    int rebuilds = 0;

    (void)state;
    for (int page = 2, pages = 3; page <= pages; page += 3)
        rebuilds += rebuild_without(cut, page, &pages);
    print_message("%d files without a tail rebuilt while they served\n", rebuilds);
    assert_true(rebuilds >= 3);
}

/* Once more, with what a kill leaves: a log that has the newest answered write. */
static void crash(struct fixture *f, struct fixture *ret)
{
    fixture_init(ret);
    fill_pages(f);
    fixture_open(f);
    put(f, "a", "logged", 7);
    assert_true(fixture_sync(f));
    copy_store(f->dir, ret->dir);
    fixture_close(f);
    assert_true(file_size(ret, "state.db-wal") > 0);
}

/* A file that is shorter than it says of itself, with a log and without: what is there is served,
 * what is not is hidden and reported, and the file is whole again. */
static void test_lost_tail(void **state)
{
    int hidden = 0, cuts = 0;

    (void)state;
    for (int i = 0, pages = 3; i < 2 * (pages - 1); i++) {
        int page = 2 + i / 2;
        struct fixture f, crashed, *g = &f;
        struct store_damage d;

        fixture_init(&f);
        if (i % 2) {
            crash(&f, &crashed);
            g = &crashed;
        } else {
            fill_pages(&f);
        }
        pages = (int)(file_size(g, "state.db") / 4096);
        cut(g, page);
        fixture_open(g);
        int lost = count_hidden(g, PAD_KEYS);
        hidden += lost;
        cuts++;
        if (i % 2)
            assert_true(committed(g, "a", "logged") == 7 || lost);
        store_damage(g->store, &d);
        /* The log may have all that was lost. */
        assert_true(d.salvaged || (i % 2 && !lost));
        assert_int_equal(file_size(g, "state.db.damaged") > 0, d.salvaged);
        put(g, "a", "new", 1);
        assert_true(fixture_sync(g));
        fixture_reopen(g);
        assert_int_equal(count_hidden(g, PAD_KEYS), lost);
        assert_int_equal(committed(g, "a", "new"), 1);
        fixture_next_day(g);
        fixture_reopen(g);
        store_damage(g->store, &d);
        assert_false(d.salvaged);
        fixture_close(g);
        assert_int_equal(query(g, "SELECT count(*) FROM pragma_integrity_check"
                                  " WHERE integrity_check = 'ok'"),
                         1);
        if (g == &crashed)
            fixture_fini(&crashed);
        fixture_fini(&f);
    }
    print_message("%d files cut, %d of %d objects hidden by each\n", cuts, hidden / cuts, PAD_KEYS);
    assert_true(cuts > 40 && hidden);
}

/* A version and its trail at once: then nothing proves that an object was deleted, for good. */
static void test_both_accounts(void **state)
{
    struct fixture *f = *state;

    fill_pages(f);
    for (int page = 8; page < 28; page++)
        spoil(f, page);
    fixture_open(f);
    assert_true(count_hidden(f, PAD_KEYS) > 0);
    assert_true(store_is_damaged(f->store));
    put(f, "a", "new", 1);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_true(store_is_damaged(f->store));
    count_hidden(f, PAD_KEYS);
}

/* A lost log that cannot be looked at is not one that is absent. */
static void test_lost_log_that_cannot_be_looked_at(void **state)
{
    struct fixture *f = *state;
    char path[128];

    fill(f);
    snprintf(path, sizeof(path), "%s/state.db-wal.lost", f->dir);
    assert_int_equal(symlink("state.db-wal.lost", path), 0);
    assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
    f->store = NULL;
    assert_true(str_contains(f->err.message, STR("state.db-wal.lost")));
    assert_int_equal(unlink(path), 0);
    err_clear(&f->err);
    fixture_open(f);
    assert_int_equal(committed(f, "a", "x"), 2);
}

/* ---- memory ---- */

#define LARGE  20000
#define PIECES 12

static sqlite3_mem_methods memory;       /* SQLite's own */
static atomic_int large;                 /* pieces that were asked for */
static atomic_int missing[2] = {-1, -1}; /* not to be had */

static void *limited_malloc(int n)
{
    if (n < LARGE || n > 2 * LARGE)
        return memory.xMalloc(n);
    int piece = atomic_fetch_add(&large, 1);
    return piece == missing[0] || piece == missing[1] ? NULL : memory.xMalloc(n);
}

/* Before SQLite is used. */
static void limit_memory(void)
{
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
    sqlite3_mem_methods limited = memory;
    limited.xMalloc = limited_malloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &limited), SQLITE_OK);
}

static void make_large(struct fixture *f)
{
    static char text[LARGE];
    struct store_write w = {.op = STORE_CREATE, .ns = STR("a"), .name = STR("large")};

    fill_pages(f);
    fixture_open(f);
    memset(text, 'x', sizeof(text));
    w.resource = f->pods;
    w.uid = STR("u-1");
    w.bytes = (struct str){text, sizeof(text)};
    assert_int_equal(store_write(f->store, &w, &f->err), 0);
    assert_true(fixture_sync(f));
    fixture_close(f);
    spoil(f, 9);
}

/* False: the start was refused. */
static bool open_without(int first, int second)
{
    struct fixture f;

    fixture_init(&f);
    fixture_in_memory(&f);
    make_large(&f);
    large = 0;
    missing[0] = first;
    missing[1] = second;
    bool opened = !store_open(&f.loop, &f.options, &f.store, &f.err);
    if (!opened)
        f.store = NULL;
    fixture_close(&f);
    missing[0] = missing[1] = -1;
    err_clear(&f.err);
    fixture_open(&f);
    if (!store_get(f.store, f.pods, STR("a"), STR("large")))
        fail_msg("without pieces %d and %d: the row was left out", first, second);
    fixture_fini(&f);
    return opened;
}

/* Memory for a large row is not to be had while a file is made again, on either way that it is
 * reached: then the file is made again by the next start, and the row is not left out. */
static void test_salvage_without_memory(void **state)
{
    int refused = 0;

    (void)state;
    assert_true(open_without(-1, -1));
    for (int first = 0; first < PIECES; first++) {
        for (int second = first + 1; second < PIECES; second++)
            refused += !open_without(first, second);
    }
    print_message("%d starts without memory refused\n", refused);
    assert_true(refused > PIECES);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {TEST(rows),
                                       TEST(pages),
                                       TEST(every_damaged_file_stays),
                                       TEST(removed_rows_are_kept),
                                       TEST(the_ninth_copy_is_replaced),
                                       TEST(rebuild),
                                       TEST(both_accounts),
                                       TEST(lost_log_that_cannot_be_looked_at),
                                       TEST(lost_tail),
                                       TEST(rebuild_without_the_tail),
                                       TEST(salvage_without_memory)};

    limit_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
