/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of one collection of the host, kept by list and watch. Ordered by resourceVersion: an
 * older version of an object never replaces a newer one, whether it comes from a list, a watch or
 * the answer to a write. Must never take a failed or partial list for an empty one.
 *
 *   LISTING --last page--> WATCHING --ended, cut, stalled--> CHECKING --> WATCHING from the last
 *     |  ^                    |                                  |        revision
 *     |  '------- 410 --------'                                  '--> the host went back
 *     |
 *     '- 403, 404: WAITING five minutes     any failure -> WAITING (backoff) -> where it was
 *
 * A host that is restored to an earlier state ends its watches, and a watch from a resourceVersion
 * that it has not reached again would hide what it lost. So a list of one object (limit=1) comes
 * first: its resourceVersion shows whether the host went back.
 *
 * Source: k8s.io/client-go tools/cache/reflector.go; KEP-956 (bookmarks). */
#include <sublet/reflector.h>

#include <assert.h>
#include <string.h>

#include <uv.h>

#include <sublet/encode.h>

#include <sublet/hash.h>
#include "host_impl.h"

#define REFLECTOR_MAGIC   0x7265666cu
#define PAGE              500
#define REFUSED_MS        300000
#define REPORTED_FAILURES 3 /* in a row: one is cured by trying again */
/* A host sends a bookmark about every minute: a watch without any event for this long is dead. */
#define STALLED_MS  180000
#define ARENA_LIMIT (256u << 20)

enum state { LISTING, CHECKING, WATCHING, WAITING };

struct entry {
    struct host_object object; /* first: callers hold pointers to it */
    struct map_entry by_name;
    uint64_t round; /* of the last list that had it */
};

struct reflector {
    unsigned magic;
    struct reflector_options o;
    char *path, *query; /* query: "&labelSelector=...&fieldSelector=..." */
    enum state state, next;
    struct host_call *call;
    struct map objects;
    struct str cont; /* heap; continue token of the pending list */
    uint64_t round, list_revision, revision;
    int64_t list_begun_ms, listed_ms;
    char *resume;   /* resourceVersion to watch from, as the host wrote it */
    uint64_t lines; /* received by watches */
    uint64_t lines_at_check;
    unsigned failures;
    unsigned errors; /* in a row */
    bool synced, refused, expired, closing;
    size_t tried;   /* paths where nothing is: see elsewhere() */
    bool unwatched; /* the last watch was refused */
    uv_timer_t timer;
};

static void list_page(struct reflector *f);
static void check(struct reflector *f);
static void watch_open(struct reflector *f);

/* --- the cache --- */

static void entry_free(struct entry *e)
{
    mem_free(e->object.name.p);
    mem_free(e->object.uid.p);
    mem_free(e->object.bytes.p);
    mem_free(e);
}

static struct entry *find(const struct reflector *f, struct str name)
{
    struct map_entry *e = map_get(&f->objects, name);

    return e ? CONTAINER(e, struct entry, by_name) : NULL;
}

static struct str name_of(const struct reflector *f, struct arena *a, const cJSON *object)
{
    struct str name = json_str_at(object, "metadata.name");

    if (!f->o.by_namespace || !name.n)
        return name;
    return arena_printf(a, "%.*s/%.*s", STR_F(json_str_at(object, "metadata.namespace")),
                        STR_F(name));
}

static uint64_t revision_of(const cJSON *object)
{
    uint64_t revision = 0;

    str_to_u64(json_str_at(object, "metadata.resourceVersion"), &revision);
    return revision;
}

static struct str reduced_bytes(struct reflector *f, cJSON *object)
{
    struct arena *a = arena_new(0);
    struct buf b = BUF_INIT(0);
    struct str bytes;

    json_remove(json_get(object, "metadata"), "managedFields");
    if (f->o.reduce)
        f->o.reduce(a, object);
    json_print(&b, object);
    bytes = mem_str(buf_str(&b)); /* of the exact size: many are kept */
    buf_fini(&b);
    arena_free(a);
    return bytes;
}

static struct entry *entry_new(struct reflector *f, struct str name, cJSON *object,
                               uint64_t revision)
{
    struct entry *e = NEW(struct entry);

    e->object.name = mem_str(name);
    e->object.uid = mem_str(json_str_at(object, "metadata.uid"));
    e->object.revision = revision;
    e->object.bytes = reduced_bytes(f, object);
    return e;
}

/* Takes a version of an object. An older one than cached only proves that the object is in the
 * list: an object from a watch or a write may have been deleted before the list was made. */
static void put_as(struct reflector *f, struct str name, cJSON *object, bool listed)
{
    uint64_t revision = revision_of(object);
    struct entry *old = find(f, name), *e;

    if (!name.n)
        return;
    if (old && listed)
        old->round = f->round;
    if (old && revision && revision <= old->object.revision)
        return;
    e = entry_new(f, name, object, revision);
    e->round = listed ? f->round : old ? old->round : 0;
    if (old)
        map_remove(&f->objects, &old->by_name);
    map_put(&f->objects, &e->by_name, e->object.name);
    f->o.changed(f->o.ctx, &e->object, old ? &old->object : NULL);
    if (old)
        entry_free(old);
    if (f->o.forget) {
        mem_free(e->object.bytes.p);
        e->object.bytes = STR_NULL;
    }
}

static void put(struct reflector *f, cJSON *object, bool listed)
{
    struct arena *a = arena_new(0);

    put_as(f, name_of(f, a, object), object, listed);
    arena_free(a);
}

static void drop(struct reflector *f, struct entry *e)
{
    map_remove(&f->objects, &e->by_name);
    f->o.changed(f->o.ctx, NULL, &e->object);
    entry_free(e);
}

/* Drops what a complete list did not have, unless it was written after the list. */
static void sweep_one(void *ctx, struct map_entry *m)
{
    struct reflector *f = ctx;
    struct entry *e = CONTAINER(m, struct entry, by_name);

    if (e->round != f->round && e->object.revision <= f->list_revision)
        drop(f, e);
}

/* --- waiting --- */

static void on_timer(uv_timer_t *timer);

static void start_timer(struct reflector *f, int64_t ms)
{
    uv_update_time(f->timer.loop);
    uv_timer_start(&f->timer, on_timer, (uint64_t)ms, 0);
}

static void wait_then(struct reflector *f, enum state next, int64_t ms)
{
    f->state = WAITING;
    f->next = next;
    start_timer(f, ms);
}

/* err NULL: a request succeeded. */
static void report_failing(struct reflector *f, const struct err *err)
{
    bool was_reported = f->errors >= REPORTED_FAILURES;

    f->errors = err ? f->errors + 1 : 0;
    if (f->o.failing && (err ? f->errors >= REPORTED_FAILURES : was_reported))
        f->o.failing(f->o.ctx, err);
}

static void back_off(struct reflector *f, enum state next)
{
    const struct host_options *o = host_get_options(f->o.host);
    int64_t delay = o->backoff_ms;

    for (unsigned i = 0; i < f->failures && delay < o->backoff_max_ms; i++)
        delay *= 2;
    f->failures++;
    if (delay > o->backoff_max_ms)
        delay = o->backoff_max_ms;
    wait_then(f, next, delay / 2 + (int64_t)(rng_u64(o->rng) % (uint64_t)(delay / 2 + 1)));
}

static void go(struct reflector *f, enum state state)
{
    f->state = state;
    if (state == LISTING)
        list_page(f);
    else if (state == CHECKING)
        check(f);
    else
        watch_open(f);
}

static void check_again(struct reflector *f)
{
    host_cancel(f->call);
    f->call = NULL;
    uv_timer_stop(&f->timer);
    go(f, CHECKING);
}

static void on_timer(uv_timer_t *timer)
{
    struct reflector *f = timer->data;

    assert(f->magic == REFLECTOR_MAGIC);
    if (f->state == WAITING) {
        go(f, f->next);
        return;
    }
    if (f->state != WATCHING)
        return;
    if (f->lines != f->lines_at_check) {
        f->lines_at_check = f->lines;
        start_timer(f, STALLED_MS);
        return;
    }
    check_again(f);
}

static bool is_refusal(const struct err *err)
{
    return err->kind == &ERR_FORBIDDEN || err->kind == &ERR_NOT_FOUND ||
           err->kind == &ERR_METHOD_NOT_ALLOWED;
}

static void refuse(struct reflector *f, const struct err *err)
{
    bool said = f->refused;

    f->tried = 0;
    f->refused = true;
    wait_then(f, LISTING, REFUSED_MS);
    if (!said && f->o.refused)
        f->o.refused(f->o.ctx, err);
}

static void refuse_list(struct reflector *f, const struct err *err)
{
    if (err->kind != &ERR_NOT_FOUND || !f->o.elsewhere || !f->o.elsewhere(f->o.ctx, f->tried)) {
        refuse(f, err);
        return;
    }
    f->tried++;
    reflector_restart(f);
}

/* Where the objects may be elsewhere, only a list shows it: it comes soon, but for a path that
 * lists and never watches. */
static void refuse_watch(struct reflector *f, const struct err *err)
{
    bool soon = err->kind == &ERR_NOT_FOUND && f->o.elsewhere && !f->unwatched;

    f->unwatched = true;
    if (soon)
        back_off(f, LISTING);
    else
        refuse(f, err);
}

/* --- listing --- */

static void start_list(struct reflector *f)
{
    mem_free(f->cont.p);
    f->cont = STR_NULL;
    f->round++;
    f->state = LISTING;
}

static void set_resume(struct reflector *f, struct str revision)
{
    uint64_t number = 0;

    if (!revision.n)
        return;
    mem_free(f->resume);
    f->resume = mem_strdup(revision);
    if (str_to_u64(revision, &number) && number > f->revision)
        f->revision = number;
}

/* Is it lower than one the host has shown before? */
static bool went_back(const struct reflector *f, struct str revision)
{
    uint64_t number;

    return str_to_u64(revision, &number) && number < f->revision;
}

static void finish_list(struct reflector *f, struct str revision)
{
    if (went_back(f, revision)) {
        f->o.went_back(f->o.ctx);
        return;
    }
    mem_free(f->resume);
    f->resume = NULL;
    set_resume(f, revision);
    f->list_revision = 0;
    if (!str_to_u64(revision, &f->list_revision))
        f->list_revision = UINT64_MAX;
    f->listed_ms = f->list_begun_ms;
    map_each(&f->objects, sweep_one, f);
    f->failures = 0;
    f->synced = true;
    f->refused = false;
    f->tried = 0;
    go(f, WATCHING);
    if (f->o.current)
        f->o.current(f->o.ctx, true);
}

/* An empty list of PartialObjectMetadata has `"items": null`. */
static bool page_is_list(const cJSON *page)
{
    const cJSON *items = json_get(page, "items");

    return str_has_suffix(json_str(json_get(page, "kind")), STR("List")) &&
           (json_is_array(items) || json_is_null(items)) &&
           json_str_at(page, "metadata.resourceVersion").n > 0;
}

static void take_page(struct reflector *f, struct arena *a, struct str body)
{
    cJSON *page = NULL;
    struct err err;

    err_init(&err, a);
    if (json_parse(a, body, &page, &err) || !page_is_list(page)) {
        start_list(f);
        back_off(f, LISTING);
        return;
    }
    json_each(item, json_get(page, "items")) put(f, item, true);

    struct str cont = json_str_at(page, "metadata.continue");
    mem_free(f->cont.p);
    f->cont = cont.n ? mem_str(cont) : STR_NULL;
    if (f->cont.n)
        list_page(f);
    else
        finish_list(f, json_str_at(page, "metadata.resourceVersion"));
}

static void on_listed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct reflector *f = ctx;

    assert(f->magic == REFLECTOR_MAGIC && f->state == LISTING);
    f->call = NULL;
    if (!err) {
        struct arena *a = arena_new(ARENA_LIMIT);

        take_page(f, a, answer->body);
        arena_free(a);
        return;
    }
    /* A list cannot be resumed: after any failure it starts with its first page. */
    start_list(f);
    if (is_refusal(err)) {
        refuse_list(f, err);
        return;
    }
    back_off(f, LISTING);
    report_failing(f, err);
}

static const char *list_accept(const struct reflector *f)
{
    return f->o.metadata_only
               ? "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
               : NULL;
}

static void list_page(struct reflector *f)
{
    struct arena *a = arena_new(0);
    const struct clock *clock = host_get_options(f->o.host)->clock;
    struct str cont = url_encode(a, f->cont);
    struct host_request q = {.method = "GET", .accept = list_accept(f)};

    if (!f->cont.n)
        f->list_begun_ms = clock_mono_ms(clock);
    q.path = arena_printf(a, "%s?limit=%d%s%s%.*s", f->path, PAGE, f->query,
                          cont.n ? "&continue=" : "", STR_F(cont));
    f->call = host_send(f->o.host, &q, on_listed, f);
    arena_free(a);
}

/* --- checking --- */

static void resume(struct reflector *f)
{
    go(f, WATCHING);
    if (f->o.current)
        f->o.current(f->o.ctx, false);
}

static void on_checked(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct reflector *f = ctx;
    struct arena *a;
    cJSON *page = NULL;

    assert(f->magic == REFLECTOR_MAGIC && f->state == CHECKING);
    f->call = NULL;
    if (err && is_refusal(err)) {
        start_list(f);
        refuse_watch(f, err);
        return;
    }
    a = arena_new(ARENA_LIMIT);
    if (err || json_parse(a, answer->body, &page, NULL) || !page_is_list(page))
        back_off(f, CHECKING);
    else if (went_back(f, json_str_at(page, "metadata.resourceVersion")))
        f->o.went_back(f->o.ctx);
    else
        resume(f);
    arena_free(a);
    if (err)
        report_failing(f, err);
}

static void check(struct reflector *f)
{
    struct arena *a = arena_new(0);
    struct host_request q = {.method = "GET", .accept = list_accept(f)};

    q.path = arena_printf(a, "%s?limit=1%s", f->path, f->query);
    f->call = host_send(f->o.host, &q, on_checked, f);
    arena_free(a);
}

/* --- watching --- */

static void take_error(struct reflector *f, const cJSON *status)
{
    int64_t code = json_i64_at(status, "code", 0);

    /* Any other error ends the watch, which is resumed. */
    if (code == 410 || str_eqc(json_str_at(status, "reason"), "Expired"))
        f->expired = true;
}

static void take_removed(struct reflector *f, const cJSON *object)
{
    struct arena *a = arena_new(0);
    struct entry *e = find(f, name_of(f, a, object));
    uint64_t revision = revision_of(object);

    if (e && (!revision || revision >= e->object.revision))
        drop(f, e);
    arena_free(a);
}

static void take_event(struct reflector *f, const cJSON *event)
{
    struct str type = json_str(json_get(event, "type"));
    cJSON *object = json_get(event, "object");
    struct str revision = json_str_at(object, "metadata.resourceVersion");

    if (str_eqc(type, "ERROR")) {
        take_error(f, object);
        return;
    }
    if (!json_is_object(object) || !type.n)
        return;
    f->failures = 0;
    report_failing(f, NULL);
    if (str_eqc(type, "ADDED") || str_eqc(type, "MODIFIED"))
        put(f, object, false);
    else if (str_eqc(type, "DELETED"))
        take_removed(f, object);
    else if (!str_eqc(type, "BOOKMARK"))
        return;
    set_resume(f, revision);
}

static void watch_ended(struct reflector *f, const struct err *err)
{
    f->call = NULL;
    uv_timer_stop(&f->timer);
    if (f->expired || (err && (err->kind == &ERR_GONE || err->kind == &ERR_EXPIRED))) {
        f->expired = false;
        start_list(f);
        /* Back off: a host that expires each watch at once must not be listed in a loop. */
        back_off(f, LISTING);
    } else if (err && is_refusal(err)) {
        start_list(f);
        refuse_watch(f, err);
    } else {
        back_off(f, CHECKING);
        report_failing(f, err);
    }
}

static void on_line(void *ctx, struct str line)
{
    struct reflector *f = ctx;
    struct arena *a = arena_new(ARENA_LIMIT);
    cJSON *event = NULL;
    struct err err;

    assert(f->magic == REFLECTOR_MAGIC && f->state == WATCHING);
    f->lines++;
    err_init(&err, a);
    /* An unreadable event may hide a change: list again. */
    if (json_parse(a, line, &event, &err) || !json_is_object(event))
        f->expired = true;
    else
        take_event(f, event);
    arena_free(a);
    if (!f->expired)
        return;
    host_cancel(f->call);
    watch_ended(f, NULL);
}

static void on_watch_ended(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct reflector *f = ctx;

    (void)answer;
    assert(f->magic == REFLECTOR_MAGIC && f->state == WATCHING);
    watch_ended(f, err);
}

/* Ends after 25 to 35 minutes, jittered so that tenants do not reconnect all at once. */
static void watch_open(struct reflector *f)
{
    const struct host_options *o = host_get_options(f->o.host);
    unsigned timeout = 1500 + (unsigned)(rng_u64(o->rng) % 600);
    struct arena *a = arena_new(0);
    struct host_request q = {.method = "GET"};

    if (f->o.metadata_only)
        q.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
    q.path = arena_printf(a,
                          "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u"
                          "&resourceVersion=%s%s",
                          f->path, timeout, f->resume ? f->resume : "0", f->query);
    f->expired = false;
    f->lines_at_check = f->lines;
    f->call = host_stream(f->o.host, &q, on_line, on_watch_ended, f);
    start_timer(f, STALLED_MS);
    arena_free(a);
}

/* --- interface --- */

struct reflector *reflector_open(const struct reflector_options *options)
{
    const struct host_options *o = host_get_options(options->host);
    struct reflector *f = NEW(struct reflector);
    struct buf query = BUF_INIT(0);
    struct arena *a = arena_new(0);

    *f = (struct reflector){
        .magic = REFLECTOR_MAGIC, .o = *options, .path = mem_strdup(options->path)};
    f->revision = options->revision;
    if (options->label_selector.n) {
        buf_addc(&query, "&labelSelector=");
        buf_add(&query, url_encode(a, options->label_selector));
    }
    if (options->field_selector.n) {
        buf_addc(&query, "&fieldSelector=");
        buf_add(&query, url_encode(a, options->field_selector));
    }
    f->query = mem_strdup(buf_str(&query));
    buf_fini(&query);
    arena_free(a);
    uv_timer_init(o->loop, &f->timer);
    f->timer.data = f;
    start_list(f);
    list_page(f);
    return f;
}

static void free_entry(void *ctx, struct map_entry *m)
{
    struct reflector *f = ctx;

    map_remove(&f->objects, m);
    entry_free(CONTAINER(m, struct entry, by_name));
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct reflector *f = handle->data;

    map_each(&f->objects, free_entry, f);
    mem_free(f->cont.p);
    mem_free(f->resume);
    mem_free(f->path);
    mem_free(f->query);
    f->magic = 0;
    mem_free(f);
}

/* Freed when its timer is closed, on the loop's next turn. */
struct reflector *reflector_close(struct reflector *f)
{
    if (!f)
        return NULL;
    assert(f->magic == REFLECTOR_MAGIC && !f->closing);
    f->closing = true;
    host_cancel(f->call);
    f->call = NULL;
    uv_close((uv_handle_t *)&f->timer, on_timer_closed);
    return NULL;
}

bool reflector_synced(const struct reflector *f)
{
    return f && f->synced;
}

bool reflector_refused(const struct reflector *f)
{
    return f && f->refused;
}

const struct host_object *reflector_get(const struct reflector *f, struct str name)
{
    struct entry *e = f ? find(f, name) : NULL;

    return e ? &e->object : NULL;
}

struct each_ctx {
    void (*each)(void *ctx, const struct host_object *o);
    void *ctx;
};

static void each_entry(void *ctx, struct map_entry *m)
{
    struct each_ctx *c = ctx;

    c->each(c->ctx, &CONTAINER(m, struct entry, by_name)->object);
}

void reflector_each(struct reflector *f, void (*each)(void *ctx, const struct host_object *o),
                    void *ctx)
{
    struct each_ctx c = {each, ctx};

    if (f)
        map_each(&f->objects, each_entry, &c);
}

size_t reflector_count(const struct reflector *f)
{
    return f ? map_count(&f->objects) : 0;
}

void reflector_learn(struct reflector *f, struct str bytes)
{
    struct arena *a;
    cJSON *object = NULL;
    struct err err;

    if (!f || f->closing)
        return;
    a = arena_new(0);
    err_init(&err, a);
    if (!json_parse(a, bytes, &object, &err) && json_is_object(object)) {
        struct str name = name_of(f, a, object);
        uint64_t revision = revision_of(object);

        /* Absent, and older than the watch's position: it was deleted since, or the host was
         * restored, so that the watch says nothing any more. */
        if (revision && (find(f, name) || revision > f->revision))
            put(f, object, false);
        else if (revision && f->state == WATCHING)
            check_again(f);
    }
    arena_free(a);
}

int64_t reflector_listed_ms(const struct reflector *f)
{
    return f && f->synced && f->state == WATCHING ? f->listed_ms : REFLECTOR_NOT_CURRENT;
}

static void forget_revision(void *ctx, struct map_entry *m)
{
    (void)ctx;
    CONTAINER(m, struct entry, by_name)->object.revision = 0;
}

void reflector_restart(struct reflector *f)
{
    if (!f || f->closing)
        return;
    host_cancel(f->call);
    f->call = NULL;
    uv_timer_stop(&f->timer);
    map_each(&f->objects, forget_revision, NULL);
    f->revision = 0;
    f->failures = 0;
    f->synced = f->expired = false;
    start_list(f);
    list_page(f);
}

void reflector_at(struct reflector *f, struct str path)
{
    mem_free(f->path);
    f->path = mem_strdup(path);
}

void reflector_kick(struct reflector *f)
{
    if (!f || f->state != WAITING || f->refused)
        return;
    f->failures = 0;
    start_timer(f, 0);
}
