/* SPDX-License-Identifier: Apache-2.0
 * A disk that is full, over its quota, read-only, or no longer ours: what of it is served and
 * stored in each state, at start and while running, by which failure it is noticed, and that the
 * state ends by itself. First with the failures of every operation, then on a real file system that
 * is filled and made read-only, in a mount namespace of this process. */
#include "fault_vfs.h"
#include "harness.h"

#include <sublet/store_admin.h>
#include <sublet/store_failure.h>
#include <sublet/store_identity.h>
#include <sublet/store_quarantine.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is taken in a state ---- */

/* As a client sees it: 0, or the code of the error, now or once it was to be durable. */
static int outcome(struct fixture *f, int64_t revision)
{
    if (revision < 0) {
        assert_int_equal(f->err.kind == &ERR_STORAGE ? f->err.retry_after : STORE_DISK_RETRY_S,
                         STORE_DISK_RETRY_S);
        return f->err.kind->code;
    }
    return fixture_sync(f) ? 0 : 507;
}

static int create(struct fixture *f, const char *name)
{
    return outcome(f, try_write(f, STORE_CREATE, "a", name, 1, 0));
}

static int64_t revision_of(struct fixture *f, const char *name)
{
    const struct store_object *o = store_latest(f->store, f->pods, STR("a"), str_c(name));

    assert_non_null(o);
    return o->revision;
}

static int update(struct fixture *f, const char *name, int value)
{
    return outcome(f, try_write(f, STORE_UPDATE, "a", name, value, revision_of(f, name)));
}

static int removal(struct fixture *f, const char *name)
{
    return outcome(f, try_write(f, STORE_DELETE, "a", name, 1, revision_of(f, name)));
}

static int growth(struct fixture *f, const char *name, size_t bytes, bool ending)
{
    static char text[65536];
    struct store_write w = {.op = STORE_UPDATE,
                            .resource = f->pods,
                            .expected = revision_of(f, name),
                            .ns = STR("a"),
                            .name = str_c(name),
                            .uid = STR("u-1"),
                            .bytes = {text, bytes},
                            .ending = ending};

    memset(text, 'x', bytes);
    err_clear(&f->err);
    return outcome(f, store_write(f->store, &w, &f->err) ? -1 : 0);
}

static int record(struct fixture *f, const char *key, const char *value)
{
    store_record_put(f->store, RECORD_MAPPING, str_c(key), str_c(value));
    return fixture_sync(f) ? 0 : 507;
}

static void on_failure(void *ctx)
{
    ++*(int *)ctx;
}

/* Reads and watches are those of a healthy store. */
static void check_reads(struct fixture *f)
{
    struct store_watch *w;
    bool expired = false;
    struct str value;

    assert_int_equal(committed(f, "a", "kept"), 1);
    assert_true(store_count(f->store, f->pods) >= 1);
    assert_true(store_record_get(f->store, RECORD_MAPPING, STR("kept"), &value));
    assert_int_equal(store_watch_open(f->store, f->pods, store_revision(f->store), on_failure, NULL,
                                      &w, &f->err),
                     0);
    assert_null(store_watch_next(w, &expired));
    assert_false(expired);
    store_watch_close(w);
}

static void check_full(struct fixture *f)
{
    check_reads(f);
    assert_int_equal(create(f, "refused"), 507);
    assert_true(str_contains(f->err.message, STR("the disk is full")));
    assert_int_equal(update(f, "kept", 1), 0);
    assert_int_equal(growth(f, "grows", 2000, false), 507);
    assert_int_equal(growth(f, "grows", 2000, true), 0);
    assert_int_equal(growth(f, "grows", 9000, true), 507);
    assert_int_equal(record(f, "small", "1"), 0);
    assert_int_equal(removal(f, "grows"), 0);
    check_reads(f);
}

static void check_shut(struct fixture *f)
{
    struct store_stats before, after;
    int failures = 0;
    struct str value;

    check_reads(f);
    store_stats(f->store, &before);
    store_on_failure(f->store, on_failure, &failures);
    assert_int_equal(create(f, "refused"), 507);
    assert_int_equal(update(f, "kept", 2), 507);
    assert_int_equal(removal(f, "kept"), 507);
    assert_int_equal(growth(f, "kept", 1, true), 507);
    assert_int_equal(record(f, "refused", "1"), 507);
    assert_false(store_record_get(f->store, RECORD_MAPPING, STR("refused"), &value));
    assert_int_equal(failures, 1);
    store_on_failure(f->store, NULL, NULL);
    assert_true(fixture_sync(f)); /* there is nothing to store */
    store_stats(f->store, &after);
    assert_int_equal(after.failures, before.failures); /* the disk was left alone */
    check_reads(f);
}

static void fill_store(struct fixture *f)
{
    fixture_open(f);
    put(f, "a", "kept", 1);
    put(f, "a", "grows", 1);
    store_record_put(f->store, RECORD_MAPPING, STR("kept"), STR("1"));
    assert_true(fixture_sync(f));
}

static void check_over(struct fixture *f)
{
    fixture_await(f, STORE_DISK_WRITABLE);
    assert_int_equal(create(f, "after"), 0);
    assert_int_equal(update(f, "kept", 1), 0);
    fixture_reopen(f);
    assert_int_equal(store_disk(f->store), STORE_DISK_WRITABLE);
    assert_int_equal(committed(f, "a", "after"), 1);
    check_reads(f);
}

/* ---- by which failure it is noticed ---- */

struct way {
    unsigned ops, files;
    enum fault_kind kind;
    enum store_disk disk; /* when that is all that works no more */
};

static const struct way WAYS[] = {
    {FAULT_WRITE, FAULT_LOG, FAULT_FULL, STORE_DISK_USED_UP},
    {FAULT_WRITE, FAULT_LOG, FAULT_QUOTA, STORE_DISK_USED_UP},
    {FAULT_WRITE, FAULT_LOG, FAULT_READ_ONLY, STORE_DISK_READ_ONLY},
    {FAULT_WRITE, FAULT_LOG, FAULT_DENIED, STORE_DISK_READ_ONLY},
    {FAULT_SYNC, FAULT_LOG, FAULT_FULL, STORE_DISK_USED_UP},
    {FAULT_SYNC, FAULT_LOG, FAULT_QUOTA, STORE_DISK_USED_UP},
    {FAULT_SYNC, FAULT_LOG, FAULT_READ_ONLY, STORE_DISK_READ_ONLY},
};
#define N_WAYS COUNT(WAYS)

static void test_while_running(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_WAYS; i++) {
        struct fixture f;
        const struct way *way = &WAYS[i];

        fixture_init(&f);
        fill_store(&f);
        fault_arm(way->ops, way->files, way->kind, 0, -1);
        assert_int_equal(create(&f, "refused"), 507);
        if (store_disk(f.store) != way->disk)
            fail_msg("way %zu: state %d", i, store_disk(f.store));
        check_shut(&f);
        fault_disarm();
        check_over(&f);
        fixture_fini(&f);
    }
}

/* One operation finds no room, those after it do: the write is stored with the reserve's. */
static void test_reserve_takes_what_met_it(void **state)
{
    struct fixture *f = *state;

    fill_store(f);
    fault_arm(FAULT_WRITE, FAULT_LOG, FAULT_FULL, 0, 1);
    assert_int_equal(removal(f, "grows"), 0);
    assert_int_equal(fault_disarm(), 1);
    assert_int_equal(store_disk(f->store), STORE_DISK_FULL);
    assert_int_equal(create(f, "refused"), 507);
    check_over(f);
}

static void test_error_is_no_state(void **state)
{
    struct fixture *f = *state;

    fill_store(f);
    fault_arm(FAULT_WRITE, FAULT_LOG, FAULT_IO, 0, 1);
    assert_int_equal(create(f, "refused"), 507);
    assert_int_equal(store_disk(f->store), STORE_DISK_WRITABLE);
    fault_disarm();
    assert_int_equal(create(f, "after"), 0);
}

static void on_change(void *ctx)
{
    ++*(int *)ctx;
}

/* The database cannot grow, so the log is not folded; with the reserve's room it can. */
static void test_growth(void **state)
{
    struct fixture *f = *state;
    int changes = 0;

    fill_store(f);
    store_on_disk(f->store, on_change, &changes);
    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    for (int i = 0; store_disk(f->store) == STORE_DISK_WRITABLE; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        assert_true(i < 2000);
        int got = create(f, name);
        assert_true(got == 0 || got == 507);
    }
    assert_int_equal(changes, 1);
    assert_int_equal(store_disk(f->store), STORE_DISK_FULL);
    check_full(f);
    fault_disarm();
    check_over(f);
}

/* ---- at start ---- */

/* What a kill at this moment would leave. */
static void kill_store(struct fixture *f, char *ret_keep, size_t n)
{
    snprintf(ret_keep, n, "%s.killed", f->dir);
    assert_int_equal(mkdir(ret_keep, 0700), 0);
    copy_store(f->dir, ret_keep);
}

/* The log has answered writes, as after a kill. */
static void test_at_start(void **state)
{
    static const struct way ways[] = {
        {FAULT_WRITE | FAULT_TRUNCATE, FAULT_ANY, FAULT_FULL, STORE_DISK_FULL},
        {FAULT_WRITE | FAULT_TRUNCATE, FAULT_ANY, FAULT_QUOTA, STORE_DISK_FULL},
        {FAULT_WRITE | FAULT_TRUNCATE, FAULT_ANY, FAULT_READ_ONLY, STORE_DISK_READ_ONLY},
        {FAULT_OPEN, FAULT_LOG, FAULT_FULL, STORE_DISK_USED_UP},
        {FAULT_OPEN, FAULT_LOG, FAULT_DENIED, STORE_DISK_READ_ONLY},
    };
    struct fixture *f = *state;
    char keep[128];

    fill_store(f);
    kill_store(f, keep, sizeof(keep));
    fixture_close(f);
    for (size_t i = 0; i < COUNT(ways); i++) {
        bool no_log = ways[i].ops == FAULT_OPEN;
        copy_store(keep, f->dir);
        if (no_log)
            fixture_reopen(f), fixture_close(f);
        fault_arm(ways[i].ops, ways[i].files, ways[i].kind, 0, no_log ? 1 : -1);
        fixture_open(f);
        assert_int_equal(store_disk(f->store), ways[i].disk);
        assert_int_equal(committed(f, "a", "grows"), 1);
        if (ways[i].disk == STORE_DISK_FULL) /* nothing at all can be written */
            assert_int_equal(removal(f, "kept"), 507);
        if (!no_log)
            check_shut(f);
        fault_disarm();
        check_over(f);
        fixture_close(f);
    }
    remove_dir(keep);
}

static void test_start_of_nothing(void **state)
{
    static const enum fault_kind kinds[] = {FAULT_FULL, FAULT_QUOTA, FAULT_READ_ONLY};
    struct fixture *f = *state;

    for (size_t i = 0; i < 3; i++) {
        fault_arm(FAULT_WRITE, FAULT_ANY, kinds[i], 0, -1);
        err_clear(&f->err);
        assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
        f->store = NULL;
        assert_true(str_contains(f->err.message, STR("state.db: ")));
        fault_disarm();
    }
}

/* ---- a real file system ---- */

#define DISK ((size_t)16 << 20)

static void mount_disk(const char *dir)
{
    char options[64];

    snprintf(options, sizeof(options), "size=%zu,mode=0700", DISK);
    if (mount("sublet-test", dir, "tmpfs", 0, options))
        fail_msg("a file system of its own is what this test is about: %s", strerror(errno));
}

static void set_writable(const char *dir, bool writable)
{
    char options[64];

    snprintf(options, sizeof(options), "size=%zu,mode=0700", DISK);
    assert_int_equal(
        mount("sublet-test", dir, "tmpfs", MS_REMOUNT | (writable ? 0 : MS_RDONLY), options), 0);
}

static int disk_setup(void **state)
{
    fault_setup(state);
    mount_disk(((struct fixture *)*state)->dir);
    return 0;
}

static int disk_teardown(void **state)
{
    struct fixture *f = *state;

    fixture_close(f);
    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    return fault_teardown(state);
}

static void fill_disk(struct fixture *f)
{
    static const char bytes[65536];
    char path[128];
    size_t n = sizeof(bytes);

    snprintf(path, sizeof(path), "%s/other", f->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    while (n) {
        if (write(fd, bytes, n) < 0) {
            assert_int_equal(errno, ENOSPC);
            n /= 2;
        }
    }
    close(fd);
}

static void free_disk(struct fixture *f)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/other", f->dir);
    assert_int_equal(unlink(path), 0);
}

static void test_fills_and_empties(void **state)
{
    struct fixture *f = *state;

    fill_store(f);
    put(f, "a", "small", 1);
    assert_true(file_size(f, "reserve") >= (4 << 20));
    for (int i = 0; i < 3; i++) {
        fill_disk(f);
        /* What meets it may still be stored, with the reserve; then nothing is that grows. */
        for (int n = 0; store_disk(f->store) == STORE_DISK_WRITABLE; n++) {
            char name[24];
            snprintf(name, sizeof(name), "r%d-%d", i, n);
            assert_true(n < 1000);
            assert_int_equal(create(f, name), 0);
        }
        assert_int_equal(store_disk(f->store), STORE_DISK_FULL);
        assert_int_equal(file_size(f, "reserve"), 0);
        check_full(f);

        /* Started again: there is room for the log, and the reserve has its blocks or has not. */
        fixture_close(f);
        if (i)
            fill_disk(f);
        fixture_open(f);
        check_reads(f);
        assert_int_equal(store_disk(f->store), i ? STORE_DISK_FULL : STORE_DISK_WRITABLE);
        if (!i)
            fill_disk(f);
        assert_int_equal(removal(f, "small"), i ? 507 : 0);
        assert_int_equal(store_disk(f->store), i ? STORE_DISK_USED_UP : STORE_DISK_FULL);
        if (i)
            check_shut(f);
        free_disk(f);
        fixture_await(f, STORE_DISK_WRITABLE);
        assert_true(file_size(f, "reserve") >= (4 << 20));
        put(f, "a", "grows", 1);
        put(f, "a", "small", 1);
        assert_true(fixture_sync(f));
    }
    check_over(f);
}

/* The store filled the disk itself: what is deleted makes room for what is created. */
static void test_deletes_make_room(void **state)
{
    struct fixture *f = *state;
    static char bytes[60000];
    int created = 0, got = 0;
    int64_t now;

    memset(bytes, 'x', sizeof(bytes));
    fill_store(f);
    for (; !got; created++) {
        char name[16];
        struct store_write w = {.op = STORE_CREATE,
                                .resource = f->pods,
                                .ns = STR("big"),
                                .name = {name, 0},
                                .uid = STR("u"),
                                .bytes = {bytes, sizeof(bytes)}};
        w.name.n = (size_t)snprintf(name, sizeof(name), "b%d", created);
        got = outcome(f, store_write(f->store, &w, &f->err) ? -1 : 0);
    }
    assert_int_equal(got, 507);
    assert_in_range(created, 100, 300);
    assert_int_equal(store_disk(f->store), STORE_DISK_FULL);
    now = store_revision(f->store);
    for (int i = 0; i < created - 1; i++) {
        char name[16];
        snprintf(name, sizeof(name), "b%d", i);
        const struct store_object *o =
            store_latest(f->store, f->pods, STR("big"), (struct str){name, strlen(name)});
        if (!o)
            continue;
        assert_true(try_write(f, STORE_DELETE, "big", name, 1, o->revision) > 0);
        assert_true(fixture_sync(f));
    }
    assert_true(store_revision(f->store) > now);
    check_over(f);
    assert_int_equal(store_count(f->store, f->pods), 3);
}

struct backup {
    bool done, failed;
    char message[256];
};

static void on_backup(void *ctx, const struct err *err)
{
    struct backup *b = ctx;

    b->done = true;
    b->failed = err;
    if (err)
        snprintf(b->message, sizeof(b->message), "%.*s", STR_F(err->message));
}

static void back_up(struct fixture *f, const char *path, struct backup *ret)
{
    *ret = (struct backup){.done = false};
    store_backup(f->store, path, on_backup, ret);
    for (int i = 0; i < 200 && !ret->done; i++)
        fixture_run(f, 10);
    assert_true(ret->done);
}

/* What an admin does first. */
static void check_backup(struct fixture *f)
{
    struct fixture copy;
    struct backup b;
    char path[128];

    fixture_init(&copy);
    snprintf(path, sizeof(path), "%s/state.db", copy.dir);
    back_up(f, path, &b);
    assert_false(b.failed);
    fixture_open(&copy);
    check_reads(&copy);
    assert_int_equal(committed(&copy, "a", "grows"), 1);
    fixture_fini(&copy);
}

/* The life goes on in which the newest writes were answered: what the file lacks may be among
 * them. */
static void check_unproven(struct fixture *f)
{
    assert_false(store_is_absent(f->store, f->pods, STR("a"), STR("none")));
    assert_false(store_is_whole(f->store, f->pods, STR_NULL));
    assert_false(store_is_whole(f->store, f->pods, STR("a")));
}

static void check_proven(struct fixture *f)
{
    assert_true(store_is_absent(f->store, f->pods, STR("a"), STR("none")));
    assert_true(store_is_whole(f->store, f->pods, STR_NULL));
}

static void test_read_only_with_a_log(void **state)
{
    struct fixture *f = *state;
    char keep[128];

    /* A killed process: its answered writes are in the log. */
    fill_store(f);
    kill_store(f, keep, sizeof(keep));
    fixture_close(f);
    copy_store(keep, f->dir);
    remove_dir(keep);
    assert_true(file_size(f, "state.db-wal") > 0);

    for (int i = 0; i < 2; i++) { /* the second time with an empty log */
        set_writable(f->dir, false);
        fixture_open(f);
        assert_int_equal(store_disk(f->store), STORE_DISK_READ_ONLY);
        assert_int_equal(committed(f, "a", "grows"), 1);
        check_proven(f);
        check_shut(f);
        assert_true(str_contains(f->err.message, STR("Read-only file system")));
        check_backup(f);
        fixture_reopen(f);
        check_shut(f);
        set_writable(f->dir, true);
        fixture_await(f, STORE_DISK_WRITABLE);
        assert_int_equal(update(f, "grows", 1), 0);
        fixture_close(f);
        assert_int_equal(file_size(f, "state.db-wal"), EMPTY_LOG);
    }
    fixture_open(f);
    check_over(f);
}

/* What is left is read, and said to be without the log; no write follows what was lost. */
static void test_read_only_without_a_log(void **state)
{
    struct fixture *f = *state;
    struct store_identity before, after;
    struct store_damage d;
    char log[96];

    fill_store(f);
    store_identity(f->store, &before);
    fixture_close(f);
    snprintf(log, sizeof(log), "%s/state.db-wal", f->dir);
    assert_int_equal(unlink(log), 0);
    set_writable(f->dir, false);
    fixture_open(f);
    assert_int_equal(store_disk(f->store), STORE_DISK_READ_ONLY);
    store_damage(f->store, &d);
    assert_true(d.log_missing);
    store_identity(f->store, &after);
    assert_string_equal(before.epoch, after.epoch);
    check_unproven(f);
    check_shut(f);
    set_writable(f->dir, true);
    for (int i = 0; i < 50 && !str_contains(f->err.message, STR("its log is missing")); i++) {
        fixture_run(f, 100);
        check_shut(f);
    }
    assert_true(str_contains(f->err.message, STR("its log is missing")));
    fixture_reopen(f);
    store_damage(f->store, &d);
    assert_true(d.log_missing);
    store_identity(f->store, &after);
    assert_string_equal(before.epoch, after.from);
    check_proven(f);
    check_over(f);
}

/* The file is read without it, and both stay as they are until a start puts the log aside. */
static void test_read_only_with_the_log_of_another(void **state)
{
    struct fixture *f = *state, other;
    struct store_damage d;
    char file[96], mine[96];

    fill_store(f);
    fixture_close(f);
    fixture_init(&other);
    fill_store(&other);
    put(&other, "a", "other", 1);
    assert_true(fixture_sync(&other));
    snprintf(file, sizeof(file), "%s/state.db", f->dir);
    snprintf(mine, sizeof(mine), "%s/mine", f->dir);
    assert_int_equal(rename(file, mine), 0);
    copy_store(other.dir, f->dir);
    assert_int_equal(rename(mine, file), 0);
    fixture_fini(&other);
    int64_t size = file_size(f, "state.db-wal");

    set_writable(f->dir, false);
    fixture_open(f);
    assert_int_equal(store_disk(f->store), STORE_DISK_READ_ONLY);
    store_damage(f->store, &d);
    assert_true(d.log);
    assert_int_equal(committed(f, "a", "other"), -1);
    check_unproven(f);
    check_shut(f);
    set_writable(f->dir, true);
    for (int i = 0; i < 50 && !str_contains(f->err.message, STR("its log is lost")); i++) {
        fixture_run(f, 100);
        check_shut(f);
    }
    assert_true(str_contains(f->err.message, STR("its log is lost")));
    assert_int_equal(file_size(f, "state.db-wal"), size);
    fixture_reopen(f);
    store_damage(f->store, &d);
    assert_true(d.log);
    assert_int_equal(committed(f, "a", "other"), -1);
    assert_int_equal(file_size(f, "state.db-wal.damaged"), size);
    check_over(f);
}

/* A life cannot begin there: the previous one goes on, also once the disk takes writes. */
static void test_no_other_life_on_a_read_only_disk(void **state)
{
    struct fixture *f = *state;
    struct store_predecessor after = {.revision = 0};
    struct store_identity before, now;

    fill_store(f);
    store_identity(f->store, &before);
    memcpy(after.epoch, before.epoch, sizeof(after.epoch));
    fixture_close(f);
    set_writable(f->dir, false);
    f->options.after = &after;
    fixture_open(f);
    store_identity(f->store, &now);
    assert_memory_equal(&before, &now, sizeof(now));
    set_writable(f->dir, true);
    fixture_await(f, STORE_DISK_WRITABLE);
    assert_int_equal(update(f, "grows", 1), 0);
    f->options.after = NULL;
    fixture_reopen(f);
    store_identity(f->store, &now);
    assert_memory_equal(&before, &now, sizeof(now));
}

/* Another store was put into the directory meanwhile: it is not written over. */
static void test_another_store(void **state)
{
    struct fixture *f = *state;
    char keep[128];

    fill_store(f);
    kill_store(f, keep, sizeof(keep));
    put(f, "a", "later", 1);
    assert_true(fixture_sync(f));
    fixture_close(f);
    set_writable(f->dir, false);
    fixture_open(f);
    set_writable(f->dir, true);
    copy_store(keep, f->dir);
    remove_dir(keep);
    for (int i = 0; i < 200; i++) {
        check_reads(f);
        assert_int_equal(create(f, "refused"), 507);
        if (str_contains(f->err.message, STR("it holds another store now")))
            break;
        fixture_run(f, 50);
    }
    assert_int_equal(store_disk(f->store), STORE_DISK_READ_ONLY);
    check_shut(f);
    assert_true(str_contains(f->err.message, STR("it holds another store now")));
}

/* What is in memory is served; there is nothing that a backup could be taken of. */
static void test_no_store_any_more(void **state)
{
    struct fixture *f = *state;
    char path[128], aside[128], copy[192];
    struct store_watch *w;
    struct backup b;
    bool expired;
    int64_t first;

    fill_store(f);
    first = store_revision(f->store);
    for (int i = 0; i < 3; i++)
        put(f, "a", "later", i);
    assert_true(fixture_sync(f));
    fixture_close(f);
    set_writable(f->dir, false);
    fixture_open(f);
    set_writable(f->dir, true);
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    snprintf(copy, sizeof(copy), "%s/copy", f->dir);
    snprintf(aside, sizeof(aside), "%s/aside", f->dir);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int i = 0; i < 200; i++) {
        back_up(f, copy, &b);
        if (b.failed)
            break;
        fixture_run(f, 50);
    }
    assert_true(b.failed);
    assert_non_null(strstr(b.message, "state.db cannot be read: "));
    check_shut(f);
    /* What cannot be read now is not lost. */
    w = open_watch(f, f->pods, first, NULL);
    assert_null(next_event(f, w, &expired));
    store_watch_close(w);
    assert_true(store_is_whole(f->store, f->pods, STR_NULL));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(aside, path), 0);
    fixture_await(f, STORE_DISK_WRITABLE);
    w = open_watch(f, f->pods, first, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(value_of(next_event(f, w, &expired)->object), i);
    store_watch_close(w);
    check_over(f);
}

static void test_nothing_on_a_full_disk(void **state)
{
    struct fixture *f = *state;

    fill_disk(f);
    assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
    assert_true(str_contains(f->err.message, STR("No space left on device")));
    free_disk(f);
    set_writable(f->dir, false);
    assert_int_equal(store_open(&f->loop, &f->options, &f->store, &f->err), -1);
    assert_true(str_contains(f->err.message, STR("Read-only file system")));
    f->store = NULL;
    set_writable(f->dir, true);
    fill_store(f);
}

/* ---- damage on a disk that takes nothing ---- */

#define PAGE    4096
#define OBJECTS 300

/* A damaged page, or no tail: some of a killed store's file is lost, of its log nothing. */
static void damage_store(struct fixture *f, bool tail)
{
    static const char noise[PAGE] = {1, 2, 3};
    char keep[128], path[128], name[16];

    fixture_open(f);
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        put(f, "a", name, i);
    }
    assert_true(fixture_sync(f));
    fixture_reopen(f);
    put(f, "a", "kept", 1);
    store_record_put(f->store, RECORD_MAPPING, STR("kept"), STR("1"));
    assert_true(fixture_sync(f));
    kill_store(f, keep, sizeof(keep));
    fixture_close(f);
    copy_store(keep, f->dir);
    remove_dir(keep);
    assert_true(file_size(f, "state.db-wal") > 0);
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    if (tail) {
        assert_int_equal(truncate(path, file_size(f, "state.db") - 3 * PAGE), 0);
        return;
    }
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, noise, PAGE, 9 * PAGE), PAGE);
    close(fd);
}

static void check_damaged(struct fixture *f, bool tail, bool full)
{
    struct store_damage d;

    damage_store(f, tail);
    if (full) { /* and no reserve, whose room it would be made again in */
        char path[128];
        snprintf(path, sizeof(path), "%s/reserve", f->dir);
        assert_int_equal(unlink(path), 0);
        fill_disk(f);
    } else {
        set_writable(f->dir, false);
    }
    fixture_open(f);
    assert_int_equal(store_disk(f->store), full ? STORE_DISK_USED_UP : STORE_DISK_READ_ONLY);
    check_shut(f);
    store_damage(f->store, &d);
    assert_true(d.salvaged);
    int hidden = count_hidden(f, OBJECTS);
    assert_true(hidden > 0 && hidden < OBJECTS / 2);
    assert_int_equal(file_size(f, "state.db.damaged"), -1);

    if (full)
        free_disk(f);
    else
        set_writable(f->dir, true);
    fixture_await(f, STORE_DISK_WRITABLE);
    assert_true(file_size(f, "state.db.damaged") > 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(count_hidden(f, OBJECTS), hidden);
        check_reads(f);
        assert_int_equal(update(f, "kept", 1), 0);
        fixture_reopen(f);
    }
}

static void test_damaged(void **state)
{
    for (int i = 0; i < 4; i++) {
        struct fixture *f = *state;
        check_damaged(f, i % 2, i / 2);
        fixture_close(f);
        assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
        mount_disk(f->dir);
    }
}

static int bad_rows(struct fixture *f, const char *name)
{
    char path[128];
    sqlite3_stmt *q;
    sqlite3 *db;

    snprintf(path, sizeof(path), "file:%s/%s?immutable=1", f->dir, name);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, "unix"), 0);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT count(*) FROM version WHERE uid = 'bad'", -1, &q, NULL), 0);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    int n = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    assert_int_equal(sqlite3_close(db), 0);
    return n;
}

/* Of one object the newest version, of another one an older one, which nothing needs. */
static void damage_rows(struct fixture *f)
{
    fill_store(f);
    put(f, "a", "lost", 1);
    put(f, "a", "old", 1);
    put(f, "a", "old", 2);
    assert_true(fixture_sync(f));
    fixture_close(f);
    query(f, "UPDATE version SET uid = 'bad' WHERE name = 'lost' OR revision ="
             " (SELECT min(revision) FROM version WHERE name = 'old')");
}

enum lack { READ_ONLY, NO_ROOM, RESERVE_ONLY };

static void take_away(struct fixture *f, enum lack lack)
{
    char path[128];

    if (lack == READ_ONLY) {
        set_writable(f->dir, false);
        return;
    }
    snprintf(path, sizeof(path), "%s/reserve", f->dir);
    if (lack == NO_ROOM)
        assert_int_equal(unlink(path), 0);
    fill_disk(f);
}

/* A copy of damaged rows is there before they are written over: where the start had no disk to make
 * it on, as soon as there is one, and until then the rows stay. */
static void check_damaged_rows(struct fixture *f, enum lack lack)
{
    damage_rows(f);
    take_away(f, lack);
    fixture_open(f);
    char name[16] = "more"; /* the log has some room left */
    for (int i = 0; lack == RESERVE_ONLY && !create(f, name); i++)
        snprintf(name, sizeof(name), "more%d", i);
    assert_int_equal(store_disk(f->store), lack ? STORE_DISK_FULL : STORE_DISK_READ_ONLY);
    assert_int_equal(committed(f, "a", "lost"), -1);
    assert_int_equal(committed(f, "a", "old"), 2);
    if (lack == RESERVE_ONLY) {
        for (int i = 0; i < 4; i++)
            assert_int_equal(update(f, "kept", 1), 0);
        assert_int_equal(removal(f, "grows"), 0);
    }
    assert_int_equal(file_size(f, "state.db.damaged"), -1);

    if (lack == READ_ONLY)
        set_writable(f->dir, true);
    else
        free_disk(f);
    fixture_await(f, STORE_DISK_WRITABLE);
    assert_int_equal(bad_rows(f, "state.db.damaged"), 2);
    check_over(f);
    assert_int_equal(committed(f, "a", "lost"), -1);
    assert_int_equal(committed(f, "a", "old"), 2);
    assert_int_equal(update(f, "kept", 1), 0);
    fixture_quiet(f);
    fixture_close(f);
    assert_int_equal(bad_rows(f, "state.db"), 1); /* the object that is lost has no other */
}

static void test_damaged_rows(void **state)
{
    for (int i = READ_ONLY; i <= RESERVE_ONLY; i++) {
        struct fixture *f = *state;
        check_damaged_rows(f, (enum lack)i);
        assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
        mount_disk(f->dir);
    }
}

int main(void)
{
#define TEST(name)    cmocka_unit_test_setup_teardown(test_##name, fault_setup, fault_teardown)
#define ON_DISK(name) cmocka_unit_test_setup_teardown(test_##name, disk_setup, disk_teardown)
    const struct CMUnitTest tests[] = {
        TEST(while_running),
        TEST(reserve_takes_what_met_it),
        TEST(error_is_no_state),
        TEST(growth),
        TEST(at_start),
        TEST(start_of_nothing),
        ON_DISK(fills_and_empties),
        ON_DISK(deletes_make_room),
        ON_DISK(read_only_with_a_log),
        ON_DISK(read_only_without_a_log),
        ON_DISK(read_only_with_the_log_of_another),
        ON_DISK(no_other_life_on_a_read_only_disk),
        ON_DISK(another_store),
        ON_DISK(no_store_any_more),
        ON_DISK(nothing_on_a_full_disk),
        ON_DISK(damaged),
        ON_DISK(damaged_rows),
    };

    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        fprintf(stderr, "this test needs a mount namespace: %s\n", strerror(errno));
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
