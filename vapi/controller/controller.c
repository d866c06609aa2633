/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of every controller: watches feed a queue, one function per key reads committed state
 * and issues writes, and the key is done when the last write was answered. It must never start a
 * key again while something of its last run is under way: that is what makes "read, compare, write"
 * right without expectations or a stale cache. */
#include <sublet/controller.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <sublet/log.h>

#define CONTROLLER_MAGIC 0x6374726cu
#define RECONCILE_MAGIC  0x7265636fu
#define OP_MAGIC         0x6f706572u
#define RUN_ARENA_BYTES  (64u << 20)

struct source {
    struct controller *controller;
    const struct controller_source *def;
    unsigned storage;
    struct store_watch *watch;
};

struct controller {
    unsigned magic;
    struct vapi *api;
    const struct controller_def *def;
    struct worker *worker;
    struct source *sources;
    size_t n_sources, n_runs;
    void *state;
    uint64_t
        last_error; /* hash of the last logged key and text: a stuck key logs once, not for ever */
    bool closing, worker_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct reconcile {
    unsigned magic;
    struct controller *controller;
    struct arena *arena;
    struct str key;
    struct op *last;
    unsigned pending; /* writes and holds under way, and 1 while reconcile() itself runs */
    bool failed, quiet_retry;
    struct err err;
    int64_t again_ms; /* -1: not asked for */
};

/* One write under way. Lives in the run's arena. */
struct op {
    unsigned magic;
    struct reconcile *run;
    bool removes;
    reconcile_cb then;
    void *then_ctx;
};

static void source_scan(struct source *s);

/* Watches. */

static bool on_existing(void *ctx, const struct store_object *o)
{
    struct source *s = ctx;
    struct store_event e = {.type = STORE_ADDED, .revision = o->revision, .object = o};

    s->def->map(s->controller, &e);
    return true;
}

static void source_read(struct source *s)
{
    bool expired = false;
    const struct store_event *e;

    while ((e = store_watch_next(s->watch, &expired)))
        s->def->map(s->controller, e);
    if (expired)
        source_scan(s);
}

static void on_wake(void *ctx)
{
    struct source *s = ctx;

    assert(s->controller->magic == CONTROLLER_MAGIC);
    if (!s->controller->closing)
        source_read(s);
}

struct scan_all {
    struct source *source;
    struct store *store;
};

static void scan_storage(struct source *s, struct store *store, unsigned storage)
{
    struct err err;

    err_init(&err, NULL);
    if (store_scan(store, storage, STR_NULL, STR_NULL, STR_NULL, 0, on_existing, s, &err))
        log_error("controller %s: cannot list: %.*s", s->controller->def->name, STR_F(err.message));
}

static bool on_resource(void *ctx, const struct resource *r)
{
    struct scan_all *all = ctx;

    /* A resource of several versions is stored once. */
    if (!(r->flags & RES_REVIEW) && str_eq(r->storage_version, r->api_version))
        scan_storage(all->source, all->store, r->storage);
    return true;
}

/* (Re)opens the watch at the present and maps everything that exists. */
static void source_scan(struct source *s)
{
    struct controller *c = s->controller;
    struct store *store = vapi_store(c->api);
    struct err err;

    s->watch = store_watch_close(s->watch);
    err_init(&err, NULL);
    int failed =
        store_watch_open(store, s->storage, store_revision(store), on_wake, s, &s->watch, &err);
    assert(!failed); /* the present is never too old */
    if (s->storage != STORE_ALL_RESOURCES) {
        scan_storage(s, store, s->storage);
        return;
    }
    struct scan_all all = {.source = s, .store = store};
    registry_each(vapi_registry(c->api), on_resource, &all);
}

static unsigned source_storage(struct controller *c, const struct controller_source *def)
{
    if (!strcmp(def->group, "*"))
        return STORE_ALL_RESOURCES;
    const struct resource *r = registry_find_group_resource(
        vapi_registry(c->api), str_c(def->group), str_c(def->resource));
    assert(r); /* controllers watch built-in kinds */
    return r->storage;
}

/* Runs. */

static uint64_t error_hash(const struct reconcile *r)
{
    return str_hash(r->err.message, str_hash(r->key, 1));
}

static void run_log(struct reconcile *r)
{
    uint64_t hash = error_hash(r);

    if (r->controller->last_error == hash)
        return;
    r->controller->last_error = hash;
    log_warn("%s: %.*s: %.*s", r->controller->def->name, STR_F(r->key), STR_F(r->err.message));
}

static void controller_maybe_closed(struct controller *c);

static void run_finish(struct reconcile *r)
{
    struct controller *c = r->controller;
    struct str key = r->key;

    assert(r->pending == 0);
    if (r->failed)
        run_log(r);
    if (r->again_ms >= 0 && !c->closing)
        worker_add_after(c->worker, key, r->again_ms);
    worker_done(c->worker, key, r->failed || r->quiet_retry);
    r->magic = 0;
    arena_free(r->arena); /* r and key lived in it */
    c->n_runs--;
    controller_maybe_closed(c);
}

static void run_release(struct reconcile *r)
{
    assert(r->pending > 0);
    if (--r->pending == 0)
        run_finish(r);
}

static void on_work(void *ctx, struct worker *w, struct str key)
{
    struct controller *c = ctx;
    struct arena *a = arena_new(RUN_ARENA_BYTES);
    struct reconcile *r = ARENA_NEW(a, struct reconcile);

    assert(c->magic == CONTROLLER_MAGIC && c->worker == w);
    *r = (struct reconcile){.magic = RECONCILE_MAGIC, .controller = c, .arena = a, .again_ms = -1};
    r->key = arena_str(a, key);
    err_init(&r->err, a);
    c->n_runs++;
    r->pending = 1;
    c->def->reconcile(r);
    run_release(r);
}

/* What another writer's progress explains is tried again without a word. */
static bool error_is_quiet(const struct err *err, bool removes)
{
    if (err->kind == &ERR_CONFLICT || err->kind == &ERR_ALREADY_EXISTS)
        return true;
    return err->kind == &ERR_NOT_FOUND && !removes;
}

void reconcile_fail(struct reconcile *r, const struct err *err)
{
    assert(r->magic == RECONCILE_MAGIC);
    if (r->failed)
        return;
    r->failed = true;
    r->err.kind = err->kind;
    r->err.message = arena_str(r->arena, err->message);
}

static void on_answer(void *ctx, const struct err *err, const struct store_object *object)
{
    struct op *op = ctx;
    struct reconcile *r = op->run;

    assert(op->magic == OP_MAGIC && r->magic == RECONCILE_MAGIC);
    if (err && op->removes && err->kind == &ERR_NOT_FOUND)
        err = NULL; /* gone is what was wanted */
    if (op->then)
        op->then(r, op->then_ctx, err, object);
    else if (err && error_is_quiet(err, op->removes))
        r->quiet_retry = true;
    else if (err)
        reconcile_fail(r, err);
    op->magic = 0;
    run_release(r);
}

static struct op *op_new(struct reconcile *r)
{
    assert(r->magic == RECONCILE_MAGIC);
    struct op *op = ARENA_NEW(r->arena, struct op);

    *op = (struct op){.magic = OP_MAGIC, .run = r};
    r->pending++;
    r->last = op;
    return op;
}

void reconcile_create(struct reconcile *r, const struct resource *res, struct str ns,
                      const cJSON *o)
{
    vapi_create(r->controller->api, res, ns, o, on_answer, op_new(r));
}

void reconcile_update(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    vapi_update(r->controller->api, res, STR_NULL, object, on_answer, op_new(r));
}

void reconcile_update_status(struct reconcile *r, const struct resource *res, const cJSON *object)
{
    vapi_update(r->controller->api, res, STR("status"), object, on_answer, op_new(r));
}

void reconcile_patch(struct reconcile *r, const struct resource *res, struct str subresource,
                     struct str ns, struct str name, const cJSON *patch)
{
    vapi_patch(r->controller->api, res, subresource, ns, name, patch, on_answer, op_new(r));
}

void reconcile_delete(struct reconcile *r, const struct resource *res, struct str ns,
                      struct str name, struct str uid, const char *propagation)
{
    struct vapi_delete options = {.grace_seconds = -1, .uid = uid, .propagation = propagation};
    struct op *op = op_new(r);

    op->removes = true;
    vapi_delete(r->controller->api, res, ns, name, &options, on_answer, op);
}

void reconcile_then(struct reconcile *r, reconcile_cb then, void *ctx)
{
    assert(r->magic == RECONCILE_MAGIC && r->last);
    r->last->then = then;
    r->last->then_ctx = ctx;
}

void reconcile_hold(struct reconcile *r)
{
    assert(r->magic == RECONCILE_MAGIC);
    r->pending++;
}

void reconcile_release(struct reconcile *r, const struct err *err)
{
    assert(r->magic == RECONCILE_MAGIC);
    if (err)
        reconcile_fail(r, err);
    run_release(r);
}

void reconcile_again_after(struct reconcile *r, int64_t delay_ms)
{
    if (r->again_ms < 0 || delay_ms < r->again_ms)
        r->again_ms = delay_ms < 0 ? 0 : delay_ms;
}

/* Accessors. */

struct arena *reconcile_arena(struct reconcile *r)
{
    return r->arena;
}

struct str reconcile_key(const struct reconcile *r)
{
    return r->key;
}

struct controller *reconcile_controller(struct reconcile *r)
{
    return r->controller;
}

struct vapi *reconcile_api(struct reconcile *r)
{
    return r->controller->api;
}

int64_t reconcile_now_s(const struct reconcile *r)
{
    return clock_wall_s(vapi_clock(r->controller->api));
}

unsigned reconcile_failures(const struct reconcile *r)
{
    return worker_failures(r->controller->worker, r->key);
}

const struct resource *reconcile_resource(struct reconcile *r, const char *group,
                                          const char *plural)
{
    return registry_find_group_resource(vapi_registry(r->controller->api), str_c(group),
                                        str_c(plural));
}

cJSON *reconcile_get(struct reconcile *r, const struct resource *res, struct str ns,
                     struct str name)
{
    const struct store_object *o =
        store_get(vapi_store(r->controller->api), res->storage, ns, name);

    return o ? vapi_tree(r->arena, o) : NULL;
}

struct list_ctx {
    struct arena *arena;
    const struct selector *selector;
    cJSON *items;
};

static bool on_listed(void *ctx, const struct store_object *o)
{
    struct list_ctx *l = ctx;

    if (!l->selector || selector_match(l->selector, o->labels))
        json_append(l->items, vapi_tree(l->arena, o));
    return true;
}

cJSON *reconcile_list(struct reconcile *r, const struct resource *res, struct str ns,
                      const struct selector *selector)
{
    struct list_ctx l = {
        .arena = r->arena, .selector = selector, .items = json_new_array(r->arena)};
    struct err err;

    err_init(&err, r->arena);
    if (store_scan(vapi_store(r->controller->api), res->storage, ns, STR_NULL, STR_NULL, 0,
                   on_listed, &l, &err))
        reconcile_fail(r, &err);
    return l.items;
}

void reconcile_event(struct reconcile *r, const cJSON *involved, const char *type,
                     const char *reason, const char *format, ...)
{
    struct buf text = BUF_INIT(1024);
    char line[1024];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n > 0)
        buf_add(&text, (struct str){line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1});
    vapi_event(r->controller->api, involved, type, reason, buf_str(&text),
               r->controller->def->name);
    buf_fini(&text);
}

struct vapi *controller_api(const struct controller *c)
{
    return c->api;
}

void *controller_state(const struct controller *c)
{
    return c->state;
}

/* Keys. */

void controller_add(struct controller *c, struct str key)
{
    if (!c->closing)
        worker_add(c->worker, key);
}

void controller_add_after(struct controller *c, struct str key, int64_t delay_ms)
{
    if (!c->closing)
        worker_add_after(c->worker, key, delay_ms);
}

struct str key_join(struct arena *a, struct str ns, struct str name)
{
    return arena_concat(a, 3, (struct str[]){ns, STR("/"), name});
}

bool key_split(struct str key, struct str *ret_ns, struct str *ret_name)
{
    size_t slash = str_find(key, '/');

    if (slash == key.n)
        return false;
    *ret_ns = str_sub(key, 0, slash);
    *ret_name = str_from(key, slash + 1);
    return true;
}

static void add_key(struct controller *c, struct str ns, struct str name)
{
    struct buf key = BUF_INIT(0);

    buf_add(&key, ns);
    buf_char(&key, '/');
    buf_add(&key, name);
    controller_add(c, buf_str(&key));
    buf_fini(&key);
}

void controller_map_self(struct controller *c, const struct store_event *e)
{
    add_key(c, e->object->ns, e->object->name);
}

static void map_owner_of(struct controller *c, const struct store_object *o, struct str kind)
{
    struct arena *a = arena_new(0);
    cJSON *tree = vapi_tree(a, o);

    json_each(owner, json_path(tree, "metadata.ownerReferences"))
    {
        if (json_true(json_get(owner, "controller")) && str_eq(json_str_at(owner, "kind"), kind))
            add_key(c, o->ns, json_str_at(owner, "name"));
    }
    arena_free(a);
}

void controller_map_owner(struct controller *c, const struct store_event *e, struct str kind)
{
    /* Most objects of a kind have no owner: look for the word before building a tree. */
    if (str_contains(e->object->bytes, STR("\"ownerReferences\"")))
        map_owner_of(c, e->object, kind);
    if (e->previous && str_contains(e->previous->bytes, STR("\"ownerReferences\"")))
        map_owner_of(c, e->previous, kind);
}

/* Life. */

struct controller *controller_start(struct vapi *api, const struct controller_def *def)
{
    struct controller *c = NEW(struct controller);

    *c = (struct controller){.magic = CONTROLLER_MAGIC, .api = api, .def = def};
    c->worker = worker_new(vapi_loop(api), vapi_clock(api), NULL, def->workers ? def->workers : 8,
                           on_work, c);
    if (def->start)
        c->state = def->start(c);
    while (def->sources[c->n_sources].group)
        c->n_sources++;
    c->sources = mem_alloc(c->n_sources * sizeof(*c->sources));
    for (size_t i = 0; i < c->n_sources; i++) {
        c->sources[i] = (struct source){.controller = c, .def = &def->sources[i]};
        c->sources[i].storage = source_storage(c, &def->sources[i]);
        source_scan(&c->sources[i]);
    }
    return c;
}

static void controller_maybe_closed(struct controller *c)
{
    if (!c->closing || !c->worker_closed || c->n_runs)
        return;
    void (*closed)(void *ctx) = c->closed;
    void *ctx = c->closed_ctx;

    if (c->def->stop)
        c->def->stop(c, c->state);
    c->magic = 0;
    mem_free(c->sources);
    mem_free(c);
    closed(ctx);
}

static void on_worker_closed(void *ctx)
{
    struct controller *c = ctx;

    assert(c->magic == CONTROLLER_MAGIC);
    c->worker_closed = true;
    controller_maybe_closed(c);
}

void controller_close(struct controller *c, void (*closed)(void *ctx), void *ctx)
{
    assert(c->magic == CONTROLLER_MAGIC && !c->closing);
    c->closing = true;
    c->closed = closed;
    c->closed_ctx = ctx;
    for (size_t i = 0; i < c->n_sources; i++)
        c->sources[i].watch = store_watch_close(c->sources[i].watch);
    worker_close(c->worker, on_worker_closed, c);
}
