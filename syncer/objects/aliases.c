/* SPDX-License-Identifier: Apache-2.0 */
/* Further host Services under names that the admin chose (sync.toHost.services.mappings), so that
 * others on the host find a tenant's Service by a stable name. Each is an object beside the one
 * that objects/services.c keeps, with a record of its own. Must never write to or delete a Service
 * that neither its record nor its marks prove ours, whatever the configuration calls it.
 *
 *   record RECORD_META "service-alias/<host name>": "<ns>/<name> <as mapping.c has it>"
 *     no host uid: its creation was requested, and not answered yet
 *     old uids: those that the object may carry, and those of creates without an answer
 *
 *   no record --record durable, POST--> no host uid --answered or seen--> host uid
 *      ^                                    |                                |
 *      '--- refused, or not made -----------'         not wanted: DELETE ----'
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
#define TAKEN_MS 60000

struct aliases {
    struct syncer *syncer;
    struct controller *controller;
};

/* One name, and what is known of it. */
struct alias {
    struct syncer *syncer;
    struct arena *arena;
    struct str host_name, ns, name;
    const struct config_service_alias *map; /* NULL: no longer configured */
    struct mapping record;
    struct str record_ns, record_name; /* of the virtual Service on record */
    cJSON *virtual_, *host, *wanted;   /* wanted NULL: none */
    struct str owner_uid;              /* that the host object carries; empty: it is not ours */
    bool hidden;                       /* the virtual Service exists and cannot be read */
    bool barred;                       /* it exists and is not translated as it is now */
    struct err refused;                /* why it is not wanted */
};

/* --- records --- */

static struct str record_key(struct arena *a, struct str host_name)
{
    return arena_printf(a, PREFIX "%.*s", STR_F(host_name));
}

static void record_get(struct alias *x)
{
    struct str rest;

    if (!store_record_get(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name), &rest))
        return;
    rest = arena_str(x->arena, rest);
    x->record_ns = str_cut(&rest, '/');
    x->record_name = str_cut(&rest, ' ');
    x->record = sync_mapping_parse(x->arena, rest);
}

static void record_put(const struct alias *x)
{
    store_record_put(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name),
                     arena_printf(x->arena, "%.*s/%.*s %.*s", STR_F(x->ns), STR_F(x->name),
                                  STR_F(sync_mapping_text(x->arena, &x->record))));
}

static void record_drop(struct alias *x)
{
    x->record = (struct mapping){0};
    store_record_delete(x->syncer->store, RECORD_META, record_key(x->arena, x->host_name));
}

/* May a create without an answer still be executed? A plan has no clock: the start that it is of
 * counts from its own beginning. */
static bool is_open(const struct alias *x)
{
    if (!x->syncer->api)
        return x->record.tried > 0;
    return sync_mapping_lost_left_s(x->syncer, &x->record) > 0;
}

/* Makes the record the virtual Service's. The uid that the host object carries stays on it, and
 * those of creates without an answer do. False: there is no room for one more as yet. */
static bool record_begin(struct alias *x)
{
    struct mapping *m = &x->record;
    struct str uid = meta_uid(x->virtual_), host_uid = m->host_uid;

    if (!is_open(x)) {
        bool carried = sync_mapping_knows(m, x->owner_uid) && !str_eq(m->uid, x->owner_uid);

        m->tried = 0;
        m->n_old = carried && !str_eq(uid, x->owner_uid);
        m->old[0] = x->owner_uid;
    }
    if (m->exists && !str_eq(m->uid, uid) && sync_mapping_is_full(m))
        return false;
    sync_mapping_begin(m, uid);
    m->host_uid = host_uid;
    return true;
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
    if (!translate_service_alias(x->arena, &s->tenant, x->virtual_, x->host_name, &x->wanted,
                                 &x->refused))
        return;
    x->barred = !x->wanted;
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
    record_get(x);
    if (!x->map && !x->record.exists)
        return false;
    x->ns = x->map ? x->map->ns : x->record_ns;
    x->name = x->map ? x->map->name : x->record_name;
    read_virtual(x);
    read_host(x, host);
    return true;
}

/* --- the decision --- */

/* The record says that this very object was made for this name, and for whom. */
static bool is_proven(const struct alias *x)
{
    const struct mapping *m = &x->record;

    return sync_mapping_proves(x->syncer, SYNC_SERVICES, m, x->owner_uid) &&
           sync_life_owns(x->syncer, x->host) &&
           (!m->host_uid.n || is_open(x) || str_eq(m->host_uid, meta_uid(x->host)));
}

/* A cluster IP cannot be taken away, nor given. */
static bool is_other_form(const struct alias *x)
{
    return json_get(x->host, "spec") &&
           sync_service_is_headless(x->host) != sync_service_is_headless(x->wanted);
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
    if (!proven || x->barred || (x->map && x->hidden))
        return SETTLE_SPARE;
    /* A restore may have brought back a record from before it was wanted. */
    return x->wanted || x->record.life == x->syncer->life ? SETTLE_DELETE : SETTLE_QUARANTINE;
}

bool sync_alias_settle(struct syncer *s, struct arena *a, struct str host_name, cJSON *host,
                       enum sync_settlement *ret, struct str *ret_ns, struct str *ret_name)
{
    struct alias x;

    if (!alias_read(&x, s, a, host_name, host))
        return false;
    *ret = settle(&x);
    if (*ret == SETTLE_CREATE && !x.record.host_uid.n)
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

/* Its translation is refused, or leads nowhere. */
static void report_refusal(struct alias *x, struct reconcile *r)
{
    if (x->refused.kind && x->virtual_)
        reconcile_event(r, x->virtual_, "Warning", "SyncError", "%s: %.*s",
                        x->host ? "its further name on the host cluster stays as it is"
                                : "it has no further name on the host cluster",
                        STR_F(x->refused.message));
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

static void found(struct alias *x, const cJSON *host)
{
    sync_mapping_set_host(x->syncer, &x->record, meta_uid(host));
    record_put(x);
}

/* The last create made nothing. */
static void attempt_over(struct alias *x)
{
    (void)sync_mapping_try_over(&x->record);
    if (is_open(x))
        record_put(x);
    else
        record_drop(x);
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
    if (sync_mapping_knows(&x->record, x->owner_uid)) {
        found(x, host);
        learn(x, answer);
        again(x);
        return;
    }
    attempt_over(x); /* what was requested was not made */
    report_taken(x, run->reconcile);
}

static void on_created(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct alias *x = run->then_ctx;
    struct host_request q = {.method = "GET"};
    cJSON *host = NULL;

    if (!err && !json_parse(x->arena, answer->body, &host, NULL)) {
        found(x, host);
        learn(x, answer);
        again(x);
    } else if (err && err->kind == &ERR_ALREADY_EXISTS) {
        q.path = sync_path(x->arena, x->syncer, SYNC_SERVICES, x->host_name, "");
        sync_send(run, &q, on_existing);
    } else if (err && !sync_is_uncertain(err)) {
        attempt_over(x);
        sync_refused(run, err);
    } else {
        reconcile_again_after(run->reconcile, 1000);
    }
}

static void create(struct alias *x, struct reconcile *r)
{
    struct host_request q = {.method = "POST", .body = json_text(x->arena, x->wanted)};

    if (!record_begin(x)) {
        reconcile_again_after(r, 1000);
        return;
    }
    sync_mapping_try_alone(x->syncer, &x->record);
    record_put(x);
    q.path = sync_path(x->arena, x->syncer, SYNC_SERVICES, STR(""), "");
    sync_send_recorded(run_of(x, r), &q, on_created);
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    return translate_service_update(run->arena, run->host, wanted);
}

/* Is the record as it is to be while the host object is kept? */
static bool is_on_record(const struct alias *x)
{
    const struct mapping *m = &x->record;
    bool own = str_eq(x->owner_uid, meta_uid(x->virtual_));

    return sync_mapping_has_host(x->syncer, m) && str_eq(m->host_uid, meta_uid(x->host)) &&
           str_eq(m->uid, meta_uid(x->virtual_)) && (!own || !m->n_old || is_open(x));
}

static void keep(struct alias *x, struct reconcile *r)
{
    struct sync_run *run = run_of(x, r);
    cJSON *patch = lacks(run, x->wanted);

    if (!is_on_record(x)) {
        if (!record_begin(x)) {
            reconcile_again_after(r, 1000);
            return;
        }
        found(x, x->host);
    }
    note_over(x);
    if (patch && !sync_relabel_service_waits(run, x->wanted))
        sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", x->wanted, lacks, NULL});
}

/* There is none, and none is wanted. A request whose answer was lost may still be executed: only
 * the record proves then that the object is ours. */
static void forget(struct alias *x, struct reconcile *r)
{
    report_refusal(x, r);
    note_over(x);
    if (!x->record.exists)
        return;
    if (is_open(x))
        reconcile_again_after(r, sync_mapping_lost_left_s(x->syncer, &x->record) * 1000);
    else
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
    case SETTLE_SPARE:
        report_refusal(x, r);
        break;
    case SETTLE_AWAIT: /* the watch reports its end */
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
