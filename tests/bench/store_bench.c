/* SPDX-License-Identifier: Apache-2.0
 * Measures the store alone: creates with 32 in flight, the time to load 10,000 objects, memory.
 * Prints numbers and judges none: a test never asserts a time. Usage: store-bench [directory] */
#include <sublet/clock.h>
#include <sublet/store.h>
#include <uv.h>

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS   10000
#define IN_FLIGHT 32
#define BYTES     1024

struct bench {
    uv_loop_t loop;
    struct store *store;
    unsigned resource;
    int next, answered;
    int total, in_flight, batches;
    int64_t last_revision;
    enum store_op op;
};

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %.*s\n", what, STR_F(err->message));
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void open_store(struct bench *b, const char *dir)
{
    struct store_options options = {.path = dir};
    struct err err;

    err_init(&err, NULL);
    if (store_open(&b->loop, &options, &b->store, &err))
        die("open", &err);
    b->resource = store_resource(b->store, STR("configmaps"));
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

static void close_store(struct bench *b)
{
    store_close(b->store, on_closed, NULL);
    uv_run(&b->loop, UV_RUN_DEFAULT);
}

static void start_one(struct bench *b);

static void on_answer(void *ctx, const struct err *err)
{
    struct bench *b = ctx;

    if (err)
        die("write", err);
    b->answered++;
    if (store_revision(b->store) != b->last_revision)
        b->batches++;
    b->last_revision = store_revision(b->store);
    if (b->next < b->total)
        start_one(b);
}

static void start_one(struct bench *b)
{
    static char bytes[BYTES];
    char name[32];
    int n = snprintf(name, sizeof(name), "object-%d", b->next++ % OBJECTS);
    struct store_write w = {
        .op = b->op,
        .resource = b->resource,
        .skip = 1,
        .ns = STR("default"),
        .name = {name, (size_t)n},
        .uid = STR("01234567-89ab-cdef-0123-456789abcdef"),
        .bytes = {bytes, BYTES},
        .labels = STR("app\0bench\0"),
    };
    struct err err;

    if (b->op != STORE_CREATE)
        w.expected = store_latest(b->store, b->resource, w.ns, w.name)->revision;
    memset(bytes, 'x', BYTES);
    err_init(&err, NULL);
    if (store_write(b->store, &w, &err))
        die("write", &err);
    store_on_commit(b->store, on_answer, b);
}

static void run(struct bench *b, const char *what, enum store_op op, int total, int in_flight)
{
    b->next = b->answered = b->batches = 0;
    b->last_revision = 0;
    b->op = op;
    b->total = total;
    int64_t began = now_us();
    for (int i = 0; i < in_flight; i++)
        start_one(b);
    while (b->answered < total)
        uv_run(&b->loop, UV_RUN_ONCE);
    double seconds = (double)(now_us() - began) / 1e6;
    printf("%-28s %9.0f /s   %5.1f per commit, %6.0f commits/s\n", what, total / seconds,
           (double)total / b->batches, b->batches / seconds);
}

/* In KiB, from smaps_rollup. */
static long memory(const char *field)
{
    FILE *in = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long sum = 0;

    while (in && fgets(line, sizeof(line), in)) {
        if (!strncmp(line, field, strlen(field)))
            sum += strtol(line + strlen(field) + 1, NULL, 10);
    }
    if (in)
        fclose(in);
    return sum;
}

static void print_memory(const char *what)
{
    printf("%-28s %9ld KiB private dirty, %ld KiB Pss\n", what, memory("Private_Dirty"),
           memory("Pss"));
}

static bool on_object(void *ctx, const struct store_object *o)
{
    *(size_t *)ctx += o->bytes.n;
    return true;
}

static void scan(struct bench *b)
{
    size_t bytes = 0;
    struct err err;

    err_init(&err, NULL);
    int64_t began = now_us();
    for (int i = 0; i < 10; i++) {
        if (store_scan(b->store, b->resource, STR_NULL, STR_NULL, STR_NULL, 0, on_object, &bytes,
                       &err))
            die("scan", &err);
    }
    printf("%-28s %9lld us\n", "scan of 10,000", (long long)(now_us() - began) / 10);
}

static long disk(const char *dir, const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *in = fopen(path, "r");
    if (!in)
        return 0;
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    fclose(in);
    return size / 1024;
}

static void measure(struct bench *b, const char *dir)
{
    print_memory("before");
    open_store(b, dir);
    print_memory("empty store");
    long empty = memory("Private_Dirty");
    run(b, "creates, 32 in flight", STORE_CREATE, OBJECTS, IN_FLIGHT);
    run(b, "updates, 32 in flight", STORE_UPDATE, 30000, IN_FLIGHT);
    run(b, "updates, 1 in flight", STORE_UPDATE, 1000, 1);
    run(b, "updates, 1000 in flight", STORE_UPDATE, 50000, 1000);
    scan(b);
    print_memory("after it");
    printf("%-28s %9ld KiB, log %ld KiB\n", "file", disk(dir, "state.db"),
           disk(dir, "state.db-wal"));
    int64_t began = now_us();
    close_store(b);
    printf("%-28s %9.1f ms\n", "close", (double)(now_us() - began) / 1e3);

    began = now_us();
    open_store(b, dir);
    printf("%-28s %9.1f ms, %zu objects\n", "load", (double)(now_us() - began) / 1e3,
           store_count(b->store, b->resource));
    malloc_trim(0);
    print_memory("loaded");
    printf("%-28s %9ld bytes, of which %d are its JSON\n", "an object in memory",
           (memory("Private_Dirty") - empty) * 1024 / OBJECTS, BYTES);
    run(b, "deletes, 32 in flight", STORE_DELETE, OBJECTS, IN_FLIGHT);
    close_store(b);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/sublet-bench-XXXXXX";
    static struct bench b;
    bool mine = argc < 2;

    if (mine && !mkdtemp(dir))
        return 1;
    uv_loop_init(&b.loop);
    measure(&b, mine ? dir : argv[1]);
    uv_loop_close(&b.loop);
    if (!mine)
        return 0;
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s/%s", dir, i ? "lock" : "state.db");
        unlink(path);
    }
    return rmdir(dir) ? 1 : 0;
}
