/* SPDX-License-Identifier: Apache-2.0 */
/* Further host Services under names that the admin chose (sync.toHost.services.mappings), so that
 * others on the host find a tenant's Service by a stable name. Each is an object beside the one
 * that objects/services.c keeps, with a record of its own. Must never write to or delete a Service
 * that neither its record nor its marks prove ours, whatever the configuration calls it.
 *
 *   record RECORD_META "service-alias/<host name>": "<virtual uid> <host uid> <since> <ns>/<name>"
 *     host uid "-": its creation was requested at `since` (wall seconds), and not answered
 *
 *   no record --record durable, POST--> "-" --answered or seen--> host uid
 *      ^                                 |                          |
 *      '--- refused, or not made --------'   not wanted: DELETE ----'
 */
#include "objects/aliases.h"
#include "core/leader.h"
#include "core/life.h"
#include "objects/objects.h"

#include <string.h>

#include <sublet/config_sync.h>
#include <sublet/store_quarantine.h>
#include <sublet/translate_alias.h>

#define PREFIX   "service-alias/"
#define NOT_MADE "-"
#define LOST_CREATE_S                                                                              \
    75 /* as exchange.c has it: a request without an answer is not executed later */
#define TAKEN_MS 60000

struct aliases {
    struct syncer *syncer;
    struct controller *controller;
};

struct alias_record {
    bool exists;
    struct str uid;      /* of the virtual Service */
    struct str host_uid; /* or NOT_MADE */
    int64_t since_s;
    struct str ns, name;
};

/* One name, and what is known of it. */
struct alias {
    struct syncer *syncer;
    struct arena *arena;
    struct str host_name, ns, name;
    const struct config_service_alias *map; /* NULL: no longer configured */
    struct alias_record record;
    cJSON *virtual_, *host, *wanted; /* wanted NULL: none */
    struct str owner_uid;            /* that the host object carries; empty: it is not ours */
    bool hidden;                     /* the virtual Service exists and cannot be read */
    struct err refused;              /* why it is not wanted */
};

/* --- records --- */

static struct str record_key(struct arena *a, struct str host_name)
{
    return arena_printf(a, PREFIX "%.*s", STR_F(host_name));
}

static struct alias_record record_get(struct syncer *s, struct arena *a, struct str host_name)
{
    struct alias_record r = {0};
    struct str rest, since;

    if (!store_record_get(s->store, RECORD_META, record_key(a, host_name), &rest))
        return r;
    rest = arena_str(a, rest);
    r.exists = true;
    r.uid = str_cut(&rest, ' ');
    r.host_uid = str_cut(&rest, ' ');
    since = str_cut(&rest, ' ');
    if (!str_to_i64(since, &r.since_s))
        r.since_s = 0;
    r.ns = str_cut(&rest, '/');
    r.name = rest;
    return r;
}

static void record_put(struct alias *x, struct str host_uid)
{
    int64_t now = str_eqc(host_uid, NOT_MADE) ? syncer_steady_s(x->syncer) : 0;

    x->record = (struct alias_record){true, meta_uid(x->virtual_), host_uid, now, x->ns, x->name};
    store_record_put(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name),
                     arena_printf(x->arena, "%.*s %.*s %lld %.*s/%.*s", STR_F(x->record.uid),
                                  STR_F(host_uid), (long long)now, STR_F(x->ns), STR_F(x->name)));
}

static void record_drop(struct alias *x)
{
    x->record.exists = false;
    store_record_delete(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name));
}

struct each {
    void (*call)(void *ctx, struct str host_name);
    void *ctx;
};

static bool on_record(void *ctx, struct str key, struct str value)
{
    const struct each *each = ctx;

    (void)value;
    each->call(each->ctx, str_from(key, sizeof(PREFIX) - 1));
    return true;
}

void sync_alias_each(struct syncer *s, void (*call)(void *ctx, struct str host_name), void *ctx)
{
    const struct config_to_host *to = s->config->to_host;
    struct each each = {call, ctx};

    for (size_t i = 0; i < to->n_aliases; i++)
        call(ctx, to->aliases[i].host_name);
    store_record_each(s->store, RECORD_META, STR(PREFIX), on_record, &each);
}

/* --- what is known --- */

static void read_virtual(struct alias *x)
{
    struct syncer *s = x->syncer;

    x->virtual_ = syncer_virtual(s, x->arena, SYNC_SERVICES, x->ns, x->name);
    x->hidden = !x->virtual_ &&
                !store_is_absent(s->store, syncer_storage(s, SYNC_SERVICES), x->ns, x->name);
    if (!x->map || !x->virtual_ || object_is_terminating(x->virtual_) ||
        !sync_service_wants_host(x->virtual_) ||
        sync_service_is_shown(s, x->virtual_, x->ns, x->name))
        return;
    if (translate_service_alias(x->arena, &s->tenant, x->virtual_, x->host_name, &x->wanted,
                                &x->refused))
        x->wanted = NULL;
}

static void read_host(struct alias *x, cJSON *host)
{
    struct str ns, name;

    x->host = host;
    if (!host || !translate_alias_owner(&x->syncer->tenant, host, &ns, &name, &x->owner_uid))
        x->owner_uid = STR("");
}

/* False: the name is none of ours. */
static bool alias_read(struct alias *x, struct syncer *s, struct arena *a, struct str host_name,
                       cJSON *host)
{
    *x = (struct alias){.syncer = s, .arena = a, .host_name = host_name};
    err_init(&x->refused, a);
    x->map = config_alias_of(s->config->to_host, host_name);
    x->record = record_get(s, a, host_name);
    if (!x->map && !x->record.exists)
        return false;
    x->ns = x->map ? x->map->ns : x->record.ns;
    x->name = x->map ? x->map->name : x->record.name;
    read_virtual(x);
    read_host(x, host);
    return true;
}

/* --- the decision --- */

/* The record says that this very object was made for this name. */
static bool is_proven(const struct alias *x)
{
    if (!x->record.exists || !x->owner_uid.n || !sync_life_owns(x->syncer, x->host))
        return false;
    return str_eqc(x->record.host_uid, NOT_MADE) ? str_eq(x->record.uid, x->owner_uid)
                                                 : str_eq(x->record.host_uid, meta_uid(x->host));
}

/* A cluster IP cannot be taken away, nor given. */
static bool is_other_form(const struct alias *x)
{
    return sync_service_is_headless(x->host) != sync_service_is_headless(x->wanted);
}

static enum sync_settlement settle(const struct alias *x)
{
    bool proven, own;

    if (!x->host)
        return x->wanted ? SETTLE_CREATE : SETTLE_NOTHING;
    proven = is_proven(x);
    own = x->wanted && str_eq(x->owner_uid, meta_uid(x->virtual_)) &&
          sync_life_owns(x->syncer, x->host);
    if (!proven && !own)
        return SETTLE_QUARANTINE;
    if (object_is_terminating(x->host))
        return SETTLE_AWAIT;
    if (x->wanted && !is_other_form(x))
        return SETTLE_KEEP;
    /* What cannot be read may want it, and what was restored since may have had it. */
    if (!proven || (x->map && x->hidden))
        return SETTLE_SPARE;
    return SETTLE_DELETE;
}

bool sync_alias_settle(struct syncer *s, struct arena *a, struct str host_name, cJSON *host,
                       enum sync_settlement *ret, struct str *ret_ns, struct str *ret_name)
{
    struct alias x;

    if (!alias_read(&x, s, a, host_name, host))
        return false;
    *ret = settle(&x);
    if (*ret == SETTLE_CREATE && (!x.record.exists || str_eqc(x.record.host_uid, NOT_MADE)))
        *ret = SETTLE_NOTHING; /* it was never there */
    *ret_ns = x.ns;
    *ret_name = x.name;
    return true;
}

/* --- notes --- */

static void note(struct alias *x, const char *reason, const char *message)
{
    sync_dialogue_note(x->syncer,
                       arena_printf(x->arena, "service alias %.*s", STR_F(x->host_name)).p, reason,
                       str_c(message),
                       arena_printf(x->arena, "%.*s for %.*s/%.*s", STR_F(x->host_name),
                                    STR_F(x->ns), STR_F(x->name)));
}

static void note_over(struct alias *x)
{
    sync_dialogue_note(x->syncer,
                       arena_printf(x->arena, "service alias %.*s", STR_F(x->host_name)).p, NULL,
                       STR_NULL, STR_NULL);
}

/* --- requests --- */

static struct sync_run *run_of(struct alias *x, struct reconcile *r)
{
    struct sync_run *run = ARENA_NEW(x->arena, struct sync_run);

    *run = (struct sync_run){.syncer = x->syncer,
                             .reconcile = r,
                             .arena = x->arena,
                             .id = SYNC_SERVICES,
                             .ns = x->ns,
                             .name = x->name,
                             .virtual_ = x->virtual_,
                             .host = x->host,
                             .uid = meta_uid(x->virtual_),
                             .host_uid = meta_uid(x->host),
                             .owner_uid = x->owner_uid,
                             .then_ctx = x};
    memcpy(run->host_name, x->host_name.p, x->host_name.n);
    return run;
}

static void again(const struct alias *x)
{
    sync_aliases_changed(x->syncer->aliases, x->host_name);
}

static void learn(struct alias *x, const struct host_answer *answer)
{
    reflector_learn(x->syncer->watches[SYNC_SERVICES].reflector, answer->body);
}

/* Another's object has the name: it is left alone, and looked at again after a while. */
static void report_taken(struct alias *x, struct reconcile *r)
{
    note(x, "ServiceNameTaken",
         "a Service of the host cluster has the name that sync.toHost.services maps a Service to, "
         "and is not proven to be this virtual cluster's: it is left alone");
    if (x->wanted)
        reconcile_event(r, x->virtual_, "Warning", "SyncError",
                        "its further name on the host cluster is taken by an object that is not "
                        "this cluster's");
    reconcile_again_after(r, TAKEN_MS);
}

/* The name exists: by a request of ours whose answer was lost, or another's. */
static void on_existing(struct sync_run *run, const struct host_answer *answer,
                        const struct err *err)
{
    struct alias *x = run->then_ctx;
    cJSON *host = NULL;

    if (err || json_parse(x->arena, answer->body, &host, NULL)) {
        reconcile_again_after(run->reconcile, 1000);
        return;
    }
    read_host(x, host);
    if (str_eq(x->owner_uid, meta_uid(x->virtual_))) {
        record_put(x, meta_uid(host));
        learn(x, answer);
        again(x);
        return;
    }
    record_drop(x); /* what was requested was not made */
    report_taken(x, run->reconcile);
}

static void on_created(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct alias *x = run->then_ctx;
    struct host_request q = {.method = "GET"};
    cJSON *host = NULL;

    if (!err && !json_parse(x->arena, answer->body, &host, NULL)) {
        record_put(x, meta_uid(host));
        learn(x, answer);
        again(x);
    } else if (err && err->kind == &ERR_ALREADY_EXISTS) {
        q.path = sync_path(x->arena, x->syncer, SYNC_SERVICES, x->host_name, "");
        sync_send(run, &q, on_existing);
    } else if (err && !sync_is_uncertain(err)) {
        record_drop(x);
        sync_refused(run, err);
    } else {
        reconcile_again_after(run->reconcile, 1000);
    }
}

/* The record is durable, or rolled back. */
static void on_recorded(void *ctx, const struct err *err)
{
    struct sync_run *run = ctx;
    struct alias *x = run->then_ctx;
    struct host_request q = {.method = "POST"};

    if (err) {
        reconcile_fail(run->reconcile, err);
    } else {
        q.path = sync_path(x->arena, x->syncer, SYNC_SERVICES, STR(""), "");
        q.body = json_text(x->arena, x->wanted);
        sync_send(run, &q, on_created);
    }
    reconcile_release(run->reconcile, NULL);
}

static void create(struct alias *x, struct reconcile *r)
{
    struct sync_run *run = run_of(x, r);

    record_put(x, STR(NOT_MADE));
    reconcile_hold(r);
    store_on_commit(x->syncer->store, on_recorded, run);
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    return translate_service_update(run->arena, run->host, wanted);
}

static void keep(struct alias *x, struct reconcile *r)
{
    struct sync_run *run = run_of(x, r);
    cJSON *patch = lacks(run, x->wanted);

    if (!x->record.exists || !str_eq(x->record.host_uid, meta_uid(x->host)) ||
        !str_eq(x->record.uid, meta_uid(x->virtual_)))
        record_put(x, meta_uid(x->host));
    note_over(x);
    if (patch)
        sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", x->wanted, lacks, NULL});
}

/* There is none, and none is wanted. A request whose answer was lost may still be executed: only
 * the record proves then that the object is ours. */
static void forget(struct alias *x, struct reconcile *r)
{
    int64_t passed = syncer_age_s(x->syncer), now = syncer_steady_s(x->syncer);

    if (x->refused.kind && x->virtual_)
        reconcile_event(r, x->virtual_, "Warning", "SyncError",
                        "it has no further name on the host cluster: %.*s",
                        STR_F(x->refused.message));
    note_over(x);
    if (!x->record.exists)
        return;
    if (str_eqc(x->record.host_uid, NOT_MADE)) {
        if (x->record.since_s <= now && now - x->record.since_s < passed)
            passed = now - x->record.since_s;
        if (passed < LOST_CREATE_S) {
            reconcile_again_after(r, (LOST_CREATE_S - passed) * 1000);
            return;
        }
    }
    record_drop(x);
}

/* --- one key --- */

static void act(struct alias *x, struct reconcile *r)
{
    switch (settle(x)) {
    case SETTLE_CREATE:
        create(x, r);
        break;
    case SETTLE_KEEP:
        keep(x, r);
        break;
    case SETTLE_DELETE:
        sync_delete(run_of(x, r), -1);
        break;
    case SETTLE_NOTHING:
        forget(x, r);
        break;
    case SETTLE_QUARANTINE:
        if (x->map)
            report_taken(x, r);
        else
            forget(x, r); /* the object on record is gone, and the name is wanted no more */
        break;
    case SETTLE_AWAIT: /* the watch reports its end */
    case SETTLE_SPARE:
    case SETTLE_TAKE_OVER:
        break;
    }
}

/* Its creation or deletion is in the pending transaction: the commit adds the key again. */
static bool is_being_written(const struct alias *x)
{
    struct syncer *s = x->syncer;
    unsigned storage = syncer_storage(s, SYNC_SERVICES);

    return store_latest(s->store, storage, x->ns, x->name) !=
           store_get(s->store, storage, x->ns, x->name);
}

static void reconcile_alias(struct reconcile *r)
{
    struct aliases *all = controller_state(reconcile_controller(r));
    struct syncer *s = all->syncer;
    struct alias *x = ARENA_NEW(reconcile_arena(r), struct alias);
    const struct host_object *o;
    cJSON *host = NULL;
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name) ||
        !syncer_ready(s, SYNC_SERVICES, SYNC_SERVICES, SYNC_SERVICES))
        return;
    o = reflector_get(s->watches[SYNC_SERVICES].reflector, name);
    if ((o && json_parse(reconcile_arena(r), o->bytes, &host, NULL)) ||
        !alias_read(x, s, reconcile_arena(r), name, host))
        return;
    if (is_being_written(x))
        reconcile_again_after(r, 1000);
    else
        act(x, r);
}

/* --- events --- */

static void map_service(struct controller *c, const struct store_event *e)
{
    const struct aliases *all = controller_state(c);
    const struct config_to_host *to = all->syncer->config->to_host;

    for (size_t i = 0; i < to->n_aliases; i++)
        if (str_eq(to->aliases[i].ns, e->object->ns) &&
            str_eq(to->aliases[i].name, e->object->name))
            controller_add_name(c, STR(""), to->aliases[i].host_name);
}

static const struct controller_source SOURCES[] = {{"", "services", map_service}, {0}};
static const struct controller_def CONTROLLER = {
    .name = "sublet-service-aliases", .sources = SOURCES, .reconcile = reconcile_alias};

void sync_aliases_changed(struct aliases *all, struct str host_name)
{
    if (all && all->controller)
        controller_add_name(all->controller, STR(""), host_name);
}

static void on_name(void *ctx, struct str host_name)
{
    sync_aliases_changed(ctx, host_name);
}

void sync_aliases_rescan(struct aliases *all)
{
    if (all)
        sync_alias_each(all->syncer, on_name, all);
}

/* --- life --- */

static void on_any(void *ctx, struct str host_name)
{
    (void)host_name;
    *(bool *)ctx = true;
}

struct aliases *sync_aliases_new(struct syncer *s)
{
    struct aliases *all;
    bool any = false;

    sync_alias_each(s, on_any, &any);
    if (!any)
        return NULL;
    all = NEW(struct aliases);
    all->syncer = s;
    return all;
}

struct aliases *sync_aliases_free(struct aliases *all)
{
    return mem_free(all);
}

void sync_aliases_start(struct aliases *all)
{
    if (!all)
        return;
    all->controller = controller_start_with(all->syncer->api, &CONTROLLER, all);
    sync_aliases_rescan(all);
}

size_t sync_aliases_close(struct aliases *all, void (*closed)(void *ctx), void *ctx)
{
    if (!all || !all->controller)
        return 0;
    controller_close(all->controller, closed, ctx);
    all->controller = NULL;
    return 1;
}
