/* SPDX-License-Identifier: Apache-2.0 */
/* The syncer's life (enum sync_phase): it is created before the API starts, begins when the API is
 * ready, and closes before the API does. Watches on the host open when the tenant first uses a
 * kind. Must never mistake an unreachable host for an empty one.
 *
 *   start: address known, watches synced -> keys are reconciled
 *          host unreachable -> keys back off; when it answers again, all are added
 *   close: Lease released -> host_stop (all requests fail) -> controllers closed -> hooks off
 *          -> host closed -> Lease closed -> freed
 */
#include "engine.h"
#include "objects/down.h"
#include "objects/volumes.h"

#include <assert.h>

#include <uv.h>

#include <sublet/config_sync.h>
#include <sublet/log.h>
#include <sublet/store_failure.h>
#include <sublet/store_quarantine.h>

#define READY_ANYWAY_MS 3000
#define RESCAN_MS       5000 /* after a failed transaction; the next one may fail as well */
#define WAVE_APART_MS   1000 /* steps in which refused workloads are tried again */

static void maybe_closed(struct syncer *s);

void syncer_rescan_all(struct syncer *s)
{
    sync_kubeconfigs_kick(s->kubeconfigs);
    sync_demand_kick(s->demand);
    syncer_rescan_kinds(s);
    sync_mirrors_rescan(s->mirrors);
    sync_aliases_rescan(s->aliases);
    sync_gangs_rescan(s->gangs);
    sync_classes_look(s);
    sync_grants_look(s->grants);
}

/* --- watches --- */

static void on_changed(void *ctx, const struct host_object *now, const struct host_object *before)
{
    struct sync_watch *w = ctx;

    w->syncer->kinds[w->id].handlers->changed(w->syncer, w->id, now, before);
}

static void listed(struct sync_watch *w)
{
    sync_life_listed(w->syncer, w->id);
    if (w->id == SYNC_STORAGE_CLASSES)
        sync_classes_look(w->syncer);
    if (w->id == SYNC_SECRETS || w->id == SYNC_CONFIG_MAPS)
        syncer_rescan(w->syncer, SYNC_PODS);
    if (w->id == SYNC_CLAIMS) /* volumes wait for it as well */
        sync_volume_rescan(w->syncer);
    if (w->id == SYNC_NODES) /* there may be none at all */
        sync_nodes_recheck(w->syncer->nodes);
}

static void on_current(void *ctx, bool by_list)
{
    struct sync_watch *w = ctx;
    bool due = by_list || w->is_awaited;

    w->current_ms = syncer_mono_ms(w->syncer);
    w->is_awaited = false;
    if (by_list)
        listed(w);
    if (due)
        syncer_rescan(w->syncer, w->id);
    if (due && w->id == SYNC_SERVICES)
        sync_aliases_rescan(w->syncer->aliases);
    if (due && w->id == SYNC_PODS)
        sync_gangs_rescan(w->syncer->gangs);
}

static void on_refused(void *ctx, const struct err *err)
{
    struct sync_watch *w = ctx;
    const struct sync_kind *k = &w->syncer->kinds[w->id];

    /* Cluster-scoped kinds are optional: no warning. */
    if ((k->namespaced || k->maps) && err->kind != &ERR_FORBIDDEN) /* see dialogue.c */
        log_warn("syncer: the host does not let us watch %s: %.*s", k->record, STR_F(err->message));
    else if (!k->namespaced && !k->maps)
        log_info("syncer: the host does not let us watch %s, so %s: %.*s", k->record,
                 w->id == SYNC_NODES ? "those in use are shown by name" : "none is shown",
                 STR_F(err->message));
    syncer_rescan(w->syncer, w->id);
    if (w->id == SYNC_STORAGE_CLASSES)
        sync_classes_look(w->syncer);
    if (w->id == SYNC_NODES)
        sync_nodes_recheck(w->syncer->nodes);
}

/* Another version of the kind may be there. */
static bool on_elsewhere(void *ctx, size_t tried)
{
    struct sync_watch *w = ctx;
    const struct sync_kind *k = &w->syncer->kinds[w->id];
    struct arena *a;
    bool moved;

    if (!k->handlers->elsewhere)
        return false;
    moved = k->handlers->elsewhere(w->syncer, w->id, tried);
    a = arena_new(0);
    reflector_at(w->reflector, sync_path(a, w->syncer, w->id, STR(""), ""));
    arena_free(a);
    return moved;
}

/* The host answers other requests, but this watch fails: 429, 500. An unreachable host is reported
 * by dialogue.c once, for all kinds. */
static void on_failing(void *ctx, const struct err *err)
{
    const struct sync_watch *w = ctx;
    struct arena *a;

    if (err && !host_is_up(w->syncer->host))
        return;
    a = arena_new(0);
    sync_dialogue_note(
        w->syncer, arena_printf(a, "watch %s", w->syncer->kinds[w->id].record).p,
        err ? "WatchFailed" : NULL,
        arena_printf(a,
                     "%s cannot be watched on the host cluster: nothing that happens "
                     "to them there is seen",
                     w->syncer->kinds[w->id].record),
        err ? err->message : STR_NULL);
    arena_free(a);
}

static void on_went_back(void *ctx)
{
    struct syncer *s = ((struct sync_watch *)ctx)->syncer;

    sync_lease_forget_host(s->lease);
    sync_life_host_changed(s, "it is at an earlier revision than before");
}

static const struct reflector_options WATCHING = {.changed = on_changed,
                                                  .current = on_current,
                                                  .refused = on_refused,
                                                  .elsewhere = on_elsewhere,
                                                  .failing = on_failing,
                                                  .went_back = on_went_back};

static void on_up(void *ctx)
{
    struct syncer *s = ctx;

    assert(s->magic == SYNCER_MAGIC);
    if (!syncer_is_running(s))
        return;
    log_info("syncer: the host answers");
    sync_lease_kick(s->lease);
    for (size_t id = 0; id < s->n_kinds; id++)
        reflector_kick(s->watches[id].reflector);
    sync_mirrors_kick(s->mirrors);
    sync_grants_kick(s->grants);
    sync_queued_kick(s->queued);
    sync_gangs_kick(s->gangs);
    syncer_rescan_all(s);
}

/* A failed transaction rolls back what runs recorded about the host, and runs do not wait for their
 * records: one rescan repairs all that failed in the meantime. */
static void on_rescan_due(void *ctx)
{
    struct syncer *s = ctx;

    s->rescan_due = false;
    sync_life_keep(s);
    sync_grants_keep(s->grants);
    sync_demand_look(s->demand);
    sync_departed_retry(s);
    if (syncer_is_closing(s))
        return;
    for (size_t id = 0; id < s->n_kinds; id++)
        if (reflector_synced(s->watches[id].reflector))
            sync_quarantine_compare(s, (enum sync_id)id);
    syncer_rescan_kinds(s);
    sync_mirrors_rescan(s->mirrors);
    sync_aliases_rescan(s->aliases);
    sync_gangs_rescan(s->gangs);
}

static void on_store_failure(void *ctx)
{
    struct syncer *s = ctx;

    if (s->rescan_due || syncer_is_closing(s))
        return;
    s->rescan_due = true;
    syncer_defer_for(s, on_rescan_due, s, RESCAN_MS);
}

static void renew_published(struct syncer *s)
{
    if (syncer_is_closing(s))
        return;
    sync_kubeconfigs_renew(s->kubeconfigs);
    sync_demand_renew(s->demand);
}

/* Another process may write from now on: with the Lease back, what is published is read again. */
static void on_barred(struct syncer *s)
{
    renew_published(s);
    sync_streams_bar(s->streams);
}

static void on_another_host(struct syncer *s)
{
    sync_mirrors_restart(s->mirrors);
    sync_grants_restart(s->grants);
    sync_queued_restart(s->queued);
    sync_gangs_restart(s->gangs);
    sync_reclaims_host_changed(s->reclaims);
    renew_published(s);
}

static const struct sync_parts PARTS = {.watching = &WATCHING,
                                        .idle = maybe_closed,
                                        .rescan = syncer_rescan_all,
                                        .another_host = on_another_host,
                                        .barred = on_barred};

/* --- creating --- */

bool syncer_uid_is_lost(struct store *s)
{
    struct str found;

    return !store_record_get_either(s, RECORD_META, STR(META_CLUSTER_UID), &found) &&
           store_record_damaged(s, RECORD_META, STR(META_CLUSTER_UID));
}

/* With another uid all host objects would be foreign, and be created a second time beside them. */
static int check_cluster_uid(struct vapi *api, struct err *err)
{
    if (!syncer_uid_is_lost(vapi_store(api)))
        return 0;
    return err_set(err, &ERR_STORAGE,
                   "the stored uid of the cluster is damaged; restore the store from a backup");
}

/* The uid that every host object of ours carries. It is part of the store: a restored store is the
 * same cluster. */
static struct str cluster_uid(struct syncer *s)
{
    struct str found;
    char uuid[37];

    if (!store_record_get_either(s->store, RECORD_META, STR(META_CLUSTER_UID), &found) ||
        !found.n) {
        rng_uuid(vapi_rng(s->api), uuid);
        found = str_c(uuid);
    }
    found = arena_str(s->arena, found);
    store_record_put_twice(s->store, RECORD_META, STR(META_CLUSTER_UID), found);
    return found;
}

/* A new cluster becomes ready after one request to the host, so that its first client finds it
 * complete. A restart is ready at once: its API serves with or without the host. */
static const char *check_host(void *ctx)
{
    struct syncer *s = vapi_get_hooks(ctx)->ctx;

    if (!s || s->phase == SYNC_NEW || s->reached || s->host_tried || s->address_known ||
        syncer_mono_ms(s) - s->started_ms > READY_ANYWAY_MS)
        return NULL;
    return "the host cluster was not reached yet";
}

static void wake_pod(void *ctx, struct str key)
{
    struct str ns, name;

    if (key_split(key, &ns, &name))
        syncer_add(ctx, SYNC_PODS, ns, name);
}

static void on_released(void *ctx)
{
    sync_grants_released(((struct syncer *)ctx)->grants);
}

static void on_ledger_changed(void *ctx)
{
    struct syncer *s = ctx;

    sync_demand_look(s->demand);
    vapi_gpu_usage_changed(s->api);
}

static void on_turned_away(void *ctx, const struct config_binding *binding, struct rational sum)
{
    sync_demand_turned_away(((struct syncer *)ctx)->demand, binding, sum);
}

static void on_wave(void *syncer)
{
    struct syncer *s = syncer;

    if (!syncer_is_closing(s))
        sync_ledger_wave(s->ledger);
}

static void on_ledger_later(void *ctx)
{
    syncer_defer_for(ctx, on_wave, ctx, WAVE_APART_MS);
}

static void make_parts(struct syncer *s)
{
    s->controllers = arena_alloc(s->arena, s->n_kinds * sizeof(struct controller *));
    s->watches = arena_alloc(s->arena, s->n_kinds * sizeof(*s->watches));
    for (size_t id = 0; id < s->n_kinds; id++)
        s->watches[id] = (struct sync_watch){s, (enum sync_id)id, NULL};
    s->refs = sync_refs_new(s);
    s->ledger = sync_ledger_new(&(struct ledger_options){.store = s->store,
                                                         .config = s->config,
                                                         .clock = vapi_clock(s->api),
                                                         .wake = wake_pod,
                                                         .retry = sync_retry_owner,
                                                         .released = on_released,
                                                         .lacks = sync_owner_lacks,
                                                         .later = on_ledger_later,
                                                         .changed = on_ledger_changed,
                                                         .turned_away = on_turned_away,
                                                         .ctx = s});
    s->reclaims = sync_reclaims_new(s);
    s->queued = sync_queued_new(s);
    s->gangs = sync_gangs_new(s);
    s->nodes = sync_nodes_new(s);
    s->dry_runs = sync_dry_runs_new(s);
    s->failed = sync_failed_new(s);
    s->last = sync_last_statuses_new();
    s->fights = sync_fights_new();
    s->events = sync_events_up_new(s);
    s->kubeconfigs = sync_kubeconfigs_new(s);
    s->demand = sync_demand_new(s);
    s->admits = sync_admits_new(s);
    s->streams = sync_streams_new();
    s->devices = sync_devices_new(s);
    s->rejections = sync_rejections_new();
    s->webhooks = sync_webhooks_new(s);
    s->extensions = sync_extensions_new(s);
    s->mirrors = sync_mirrors_new(s);
    s->aliases = sync_aliases_new(s);
    s->defer = NEW(uv_timer_t);
    uv_timer_init(vapi_loop(s->api), s->defer);
    s->defer->data = s;
}

int syncer_new_with(struct vapi *api, const struct config *config, struct host *host,
                    struct syncer **ret, struct err *err)
{
    if (check_cluster_uid(api, err))
        return -1;
    struct syncer *s = NEW(struct syncer);
    struct str found;

    *s = (struct syncer){.magic = SYNCER_MAGIC,
                         .parts = &PARTS,
                         .api = api,
                         .config = config,
                         .store = vapi_store(api),
                         .host = host,
                         .arena = arena_new(0)};
    STAILQ_INIT(&s->deferred);
    s->grants = sync_grants_new(s);
    s->tenant = (struct translate_tenant){.config = s->config,
                                          .cluster_uid = cluster_uid(s),
                                          .host_namespace = config->host_namespace};
    s->reached = store_record_get(s->store, RECORD_META, STR(HOST_REACHED), &found);
    syncer_make_kinds(s);
    sync_life_open(s);
    make_parts(s);
    s->tenant.node = sync_nodes_meaning;
    s->tenant.node_ctx = s->nodes;
    s->tenant.host_priority = sync_classes_host_priority;
    s->tenant.host_priority_ctx = s;
    s->tenant.class_down = sync_down_has_class;
    s->tenant.down_ctx = s;
    if (config->to_host->enabled[DOWN_VOLUMES])
        s->tenant.volume_down = sync_volume_is_for_host;
    if (config->nodes_per_pool)
        s->tenant.node_up = sync_nodes_up;
    sync_hooks_register(s);
    host_on_up(host, on_up, s);
    sync_dialogue_watch(s);
    vapi_add_check(api, "host-sync", check_host, api);
    sync_leader_new(s);
    *ret = s;
    return 0;
}

int syncer_new(struct vapi *api, const struct config *config, struct syncer **ret, struct err *err)
{
    struct host_options options = {.loop = vapi_loop(api),
                                   .clock = vapi_clock(api),
                                   .rng = vapi_rng(api),
                                   .kubeconfig = config->host_kubeconfig,
                                   .qps = config->host_qps,
                                   .burst = config->host_burst,
                                   .dry_qps = config->host_dry_qps};
    struct host *host;

    if (check_cluster_uid(api, err) || host_open(&options, &host, err))
        return -1;
    return syncer_new_with(api, config, host, ret, err);
}

void syncer_on_new_life(struct syncer *s,
                        void (*wanted)(void *ctx, const struct store_predecessor *after), void *ctx)
{
    s->new_life = wanted;
    s->new_life_ctx = ctx;
}

void syncer_start(struct syncer *s)
{
    assert(s->magic == SYNCER_MAGIC);
    syncer_enter(s, SYNC_RUNNING);
    s->started_ms = syncer_mono_ms(s);
    s->started_s = syncer_now_s(s);
    store_on_failure(s->store, on_store_failure, s);
    for (size_t id = 0; id < s->n_kinds; id++)
        if (s->kinds[id].handlers->controller)
            s->controllers[id] =
                controller_start_with(s->api, s->kinds[id].handlers->controller, &s->watches[id]);
    sync_leader_start(s);
    sync_address_find(s);
    syncer_watch(s, SYNC_NODES);
    if (s->config->nodes_per_pool)
        syncer_watch(s, SYNC_QUOTAS);
    syncer_watch(s, SYNC_STORAGE_CLASSES);
    if (config_has_tiers(s->config))
        syncer_watch(s, SYNC_PRIORITY_CLASSES);
    sync_mirrors_start(s->mirrors);
    sync_aliases_start(s->aliases);
    sync_gangs_start(s->gangs);
    sync_grants_start(s->grants);
    sync_quarantine_start(s);
    if (!sync_life_is_first(s))
        sync_life_watch_all(s);
}

/* --- closing --- */

static void on_defer_closed(uv_handle_t *handle)
{
    struct syncer *s = handle->data;
    void (*closed)(void *ctx) = s->closed;
    void *ctx = s->closed_ctx;

    mem_free(s->defer);
    mem_free(s->host_class);
    mem_free(s->not_leading);
    s->kubeconfigs = sync_kubeconfigs_free(s->kubeconfigs);
    sync_departed_fini(s);
    s->refs = sync_refs_free(s->refs);
    s->ledger = sync_ledger_free(s->ledger);
    s->reclaims = sync_reclaims_free(s->reclaims);
    s->queued = sync_queued_free(s->queued);
    s->gangs = sync_gangs_free(s->gangs);
    s->grants = sync_grants_free(s->grants);
    s->demand = sync_demand_free(s->demand);
    s->nodes = sync_nodes_free(s->nodes);
    s->dry_runs = sync_dry_runs_free(s->dry_runs);
    s->failed = sync_failed_free(s->failed);
    s->last = sync_last_statuses_free(s->last);
    s->fights = sync_fights_free(s->fights);
    s->events = sync_events_up_free(s->events);
    s->admits = sync_admits_free(s->admits);
    s->streams = sync_streams_free(s->streams);
    s->devices = sync_devices_free(s->devices);
    s->rejections = sync_rejections_free(s->rejections);
    s->webhooks = sync_webhooks_free(s->webhooks);
    s->extensions = sync_extensions_free(s->extensions);
    s->mirrors = sync_mirrors_free(s->mirrors);
    s->aliases = sync_aliases_free(s->aliases);
    arena_free(s->arena);
    s->magic = 0;
    mem_free(s);
    closed(ctx);
}

static void on_lease_closed(void *ctx)
{
    struct syncer *s = ctx;

    s->lease = NULL;
    uv_close((uv_handle_t *)s->defer, on_defer_closed);
}

static void on_host_closed(void *ctx)
{
    struct syncer *s = ctx;

    sync_lease_close(s->lease, on_lease_closed, s);
}

/* Once all controllers are closed and no call is deferred, nothing sends requests to the host. */
static void maybe_closed(struct syncer *s)
{
    struct vapi_hooks none = {0};
    struct host *host = s->host;

    if (s->phase != SYNC_CLOSING || s->open_parts || !STAILQ_EMPTY(&s->deferred))
        return;
    syncer_enter(s, SYNC_ENDING);
    vapi_set_hooks(s->api, &none);
    s->host = NULL;
    host_flush(host);
    sync_kubeconfigs_close(s->kubeconfigs);
    sync_demand_close(s->demand);
    host_close(host, on_host_closed, s);
}

static void on_controller_closed(void *ctx)
{
    struct syncer *s = ctx;

    s->open_parts--;
    maybe_closed(s);
}

/* Until the Lease is released everything runs, except that the host is not changed. */
static void on_lease_released(void *ctx)
{
    struct syncer *s = ctx;

    syncer_enter(s, SYNC_CLOSING);
    sync_leader_stop(s);
    store_on_failure(s->store, NULL, NULL);
    for (size_t id = 0; id < s->n_kinds; id++)
        s->watches[id].reflector = reflector_close(s->watches[id].reflector);
    sync_streams_stop(s->streams);
    sync_devices_stop(s->devices);
    sync_grants_stop(s->grants);
    sync_queued_stop(s->queued);
    sync_gangs_stop(s->gangs);
    host_stop(s->host);
    s->open_parts++;
    s->open_parts += (unsigned)sync_webhooks_close(s->webhooks, on_controller_closed, s);
    s->open_parts += (unsigned)sync_extensions_close(s->extensions, on_controller_closed, s);
    s->open_parts += (unsigned)sync_mirrors_close(s->mirrors, on_controller_closed, s);
    s->open_parts += (unsigned)sync_aliases_close(s->aliases, on_controller_closed, s);
    s->open_parts += (unsigned)sync_gangs_close(s->gangs, on_controller_closed, s);
    for (size_t id = 0; id < s->n_kinds; id++) {
        if (!s->controllers[id])
            continue;
        s->open_parts++;
        controller_close(s->controllers[id], on_controller_closed, s);
        s->controllers[id] = NULL;
    }
    s->open_parts--;
    syncer_hold(s);
    syncer_release(s);
}

void syncer_close(struct syncer *s, void (*closed)(void *ctx), void *ctx)
{
    assert(s->magic == SYNCER_MAGIC);
    syncer_enter(s, SYNC_RELEASING);
    s->closed = closed;
    s->closed_ctx = ctx;
    sync_lease_release(s->lease, on_lease_released, s);
    host_gate_changed(s->host);
}
