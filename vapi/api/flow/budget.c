/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Memory of the whole process. Why: a container over its limit is killed with all its requests; one
 * that answers 429 in time only makes its clients wait. Usage is counted by the heap itself
 * (mem_in_use()) and checked against the kernel's figure; the memory a request will need is
 * reserved from its arrival to its end. The bound does not apply to the in-process controllers,
 * health checks, deletes and reads of one object, so that usage can go down again. It must never
 * refuse because of memory that is free. */
#include "flow.h"

#include <stdio.h>
#include <string.h>

#include <sublet/metrics.h>
#include <sublet/notice.h>

#define MIB             ((size_t)1 << 20)
#define PER_CONNECTION  (48u * 1024) /* of TLS and HTTP/2, which the heap does not count */
#define PROGRAM         (16 * MIB)   /* its pages, SQLite's cache */
#define WRITE_FACTOR    16           /* a body's tree, the object's before and after, its bytes */
#define WRITE_FLOOR     (64u * 1024)
#define LIST_COST       MIB /* a piece, a row's trees, a compressor */
#define WATCH_COST      (64u * 1024)
#define LEAST_CALL      (16 * MIB) /* of one call's arena */
#define RESIDENT_MS     100        /* how long the kernel's figure is valid */
#define TRIM_MS         2000
#define CALM_MS         5000 /* without a refusal, until the notice ends */
#define CGROUP_MAX      4096
#define UNLIMITED_BYTES ((uint64_t)1 << 60) /* no limit in version 1 is close to 2^63 */

struct budget {
    size_t limit;    /* 0: none */
    size_t reserved; /* for requests in progress */
    size_t resident;
    uint64_t resident_ms, trimmed_ms;
    int64_t refused_ms; /* the last refusal */
    bool refusing;
};

/* ---- the limit ---- */

static bool read_number(const char *path, uint64_t *ret)
{
    char text[64];
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof(text), f) : 0;

    if (f)
        fclose(f);
    return n && str_to_u64(str_trim((struct str){text, n}), ret) && *ret < UNLIMITED_BYTES;
}

/* The lowest limit of a group and its ancestors, from path upwards. */
static void least_of(const char *root, struct str path, const char *file, uint64_t *least)
{
    char name[CGROUP_MAX + 128];
    uint64_t value;

    for (;;) {
        snprintf(name, sizeof(name), "%s%.*s/%s", root, STR_F(path), file);
        if (read_number(name, &value) && value < *least)
            *least = value;
        if (!path.n)
            return;
        path.n = str_rfind(path, '/') < path.n ? str_rfind(path, '/') : 0;
    }
}

/* A line of /proc/self/cgroup: "0::/path" (version 2) or "4:memory:/path" (version 1). */
static void read_group(struct str line, uint64_t *least)
{
    struct str rest = line, number = str_cut(&rest, ':'), controllers = str_cut(&rest, ':');

    if (str_eqc(rest, "/"))
        rest = STR("");
    if (str_eqc(number, "0") && !controllers.n)
        least_of("/sys/fs/cgroup", rest, "memory.max", least);
    else if (str_lists_word(controllers, STR("memory")))
        least_of("/sys/fs/cgroup/memory", rest, "memory.limit_in_bytes", least);
}

/* 0: no limit. */
static uint64_t container_limit(void)
{
    char text[CGROUP_MAX];
    FILE *f = fopen("/proc/self/cgroup", "re");
    struct str rest = {text, f ? fread(text, 1, sizeof(text), f) : 0};
    uint64_t least = UINT64_MAX;

    if (f)
        fclose(f);
    while (rest.n) {
        struct str line = str_cut(&rest, '\n');

        read_group(line, &least);
    }
    return least == UINT64_MAX ? 0 : least;
}

/* The limit of one call's arena. */
static size_t call_arena(const struct budget *b)
{
    size_t limit = b->limit, part = limit / 4;

    if (!limit || part > API_CALL_ARENA)
        return API_CALL_ARENA;
    return part > LEAST_CALL ? part : LEAST_CALL;
}

void budget_open(struct vapi *api)
{
    const struct config *config = vapi_config(api);
    struct budget *b = NEW(struct budget);

    api->budget = b;
    if (config && config->memory_limit > 0)
        b->limit = (size_t)config->memory_limit;
    else
        b->limit = (size_t)(container_limit() / 5 * 4);
    api->call_arena = call_arena(b);
}

void budget_free(struct vapi *api)
{
    api->budget = mem_free(api->budget);
}

/* ---- usage ---- */

static size_t counted(const struct vapi *api)
{
    struct net_stats net = {0};

    if (api->server)
        net_stats(api->server, &net);
    return mem_in_use() + PROGRAM + net.connections * (size_t)PER_CONNECTION;
}

static size_t resident(struct vapi *api)
{
    struct budget *b = api->budget;
    uint64_t now = uv_now(api->o.loop);

    if (b->resident && now - b->resident_ms < RESIDENT_MS)
        return b->resident;
    b->resident_ms = now;
    b->resident = mem_resident();
    /* Memory freed after a burst is still resident; returns it to the kernel, since its holders are
     * short-lived. */
    if (b->resident > b->limit - b->limit / 8 && now - b->trimmed_ms >= TRIM_MS) {
        b->trimmed_ms = now;
        mem_trim();
        b->resident = mem_resident();
    }
    return b->resident;
}

static size_t used(struct vapi *api)
{
    size_t here = counted(api), there = resident(api);

    return here > there ? here : there;
}

/* ---- requests ---- */

enum class { FREE, ORDINARY, MENDING };

/* Classifies by cost, and whether it is always admitted. Updates may be what a deletion waits for:
 * the last sixteenth is reserved for them. */
static enum class classify(struct call *c, const struct attributes *what, size_t *ret_cost) {
    size_t body = c->request->body.n; struct str verb = str_c(what->verb);

    *ret_cost = body * WRITE_FACTOR + WRITE_FLOOR;
    if (!what->resource.n) return str_has_prefix(what->path, STR("/openapi")) ? ORDINARY : FREE;
    if (str_eqc(verb, "get") || str_eqc(verb, "delete") ||
        str_eqc(verb, "deletecollection")) return call_entry(c)
            ->long_running
        ? ORDINARY
        : FREE; /* a log is a get as well */
    if (str_eqc(verb, "list")) *ret_cost = LIST_COST;
    else if (str_eqc(verb, "watch")) *ret_cost = WATCH_COST;
    return str_eqc(verb, "update") || str_eqc(verb, "patch") ? MENDING : ORDINARY;
}

static int64_t now_ms(const struct vapi *api)
{
    return clock_mono_ms(vapi_clock(api));
}

static void report(struct vapi *api, size_t in_use)
{
    struct budget *b = api->budget;
    char text[200];
    struct vapi_notice notice = {.topic = NOTICE_MEMORY, .reason = "MemoryBudgetUsedUp"};

    b->refused_ms = now_ms(api);
    if (b->refusing)
        return;
    b->refusing = true;
    snprintf(text, sizeof(text),
             "requests are answered with 429 TooManyRequests: of %zu MiB, %zu MiB are in use and "
             "%zu MiB reserved for requests under way",
             b->limit / MIB, in_use / MIB, b->reserved / MIB);
    notice.message = str_c(text);
    vapi_notice(api, &notice);
}

static void check_recovered(struct vapi *api)
{
    struct budget *b = api->budget;

    if (!b->refusing || now_ms(api) - b->refused_ms < CALM_MS ||
        used(api) + b->reserved > b->limit - b->limit / 8)
        return;
    b->refusing = false;
    vapi_notice_over(api, NOTICE_MEMORY, STR(""));
}

static bool reserve(struct call *c, size_t cost, size_t most)
{
    struct budget *b = c->api->budget;
    size_t in_use = used(c->api);

    if (in_use + b->reserved + cost > most) {
        /* A request that is too large by itself says nothing about the others. */
        if (in_use + b->reserved + LIST_COST > most)
            report(c->api, in_use);
        return false;
    }
    call_entry(c)->reserved += cost;
    b->reserved += cost;
    return true;
}

bool budget_enter(struct call *c, const struct attributes *what)
{
    struct budget *b = c->api->budget;
    enum class class;
    size_t cost;

    if (!b->limit)
        return true;
    check_recovered(c->api);
    class = classify(c, what, &cost);
    if (class == FREE)
        return true;
    return reserve(c, cost, class == MENDING ? b->limit : b->limit - b->limit / 16);
}

bool budget_more(struct call *c, size_t bytes)
{
    const struct budget *b = c->api->budget;

    return !b->limit || !bytes || reserve(c, bytes, b->limit - b->limit / 16);
}

void budget_leave(struct call *c)
{
    struct call_entry *e = call_entry(c);
    struct budget *b = c->api->budget;

    b->reserved -= e->reserved;
    e->reserved = 0;
}

bool budget_tight(struct vapi *api)
{
    struct budget *b = api->budget;

    return b->limit && used(api) + b->reserved > b->limit - b->limit / 16;
}

void budget_metrics(struct vapi *api, struct buf *out)
{
    const struct budget *b = api->budget;

    metrics_single_u64(out, METRIC_MEMORY_BUDGET, b->limit);
    metrics_single_u64(out, METRIC_MEMORY_USED, counted(api));
    metrics_single_u64(out, METRIC_MEMORY_RESERVED, b->reserved);
}
