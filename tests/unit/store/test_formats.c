/* SPDX-License-Identifier: Apache-2.0
 * Every released format of the file can be opened, and nothing in it is lost on the way to the
 * present one. The fixtures are what the program of their time wrote; `test_store_formats make DIR`
 * makes the content below with the present one (see fixtures/README.md). */
#include "fault_vfs.h"
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef FIXTURES
#error "the folder of the fixtures is not given"
#endif

#define FORMATS 2

static int64_t fixture_wall(void)
{
    return INT64_C(1790000000) * 1000000;
}

static int setup(void **state)
{
    static struct fixture f;

    fault_install();
    fixture_init(&f);
    fixture_in_memory(&f);
    f.options.history_seconds = -1; /* the events of the fixture are of any age */
    f.options.wall_us = fixture_wall;
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    return 0;
}

/* ---- the content ---- */

static void write_content(struct fixture *f)
{
    unsigned custom = store_resource(f->store, STR("widgets.example.com"));

    put(f, "a", "created", 1);
    put(f, "a", "updated", 2);
    put(f, "a", "updated", 3);
    put(f, "b", "deleted", 4);
    assert_true(try_write_of(f, custom, STORE_CREATE, "", "gr\xc3\xbc\xc3\x9f", 5, 0) > 0);
    assert_true(fixture_sync(f));
    delete (f, "b", "deleted");
    store_advance(f->store);
    put(f, "b", "again", 6);
    delete (f, "b", "again");
    put(f, "b", "again", 7);
    store_record_put(f->store, RECORD_META, STR("empty"), STR(""));
    store_record_put(f->store, RECORD_PKI, STR("key"), STR("bytes\0\xff\x01"));
    store_record_put(f->store, RECORD_MAPPING, STR("pods/a/created"), STR("u-1 h-1"));
    store_record_put(f->store, RECORD_LEDGER, STR("gone"), STR("1"));
    assert_true(fixture_sync(f));
    store_record_put(f->store, RECORD_LEDGER, STR("changed"), STR("1"));
    store_record_put(f->store, RECORD_LEDGER, STR("changed"), STR("2"));
    store_record_delete(f->store, RECORD_LEDGER, STR("gone"));
    store_record_put(f->store, RECORD_CONTROLLER, STR("c"), STR("3"));
    store_advance(f->store);
    assert_true(fixture_sync(f));
}

struct live {
    const char *resource, *ns, *name;
    int value;
    int64_t revision;
};

static const struct live LIVE[] = {
    {"pods", "a", "created", 1, 2},
    {"pods", "a", "updated", 3, 4},
    {"pods", "b", "again", 7, 11},
    {"widgets.example.com", "", "gr\xc3\xbc\xc3\x9f", 5, 6},
};

struct happened {
    enum store_event_type type;
    int64_t revision;
    const char *name;
    int64_t previous;
};

static const struct happened EVENTS[] = {
    {STORE_ADDED, 2, "created", 0},
    {STORE_ADDED, 3, "updated", 0},
    {STORE_MODIFIED, 4, "updated", 3},
    {STORE_ADDED, 5, "deleted", 0},
    {STORE_ADDED, 6, "gr\xc3\xbc\xc3\x9f", 0},
    {STORE_DELETED, 7, "deleted", 5},
    {STORE_ADDED, 9, "again", 0},
    {STORE_DELETED, 10, "again", 9},
    {STORE_ADDED, 11, "again", 0},
};

struct record {
    enum store_record kind;
    struct str key, value;
};

#define RECORD(kind, key, value)                                                                   \
    {                                                                                              \
        RECORD_##kind, {key, sizeof(key) - 1},                                                     \
        {                                                                                          \
            value, sizeof(value) - 1                                                               \
        }                                                                                          \
    }
static const struct record RECORDS[] = {
    RECORD(META, "empty", ""),
    RECORD(PKI, "key", "bytes\0\xff\x01"),
    RECORD(MAPPING, "pods/a/created", "u-1 h-1"),
    RECORD(LEDGER, "changed", "2"),
    RECORD(CONTROLLER, "c", "3"),
};

static void check_objects(struct fixture *f)
{
    assert_int_equal(store_count(f->store, STORE_ALL_RESOURCES), COUNT(LIVE));
    for (size_t i = 0; i < COUNT(LIVE); i++) {
        const struct live *l = &LIVE[i];
        unsigned resource = store_resource(f->store, str_c(l->resource));
        const struct store_object *o = store_get(f->store, resource, str_c(l->ns), str_c(l->name));
        assert_int_equal(value_of(o), l->value);
        assert_int_equal(o->revision, l->revision);
        assert_true(str_eqc(o->uid, "u-1"));
    }
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

static void check_events(struct fixture *f)
{
    struct store_watch *w;
    bool expired;

    assert_int_equal(store_oldest_revision(f->store), 1);
    assert_int_equal(store_watch_open(f->store, STORE_ALL_RESOURCES, 1, on_wake, NULL, &w, &f->err),
                     0);
    for (size_t i = 0; i < COUNT(EVENTS); i++) {
        const struct store_event *e = next_event(f, w, &expired);
        assert_non_null(e);
        assert_int_equal(e->type, EVENTS[i].type);
        assert_int_equal(e->revision, EVENTS[i].revision);
        assert_true(str_eqc(e->object->name, EVENTS[i].name));
        assert_int_equal(e->previous ? e->previous->revision : 0, EVENTS[i].previous);
        value_of(e->object);
    }
    assert_null(store_watch_next(w, &expired));
    assert_false(expired);
    store_watch_close(w);
}

static bool count_record(void *ctx, struct str key, struct str value)
{
    (void)key, (void)value;
    ++*(size_t *)ctx;
    return true;
}

static void check_records(struct fixture *f)
{
    size_t n = 0;

    for (enum store_record kind = RECORD_META; kind <= RECORD_CONTROLLER; kind++)
        store_record_each(f->store, kind, STR(""), count_record, &n);
    assert_int_equal(n, COUNT(RECORDS));
    for (size_t i = 0; i < COUNT(RECORDS); i++) {
        struct str value;
        assert_true(store_record_get(f->store, RECORDS[i].kind, RECORDS[i].key, &value));
        assert_true(str_eq(value, RECORDS[i].value));
    }
}

static void check_content(struct fixture *f)
{
    assert_int_equal(store_revision(f->store), 12);
    check_objects(f);
    check_events(f);
    check_records(f);
}

/* ---- the fixtures ---- */

static char *read_text(const char *path)
{
    FILE *in = fopen(path, "r");
    if (!in)
        fail_msg("%s cannot be read", path);
    static char text[1 << 16];
    size_t n = fread(text, 1, sizeof(text) - 1, in);
    fclose(in);
    assert_true(n && n < sizeof(text) - 1);
    text[n] = '\0';
    return text;
}

static void make_database(struct fixture *f, int format)
{
    char path[256];
    sqlite3 *db;
    char *why = NULL;

    snprintf(path, sizeof(path), "%s/state.db-wal", f->dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/state.db.format-1", f->dir);
    unlink(path);
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    snprintf(path, sizeof(path), FIXTURES "/format-%d.sql", format);
    if (sqlite3_exec(db, read_text(path), NULL, NULL, &why))
        fail_msg("%s: %s", path, why);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_every_format(void **state)
{
    struct fixture *f = *state;

    for (int format = 1; format <= FORMATS; format++) {
        make_database(f, format);
        assert_int_equal(store_check(f->dir, &f->options, NULL, &f->err), 0);
        fixture_open(f);
        check_content(f);
        fixture_reopen(f);
        check_content(f);
        /* And it goes on. */
        assert_int_equal(put(f, "a", "created", 9), 13);
        assert_true(fixture_sync(f));
        fixture_reopen(f);
        assert_int_equal(committed(f, "a", "created"), 9);
        fixture_close(f);
    }
}

/* Whatever fails on the way, and whenever: the previous format stays, or the present one is whole.
 */
static void test_migration_that_fails(void **state)
{
    static const enum fault_kind KINDS[] = {FAULT_IO, FAULT_FULL, FAULT_LATE};
    struct fixture *f = *state;
    int failed = 0;

    for (size_t kind = 0; kind < COUNT(KINDS); kind++) {
        for (int after = 0, failures = 1; failures; after++) {
            make_database(f, 1);
            fault_arm(FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE, FAULT_ANY, KINDS[kind], after, -1);
            err_clear(&f->err);
            if (store_open(&f->loop, &f->options, &f->store, &f->err)) {
                f->store = NULL;
                failed++;
            }
            fixture_close(f);
            failures = fault_disarm();
            fixture_open(f);
            check_content(f);
            fixture_close(f);
            assert_true(file_size(f, "state.db.format-1") > 0);
            assert_int_equal(file_size(f, "state.db.format-1.2"), -1);
            assert_int_equal(file_size(f, "state.db.format-1.partial"), -1);
        }
    }
    print_message("%d migrations failed\n", failed);
    assert_true(failed > 20);
}

/* The copy is the file of before, and can be opened again. */
static void test_copy_is_kept(void **state)
{
    struct fixture *f = *state;
    char from[128], to[128];

    make_database(f, 1);
    fixture_open(f);
    put(f, "a", "later", 1);
    assert_true(fixture_sync(f));
    fixture_close(f);
    snprintf(from, sizeof(from), "%s/state.db.format-1", f->dir);
    snprintf(to, sizeof(to), "%s/state.db", f->dir);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(query(f, "PRAGMA user_version"), 1);
    fixture_open(f);
    check_content(f);
}

/* A copy that lies there already, of another store or of an earlier state of this one, is no copy
 * of this file: each migration keeps one, and none of them replaces another. */
static void test_each_copy_is_kept(void **state)
{
    static const char *const names[] = {"state.db.format-1", "state.db.format-1.2",
                                        "state.db.format-1.3"};
    struct fixture *f = *state;
    char path[128];

    make_database(f, 1);
    fixture_open(f);
    fixture_close(f);
    for (int i = 1; i < 3; i++) {
        char moved[128], kept[128];
        snprintf(kept, sizeof(kept), "%s/%s", f->dir, names[0]);
        snprintf(moved, sizeof(moved), "%s/moved", f->dir);
        assert_int_equal(rename(kept, moved), 0); /* make_database() removes it */
        make_database(f, 1);
        assert_int_equal(rename(moved, kept), 0);
        snprintf(path, sizeof(path), "UPDATE meta SET value = %d WHERE key = 'heals'", i);
        query(f, path);
        assert_int_equal(file_size(f, names[i]), -1);
        fixture_open(f);
        fixture_close(f);
    }
    for (int i = 0; i < 3; i++) {
        char from[128];
        snprintf(from, sizeof(from), "%s/%s", f->dir, names[i]);
        snprintf(path, sizeof(path), "%s/state.db", f->dir);
        assert_int_equal(rename(from, path), 0);
        assert_int_equal(query(f, "SELECT value FROM meta WHERE key = 'heals'"), i);
        assert_int_equal(query(f, "PRAGMA user_version"), 1);
    }
}

/* What the log has belongs to the copy: a migration waits until it is in the file. */
static void test_copy_has_the_log(void **state)
{
    struct fixture *f = *state;
    char from[128], to[128], dir[96];
    sqlite3 *db;

    make_database(f, 1);
    snprintf(from, sizeof(from), "%s/state.db", f->dir);
    snprintf(dir, sizeof(dir), "%s/crashed", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(sqlite3_open(from, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA locking_mode=EXCLUSIVE;PRAGMA journal_mode=WAL;"
                                  "UPDATE meta SET value = 7 WHERE key = 'heals'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    copy_store(f->dir, dir);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    f->options.path = dir;
    assert_true(file_size(f, "crashed/state.db-wal") > 0);

    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    err_clear(&f->err);
    assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
    f->store = NULL;
    fault_disarm();
    assert_int_equal(file_size(f, "crashed/state.db.format-1"), -1);
    fixture_open(f);
    check_content(f);
    fixture_close(f);
    snprintf(from, sizeof(from), "%s/state.db.format-1", dir);
    snprintf(to, sizeof(to), "%s/state.db", f->dir);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(query(f, "SELECT value FROM meta WHERE key = 'heals'"), 7);
    remove_dir(dir);
    f->options.path = f->dir;
}

/* A backup that an earlier version of the program made. */
static void test_restore_of_every_format(void **state)
{
    struct fixture *f = *state;
    char from[128], backup[128];

    for (int format = 1; format <= FORMATS; format++) {
        struct store_identity identity;
        struct fixture g;

        make_database(f, format);
        snprintf(from, sizeof(from), "%s/state.db", f->dir);
        snprintf(backup, sizeof(backup), "%s/backup.db", f->dir);
        assert_int_equal(rename(from, backup), 0);
        fixture_init(&g);
        if (store_restore(backup, g.dir, &g.err))
            fail_msg("format %d: %.*s", format, STR_F(g.err.message));
        fixture_open(&g);
        store_identity(g.store, &identity);
        assert_true(identity.restored);
        assert_int_equal(identity.from_revision, 12);
        assert_true(store_revision(g.store) > 12 + 1000000);
        check_objects(&g);
        check_records(&g);
        fixture_fini(&g);
    }
}

/* ---- a damaged file of format 1 ---- */

#define PAGE 4096
#define MANY 300

/* Many pages of versions and of records. */
static void make_large_format_1(struct fixture *f)
{
    char text[1024];

    make_database(f, 1);
    snprintf(text, sizeof(text),
             "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO version SELECT 13 + i, 1790000000, 0, 1, 1, 'a', 'k' || i, 'u-1',"
             " X'6170700077656200', X'7374617475732E70686173650052756E6E696E6700',"
             " '{\"v\":' || i || ',\"rv\":' || (13 + i) || '}' FROM n",
             MANY - 1);
    query(f, text);
    snprintf(text, sizeof(text),
             "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
             " INSERT INTO record SELECT 4, CAST('r' || i AS BLOB), zeroblob(100) FROM n",
             MANY - 1);
    query(f, text);
}

static void spoil(struct fixture *f, int page)
{
    static const char noise[PAGE] = {1, 2, 3};
    char path[128];

    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, (page - 1) * PAGE, SEEK_SET);
    assert_int_equal(fwrite(noise, 1, PAGE, file), PAGE);
    fclose(file);
}

/* What is there is right, and no absence is proof. Returns how many are hidden. */
static int check_salvaged(struct fixture *f)
{
    char name[16];
    int hidden = count_hidden(f, MANY);

    for (int i = 0; i < MANY; i++) {
        struct str value;
        snprintf(name, sizeof(name), "r%d", i);
        if (store_record_get(f->store, RECORD_LEDGER, str_c(name), &value))
            continue;
        assert_true(store_record_damaged(f->store, RECORD_LEDGER, str_c(name)));
        hidden++;
    }
    return hidden;
}

static void test_damaged_format_1(void **state)
{
    struct fixture *f = *state;
    int pages = 2, refused = 0, hidden = 0, lives = 0;

    for (int page = 1; page <= pages + 1; page++) {
        struct store_identity identity;
        struct store_damage d;
        char path[128];

        make_large_format_1(f);
        pages = (int)(file_size(f, "state.db") / PAGE);
        snprintf(path, sizeof(path), "%s/state.db", f->dir);
        if (page <= pages)
            spoil(f, page);
        else /* a file without its tail */
            assert_int_equal(truncate(path, (pages - 3) * PAGE), 0);
        err_clear(&f->err);
        if (store_open(&f->loop, &f->options, &f->store, &f->err)) {
            f->store = NULL;
            refused++;
            continue;
        }
        f->pods = store_resource(f->store, STR("pods"));
        store_damage(f->store, &d);
        assert_true(d.salvaged && store_is_damaged(f->store));
        store_identity(f->store, &identity);
        lives += identity.restored;
        assert_true(!identity.restored || store_revision(f->store) > 1000000);
        int lost = check_salvaged(f);
        hidden += lost;
        put(f, "a", "new", 1);
        assert_true(fixture_sync(f));
        fixture_reopen(f);
        assert_int_equal(check_salvaged(f), lost);
        assert_true(store_is_damaged(f->store));
        fixture_close(f);
        snprintf(path, sizeof(path), "%s/state.db.damaged", f->dir);
        assert_int_equal(unlink(path), 0);
    }
    print_message("%d pages, %d refused, %d hidden, %d new lives\n", pages, refused, hidden, lives);
    assert_true(pages > 20 && refused <= 1 && hidden > 0 && hidden < 100 * pages && lives == 1);
}

static void open_identity(struct fixture *f, struct store_identity *ret)
{
    fixture_open(f);
    store_identity(f->store, ret);
    fixture_close(f);
}

/* Format 1 has two variants: lives had no epoch at first. */
static void test_epoch_of_format_1(void **state)
{
    struct fixture *f = *state;
    struct store_identity i, again;

    make_database(f, 1);
    query(f, "INSERT INTO meta VALUES ('epoch_high', 117477801164800777), ('epoch_low', -2),"
             " ('from_high', 117477801164800001), ('from_low', 3), ('from_revision', 5),"
             " ('restored', 1)");
    open_identity(f, &i);
    assert_string_equal(i.epoch, "01a15d700f6c0309fffffffffffffffe");
    assert_string_equal(i.from, "01a15d700f6c00010000000000000003");
    assert_int_equal(i.from_revision, 5);
    assert_true(i.restored);

    make_database(f, 1);
    open_identity(f, &i);
    assert_int_equal(strlen(i.epoch), STORE_EPOCH_LEN);
    assert_string_equal(i.from, "");
    assert_false(i.restored);
    open_identity(f, &again);
    assert_memory_equal(&i, &again, sizeof(i));

    make_database(f, 1); /* a copy that was not opened yet */
    query(f, "UPDATE meta SET value = 1 WHERE key = 'copy'");
    open_identity(f, &i);
    assert_int_equal(strlen(i.epoch), STORE_EPOCH_LEN);
    assert_string_equal(i.from, "");
    assert_int_equal(i.from_revision, 12);
    assert_true(i.restored);
}

/* What the next fixture is made from is what this test expects of all of them. */
static void test_present_content(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    write_content(f);
    check_content(f);
    fixture_reopen(f);
    check_content(f);
}

static int make(const char *dir)
{
    struct fixture f;

    fixture_init(&f);
    f.options.path = dir;
    f.options.wall_us = fixture_wall;
    fixture_open(&f);
    write_content(&f);
    fixture_fini(&f);
    return 0;
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_format),      TEST(migration_that_fails), TEST(copy_is_kept),
        TEST(each_copy_is_kept), TEST(copy_has_the_log),     TEST(restore_of_every_format),
        TEST(epoch_of_format_1), TEST(damaged_format_1),     TEST(present_content)};

    if (argc == 3 && !strcmp(argv[1], "make"))
        return make(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
