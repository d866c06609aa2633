/* SPDX-License-Identifier: Apache-2.0 */
/* A Service gets its cluster IP, families and node ports from the host before the tenant's request
 * is answered, so that `kubectl get svc` shows what works. The record is durable before the host
 * Service is created: one whose virtual Service was never stored is found and deleted, even after a
 * kill. Must never leave a request without an answer.
 *
 *   BEGIN --record durable--> POST --created--> copy what was allocated --> done
 *                              | exists: GET -- ours, or adopted: PATCH ---^
 *                              |             '- a predecessor: DELETE, POST again (once)
 *   changes begin with GET                   '- not ours: refused */

#include "core/dry_run.h"
#include "core/life.h"
#include <sublet/hash.h>
#include <sublet/store_quarantine.h>
#include "objects/objects.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ADMIT_MAGIC    0x61646d69u
#define ADMIT_TIMEOUT  10000
#define ADMIT_ATTEMPTS 2

struct admit {
    unsigned magic;
    struct map_entry entry; /* "ns/name", until it is answered and then stored or undone */
    char *key;
    struct syncer *syncer;
    struct arena *arena; /* the request's; NULL once it is answered */
    cJSON *object;
    bool dry_run, changing, listed, replaced;
    unsigned attempts;
    char host_name[64];
    char *uid; /* of the virtual object */
    struct str ns, name;
    void (*done)(void *ctx, const struct err *err);
    void *done_ctx;
    struct err err;
};

struct admits {
    struct syncer *syncer;
    struct map map;
};

struct admits *sync_admits_new(struct syncer *s)
{
    struct admits *a = NEW(struct admits);

    a->syncer = s;
    return a;
}

static void admit_free(struct admit *w)
{
    if (w->listed)
        map_remove(&w->syncer->admits->map, &w->entry);
    mem_free(w->key);
    mem_free(w->uid);
    w->magic = 0;
    mem_free(w);
}

static void free_one(void *ctx, struct map_entry *e)
{
    (void)ctx;
    admit_free(CONTAINER(e, struct admit, entry));
}

struct admits *sync_admits_free(struct admits *a)
{
    if (!a)
        return NULL;
    map_each(&a->map, free_one, NULL);
    mem_free(a);
    return NULL;
}

static struct admit *find(const struct syncer *s, struct str ns, struct str name)
{
    struct arena *a = arena_new(0);
    struct map_entry *e = map_get(&s->admits->map, key_join(a, ns, name));

    arena_free(a);
    return e ? CONTAINER(e, struct admit, entry) : NULL;
}

bool sync_service_in_admission(const struct syncer *s, struct str ns, struct str name)
{
    return find(s, ns, name) != NULL;
}

/* --- when --- */

static bool lacks_node_port(const cJSON *service)
{
    struct str type = json_str_at(service, "spec.type");
    const cJSON *allocate = json_path(service, "spec.allocateLoadBalancerNodePorts");
    bool ports = str_eqc(type, "NodePort") ||
                 (str_eqc(type, "LoadBalancer") && (!allocate || json_true(allocate)));

    json_each(port, json_path(service, "spec.ports"))
    {
        if (ports && json_i64_at(port, "nodePort", 0) == 0)
            return true;
    }
    return false;
}

static bool lacks_address(const cJSON *service)
{
    return !json_str_at(service, "spec.clusterIP").n;
}

int sync_service_check(struct syncer *s, struct arena *a, const cJSON *object, const cJSON *old,
                       struct err *err)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str name = json_str_at(object, "metadata.name");
    struct mapping m;
    bool same;

    if (!sync_service_wants_host(object) || sync_service_is_shown(s, object, ns, name) ||
        object_is_terminating(object))
        return 0;
    if (!old)
        return translate_check_service(a, &s->tenant, object, err);
    m = sync_mapping_get(s, a, SYNC_SERVICES, ns, name);
    same = m.exists && str_eq(m.uid, sync_uid(object));
    return translate_check_service_change(a, &s->tenant, object, old, same ? m.given : STR(""),
                                          err);
}

bool sync_service_wants_admit(struct syncer *s, const cJSON *object, const cJSON *old)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str name = json_str_at(object, "metadata.name");

    if (!sync_service_wants_host(object) || sync_service_is_shown(s, object, ns, name) ||
        object_is_terminating(object))
        return false;
    if (!old)
        return !sync_service_is_headless(object);
    return lacks_address(object) || lacks_node_port(object);
}

/* --- the end --- */

static void answer(struct admit *w)
{
    void (*done)(void *ctx, const struct err *err) = w->done;
    void *ctx = w->done_ctx;
    bool failed = w->err.kind != NULL;
    struct str text = failed ? arena_str(w->arena, w->err.message) : STR_NULL;
    struct err err = w->err;
    struct syncer *s = w->syncer;
    struct str ns = arena_str(w->arena, w->ns), name = arena_str(w->arena, w->name);

    err.message = text;
    w->arena = NULL;
    w->object = NULL;
    if (failed || w->dry_run)
        admit_free(w); /* else it stays listed until it is stored or undone */
    if (failed)
        syncer_add(s, SYNC_SERVICES, ns, name); /* deletes a host Service that was created */
    done(ctx, failed ? &err : NULL);
    syncer_release(s);
}

static void on_deferred(void *ctx)
{
    answer(ctx);
}

/* The host's refusal, with its names translated back. */
static void fail(struct admit *w, const struct err *err)
{
    struct str text = translate_refusal_up(w->arena, &w->syncer->tenant, err, str_c(w->host_name),
                                           w->ns, w->name);
    const struct err_kind *kind = err->kind;

    if (translate_refusal_is_of_rights(err) || kind == &ERR_NOT_FOUND || kind == &ERR_CONFLICT ||
        kind == &ERR_ALREADY_EXISTS)
        kind = &ERR_UNAVAILABLE; /* nothing the tenant could correct */
    err_set(&w->err, kind, "%.*s", STR_F(text));
    w->err.retry_after = kind == &ERR_TOO_MANY_REQUESTS;
    answer(w);
}

static void note_host_uid(struct admit *w, const cJSON *host)
{
    struct mapping m = sync_mapping_get(w->syncer, w->arena, SYNC_SERVICES, w->ns, w->name);

    sync_mapping_begin(&m, str_c(w->uid));
    sync_mapping_set_host(w->syncer, &m, sync_uid(host));
    m.headless = sync_service_is_headless(host);
    m.given = translate_service_given(w->arena, host);
    sync_mapping_put(w->syncer, SYNC_SERVICES, w->ns, w->name, &m);
}

static void take_answer(struct admit *w, struct str body)
{
    cJSON *host = NULL, *spec;

    if (json_parse(w->arena, body, &host, &w->err)) {
        err_wrap(&w->err, "the host's answer");
        answer(w);
        return;
    }
    spec = translate_service_spec_up(w->arena, host, w->object);
    if (spec)
        json_set(w->arena, w->object, "spec", spec);
    if (!w->dry_run) {
        note_host_uid(w, host);
        reflector_learn(w->syncer->watches[SYNC_SERVICES].reflector, body);
    }
    answer(w);
}

/* --- requests to the host --- */

static void post(struct admit *w);
static void get(struct admit *w);

static void send(struct admit *w, const char *method, struct str name, struct str body,
                 const char *type, host_done_cb then)
{
    struct host_request q = {.method = method,
                             .content_type = type,
                             .body = body,
                             .timeout_ms = ADMIT_TIMEOUT,
                             .urgent = !w->dry_run,
                             .dry_run = w->dry_run};

    q.path = sync_path(w->arena, w->syncer, SYNC_SERVICES, name,
                       w->dry_run && strcmp(method, "GET") != 0 ? "?dryRun=All" : "");
    host_send(w->syncer->host, &q, then, w);
}

static cJSON *wanted(struct admit *w)
{
    cJSON *object = NULL;

    if (translate_service(w->arena, &w->syncer->tenant, w->object, &object, &w->err) || !object)
        return NULL;
    return object;
}

/* The host refused it: this create is not executed any more. */
static void note_refusal(struct admit *w)
{
    struct mapping m = sync_mapping_get(w->syncer, w->arena, SYNC_SERVICES, w->ns, w->name);

    if (sync_mapping_try_over(&m))
        sync_mapping_put(w->syncer, SYNC_SERVICES, w->ns, w->name, &m);
}

static void on_posted(void *ctx, const struct host_answer *a, const struct err *err)
{
    struct admit *w = ctx;

    assert(w->magic == ADMIT_MAGIC);
    if (!err) {
        take_answer(w, a->body);
        return;
    }
    if (err->kind == &ERR_ALREADY_EXISTS && w->attempts++ < ADMIT_ATTEMPTS) {
        get(w);
        return;
    }
    if (!w->dry_run && !sync_is_uncertain(err))
        note_refusal(w);
    fail(w, err);
}

static void on_judged(void *ctx, const struct dry_result *result, const struct err *err)
{
    struct admit *w = ctx;

    assert(w->magic == ADMIT_MAGIC);
    if (err) {
        snprintf(w->host_name, sizeof(w->host_name), "%.*s", STR_F(result->host_name));
        fail(w, err);
    } else if (result->body.n) {
        take_answer(w, result->body);
    } else {
        answer(w); /* admitted; the answer was too long to be cached, so no address is shown */
    }
}

static void post(struct admit *w)
{
    struct mapping m = sync_mapping_get(w->syncer, w->arena, SYNC_SERVICES, w->ns, w->name);
    cJSON *object = wanted(w);
    struct dry_run q = {.id = SYNC_SERVICES,
                        .object = object,
                        .patience = DRY_RUN_PATIENT,
                        .timeout_ms = w->syncer->config->verdict_timeout_ms};

    if (!object || sync_service_keep_address(w->arena, &m, w->object, object, &w->err)) {
        answer(w);
        return;
    }
    /* A dry run allocates nothing: the next Service may get the address it shows. */
    if (w->dry_run)
        sync_dry_run_send(w->syncer, w->arena, &q, on_judged, w);
    else
        send(w, "POST", STR(""), json_text(w->arena, object), NULL, on_posted);
}

static void on_patched(void *ctx, const struct host_answer *a, const struct err *err)
{
    struct admit *w = ctx;

    if (err)
        fail(w, err);
    else
        take_answer(w, a->body);
}

static void patch(struct admit *w, cJSON *host, const struct host_answer *a)
{
    cJSON *object = wanted(w), *change;

    if (!object) {
        answer(w);
        return;
    }
    change = translate_service_update(w->arena, host, object);
    if (!change) {
        take_answer(w, a->body);
        return;
    }
    json_set_str(w->arena, json_ensure_object(w->arena, change, "metadata"), "uid", sync_uid(host));
    send(w, "PATCH", str_c(w->host_name), json_text(w->arena, change),
         "application/merge-patch+json", on_patched);
}

static void on_predecessor_deleted(void *ctx, const struct host_answer *a, const struct err *err)
{
    struct admit *w = ctx;

    (void)a;
    if (err && err->kind != &ERR_NOT_FOUND)
        fail(w, err);
    else
        post(w);
}

/* Of a deleted Service of this name, according to the record: another of its name is there, or it
 * is no effect of damage that none is. */
static bool is_predecessor(struct admit *w, const cJSON *host, struct str uid)
{
    struct mapping m = sync_mapping_get(w->syncer, w->arena, SYNC_SERVICES, w->ns, w->name);
    struct store *store = w->syncer->store;
    unsigned storage = syncer_resource(w->syncer, "", "services")->storage;
    const struct store_object *o = store_latest(store, storage, w->ns, w->name);

    return sync_mapping_knows(&m, uid) && sync_life_owns(w->syncer, host) &&
           (o ? !str_eq(o->uid, uid) : store_is_absent(store, storage, w->ns, w->name));
}

/* This very Service's; in quarantine; or of one that the store may have lost without a trace. None
 * of a later epoch: the patch would carry ours, and make it one that is deleted here. */
static bool may_adopt(struct admit *w, const cJSON *host, struct str uid)
{
    return sync_life_owns(w->syncer, host) &&
           (str_eqc(uid, w->uid) ||
            sync_quarantine_has(w->syncer, SYNC_SERVICES, str_c(w->host_name)) ||
            store_is_damaged(w->syncer->store));
}

static void replace(struct admit *w, const cJSON *host)
{
    struct str body = arena_printf(w->arena,
                                   "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                                   "\"preconditions\":{\"uid\":\"%.*s\"}}",
                                   STR_F(sync_uid(host)));

    if (w->replaced || w->dry_run) {
        err_set(&w->err, &ERR_UNAVAILABLE,
                "the Service of that name before it is still being removed");
        answer(w);
        return;
    }
    w->replaced = true;
    send(w, "DELETE", str_c(w->host_name), body, NULL, on_predecessor_deleted);
}

static void on_got(void *ctx, const struct host_answer *a, const struct err *err)
{
    struct admit *w = ctx;
    struct str ns, name, uid;
    cJSON *host = NULL;

    if (err && err->kind == &ERR_NOT_FOUND) {
        post(w);
        return;
    }
    if (err) {
        fail(w, err);
        return;
    }
    if (json_parse(w->arena, a->body, &host, &w->err)) {
        answer(w);
    } else if (!translate_owner(&w->syncer->tenant, host, &ns, &name, &uid)) {
        err_set(&w->err, &ERR_CONFLICT, "the name is taken on the host cluster");
        answer(w);
    } else if (is_predecessor(w, host, uid)) {
        replace(w, host);
    } else if (may_adopt(w, host, uid)) {
        patch(w, host, a);
    } else {
        err_set(&w->err, &ERR_UNAVAILABLE,
                sync_life_owns(w->syncer, host)
                    ? "a Service of that name is being created"
                    : "the host cluster has it of a later epoch of this virtual cluster");
        answer(w);
    }
}

static void get(struct admit *w)
{
    send(w, "GET", str_c(w->host_name), STR(""), NULL, on_got);
}

/* --- the beginning --- */

static void begin(struct admit *w)
{
    (w->changing ? get : post)(w);
}

static void on_recorded(void *ctx, const struct err *err)
{
    struct admit *w = ctx;

    assert(w->magic == ADMIT_MAGIC);
    if (err)
        fail(w, err);
    else
        begin(w);
}

static void record(struct admit *w)
{
    struct mapping m = sync_mapping_get(w->syncer, w->arena, SYNC_SERVICES, w->ns, w->name);

    if (sync_service_check_room(w->syncer, w->object, &m, &w->err)) {
        syncer_defer(w->syncer, on_deferred, w);
        return;
    }
    if (w->dry_run || (m.host_uid.n && str_eqc(m.uid, w->uid) && !m.headless)) {
        begin(w);
        return;
    }
    sync_mapping_begin(&m, str_c(w->uid));
    m.headless = false;
    sync_mapping_try(&m);
    sync_mapping_put(w->syncer, SYNC_SERVICES, w->ns, w->name, &m);
    store_on_commit(w->syncer->store, on_recorded, w);
}

static struct admit *admit_new(struct syncer *s, struct arena *a, cJSON *object, bool dry_run)
{
    struct admit *w = NEW(struct admit);
    struct str ns, name;

    *w = (struct admit){.magic = ADMIT_MAGIC,
                        .syncer = s,
                        .arena = a,
                        .object = object,
                        .dry_run = dry_run,
                        .uid = mem_strdup(sync_uid(object))};
    ns = json_str_at(object, "metadata.namespace");
    name = json_str_at(object, "metadata.name");
    w->key = mem_strdup(key_join(a, ns, name));
    key_split(str_c(w->key), &w->ns, &w->name);
    translate_name(&s->tenant, ns, name, w->host_name);
    err_init(&w->err, a);
    return w;
}

void sync_service_admit(struct syncer *s, struct arena *a, cJSON *object, const cJSON *old,
                        bool dry_run, void (*done)(void *ctx, const struct err *err), void *ctx)
{
    struct admit *w = admit_new(s, a, object, dry_run);

    syncer_hold(s);
    w->changing = old != NULL;
    w->done = done;
    w->done_ctx = ctx;
    if (sync_service_in_admission(s, w->ns, w->name)) {
        err_set(&w->err, &ERR_CONFLICT, "another request for this Service is under way");
        syncer_defer(s, on_deferred, w);
        return;
    }
    if (!dry_run) {
        map_put(&s->admits->map, &w->entry, str_c(w->key));
        w->listed = true;
    }
    record(w);
}

/* --- afterwards --- */

/* Adds the key, whose runs ended early until now. A write without admission must not add it: one of
 * the key's own run that is refused would run again without its backoff. */
static void over(struct syncer *s, const cJSON *object)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str name = json_str_at(object, "metadata.name");
    struct admit *w = find(s, ns, name);

    if (!w || w->object || !str_eqc(sync_uid(object), w->uid))
        return;
    admit_free(w);
    syncer_add(s, SYNC_SERVICES, ns, name);
}

void sync_service_admit_undo(struct syncer *s, const cJSON *object)
{
    over(s, object);
}

void sync_service_stored(struct syncer *s, const cJSON *object)
{
    over(s, object);
}
