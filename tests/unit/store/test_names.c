/* SPDX-License-Identifier: Apache-2.0
 * Names: what is renamed is synced with its directory before anything relies on it, and a restore
 * that is killed between any two operations never leaves a directory in which an empty store
 * begins, nor a salvage one in which another life does. */
#include "harness.h"
#include "names.h"

#include <sublet/store_admin.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *in(const char *dir, const char *name)
{
    static char paths[4][160];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

static void on_backup(void *ctx, const struct err *err)
{
    (void)ctx;
    assert_null(err);
}

/* A store with an object, and a backup of it. */
static void begin(struct fixture *f)
{
    fixture_open(f);
    put(f, "a", "x", 7);
    store_backup(f->store, in(f->dir, "backup"), on_backup, NULL);
    fixture_settle(f);
}

static void spoil(const char *path, long at, size_t n)
{
    static const char noise[4096] = {1, 2, 3};
    FILE *file = fopen(path, "r+");

    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    assert_int_equal(fwrite(noise, 1, n, file), n);
    fclose(file);
}

static void expect_synced(int renames)
{
    assert_int_equal(names_renamed(), renames);
    assert_int_equal(names_loose(), 0);
    names_watch();
}

/* ---- renames ---- */

static void test_backup_and_restore(void **state)
{
    struct fixture *f = *state;
    char dir[96];

    names_watch();
    begin(f);
    expect_synced(1);
    snprintf(dir, sizeof(dir), "%s/restored", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(link(in(f->dir, "state.db-wal"), in(dir, "state.db-wal")), 0);
    assert_int_equal(store_restore(in(f->dir, "backup"), dir, &f->err), 0);
    expect_synced(3); /* the copy, the log of the lost file, the file */
    remove_dir(dir);
}

static void test_migration(void **state)
{
    struct fixture *f = *state;
    sqlite3 *db;
    char *text;
    FILE *in_file = fopen(FIXTURES "/format-1.sql", "r");

    assert_non_null(in_file);
    text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, in_file) > 0);
    fclose(in_file);
    assert_int_equal(sqlite3_open(in(f->dir, "state.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(text);
    names_watch();
    fixture_open(f);
    expect_synced(1);
}

/* Closed, and with a page that is damaged. */
static void begin_damaged(struct fixture *f)
{
    begin(f);
    for (int i = 0; i < 600; i++) {
        char name[16];
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_close(f);
    spoil(in(f->dir, "state.db"), (long)file_size(f, "state.db") - 4096, 4096);
}

static void test_salvage(void **state)
{
    struct fixture *f = *state;

    names_watch();
    begin_damaged(f);
    fixture_open(f);
    assert_true(file_size(f, "state.db.damaged") > 0);
    expect_synced(3); /* the backup, the damaged file, and what replaces it beside its log */
}

static void test_damaged_log(void **state)
{
    struct fixture *f = *state;
    char dir[96];

    begin(f);
    for (int i = 0; i < 10; i++) {
        put(f, "a", "y", i);
        assert_true(fixture_sync(f));
    }
    snprintf(dir, sizeof(dir), "%s/crashed", f->dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    copy_store(f->dir, dir);
    fixture_close(f);
    f->options.path = dir;
    spoil(in(dir, "state.db-wal"), 32 + 24 + 100, 8);
    names_watch();
    fixture_open(f);
    assert_true(file_size(f, "crashed/state.db-wal.damaged") > 0);
    expect_synced(2); /* kept, and settled */
    fixture_close(f);
    remove_dir(dir);
    f->options.path = f->dir;
}

/* ---- a salvage that does not finish ---- */

/* Everything was folded: what is left is the store that it was, without its damaged page. */
static void check_salvaged(struct fixture *f, const char *epoch)
{
    struct store_identity now;
    struct store_damage d;

    store_damage(f->store, &d);
    assert_true(d.salvaged);
    assert_false(d.log_missing || d.log || d.own_account);
    store_identity(f->store, &now);
    assert_string_equal(now.epoch, epoch);
    assert_false(now.restored);
    assert_int_equal(committed(f, "a", "x"), 7);
}

/* False: it ends before. */
static bool open_and_die(struct fixture *f, int n)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        names_die_after(n);
        int result = store_open(&f->loop, &f->options, &f->store, &f->err);
        names_die_after(-1);
        _exit(result ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) &&
                (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NAMES_DIED));
    return WEXITSTATUS(status) == NAMES_DIED;
}

static void test_killed_salvage(void **state)
{
    struct fixture *f = *state, g;
    struct store_identity before;
    bool died = true;
    int n = 0;

    fixture_open(f);
    store_identity(f->store, &before);
    fixture_close(f);
    begin_damaged(f);
    for (; died && n < 1000; n++) {
        fixture_init(&g);
        fixture_in_memory(&g);
        copy_store(f->dir, g.dir);
        died = open_and_die(&g, n);
        fixture_open(&g);
        check_salvaged(&g, before.epoch);
        fixture_reopen(&g);
        check_salvaged(&g, before.epoch);
        fixture_fini(&g);
    }
    assert_false(died);
    assert_true(n > 20);
}

/* What can be read is served where the disk is read-only then, and writes go on once it is not. */
static void test_salvage_that_is_not_put_in_place(void **state)
{
    static const int reasons[] = {EROFS, EIO};
    struct fixture *f = *state, g, killed;
    struct store_identity before;

    fixture_open(f);
    store_identity(f->store, &before);
    fixture_close(f);
    begin_damaged(f);
    for (size_t i = 0; i < COUNT(reasons); i++) {
        fixture_init(&g);
        copy_store(f->dir, g.dir);
        names_refuse("state.db", reasons[i]);
        if (reasons[i] == EROFS) {
            fixture_open(&g);
            assert_int_equal(store_disk(g.store), STORE_DISK_READ_ONLY);
            check_salvaged(&g, before.epoch);
        } else {
            assert_int_equal(store_open(&g.loop, &g.options, &g.store, &g.err), -1);
            assert_true(str_contains(g.err.message, STR("cannot be put in place")));
            g.store = NULL;
        }
        names_refuse(NULL, 0);
        if (g.store)
            fixture_await(&g, STORE_DISK_WRITABLE);
        else
            fixture_open(&g);
        check_salvaged(&g, before.epoch);
        put(&g, "a", "y", 8);
        assert_true(fixture_sync(&g));
        fixture_init(&killed);
        copy_store(g.dir, killed.dir);
        fixture_fini(&g);
        assert_true(file_size(&killed, "state.db-wal") > EMPTY_LOG);
        fixture_open(&killed);
        check_salvaged(&killed, before.epoch);
        assert_int_equal(committed(&killed, "a", "y"), 8);
        fixture_fini(&killed);
    }
}

/* ---- a restore that does not finish ---- */

static bool has_only_a_lock(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    bool only = true;

    while (d && (e = readdir(d)))
        only &= e->d_name[0] == '.' || !strcmp(e->d_name, "lock");
    if (d)
        closedir(d);
    return only;
}

enum outcome { OUTCOME_NOTHING, OUTCOME_REFUSED, OUTCOME_WHOLE, N_OUTCOMES };

static enum outcome look(struct fixture *f, const char *dir, const char *refusal)
{
    bool nothing = has_only_a_lock(dir);

    if (nothing)
        return OUTCOME_NOTHING;
    f->options.path = dir;
    err_clear(&f->err);
    if (!store_open(&f->loop, &f->options, &f->store, &f->err)) {
        f->pods = store_resource(f->store, STR("pods"));
        assert_int_equal(committed(f, "a", "x"), 7);
        fixture_close(f);
        return OUTCOME_WHOLE;
    }
    f->store = NULL;
    if (!str_contains(f->err.message, STR("did not finish: run `sublet restore` again")) &&
        !(refusal && str_contains(f->err.message, str_c(refusal))))
        fail_msg("%.*s", STR_F(f->err.message));
    assert_int_equal(access(in(dir, "state.db"), F_OK), -1);
    return OUTCOME_REFUSED;
}

/* The process dies instead of its nth operation on a name; false: it ends before. */
static bool restore_and_die(const char *backup, const char *dir, int n)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        struct err err;
        err_init(&err, NULL);
        names_die_after(n);
        int result = store_restore(backup, dir, &err);
        names_die_after(-1);
        _exit(result ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) &&
                (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NAMES_DIED));
    return WEXITSTATUS(status) == NAMES_DIED;
}

static void kill_everywhere(struct fixture *f, bool lost_file)
{
    int counts[N_OUTCOMES] = {0}, n = 0;
    char dir[96], backup[96], crashed[96];
    bool died;

    begin(f);
    snprintf(dir, sizeof(dir), "%s/restored", f->dir);
    snprintf(backup, sizeof(backup), "%s/backup", f->dir);
    snprintf(crashed, sizeof(crashed), "%s/crashed", f->dir);
    assert_int_equal(mkdir(crashed, 0700), 0);
    copy_store(f->dir, crashed);
    fixture_close(f);
    do {
        if (lost_file) {
            assert_int_equal(mkdir(dir, 0700), 0);
            copy_store(crashed, dir);
            assert_true(file_size(f, "restored/state.db-wal") > 0);
            assert_int_equal(unlink(in(dir, "state.db")), 0);
        }
        died = restore_and_die(backup, dir, n++);
        enum outcome outcome = look(f, dir, lost_file ? "and its log is not" : NULL);
        counts[outcome]++;
        if (outcome != OUTCOME_WHOLE)
            assert_int_equal(store_restore(backup, dir, &f->err), 0);
        assert_int_equal(look(f, dir, NULL), OUTCOME_WHOLE);
        remove_dir(dir);
    } while (died && n < 1000);
    remove_dir(crashed);
    f->options.path = f->dir;
    print_message("killed at %d operations: nothing %d, refused %d, whole %d\n", n,
                  counts[OUTCOME_NOTHING], counts[OUTCOME_REFUSED], counts[OUTCOME_WHOLE]);
    assert_false(died);
    assert_true(counts[OUTCOME_NOTHING] <= (lost_file ? 0 : 2));
    assert_true(counts[OUTCOME_REFUSED] > 5 && counts[OUTCOME_WHOLE] > 1);
}

static void test_killed_restore(void **state)
{
    kill_everywhere(*state, false);
}

/* The log that a lost file left refuses a start; it must, until the restored file is there. */
static void test_killed_restore_beside_a_log(void **state)
{
    kill_everywhere(*state, true);
}

/* What other processes left: a backup on its way from a pipe, a restore of an earlier program. */
static void test_remains(void **state)
{
    static const char *const names[] = {"state.db.restored", "state.db.partial",
                                        STORE_RESTORE_INPUT, STORE_RESTORE_INPUT ".partial"};
    struct fixture *f = *state;
    char dir[96], backup[96];

    begin(f);
    fixture_close(f);
    snprintf(dir, sizeof(dir), "%s/restored", f->dir);
    snprintf(backup, sizeof(backup), "%s/backup", f->dir);
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_int_equal(mkdir(dir, 0700), 0);
        int fd = open(in(dir, names[i]), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(look(f, dir, NULL), OUTCOME_REFUSED);
        assert_true(str_contains(f->err.message, str_c(names[i])));
        /* One that fails is not finished either. */
        assert_int_equal(store_restore("/dev/null", dir, &f->err), -1);
        assert_int_equal(look(f, dir, NULL), OUTCOME_REFUSED);
        assert_int_equal(store_restore(backup, dir, &f->err), 0);
        assert_int_equal(look(f, dir, NULL), OUTCOME_WHOLE);
        remove_dir(dir);
    }
    f->options.path = f->dir;
}

/* A backup that is none leaves no directory that was not there; in one that was, no empty store
 * begins in place of what was to be restored. */
static void test_refused_restore(void **state)
{
    struct fixture *f = *state;
    char dir[96];

    snprintf(dir, sizeof(dir), "%s/restored", f->dir);
    assert_int_equal(store_restore("/dev/null", dir, &f->err), -1);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(store_restore("/dev/null", dir, &f->err), -1);
    assert_int_equal(look(f, dir, NULL), OUTCOME_REFUSED);
    assert_int_equal(unlink(in(dir, "state.db.restored")), 0);
    assert_int_equal(look(f, dir, NULL), OUTCOME_NOTHING);
    remove_dir(dir);
    f->options.path = f->dir;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(backup_and_restore),
        TEST(migration),
        TEST(salvage),
        TEST(damaged_log),
        TEST(killed_salvage),
        TEST(salvage_that_is_not_put_in_place),
        TEST(killed_restore),
        TEST(killed_restore_beside_a_log),
        TEST(remains),
        TEST(refused_restore),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
