/* SPDX-License-Identifier: Apache-2.0
 * Crashes need a process of their own that may die; the parent then compares what its
 * successor finds with what was answered. */
#include "crash.h"
#include "fault_vfs.h"

#include <sublet/store_quarantine.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct report {
    int key, value;
    int64_t revision;
};

/* --- the child --- */
struct pending {
    struct child *child;
    int n;
    struct report reports[6];
};

struct child {
    struct fixture *f;
    int out;
    unsigned seed;
    int counter, flying;
    size_t padding;
};

static void on_answer(void *ctx, const struct err *err)
{
    struct pending *p = ctx;
    ssize_t size = (ssize_t)((size_t)p->n * sizeof(p->reports[0]));

    if (err || write(p->child->out, p->reports, (size_t)size) != size)
        _exit(3);
    p->child->flying--;
    free(p);
}

static void key_name(int key, char name[8])
{
    snprintf(name, 8, "k%d", key % 100);
}

static int64_t child_write(struct child *c, int key, int *ret_value)
{
    static char bytes[65536];
    char name[8];
    struct store *s = c->f->store;

    key_name(key, name);
    const struct store_object *o = store_latest(s, c->f->pods, STR("a"), str_c(name));
    bool gone = o && !(rand_r(&c->seed) % 5);
    int64_t revision = store_next_revision(s);
    *ret_value = gone ? -1 : ++c->counter;
    int n =
        snprintf(bytes, sizeof(bytes), "{\"v\":%d,\"rv\":%lld}", c->counter, (long long)revision);
    memset(bytes + n, ' ', c->padding);
    struct store_write w = {
        .op = gone ? STORE_DELETE
              : o  ? STORE_UPDATE
                   : STORE_CREATE,
        .resource = c->f->pods,
        .skip = 1,
        .expected = o ? o->revision : 0,
        .ns = STR("a"),
        .name = str_c(name),
        .bytes = {bytes, (size_t)n + c->padding},
        .labels = STR("app\0web\0"),
        .fields = STR("status.phase\0Running\0"),
    };
    if (store_write(s, &w, NULL))
        _exit(4);
    return revision;
}

static void child_main(struct child *c)
{
    struct store *s;

    if (uv_loop_init(&c->f->loop) || store_open(&c->f->loop, &c->f->options, &s, &c->f->err))
        _exit(2);
    c->f->store = s;
    c->f->pods = store_resource(s, STR("pods"));
    c->counter = (int)store_revision(s);
    for (;;) {
        struct pending *p = calloc(1, sizeof(*p));
        if (!p)
            _exit(5);
        p->child = c;
        p->n = 1 + rand_r(&c->seed) % 6;
        for (int i = 0; i < p->n; i++) {
            p->reports[i].key = rand_r(&c->seed) % CRASH_KEYS;
            p->reports[i].revision = child_write(c, p->reports[i].key, &p->reports[i].value);
        }
        store_on_commit(s, on_answer, p);
        c->flying++;
        do
            uv_run(&c->f->loop, c->flying < 8 ? UV_RUN_NOWAIT : UV_RUN_ONCE);
        while (c->flying >= 8);
    }
}

/* --- the parent --- */
static void take_report(struct crash *c, const struct report *r)
{
    struct crash_key *k = &c->keys[r->key];

    assert_true(r->revision > k->revision);
    *k = (struct crash_key){r->revision, r->value};
    if (r->revision > c->newest)
        c->newest = r->revision;
    c->answers++;
}

static void read_reports(struct crash *c, int in)
{
    struct report r;
    size_t have = 0;

    for (;;) {
        ssize_t n = read(in, (char *)&r + have, sizeof(r) - have);
        if (n <= 0)
            break;
        have += (size_t)n;
        if (have == sizeof(r)) {
            take_report(c, &r);
            have = 0;
        }
    }
}

/* A thread of the parent drains the pipe, so that the child never waits for it. */
struct reader {
    struct crash *c;
    int in;
};

static void reader_main(void *ctx)
{
    struct reader *r = ctx;

    read_reports(r->c, r->in);
}

static char *slurp(const char *path, size_t *ret_size)
{
    FILE *in = fopen(path, "r");
    long size;

    *ret_size = 0;
    if (!in)
        return NULL;
    fseek(in, 0, SEEK_END);
    size = ftell(in);
    rewind(in);
    char *bytes = calloc(1, (size_t)size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, in), size);
    fclose(in);
    *ret_size = (size_t)size;
    return bytes;
}

static void spill(const char *path, const char *bytes, size_t size)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static void lose(const char *path, unsigned *seed)
{
    enum { SECTOR = 512 };
    char durable_path[160];
    size_t durable_size, now_size;

    snprintf(durable_path, sizeof(durable_path), "%s.durable", path);
    char *now = slurp(path, &now_size);
    if (!now)
        return;
    char *durable = slurp(durable_path, &durable_size);
    size_t size = rand_r(seed) % 2 ? now_size : durable_size;
    char *mixed = calloc(1, size + SECTOR);
    unsigned share = (unsigned)rand_r(seed) % 5; /* of the unsynced sectors, in quarters */

    assert_non_null(mixed);
    for (size_t at = 0; at < size; at += SECTOR) {
        bool written = (unsigned)rand_r(seed) % 4 < share;
        const char *from = written ? now : durable;
        size_t have = written ? now_size : durable_size;
        if (at < have)
            memcpy(mixed + at, from + at, have - at < SECTOR ? have - at : SECTOR);
    }
    spill(path, mixed, size);
    free(mixed);
    free(durable);
    free(now);
}

static void shadow_path(const struct crash *c, const char *name, char path[160])
{
    snprintf(path, 160, "%s/%s", c->f->dir, name);
}

/* The parent closed the store in order: all of the file is durable, and there is no log. */
static void start_shadows(const struct crash *c)
{
    char path[160];
    size_t size;

    shadow_path(c, "state.db-wal.durable", path);
    unlink(path);
    shadow_path(c, "state.db", path);
    char *bytes = slurp(path, &size);
    shadow_path(c, "state.db.durable", path);
    if (bytes)
        spill(path, bytes, size);
    free(bytes);
}

void crash_power_loss(struct crash *c, unsigned seed)
{
    char path[160];

    shadow_path(c, "state.db", path);
    lose(path, &seed);
    shadow_path(c, "state.db-wal", path);
    lose(path, &seed);
}

void crash_run(struct crash *c, unsigned seed, int ms)
{
    int ends[2], status;
    uv_thread_t thread;

    assert_null(c->f->store);
    if (c->power)
        start_shadows(c);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (c->power)
            fault_shadow();
        struct child child = {.f = c->f, .out = ends[1], .seed = seed, .padding = c->padding};
        close(ends[0]);
        child_main(&child);
    }
    close(ends[1]);
    struct pollfd first = {.fd = ends[0], .events = POLLIN};
    assert_int_equal(poll(&first, 1, 60000), 1);
    struct reader reader = {c, ends[0]};
    assert_int_equal(uv_thread_create(&thread, reader_main, &reader), 0);
    usleep((useconds_t)ms * 1000);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    uv_thread_join(&thread);
    close(ends[0]);
    assert_true(WIFSIGNALED(status));
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

/* A key that is absent although its last reported version was none of a delete: the delete must be
 * among the events since then. */
static int64_t find_delete(struct crash *c, const char *name, int64_t since)
{
    int64_t oldest = store_oldest_revision(c->f->store), found = 0;
    const struct store_event *e;
    struct store_watch *w;
    bool expired;

    assert_int_equal(store_watch_open(c->f->store, c->f->pods, since > oldest ? since : oldest,
                                      on_wake, NULL, &w, &c->f->err),
                     0);
    while ((e = next_event(c->f, w, &expired))) {
        if (str_eqc(e->object->name, name))
            found = e->type == STORE_DELETED ? e->revision : 0;
    }
    store_watch_close(w);
    assert_true(found);
    return found;
}

void crash_check(struct crash *c)
{
    struct store *s = c->f->store;
    struct store_damage damage;
    char name[8];

    store_damage(s, &damage); /* an interrupted write is none */
    assert_false(damage.log || damage.salvaged || damage.own_account || damage.history);
    assert_int_equal(damage.objects + damage.nameless + damage.records + damage.unattributed, 0);
    assert_true(store_revision(s) >= c->newest);
    assert_true(store_next_revision(s) > store_revision(s));
    for (int i = 0; i < CRASH_KEYS; i++) {
        struct crash_key *k = &c->keys[i];
        key_name(i, name);
        const struct store_object *o = store_get(s, c->f->pods, STR("a"), str_c(name));
        if (o && o->revision > k->revision) {
            /* Committed and not reported any more: newer than all that was. */
            *k = (struct crash_key){o->revision, value_of(o)};
        } else if (o) {
            assert_int_equal(o->revision, k->revision);
            assert_int_equal(value_of(o), k->value);
        } else if (k->value != -1 && k->revision) {
            *k = (struct crash_key){find_delete(c, name, k->revision), -1};
        }
    }
    c->newest = store_revision(s);
}
