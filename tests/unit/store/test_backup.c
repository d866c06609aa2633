/* SPDX-License-Identifier: Apache-2.0
 * Backups while writing: each is the state of one revision, and goes on where no client of the
 * original can have been. */
#include "model.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEAP 1000000000
#define WIDE (INT64_C(1) << 44)

/* The first second of 2026: the clock leaps over no revision. */
static int64_t new_year(void)
{
    return INT64_C(1767225600) * 1000000;
}

static struct model model;

struct result {
    int done;
    const struct err_kind *error;
    char message[256];
};

static void on_backup(void *ctx, const struct err *err)
{
    struct result *r = ctx;

    r->done++;
    r->error = err ? err->kind : NULL;
    if (err)
        snprintf(r->message, sizeof(r->message), "%.*s", STR_F(err->message));
}

static void check_copy(struct fixture *copy, int64_t first, int64_t last)
{
    copy->options.wall_us = new_year;
    fixture_open(copy);
    struct store_identity identity;
    store_identity(copy->store, &identity);
    int64_t revision = identity.from_revision, begin = store_revision(copy->store);
    assert_in_range(revision, first, last);
    assert_in_range(begin, revision + LEAP, revision + LEAP + WIDE);
    assert_int_equal(store_oldest_revision(copy->store), begin);
    for (int key = 0; key < MODEL_KEYS; key++) {
        char ns[8], name[8];
        model_key(key, ns, name);
        const struct model_version *v = &model.then[revision][key];
        const struct store_object *o = store_get(copy->store, copy->pods, str_c(ns), str_c(name));
        assert_int_equal(o ? o->revision : 0, v->revision);
        if (o)
            assert_int_equal(value_of(o), v->value);
    }
    struct str value;
    assert_true(store_record_get(copy->store, RECORD_META, STR("who"), &value));
    assert_true(str_eq(value, STR("me")));

    /* The leap is made once. */
    fixture_reopen(copy);
    assert_int_equal(store_revision(copy->store), begin);
    assert_int_equal(put(copy, "a", "new", 1), begin + 1);
    assert_true(fixture_sync(copy));
    fixture_reopen(copy);
    assert_int_equal(store_revision(copy->store), begin + 1);
    assert_int_equal(committed(copy, "a", "new"), 1);
}

static void test_while_writing(void **state)
{
    struct fixture *f = *state;
    static const char bytes[40000] = {'p'};
    struct str padding = {bytes, sizeof(bytes)};

    model = (struct model){.seed = 7};
    f->options.history_events = 30;
    fixture_open(f);
    store_record_put(f->store, RECORD_META, STR("who"), STR("me"));
    /* Enough pages for many steps. */
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "pad %d", i);
        store_record_put(f->store, RECORD_LEDGER, str_c(key), padding);
    }
    for (int i = 0; i < 40; i++)
        model_step(&model, f);
    assert_true(fixture_sync(f));

    for (int round = 0; round < 5; round++) {
        struct fixture copy;
        struct result r = {0};
        struct stat st;
        char path[128];
        int64_t first = store_revision(f->store);
        int batches = 0;

        fixture_init(&copy);
        snprintf(path, sizeof(path), "%s/state.db", copy.dir);
        store_backup(f->store, path, on_backup, &r);
        assert_int_equal(r.done, 0);
        for (; !r.done; batches++) {
            assert_int_equal(access(path, F_OK), -1);
            for (int i = 0; i < 3; i++)
                assert_true(model_step(&model, f));
            /* Pages are freed and used again behind the copy's back. */
            store_record_delete(f->store, RECORD_LEDGER, STR("pad 5"));
            store_record_put(f->store, RECORD_LEDGER, STR("pad 6"),
                             (struct str){padding.p, (size_t)(batches * 97 % 40000)});
            store_record_put(f->store, RECORD_LEDGER, STR("pad 5"), padding);
            assert_true(fixture_sync(f));
        }
        assert_int_equal(r.done, 1);
        assert_null(r.error);
        assert_true(batches > 5);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(file_size(&copy, "state.db.partial"), -1);
        assert_int_equal(query(&copy, "SELECT count(*) FROM pragma_integrity_check"
                                      " WHERE integrity_check = 'ok'"),
                         1);
        check_copy(&copy, first, store_revision(f->store));
        fixture_fini(&copy);
    }
    /* The original knows nothing of it. */
    fixture_reopen(f);
    model_check_all(&model, f);
}

static void test_several(void **state)
{
    struct fixture *f = *state;
    struct result r[3] = {0};
    char path[3][128];

    fixture_open(f);
    put(f, "a", "x", 1);
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/copy-%d", f->dir, i);
        store_backup(f->store, path[i], on_backup, &r[i]);
    }
    fixture_settle(f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r[i].done, 1);
        assert_null(r[i].error);
        assert_true(file_size(f, path[i] + strlen(f->dir) + 1) > 4096);
    }
    /* An older copy of that name is replaced as a whole. */
    put(f, "a", "x", 2);
    store_backup(f->store, path[0], on_backup, &r[0]);
    fixture_settle(f);
    assert_int_equal(r[0].done, 2);
    assert_null(r[0].error);
}

static void test_errors(void **state)
{
    struct fixture *f = *state;
    struct result r = {0};

    fixture_open(f);
    put(f, "a", "x", 1);
    store_backup(f->store, "/nonexistent/copy", on_backup, &r);
    fixture_settle(f);
    assert_int_equal(r.done, 1);
    assert_ptr_equal(r.error, &ERR_STORAGE);
    assert_non_null(strstr(r.message, "/nonexistent/copy"));
    assert_non_null(strstr(r.message, "No such file or directory"));
    assert_int_equal(committed(f, "a", "x"), 1);
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static void test_close_gives_up(void **state)
{
    struct fixture *f = *state;
    struct result r[2] = {0};
    char path[128];
    static char bytes[100000];

    fixture_open(f);
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), "%d", i);
        store_record_put(f->store, RECORD_LEDGER, str_c(path), (struct str){bytes, sizeof(bytes)});
    }
    assert_true(fixture_sync(f));
    snprintf(path, sizeof(path), "%s/copy", f->dir);
    store_backup(f->store, path, on_backup, &r[0]);
    store_backup(f->store, path, on_backup, &r[1]);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    put(f, "a", "x", 1);
    store_close(f->store, on_closed, NULL);
    f->store = NULL;
    fixture_settle(f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r[i].done, 1);
        assert_ptr_equal(r[i].error, &ERR_UNAVAILABLE);
    }
    assert_int_equal(file_size(f, "copy"), -1);
    assert_int_equal(file_size(f, "copy.partial"), -1);
    fixture_open(f);
    assert_int_equal(committed(f, "a", "x"), 1);
}

static void backup_to(struct fixture *f, const char *name, char path[128])
{
    struct result r = {0};

    snprintf(path, 128, "%s/%s", f->dir, name);
    store_backup(f->store, path, on_backup, &r);
    fixture_settle(f);
    assert_int_equal(r.done, 1);
    assert_null(r.error);
}

static void expect_no_restore(struct fixture *f, const char *from, const char *dir,
                              const char *text)
{
    err_clear(&f->err);
    assert_int_equal(store_restore(from, dir, &f->err), -1);
    assert_ptr_equal(f->err.kind, &ERR_STORAGE);
    if (!str_contains(f->err.message, str_c(text)))
        fail_msg("\"%.*s\" does not say \"%s\"", STR_F(f->err.message), text);
}

static void expect_restored(struct fixture *f, const char *from, const char *dir)
{
    struct fixture g;

    if (store_restore(from, dir, &f->err))
        fail_msg("%.*s", STR_F(f->err.message));
    assert_int_equal(store_check(dir, NULL, NULL, &f->err), 0);
    fixture_init(&g);
    g.options.wall_us = new_year;
    g.options.path = dir;
    fixture_open(&g);
    assert_in_range(store_revision(g.store), 3 + LEAP, 3 + LEAP + WIDE);
    assert_int_equal(committed(&g, "a", "x"), 2);
    fixture_fini(&g);
    assert_int_equal(store_check(dir, NULL, NULL, &f->err), 0);
}

static void test_restore(void **state)
{
    struct fixture *f = *state;
    char copy[128], raw[128], log[160], dir[3][128];

    fixture_open(f);
    put(f, "a", "x", 1);
    put(f, "a", "x", 2);
    backup_to(f, "a copy?.db", copy);
    for (int i = 0; i < 3; i++)
        snprintf(dir[i], sizeof(dir[i]), "%s/restored-%d", f->dir, i);

    /* A log of a file that was removed must not be applied to the file that replaced it,
     * and may have the only copy of its last writes. */
    assert_int_equal(mkdir(dir[0], 0700), 0);
    snprintf(log, sizeof(log), "%s/state.db-wal", dir[0]);
    snprintf(raw, sizeof(raw), "%s/state.db-wal", f->dir);
    assert_int_equal(link(raw, log), 0);
    expect_restored(f, copy, dir[0]);
    assert_int_equal(file_size(f, "a copy?.db-wal"), -1);
    assert_int_equal(file_size(f, "restored-0/state.db-wal.damaged"), file_size(f, "state.db-wal"));
    expect_no_restore(f, copy, dir[0], "exists already");
    expect_no_restore(f, copy, f->dir, "in use by another process");

    /* The file of a store in use is no backup; once it is closed it is. */
    snprintf(raw, sizeof(raw), "%s/state.db", f->dir);
    expect_no_restore(f, raw, dir[1], "not a backup but the file of a store in use");
    fixture_close(f);
    expect_restored(f, raw, dir[1]);

    expect_no_restore(f, "/nonexistent", dir[2], "/nonexistent: open: unable to open");
    expect_no_restore(f, "/dev/null", dir[2], "is not a Sublet database");
    assert_int_equal(access(dir[2], F_OK), -1);
    remove_dir(dir[0]);
    remove_dir(dir[1]);
}

static void test_damaged_backup(void **state)
{
    struct fixture *f = *state;
    char copy[128], dir[128];
    static const char noise[4096] = {1, 2, 3};

    fixture_open(f);
    for (int i = 0; i < 500; i++)
        put(f, "a", "x", i);
    backup_to(f, "copy", copy);
    FILE *file = fopen(copy, "r+");
    assert_non_null(file);
    fseek(file, 40960, SEEK_SET);
    assert_int_equal(fwrite(noise, 1, sizeof(noise), file), sizeof(noise));
    fclose(file);
    snprintf(dir, sizeof(dir), "%s/restored", f->dir);
    expect_no_restore(f, copy, dir, "copy: ");
    assert_int_equal(access(dir, F_OK), -1);
}

struct findings {
    int n;
    char what[32], name[32];
};

static void on_finding(void *ctx, const struct store_finding *finding)
{
    struct findings *all = ctx;

    all->n++;
    snprintf(all->what, sizeof(all->what), "%s", finding->what);
    snprintf(all->name, sizeof(all->name), "%.*s", STR_F(finding->name));
    assert_true(finding->why.n > 0);
}

static void test_check(void **state)
{
    struct fixture *f = *state;
    struct findings found = {0};
    const struct store_check_calls calls = {.finding = on_finding, .ctx = &found};
    char path[128];

    fixture_open(f);
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    assert_int_equal(store_check(f->dir, NULL, NULL, &f->err), -1);
    assert_true(str_contains(f->err.message, STR("in use by another process")));
    fixture_close(f);
    assert_int_equal(store_check(f->dir, NULL, &calls, &f->err), 0);
    assert_int_equal(found.n, 0);
    query(f, "UPDATE version SET bytes = '{}'");
    int64_t size = file_size(f, "state.db");
    for (int i = 0; i < 2; i++) { /* the first time changed nothing */
        found.n = 0;
        assert_true(store_check(f->dir, NULL, &calls, &f->err) > 0);
        assert_int_equal(file_size(f, "state.db"), size);
        assert_int_equal(file_size(f, "state.db.damaged"), -1);
        assert_int_equal(query(f, "SELECT count(*) FROM version WHERE bytes = '{}'"), 1);
    }
    /* One file is enough: a backup. */
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    assert_true(store_check(path, NULL, &calls, &f->err) > 0);
    assert_int_equal(store_check("/nonexistent", NULL, NULL, &f->err), -1);
    assert_true(str_contains(f->err.message, STR("/nonexistent")));
}

/* Copies, logs, the reserve: nothing of a check stays, whatever it found. */
static void test_check_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    char tmp[] = "/tmp/sublet-store-XXXXXX", *before = getenv("TMPDIR");

    before = before ? strdup(before) : NULL;
    assert_non_null(mkdtemp(tmp));
    setenv("TMPDIR", tmp, 1);
    fixture_open(f);
    put(f, "a", "x", 1);
    assert_true(fixture_sync(f));
    fixture_close(f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_check(f->dir, NULL, NULL, &f->err) > 0, i);
        if (rmdir(tmp))
            fail_msg("something is left in %s", tmp);
        assert_int_equal(mkdir(tmp, 0700), 0);
        query(f, "UPDATE version SET bytes = '{}'");
    }
    rmdir(tmp);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(while_writing), TEST(several),        TEST(errors), TEST(close_gives_up),
        TEST(restore),       TEST(damaged_backup), TEST(check),  TEST(check_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
