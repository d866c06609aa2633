/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of containers that do not exist: a few lines that say so, in the form of a kubelet's. A
 * follower stays until the container ends. What needs a process (exec and the like) is refused with
 * a message. Must never keep a request whose client or pod no longer exists. */
#include "impl.h"

#include <assert.h>
#include <sys/queue.h>

#define LOGS_MAGIC 0x6c6f6773u
#define MAX_FOLLOW 1000u

struct follower {
    LIST_ENTRY(follower) place;
    struct logs *logs;
    struct proxy *proxy;
    char *uid, *container;
    bool timestamps;
};

struct logs {
    unsigned magic;
    struct embedded *embedded;
    LIST_HEAD(, follower) followers;
    size_t n;
};

struct logs *logs_new(struct embedded *e)
{
    struct logs *l = NEW(struct logs);

    *l = (struct logs){.magic = LOGS_MAGIC, .embedded = e};
    return l;
}

static void forget(struct follower *f)
{
    LIST_REMOVE(f, place);
    f->logs->n--;
    mem_free(f->uid);
    mem_free(f->container);
    mem_free(f);
}

struct logs *logs_free(struct logs *l)
{
    if (!l)
        return NULL;
    assert(l->magic == LOGS_MAGIC);
    while (!LIST_EMPTY(&l->followers)) {
        struct follower *f = LIST_FIRST(&l->followers);
        struct proxy *p = f->proxy;

        forget(f);
        proxy_end(p);
    }
    l->magic = 0;
    return mem_free(l);
}

/* --- lines --- */

struct line {
    int64_t at; /* seconds */
    struct str text;
};
#define MAX_LINES 4

static void line_print(struct arena *a, struct buf *b, const struct line *l, bool timestamps)
{
    if (timestamps)
        buf_printf(b, "%.*s ", STR_F(time_format_us(a, l->at * 1000000)));
    buf_add(b, l->text);
    buf_char(b, '\n');
}

static const cJSON *container_status(const cJSON *pod, struct str name)
{
    static const char *const lists[] = {"status.containerStatuses", "status.initContainerStatuses",
                                        "status.ephemeralContainerStatuses"};

    for (size_t i = 0; i < 3; i++) {
        json_each(s, json_path(pod, lists[i]))
        {
            if (str_eq(json_str_at(s, "name"), name))
                return s;
        }
    }
    return NULL;
}

static struct line end_line(struct arena *a, const cJSON *terminated)
{
    return (struct line){object_time_s(terminated, "finishedAt"),
                         arena_printf(a, "[simulated] ended with exit code %lld",
                                      (long long)json_i64_at(terminated, "exitCode", 0))};
}

/* state: running or terminated, of this run or the one before. */
static size_t make_lines(struct arena *a, const cJSON *pod, const cJSON *status, const cJSON *state,
                         struct line *ret)
{
    int64_t since = object_time_s(state, "startedAt");
    size_t n = 0;

    ret[n++] = (struct line){since, arena_printf(a, "[simulated] container \"%.*s\" on node %.*s",
                                                 STR_F(json_str_at(status, "name")),
                                                 STR_F(json_str_at(pod, "spec.nodeName")))};
    ret[n++] = (struct line){since, arena_printf(a,
                                                 "[simulated] image %.*s was not pulled: "
                                                 "no process runs here",
                                                 STR_F(json_str_at(status, "image")))};
    ret[n++] = (struct line){since, STR("[simulated] this is all this container will ever say")};
    if (json_get(state, "exitCode"))
        ret[n++] = end_line(a, state);
    return n;
}

/* Microseconds since 1970. */
static int64_t oldest(const struct logs *l, const struct proxy_log *o)
{
    if (o->since_seconds >= 0)
        return clock_wall_us(vapi_clock(l->embedded->api)) - o->since_seconds * 1000000;
    return o->since_us;
}

static void write_lines(struct logs *l, struct proxy *p, const struct line *lines, size_t n)
{
    const struct proxy_request *r = proxy_request(p);
    struct buf b = BUF_INIT(0);
    int64_t since = oldest(l, &r->log);
    size_t first = r->log.tail_lines >= 0 && (uint64_t)r->log.tail_lines < n
                       ? n - (size_t)r->log.tail_lines
                       : 0;

    for (size_t i = first; i < n; i++) {
        if (lines[i].at * 1000000 >= since && !str_eqc(r->log.stream, "Stderr"))
            line_print(r->arena, &b, &lines[i], r->log.timestamps);
    }
    struct str text = buf_str(&b);
    if (r->log.limit_bytes >= 0 && (uint64_t)r->log.limit_bytes < text.n)
        text.n = (size_t)r->log.limit_bytes;
    proxy_begin(p, 200, NULL, 0);
    if (text.n)
        proxy_write(p, text);
    buf_fini(&b);
}

/* --- following --- */

static void on_closed(void *ctx)
{
    forget(ctx);
}

static void on_closed_at_once(void *ctx)
{
    (void)ctx;
}

static void follow(struct logs *l, struct proxy *p)
{
    const struct proxy_request *r = proxy_request(p);
    static const struct proxy_events events = {.closed = on_closed};
    struct follower *f = NEW(struct follower);

    *f = (struct follower){.logs = l, .proxy = p};
    f->uid = mem_strdup(meta_uid(r->object));
    f->container = mem_strdup(r->container);
    f->timestamps = r->log.timestamps;
    LIST_INSERT_HEAD(&l->followers, f, place);
    l->n++;
    proxy_on(p, &events, f);
}

static void end_follower(struct follower *f, const cJSON *terminated)
{
    struct arena *a = arena_new(0);
    struct proxy *p = f->proxy;
    struct buf b = BUF_INIT(0);

    if (terminated) {
        struct line line = end_line(a, terminated);

        line_print(a, &b, &line, f->timestamps);
        proxy_write(p, buf_str(&b));
    }
    forget(f);
    proxy_end(p);
    buf_fini(&b);
    arena_free(a);
}

void logs_pod_changed(struct logs *l, const struct store_object *pod, bool gone)
{
    struct arena *a;
    const cJSON *tree = NULL;

    if (LIST_EMPTY(&l->followers))
        return;
    a = arena_new(0);
    for (struct follower *f = LIST_FIRST(&l->followers), *next; f; f = next) {
        next = LIST_NEXT(f, place);
        if (!str_eqc(pod->uid, f->uid))
            continue;
        if (!tree)
            tree = vapi_tree(a, pod);
        const cJSON *status = container_status(tree, str_c(f->container));
        const cJSON *terminated = json_path(status, "state.terminated");
        if (gone || terminated || !json_path(status, "state.running"))
            end_follower(f, terminated);
    }
    arena_free(a);
}

/* --- requests --- */

static void refuse(struct proxy *p, struct err *err)
{
    static const struct proxy_events events = {.closed = on_closed_at_once};

    proxy_on(p, &events, p);
    proxy_refuse(p, err);
}

static void refuse_process(struct proxy *p)
{
    static const char *const what[] = {
        [PROXY_EXEC] = "exec",
        [PROXY_ATTACH] = "attach",
        [PROXY_PORT_FORWARD] = "port-forward",
        [PROXY_POD] = "the proxy of pods",
        [PROXY_SERVICE] = "the proxy of services",
    };
    struct err err;

    err_init(&err, proxy_request(p)->arena);
    err_set(&err, &ERR_BAD_REQUEST,
            "%s: the containers of this host are simulated, no process "
            "answers",
            what[proxy_request(p)->kind]);
    refuse(p, &err);
}

static void refuse_waiting(struct proxy *p, const cJSON *status)
{
    const struct proxy_request *r = proxy_request(p);
    struct str reason = json_str_at(status, "state.waiting.reason");
    struct err err;

    err_init(&err, r->arena);
    if (proxy_waiting(p, reason.n ? arena_cstr(r->arena, reason) : "ContainerCreating", &err))
        refuse(p, &err);
}

static void refuse_previous(struct proxy *p)
{
    const struct proxy_request *r = proxy_request(p);
    struct err err;

    err_init(&err, r->arena);
    err_set(&err, &ERR_BAD_REQUEST,
            "previous terminated container \"%.*s\" in pod \"%.*s\" not found", STR_F(r->container),
            STR_F(r->name));
    refuse(p, &err);
}

void logs_connect(struct logs *l, struct proxy *p)
{
    const struct proxy_request *r = proxy_request(p);
    static const struct proxy_events events = {.closed = on_closed_at_once};
    struct line lines[MAX_LINES];

    assert(l->magic == LOGS_MAGIC);
    if (r->kind != PROXY_LOG) {
        refuse_process(p);
        return;
    }
    const cJSON *status = container_status(r->object, r->container);
    const cJSON *running = json_path(status, "state.running"),
                *ended = json_path(status, "state.terminated"),
                *before = json_path(status, "lastState.terminated");
    const cJSON *state = r->log.previous ? before : running ? running : ended ? ended : before;
    if (!state) {
        if (r->log.previous)
            refuse_previous(p);
        else
            refuse_waiting(p, status);
        return;
    }
    size_t n = make_lines(r->arena, r->object, status, state, lines);
    if (r->log.follow && state == running && l->n < MAX_FOLLOW) {
        follow(l, p);
        write_lines(l, p, lines, n);
        return;
    }
    proxy_on(p, &events, p);
    write_lines(l, p, lines, n);
    proxy_end(p);
}
