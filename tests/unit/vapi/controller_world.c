/* SPDX-License-Identifier: Apache-2.0 */
/* A control plane with a clock of the test's own and a tiny kubelet, to run controllers in: see the
 * header. */
#include "controller_world.h"
#include "../../quoted.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include <sublet/kinds.h>
#include <sublet/log.h>
#include <sublet/store.h>

#define QUIET_ROUNDS 3
#define MAX_ROUNDS   20000

/* Something a loop runs for. What is done before the loop would sleep must keep it from sleeping.
 */
struct flag {
    struct world *world;
    bool done;
};

struct world {
    uv_loop_t loop;
    char dir[64];
    struct arena *arena;
    struct store *store;
    struct pki *pki;
    struct vapi *api;
    struct controllers *controllers;
    const struct world_guest *guest; /* NULL: none */
    void *guest_state;
    struct config config;
    struct clock clock;
    struct rng rng;
    int64_t now_us;
    uint64_t random;
    fate_of fate;
    void *fate_ctx;
    bool frozen;
    struct flag ready;
    struct {
        struct flag flag;
        size_t pending;
    } driven;
};

/* ---- time and chance ---- */

/* A microsecond passes with every look: names made of the time differ. */
static int64_t wall(void *ctx)
{
    return ((struct world *)ctx)->now_us++;
}

static int64_t mono(void *ctx)
{
    return ((struct world *)ctx)->now_us / 1000;
}

/* xorshift64*: the same seed, the same names and uids. */
static uint64_t next_random(struct world *w)
{
    w->random ^= w->random >> 12;
    w->random ^= w->random << 25;
    w->random ^= w->random >> 27;
    return w->random * 2685821657736338717u;
}

static void fill(void *ctx, void *out, size_t n)
{
    unsigned char *p = out;

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(next_random(ctx) >> 32);
}

uint64_t world_random(struct world *w)
{
    return next_random(w);
}

int64_t world_now(const struct world *w)
{
    return w->now_us / 1000000;
}

/* ---- up and down ---- */

static void raise_flag(struct flag *f)
{
    f->done = true;
    uv_stop(&f->world->loop);
}

static void run_until(struct flag *f)
{
    while (!f->done)
        uv_run(&f->world->loop, UV_RUN_ONCE);
}

static void on_ready(void *ctx, const struct err *err)
{
    struct world *w = ctx;

    if (err)
        print_error("start: %.*s\n", STR_F(err->message));
    assert_null(err);
    raise_flag(&w->ready);
}

static void on_closed(void *ctx)
{
    raise_flag(ctx);
}

static void open_all(struct world *w)
{
    struct store_options so = {.path = w->dir, .readable = kinds_stored_readable};
    struct str name = STR("localhost");
    struct pki_options po = {.clock = &w->clock,
                             .rng = &w->rng,
                             .names = &name,
                             .n_names = 1,
                             .issuer = STR("https://kubernetes.default.svc.cluster.local")};
    struct vapi_options vo = {.loop = &w->loop,
                              .config = &w->config,
                              .clock = &w->clock,
                              .rng = &w->rng,
                              .version = STR("v1.36.3")};
    struct err err;

    err_init(&err, w->arena);
    if (store_open(&w->loop, &so, &w->store, &err) || pki_open(w->store, &po, &w->pki, &err))
        fail_msg("%.*s", STR_F(err.message));
    vo.store = w->store;
    vo.pki = w->pki;
    w->config.listen_address = STR("127.0.0.1:0");
    w->config.controllers_native = true;
    if (vapi_new(&vo, &w->api, &err))
        fail_msg("%.*s", STR_F(err.message));
    if (w->guest)
        w->guest_state = w->guest->open(w->api);
    if (vapi_start(w->api, on_ready, w, &err))
        fail_msg("%.*s", STR_F(err.message));
    w->ready.world = w;
    run_until(&w->ready);
    w->controllers = vapi_controllers(w->api);
    if (w->guest)
        w->guest->start(w->guest_state);
}

/* When the first of all has something to do; INT64_MIN: now. */
static int64_t next_due(const struct world *w)
{
    int64_t due = controllers_next_due(w->controllers);
    int64_t guest = w->guest ? w->guest->next_due(w->guest_state) : INT64_MAX;

    return guest < due ? guest : due;
}

static void wake_all(struct world *w)
{
    controllers_wake(w->controllers);
    if (w->guest)
        w->guest->wake(w->guest_state);
}

struct world *world_new(uint64_t seed)
{
    return world_new_with(seed, NULL);
}

struct world *world_new_with(uint64_t seed, const struct world_guest *guest)
{
    struct world *w = NEW(struct world);

    log_set_level(getenv("SHOW") ? LOG_DEBUG : LOG_ERROR);
    w->guest = guest;
    w->frozen = guest != NULL;
    w->random = seed * 2 + 1;
    w->arena = arena_new(0);
    w->now_us = INT64_C(1800000000) * 1000000;
    w->clock = (struct clock){wall, mono, w};
    w->rng = (struct rng){fill, w};
    snprintf(w->dir, sizeof(w->dir), "/tmp/world-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    uv_loop_init(&w->loop);
    open_all(w);
    world_settle(w);
    return w;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static void close_api(struct world *w)
{
    struct flag api_closed = {w, false};
    struct flag guest_closed = {w, false};

    if (w->guest) {
        w->guest->close(w->guest_state, on_closed, &guest_closed);
        run_until(&guest_closed);
    }
    vapi_close(w->api, on_closed, &api_closed);
    run_until(&api_closed);
    w->pki = pki_free(w->pki);
}

static void close_store(struct world *w)
{
    struct flag closed = {w, false};

    store_close(w->store, on_closed, &closed);
    run_until(&closed);
}

void world_restart(struct world *w, void (*offline)(struct store *store, void *ctx), void *ctx)
{
    close_api(w);
    offline(w->store, ctx);
    close_store(w);
    w->ready = (struct flag){w, false};
    open_all(w);
    world_settle(w);
}

void world_restart_on_file(struct world *w, const char *sql)
{
    struct str path = arena_printf(w->arena, "%s/state.db", w->dir);
    sqlite3 *db;

    close_api(w);
    close_store(w);
    assert_int_equal(sqlite3_open_v2(path.p, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_true(sqlite3_total_changes(db) > 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    w->ready = (struct flag){w, false};
    open_all(w);
    world_settle(w);
}

void world_free(struct world *w)
{
    close_api(w);
    close_store(w);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    arena_free(w->arena);
    mem_free(w);
}

struct vapi *world_api(struct world *w)
{
    return w->api;
}

struct config *world_config(struct world *w)
{
    return &w->config;
}

struct arena *world_arena(struct world *w)
{
    return w->arena;
}

void world_fates(struct world *w, fate_of fate, void *ctx)
{
    w->fate = fate;
    w->fate_ctx = ctx;
}

void world_freeze(struct world *w, bool frozen)
{
    w->frozen = frozen;
}

/* ---- one test ---- */

struct world *W;

int world_set_up(void **state)
{
    (void)state;
    W = world_new(1);
    world_create(W, "namespaces", "", "{'metadata':{'name':'n'}}");
    world_settle(W);
    return 0;
}

int world_tear_down(void **state)
{
    (void)state;
    world_free(W);
    return 0;
}

static enum fate always(void *ctx, const cJSON *pod)
{
    (void)pod;
    return (enum fate)(uintptr_t)ctx;
}

void world_fate(enum fate fate)
{
    world_fates(W, always, (void *)(uintptr_t)fate);
}

/* ---- requests ---- */

static const struct resource *resource_of(struct world *w, const char *name)
{
    struct str group = str_c(name), plural = str_cut(&group, '.');
    const struct resource *r =
        registry_find_group_resource(vapi_registry(w->api), group.p ? group : STR(""), plural);

    if (!r)
        fail_msg("no resource %s", name);
    return r;
}

cJSON *world_parse(struct world *w, const char *json)
{
    return quoted_json(w->arena, str_c(json));
}

struct request {
    struct flag flag;
    char reason[64], message[512];
};

static void on_done(void *ctx, const struct err *err, const struct store_object *object)
{
    struct request *r = ctx;

    (void)object;
    raise_flag(&r->flag);
    if (err) {
        snprintf(r->reason, sizeof(r->reason), "%s", err->kind->reason);
        snprintf(r->message, sizeof(r->message), "%.*s", STR_F(err->message));
    }
}

static void finish(struct request *r, const char *what)
{
    run_until(&r->flag);
    if (r->reason[0])
        fail_msg("%s: %s: %s", what, r->reason, r->message);
}

void world_create_tree(struct world *w, const char *resource, const char *ns, const cJSON *object)
{
    struct request r = {.flag = {w, false}};

    vapi_create(w->api, resource_of(w, resource), str_c(ns), object, on_done, &r);
    finish(&r, resource);
}

void world_create(struct world *w, const char *resource, const char *ns, const char *json)
{
    world_create_tree(w, resource, ns, world_parse(w, json));
}

const char *world_try_tree(struct world *w, const char *resource, const char *ns,
                           const cJSON *object)
{
    struct request r = {.flag = {w, false}};

    vapi_create(w->api, resource_of(w, resource), str_c(ns), object, on_done, &r);
    run_until(&r.flag);
    return arena_cstr(w->arena, str_c(r.reason));
}

const char *world_try(struct world *w, const char *resource, const char *ns, const char *json)
{
    return world_try_tree(w, resource, ns, world_parse(w, json));
}

static void patch(struct world *w, const char *resource, struct str sub, const char *ns,
                  const char *name, const cJSON *tree)
{
    struct request r = {.flag = {w, false}};

    vapi_patch(w->api, resource_of(w, resource), sub, str_c(ns), str_c(name), tree, on_done, &r);
    finish(&r, resource);
}

void world_patch(struct world *w, const char *resource, const char *ns, const char *name,
                 const char *json)
{
    patch(w, resource, STR_NULL, ns, name, world_parse(w, json));
}

void world_patch_status(struct world *w, const char *resource, const char *ns, const char *name,
                        const char *json)
{
    patch(w, resource, STR("status"), ns, name, world_parse(w, json));
}

void world_patch_at(struct world *w, const char *resource, const char *sub, const char *ns,
                    const char *name, const char *json)
{
    patch(w, resource, str_c(sub), ns, name, world_parse(w, json));
}

static void delete_with(struct world *w, const char *resource, const char *ns, const char *name,
                        const struct vapi_delete *options)
{
    struct request r = {.flag = {w, false}};

    vapi_delete(w->api, resource_of(w, resource), str_c(ns), str_c(name), options, on_done, &r);
    finish(&r, resource);
}

void world_delete(struct world *w, const char *resource, const char *ns, const char *name,
                  const char *propagation)
{
    struct vapi_delete options = {.grace_seconds = -1, .propagation = propagation};

    delete_with(w, resource, ns, name, &options);
}

/* ---- looking ---- */

cJSON *world_get(struct world *w, const char *resource, const char *ns, const char *name)
{
    const struct store_object *o =
        store_get(w->store, resource_of(w, resource)->storage, str_c(ns), str_c(name));

    return o ? vapi_tree(w->arena, o) : NULL;
}

struct listing {
    struct world *world;
    cJSON *items;
};

static bool on_listed(void *ctx, const struct store_object *o)
{
    struct listing *l = ctx;

    json_append(l->items, vapi_tree(l->world->arena, o));
    return true;
}

cJSON *world_list(struct world *w, const char *resource, const char *ns)
{
    struct listing l = {w, json_new_array(w->arena)};

    assert_int_equal(store_scan(w->store, resource_of(w, resource)->storage,
                                ns ? str_c(ns) : STR_NULL, STR_NULL, STR_NULL, 0, on_listed, &l,
                                NULL),
                     0);
    return l.items;
}

size_t world_count(struct world *w, const char *resource, const char *ns, const char *key,
                   const char *value)
{
    size_t n = 0;

    json_each(item, world_list(w, resource, ns)) n +=
        !key || str_eqc(json_str(json_get(json_path(item, "metadata.labels"), key)), value);
    return n;
}

int64_t world_events(struct world *w, const char *ns, const char *kind, const char *reason)
{
    int64_t n = 0;

    json_each(e, world_list(w, "events", ns))
    {
        if (str_eqc(json_str_at(e, "involvedObject.kind"), kind) &&
            str_eqc(json_str_at(e, "reason"), reason))
            n += json_i64_at(e, "count", 1);
    }
    return n;
}

static const cJSON *condition(const cJSON *object, const char *type)
{
    json_each(c, json_path(object, "status.conditions"))
    {
        if (str_eqc(json_str_at(c, "type"), type))
            return c;
    }
    return NULL;
}

const char *world_condition(struct world *w, const cJSON *object, const char *type)
{
    return arena_cstr(w->arena, json_str_at(condition(object, type), "status"));
}

const char *world_reason(struct world *w, const cJSON *object, const char *type)
{
    return arena_cstr(w->arena, json_str_at(condition(object, type), "reason"));
}

int64_t world_i64(const cJSON *object, const char *path)
{
    return json_i64_at(object, path, 0);
}

/* ---- nodes, the scheduler and the kubelet ---- */

void world_node(struct world *w, const char *name, const char *labels_json)
{
    cJSON *node = json_new_object(w->arena);
    cJSON *meta = json_ensure_object(w->arena, node, "metadata");

    json_set_str(w->arena, meta, "name", str_c(name));
    json_set(w->arena, meta, "labels", world_parse(w, labels_json));
    world_create_tree(w, "nodes", "", node);
    world_patch_status(w, "nodes", "", name,
                       "{'status':{'conditions':[{'type':'Ready','status':'True',"
                       "'reason':'KubeletReady','message':''}]}}");
}

/* Where a pod's own affinity says (daemon pods), else anywhere. */
static struct str node_for(struct world *w, const cJSON *pod)
{
    const cJSON *terms = json_path(pod, "spec.affinity.nodeAffinity."
                                        "requiredDuringSchedulingIgnoredDuringExecution."
                                        "nodeSelectorTerms");
    const cJSON *match = json_at(json_get(json_at(terms, 0), "matchFields"), 0);
    struct str node = json_str(json_at(json_get(match, "values"), 0));

    return node.n ? node : arena_printf(w->arena, "node-%u", (unsigned)(next_random(w) % 3));
}

/* The kubelet's and scheduler's requests of one step go out together. */
static void on_driven(void *ctx, const struct err *err, const struct store_object *object)
{
    struct world *w = ctx;

    (void)object;
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT)
        fail_msg("kubelet: %.*s", STR_F(err->message));
    if (--w->driven.pending == 0)
        raise_flag(&w->driven.flag);
}

static void assign(struct world *w, const cJSON *pod)
{
    cJSON *b = json_new_object(w->arena), *meta = json_ensure_object(w->arena, b, "metadata");

    json_set_str(w->arena, meta, "name", json_str_at(pod, "metadata.name"));
    json_set_str(w->arena, meta, "namespace", json_str_at(pod, "metadata.namespace"));
    json_set_str(w->arena, json_ensure_object(w->arena, b, "target"), "name", node_for(w, pod));
    w->driven.pending++;
    vapi_create(w->api, resource_of(w, "bindings"), json_str_at(pod, "metadata.namespace"), b,
                on_driven, w);
}

static const char *status_text(struct world *w, const cJSON *pod, enum fate fate)
{
    static const char *const phases[] = {"Pending", "Running", "Running", "Succeeded", "Failed"};
    struct str now = time_format_s(w->arena, world_now(w));
    const char *ready = fate == POD_READY ? "True" : "False";
    struct str container = json_str_at(json_at(json_path(pod, "spec.containers"), 0), "name");
    struct str state = arena_printf(w->arena, "{'running':{'startedAt':'%.*s'}}", STR_F(now));

    if (fate >= POD_SUCCEEDS)
        state = arena_printf(w->arena, "{'terminated':{'exitCode':%d,'finishedAt':'%.*s'}}",
                             fate == POD_FAILS, STR_F(now));
    return arena_printf(
               w->arena,
               "{'status':{'phase':'%s','podIP':'10.0.0.%u','podIPs':[{'ip':'10.0.0.%u'}],"
               "'startTime':'%.*s',"
               "'conditions':[{'type':'Ready','status':'%s','lastTransitionTime':'%.*s'}],"
               "'containerStatuses':[{'name':'%.*s','ready':%s,'restartCount':0,'image':'',"
               "'imageID':'','state':%.*s}]}}",
               phases[fate], (unsigned)(next_random(w) % 250) + 1,
               (unsigned)(next_random(w) % 250) + 1, STR_F(now), ready, STR_F(now),
               STR_F(container), fate == POD_READY ? "true" : "false", STR_F(state))
        .p;
}

static enum fate fate_now(struct world *w, const cJSON *pod)
{
    return w->fate ? w->fate(w->fate_ctx, pod) : POD_READY;
}

static enum fate fate_before(const cJSON *pod)
{
    struct str phase = json_str_at(pod, "status.phase");

    if (str_eqc(phase, "Succeeded"))
        return POD_SUCCEEDS;
    if (str_eqc(phase, "Failed"))
        return POD_FAILS;
    if (!str_eqc(phase, "Running"))
        return POD_STAYS_PENDING;
    return str_eqc(json_str_at(condition(pod, "Ready"), "status"), "True") ? POD_READY : POD_RUNS;
}

static void set_status(struct world *w, const cJSON *pod, enum fate fate)
{
    w->driven.pending++;
    vapi_patch(w->api, resource_of(w, "pods"), STR("status"),
               json_str_at(pod, "metadata.namespace"), json_str_at(pod, "metadata.name"),
               world_parse(w, status_text(w, pod, fate)), on_driven, w);
}

static void end_pod(struct world *w, const cJSON *pod)
{
    struct vapi_delete options = {.grace_seconds = 0, .uid = json_str_at(pod, "metadata.uid")};

    w->driven.pending++;
    vapi_delete(w->api, resource_of(w, "pods"), json_str_at(pod, "metadata.namespace"),
                json_str_at(pod, "metadata.name"), &options, on_driven, w);
}

/* One step of one pod; false when it is as it should be. */
static bool drive_pod(struct world *w, const cJSON *pod)
{
    enum fate before = fate_before(pod), wanted;

    if (json_path(pod, "metadata.deletionTimestamp")) {
        if (json_i64_at(pod, "metadata.deletionGracePeriodSeconds", 0) == 0)
            return false; /* finalizers hold it */
        end_pod(w, pod);
        return true;
    }
    if (before >= POD_SUCCEEDS)
        return false;
    wanted = fate_now(w, pod);
    if (wanted == POD_STAYS_PENDING)
        return false;
    if (!json_str_at(pod, "spec.nodeName").n) {
        assign(w, pod);
        return true;
    }
    if (wanted == before)
        return false;
    set_status(w, pod, wanted);
    return true;
}

static bool drive_pods(struct world *w)
{
    bool moved = false;

    if (w->frozen)
        return false;
    w->driven.flag = (struct flag){w, false};
    w->driven.pending = 1;
    json_each(pod, world_list(w, "pods", NULL)) moved |= drive_pod(w, pod);
    if (--w->driven.pending)
        run_until(&w->driven.flag);
    return moved;
}

/* ---- settling ---- */

static void on_barrier(void *ctx, const struct err *err)
{
    assert_null(err);
    raise_flag(ctx);
}

/* Everything handed to the store is durable, and what that woke has had its turn. */
static void turn(struct world *w)
{
    struct flag flag = {w, false};

    store_on_commit(w->store, on_barrier, &flag);
    run_until(&flag);
    for (int i = 0; i < 3; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void settle_controllers(struct world *w)
{
    int quiet = 0;

    for (int round = 0; quiet < QUIET_ROUNDS; round++) {
        int64_t before = store_next_revision(w->store);

        turn(w);
        bool busy = next_due(w) <= mono(w);
        quiet = !busy && before == store_next_revision(w->store) ? quiet + 1 : 0;
        if (round > MAX_ROUNDS)
            fail_msg("the controllers do not come to rest");
    }
}

void world_settle(struct world *w)
{
    int rounds = 0;

    do {
        settle_controllers(w);
        if (++rounds > MAX_ROUNDS)
            fail_msg("pods and controllers do not come to rest");
    } while (drive_pods(w));
}

void world_pass(struct world *w, int64_t seconds)
{
    int64_t end = w->now_us + seconds * 1000000, due;

    world_settle(w);
    while ((due = next_due(w)) < end / 1000) {
        /* Pods' times have whole seconds: never stand in the middle of one. */
        int64_t at = (due + 999) / 1000 * 1000000;
        if (at > end)
            break;
        w->now_us = at > w->now_us ? at : w->now_us + 1000;
        wake_all(w);
        world_settle(w);
    }
    w->now_us = end;
    wake_all(w);
    world_settle(w);
}
