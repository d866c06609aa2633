/* SPDX-License-Identifier: Apache-2.0
 * What every test of the store needs, so that each of them says only what it is about. */
#include "harness.h"
#include "fault_vfs.h"
#include "store/impl.h"

#include <sublet/clock.h>

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/sublet-store-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_int_equal(uv_loop_init(&f->loop), 0);
    err_init(&f->err, NULL);
    f->options.path = f->dir;
}

void remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

void fixture_fini(struct fixture *f)
{
    fixture_close(f);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    remove_dir(f->dir);
}

void fixture_in_memory(struct fixture *f)
{
    char memory[sizeof(f->dir)];

    snprintf(memory, sizeof(memory), "/dev/shm/sublet-test-XXXXXX");
    if (!mkdtemp(memory))
        return;
    remove_dir(f->dir);
    memcpy(f->dir, memory, sizeof(memory));
}

void fixture_open(struct fixture *f)
{
    if (store_open(&f->loop, &f->options, &f->store, &f->err))
        fail_msg("%.*s", STR_F(f->err.message));
    f->pods = store_resource(f->store, STR("pods"));
}

static int64_t wall_next_day(void)
{
    return clock_wall_us(&CLOCK_SYSTEM) + INT64_C(90000) * 1000000;
}

void fixture_next_day(struct fixture *f)
{
    f->options.wall_us = wall_next_day;
}

static void on_closed(void *ctx)
{
    *(bool *)ctx = true;
}

void fixture_close(struct fixture *f)
{
    bool closed = false;

    if (!f->store)
        return;
    store_close(f->store, on_closed, &closed);
    f->store = NULL;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(closed);
}

void fixture_reopen(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f);
}

struct answer {
    bool done, ok;
};

static void on_done(void *ctx, const struct err *err)
{
    struct answer *a = ctx;

    assert_false(a->done);
    a->done = true;
    a->ok = !err;
}

bool fixture_sync(struct fixture *f)
{
    struct answer a = {0};

    store_on_commit(f->store, on_done, &a);
    assert_false(a.done);
    while (!a.done)
        uv_run(&f->loop, UV_RUN_ONCE);
    return a.ok;
}

static void on_time(uv_timer_t *timer)
{
    (void)timer;
}

/* The store's own timers do not keep the loop alive. */
void fixture_run(struct fixture *f, uint64_t ms)
{
    uv_timer_t awake;
    uint64_t end = uv_now(&f->loop) + ms;

    uv_timer_init(&f->loop, &awake);
    uv_timer_start(&awake, on_time, ms, 0);
    while (uv_now(&f->loop) < end)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&awake, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

void fixture_await(struct fixture *f, enum store_disk disk)
{
    for (int i = 0; i < 3000 && store_disk(f->store) != disk; i++)
        fixture_run(f, 10);
    assert_int_equal(store_disk(f->store), disk);
}

void fixture_settle(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
}

int64_t try_write_of(struct fixture *f, unsigned resource, enum store_op op, const char *ns,
                     const char *name, int value, int64_t expected)
{
    char bytes[96];
    int64_t revision = store_next_revision(f->store);
    int n = snprintf(bytes, sizeof(bytes), "{\"v\":%d,\"rv\":%lld}", value, (long long)revision);
    struct store_write w = {
        .op = op,
        .resource = resource,
        .skip = 1,
        .expected = expected,
        .ns = str_c(ns),
        .name = str_c(name),
        .uid = STR("u-1"),
        .bytes = {bytes, (size_t)n},
        .labels = STR("app\0web\0"),
        .fields = STR("status.phase\0Running\0"),
    };

    err_clear(&f->err);
    if (store_write(f->store, &w, &f->err)) {
        assert_int_equal(store_next_revision(f->store), revision);
        return -1;
    }
    assert_int_equal(store_next_revision(f->store), revision + 1);
    return revision;
}

int64_t try_write(struct fixture *f, enum store_op op, const char *ns, const char *name, int value,
                  int64_t expected)
{
    return try_write_of(f, f->pods, op, ns, name, value, expected);
}

int64_t put(struct fixture *f, const char *ns, const char *name, int value)
{
    const struct store_object *o = store_latest(f->store, f->pods, str_c(ns), str_c(name));
    int64_t revision =
        try_write(f, o ? STORE_UPDATE : STORE_CREATE, ns, name, value, o ? o->revision : 0);

    if (revision < 0)
        fail_msg("%.*s", STR_F(f->err.message));
    return revision;
}

int64_t delete(struct fixture *f, const char *ns, const char *name)
{
    const struct store_object *o = store_latest(f->store, f->pods, str_c(ns), str_c(name));

    assert_non_null(o);
    int64_t revision = try_write(f, STORE_DELETE, ns, name, value_of(o), o->revision);
    assert_true(revision > 0);
    return revision;
}

void count_wake(void *ctx)
{
    if (ctx)
        ++*(int *)ctx;
}

struct store_watch *open_watch(struct fixture *f, unsigned resource, int64_t revision, int *wakes)
{
    struct store_watch *w = NULL;

    err_clear(&f->err);
    if (store_watch_open(f->store, resource, revision, count_wake, wakes, &w, &f->err))
        assert_null(w);
    return w;
}

const struct store_event *next_event(struct fixture *f, struct store_watch *w, bool *ret_expired)
{
    const struct store_event *e;

    while (!(e = store_watch_next(w, ret_expired)) && !*ret_expired &&
           store_watch_position(w) < store_revision(f->store))
        uv_run(&f->loop, UV_RUN_ONCE);
    return e;
}

static void on_recalled(void *ctx)
{
    *(bool *)ctx = true;
}

int scan_at(struct fixture *f, struct str ns, struct str after_ns, struct str after_name,
            int64_t revision, store_scan_cb each, void *ctx)
{
    bool recalled = false;
    struct store_recall *r = NULL;

    if (revision && revision <= store_revision(f->store)) {
        r = store_recall_open(f->store, f->pods, revision, on_recalled, &recalled);
        bool at_once = store_recall_ready(r);
        while (!store_recall_ready(r))
            uv_run(&f->loop, UV_RUN_ONCE);
        assert_int_equal(recalled, !at_once);
    }
    int result =
        store_scan(f->store, f->pods, ns, after_ns, after_name, revision, each, ctx, &f->err);
    store_recall_close(r);
    return result;
}

int value_of(const struct store_object *o)
{
    int value;
    long long revision;
    char text[96];

    if (!o)
        return -1;
    snprintf(text, sizeof(text), "%.*s", STR_F(o->bytes));
    assert_int_equal(sscanf(text, "{\"v\":%d,\"rv\":%lld}", &value, &revision), 2);
    assert_int_equal(revision, o->revision);
    assert_int_equal(o->skip, 1);
    assert_true(str_eq(o->labels, STR("app\0web\0")));
    assert_true(str_eq(o->fields, STR("status.phase\0Running\0")));
    return value;
}

int count_hidden(struct fixture *f, int n)
{
    char name[16];
    int hidden = 0;

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        int value = committed(f, "a", name);
        assert_true(value == i || value < 0);
        assert_false(store_is_absent(f->store, f->pods, STR("a"), str_c(name)));
        hidden += value < 0;
    }
    return hidden;
}

int committed(struct fixture *f, const char *ns, const char *name)
{
    return value_of(store_get(f->store, f->pods, str_c(ns), str_c(name)));
}

int latest(struct fixture *f, const char *ns, const char *name)
{
    return value_of(store_latest(f->store, f->pods, str_c(ns), str_c(name)));
}

int64_t file_size(struct fixture *f, const char *name)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    return stat(path, &st) ? -1 : (int64_t)st.st_size;
}

static void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct stat st;

    if (in >= 0 && !fstat(in, &st)) {
        for (off_t left = st.st_size; left > 0;) {
            ssize_t n = sendfile(out, in, NULL, (size_t)left);
            assert_true(n > 0);
            left -= n;
        }
        close(in);
    }
    close(out);
}

void copy_store(const char *from, const char *to)
{
    static const char *const FILES[] = {"state.db", "state.db-wal", "state.db-wal.lost"};
    char source[512], target[512];

    for (size_t i = 0; i < COUNT(FILES); i++) {
        snprintf(source, sizeof(source), "%s/%s", from, FILES[i]);
        snprintf(target, sizeof(target), "%s/%s", to, FILES[i]);
        if (i < 2 || !access(source, F_OK))
            copy_file(source, target);
    }
}

int64_t query(struct fixture *f, const char *sql)
{
    char path[128];
    sqlite3 *db;
    sqlite3_stmt *q;

    assert_null(f->store);
    snprintf(path, sizeof(path), "%s/state.db", f->dir);
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, "unix"), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
    int rc = sqlite3_step(q);
    int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    sqlite3_finalize(q);
    /* Closing it as others do would take the log away: see store/db_log.c. */
    sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

void fixture_quiet(struct fixture *f)
{
    struct store *s = f->store;

    s->last_commit_ms -= STORE_QUIET_MS;
    uv_timer_stop(&s->quiet);
    s->quiet.timer_cb(&s->quiet);
    fixture_settle(f);
    assert_false(s->tidy);
}

int fixture_setup(void **state)
{
    static struct fixture f;

    fixture_init(&f);
    *state = &f;
    return 0;
}

int fixture_teardown(void **state)
{
    fixture_fini(*state);
    return 0;
}

int fault_setup(void **state)
{
    fault_install();
    return fixture_setup(state);
}

int fault_teardown(void **state)
{
    fault_disarm();
    return fixture_teardown(state);
}

char *path_in(struct fixture *f, const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s/%s", f->dir, name);
    return path;
}
