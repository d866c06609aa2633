/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet restore --plan`: compares lists of the host with the objects and records of a backup, and
 * reports what quarantine.c and the controllers of the kinds would do after a start. One kind after
 * the other, page by page. Must never change the host or the store. */
#include "engine.h"

#include <sublet/restore_plan.h>

#include <assert.h>

#include <uv.h>

#include <sublet/encode.h>
#include <sublet/store.h>
#include <sublet/store_quarantine.h>

#define TIMEOUT_MS 10000

struct plan {
    struct syncer syncer; /* the fields that records need; no record is of its life, 0 */
    struct arena *arena;  /* of one kind */
    uv_loop_t *loop;
    enum sync_id id;
    cJSON *host; /* an object: host name -> [ns, name, uid] */
    struct str cont;
    restore_step_cb step;
    void *ctx;
    struct err *err;
    bool failed, closed;
};

static void list_page(struct plan *p);

static void report(struct plan *p, enum restore_action action, struct str ns, struct str name)
{
    p->step(p->ctx, action, p->syncer.kinds[p->id].record, ns, name);
}

/* --- the store --- */

static struct str part(const cJSON *entry, int at)
{
    const cJSON *item = json_first(entry);

    while (at-- > 0)
        item = item->next;
    return json_str(item);
}

static bool goes_down(struct plan *p, const cJSON *object, struct str ns, struct str name)
{
    return p->id != SYNC_SERVICES ||
           (sync_service_wants_host(object) && !sync_service_is_api(ns, name));
}

static void judge_object(struct plan *p, const struct store_object *o, const cJSON *object)
{
    struct mapping m = sync_mapping_get(&p->syncer, p->arena, p->id, o->ns, o->name);
    bool recorded = m.exists && m.host_uid.n && str_eq(m.uid, o->uid);
    char host_name[64];
    const cJSON *entry;

    translate_name(&p->syncer.tenant, o->ns, o->name, host_name);
    entry = json_get(p->host, host_name);
    if (!entry && recorded && goes_down(p, object, o->ns, o->name))
        report(p, pod_is_finished(object) ? RESTORE_KEEP : RESTORE_CREATE, o->ns, o->name);
    else if (entry && (str_eq(part(entry, 2), o->uid)))
        report(p, RESTORE_KEEP, o->ns, o->name);
    else if (entry)
        report(p,
               sync_mapping_knows(&m, part(entry, 2)) && !store_is_damaged(p->syncer.store)
                   ? RESTORE_DELETE
                   : RESTORE_ADOPT,
               o->ns, o->name);
    json_remove(p->host, host_name);
}

static bool on_object(void *ctx, const struct store_object *o)
{
    struct plan *p = ctx;
    cJSON *object = NULL;

    if (!json_parse(p->arena, o->bytes, &object, NULL))
        judge_object(p, o, object);
    return true;
}

static int judge(struct plan *p)
{
    const struct sync_kind *k = &p->syncer.kinds[p->id];
    struct str name =
        k->group[0] ? arena_printf(p->arena, "%s.%s", k->plural, k->group) : str_c(k->plural);
    unsigned storage = store_resource(p->syncer.store, name);

    if (store_scan(p->syncer.store, storage, STR_NULL, STR_NULL, STR_NULL, 0, on_object, p, p->err))
        return -1;
    json_each(entry, p->host) /* those left belong to no object of the store */
    {
        struct str ns = part(entry, 0), plain = part(entry, 1);
        struct mapping m = sync_mapping_get(&p->syncer, p->arena, p->id, ns, plain);
        bool proven = sync_mapping_proves(&p->syncer, p->id, &m, part(entry, 2));
        bool deleted = store_is_absent(p->syncer.store, storage, ns, plain);

        report(p,
               !proven   ? RESTORE_QUARANTINE
               : deleted ? RESTORE_DELETE
                         : RESTORE_KEEP,
               ns, plain);
    }
    return 0;
}

/* --- the host --- */

static void finish(struct plan *p)
{
    host_stop(p->syncer.host);
    uv_stop(p->loop);
}

static void next_kind(struct plan *p)
{
    do
        p->id++;
    while ((size_t)p->id < p->syncer.n_kinds && !p->syncer.kinds[p->id].maps);
    p->arena = arena_free(p->arena);
    if ((size_t)p->id == p->syncer.n_kinds) {
        finish(p);
        return;
    }
    p->arena = arena_new(0);
    p->host = json_new_object(p->arena);
    p->cont = STR_NULL;
    list_page(p);
}

static void add(struct plan *p, const cJSON *item)
{
    struct str ns, name, uid, host_name = json_str_at(item, "metadata.name");
    char own[64];
    cJSON *entry;

    if (!translate_owner(&p->syncer.tenant, item, &ns, &name, &uid))
        return;
    translate_name(&p->syncer.tenant, ns, name, own);
    if (!str_eqc(host_name, own))
        return; /* a pod's token Secret */
    entry = json_set(p->arena, p->host, own, json_new_array(p->arena));
    json_append(entry, json_new_string(p->arena, ns));
    json_append(entry, json_new_string(p->arena, name));
    json_append(entry, json_new_string(p->arena, uid));
}

static void fail(struct plan *p, const struct err *err)
{
    p->failed = true;
    err_set(p->err, err->kind, "%s: %.*s", p->syncer.kinds[p->id].record, STR_F(err->message));
    finish(p);
}

static void on_listed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct plan *p = ctx;
    cJSON *page = NULL;
    struct err bad;

    err_init(&bad, p->arena);
    if (!err && json_parse(p->arena, answer->body, &page, &bad))
        err = &bad;
    if (err) {
        fail(p, err);
        return;
    }
    json_each(item, json_get(page, "items")) add(p, item);
    p->cont = json_str_at(page, "metadata.continue");
    if (p->cont.n) {
        list_page(p);
    } else if (judge(p)) {
        p->failed = true;
        finish(p);
    } else {
        next_kind(p);
    }
}

static void list_page(struct plan *p)
{
    struct arena *a = p->arena;
    const struct translate_tenant *t = &p->syncer.tenant;
    struct host_request q = {.method = "GET",
                             .accept =
                                 "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;"
                                 "v=v1,application/json",
                             .timeout_ms = TIMEOUT_MS,
                             .urgent = true};

    q.path = arena_printf(
        a, "%.*s?limit=500&labelSelector=%.*s%s%.*s",
        STR_F(sync_path(a, &p->syncer, p->id, STR(""), "")),
        STR_F(url_encode(a, arena_printf(a, LABEL_CLUSTER "=%.*s", STR_F(t->cluster_uid)))),
        p->cont.n ? "&continue=" : "", STR_F(url_encode(a, p->cont)));
    host_send(p->syncer.host, &q, on_listed, p);
}

/* --- life --- */

static void on_closed(void *ctx)
{
    ((struct plan *)ctx)->closed = true;
}

int restore_plan(struct uv_loop_s *loop, struct store *store, const struct config *config,
                 restore_step_cb step, void *ctx, struct err *err)
{
    struct plan p = {.loop = loop, .step = step, .ctx = ctx, .err = err};
    struct host_options options = {.loop = loop,
                                   .clock = &CLOCK_SYSTEM,
                                   .rng = &RNG_SYSTEM,
                                   .kubeconfig = config->host_kubeconfig};
    struct str uid;

    if (!store_record_get_either(store, RECORD_META, STR(META_CLUSTER_UID), &uid))
        return 0; /* this store was never used with a host */
    p.syncer = (struct syncer){.config = config, .store = store, .arena = arena_new(0)};
    p.syncer.tenant = (struct translate_tenant){
        .config = config, .cluster_uid = uid, .host_namespace = config->host_namespace};
    if (host_open(&options, &p.syncer.host, err)) {
        arena_free(p.syncer.arena);
        return -1;
    }
    syncer_make_kinds(&p.syncer);
    p.id = SYNC_PODS;
    p.arena = arena_new(0);
    p.host = json_new_object(p.arena);
    list_page(&p);
    uv_run(loop, UV_RUN_DEFAULT); /* until finish() */
    host_close(p.syncer.host, on_closed, &p);
    while (!p.closed)
        uv_run(loop, UV_RUN_ONCE);
    arena_free(p.arena);
    arena_free(p.syncer.arena);
    return p.failed ? -1 : 0;
}
