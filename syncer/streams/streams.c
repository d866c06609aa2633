/* SPDX-License-Identifier: Apache-2.0 */
/* Logs, exec, attach, port-forward and proxies, forwarded to the host: the tenant's own API has
 * authorised the request; here its names become the host's, and it goes out under this process's
 * identity. Must never reach a host object that is not the virtual one's, as its uid proves, buffer
 * more than the slower side is behind (a kubelet's document: kubelet.c), or let a host name into a
 * refusal.
 *
 *   connect() -> pipe opened -+- 101 ----------> TUNNEL: bytes both ways
 *                             |- answer -------> PASSING: piece by piece
 *                             |- a kubelet's --> FILTERING: cut to the tenant's own pods
 *                             '- refusal ------> GATHERING: read whole, names translated back
 *   either side ends: the other one is closed, and the stream is freed */

#include "streams/streams.h"
#include "streams/relink.h"
#include "core/run.h"
#include <sublet/host_trouble.h>
#include <assert.h>
#include <sys/queue.h>

#include <sublet/log.h>
#include <sublet/proxy.h>

#define STREAM_MAGIC  0x7374726du
#define REFUSAL_LIMIT 65536

enum stream_state {
    STREAM_OPENING,
    STREAM_GATHERING,
    STREAM_PASSING,
    STREAM_FILTERING,
    STREAM_TUNNEL
};

struct stream {
    unsigned magic;
    enum stream_state state;
    struct syncer *syncer;
    LIST_ENTRY(stream) place;
    struct proxy *proxy;
    struct host_pipe *pipe;
    char host_name[64];
    struct kubelet *kubelet; /* PROXY_NODE */
    bool begun;              /* FILTERING: the answer */
    struct relink relink;    /* PASSING: of a page; from is empty for anything else */
    struct buf refusal;      /* GATHERING: the body, and the head it came with */
    int status;
    const struct net_header *headers;
    size_t n_headers;
};

LIST_HEAD(stream_list, stream);

struct streams {
    struct stream_list list;
};

static void stream_free(struct stream *t)
{
    LIST_REMOVE(t, place);
    sync_kubelet_free(t->kubelet);
    buf_fini(&t->relink.held);
    buf_fini(&t->refusal);
    t->magic = 0;
    mem_free(t);
}

static bool is_proxy(const struct stream *t)
{
    enum proxy_kind kind = proxy_request(t->proxy)->kind;

    return kind == PROXY_POD || kind == PROXY_SERVICE;
}

static struct str path_of(const struct stream *t);
static struct str target_of(const struct stream *t, struct str name);

static enum sync_id kind_id(const struct proxy_request *r)
{
    return r->kind == PROXY_SERVICE ? SYNC_SERVICES : SYNC_PODS;
}

/* --- refusals --- */

static struct str refusal_up(const struct stream *t, struct arena *a, const struct err *err)
{
    const struct proxy_request *r = proxy_request(t->proxy);

    return translate_refusal_up(a, &t->syncer->tenant, err, str_c(t->host_name), r->ns, r->name);
}

static void refuse(struct stream *t, const struct err *err)
{
    proxy_refuse(t->proxy, err);
    stream_free(t);
}

static const struct err_kind *kind_of(int status)
{
    static const struct err_kind *const kinds[] = {&ERR_BAD_REQUEST, &ERR_FORBIDDEN, &ERR_NOT_FOUND,
                                                   &ERR_UNAVAILABLE, &ERR_TOO_MANY_REQUESTS};

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i]->code == status)
            return kinds[i];
    return status >= 500 ? &ERR_INTERNAL : &ERR_BAD_REQUEST;
}

static void note_right(struct stream *t, const struct err *err)
{
    if (!is_proxy(t)) /* the refusal may be the proxied program's own */
        host_note_right(t->syncer->host, proxy_request(t->proxy)->method, path_of(t), err);
}

/* The host's refusal as a Status. A right that this process lacks is the admin's concern: the
 * tenant learns that one is missing, but not of whom. */
static void pass_refusal(struct stream *t, const cJSON *status)
{
    struct arena *a = proxy_request(t->proxy)->arena;
    struct str text = str_trim(str_sub(buf_str(&t->refusal), 0, 4096));
    struct err err;
    bool read;

    err_init(&err, a);
    read = status && status_parse(a, status, &err) && err.kind;
    if (read)
        note_right(t, &err);
    if (t->status == 401 || t->status == 403) {
        err_clear(&err);
        err_set(&err, &ERR_UNAVAILABLE, TRANSLATE_NO_RIGHT);
    } else if (t->kubelet) {
        /* Addresses of the host may be in it: it is for the admin alone. */
        log_warn("a kubelet is not shown path=%.*s status=%d answer=\"%.*s\"", STR_F(path_of(t)),
                 t->status, STR_F(str_sub(text, 0, 256)));
        err_clear(&err);
        (void)!sync_kubelet_refuse(t->kubelet, &err);
    } else if (!read) {
        err_clear(&err);
        err_set(&err, kind_of(t->status), "%.*s", STR_F(text));
        err.message = refusal_up(t, a, &err);
    } else {
        err.message = refusal_up(t, a, &err);
        err.name = err.name.n ? proxy_request(t->proxy)->name : err.name;
    }
    refuse(t, &err);
}

/* NULL: the gathered body is not a Status. */
static const cJSON *read_status(const struct stream *t)
{
    struct arena *a = proxy_request(t->proxy)->arena;
    cJSON *tree = NULL;
    struct err ignored;

    err_init(&ignored, a);
    if (json_parse(a, buf_str(&t->refusal), &tree, &ignored) ||
        !str_eqc(json_str(json_get(tree, "kind")), "Status"))
        return NULL;
    return tree;
}

/* --- from the host --- */

static struct str header(const struct net_header *headers, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eqc(headers[i].name, name))
            return headers[i].value;
    return STR_NULL;
}

/* A proxied program's own errors are passed through; JSON may be a Status of the host's API. */
static bool is_refusal(const struct stream *t, int status, const struct net_header *h, size_t n)
{
    if (!is_proxy(t))
        return status < 200 || status >= 300;
    return status >= 400 && str_has_prefix(header(h, n, "content-type"), STR("application/json"));
}

/* Copies the head, which the pipe owns. */
static void gather(struct stream *t, int status, const struct net_header *headers, size_t n)
{
    struct arena *a = proxy_request(t->proxy)->arena;
    struct net_header *list = arena_alloc(a, (n + 1) * sizeof(*list));

    for (size_t i = 0; i < n; i++)
        list[i] =
            (struct net_header){arena_str(a, headers[i].name), arena_str(a, headers[i].value)};
    t->state = STREAM_GATHERING;
    t->status = status;
    t->headers = list;
    t->n_headers = n;
}

/* The host writes its own path of the proxied object before each link of a page. One that is packed
 * stays as it is: none is asked for (open_pipe). */
static bool is_page(const struct stream *t, const struct net_header *h, size_t n)
{
    return is_proxy(t) && str_has_prefix(header(h, n, "content-type"), STR("text/html")) &&
           !header(h, n, "content-encoding").n;
}

static void begin_page(struct stream *t)
{
    const struct proxy_request *r = proxy_request(t->proxy);
    struct arena *a = r->arena;

    t->relink.from =
        sync_path(a, t->syncer, kind_id(r), target_of(t, str_c(t->host_name)), "/proxy");
    t->relink.to =
        arena_printf(a, "/api/v1/namespaces/%.*s/%s/%.*s/proxy", STR_F(r->ns),
                     r->kind == PROXY_POD ? "pods" : "services", STR_F(target_of(t, r->name)));
}

static void begin(struct stream *t, int status, const struct net_header *headers, size_t n)
{
    const struct proxy_request *r = proxy_request(t->proxy);
    struct arena *a = r->arena;
    struct net_header *list = arena_alloc(a, (n + 1) * sizeof(*list));
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        bool type = str_eqc(headers[i].name, "content-type");

        if (!is_proxy(t) && !type)
            continue;
        list[m] = headers[i];
        if (str_eqc(headers[i].name, "location"))
            list[m].value = translate_names_up(a, &t->syncer->tenant, headers[i].value,
                                               str_c(t->host_name), r->ns, r->name);
        m++;
    }
    if (is_page(t, headers, n))
        begin_page(t);
    t->state = STREAM_PASSING;
    note_right(t, NULL);
    proxy_begin(t->proxy, status, list, m);
}

static void begin_tunnel(struct stream *t, const struct net_header *headers, size_t n)
{
    struct err err;

    if (proxy_upgrade(t->proxy, headers, n)) {
        note_right(t, NULL);
        t->state = STREAM_TUNNEL;
        return;
    }
    err_init(&err, proxy_request(t->proxy)->arena);
    err_set(&err, &ERR_INTERNAL, "the host cluster: an upgrade that was not requested");
    host_pipe_close(t->pipe);
    refuse(t, &err);
}

/* --- from a kubelet --- */

static void filter_begin(struct stream *t)
{
    struct net_header type = {STR("content-type"), sync_kubelet_type(t->kubelet)};

    t->begun = true;
    note_right(t, NULL);
    proxy_begin(t->proxy, t->status, &type, 1);
}

/* In place of the answer, or of what is left of it. */
static void filter_fail(struct stream *t)
{
    struct err err;

    err_init(&err, proxy_request(t->proxy)->arena);
    log_warn("a kubelet is not shown path=%.*s: its answer is cut off, too long or unreadable",
             STR_F(path_of(t)));
    if (t->begun) {
        proxy_abort(t->proxy);
        stream_free(t);
    } else if (sync_kubelet_refuse(t->kubelet, &err)) {
        refuse(t, &err);
    }
}

static void filter_head(struct stream *t, int status)
{
    t->state = STREAM_FILTERING;
    t->status = status;
    if (sync_kubelet_is_stream(t->kubelet))
        filter_begin(t);
}

static void filter_data(struct stream *t, struct str bytes)
{
    struct buf out = BUF_INIT(0);

    if (!sync_kubelet_data(t->kubelet, bytes, &out)) {
        host_pipe_close(t->pipe);
        filter_fail(t);
    } else if (out.n && proxy_write(t->proxy, buf_str(&out)) > PROXY_HIGH) {
        host_pipe_pause(t->pipe, true);
    }
    buf_fini(&out);
}

static void filter_end(struct stream *t, const struct err *err)
{
    struct buf out = BUF_INIT(0);

    if (err || !sync_kubelet_end(t->kubelet, t->status, &out)) {
        filter_fail(t);
    } else {
        if (!t->begun)
            filter_begin(t);
        proxy_write(t->proxy, buf_str(&out));
        proxy_end(t->proxy);
        stream_free(t);
    }
    buf_fini(&out);
}

static void on_head(void *ctx, int status, const struct net_header *headers, size_t n)
{
    struct stream *t = ctx;

    assert(t->magic == STREAM_MAGIC && t->state == STREAM_OPENING);
    if (status == 101) {
        begin_tunnel(t, headers, n);
    } else if (t->kubelet && sync_kubelet_accepts(t->kubelet, status, headers, n)) {
        filter_head(t, status);
    } else if (t->kubelet || is_refusal(t, status, headers, n)) {
        gather(t, status, headers, n);
    } else {
        begin(t, status, headers, n);
    }
}

/* The gathered body turns out to be a proxied program's answer. */
static void pass_gathered(struct stream *t)
{
    begin(t, t->status, t->headers, t->n_headers);
    proxy_write(t->proxy, buf_str(&t->refusal));
    buf_fini(&t->refusal);
}

/* Bytes as the tenant gets them; at the end of a page what was held of it. What is not passed to
 * the kernel yet. */
static size_t pass(struct stream *t, struct str bytes, bool at_end)
{
    struct buf out = BUF_INIT(0);
    size_t behind;

    if (!t->relink.from.n)
        return proxy_write(t->proxy, bytes);
    sync_relink_add(&t->relink, bytes, &out);
    if (at_end)
        sync_relink_end(&t->relink, &out);
    behind = proxy_write(t->proxy, buf_str(&out));
    buf_fini(&out);
    return behind;
}

static void on_data(void *ctx, struct str bytes)
{
    struct stream *t = ctx;

    assert(t->magic == STREAM_MAGIC);
    if (t->state == STREAM_FILTERING) {
        filter_data(t, bytes);
        return;
    }
    if (t->state == STREAM_GATHERING && is_proxy(t) && t->refusal.n + bytes.n > REFUSAL_LIMIT)
        pass_gathered(t);
    if (t->state == STREAM_GATHERING)
        buf_add(&t->refusal, str_sub(bytes, 0, REFUSAL_LIMIT - t->refusal.n));
    else if (pass(t, bytes, false) > PROXY_HIGH)
        host_pipe_pause(t->pipe, true);
}

static void on_host_drained(void *ctx)
{
    struct stream *t = ctx;

    assert(t->magic == STREAM_MAGIC);
    if (t->state == STREAM_TUNNEL)
        proxy_pause(t->proxy, false);
}

static void on_host_end(void *ctx, const struct err *err)
{
    struct stream *t = ctx;
    const cJSON *status = NULL;

    assert(t->magic == STREAM_MAGIC);
    if (t->state == STREAM_OPENING) {
        assert(err);
        refuse(t, err);
        return;
    }
    if (t->state == STREAM_FILTERING) {
        filter_end(t, err);
        return;
    }
    if (t->state == STREAM_GATHERING) {
        status = read_status(t);
        if (status || !is_proxy(t)) {
            pass_refusal(t, status);
            return;
        }
        pass_gathered(t);
    }
    if (t->relink.held.n)
        pass(t, STR(""), true);
    if (err)
        proxy_abort(t->proxy);
    else
        proxy_end(t->proxy);
    stream_free(t);
}

/* --- from the tenant's client --- */

static void on_client_closed(void *ctx)
{
    struct stream *t = ctx;

    assert(t->magic == STREAM_MAGIC);
    host_pipe_close(t->pipe);
    stream_free(t);
}

static void on_client_drained(void *ctx)
{
    struct stream *t = ctx;

    assert(t->magic == STREAM_MAGIC);
    host_pipe_pause(t->pipe, false);
}

static void on_client_bytes(void *ctx, struct str bytes)
{
    struct stream *t = ctx;

    assert(t->magic == STREAM_MAGIC);
    if (!bytes.n) {
        host_pipe_close(t->pipe);
        proxy_end(t->proxy);
        stream_free(t);
    } else if (host_pipe_write(t->pipe, bytes) > PROXY_HIGH) {
        proxy_pause(t->proxy, true);
    }
}

/* --- to the host --- */

static int find_kubelet(struct stream *t, struct err *err)
{
    size_t n = 0;

    for (struct stream *o = LIST_FIRST(&t->syncer->streams->list); o; o = LIST_NEXT(o, place))
        n += o->kubelet ? 1 : 0;
    if (n >= KUBELETS_MAX) {
        err_set(err, &ERR_TOO_MANY_REQUESTS, "too many kubelets are read at once");
        err->retry_after = 1;
        return -1;
    }
    t->kubelet = sync_kubelet_new(t->syncer, proxy_request(t->proxy), err);
    return t->kubelet ? 0 : -1;
}

/* Fails unless the host object of this name is the virtual object's. */
static int find_host(struct stream *t, struct err *err)
{
    const struct proxy_request *r = proxy_request(t->proxy);
    struct syncer *s = t->syncer;
    struct reflector *f;
    const struct host_object *o;
    struct str ns, name, uid;
    cJSON *tree = NULL;

    if (r->kind == PROXY_NODE)
        return find_kubelet(t, err);
    f = syncer_watch(s, kind_id(r));
    /* A pod without a node has not started, whatever the host holds. */
    if (!reflector_synced(f) &&
        (r->kind == PROXY_SERVICE || json_str_at(r->object, "spec.nodeName").n))
        return err_set(err, &ERR_UNAVAILABLE, "the host cluster has not been read yet");
    o = reflector_get(f, str_c(t->host_name));
    if (o && !json_parse(r->arena, o->bytes, &tree, err) &&
        translate_owner(&s->tenant, tree, &ns, &name, &uid) && str_eq(uid, sync_uid(r->object)))
        return 0;
    err_clear(err);
    if (r->kind == PROXY_SERVICE)
        return err_set(err, &ERR_UNAVAILABLE, "no endpoints available for service \"%.*s\"",
                       STR_F(r->name));
    if (r->kind == PROXY_POD)
        return err_set(err, &ERR_BAD_REQUEST, "address not allowed");
    return proxy_waiting(t->proxy, "ContainerCreating", err);
}

/* The object as a proxy's path has it: with scheme and port. */
static struct str target_of(const struct stream *t, struct str name)
{
    const struct proxy_request *r = proxy_request(t->proxy);

    if (r->scheme.n)
        return arena_printf(r->arena, "%.*s:%.*s:%.*s", STR_F(r->scheme), STR_F(name),
                            STR_F(r->port));
    return r->port.n ? arena_printf(r->arena, "%.*s:%.*s", STR_F(name), STR_F(r->port)) : name;
}

static struct str path_of(const struct stream *t)
{
    static const char *const tails[] = {
        [PROXY_LOG] = "log",       [PROXY_EXEC] = "exec",
        [PROXY_ATTACH] = "attach", [PROXY_PORT_FORWARD] = "portforward",
        [PROXY_POD] = "proxy",     [PROXY_SERVICE] = "proxy"};
    const struct proxy_request *r = proxy_request(t->proxy);
    struct arena *a = r->arena;
    struct str tail;

    if (t->kubelet)
        return sync_kubelet_path(t->kubelet);
    tail = arena_printf(a, "/%s%.*s%s%.*s", tails[r->kind], STR_F(r->path), r->query.n ? "?" : "",
                        STR_F(r->query));
    return sync_path(a, t->syncer, kind_id(r), target_of(t, str_c(t->host_name)), tail.p);
}

static bool only_reads(const struct proxy_request *r)
{
    return r->kind == PROXY_LOG || r->kind == PROXY_NODE;
}

/* A page has to be readable here: whoever may get one asks for no encoding. */
static size_t headers_of(const struct stream *t, const struct net_header **ret)
{
    const struct proxy_request *r = proxy_request(t->proxy);
    struct net_header *list;
    size_t n = 0;

    *ret = r->headers;
    if (!is_proxy(t) || !str_contains(header(r->headers, r->n_headers, "accept"), STR("text/html")))
        return r->n_headers;
    list = arena_alloc(r->arena, (r->n_headers + 1) * sizeof(*list));
    for (size_t i = 0; i < r->n_headers; i++)
        if (!str_eqc(r->headers[i].name, "accept-encoding"))
            list[n++] = r->headers[i];
    *ret = list;
    return n;
}

static int open_pipe(struct stream *t, struct err *err)
{
    static const struct host_pipe_handler handler = {on_head, on_data, on_host_drained,
                                                     on_host_end};
    const struct proxy_request *r = proxy_request(t->proxy);
    struct host_pipe_request q = {.method = r->method,
                                  .path = path_of(t),
                                  .body = r->body,
                                  .upgrade = r->upgrade,
                                  .reads = only_reads(r),
                                  .timeout_ms = t->kubelet ? KUBELET_TIMEOUT_MS : 0};

    q.n_headers = headers_of(t, &q.headers);
    t->pipe = host_pipe_open(t->syncer->host, &q, &handler, t, err);
    return t->pipe ? 0 : -1;
}

void sync_streams_connect(struct syncer *s, struct proxy *p)
{
    static const struct proxy_events events = {on_client_closed, on_client_drained,
                                               on_client_bytes};
    const struct proxy_request *r = proxy_request(p);
    struct stream *t = NEW(struct stream);
    struct err err;

    err_init(&err, r->arena);
    *t = (struct stream){
        .magic = STREAM_MAGIC, .syncer = s, .proxy = p, .refusal = BUF_INIT(REFUSAL_LIMIT)};
    LIST_INSERT_HEAD(&s->streams->list, t, place);
    translate_name(&s->tenant, r->ns, r->name, t->host_name);
    proxy_on(p, &events, t);
    if (!syncer_is_running(s))
        err_set(&err, &ERR_UNAVAILABLE, "the host cluster: closing");
    if (err.kind || find_host(t, &err) || open_pipe(t, &err))
        refuse(t, &err);
}

/* --- life --- */

struct streams *sync_streams_new(void)
{
    return NEW(struct streams);
}

static void stop(struct stream *t, const char *why)
{
    struct err err;

    host_pipe_close(t->pipe);
    if (t->state == STREAM_PASSING || t->state == STREAM_TUNNEL || t->begun) {
        proxy_abort(t->proxy);
        stream_free(t);
        return;
    }
    err_init(&err, proxy_request(t->proxy)->arena);
    err_set(&err, &ERR_UNAVAILABLE, "the host cluster: %s", why);
    refuse(t, &err);
}

void sync_streams_stop(struct streams *all)
{
    while (!LIST_EMPTY(&all->list))
        stop(LIST_FIRST(&all->list), "closing");
}

void sync_streams_bar(struct streams *all)
{
    struct stream *next;

    for (struct stream *t = LIST_FIRST(&all->list); t; t = next) {
        next = LIST_NEXT(t, place);
        if (!only_reads(proxy_request(t->proxy)))
            stop(t, "this process no longer holds the Lease");
    }
}

struct streams *sync_streams_free(struct streams *all)
{
    assert(!all || LIST_EMPTY(&all->list));
    return mem_free(all);
}
