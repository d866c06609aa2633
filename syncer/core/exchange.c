/* SPDX-License-Identifier: Apache-2.0 */
/* The requests that reconciling a key sends to the host: create, adopt, patch, delete. The next run
 * of the key sees their result and continues; nothing here waits or retries by itself. Must never
 * delete a host object unless it carries our cluster's uid and a virtual uid that is on record and
 * known to be deleted, and never overwrite an object that is not ours. */

#include "core/dry_run.h"
#include "core/kept.h"
#include "core/life.h"
#include "core/run.h"
#include "gpu/ledger.h"
#include <sublet/store_quarantine.h>

#include <assert.h>

#include <sublet/log.h>

/* --- the run --- */

static void read_host(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    struct str ns, name;
    struct str host_name = s->kinds[run->id].maps ? str_c(run->host_name) : run->name;
    const struct host_object *o = reflector_get(s->watches[run->id].reflector, host_name);

    run->host = NULL;
    if (o && json_parse(run->arena, o->bytes, &run->host, NULL))
        run->host = NULL;
    run->host_uid = sync_uid(run->host);
    run->owner_uid = STR("");
    if (run->host)
        translate_owner(&s->tenant, run->host, &ns, &name, &run->owner_uid);
}

bool sync_is_being_written(const struct sync_run *run)
{
    struct store *store = run->syncer->store;
    unsigned storage = syncer_storage(run->syncer, run->id);

    return store_latest(store, storage, run->ns, run->name) !=
           store_get(store, storage, run->ns, run->name);
}

/* Records are read with the pending transaction, objects as committed: an object whose creation, or
 * whose successor's, is in the pending transaction is neither deleted nor the one on record. */
static bool is_under_way(const struct sync_run *run)
{
    const struct store_object *latest =
        store_latest(run->syncer->store, syncer_storage(run->syncer, run->id), run->ns, run->name);

    return latest && !str_eq(latest->uid, run->uid);
}

/* An object that cannot be read still exists: its host object is left alone until the event of its
 * deletion adds the key again. */
static bool is_unreadable(const struct sync_run *run)
{
    struct store *s = run->syncer->store;
    unsigned storage = syncer_storage(run->syncer, run->id);

    return !store_get(s, storage, run->ns, run->name) &&
           !store_is_absent(s, storage, run->ns, run->name);
}

/* Is a host object of another uid expected to match the translation? Only looked at where it
 * decides. */
static bool fits(struct sync_run *run, const struct sync_sides *x)
{
    bool (*fits_host)(struct sync_run *run) = run->syncer->kinds[run->id].handlers->fits_host;

    if (!x->readable || !x->on_host || x->own || x->host_terminating || (x->proven && !x->damaged))
        return false;
    return !fits_host || fits_host(run);
}

enum sync_settlement sync_run_settle(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    const struct mapping *m = &run->mapping;
    struct sync_sides x = {.readable = run->virtual_,
                           .terminating = object_is_terminating(run->virtual_),
                           .finished = run->id == SYNC_PODS && pod_is_finished(run->virtual_),
                           .was_on_host =
                               m->host_uid.n && str_eq(m->uid, run->uid) && m->life != s->life,
                           .on_host = run->host,
                           .host_terminating = object_is_terminating(run->host),
                           .stale = run->host && sync_is_stale_deletion(run, run->host),
                           .own = run->host && str_eq(run->owner_uid, run->uid),
                           .recorded = run->host && str_eq(run->host_uid, m->host_uid),
                           .proven = sync_mapping_proves(s, run->id, m, run->owner_uid),
                           .known = sync_mapping_knows(m, run->owner_uid),
                           .damaged = store_is_damaged(s->store)};

    x.exists =
        x.readable || !store_is_absent(s->store, syncer_storage(s, run->id), run->ns, run->name);
    x.fits = fits(run, &x);
    return sync_settle(&x);
}

/* What a terminating virtual object leaves alone. */
static void ignore_foreign_host(struct sync_run *run)
{
    enum sync_settlement settlement;

    if (!run->host || !object_is_terminating(run->virtual_) || str_eq(run->owner_uid, run->uid))
        return;
    settlement = sync_run_settle(run);
    if (settlement != SETTLE_SPARE && settlement != SETTLE_QUARANTINE)
        return;
    run->host = NULL;
    run->host_uid = STR("");
}

bool sync_run_init(struct sync_run *run, struct reconcile *r, enum sync_id id)
{
    struct syncer *s = syncer_of(r);

    *run = (struct sync_run){.syncer = s, .reconcile = r, .arena = reconcile_arena(r), .id = id};
    if (!key_split(reconcile_key(r), &run->ns, &run->name) || is_unreadable(run))
        return false;
    translate_name(&s->tenant, run->ns, run->name, run->host_name);
    run->mapping = sync_mapping_get(s, run->arena, id, run->ns, run->name);
    run->virtual_ = syncer_virtual(s, run->arena, id, run->ns, run->name);
    run->uid = sync_uid(run->virtual_);
    read_host(run);
    ignore_foreign_host(run);
    if (!is_under_way(run))
        return true;
    /* The commit adds the key again; if it fails, only this does. */
    reconcile_again_after(r, 1000);
    return false;
}

/* Reads the record again: the tenant may have created a successor while the request was in flight.
 * False: it did, and its own run deals with what the answer says. */
static bool refresh_mapping(struct sync_run *run)
{
    run->mapping = sync_mapping_get(run->syncer, run->arena, run->id, run->ns, run->name);
    return run->mapping.exists && str_eq(run->mapping.uid, run->uid);
}

static void put_mapping(struct sync_run *run)
{
    sync_mapping_put(run->syncer, run->id, run->ns, run->name, &run->mapping);
}

void sync_take_mapping(struct sync_run *run)
{
    if (!sync_mapping_begin(&run->mapping, run->uid))
        return;
    put_mapping(run);
    vapi_gpu_usage_changed(run->syncer->api); /* what is charged to it has a namespace now */
}

void sync_attempt_over(struct sync_run *run, const struct err *err)
{
    if ((err && sync_is_uncertain(err)) || !refresh_mapping(run))
        return;
    if (sync_mapping_try_over(&run->mapping))
        put_mapping(run);
}

void sync_recreate(struct sync_run *run)
{
    run->mapping.host_uid = STR("");
    run->mapping.tried = 0;
    put_mapping(run);
    reconcile_event(run->reconcile, run->virtual_, "Normal", "CreatedAgain",
                    "the host cluster does not have it since the restore: it is created again");
}

void sync_forget_old(struct sync_run *run)
{
    if (!run->mapping.n_old)
        return;
    for (size_t i = 0; i < run->mapping.n_old; i++)
        sync_ledger_release(run->syncer->ledger, run->mapping.old[i]);
    run->mapping.n_old = 0;
    put_mapping(run);
}

/* --- requests --- */

struct exchange {
    struct sync_run run;
    sync_then then;
    int64_t current_ms; /* of what is charged: when the cache of its kind became current last */
    struct host_request request; /* that creates, while its record is not committed */
    const cJSON *sent;           /* what it creates */
};

static void on_answer(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct exchange *x = ctx;
    struct reconcile *r = x->run.reconcile;

    x->then(&x->run, answer, err);
    reconcile_release(r, NULL);
}

static void exchange_send(struct exchange *x, const struct host_request *q, sync_then then)
{
    x->then = then;
    reconcile_hold(x->run.reconcile);
    host_send(x->run.syncer->host, q, on_answer, x);
}

void sync_send(struct sync_run *run, const struct host_request *q, sync_then then)
{
    struct exchange *x = ARENA_NEW(run->arena, struct exchange);

    x->run = *run;
    exchange_send(x, q, then);
}

bool sync_is_uncertain(const struct err *err)
{
    return err->kind == &ERR_UNAVAILABLE || err->kind == &ERR_TIMEOUT || err->kind->code >= 500;
}

static void learn(struct sync_run *run, const struct host_answer *answer)
{
    reflector_learn(run->syncer->watches[run->id].reflector, answer->body);
}

static void run_again(struct sync_run *run)
{
    syncer_add(run->syncer, run->id, run->ns, run->name);
}

void sync_refused(struct sync_run *run, const struct err *err)
{
    struct str text;

    if (!sync_is_uncertain(err) && run->virtual_ && err->kind != &ERR_TOO_MANY_REQUESTS) {
        text = translate_refusal_up(run->arena, &run->syncer->tenant, err, str_c(run->host_name),
                                    run->ns, run->name);
        reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                        "the host cluster refuses it: %.*s", STR_F(text));
    }
    reconcile_fail(run->reconcile, err);
}

void sync_fought(struct sync_run *run)
{
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                    "the host cluster changes what this virtual cluster writes to it");
    reconcile_again_after(run->reconcile, SYNC_FOUGHT_MS);
}

/* --- what the answer lacks --- */

static void check_kept(struct sync_run *run, const cJSON *sent, const cJSON *answer)
{
    struct dropped d;

    sync_dropped(run->arena, sent, answer, &d);
    if (!d.n || !run->virtual_)
        return;
    log_warn("syncer: the host dropped fields of what was sent kind=%s host-name=%s fields=%zu",
             run->syncer->kinds[run->id].plural, run->host_name, d.n);
    reconcile_event(run->reconcile, run->virtual_, "Warning", "HostDroppedFields",
                    "the host cluster accepted it without %.*s: " DROPPED_WHY,
                    STR_F(sync_dropped_text(run->arena, &d)));
}

/* --- create --- */

bool sync_is_stale_deletion(const struct sync_run *run, const cJSON *object)
{
    return object_is_terminating(object) && !sync_life_has_our_epoch(run->syncer, object);
}

/* The host object of this name is ours, so none of its predecessors exists any more. */
static void adopt(struct sync_run *run, const cJSON *object)
{
    if (sync_is_stale_deletion(run, object) || !refresh_mapping(run))
        return;
    sync_mapping_set_host(run->syncer, &run->mapping, sync_uid(object));
    put_mapping(run);
    sync_revision_note(run->syncer, run->id, object);
    sync_quarantine_end(run->syncer, run->id, json_str_at(object, "metadata.name"));
    sync_forget_old(run);
}

static void refuse_foreign(struct sync_run *run)
{
    struct err err;

    err_init(&err, run->arena);
    err_set(&err, &ERR_CONFLICT, "%s \"%s\" exists on the host and is not of this cluster",
            run->syncer->kinds[run->id].plural, run->host_name);
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                    "its name is taken on the host by an object that is not this cluster's");
    reconcile_fail(run->reconcile, &err);
}

/* The name exists: by a create of ours whose answer was lost, a predecessor, or another owner. */
static void on_existing(struct sync_run *run, const struct host_answer *answer,
                        const struct err *err)
{
    struct str ns, name, uid;
    cJSON *object = NULL;

    if (err) {
        if (err->kind != &ERR_NOT_FOUND)
            reconcile_fail(run->reconcile, err);
        else
            run_again(run);
        return;
    }
    if (json_parse(run->arena, answer->body, &object, NULL)) {
        reconcile_again_after(run->reconcile, 1000);
        return;
    }
    if (!translate_owner(&run->syncer->tenant, object, &ns, &name, &uid) || !str_eq(ns, run->ns) ||
        !str_eq(name, run->name)) {
        refuse_foreign(run);
        return;
    }
    if (str_eq(uid, run->uid))
        adopt(run, object);
    /* The next run deletes a predecessor: at once if the cache has the object by now, else after
     * the watch had time to deliver it. */
    learn(run, answer);
    if (reflector_get(run->syncer->watches[run->id].reflector, str_c(run->host_name)))
        run_again(run);
    else
        reconcile_again_after(run->reconcile, 1000);
}

static void on_created(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct host_request q = {.method = "GET"};
    cJSON *object = NULL;

    if (!err && !json_parse(run->arena, answer->body, &object, NULL)) {
        check_kept(run, CONTAINER(run, struct exchange, run)->sent, object);
        adopt(run, object);
        learn(run, answer);
        run_again(run);
        return;
    }
    if (err && err->kind == &ERR_CONFLICT && !answer) { /* never sent: create_is_outdated() */
        sync_attempt_over(run, err);
        run_again(run);
        return;
    }
    if (err && err->kind == &ERR_ALREADY_EXISTS) {
        sync_attempt_over(run, err);
        q.path = sync_path(run->arena, run->syncer, run->id, str_c(run->host_name), "");
        sync_send(run, &q, on_existing);
        return;
    }
    if (err) {
        if (sync_dry_run_refused(err))
            sync_dry_runs_forget(run->syncer->dry_runs);
        sync_attempt_over(run, err);
        if (!run->on_refusal || sync_is_uncertain(err) || !run->on_refusal(run, err))
            sync_refused(run, err);
    } else {
        reconcile_again_after(run->reconcile, 1000);
    }
}

bool sync_create_is_outdated(const struct sync_run *run)
{
    struct syncer *s = run->syncer;
    struct arena *a = arena_new(0);
    const cJSON *now = syncer_virtual(s, a, run->id, run->ns, run->name);
    struct mapping m = sync_mapping_get(s, a, run->id, run->ns, run->name);
    bool outdated = !str_eq(sync_uid(now), run->uid) ||
                    object_is_terminating(now) != object_is_terminating(run->virtual_) ||
                    reflector_get(s->watches[run->id].reflector, str_c(run->host_name)) ||
                    m.exists != run->mapping.exists || !str_eq(m.uid, run->mapping.uid) ||
                    !str_eq(m.host_uid, run->mapping.host_uid);

    arena_free(a);
    return outdated;
}

/* May the host have been restored since the ledger permitted this create? The next run passes
 * the ledger again, once the cache is current. */
static bool charge_is_outdated(const struct exchange *x)
{
    struct syncer *s = x->run.syncer;

    return x->run.charged && (!sync_life_is_current(s, x->run.id) ||
                              s->watches[x->run.id].current_ms != x->current_ms);
}

static bool create_is_outdated(void *ctx)
{
    const struct exchange *x = ctx;

    return sync_create_is_outdated(&x->run) || charge_is_outdated(x);
}

/* A failed transaction rolls the record back; nothing is sent then. Where another one failed, its
 * records decide whether this object may be created: the charges of pods on the host, that it
 * existed there before. The create waits until they are written again. */
static void on_recorded(void *ctx, const struct err *err)
{
    struct exchange *x = ctx;

    if (err) {
        reconcile_fail(x->run.reconcile, err);
    } else if (x->run.syncer->rescan_due) {
        sync_attempt_over(&x->run, NULL);
        reconcile_again_after(x->run.reconcile, 1000);
    } else {
        exchange_send(x, &x->request, x->then);
    }
    reconcile_release(x->run.reconcile, NULL);
}

static void attempt(struct exchange *x, sync_then then)
{
    x->then = then;
    sync_mapping_begin(&x->run.mapping, x->run.uid);
    sync_mapping_try(&x->run.mapping);
    put_mapping(&x->run);
    reconcile_hold(x->run.reconcile);
    store_on_commit(x->run.syncer->store, on_recorded, x);
}

void sync_send_attempt(struct sync_run *run, const struct host_request *q, sync_then then)
{
    struct exchange *x = ARENA_NEW(run->arena, struct exchange);

    x->run = *run;
    x->request = *q;
    attempt(x, then);
}

/* The pending transaction is durable, or rolled back. */
static void on_durable(void *ctx, const struct err *err)
{
    struct exchange *x = ctx;

    if (err)
        reconcile_fail(x->run.reconcile, err);
    else
        exchange_send(x, &x->request, x->then);
    reconcile_release(x->run.reconcile, NULL);
}

void sync_send_recorded(struct sync_run *run, const struct host_request *q, sync_then then)
{
    struct exchange *x = ARENA_NEW(run->arena, struct exchange);

    *x = (struct exchange){.run = *run, .request = *q, .then = then};
    reconcile_hold(run->reconcile);
    store_on_commit(run->syncer->store, on_durable, x);
}

/* An earlier create of unknown outcome did not make it, or it was deleted since, which the watch
 * reports. */
static void on_looked_up(struct sync_run *run, const struct host_answer *answer,
                         const struct err *err)
{
    struct exchange *x = CONTAINER(run, struct exchange, run);

    if (!err || err->kind != &ERR_NOT_FOUND)
        on_existing(run, answer, err);
    else if (create_is_outdated(x))
        run_again(run);
    else
        attempt(x, on_created);
}

void sync_create(struct sync_run *run, const cJSON *object)
{
    struct exchange *x = ARENA_NEW(run->arena, struct exchange);
    struct host_request q = {.method = "GET"};

    assert(run->virtual_);
    if (run->charged && !sync_life_is_current(run->syncer, run->id))
        return;
    x->run = *run;
    x->current_ms = run->syncer->watches[run->id].current_ms;
    x->request.method = "POST";
    x->request.path = sync_path(run->arena, run->syncer, run->id, STR(""), "");
    x->request.body = json_text(run->arena, object);
    x->sent = object;
    x->request.is_outdated = create_is_outdated;
    if (!run->mapping.tried) {
        attempt(x, on_created);
        return;
    }
    q.path = sync_path(run->arena, run->syncer, run->id, str_c(run->host_name), "");
    exchange_send(x, &q, on_looked_up);
}

/* --- patch --- */

void sync_patched(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    const struct sync_change *change = run->change;
    cJSON *now = NULL;

    if (!err) {
        if (change && !change->lacks && !json_parse(run->arena, answer->body, &now, NULL))
            check_kept(run, change->patch, now);
        learn(run, answer);
        run_again(run);
    } else if (err->kind == &ERR_NOT_FOUND || err->kind == &ERR_CONFLICT) {
        /* Deleted or replaced concurrently; the watch requeues it. */
        reconcile_again_after(run->reconcile, 200);
    } else {
        sync_refused(run, err);
    }
}

/* A webhook of the host may have undone the patch before it was stored. */
static void on_checked(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    const struct sync_change *change = run->change;
    cJSON *now = NULL;

    if (err || json_parse(run->arena, answer->body, &now, NULL)) {
        sync_patched(run, answer, err);
        return;
    }
    run->host = now;
    check_kept(run, change->patch, now);
    if (change->lacks(run, change->wanted)) {
        learn(run, answer);
        sync_fought_note(run, change);
        return;
    }
    sync_fought_over(run, change);
    sync_patched(run, answer, NULL);
}

bool sync_patch(struct sync_run *run, const struct sync_change *change)
{
    struct host_request q = {.method = "PATCH", .content_type = change->type};
    cJSON *metadata = json_ensure_object(run->arena, change->patch, "metadata");
    struct sync_change *kept = ARENA_NEW(run->arena, struct sync_change);
    struct sync_run changing = *run;

    /* Of a later epoch: the patch would carry ours, and make it an object that we delete. */
    if (!sync_life_owns(run->syncer, run->host))
        return false;
    if (change->lacks && sync_fought_waits(run, change))
        return false;
    *kept = *change;
    changing.change = kept;
    json_set_str(run->arena, metadata, "uid", run->host_uid);
    q.path =
        sync_path(run->arena, run->syncer, run->id, str_c(run->host_name), change->subresource);
    q.body = json_text(run->arena, change->patch);
    sync_send(&changing, &q,
              change->then    ? change->then
              : change->lacks ? on_checked
                              : sync_patched);
    return true;
}

/* --- delete --- */

static void on_deleted(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    (void)answer;
    /* Conflict: replaced concurrently; the watch requeues it. */
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_CONFLICT)
        reconcile_fail(run->reconcile, err);
    else if (err)
        reconcile_again_after(run->reconcile, 500);
}

void sync_delete(struct sync_run *run, int64_t grace_s)
{
    struct host_request q = {.method = "DELETE"};
    cJSON *options = json_new_object(run->arena);
    cJSON *preconditions = json_new_object(run->arena);

    assert(run->host_uid.n);
    if (!sync_life_owns(run->syncer, run->host))
        return; /* it belongs to a later epoch of this virtual cluster */
    json_set_str(run->arena, options, "apiVersion", STR("v1"));
    json_set_str(run->arena, options, "kind", STR("DeleteOptions"));
    json_set_str(run->arena, preconditions, "uid", run->host_uid);
    json_set(run->arena, options, "preconditions", preconditions);
    if (grace_s >= 0)
        json_set_i64(run->arena, options, "gracePeriodSeconds", grace_s);
    q.path = sync_path(run->arena, run->syncer, run->id, str_c(run->host_name), "");
    q.body = json_text(run->arena, options);
    sync_send(run, &q, on_deleted);
}

/* A create without an answer may still be executed: its record outlives the virtual object. */
static bool wait_for_lost_create(struct sync_run *run)
{
    int64_t left_s;

    if (!run->mapping.tried)
        return false;
    if (!run->mapping.lost_s) {
        run->mapping.lost_s = syncer_steady_s(run->syncer);
        put_mapping(run);
    }
    left_s = sync_mapping_lost_left_s(run->syncer, &run->mapping);
    if (left_s)
        reconcile_again_after(run->reconcile, left_s * 1000);
    return left_s > 0;
}

bool sync_create_may_come(struct sync_run *run)
{
    if (wait_for_lost_create(run))
        return true;
    if (run->mapping.tried) {
        run->mapping.tried = 0;
        run->mapping.lost_s = 0;
        put_mapping(run);
    }
    return false;
}

bool sync_finish_gone(struct sync_run *run, int64_t grace_s)
{
    if (!run->mapping.exists)
        return true; /* nothing proves that a host object of this name is ours to delete */
    if (reconcile_spares(run->reconcile))
        return false;
    if (run->host && sync_mapping_proves(run->syncer, run->id, &run->mapping, run->owner_uid)) {
        if (!object_is_terminating(run->host))
            sync_delete(run, grace_s);
        return false;
    }
    if (wait_for_lost_create(run))
        return false;
    sync_mapping_remove(run->syncer, run->id, run->ns, run->name);
    run->mapping.exists = false;
    if (run->host)
        sync_quarantine_judge(run->syncer, run->id, run->host);
    return true;
}

/* Makes the host object this virtual object's; later runs reconcile the other fields. */
static void take_over(struct sync_run *run)
{
    struct arena *a = run->arena;
    cJSON *patch = json_new_object(a), *notes = json_ensure_path(a, patch, "metadata.annotations");

    sync_take_mapping(run);
    reconcile_event(run->reconcile, run->virtual_, "Normal", "Adopted",
                    "the host cluster has it from before the restore, or from before damage to "
                    "the store; it is taken over");
    json_set_str(a, notes, ANNOTATION_UID, run->uid);
    json_set_str(a, notes, ANNOTATION_EPOCH, run->syncer->tenant.epoch);
    sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", NULL, NULL, NULL});
}

static void refuse_quarantined(struct sync_run *run)
{
    struct err err;

    sync_quarantine_judge(run->syncer, run->id, run->host);
    err_init(&err, run->arena);
    err_set(&err, &ERR_CONFLICT, "%s \"%s\" exists on the host and is in quarantine",
            run->syncer->kinds[run->id].plural, run->host_name);
    reconcile_event(run->reconcile, run->virtual_, "Warning", "Quarantined",
                    "the host cluster has another object of this name, which differs from this "
                    "one: it is newer than the backup this virtual cluster was restored from, or "
                    "the damaged store lost it; it is kept until the host's admin removes it");
    reconcile_fail(run->reconcile, &err);
}

static void settle_other(struct sync_run *run)
{
    switch (sync_run_settle(run)) {
    case SETTLE_DELETE:
        sync_delete(run, -1);
        break;
    case SETTLE_TAKE_OVER:
        take_over(run);
        break;
    case SETTLE_QUARANTINE:
        refuse_quarantined(run);
        break;
    default: /* it is awaited, or spared */
        break;
    }
}

bool sync_settle_owner(struct sync_run *run)
{
    if (!run->host)
        return false;
    if (!str_eq(run->owner_uid, run->uid)) {
        settle_other(run);
        return true;
    }
    if (!str_eq(run->mapping.host_uid, run->host_uid) || !str_eq(run->mapping.uid, run->uid) ||
        run->mapping.life != run->syncer->life) {
        sync_take_mapping(run);
        adopt(run, run->host);
    } else {
        sync_forget_old(run);
    }
    return false;
}

/* --- metadata up --- */

bool sync_keys_up(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    const struct sync_kind *k = &s->kinds[run->id];
    const struct resource *r =
        registry_find_group_resource(vapi_registry(s->api), str_c(k->group), str_c(k->plural));

    if (!r || object_is_terminating(run->virtual_) ||
        !translate_host_keys_up(run->arena, &s->tenant, run->host, run->virtual_))
        return false;
    reconcile_replace(run->reconcile, r, run->virtual_);
    return true;
}
