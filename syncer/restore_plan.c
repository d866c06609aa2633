/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet restore --plan`: compares lists of the host with the objects and records of a backup, and
 * reports what the reconciles of a start would make of them, by the decision they use
 * (core/settle.c). One kind after the other, page by page: pods first, since the Secret with a
 * pod's tokens shares its fate. Must never change the host or the store. */
#include "engine.h"

#include <sublet/restore_plan.h>

#include <assert.h>

#include <uv.h>

#include <sublet/config_bound.h>
#include <sublet/encode.h>
#include <sublet/hash.h>
#include <sublet/store.h>
#include <sublet/store_quarantine.h>
#include <sublet/translate_alias.h>

#define TIMEOUT_MS 10000
#define LEASES     "leases.coordination.k8s.io"

/* A host object that was judged. */
struct judged {
    struct map_entry entry;
    struct str uid; /* of the virtual object it was made for */
    enum restore_action action;
};

struct plan {
    struct syncer syncer; /* the fields that records and translations need; its life is 0: no record
                             is of it */
    struct config live;   /* with what the fleet granted when the backup was made */
    struct config_bound *bound;
    struct arena *arena; /* of one kind */
    uv_loop_t *loop;
    enum sync_id id;
    struct map seen; /* of the kind, by host name */
    struct map pods; /* by "ns/name"; for their tokens */
    struct str cont;
    restore_step_cb step;
    void *ctx;
    struct err *err;
    bool failed, closed;
};

static void list_page(struct plan *p);

static void report(struct plan *p, const struct restore_step *step)
{
    p->step(p->ctx, step);
}

static void report_object(struct plan *p, enum restore_action action, struct str ns,
                          struct str name, struct str detail)
{
    report(p,
           &(struct restore_step){action, str_c(p->syncer.kinds[p->id].record), ns, name, detail});
}

/* --- one object --- */

/* The sides of a key as a reconcile sees them. */
static void run_init(struct plan *p, struct arena *a, enum sync_id id, struct str ns,
                     struct str name, cJSON *host, struct sync_run *ret)
{
    struct syncer *s = &p->syncer;
    struct str host_ns, host_name;

    *ret =
        (struct sync_run){.syncer = s, .arena = a, .id = id, .ns = ns, .name = name, .host = host};
    translate_name(&s->tenant, ns, name, ret->host_name);
    ret->mapping = sync_mapping_get(s, a, id, ns, name);
    ret->virtual_ = syncer_virtual(s, a, id, ns, name);
    ret->uid = sync_uid(ret->virtual_);
    ret->host_uid = sync_uid(host);
    if (host)
        translate_owner(&s->tenant, host, &host_ns, &host_name, &ret->owner_uid);
}

static const enum restore_action ACTIONS[] = {[SETTLE_NOTHING] = RESTORE_KEEP,
                                              [SETTLE_KEEP] = RESTORE_KEEP,
                                              [SETTLE_SPARE] = RESTORE_KEEP,
                                              [SETTLE_CREATE] = RESTORE_CREATE,
                                              [SETTLE_AWAIT] = RESTORE_CREATE,
                                              [SETTLE_TAKE_OVER] = RESTORE_ADOPT,
                                              [SETTLE_QUARANTINE] = RESTORE_QUARANTINE,
                                              [SETTLE_DELETE] = RESTORE_DELETE};

static enum restore_action action_of(struct sync_run *run)
{
    enum sync_settlement settlement = sync_run_settle(run);

    if (settlement == SETTLE_KEEP && run->id == SYNC_PODS && object_is_terminating(run->virtual_))
        return RESTORE_DELETE; /* the host pod is deleted first */
    return ACTIONS[settlement];
}

/* As sync_tokens_ensure() and quarantine.c have it. */
static enum restore_action action_of_tokens(struct plan *p, struct sync_run *pod)
{
    struct str key = key_join(pod->arena, pod->ns, pod->name);
    struct map_entry *e = map_get(&p->pods, key);
    const struct judged *host_pod = e ? CONTAINER(e, struct judged, entry) : NULL;
    bool known = sync_mapping_knows(&pod->mapping, pod->owner_uid);

    if (pod->virtual_ && str_eq(pod->uid, pod->owner_uid))
        return RESTORE_KEEP;
    if (host_pod && str_eq(host_pod->uid, pod->owner_uid))
        return host_pod->action;
    if (pod->virtual_)
        return known ? RESTORE_DELETE : RESTORE_ADOPT;
    return known ? RESTORE_DELETE : RESTORE_QUARANTINE;
}

static void remember(struct map *map, struct arena *a, struct str key, struct str uid,
                     enum restore_action action)
{
    struct judged *j;

    if (map_get(map, key))
        return; /* the host changed between two pages */
    j = ARENA_NEW(a, struct judged);
    *j = (struct judged){.uid = arena_str(a, uid), .action = action};
    map_put(map, &j->entry, arena_str(a, key));
}

/* A Service under a name that the admin chose (objects/aliases.h). */
static bool judge_alias(struct plan *p, struct arena *a, cJSON *host)
{
    struct str ns, name, uid, host_name = json_str_at(host, "metadata.name");
    enum sync_settlement settlement = SETTLE_QUARANTINE;

    if (p->id != SYNC_SERVICES || !translate_alias_owner(&p->syncer.tenant, host, &ns, &name, &uid))
        return false;
    sync_alias_settle(&p->syncer, a, host_name, host, &settlement, &ns, &name);
    remember(&p->seen, p->arena, host_name, uid, ACTIONS[settlement]);
    report_object(p, ACTIONS[settlement], ns, name,
                  arena_printf(a, "alias %.*s", STR_F(host_name)));
    return true;
}

static void judge_host(struct plan *p, struct arena *a, cJSON *host)
{
    struct str ns, name, uid, host_name = json_str_at(host, "metadata.name");
    enum restore_action action;
    struct sync_run run;

    if (judge_alias(p, a, host) || !translate_owner(&p->syncer.tenant, host, &ns, &name, &uid))
        return;
    run_init(p, a, p->id, ns, name, host, &run);
    if (!str_eqc(host_name, run.host_name)) {
        run_init(p, a, SYNC_PODS, ns, name, host, &run);
        report_object(p, action_of_tokens(p, &run), ns, name, STR("tokens"));
        return;
    }
    action = action_of(&run);
    remember(&p->seen, p->arena, host_name, uid, action);
    if (p->id == SYNC_PODS)
        remember(&p->pods, p->syncer.arena, key_join(a, ns, name), uid, action);
    report_object(p, action, ns, name, STR(""));
}

/* --- what the host lacks --- */

static bool goes_down(const struct sync_run *run)
{
    return run->id != SYNC_SERVICES ||
           (sync_service_wants_host(run->virtual_) && !sync_service_is_api(run->ns, run->name) &&
            !sync_mirror_is_copy(run->syncer, "services", run->virtual_));
}

static bool on_object(void *ctx, const struct store_object *o)
{
    struct plan *p = ctx;
    struct arena *a = arena_new(0);
    struct sync_run run;

    run_init(p, a, p->id, o->ns, o->name, NULL, &run);
    if (run.mapping.host_uid.n && str_eq(run.mapping.uid, o->uid) && goes_down(&run) &&
        !map_get(&p->seen, str_c(run.host_name)))
        report_object(p, action_of(&run), o->ns, o->name, STR(""));
    arena_free(a);
    return true;
}

static void on_alias(void *ctx, struct str host_name)
{
    struct plan *p = ctx;
    struct arena *a = arena_new(0);
    enum sync_settlement settlement;
    struct str name_of = arena_str(a, host_name), ns, name;

    if (!map_get(&p->seen, name_of) &&
        sync_alias_settle(&p->syncer, a, name_of, NULL, &settlement, &ns, &name) &&
        settlement == SETTLE_CREATE) {
        remember(&p->seen, p->arena, name_of, STR(""), RESTORE_CREATE); /* it may be named twice */
        report_object(p, RESTORE_CREATE, ns, name, arena_printf(a, "alias %.*s", STR_F(name_of)));
    }
    arena_free(a);
}

static int judge_store(struct plan *p)
{
    if (p->id == SYNC_SERVICES)
        sync_alias_each(&p->syncer, on_alias, p);
    return store_scan(p->syncer.store, syncer_storage(&p->syncer, p->id), STR_NULL, STR_NULL,
                      STR_NULL, 0, on_object, p, p->err);
}

static bool on_damaged(void *ctx, const struct store_object *o)
{
    struct plan *p = ctx;

    report(p, &(struct restore_step){.action = RESTORE_DAMAGED,
                                     .resource = store_resource_name(p->syncer.store, o->resource),
                                     .ns = o->ns,
                                     .name = o->name});
    return true;
}

/* --- the host --- */

static void finish(struct plan *p)
{
    host_stop(p->syncer.host);
    uv_stop(p->loop);
}

static void begin_kind(struct plan *p)
{
    map_clear(&p->seen);
    arena_free(p->arena);
    p->arena = arena_new(0);
    p->cont = STR_NULL;
    list_page(p);
}

static void next_kind(struct plan *p)
{
    do
        p->id++;
    while ((size_t)p->id < p->syncer.n_kinds && !p->syncer.kinds[p->id].maps);
    if ((size_t)p->id == p->syncer.n_kinds)
        finish(p);
    else
        begin_kind(p);
}

static void fail(struct plan *p, const char *what, const struct err *err)
{
    p->failed = true;
    err_set(p->err, err->kind, "%s: %.*s", what, STR_F(err->message));
    finish(p);
}

static void judge_page(struct plan *p, const cJSON *page)
{
    json_each(item, json_get(page, "items"))
    {
        struct arena *a = arena_new(0);

        judge_host(p, a, item);
        arena_free(a);
    }
    p->cont = arena_str(p->arena, json_str_at(page, "metadata.continue"));
    if (p->cont.n) {
        list_page(p);
    } else if (judge_store(p)) {
        p->failed = true;
        finish(p);
    } else {
        next_kind(p);
    }
}

static void on_listed(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct plan *p = ctx;
    struct arena *a = arena_new(0);
    cJSON *page = NULL;
    struct err bad;

    err_init(&bad, a);
    if (!err && json_parse(a, answer->body, &page, &bad))
        err = &bad;
    if (err)
        fail(p, p->syncer.kinds[p->id].record, err);
    else
        judge_page(p, page);
    arena_free(a);
}

static void on_any_alias(void *ctx, struct str host_name)
{
    (void)host_name;
    *(bool *)ctx = true;
}

/* Do their metadata suffice for the decision? */
static bool needs_metadata_alone(struct plan *p)
{
    bool aliases = false;

    if (p->id == SYNC_SERVICES)
        sync_alias_each(&p->syncer, on_any_alias, &aliases);
    return !aliases && !p->syncer.kinds[p->id].handlers->fits_host;
}

static void list_page(struct plan *p)
{
    struct arena *a = p->arena;
    const struct translate_tenant *t = &p->syncer.tenant;
    struct host_request q = {.method = "GET", .timeout_ms = TIMEOUT_MS, .urgent = true};

    if (needs_metadata_alone(p))
        q.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                   "application/json";
    q.path = arena_printf(
        a, "%.*s?limit=500&labelSelector=%.*s%s%.*s",
        STR_F(sync_path(a, &p->syncer, p->id, STR(""), "")),
        STR_F(url_encode(a, arena_printf(a, LABEL_CLUSTER "=%.*s", STR_F(t->cluster_uid)))),
        p->cont.n ? "&continue=" : "", STR_F(url_encode(a, p->cont)));
    host_send(p->syncer.host, &q, on_listed, p);
}

/* --- the Lease --- */

static void report_lease(struct plan *p, struct str why)
{
    report(p, &(struct restore_step){RESTORE_WAIT, STR(LEASES), p->syncer.tenant.host_namespace,
                                     p->syncer.config->name, why});
}

/* Its clock is the holder's: whether that one is alive shows only in time. */
static void judge_lease(struct plan *p, struct arena *a, const cJSON *lease)
{
    struct str holder = json_str_at(lease, "spec.holderIdentity");

    if (holder.n)
        report_lease(p, arena_printf(a,
                                     "held by %.*s, renewed at %.*s: until it is released or "
                                     "expires",
                                     STR_F(holder), STR_F(json_str_at(lease, "spec.renewTime"))));
}

/* Without the right to read it, a start does not wait. */
static void on_lease(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct plan *p = ctx;
    struct arena *a = arena_new(0);
    cJSON *lease = NULL;
    struct err bad;

    err_init(&bad, a);
    if (!err && json_parse(a, answer->body, &lease, &bad))
        err = &bad;
    if (err && err->kind != &ERR_NOT_FOUND && !host_err_is_permanent(err)) {
        fail(p, LEASES, err);
    } else {
        if (!err)
            judge_lease(p, a, lease);
        else if (err->kind == &ERR_NOT_FOUND && sync_lease_is_known(p->syncer.store))
            report_lease(p, arena_printf(a, "missing: %lld seconds, for its holder",
                                         (long long)p->syncer.config->lease_duration_ms / 1000));
        begin_kind(p);
    }
    arena_free(a);
}

static void read_lease(struct plan *p)
{
    struct host_request q = {.method = "GET", .timeout_ms = TIMEOUT_MS, .urgent = true};

    q.path =
        arena_printf(p->syncer.arena, "/apis/coordination.k8s.io/v1/namespaces/%.*s/leases/%.*s",
                     STR_F(p->syncer.tenant.host_namespace), STR_F(p->syncer.config->name));
    host_send(p->syncer.host, &q, on_lease, p);
}

/* --- life --- */

/* Names of nodes in the backup are those of the host's nodes: no part of what is compared. */
static enum translate_node node_of(void *ctx, struct str name)
{
    (void)ctx;
    (void)name;
    return NODE_SHOWN;
}

static void on_wake(void *ctx, struct str key)
{
    (void)ctx;
    (void)key;
}

static void on_changed(void *ctx)
{
    (void)ctx;
}

static void on_closed(void *ctx)
{
    ((struct plan *)ctx)->closed = true;
}

static void syncer_init(struct plan *p, struct store *store, const struct config *config,
                        struct str cluster_uid)
{
    struct syncer *s = &p->syncer;
    struct ledger_options ledger = {.store = store,
                                    .config = config,
                                    .clock = &CLOCK_SYSTEM,
                                    .wake = on_wake,
                                    .changed = on_changed};
    struct store_identity identity;

    store_identity(store, &identity);
    p->bound = sync_grants_recorded(store, config, &p->live);
    config = ledger.config = &p->live;
    *s = (struct syncer){.host = s->host, .config = config, .store = store, .arena = arena_new(0)};
    s->tenant = (struct translate_tenant){.config = config,
                                          .cluster_uid = cluster_uid,
                                          .epoch = arena_str(s->arena, str_c(identity.epoch)),
                                          .host_namespace = config->host_namespace,
                                          .node = node_of};
    s->ledger = sync_ledger_new(&ledger);
    syncer_make_kinds(s);
}

static void run(struct plan *p)
{
    store_scan_quarantined(p->syncer.store, 0, STR_NULL, on_damaged, p);
    p->id = SYNC_PODS;
    read_lease(p);
    uv_run(p->loop, UV_RUN_DEFAULT); /* until finish() */
    host_close(p->syncer.host, on_closed, p);
    while (!p->closed)
        uv_run(p->loop, UV_RUN_ONCE);
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
    if (host_open(&options, &p.syncer.host, err))
        return -1;
    syncer_init(&p, store, config, uid);
    run(&p);
    map_clear(&p.seen);
    map_clear(&p.pods);
    arena_free(p.arena);
    sync_ledger_free(p.syncer.ledger);
    config_bound_free(p.bound);
    arena_free(p.syncer.arena);
    return p.failed ? -1 : 0;
}
