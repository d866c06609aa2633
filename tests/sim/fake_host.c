/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_host.h. Just enough of a Kubernetes API to be wrong about nothing the syncer relies on:
 * uid preconditions, revisions, graceful deletion of pods, 410 for what is forgotten. Must never do
 * what a real host would not. */
#include "fake_host_impl.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/schema.h>

#include "host/transport.h"

#define TICK_MS 2
#define SLOW_MS 1500

struct wire {
    struct wire *next, **prev;
    struct line *line;
    char method[8];
    char *path, *query;
    struct str body;
    struct wire_handler handler;
    uv_timer_t timer;
    bool watching, dead;
    char *plural;
    bool labelled;
    size_t position; /* in the events */
};

/* One client's way to the host. */
struct line {
    struct transport base;
    struct fake_host *host;
    struct wire *wires;
    unsigned open; /* timers */
    bool closing;
    void (*closed)(void *ctx);
    void *ctx;
};

/* --- answers --- */

static void wire_free(uv_handle_t *handle)
{
    struct wire *w = handle->data;
    struct line *line = w->line;

    mem_free(w->path);
    mem_free(w->query);
    mem_free(w->plural);
    mem_free(w->body.p);
    mem_free(w);
    if (--line->open == 0 && line->closing) {
        void (*closed)(void *ctx) = line->closed;
        void *ctx = line->ctx;

        if (line->host->line == line)
            line->host->line = NULL;
        mem_free(line);
        closed(ctx);
    }
}

static void kill_wire(struct wire *w)
{
    if (w->dead)
        return;
    w->dead = true;
    *w->prev = w->next;
    if (w->next)
        w->next->prev = w->prev;
    uv_close((uv_handle_t *)&w->timer, wire_free);
}

static void end(struct wire *w, int status, const char *failure)
{
    struct wire_handler handler = w->handler;
    struct wire_failure why = {w->line->host->faults.trouble, failure, str_c(failure)};

    if (why.trouble == HOST_FINE)
        why.trouble = HOST_REFUSED;
    kill_wire(w);
    handler.end(handler.ctx, status, 0, status ? NULL : &why);
}

static void answer(struct wire *w, int status, struct str body)
{
    if (body.n)
        w->handler.data(w->handler.ctx, body);
    if (!w->dead)
        end(w, status, NULL);
}

static void answer_status(struct wire *w, int status, const char *reason)
{
    struct arena *a = arena_new(0);

    answer(w, status,
           arena_printf(a,
                        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"%s\","
                        "\"reason\":\"%s\",\"code\":%d}",
                        reason, reason, status));
    arena_free(a);
}

/* An answer that gets lost on the way goes here. */
static void ignore_data(void *ctx, struct str bytes)
{
    (void)ctx;
    (void)bytes;
}

/* --- verbs --- */

struct target {
    struct arena *arena;
    char *plural, *name, *sub;
    bool dry_run;
};

/* /api/v1[/namespaces/ns]/plural[/name[/sub]] */
static void read_path(struct wire *w, struct arena *a, struct target *t)
{
    struct str rest = str_c(w->path), part, ns_word = STR("namespaces");

    *t = (struct target){.arena = a,
                         .plural = arena_cstr(a, STR("")),
                         .name = arena_cstr(a, STR("")),
                         .sub = arena_cstr(a, STR(""))};
    str_cut(&rest, '/');
    part = str_cut(&rest, '/'); /* api or apis */
    if (str_eqc(part, "apis"))
        str_cut(&rest, '/');
    str_cut(&rest, '/');
    part = str_cut(&rest, '/');
    if (str_eq(part, ns_word) && rest.p && str_find(rest, '/') < rest.n) {
        str_cut(&rest, '/');
        part = str_cut(&rest, '/');
    }
    t->plural = arena_cstr(a, part);
    if (rest.p)
        t->name = arena_cstr(a, str_cut(&rest, '/'));
    if (rest.p)
        t->sub = arena_cstr(a, rest);
    t->dry_run = strstr(w->query, "dryRun=All") != NULL;
}

static void do_list(struct fake_host *h, struct wire *w, struct target *t)
{
    struct buf b = BUF_INIT(0);
    bool labelled = strstr(w->query, "labelSelector=") != NULL, first = true;

    buf_printf(&b, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%llu\"},\"items\":[",
               (unsigned long long)h->revision);
    for (struct object *o = h->objects; o; o = o->next) {
        if (strcmp(o->plural, t->plural) != 0 ||
            (labelled && !fake_is_ours(fake_parse(t->arena, o->bytes))))
            continue;
        if (!first)
            buf_char(&b, ',');
        buf_add(&b, o->bytes);
        first = false;
        if (w->handler.data != ignore_data)
            fake_note_told(h, t->arena, o->plural, o->bytes);
    }
    buf_addc(&b, "]}");
    answer(w, 200, buf_str(&b));
    buf_fini(&b);
}

static void do_get(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object *o;

    if (!*t->name) {
        do_list(h, w, t);
        return;
    }
    o = *fake_find(h, t->plural, t->name);
    if (!o) {
        answer_status(w, 404, "NotFound");
        return;
    }
    if (w->handler.data != ignore_data)
        fake_note_told(h, t->arena, o->plural, o->bytes);
    answer(w, 200, o->bytes);
}

static bool is_address_taken(struct fake_host *h, struct target *t, const cJSON *tree)
{
    struct str wanted = json_str_at(tree, "spec.clusterIP");

    for (struct object *o = h->objects; o && wanted.n && !str_eqc(wanted, "None"); o = o->next)
        if (!strcmp(o->plural, "services") &&
            str_eq(json_str_at(fake_parse(t->arena, o->bytes), "spec.clusterIP"), wanted))
            return true;
    return false;
}

static void do_create(struct fake_host *h, struct wire *w, struct target *t)
{
    cJSON *tree = fake_parse(t->arena, w->body);
    const char *name;

    assert(tree);
    if (!strcmp(t->plural, "services") && is_address_taken(h, t, tree)) {
        answer_status(w, 422, "Invalid");
        return;
    }
    name = arena_cstr(t->arena, json_str_at(tree, "metadata.name"));
    if (*fake_find(h, t->plural, name)) {
        answer_status(w, 409, "AlreadyExists");
        return;
    }
    fake_fill(h, t->arena, t->plural, tree);
    if (!strcmp(t->plural, "pods"))
        fake_mutate_pod(h, t->arena, tree, NULL);
    if (t->dry_run) {
        answer(w, 201, json_text(t->arena, tree));
        return;
    }
    fake_store(h, t->arena, t->plural, tree);
    if (!strcmp(t->plural, "pods"))
        fake_count_created(h, tree);
    if (w->handler.data != ignore_data)
        fake_note_told(h, t->arena, t->plural, (*fake_find(h, t->plural, name))->bytes);
    answer(w, 201, (*fake_find(h, t->plural, name))->bytes);
}

static bool uid_fits(const cJSON *wanted, const cJSON *tree)
{
    struct str uid = json_str(wanted);

    return !uid.n || str_eq(uid, json_str_at(tree, "metadata.uid"));
}

static bool is_published(const char *plural, struct str name)
{
    return (!strcmp(plural, "secrets") && str_has_suffix(name, STR("-kubeconfig"))) ||
           (!strcmp(plural, "configmaps") && str_eqc(name, "sublet-gpu-demand"));
}

static void note_trespass(struct fake_host *h, const char *plural, const cJSON *tree)
{
    struct str name = json_str_at(tree, "metadata.name");

    if (!fake_is_ours(tree) && !is_published(plural, name))
        h->trespasses++;
}

/* Those of subresources are strategic ones, and change no metadata. */
static int apply_patch(const struct target *t, const cJSON *now, const cJSON *patch, cJSON **ret)
{
    uint32_t pod = schema_builtin_root(STR(""), STR("v1"), STR("Pod"));
    cJSON *object = json_copy(t->arena, now), *only = json_copy(t->arena, patch);

    if (!*t->sub)
        return patch_merge(t->arena, object, patch, ret, NULL);
    json_remove(only, "metadata");
    return patch_strategic(t->arena, &SCHEMA_BUILTIN, pod, object, only, ret, NULL);
}

/* Such a write is none, and no event. */
static bool is_same_but_for_revision(struct arena *a, const cJSON *before, const cJSON *now)
{
    cJSON *x = json_copy(a, before), *y = json_copy(a, now);

    json_remove(json_get(x, "metadata"), "resourceVersion");
    json_remove(json_get(y, "metadata"), "resourceVersion");
    return json_equal(x, y);
}

static void do_patch(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object *o = *fake_find(h, t->plural, t->name);
    cJSON *patch = fake_parse(t->arena, w->body), *tree = o ? fake_parse(t->arena, o->bytes) : NULL,
          *made;

    if (!tree) {
        answer_status(w, 404, "NotFound");
        return;
    }
    if (!uid_fits(json_path(patch, "metadata.uid"), tree)) {
        answer_status(w, 409, "Conflict");
        return;
    }
    note_trespass(h, t->plural, tree);
    if (apply_patch(t, tree, patch, &made)) {
        answer_status(w, 400, "BadRequest");
        return;
    }
    if (!strcmp(t->plural, "pods"))
        fake_mutate_pod(h, t->arena, made, tree);
    if (t->dry_run) {
        answer(w, 200, json_text(t->arena, made));
        return;
    }
    if (!is_same_but_for_revision(t->arena, tree, made))
        fake_store(h, t->arena, t->plural, made);
    answer(w, 200, o->bytes);
}

/* Only of the version that was read. */
static void do_update(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object *o = *fake_find(h, t->plural, t->name);
    cJSON *made = fake_parse(t->arena, w->body), *tree = o ? fake_parse(t->arena, o->bytes) : NULL;

    if (!tree) {
        answer_status(w, 404, "NotFound");
        return;
    }
    if (!uid_fits(json_path(made, "metadata.uid"), tree) ||
        !str_eq(json_str_at(made, "metadata.resourceVersion"),
                json_str_at(tree, "metadata.resourceVersion"))) {
        answer_status(w, 409, "Conflict");
        return;
    }
    fake_store(h, t->arena, t->plural, made);
    answer(w, 200, o->bytes);
}

static void mark_deleted(struct fake_host *h, struct target *t, cJSON *tree, int64_t grace)
{
    cJSON *metadata = json_get(tree, "metadata");

    json_set_str(t->arena, metadata, "deletionTimestamp", STR("2026-01-01T00:00:30Z"));
    json_set_i64(t->arena, metadata, "deletionGracePeriodSeconds", grace);
    fake_store(h, t->arena, t->plural, tree);
}

static void do_delete(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object **at = fake_find(h, t->plural, t->name);
    cJSON *options = w->body.n ? fake_parse(t->arena, w->body) : NULL;
    cJSON *tree = *at ? fake_parse(t->arena, (*at)->bytes) : NULL;
    int64_t grace = json_i64_at(options, "gracePeriodSeconds", 30);

    if (!tree) {
        answer_status(w, 404, "NotFound");
        return;
    }
    if (!uid_fits(json_path(options, "preconditions.uid"), tree)) {
        answer_status(w, 409, "Conflict");
        return;
    }
    note_trespass(h, t->plural, tree);
    if (!strcmp(t->plural, "pods") && json_path(tree, "spec.nodeName") && grace > 0)
        mark_deleted(h, t, tree, grace);
    else
        fake_drop(h, t->arena, at);
    answer(w, 200, STR("{}"));
}

/* --- watches --- */

static void send_event(struct wire *w, const struct event *e)
{
    struct arena *a = arena_new(0);
    struct buf b = BUF_INIT(0);

    fake_note_told(w->line->host, a, e->plural, e->bytes);
    arena_free(a);

    buf_printf(&b, "{\"type\":\"%s\",\"object\":", e->type);
    buf_add(&b, e->bytes);
    buf_addc(&b, "}\n");
    w->handler.data(w->handler.ctx, buf_str(&b));
    buf_fini(&b);
}

static void feed(struct fake_host *h, struct wire *w)
{
    if (h->faults.deaf && !strcmp(w->plural, h->faults.deaf))
        return;
    while (!w->dead && w->position < h->n_events) {
        const struct event e = h->events[w->position++];

        if (!strcmp(e.plural, w->plural) && (w->labelled ? e.ours : !e.selected))
            send_event(w, &e);
    }
}

static void do_watch(struct fake_host *h, struct wire *w, struct target *t)
{
    const char *at = strstr(w->query, "resourceVersion=");
    struct str number = str_c(at ? at + 16 : "");
    uint64_t revision = 0;

    str_to_u64(str_cut(&number, '&'), &revision);
    if (revision < h->forgotten || fake_chance(h, h->faults.expire)) {
        w->handler.data(w->handler.ctx,
                        STR("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                            "\"reason\":\"Expired\"}}\n"));
        if (!w->dead)
            end(w, 200, NULL);
        return;
    }
    w->watching = true;
    w->plural = mem_strdup(str_c(t->plural));
    w->labelled = strstr(w->query, "labelSelector=") != NULL;
    while (w->position < h->n_events && h->events[w->position].revision <= revision)
        w->position++;
    feed(h, w);
}

static void count_asked(struct fake_host *h, const struct wire *w, const struct target *t)
{
    struct asked *q = h->asked, *end = h->asked + h->n_asked;

    while (q < end && (strcmp(q->method, w->method) != 0 || strcmp(q->plural, t->plural) != 0 ||
                       q->dry_run != t->dry_run))
        q++;
    if (q == end) {
        assert(h->n_asked < COUNT(h->asked));
        h->n_asked++;
        snprintf(q->method, sizeof(q->method), "%s", w->method);
        snprintf(q->plural, sizeof(q->plural), "%s", t->plural);
        q->dry_run = t->dry_run;
    }
    q->n++;
}

static const char *verb_of(const struct wire *w, const struct target *t)
{
    if (strstr(w->query, "watch=1"))
        return "watch";
    if (!strcmp(w->method, "GET"))
        return *t->name ? "get" : "list";
    if (!strcmp(w->method, "POST"))
        return "create";
    return !strcmp(w->method, "PATCH") ? "patch" : !strcmp(w->method, "PUT") ? "update" : "delete";
}

static bool is_denied(struct fake_host *h, struct wire *w, const struct target *t)
{
    struct str right =
        arena_printf(t->arena, "%s %s%s%s", verb_of(w, t), t->plural, *t->sub ? "/" : "", t->sub);
    struct str said;

    for (size_t i = 0; i < COUNT(h->denied); i++) {
        if (!h->denied[i] || !str_eqc(right, h->denied[i]))
            continue;
        said = arena_printf(t->arena,
                            "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"%s is "
                            "forbidden: User \\\"system:serviceaccount:team:x\\\" cannot %s "
                            "resource \\\"%s\\\" in API group \\\"\\\" in the namespace "
                            "\\\"team\\\"\",\"reason\":\"Forbidden\",\"code\":403,"
                            "\"details\":{\"kind\":\"%s\"}}",
                            t->plural, verb_of(w, t), t->plural, t->plural);
        answer(w, 403, said);
        return true;
    }
    return false;
}

/* Source of the message: plugin/pkg/admission/resourcequota/controller.go, checkRequest. */
static bool exceeds_quota(struct fake_host *h, struct wire *w, const struct target *t)
{
    const char *of = h->faults.full_of;

    if (!h->faults.full || strcmp(t->plural, h->faults.full) != 0 || strcmp(w->method, "POST") != 0)
        return false;
    if (!of)
        of = arena_printf(t->arena, "count/%s", t->plural).p;
    answer(w, 403,
           arena_printf(t->arena,
                        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"%s \\\"x\\\" is "
                        "forbidden: exceeded quota: team, requested: %s=1, used: %s=9, "
                        "limited: %s=9\",\"reason\":\"Forbidden\",\"code\":403}",
                        t->plural, of, of, of));
    return true;
}

static bool is_collection(const struct wire *w, const struct target *t, const char *plural)
{
    return plural && !strcmp(t->plural, plural) && !*t->name && !strcmp(w->method, "GET");
}

static void execute(struct fake_host *h, struct wire *w)
{
    struct arena *a = arena_new(0);
    struct target t;

    read_path(w, a, &t);
    count_asked(h, w, &t);
    if (is_denied(h, w, &t) || exceeds_quota(h, w, &t)) {
        arena_free(a);
        return;
    }
    if (is_collection(w, &t, h->faults.unreadable))
        answer_status(w, 403, "Forbidden");
    else if (is_collection(w, &t, h->faults.unlisted) && !strstr(w->query, "labelSelector="))
        answer_status(w, 500, "InternalError");
    else if (strstr(w->query, "watch=1"))
        do_watch(h, w, &t);
    else if (!strcmp(w->method, "GET"))
        do_get(h, w, &t);
    else if (!strcmp(w->method, "POST"))
        do_create(h, w, &t);
    else if (!strcmp(w->method, "PATCH"))
        do_patch(h, w, &t);
    else if (!strcmp(w->method, "PUT"))
        do_update(h, w, &t);
    else
        do_delete(h, w, &t);
    arena_free(a);
}

/* --- the transport --- */

static void ignore_end(void *ctx, int status, int64_t retry, const struct wire_failure *failure)
{
    (void)ctx;
    (void)status;
    (void)retry;
    (void)failure;
}

static bool is_stream(const struct wire *w)
{
    return strstr(w->query, "watch=1") != NULL;
}

static void lose_answer(struct fake_host *h, struct wire *w)
{
    static const struct wire_failure reset = {HOST_BROKEN, "connection reset", {NULL, 0}};
    struct wire_handler real = w->handler;

    w->handler = (struct wire_handler){ignore_data, ignore_end, NULL};
    execute(h, w);
    real.end(real.ctx, 0, 0, &reset);
}

static void trace(struct fake_host *h, const struct wire *w)
{
    h->trace = str_hash(str_c(w->method), h->trace ^ uv_now(h->loop));
    h->trace = str_hash(str_c(w->path), h->trace);
    h->trace = str_hash(str_c(w->query), h->trace);
    h->trace = str_hash(w->body, h->trace);
}

static void on_due(uv_timer_t *timer)
{
    struct wire *w = timer->data;
    struct fake_host *h = w->line->host;
    const struct fake_faults *f = &h->faults;

    h->requests++;
    trace(h, w);
    if (f->down || fake_chance(h, f->refuse))
        end(w, 0, "connection refused");
    else if (f->unauthorized)
        answer_status(w, 401, "Unauthorized");
    else if (!is_stream(w) && fake_chance(h, f->busy))
        answer_status(w, 429, "TooManyRequests");
    else if (!is_stream(w) && fake_chance(h, f->fail))
        answer_status(w, 500, "InternalError");
    else if (!is_stream(w) && fake_chance(h, f->lose))
        lose_answer(h, w);
    else
        execute(h, w);
}

static unsigned latency(struct fake_host *h, struct wire *w)
{
    const struct fake_faults *f = &h->faults;
    struct arena *a = arena_new(0);
    struct target t;
    bool slow;

    read_path(w, a, &t);
    slow = f->slow && !strcmp(w->method, "GET") && *t.name && !strcmp(t.plural, f->slow);
    arena_free(a);
    if (slow)
        return SLOW_MS;
    return f->max_delay_ms ? (unsigned)(fake_host_random(h) % f->max_delay_ms) : 0;
}

static void *line_start(struct transport *base, const struct wire_request *q,
                        const struct wire_handler *handler)
{
    struct line *line = (struct line *)(void *)base;
    struct fake_host *h = line->host;
    struct wire *w = NEW(struct wire);
    size_t mark = str_find(q->path, '?');

    snprintf(w->method, sizeof(w->method), "%s", q->method);
    w->line = line;
    w->path = mem_strdup(str_sub(q->path, 0, mark));
    w->query = mem_strdup(mark < q->path.n ? str_from(q->path, mark + 1) : STR(""));
    w->body = q->body.n ? mem_str(q->body) : STR_NULL;
    w->handler = *handler;
    w->next = line->wires;
    w->prev = &line->wires;
    if (w->next)
        w->next->prev = &w->next;
    line->wires = w;
    line->open++;
    uv_timer_init(h->loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_due, latency(h, w), 0);
    return w;
}

static void line_cancel(struct transport *base, void *wire)
{
    (void)base;
    kill_wire(wire);
}

static void on_line_timer(uv_handle_t *handle)
{
    wire_free(handle);
}

static void line_close(struct transport *base, void (*closed)(void *ctx), void *ctx)
{
    struct line *line = (struct line *)(void *)base;
    struct wire *last = NEW(struct wire); /* closed() comes from the loop, whatever is open */

    assert(!line->wires);
    line->closing = true;
    line->closed = closed;
    line->ctx = ctx;
    line->open++;
    last->line = line;
    uv_timer_init(line->host->loop, &last->timer);
    last->timer.data = last;
    uv_close((uv_handle_t *)&last->timer, on_line_timer);
}

struct transport *fake_host_transport(struct fake_host *h)
{
    static const struct transport_ops ops = {line_start, line_cancel, line_close};
    struct line *line = NEW(struct line);

    *line = (struct line){.base = {&ops}, .host = h};
    h->line = line;
    fake_forget_told(h);
    return &line->base;
}

/* --- the passage of time --- */

static void on_tick(uv_timer_t *timer)
{
    struct fake_host *h = timer->data;
    struct wire *next;

    fake_advance(h);
    for (struct wire *w = h->line ? h->line->wires : NULL; w; w = next) {
        next = w->next;
        if (!w->watching || w->dead)
            continue;
        if (h->faults.down || fake_chance(h, h->faults.cut)) {
            end(w, 0, "connection reset");
            break; /* what it led to may have changed the list */
        }
        feed(h, w);
        if (w->dead)
            break;
    }
    if (h->faults.expire && fake_chance(h, h->faults.expire))
        h->forgotten = h->revision;
}

struct fake_faults *fake_host_faults(struct fake_host *h)
{
    return &h->faults;
}

unsigned fake_host_outstanding(const struct fake_host *h, const char *method, const char *plural)
{
    struct arena *a = arena_new(0);
    unsigned n = 0;
    struct target t;

    for (struct wire *w = h->line ? h->line->wires : NULL; w; w = w->next) {
        read_path(w, a, &t);
        n += !w->dead && !strcmp(w->method, method) && *t.name && !strcmp(t.plural, plural);
    }
    arena_free(a);
    return n;
}

unsigned fake_host_asked(const struct fake_host *h, const char *method, const char *plural,
                         bool dry_run)
{
    for (size_t i = 0; i < h->n_asked; i++)
        if (!strcmp(h->asked[i].method, method) && !strcmp(h->asked[i].plural, plural) &&
            h->asked[i].dry_run == dry_run)
            return h->asked[i].n;
    return 0;
}

void fake_host_deny(struct fake_host *h, const char *right, bool deny)
{
    size_t n = COUNT(h->denied), at = n;

    for (size_t i = n; i-- > 0;) {
        if (deny ? !h->denied[i] : h->denied[i] && !strcmp(h->denied[i], right))
            at = i;
    }
    assert(at < n);
    mem_free(h->denied[at]);
    h->denied[at] = deny ? mem_strdup(str_c(right)) : NULL;
}

unsigned fake_host_trespasses(const struct fake_host *h)
{
    return h->trespasses;
}

unsigned fake_host_requests(const struct fake_host *h)
{
    return h->requests;
}

uint64_t fake_host_trace(const struct fake_host *h)
{
    return h->trace;
}

/* --- life --- */

struct fake_host *fake_host_new(uv_loop_t *loop, uint64_t seed)
{
    struct fake_host *h = NEW(struct fake_host);

    h->loop = loop;
    h->random = seed * 2 + 1;
    h->revision = 1;
    uv_timer_init(loop, &h->tick);
    h->tick.data = h;
    uv_timer_start(&h->tick, on_tick, TICK_MS, TICK_MS);
    return h;
}

void fake_host_roll_back(struct fake_host *h, struct fake_host_image *image)
{
    fake_objects_roll_back(h, image);
    for (struct wire *w = h->line ? h->line->wires : NULL, *next; w; w = next) {
        next = w->next;
        if (w->watching)
            end(w, 200, NULL);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct fake_host *h = handle->data;

    fake_objects_fini(h);
    for (size_t i = 0; i < COUNT(h->denied); i++)
        mem_free(h->denied[i]);
    mem_free(h);
}

void fake_host_free(struct fake_host *h)
{
    assert(!h->line);
    uv_close((uv_handle_t *)&h->tick, on_closed);
}
