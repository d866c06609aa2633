/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_host.h. Just enough of a Kubernetes API to be wrong about nothing the syncer relies on:
 * uid preconditions, revisions, graceful deletion of pods, 410 for what is forgotten. Must never do
 * what a real host would not. Its size: requests, watches, rights and pods' lives share one table
 * of objects, as they do in a real one. */
#include "fake_host.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/schema.h>

#include "host/transport.h"
#include "map.h"

#define TICK_MS 2

struct object {
    struct object *next;
    char *plural, *name;
    struct str bytes; /* heap */
    uint64_t revision;
};

struct event {
    const char *type;
    char *plural;
    struct str bytes;
    uint64_t revision;
    bool ours;
};

struct created {
    struct map_entry entry;
    char *uid;
    unsigned doubled;
    bool told;
};

/* How often it was asked for so. */
struct asked {
    char method[8], plural[32];
    bool dry_run;
    unsigned n;
};

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

struct fake_host {
    uv_loop_t *loop;
    uv_timer_t tick;
    uint64_t random, revision, forgotten;
    struct fake_faults faults;
    struct object *objects;
    struct event *events;
    size_t n_events, capacity;
    struct map created;
    struct line *line;
    char *denied[4]; /* "create services": RBAC refuses it */
    struct asked asked[64];
    size_t n_asked;
    unsigned trespasses, requests, uids;
    char place[64];
    bool closed;
};

/* --- chance --- */

uint64_t fake_host_random(struct fake_host *h)
{
    h->random ^= h->random >> 12;
    h->random ^= h->random << 25;
    h->random ^= h->random >> 27;
    return h->random * 2685821657736338717u;
}

static bool chance(struct fake_host *h, unsigned of_thousand)
{
    return (fake_host_random(h) >> 20) % 1000 < of_thousand;
}

/* --- objects --- */

static cJSON *parse(struct arena *a, struct str bytes)
{
    cJSON *tree = NULL;

    if (json_parse(a, bytes, &tree, NULL))
        return NULL;
    return tree;
}

static bool is_ours(const cJSON *tree)
{
    return json_get(json_path(tree, "metadata.labels"), "sublet.dev/cluster") != NULL;
}

static struct object **find(struct fake_host *h, const char *plural, const char *name)
{
    struct object **at = &h->objects;

    while (*at && (strcmp((*at)->plural, plural) != 0 || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static void record(struct fake_host *h, const char *type, const char *plural, struct str bytes,
                   bool ours)
{
    if (h->n_events == h->capacity) {
        h->capacity = h->capacity ? h->capacity * 2 : 256;
        h->events = mem_realloc(h->events, h->capacity * sizeof(*h->events));
    }
    h->events[h->n_events++] =
        (struct event){type, mem_strdup(str_c(plural)), mem_str(bytes), h->revision, ours};
}

static struct str stamp(struct fake_host *h, struct arena *a, cJSON *tree)
{
    struct buf b = BUF_INIT(0);
    struct str bytes;

    h->revision++;
    json_set_str(a, json_get(tree, "metadata"), "resourceVersion",
                 arena_printf(a, "%llu", (unsigned long long)h->revision));
    json_print(&b, tree);
    bytes = mem_str(buf_str(&b));
    buf_fini(&b);
    return bytes;
}

static void store(struct fake_host *h, struct arena *a, const char *plural, cJSON *tree)
{
    const char *name = arena_cstr(a, json_str_at(tree, "metadata.name"));
    struct object **at = find(h, plural, name), *o = *at;
    const char *type = o ? "MODIFIED" : "ADDED";

    if (!o) {
        o = NEW(struct object);
        o->plural = mem_strdup(str_c(plural));
        o->name = mem_strdup(str_c(name));
        *at = o;
    }
    mem_free(o->bytes.p);
    o->bytes = stamp(h, a, tree);
    o->revision = h->revision;
    record(h, type, plural, o->bytes, is_ours(tree));
}

static void object_free(struct object *o)
{
    mem_free(o->plural);
    mem_free(o->name);
    mem_free(o->bytes.p);
    mem_free(o);
}

static void drop(struct fake_host *h, struct arena *a, struct object **at)
{
    struct object *o = *at;
    cJSON *tree = parse(a, o->bytes);
    struct str bytes = stamp(h, a, tree);

    record(h, "DELETED", o->plural, bytes, is_ours(tree));
    mem_free(bytes.p);
    *at = o->next;
    object_free(o);
}

static struct created *account_of(struct fake_host *h, struct str uid)
{
    struct map_entry *e = map_get(&h->created, uid);

    return e ? CONTAINER(e, struct created, entry) : NULL;
}

static struct str virtual_uid(const cJSON *tree)
{
    return json_str(json_get(json_path(tree, "metadata.annotations"), "sublet.dev/uid"));
}

static void count_created(struct fake_host *h, const cJSON *tree)
{
    struct str uid = virtual_uid(tree);
    struct created *c = account_of(h, uid);

    if (!uid.n)
        return;
    if (!c) {
        c = NEW(struct created);
        c->uid = mem_strdup(uid);
        map_put(&h->created, &c->entry, str_c(c->uid));
    }
    c->doubled += c->told;
}

/* These bytes are on their way to the syncer. */
static void note_told(struct fake_host *h, struct arena *a, const char *plural, struct str bytes)
{
    struct created *c;

    if (strcmp(plural, "pods") != 0)
        return;
    c = account_of(h, virtual_uid(parse(a, bytes)));
    if (c)
        c->told = true;
}

unsigned fake_host_doubled(struct fake_host *h, struct str uid)
{
    struct created *c = account_of(h, uid);

    return c ? c->doubled : 0;
}

/* DefaultStorageClass: a class marked as the default; there is one at most here. */
static void fill_class(struct fake_host *h, struct arena *a, cJSON *spec)
{
    for (struct object *o = h->objects; o && !json_get(spec, "storageClassName"); o = o->next) {
        if (!strcmp(o->plural, "storageclasses") &&
            str_contains(o->bytes, STR("is-default-class\":\"true\"")))
            json_set_str(a, spec, "storageClassName", str_c(o->name));
    }
}

static void fill(struct fake_host *h, struct arena *a, const char *plural, cJSON *tree)
{
    cJSON *metadata = json_ensure_object(a, tree, "metadata");
    cJSON *spec = json_ensure_object(a, tree, "spec");

    h->uids++;
    json_set_str(a, metadata, "uid", arena_printf(a, "host-uid-%u", h->uids));
    json_set_str(a, metadata, "creationTimestamp", STR("2026-01-01T00:00:00Z"));
    if (!strcmp(plural, "pods"))
        json_set_str(a, json_ensure_object(a, tree, "status"), "phase", STR("Pending"));
    if (!strcmp(plural, "persistentvolumeclaims"))
        fill_class(h, a, spec);
    if (!strcmp(plural, "services") && !json_get(spec, "clusterIP")) {
        struct str ip = arena_printf(a, "10.0.%u.%u", h->uids / 250, h->uids % 250 + 1);

        json_set_str(a, spec, "clusterIP", ip);
        json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    }
    if (str_eqc(json_str_at(tree, "spec.type"), "NodePort")) {
        json_each(port, json_get(spec, "ports"))
            json_set_i64(a, port, "nodePort", 30000 + h->uids % 2000);
    }
}

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
    char *plural, *name;
    bool dry_run;
};

/* /api/v1[/namespaces/ns]/plural[/name[/sub]] */
static void read_path(struct wire *w, struct arena *a, struct target *t)
{
    struct str rest = str_c(w->path), part, ns_word = STR("namespaces");

    *t = (struct target){
        .arena = a, .plural = arena_cstr(a, STR("")), .name = arena_cstr(a, STR(""))};
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
    t->dry_run = strstr(w->query, "dryRun=All") != NULL;
}

static void do_list(struct fake_host *h, struct wire *w, struct target *t)
{
    struct buf b = BUF_INIT(0);
    bool labelled = strstr(w->query, "labelSelector=") != NULL, first = true;

    buf_printf(&b, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"%llu\"},\"items\":[",
               (unsigned long long)h->revision);
    for (struct object *o = h->objects; o; o = o->next) {
        if (strcmp(o->plural, t->plural) != 0 || (labelled && !is_ours(parse(t->arena, o->bytes))))
            continue;
        if (!first)
            buf_char(&b, ',');
        buf_add(&b, o->bytes);
        first = false;
        if (w->handler.data != ignore_data)
            note_told(h, t->arena, o->plural, o->bytes);
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
    o = *find(h, t->plural, t->name);
    if (!o) {
        answer_status(w, 404, "NotFound");
        return;
    }
    if (w->handler.data != ignore_data)
        note_told(h, t->arena, o->plural, o->bytes);
    answer(w, 200, o->bytes);
}

static bool is_address_taken(struct fake_host *h, struct target *t, const cJSON *tree)
{
    struct str wanted = json_str_at(tree, "spec.clusterIP");

    for (struct object *o = h->objects; o && wanted.n && !str_eqc(wanted, "None"); o = o->next)
        if (!strcmp(o->plural, "services") &&
            str_eq(json_str_at(parse(t->arena, o->bytes), "spec.clusterIP"), wanted))
            return true;
    return false;
}

static void do_create(struct fake_host *h, struct wire *w, struct target *t)
{
    cJSON *tree = parse(t->arena, w->body);
    const char *name;

    assert(tree);
    if (!strcmp(t->plural, "services") && is_address_taken(h, t, tree)) {
        answer_status(w, 422, "Invalid");
        return;
    }
    name = arena_cstr(t->arena, json_str_at(tree, "metadata.name"));
    if (*find(h, t->plural, name)) {
        answer_status(w, 409, "AlreadyExists");
        return;
    }
    fill(h, t->arena, t->plural, tree);
    if (t->dry_run) {
        answer(w, 201, json_text(t->arena, tree));
        return;
    }
    store(h, t->arena, t->plural, tree);
    if (!strcmp(t->plural, "pods"))
        count_created(h, tree);
    if (w->handler.data != ignore_data)
        note_told(h, t->arena, t->plural, (*find(h, t->plural, name))->bytes);
    answer(w, 201, (*find(h, t->plural, name))->bytes);
}

static bool uid_fits(const cJSON *wanted, const cJSON *tree)
{
    struct str uid = json_str(wanted);

    return !uid.n || str_eq(uid, json_str_at(tree, "metadata.uid"));
}

static void note_trespass(struct fake_host *h, const char *plural, const cJSON *tree)
{
    struct str name = json_str_at(tree, "metadata.name");

    if (!is_ours(tree) && !(!strcmp(plural, "secrets") && str_has_suffix(name, STR("-kubeconfig"))))
        h->trespasses++;
}

static void do_patch(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object *o = *find(h, t->plural, t->name);
    cJSON *patch = parse(t->arena, w->body), *tree = o ? parse(t->arena, o->bytes) : NULL, *made;

    if (!tree) {
        answer_status(w, 404, "NotFound");
        return;
    }
    if (!uid_fits(json_path(patch, "metadata.uid"), tree)) {
        answer_status(w, 409, "Conflict");
        return;
    }
    note_trespass(h, t->plural, tree);
    if (patch_merge(t->arena, tree, patch, &made, NULL)) {
        answer_status(w, 400, "BadRequest");
        return;
    }
    store(h, t->arena, t->plural, made);
    answer(w, 200, o->bytes);
}

/* Only of the version that was read. */
static void do_update(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object *o = *find(h, t->plural, t->name);
    cJSON *made = parse(t->arena, w->body), *tree = o ? parse(t->arena, o->bytes) : NULL;

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
    store(h, t->arena, t->plural, made);
    answer(w, 200, o->bytes);
}

static void mark_deleted(struct fake_host *h, struct target *t, cJSON *tree, int64_t grace)
{
    cJSON *metadata = json_get(tree, "metadata");

    json_set_str(t->arena, metadata, "deletionTimestamp", STR("2026-01-01T00:00:30Z"));
    json_set_i64(t->arena, metadata, "deletionGracePeriodSeconds", grace);
    store(h, t->arena, t->plural, tree);
}

static void do_delete(struct fake_host *h, struct wire *w, struct target *t)
{
    struct object **at = find(h, t->plural, t->name);
    cJSON *options = w->body.n ? parse(t->arena, w->body) : NULL;
    cJSON *tree = *at ? parse(t->arena, (*at)->bytes) : NULL;
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
        drop(h, t->arena, at);
    answer(w, 200, STR("{}"));
}

/* --- watches --- */

static void send_event(struct wire *w, const struct event *e)
{
    struct arena *a = arena_new(0);
    struct buf b = BUF_INIT(0);

    note_told(w->line->host, a, e->plural, e->bytes);
    arena_free(a);

    buf_printf(&b, "{\"type\":\"%s\",\"object\":", e->type);
    buf_add(&b, e->bytes);
    buf_addc(&b, "}\n");
    w->handler.data(w->handler.ctx, buf_str(&b));
    buf_fini(&b);
}

static void feed(struct fake_host *h, struct wire *w)
{
    while (!w->dead && w->position < h->n_events) {
        const struct event e = h->events[w->position++];

        if (!strcmp(e.plural, w->plural) && (!w->labelled || e.ours))
            send_event(w, &e);
    }
}

static void do_watch(struct fake_host *h, struct wire *w, struct target *t)
{
    const char *at = strstr(w->query, "resourceVersion=");
    struct str number = str_c(at ? at + 16 : "");
    uint64_t revision = 0;

    str_to_u64(str_cut(&number, '&'), &revision);
    if (revision < h->forgotten || chance(h, h->faults.expire)) {
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
        assert(h->n_asked < sizeof(h->asked) / sizeof(*h->asked));
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
    struct str right = arena_printf(t->arena, "%s %s", verb_of(w, t), t->plural);
    struct str said;

    for (size_t i = 0; i < sizeof(h->denied) / sizeof(*h->denied); i++) {
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
    if (!h->faults.full || strcmp(t->plural, h->faults.full) != 0 || strcmp(w->method, "POST") != 0)
        return false;
    answer(w, 403,
           arena_printf(t->arena,
                        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"%s \\\"x\\\" is "
                        "forbidden: exceeded quota: team, requested: count/%s=1, used: count/%s=9, "
                        "limited: count/%s=9\",\"reason\":\"Forbidden\",\"code\":403}",
                        t->plural, t->plural, t->plural, t->plural));
    return true;
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
    if (h->faults.unreadable && !strcmp(t.plural, h->faults.unreadable) && !*t.name &&
        !strcmp(w->method, "GET"))
        answer_status(w, 403, "Forbidden");
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

static void on_due(uv_timer_t *timer)
{
    struct wire *w = timer->data;
    struct fake_host *h = w->line->host;
    const struct fake_faults *f = &h->faults;

    h->requests++;
    if (f->down || chance(h, f->refuse))
        end(w, 0, "connection refused");
    else if (f->unauthorized)
        answer_status(w, 401, "Unauthorized");
    else if (!is_stream(w) && chance(h, f->busy))
        answer_status(w, 429, "TooManyRequests");
    else if (!is_stream(w) && chance(h, f->fail))
        answer_status(w, 500, "InternalError");
    else if (!is_stream(w) && chance(h, f->lose))
        lose_answer(h, w);
    else
        execute(h, w);
}

static void *line_start(struct transport *base, const struct wire_request *q,
                        const struct wire_handler *handler)
{
    struct line *line = (struct line *)(void *)base;
    struct fake_host *h = line->host;
    struct wire *w = NEW(struct wire);
    size_t mark = str_find(q->path, '?');
    unsigned delay = h->faults.max_delay_ms;

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
    uv_timer_start(&w->timer, on_due, delay ? fake_host_random(h) % delay : 0, 0);
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
    return &line->base;
}

/* --- scheduler, kubelet, and the passage of time --- */

static void run_pod(struct fake_host *h, struct arena *a, cJSON *pod)
{
    cJSON *status = json_ensure_object(a, pod, "status"), *list, *one;

    json_set_str(a, status, "phase", STR("Running"));
    json_set_str(a, status, "podIP",
                 arena_printf(a, "10.1.0.%llu", (unsigned long long)(h->revision % 250)));
    json_set_str(a, status, "startTime", STR("2026-01-01T00:00:00Z"));
    list = json_set(a, status, "conditions", json_new_array(a));
    one = json_append(list, json_new_object(a));
    json_set_str(a, one, "type", STR("Ready"));
    json_set_str(a, one, "status", STR("True"));
    store(h, a, "pods", pod);
}

/* The node its first required term names, if any. */
static struct str pinned(const cJSON *spec)
{
    const cJSON *terms = json_path(spec, "affinity.nodeAffinity."
                                         "requiredDuringSchedulingIgnoredDuringExecution."
                                         "nodeSelectorTerms");
    const cJSON *field = json_first(json_get(json_first(terms), "matchFields"));

    return json_str(json_first(json_get(field, "values")));
}

/* One step of one pod. */
static void advance_pod(struct fake_host *h, struct arena *a, struct object **at)
{
    cJSON *pod = parse(a, (*at)->bytes), *spec = json_ensure_object(a, pod, "spec");
    struct str phase = json_str_at(pod, "status.phase");

    if (json_path(pod, "metadata.deletionTimestamp")) {
        if (!json_count(json_path(pod, "metadata.finalizers")))
            drop(h, a, at);
    } else if (!json_get(spec, "nodeName")) {
        struct str node = pinned(spec);

        if (!node.n)
            node = h->place[0]
                       ? str_c(h->place)
                       : arena_printf(a, "node-%llu", (unsigned long long)(h->revision % 3));
        json_set_str(a, spec, "nodeName", node);
        store(h, a, "pods", pod);
    } else if (str_eqc(phase, "Pending")) {
        run_pod(h, a, pod);
    }
}

static void advance(struct fake_host *h)
{
    struct object **at = &h->objects;

    while (*at) {
        struct object *o = *at;

        if (!strcmp(o->plural, "pods") && chance(h, 500)) {
            struct arena *a = arena_new(0);

            advance_pod(h, a, at);
            arena_free(a);
        }
        if (*at == o)
            at = &o->next;
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct fake_host *h = timer->data;
    struct wire *next;

    advance(h);
    for (struct wire *w = h->line ? h->line->wires : NULL; w; w = next) {
        next = w->next;
        if (!w->watching || w->dead)
            continue;
        if (h->faults.down || chance(h, h->faults.cut)) {
            end(w, 0, "connection reset");
            break; /* what it led to may have changed the list */
        }
        feed(h, w);
        if (w->dead)
            break;
    }
    if (h->faults.expire && chance(h, h->faults.expire))
        h->forgotten = h->revision;
}

/* --- others on the host --- */

cJSON *fake_host_list(struct fake_host *h, struct arena *a, const char *plural)
{
    cJSON *list = json_new_array(a);

    for (struct object *o = h->objects; o; o = o->next)
        if (!strcmp(o->plural, plural))
            json_append(list, parse(a, o->bytes));
    return list;
}

size_t fake_host_count(struct fake_host *h, const char *plural)
{
    struct arena *a = arena_new(0);
    size_t n = 0;

    json_each(object, fake_host_list(h, a, plural)) n += is_ours(object);
    arena_free(a);
    return n;
}

void fake_host_put(struct fake_host *h, const char *plural, const char *json)
{
    struct arena *a = arena_new(0);
    cJSON *tree = parse(a, str_c(json));

    assert(tree);
    fill(h, a, plural, tree);
    store(h, a, plural, tree);
    arena_free(a);
}

void fake_host_patch(struct fake_host *h, const char *plural, const char *name, const char *json)
{
    struct arena *a = arena_new(0);
    struct object *o = *find(h, plural, name);
    cJSON *made;

    assert(o);
    if (!patch_merge(a, parse(a, o->bytes), parse(a, str_c(json)), &made, NULL))
        store(h, a, plural, made);
    arena_free(a);
}

void fake_host_place(struct fake_host *h, const char *node)
{
    snprintf(h->place, sizeof(h->place), "%s", node);
}

static struct object **choose(struct fake_host *h, struct arena *a, const char *plural)
{
    size_t n = fake_host_count(h, plural), k = n ? fake_host_random(h) % n : 0;

    for (struct object **at = &h->objects; *at && n; at = &(*at)->next)
        if (!strcmp((*at)->plural, plural) && is_ours(parse(a, (*at)->bytes)) && k-- == 0)
            return at;
    return NULL;
}

bool fake_host_remove(struct fake_host *h, const char *plural, const char *name)
{
    struct arena *a = arena_new(0);
    struct object **at = name ? find(h, plural, name) : choose(h, a, plural);
    bool found = at && *at;

    if (found)
        drop(h, a, at);
    arena_free(a);
    return found;
}

bool fake_host_finish_pod(struct fake_host *h, const char *phase)
{
    struct arena *a = arena_new(0);
    struct object **at = choose(h, a, "pods");
    cJSON *pod = at ? parse(a, (*at)->bytes) : NULL;
    bool runs = str_eqc(json_str_at(pod, "status.phase"), "Running");

    if (runs) {
        json_set_str(a, json_get(pod, "status"), "phase", str_c(phase));
        store(h, a, "pods", pod);
    }
    arena_free(a);
    return runs;
}

struct fake_faults *fake_host_faults(struct fake_host *h)
{
    return &h->faults;
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
    size_t n = sizeof(h->denied) / sizeof(*h->denied), at = n;

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

/* --- life --- */

struct fake_host *fake_host_new(uv_loop_t *loop, uint64_t seed)
{
    struct fake_host *h = NEW(struct fake_host);

    h->loop = loop;
    h->random = seed * 2 + 1;
    h->revision = 1;
    map_init(&h->created, seed);
    uv_timer_init(loop, &h->tick);
    h->tick.data = h;
    uv_timer_start(&h->tick, on_tick, TICK_MS, TICK_MS);
    return h;
}

static void created_free(void *ctx, struct map_entry *e)
{
    struct created *c = CONTAINER(e, struct created, entry);

    (void)ctx;
    mem_free(c->uid);
    mem_free(c);
}

static void objects_free(struct object *o)
{
    while (o) {
        struct object *next = o->next;

        object_free(o);
        o = next;
    }
}

struct fake_host_image {
    struct object *objects;
    uint64_t revision;
};

struct fake_host_image *fake_host_image(struct fake_host *h)
{
    struct fake_host_image *image = NEW(struct fake_host_image);
    struct object **at = &image->objects;

    image->revision = h->revision;
    for (const struct object *o = h->objects; o; o = o->next) {
        *at = NEW(struct object);
        **at = (struct object){NULL, mem_strdup(str_c(o->plural)), mem_strdup(str_c(o->name)),
                               mem_str(o->bytes), o->revision};
        at = &(*at)->next;
    }
    return image;
}

void fake_host_roll_back(struct fake_host *h, struct fake_host_image *image)
{
    objects_free(h->objects);
    h->objects = image->objects;
    h->revision = image->revision;
    mem_free(image);
    while (h->n_events && h->events[h->n_events - 1].revision > h->revision) {
        struct event *e = &h->events[--h->n_events];

        mem_free(e->plural);
        mem_free(e->bytes.p);
    }
    map_each(&h->created, created_free, NULL);
    map_fini(&h->created);
    map_init(&h->created, h->random);
    for (struct wire *w = h->line ? h->line->wires : NULL, *next; w; w = next) {
        next = w->next;
        if (w->watching)
            end(w, 200, NULL);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct fake_host *h = handle->data;

    objects_free(h->objects);
    for (size_t i = 0; i < h->n_events; i++) {
        mem_free(h->events[i].plural);
        mem_free(h->events[i].bytes.p);
    }
    mem_free(h->events);
    for (size_t i = 0; i < sizeof(h->denied) / sizeof(*h->denied); i++)
        mem_free(h->denied[i]);
    map_each(&h->created, created_free, NULL);
    map_fini(&h->created);
    mem_free(h);
}

void fake_host_free(struct fake_host *h)
{
    assert(!h->line);
    uv_close((uv_handle_t *)&h->tick, on_closed);
}
