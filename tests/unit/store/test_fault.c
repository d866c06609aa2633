/* SPDX-License-Identifier: Apache-2.0
 * A disk that fails: an answered write is never lost, a failed one never visible, and the store
 * goes on when the disk does. Every operation of a run is made to fail once, in every way. */
#include "fault_vfs.h"
#include "model.h"

#include <sublet/store_failure.h>
#include <sublet/store_quarantine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct model model;

static void on_fail(void *ctx, const struct err *err)
{
    assert_non_null(err);
    assert_ptr_equal(err->kind, &ERR_STORAGE);
    assert_true(str_contains(err->message, STR("state.db")));
    ++*(int *)ctx;
}

static void on_undone(void *ctx)
{
    ++*(int *)ctx;
}

static void test_nothing_is_left(void **state)
{
    struct fixture *f = *state;
    struct str value;
    int undone = 0, fails = 0;

    fixture_open(f);
    put(f, "a", "old", 1);
    store_record_put(f->store, RECORD_META, STR("old"), STR("1"));
    store_record_put(f->store, RECORD_META, STR("gone"), STR("1"));
    assert_true(fixture_sync(f));
    assert_int_equal(store_undone(f->store), 0);

    fault_arm(FAULT_SYNC, FAULT_LOG, FAULT_IO, 0, -1);
    unsigned fresh = store_resource(f->store, STR("fresh"));
    put(f, "a", "new", 2);
    put(f, "a", "old", 2);
    assert_true(try_write_of(f, fresh, STORE_CREATE, "", "x", 1, 0) > 0);
    store_record_put(f->store, RECORD_META, STR("old"), STR("2"));
    store_record_put(f->store, RECORD_META, STR("new"), STR("2"));
    store_record_delete(f->store, RECORD_META, STR("gone"));
    store_on_commit(f->store, on_fail, &fails);
    store_on_failure(f->store, on_undone, &undone);
    fault_hold();
    uv_run(&f->loop, UV_RUN_NOWAIT); /* it is with the writer now; the next ones queue */
    delete (f, "a", "new");
    put(f, "a", "old", 3);
    store_record_put(f->store, RECORD_META, STR("old"), STR("3"));
    store_record_put(f->store, RECORD_META, STR("gone"), STR("3"));
    store_record_delete(f->store, RECORD_META, STR("new"));
    store_on_commit(f->store, on_fail, &fails);
    int64_t next = store_next_revision(f->store);
    fault_release();
    fixture_settle(f);
    assert_int_equal(fails, 2);
    assert_int_equal(undone, 1);
    assert_int_equal(store_undone(f->store), 1);
    assert_true(fault_disarm() > 0);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(latest(f, "a", "old"), 1);
        assert_int_equal(committed(f, "a", "old"), 1);
        assert_int_equal(latest(f, "a", "new"), -1);
        assert_null(store_latest(f->store, fresh, STR(""), STR("x")));
        assert_true(store_record_get(f->store, RECORD_META, STR("old"), &value));
        assert_true(str_eq(value, STR("1")));
        assert_true(store_record_get(f->store, RECORD_META, STR("gone"), &value));
        assert_true(str_eq(value, STR("1")));
        assert_false(store_record_get(f->store, RECORD_META, STR("new"), &value));
        assert_int_equal(store_count(f->store, STORE_ALL_RESOURCES), 1);
        assert_int_equal(store_revision(f->store), 2);
        if (!i) {
            assert_int_equal(store_next_revision(f->store), next);
            fixture_reopen(f);
            fresh = store_resource(f->store, STR("fresh"));
        }
    }
    /* And on it goes, with the resource that could not be saved. */
    assert_true(try_write_of(f, fresh, STORE_CREATE, "", "x", 1, 0) > 0);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(store_count(f->store, store_resource(f->store, STR("fresh"))), 1);
}

static void test_full_disk(void **state)
{
    struct fixture *f = *state;

    fixture_open(f);
    int64_t last = put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    fault_arm(FAULT_WRITE, FAULT_ANY, FAULT_FULL, 0, -1);
    int64_t revision = put(f, "a", "x", 10);
    assert_true(revision > last);
    assert_false(fixture_sync(f));
    assert_int_equal(latest(f, "a", "x"), 1);
    fault_disarm();
    fixture_await(f, STORE_DISK_WRITABLE);
    assert_true(put(f, "a", "x", 2) > revision);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    assert_int_equal(committed(f, "a", "x"), 2);
}

/* The file cannot be written any more, the log can: it must not fill the disk. */
static void test_log_has_a_limit(void **state)
{
    struct fixture *f = *state;
    static char bytes[400000];
    int written = 0;

    fixture_open(f);
    store_record_put(f->store, RECORD_META, STR("first"), STR("1"));
    assert_true(fixture_sync(f));
    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    for (;; written++) {
        bytes[0] = (char)written;
        store_record_put(f->store, RECORD_LEDGER, STR("k"), (struct str){bytes, sizeof(bytes)});
        if (!fixture_sync(f))
            break;
    }
    int64_t log = file_size(f, "state.db-wal");
    assert_in_range(log, 8 << 20, 20 << 20);
    for (int i = 0; i < 3; i++) {
        store_record_put(f->store, RECORD_META, STR("k"), STR("v"));
        assert_false(fixture_sync(f));
    }
    assert_int_equal(file_size(f, "state.db-wal"), log);
    assert_int_equal(store_disk(f->store), STORE_DISK_FULL);
    fault_disarm();
    fixture_await(f, STORE_DISK_WRITABLE);
    put(f, "a", "y", 1);
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    struct str value;
    assert_true(store_record_get(f->store, RECORD_LEDGER, STR("k"), &value));
    assert_int_equal((unsigned char)value.p[0], (written - 1) & 0xff);
}

/* A disk that hangs: writes wait up to a limit, then they fail with a retry. */
static void test_waiting_has_a_limit(void **state)
{
    struct fixture *f = *state;
    static char bytes[1000000];
    int64_t accepted = 0;
    struct store_write w = {.op = STORE_CREATE, .bytes = {bytes, sizeof(bytes)}};

    fixture_open(f);
    w.resource = f->pods;
    fault_hold();
    for (;; accepted++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", (int)accepted);
        w.name = str_c(name);
        if (store_write(f->store, &w, &f->err))
            break;
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_ptr_equal(f->err.kind, &ERR_TOO_MANY_REQUESTS);
    assert_int_equal(f->err.retry_after, 1);
    assert_in_range(accepted, 60, 70);
    fault_release();
    assert_true(fixture_sync(f));
    assert_int_equal(store_count(f->store, f->pods), accepted);
    w.name = STR("after");
    assert_int_equal(store_write(f->store, &w, &f->err), 0);
    assert_true(fixture_sync(f));
}

/* What a process that died at this moment would pass on. */
static void check_crash_copy(struct model *m, struct fixture *f)
{
    struct fixture copy;

    fixture_init(&copy);
    copy.options.history_events = f->options.history_events;
    copy_store(f->dir, copy.dir);
    fixture_open(&copy);
    assert_int_equal(store_revision(copy.store), store_revision(f->store));
    model_check_state(m, &copy, 0);
    model_check_watch(m, &copy, store_oldest_revision(copy.store));
    fixture_fini(&copy);
}

struct fault_row {
    unsigned ops, files;
    enum fault_kind kind;
};

static const struct fault_row FAULTS[] = {
    {FAULT_WRITE, FAULT_LOG, FAULT_IO},    {FAULT_WRITE, FAULT_LOG, FAULT_FULL},
    {FAULT_WRITE, FAULT_LOG, FAULT_LATE},  {FAULT_SYNC, FAULT_LOG, FAULT_IO},
    {FAULT_SYNC, FAULT_LOG, FAULT_LATE},   {FAULT_WRITE, FAULT_MAIN, FAULT_IO},
    {FAULT_WRITE, FAULT_MAIN, FAULT_FULL}, {FAULT_SYNC, FAULT_MAIN, FAULT_IO},
    {FAULT_READ, FAULT_ANY, FAULT_IO},     {FAULT_TRUNCATE, FAULT_ANY, FAULT_IO},
};

/* One batch; what the model holds afterwards is what was answered. */
static void batch(struct model *m, struct fixture *f)
{
    int64_t before = store_revision(f->store);

    fixture_await(f, STORE_DISK_WRITABLE);
    for (unsigned n = 1 + model_random(m, 6); n; n--)
        assert_true(model_step(m, f));
    if (!fixture_sync(f)) {
        assert_int_equal(store_revision(f->store), before);
        model_forget(m, f, before);
    }
}

static int run_with_fault(const struct fault_row *row, int after, int times)
{
    struct fixture f;

    model = (struct model){.seed = (unsigned)after + 1};
    fixture_init(&f);
    f.options.history_events = 12;
    fixture_open(&f);
    batch(&model, &f);
    fault_arm(row->ops, row->files, row->kind, after, times);
    for (int i = 0; i < 6; i++)
        batch(&model, &f);
    /* Closing folds the log. It may fail; nothing is lost by that. */
    bool closing = after % 2;
    if (closing)
        fixture_close(&f);
    int failures = fault_disarm();
    if (closing)
        fixture_open(&f);
    model_check_state(&model, &f, 0);
    fixture_settle(&f);
    if (times == 1)
        check_crash_copy(&model, &f);
    batch(&model, &f);
    model_check_all(&model, &f);
    fixture_reopen(&f);
    model_check_all(&model, &f);
    fixture_fini(&f);
    return failures;
}

static void test_every_operation(void **state)
{
    int total = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(FAULTS); i++) {
        for (int times = 1; times <= 3; times += 2) {
            int after = 0, failures;
            do {
                failures = run_with_fault(&FAULTS[i], after, times);
                total += failures;
                after += 1 + after / 12;
            } while (failures);
        }
    }
    print_message("%d failures\n", total);
    assert_true(total > 200);
}

/* Faults while opening: an error that names the file, or success; never a loss. */
static void test_every_operation_of_open(void **state)
{
    struct fixture *f = *state;
    int failed = 0;

    fixture_open(f);
    for (int i = 0; i < 50; i++)
        put(f, "a", "x", i);
    store_record_put(f->store, RECORD_PKI, STR("k"), STR("v"));
    assert_true(fixture_sync(f));
    fixture_close(f);
    for (int after = 0;; after++) {
        fault_arm(FAULT_READ | FAULT_WRITE | FAULT_SYNC | FAULT_OPEN | FAULT_TRUNCATE, FAULT_ANY,
                  FAULT_IO, after, 1);
        err_clear(&f->err);
        if (store_open(&f->loop, &f->options, &f->store, &f->err)) {
            assert_ptr_equal(f->err.kind, &ERR_STORAGE);
            if (!str_contains(f->err.message, STR("/state.db: ")))
                fail_msg("after %d: %.*s", after, STR_F(f->err.message));
            failed++;
            f->store = NULL;
        }
        int failures = fault_disarm();
        if (f->store)
            f->pods = store_resource(f->store, STR("pods"));
        else
            fixture_open(f);
        assert_int_equal(committed(f, "a", "x"), 49);
        assert_int_equal(store_oldest_revision(f->store), 1);
        /* An error is no damage. */
        assert_int_equal(file_size(f, "state.db.damaged"), -1);
        fixture_close(f);
        if (!failures)
            break;
    }
    assert_true(failed > 5);
}

/* Faults while a new store is made. */
static void test_every_operation_of_creation(void **state)
{
    (void)state;
    for (int after = 0;; after++) {
        struct fixture f;
        fixture_init(&f);
        fault_arm(FAULT_READ | FAULT_WRITE | FAULT_SYNC | FAULT_OPEN | FAULT_TRUNCATE, FAULT_ANY,
                  after % 2 ? FAULT_FULL : FAULT_IO, after / 2, 1);
        bool opened = !store_open(&f.loop, &f.options, &f.store, &f.err);
        int failures = fault_disarm();
        if (opened)
            f.pods = store_resource(f.store, STR("pods"));
        else
            fixture_open(&f);
        assert_int_equal(put(&f, "a", "x", 1), 2);
        assert_true(fixture_sync(&f));
        fixture_reopen(&f);
        assert_int_equal(committed(&f, "a", "x"), 1);
        fixture_fini(&f);
        if (!failures)
            break;
    }
}

/* ---- damage on a disk that fails ---- */

#define PAGE 4096

/* A file of many pages, and in its log more answered writes; one page of the file is noise. */
static void make_damaged(struct fixture *f, struct fixture *crashed)
{
    static const char noise[PAGE] = {1, 2, 3};
    char name[16], path[128];

    fixture_open(f);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    put(f, "a", "logged", 7);
    assert_true(fixture_sync(f));
    fixture_init(crashed);
    copy_store(f->dir, crashed->dir);
    assert_true(file_size(crashed, "state.db-wal") > 0);

    snprintf(path, sizeof(path), "%s/state.db", crashed->dir);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, 9 * PAGE, SEEK_SET);
    assert_int_equal(fwrite(noise, 1, PAGE, file), PAGE);
    fclose(file);
}

/* The log has answered writes until a fold of it succeeded, and only then it may be removed. */
static void test_salvage_keeps_a_log_that_is_not_folded(void **state)
{
    struct fixture *f = *state, crashed;
    struct store_damage d;

    make_damaged(f, &crashed);
    int64_t log = file_size(&crashed, "state.db-wal");
    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    err_clear(&crashed.err);
    if (!store_open(&crashed.loop, &crashed.options, &crashed.store, &crashed.err))
        fixture_close(&crashed);
    crashed.store = NULL;
    assert_true(fault_disarm() > 0);
    assert_int_equal(file_size(&crashed, "state.db-wal"), log);
    assert_int_equal(file_size(&crashed, "state.db.damaged"), -1);

    fixture_open(&crashed);
    assert_int_equal(committed(&crashed, "a", "logged"), 7);
    store_damage(crashed.store, &d);
    assert_true(d.salvaged);
    fixture_fini(&crashed);
}

static void store_in_many_pages(struct fixture *f, int objects)
{
    char name[16];

    fixture_open(f);
    for (int i = 0; i < objects; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_close(f);
}

/* A full disk that was met before says nothing of a page that cannot be read. */
static void test_unreadable_after_full(void **state)
{
    struct fixture *f = *state, crashed;

    store_in_many_pages(f, 300);
    fixture_open(f);
    put(f, "a", "logged", 7);
    assert_true(fixture_sync(f));
    fixture_init(&crashed);
    copy_store(f->dir, crashed.dir);
    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    fault_arm_page(2); /* a check reads it, loading does not */
    err_clear(&crashed.err);
    assert_int_equal(store_open(&crashed.loop, &crashed.options, &crashed.store, &crashed.err), -1);
    crashed.store = NULL;
    assert_true(str_contains(crashed.err.message, STR("disk I/O error")));
    assert_true(fault_disarm() > 0);
    fixture_open(&crashed);
    assert_int_equal(committed(&crashed, "a", "logged"), 7);
    fixture_fini(&crashed);
}

/* False: the start was refused, by an error that names the file and the disk. */
static bool opens(struct fixture *f)
{
    err_clear(&f->err);
    if (!store_open(&f->loop, &f->options, &f->store, &f->err)) {
        f->pods = store_resource(f->store, STR("pods"));
        return true;
    }
    f->store = NULL;
    assert_ptr_equal(f->err.kind, &ERR_STORAGE);
    if (!str_contains(f->err.message, STR("/state.db")))
        fail_msg("%.*s", STR_F(f->err.message));
    return false;
}

#define MANY 1500

/* However often reads fail, a start is refused or opens all there is, and replaces nothing. */
static void test_reads_that_fail_by_chance_are_no_damage(void **state)
{
    struct fixture *f = *state;
    struct store_damage d;
    int refused = 0, opened = 0;

    fixture_in_memory(f);
    store_in_many_pages(f, MANY); /* more pages than are kept in memory */
    for (unsigned seed = 1; seed <= 600; seed++) {
        fault_arm_reads(2 + seed % 8, seed);
        bool open = opens(f);
        fault_disarm();
        if (open) {
            store_damage(f->store, &d);
            assert_false(d.salvaged || d.objects || d.history || d.unattributed);
            assert_int_equal(store_count(f->store, f->pods), MANY);
        }
        if (file_size(f, "state.db.damaged") >= 0)
            fail_msg("seed %u: a good file was replaced", seed);
        refused += !open;
        opened += open;
        fixture_close(f);
    }
    print_message("%d refused, %d opened\n", refused, opened);
    assert_true(refused > 50 && opened > 50);
    fixture_open(f);
    assert_int_equal(store_count(f->store, f->pods), MANY);
}

/* Where the disk cannot read a page, a start refuses and names the way out: copy the directory,
 * with zeros in place of that page. The store opens then, and reports the objects that were on it.
 */
static void copy_without(struct fixture *f, struct fixture *to, int page)
{
    static const char *const names[] = {"state.db", "state.db-wal"};
    static char bytes[PAGE];
    char from_path[128], to_path[128];

    fixture_init(to);
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(from_path, sizeof(from_path), "%s/%s", f->dir, names[i]);
        snprintf(to_path, sizeof(to_path), "%s/%s", to->dir, names[i]);
        FILE *in = fopen(from_path, "r");
        if (!in)
            continue;
        FILE *out = fopen(to_path, "w");
        assert_non_null(out);
        size_t n;
        /* conv=sync: the last block is filled with zeros. */
        for (int at = 1; (n = fread(bytes, 1, PAGE, in)) > 0; at++) {
            memset(bytes + n, 0, PAGE - n);
            if (!i && at == page)
                memset(bytes, 0, PAGE);
            assert_int_equal(fwrite(bytes, 1, PAGE, out), PAGE);
        }
        fclose(in);
        fclose(out);
    }
}

static void test_page_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    int hidden = 0, copied = 0, logged = 0;

    store_in_many_pages(f, 300);
    int pages = (int)(file_size(f, "state.db") / PAGE);
    fixture_open(f);
    put(f, "a", "logged", 7);
    assert_true(fixture_sync(f));
    for (int page = 1; page <= pages; page++) {
        struct fixture crashed, copy;
        struct store_damage d;

        fixture_init(&crashed);
        copy_store(f->dir, crashed.dir);
        fault_arm_page(page);
        for (int i = 0; i < 2; i++)
            assert_false(opens(&crashed));
        assert_true(fault_disarm() > 0);
        if (!str_contains(crashed.err.message, STR("I/O error")))
            fail_msg("page %d: %.*s", page, STR_F(crashed.err.message));
        assert_int_equal(file_size(&crashed, "state.db.damaged"), -1);

        copy_without(&crashed, &copy, page);
        if (opens(&copy)) {
            int lost = count_hidden(&copy, 300);
            store_damage(copy.store, &d);
            assert_true(d.salvaged || d.own_account || d.history);
            assert_true(!lost || store_is_damaged(copy.store) || d.objects || d.nameless);
            assert_false(store_is_absent(copy.store, copy.pods, STR("a"), STR("logged")));
            logged += committed(&copy, "a", "logged") == 7;
            hidden += lost;
            copied++;
        }
        fixture_fini(&copy);

        fixture_open(&crashed); /* and the disk that can read it again has lost nothing */
        assert_int_equal(count_hidden(&crashed, 300), 0);
        fixture_fini(&crashed);
    }
    print_message("%d of %d pages opened as zeros, %d objects hidden\n", copied, pages, hidden);
    assert_true(copied >= pages - 2 && hidden > 0 && logged >= copied - 3);
}

/* ---- the first transaction ---- */

static bool store_uid(struct fixture *f, const char *uid)
{
    store_record_put(f->store, RECORD_META, STR("uid"), str_c(uid));
    return fixture_sync(f);
}

static bool has_uid(struct fixture *f, const char *uid)
{
    struct str value;

    return store_record_get(f->store, RECORD_META, STR("uid"), &value) && str_eqc(value, uid);
}

/* What is left when the log is lost. */
static void keep_file(struct fixture *f, struct fixture *ret)
{
    char log[128];

    fixture_init(ret);
    fixture_in_memory(ret);
    copy_store(f->dir, ret->dir);
    snprintf(log, sizeof(log), "%s/state.db-wal", ret->dir);
    assert_int_equal(unlink(log), 0);
}

static bool kept_uid(struct fixture *kept, const char *uid)
{
    bool has = false;

    err_clear(&kept->err);
    if (store_open(&kept->loop, &kept->options, &kept->store, &kept->err))
        kept->store = NULL; /* half a fold: it is not taken for an empty store */
    else
        has = has_uid(kept, uid);
    fixture_fini(kept);
    return has;
}

static void test_the_first_with_the_reserve(void **state)
{
    struct fixture *f = *state, kept;

    fixture_open(f);
    fault_arm(FAULT_WRITE, FAULT_LOG, FAULT_FULL, 0, 1);
    assert_true(store_uid(f, "u-1"));
    assert_int_equal(fault_disarm(), 1);
    assert_int_equal(store_disk(f->store), STORE_DISK_FULL);
    keep_file(f, &kept);
    assert_true(kept_uid(&kept, "u-1"));
}

enum first { FIRST_WHOLE, FIRST_REFUSED, FIRST_IN_LOG };

/* From an operation on, the file takes nothing more; the log does. */
static enum first first_with_fault(unsigned op, enum fault_kind kind, int after)
{
    struct fixture f, kept;
    enum first ret;

    fixture_init(&f);
    fixture_in_memory(&f);
    fixture_open(&f);
    fault_arm(op, FAULT_MAIN, kind, after, -1);
    bool answered = store_uid(&f, "u-1");
    keep_file(&f, &kept);
    bool second = store_uid(&f, "u-2");
    fault_disarm();
    ret = kept_uid(&kept, "u-1") ? FIRST_WHOLE : answered ? FIRST_IN_LOG : FIRST_REFUSED;
    assert_true(answered || ret == FIRST_REFUSED);
    assert_true(!second || ret == FIRST_WHOLE); /* nothing is stored on top of the others */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(has_uid(&f, second ? "u-2" : "u-1"), answered);
        if (!i && after % 2)
            fixture_reopen(&f);
    }
    fixture_await(&f, STORE_DISK_WRITABLE);
    assert_true(store_uid(&f, "u-3"));
    if (!second) {
        keep_file(&f, &kept);
        /* Opened again, it is the file of a store that has begun. */
        assert_true(kept_uid(&kept, answered && after % 2 ? "u-1" : "u-3"));
    }
    fixture_fini(&f);
    return ret;
}

static void test_the_first_is_in_the_file(void **state)
{
    static const enum fault_kind kinds[] = {FAULT_IO, FAULT_FULL, FAULT_QUOTA};
    static const unsigned ops[] = {FAULT_WRITE, FAULT_SYNC};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds) * COUNT(ops); i++) {
        int seen[3] = {0}, after = 0;
        enum first first;

        do {
            assert_true(after < 100);
            first = first_with_fault(ops[i % 2], kinds[i / 2], after++);
            seen[first]++;
        } while (first != FIRST_WHOLE);
        /* Of a sync that failed behind it, the file has the pages. */
        assert_true(seen[FIRST_REFUSED] && (seen[FIRST_IN_LOG] || ops[i % 2] == FAULT_SYNC));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fault_setup, fault_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_left),
        TEST(full_disk),
        TEST(log_has_a_limit),
        TEST(waiting_has_a_limit),
        TEST(every_operation),
        TEST(every_operation_of_open),
        TEST(every_operation_of_creation),
        TEST(salvage_keeps_a_log_that_is_not_folded),
        TEST(unreadable_after_full),
        TEST(reads_that_fail_by_chance_are_no_damage),
        TEST(page_that_cannot_be_read),
        TEST(the_first_with_the_reserve),
        TEST(the_first_is_in_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
