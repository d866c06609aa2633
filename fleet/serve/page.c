/* SPDX-License-Identifier: Apache-2.0 */
/* Serves the page. Its data is of all tenants: must never leave without a verdict of the host for
 * the token of the request, nor go on when that verdict is withdrawn. The page itself has no
 * data, and scripts only from here (its policy), so that no name a tenant chose can become code.
 *
 *   GET /fleet/events --> kept verdict, or a review --> stream --> state, seen, state ... --> end
 *                                                         '--every minute: reviewed anew
 *   a change --> fleet_page_changed() --> at most once a second, for open streams: a new state
 */
#include "page.h"

#include <assert.h>
#include <sys/queue.h>

#include <uv.h>

#include <openssl/crypto.h>

#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/net.h>
#include <sublet/token_bucket.h>

#include "page_files.h"
#include "review_rates.h"
#include "reviews.h"
#include "tls_files.h"

#define PAGE_MAGIC      0x70616765u
#define STATE_PATH      "/fleet/state"
#define EVENTS_PATH     "/fleet/events"
#define MOST_CONNECTION 128
#define MOST_VIEWERS    64
#define MOST_TENANTS    64 /* whose requests are under way */
#define MOST_SERIES     ((size_t)16 << 20)
#define MOST_STATE      ((size_t)8 << 20)
#define GRACE_MS        1000
#define STALLED_MS      10000
#define PUSH_MS         1000   /* between two states */
#define BEAT_MS         15000  /* between two signs of life */
#define REVIEW_MS       60000  /* a stream's token is reviewed again */
#define REVIEWS_BURST   20     /* of tokens that come in, */
#define REVIEWS_RATE    10     /* and so many a second: the host's own work goes before */
#define SILENT_MS       300000 /* a stream outlives a host that gives no verdict */

/* One state, as it is sent; streams share it. */
struct state {
    unsigned refs;
    struct str event; /* on the heap */
    struct str json;  /* inside event */
};
struct viewer {
    LIST_ENTRY(viewer) all;
    struct page *page;
    struct net_exchange *x;
    struct str token; /* on the heap */
    struct str ns;    /* on the heap: of a tenant's own series; empty: the page's */
    struct str peer;  /* the same */
    struct review *review;
    bool events, streaming;
    int64_t allowed_ms;  /* the last verdict in its favour */
    struct state *shown; /* the last one sent */
};
struct page {
    unsigned magic;
    struct page_options o;
    struct net_server *server;
    struct reviews *reviews;
    LIST_HEAD(, viewer) viewers;
    unsigned n_viewers, n_streams; /* viewers of the page */
    unsigned n_tenants;            /* ... and those of their own series */
    struct state *state;           /* NULL: none was written for the present viewers */
    bool stale, closing;
    bool failed;     /* the last state could not be written */
    int64_t next_ms; /* no other state before */
    struct token_bucket viewing;
    struct fleet_review_rates *fetching; /* of tenants */
    uv_timer_t push, beat;
    struct tls_files *files; /* NULL: unencrypted */
    unsigned open_parts;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* --- answers --- */

#define HEADERS_OF_ALL                                                                             \
    {STR("x-content-type-options"), STR("nosniff")}, {STR("referrer-policy"), STR("no-referrer")}, \
    {                                                                                              \
        STR("cache-control"), STR("no-store")                                                      \
    }

static void respond(struct net_exchange *x, int status, const char *type, struct str body)
{
    const struct net_header headers[] = {
        {STR("content-type"), str_c(type)},
        {STR("content-security-policy"),
         STR("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")},
        HEADERS_OF_ALL,
        {STR("www-authenticate"), STR("Bearer")}};
    const struct net_slice slice = {.bytes = body};

    net_respond(x, status, headers, COUNT(headers) - (status != 401), &slice, 1);
}

static void refuse(struct net_exchange *x, const struct err_kind *kind, struct str why)
{
    struct arena *a = net_arena(x);

    respond(x, kind->code, "application/json",
            json_text(a, json_object(a, JSON("kind", "Status"), JSON("apiVersion", "v1"),
                                     JSON("metadata", json_new_object(a)),
                                     JSON("status", "Failure"), JSON("message", why),
                                     JSON("reason", kind->reason), JSON_I64("code", kind->code))));
}

static const struct verdict {
    const struct err_kind *kind;
    const char *message;
} VERDICTS[] = {
    [REVIEW_UNAUTHENTICATED] = {&ERR_UNAUTHORIZED, "the host does not know the token"},
    [REVIEW_FORBIDDEN] = {&ERR_FORBIDDEN, "the user may not get the path " STATE_PATH},
    [REVIEW_UNKNOWN] = {&ERR_UNAVAILABLE, "the host gives no verdict on the token"},
};

static struct str verdict_text(struct arena *a, enum review_verdict verdict, struct str ns,
                               struct str why)
{
    if (ns.n && verdict == REVIEW_FORBIDDEN)
        return arena_printf(a, "the user is not the process of a tenant in namespace %.*s",
                            STR_F(ns));
    return arena_printf(a, "%s%s%.*s", VERDICTS[verdict].message, why.n ? ": " : "", STR_F(why));
}

/* --- the state --- */

static struct state *state_unref(struct state *s)
{
    if (s && !--s->refs) {
        mem_free(s->event.p);
        mem_free(s);
    }
    return NULL;
}

static void state_released(void *ctx)
{
    state_unref(ctx);
}

/* The state of now, when it differs from the last one. A failure leaves that one. */
static void write_state(struct page *p)
{
    struct buf out = BUF_INIT(MOST_STATE);
    struct err err;
    struct str json;
    size_t head;

    err_init(&err, NULL);
    p->stale = false;
    p->next_ms = clock_mono_ms(p->o.clock) + PUSH_MS;
    buf_addc(&out, "event: state\ndata: ");
    head = out.n;
    p->failed = p->o.write_state(p->o.ctx, &out, &err) || out.failed;
    if (p->failed) {
        log_warn("fleet: the page's state was not written error=\"%.*s\"", STR_F(err.message));
    } else {
        json = str_from(buf_str(&out), head);
        if (!p->state || !str_eq(p->state->json, json)) {
            size_t n = json.n;

            buf_addc(&out, "\n\n");
            state_unref(p->state);
            p->state = NEW(struct state);
            *p->state = (struct state){.refs = 1, .event = buf_take(&out)};
            p->state->json = str_sub(p->state->event, head, n);
        }
    }
    buf_fini(&out);
}

/* What a viewer that has just come may see: not older than a second. */
static void need_state(struct page *p)
{
    if ((!p->state || p->stale) && clock_mono_ms(p->o.clock) >= p->next_ms)
        write_state(p);
}

static void send_state(struct viewer *v)
{
    struct state *s = v->page->state;
    struct net_slice slice;

    if (!s || v->shown == s || net_backlog(v->x))
        return; /* drained() follows */
    state_unref(v->shown);
    s->refs += 2;
    v->shown = s;
    slice = (struct net_slice){.bytes = s->event, .release = state_released, .ctx = s};
    net_write(v->x, &slice, 1);
}

static void send_all(struct page *p)
{
    struct viewer *v;

    LIST_FOREACH(v, &p->viewers, all)
    {
        if (v->streaming)
            send_state(v);
    }
}

static void on_push(uv_timer_t *timer)
{
    struct page *p = timer->data;

    assert(p->magic == PAGE_MAGIC);
    if (!p->n_viewers)
        p->state = state_unref(p->state);
    else if (p->stale && p->n_streams)
        write_state(p);
    send_all(p);
}

static void push_soon(struct page *p)
{
    int64_t wait = p->next_ms - clock_mono_ms(p->o.clock);

    if (p->closing || uv_is_active((const uv_handle_t *)&p->push))
        return;
    uv_update_time(p->o.loop);
    uv_timer_start(&p->push, on_push, wait > 0 ? (uint64_t)wait : 0, 0);
}

void fleet_page_changed(struct page *p)
{
    if (!p)
        return;
    assert(p->magic == PAGE_MAGIC);
    p->stale = true;
    if (p->n_streams)
        push_soon(p);
}

/* --- viewers --- */

static void forget_token(struct viewer *v)
{
    OPENSSL_cleanse((void *)(uintptr_t)v->token.p, v->token.n);
    mem_free(v->token.p);
    v->token = STR_NULL;
}

static void viewer_free(void *ctx)
{
    struct viewer *v = ctx;
    struct page *p = v->page;

    assert(p->magic == PAGE_MAGIC);
    fleet_review_cancel(v->review);
    forget_token(v);
    state_unref(v->shown);
    LIST_REMOVE(v, all);
    if (v->ns.n) {
        p->n_tenants--;
        mem_free(v->ns.p);
        mem_free(v->peer.p);
        mem_free(v);
        return;
    }
    p->n_viewers--;
    p->n_streams -= v->streaming;
    mem_free(v);
    if (!p->n_streams)
        uv_timer_stop(&p->beat);
    if (!p->n_viewers)
        push_soon(p); /* where the state is forgotten, not sooner than another could be computed */
}

static void on_drained(void *ctx)
{
    struct viewer *v = ctx;

    if (v->streaming)
        send_state(v);
}

static void text_released(void *ctx)
{
    mem_free(ctx);
}

static void write_event(struct viewer *v, const char *event, struct str data)
{
    const struct str parts[] = {STR("event: "), str_c(event), STR("\ndata: "), data, STR("\n\n")};
    struct arena *a = arena_new(0);
    struct str text = mem_str(arena_concat(a, COUNT(parts), parts));
    const struct net_slice slice = {
        .bytes = text, .release = text_released, .ctx = (void *)(uintptr_t)text.p};

    arena_free(a);
    net_write(v->x, &slice, 1);
}

static void end_stream(struct viewer *v, enum review_verdict verdict, struct str why)
{
    struct arena *a;

    fleet_review_cancel(v->review);
    v->review = NULL;
    v->streaming = false;
    v->page->n_streams--;
    if (net_backlog(v->x)) { /* what waits was for one who was permitted */
        net_abort(v->x);
        return;
    }
    a = arena_new(0);
    write_event(v, "refused",
                json_text(a, json_object(a, JSON("reason", VERDICTS[verdict].kind->reason),
                                         JSON("message", verdict_text(a, verdict, STR(""), why)))));
    arena_free(a);
    net_end(v->x);
}

static void on_reviewed_again(void *ctx, enum review_verdict verdict, struct str why)
{
    struct viewer *v = ctx;
    int64_t now = clock_mono_ms(v->page->o.clock);

    v->review = NULL;
    if (verdict == REVIEW_ALLOWED)
        v->allowed_ms = now;
    else if (verdict != REVIEW_UNKNOWN)
        end_stream(v, verdict, why);
    else if (now - v->allowed_ms >= REVIEW_MS)
        log_warn("fleet: a token of the page was not reviewed again error=\"%.*s\"", STR_F(why));
}

/* A host that is silent for minutes ends a stream as one that refuses does. */
static void review_again(struct viewer *v)
{
    int64_t ago = clock_mono_ms(v->page->o.clock) - v->allowed_ms;

    if (ago >= SILENT_MS)
        end_stream(v, REVIEW_UNKNOWN, STR(""));
    else if (ago >= REVIEW_MS && !v->review)
        v->review =
            fleet_reviews_ask(v->page->reviews, v->token, STR(""), true, on_reviewed_again, v);
}

static void on_beat(uv_timer_t *timer)
{
    struct page *p = timer->data;
    struct buf seen = BUF_INIT(64);
    struct viewer *v;

    assert(p->magic == PAGE_MAGIC);
    p->o.write_seen(p->o.ctx, &seen);
    LIST_FOREACH(v, &p->viewers, all)
    {
        if (!v->streaming)
            continue;
        if (!net_backlog(v->x))
            write_event(v, p->failed ? "failed" : "seen", buf_str(&seen));
        review_again(v);
    }
    buf_fini(&seen);
    fleet_page_changed(p); /* what time alone changes */
}

static void begin_stream(struct viewer *v)
{
    struct page *p = v->page;
    const struct net_header headers[] = {{STR("content-type"), STR("text/event-stream")},
                                         HEADERS_OF_ALL};

    if (!p->n_streams++)
        uv_timer_start(&p->beat, on_beat, BEAT_MS, BEAT_MS);
    v->streaming = true;
    net_begin(v->x, 200, headers, COUNT(headers));
    net_forget_request(v->x);
    need_state(p);
    send_state(v);
    if (p->stale)
        push_soon(p);
}

static void show_tenant(struct viewer *v)
{
    struct page *p = v->page;
    struct buf out = BUF_INIT(MOST_SERIES);
    struct err err;

    err_init(&err, net_arena(v->x));
    if (p->o.write_tenant(p->o.ctx, v->ns, &out, &err))
        refuse(v->x, err.kind, err.message);
    else
        respond(v->x, 200, "text/plain; version=0.0.4; charset=utf-8",
                arena_str(net_arena(v->x), buf_str(&out)));
    buf_fini(&out);
}

static void admit(struct viewer *v)
{
    struct page *p = v->page;

    if (v->ns.n) {
        show_tenant(v);
        return;
    }
    if (v->events) {
        begin_stream(v);
        return;
    }
    need_state(p);
    if (p->state)
        respond(v->x, 200, "application/json", arena_str(net_arena(v->x), p->state->json));
    else
        refuse(v->x, &ERR_UNAVAILABLE, STR("the state cannot be computed"));
}

/* What the host said is for those whom it knows. */
static void decide(struct viewer *v, enum review_verdict verdict, struct str why)
{
    struct net_exchange *x = v->x;
    struct str ns;

    if (verdict == REVIEW_ALLOWED) {
        admit(v);
        return;
    }
    if (verdict == REVIEW_UNKNOWN)
        log_warn("fleet: a token of the page was not reviewed error=\"%.*s\"", STR_F(why));
    net_on(x, NULL, NULL, NULL);
    ns = arena_str(net_arena(x), v->ns);
    viewer_free(v); /* a client that does not read its refusal keeps no place */
    refuse(x, VERDICTS[verdict].kind,
           verdict_text(net_arena(x), verdict, ns, verdict == REVIEW_FORBIDDEN ? why : STR("")));
}

static void on_reviewed(void *ctx, enum review_verdict verdict, struct str why)
{
    struct viewer *v = ctx;

    v->review = NULL;
    v->allowed_ms = clock_mono_ms(v->page->o.clock);
    if (v->ns.n && verdict != REVIEW_UNKNOWN)
        fleet_review_rates_note(v->page->fetching, v->ns, v->token, v->peer,
                                verdict == REVIEW_ALLOWED);
    decide(v, verdict, why);
}

/* Whoever reaches the port may send tokens: the reviews that follow are bounded. NULL: not now. */
static struct review *ask(struct viewer *v)
{
    static const struct token_rate views = {
        .burst = REVIEWS_BURST, .n = REVIEWS_RATE, .period = 1000};
    struct page *p = v->page;
    int64_t now = clock_mono_ms(p->o.clock);
    enum review_leave leave = REVIEW_OF_UNKNOWN;

    if (v->ns.n)
        leave = fleet_review_rates_take(p->fetching, v->ns, v->token, v->peer, now);
    else if (!token_bucket_take(&p->viewing, &views, now))
        leave = REVIEW_NOT_NOW;
    if (leave == REVIEW_NOT_NOW)
        return NULL;
    return fleet_reviews_ask(p->reviews, v->token, v->ns, leave == REVIEW_OF_KNOWN, on_reviewed, v);
}

static struct str token_of(const struct net_request *r)
{
    struct str bearer = STR("Bearer "), given = net_header(r, "authorization");

    return str_has_prefix(given, bearer) ? str_trim(str_from(given, bearer.n)) : STR_NULL;
}

static void begin(struct page *p, struct net_exchange *x, const struct net_request *r, bool events,
                  struct str ns)
{
    struct str token = token_of(r);
    struct viewer *v = NEW(struct viewer);
    enum review_verdict verdict;

    *v = (struct viewer){.page = p, .x = x, .token = mem_str(token), .events = events};
    LIST_INSERT_HEAD(&p->viewers, v, all);
    if (ns.n) {
        v->ns = mem_str(ns);
        v->peer = mem_str(r->peer);
    }
    *(ns.n ? &p->n_tenants : &p->n_viewers) += 1;
    net_on(x, viewer_free, on_drained, v);
    if (fleet_reviews_recall(p->reviews, token, ns, &verdict, &v->allowed_ms)) {
        decide(v, verdict, STR(""));
        return;
    }
    v->review = ask(v);
    if (v->review)
        return;
    net_on(x, NULL, NULL, NULL);
    viewer_free(v);
    refuse(x, &ERR_TOO_MANY_REQUESTS, STR("too many tokens are being reviewed; try again"));
}

/* --- requests --- */

static const struct fleet_page_file *file_of(struct str path)
{
    for (size_t i = 0; i < FLEET_PAGE_N_FILES; i++)
        if (str_eqc(path, FLEET_PAGE_FILES[i].path))
            return &FLEET_PAGE_FILES[i];
    return NULL;
}

/* Of "/tenants/NAMESPACE/dcgm"; empty: it is another path. */
static struct str tenant_of(struct str path)
{
    struct str begin = STR("/tenants/"), end = STR("/dcgm"), ns = STR("");

    if (str_has_prefix(path, begin) && str_has_suffix(path, end) && path.n > begin.n + end.n)
        ns = str_sub(path, begin.n, path.n - begin.n - end.n);
    for (size_t i = 0; i < ns.n; i++)
        if (!(ns.p[i] >= 'a' && ns.p[i] <= 'z') && !(ns.p[i] >= '0' && ns.p[i] <= '9') &&
            ns.p[i] != '-')
            return STR("");
    return ns.n <= 63 ? ns : STR("");
}

static void on_request(void *ctx, struct net_exchange *x, const struct net_request *r)
{
    struct page *p = ctx;
    const struct fleet_page_file *file = file_of(r->path);
    bool events = str_eqc(r->path, EVENTS_PATH);
    struct str ns = tenant_of(r->path);

    assert(p->magic == PAGE_MAGIC);
    if (!file && !events && !ns.n && !str_eqc(r->path, STATE_PATH))
        refuse(x, &ERR_NOT_FOUND, STR("only /, " STATE_PATH " and " EVENTS_PATH " are here"));
    else if (r->method != NET_GET && (r->method != NET_HEAD || events))
        refuse(x, &ERR_METHOD_NOT_ALLOWED, STR("only GET is served"));
    else if (file)
        respond(x, 200, file->type, (struct str){file->bytes, file->n});
    else if (!token_of(r).n)
        refuse(x, &ERR_UNAUTHORIZED, STR("a bearer token of the host is needed"));
    else if (ns.n ? p->n_tenants >= MOST_TENANTS : p->n_viewers >= MOST_VIEWERS)
        refuse(x, &ERR_TOO_MANY_REQUESTS, STR("too many look already; try again"));
    else
        begin(p, x, r, events, ns);
}

/* --- life --- */

static void release(struct page *p)
{
    p->reviews = fleet_reviews_free(p->reviews);
    p->fetching = fleet_review_rates_free(p->fetching);
    p->state = state_unref(p->state);
    p->magic = 0;
    mem_free(p);
}

static int listen_on(struct page *p, struct str address, struct err *err)
{
    const struct tls_files_options files = {
        .loop = p->o.loop, .certificate = p->o.certificate, .key = p->o.key, .what = "the page"};
    const struct net_options net = {.address = address,
                                    .handler = {on_request, p},
                                    .max_body = 1024,
                                    .max_header_bytes = 32768,
                                    .max_connections = MOST_CONNECTION,
                                    .max_streams = 16,
                                    .max_requests = MOST_CONNECTION,
                                    .stalled_ms = STALLED_MS};

    return fleet_tls_listen(&files, &net, &p->server, &p->files, err);
}

int fleet_page_open(const struct page_options *options, struct page **ret, struct err *err)
{
    const struct reviews_options reviews = {.clock = options->clock,
                                            .host = options->host,
                                            .path = STR(STATE_PATH),
                                            .audience = options->audience};
    struct page *p;

    if (!options->certificate.n && !net_is_loopback(options->address))
        return err_set(err, &ERR_BAD_REQUEST,
                       "listen on %.*s: a certificate is needed, except on a loopback address",
                       STR_F(options->address));
    p = NEW(struct page);
    *p = (struct page){.magic = PAGE_MAGIC, .o = *options};
    if (listen_on(p, options->address, err)) {
        release(p);
        return -1;
    }
    p->reviews = fleet_reviews_new(&reviews);
    p->fetching = fleet_review_rates_new();
    uv_timer_init(p->o.loop, &p->push);
    uv_timer_init(p->o.loop, &p->beat);
    p->push.data = p->beat.data = p;
    *ret = p;
    return 0;
}

unsigned fleet_page_port(const struct page *p)
{
    return net_port(p->server);
}

static void on_part_closed(void *ctx)
{
    struct page *p = ctx;
    void (*closed)(void *ctx) = p->closed;
    void *closed_ctx = p->closed_ctx;

    if (--p->open_parts)
        return;
    release(p);
    closed(closed_ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void on_net_closed(void *ctx)
{
    struct page *p = ctx;

    assert(LIST_EMPTY(&p->viewers));
    p->open_parts = 3;
    uv_close((uv_handle_t *)&p->push, on_handle_closed);
    uv_close((uv_handle_t *)&p->beat, on_handle_closed);
    fleet_tls_close(p->files, on_part_closed, p);
}

void fleet_page_close(struct page *p, void (*closed)(void *ctx), void *ctx)
{
    assert(p->magic == PAGE_MAGIC && !p->closing);
    p->closing = true;
    fleet_tls_stop(p->files);
    p->closed = closed;
    p->closed_ctx = ctx;
    net_close(p->server, GRACE_MS, on_net_closed, p);
}
