/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of the syncer needs of it: keys of reconciles, objects of the store, host watches
 * that open on first use, and deferred calls. Must never name a part above it. */
#include "core/leader.h"
#include "core/life.h"
#include "core/run.h"

#include <assert.h>

#include <uv.h>

#include <sublet/log.h>
#include <sublet/store_quarantine.h>

struct deferred_call {
    STAILQ_ENTRY(deferred_call) place;
    int64_t due_ms;
    void (*run)(void *ctx);
    void *ctx;
};

/* --- life --- */

void syncer_enter(struct syncer *s, enum sync_phase to)
{
    static const unsigned next[N_SYNC_PHASES] = {
        [SYNC_NEW] = 1u << SYNC_RUNNING | 1u << SYNC_RELEASING,
        [SYNC_RUNNING] = 1u << SYNC_RELEASING,
        [SYNC_RELEASING] = 1u << SYNC_CLOSING,
        [SYNC_CLOSING] = 1u << SYNC_ENDING,
        [SYNC_ENDING] = 0,
    };

    assert(next[s->phase] & 1u << to);
    s->phase = to;
}

bool syncer_is_running(const struct syncer *s)
{
    return s->phase == SYNC_RUNNING || s->phase == SYNC_RELEASING;
}

bool syncer_is_closing(const struct syncer *s)
{
    return s->phase >= SYNC_CLOSING;
}

/* --- deferred calls --- */

int64_t syncer_mono_ms(const struct syncer *s)
{
    return clock_mono_ms(vapi_clock(s->api));
}

int64_t syncer_now_s(const struct syncer *s)
{
    return clock_wall_s(vapi_clock(s->api));
}

int64_t syncer_age_s(const struct syncer *s)
{
    return (syncer_mono_ms(s) - s->started_ms) / 1000;
}

int64_t syncer_steady_s(const struct syncer *s)
{
    return s->started_s + syncer_age_s(s);
}

static void on_defer_timer(uv_timer_t *timer);

static void arm(struct syncer *s)
{
    int64_t due = INT64_MAX, now = syncer_mono_ms(s);
    const struct deferred_call *d;

    STAILQ_FOREACH(d, &s->deferred, place)
    {
        due = d->due_ms < due ? d->due_ms : due;
    }
    if (due == INT64_MAX)
        return;
    uv_update_time(s->defer->loop);
    uv_timer_start(s->defer, on_defer_timer, due > now ? (uint64_t)(due - now) : 0, 0);
}

/* Unlinks the first that is due; when closing, all of them are. */
static struct deferred_call *take_due(struct syncer *s, int64_t now)
{
    struct deferred_call *d;

    STAILQ_FOREACH(d, &s->deferred, place)
    {
        if (d->due_ms <= now || syncer_is_closing(s))
            break;
    }
    if (d)
        STAILQ_REMOVE(&s->deferred, d, deferred_call, place);
    return d;
}

static void on_defer_timer(uv_timer_t *timer)
{
    struct syncer *s = timer->data;
    struct deferred_call *d;
    int64_t now = syncer_mono_ms(s);

    assert(s->magic == SYNCER_MAGIC);
    while ((d = take_due(s, now))) {
        d->run(d->ctx);
        mem_free(d);
    }
    arm(s);
    s->parts->idle(s);
}

void syncer_defer_for(struct syncer *s, void (*run)(void *ctx), void *ctx, int64_t delay_ms)
{
    struct deferred_call *d = NEW(struct deferred_call);

    *d = (struct deferred_call){.due_ms = syncer_mono_ms(s) + delay_ms, .run = run, .ctx = ctx};
    STAILQ_INSERT_TAIL(&s->deferred, d, place);
    arm(s);
}

void syncer_defer(struct syncer *s, void (*run)(void *ctx), void *ctx)
{
    syncer_defer_for(s, run, ctx, 0);
}

/* --- objects --- */

struct str sync_uid(const cJSON *object)
{
    return json_str_at(object, "metadata.uid");
}

struct str sync_path_in(struct arena *a, const struct syncer *s, enum sync_id id, struct str ns,
                        struct str host_name, const char *tail)
{
    const struct sync_kind *k = &s->kinds[id];
    bool in_namespace = k->namespaced;

    return arena_printf(a, "%s%s%.*s/%s%s%.*s%s", k->root, in_namespace ? "/namespaces/" : "",
                        STR_F(in_namespace ? ns : STR("")), k->plural, host_name.n ? "/" : "",
                        STR_F(host_name), tail);
}

struct str sync_path(struct arena *a, const struct syncer *s, enum sync_id id, struct str host_name,
                     const char *tail)
{
    return sync_path_in(a, s, id, s->tenant.host_namespace, host_name, tail);
}

/* --- keys --- */

struct syncer *syncer_of(struct reconcile *r)
{
    struct syncer *s = vapi_get_hooks(reconcile_api(r))->ctx;

    assert(s->magic == SYNCER_MAGIC);
    return s;
}

/* A controller's state is its kind's watch. */
enum sync_id sync_id_of(struct reconcile *r)
{
    return ((const struct sync_watch *)controller_state(reconcile_controller(r)))->id;
}

const struct resource *syncer_resource(const struct syncer *s, const char *group,
                                       const char *plural)
{
    const struct resource *r =
        registry_find_group_resource(vapi_registry(s->api), str_c(group), str_c(plural));

    assert(r); /* a built-in kind */
    return r;
}

/* A custom resource may have no definition yet: its number depends on its name only, and its
 * controller's watch keeps it. The plan of a restore has no API. */
unsigned syncer_storage(const struct syncer *s, enum sync_id id)
{
    const struct sync_kind *k = &s->kinds[id];
    const struct resource *r =
        s->api
            ? registry_find_group_resource(vapi_registry(s->api), str_c(k->group), str_c(k->plural))
            : NULL;

    return r ? r->storage : store_resource(s->store, str_c(k->record));
}

static unsigned namespaces(const struct syncer *s)
{
    return store_resource(s->store, STR("namespaces"));
}

bool syncer_has_virtual(struct syncer *s, enum sync_id id, struct str ns, struct str name)
{
    unsigned storage = syncer_storage(s, id);

    return store_latest(s->store, storage, ns, name) || store_get(s->store, storage, ns, name) ||
           store_quarantined(s->store, storage, ns, name);
}

cJSON *syncer_virtual(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                      struct str name)
{
    const struct store_object *o = store_get(s->store, syncer_storage(s, id), ns, name);

    return o ? vapi_tree(a, o) : NULL;
}

struct gather {
    struct arena *arena;
    struct translate_namespaces *found;
    size_t cap;
};

/* The store has the labels as selectors read them: no object is parsed. */
static bool on_namespace(void *ctx, const struct store_object *o)
{
    struct gather *g = ctx;
    struct translate_namespaces *found = g->found;

    ARENA_GROW(g->arena, found->items, found->n, g->cap);
    found->items[found->n++] =
        (struct translate_namespace){arena_str(g->arena, o->name), arena_str(g->arena, o->labels)};
    return true;
}

const struct translate_namespaces *syncer_namespaces(struct syncer *s, struct arena *a,
                                                     struct err *err)
{
    struct gather g = {a, ARENA_NEW(a, struct translate_namespaces), 0};

    if (store_scan(s->store, namespaces(s), STR_NULL, STR_NULL, STR_NULL, 0, on_namespace, &g, err))
        return NULL;
    return g.found;
}

const cJSON *syncer_namespace_labels(struct syncer *s, struct arena *a, struct str ns)
{
    const struct store_object *o = store_latest(s->store, namespaces(s), STR(""), ns);

    return o ? json_path(vapi_tree(a, o), "metadata.labels") : NULL;
}

const struct config_binding *sync_binding_of(const struct syncer *s, const cJSON *host_pod)
{
    return config_binding_of(s->config, meta_label(host_pod, LABEL_POOL));
}

void syncer_add(struct syncer *s, enum sync_id id, struct str ns, struct str name)
{
    struct arena *a;

    if (!s->controllers[id])
        return;
    a = arena_new(0);
    controller_add(s->controllers[id], key_join(a, ns, name));
    arena_free(a);
}

struct rescan {
    struct syncer *syncer;
    enum sync_id id;
};

static bool on_virtual(void *ctx, const struct store_object *o)
{
    struct rescan *r = ctx;

    syncer_add(r->syncer, r->id, o->ns, o->name);
    return true;
}

static bool on_mapping(void *ctx, struct str key, struct str value)
{
    struct rescan *r = ctx;
    struct str rest = key, ns;

    (void)value;
    str_cut(&rest, '/');
    ns = str_cut(&rest, '/');
    syncer_add(r->syncer, r->id, ns, rest);
    return true;
}

static void on_host_object(void *ctx, const struct host_object *o)
{
    struct rescan *r = ctx;

    r->syncer->kinds[r->id].handlers->changed(r->syncer, r->id, o, o);
}

void syncer_rescan(struct syncer *s, enum sync_id id)
{
    const struct sync_kind *k = &s->kinds[id];
    struct rescan r = {s, id};
    struct arena *a;

    if (!s->controllers[id])
        return;
    a = arena_new(0);
    if (store_scan(s->store, syncer_storage(s, id), STR_NULL, STR_NULL, STR_NULL, 0, on_virtual, &r,
                   NULL))
        log_error("syncer: cannot list %s", k->plural);
    if (k->maps)
        store_record_each(s->store, RECORD_MAPPING, arena_printf(a, "%s/", k->record), on_mapping,
                          &r);
    else
        reflector_each(s->watches[id].reflector, on_host_object, &r);
    arena_free(a);
}

void syncer_rescan_kinds(struct syncer *s)
{
    for (size_t id = 0; id < s->n_kinds; id++)
        syncer_rescan(s, (enum sync_id)id);
}

static void on_quarantine_over(void *ctx)
{
    struct syncer *s = ctx;

    s->shown_due = false;
    if (!syncer_is_closing(s))
        syncer_rescan_kinds(s);
}

void syncer_quarantine_over(struct syncer *s)
{
    if (s->shown_due)
        return;
    s->shown_due = true;
    syncer_defer(s, on_quarantine_over, s);
}

/* --- watches --- */

struct reflector *syncer_watch(struct syncer *s, enum sync_id id)
{
    const struct sync_kind *k = &s->kinds[id];
    struct sync_watch *w = &s->watches[id];
    struct reflector_options o = *s->parts->watching;
    struct arena *a;

    if (w->reflector || syncer_is_closing(s))
        return w->reflector;
    o.host = s->host;
    o.revision = sync_revision_on_record(s, id);
    o.metadata_only = k->metadata_only;
    o.forget = id == SYNC_EVENTS;
    o.reduce = k->handlers->reduce;
    o.ctx = w;
    a = arena_new(0);
    o.path = sync_path(a, s, id, STR(""), "");
    if (k->labelled)
        o.label_selector = arena_printf(a, LABEL_CLUSTER "=%.*s", STR_F(s->tenant.cluster_uid));
    w->reflector = reflector_open(&o);
    arena_free(a);
    return w->reflector;
}

bool syncer_ready(struct syncer *s, enum sync_id first, enum sync_id second, enum sync_id third)
{
    const enum sync_id ids[] = {first, second, third};
    bool ready = true;

    if (syncer_is_closing(s) || !s->address_known || !host_is_up(s->host))
        return false;
    for (size_t i = 0; i < 3; i++)
        ready &= reflector_synced(syncer_watch(s, ids[i]));
    ready &= sync_lease_may_act(s->lease); /* last: the watches open in the meantime */
    if (ready)
        syncer_watch(s, SYNC_EVENTS);
    return ready;
}

void syncer_host_reached(struct syncer *s)
{
    if (!s->reached)
        store_record_put(s->store, RECORD_META, STR(HOST_REACHED), STR("true"));
    s->reached = true;
}

/* --- closing --- */

static void on_released(void *ctx)
{
    (void)ctx; /* the timer calls parts->idle() afterwards */
}

void syncer_hold(struct syncer *s)
{
    s->open_parts++;
}

/* The last release closes on the loop's next turn: the caller may still use the syncer. */
void syncer_release(struct syncer *s)
{
    s->open_parts--;
    if (syncer_is_closing(s))
        syncer_defer(s, on_released, s);
}
