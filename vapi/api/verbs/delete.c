/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * DELETE: which objects are marked, and which are removed at once. An object with finalizers, and a
 * pod with a grace period, stays with a deletionTimestamp; any other is removed by the commit. It
 * must never remove an object that still has finalizers.
 *
 *   preconditions -> admission -> webhooks -> plan: KEEP unchanged | MARK (update) | REMOVE
 *         ^--- the object changed meanwhile ---'                          -> commit -> answer
 *
 * Source: apiserver pkg/registry/generic/registry/store.go, pkg/registry/rest/delete.go, and the
 * pod and namespace strategies of k8s.io/kubernetes. */
#include "converted.h"

#include "../respond/respond.h"
#include "../../core/meta.h"
#include "../../core/quarantine.h"

#include <assert.h>

#include <sublet/admission.h>
#include <sublet/json_build.h>
#include <sublet/kinds.h>
#include <sublet/object.h>
#include <sublet/webhook.h>

#define ORPHAN     "orphan"
#define FOREGROUND "foregroundDeletion"

#define MAX_ATTEMPTS 5

enum fate { KEEP, MARK, REMOVE };

struct removal {
    struct call *call;
    const struct resource *requested; /* the version of the request */
    const struct store_object *base;  /* a reference */
    const cJSON *old;
    const cJSON *seen; /* by admission: old in the version of the request */
    cJSON *object;
    enum fate fate;
    bool marked;     /* object has another deletionTimestamp than old */
    bool unreadable; /* base is unreadable: old only identifies it */
    bool paused;     /* a webhook was called, or converted what policies see */
    enum webhook_phase phase;
    unsigned attempts;
    const struct store_object *stored;
    struct err err;
};

/* ---- preconditions ---- */

/* The storage of namespaces checks them itself, with another message. */
static int namespace_precondition(struct call *c, const char *what, struct str wanted,
                                  struct str is, struct err *err)
{
    const struct resource *r = c->resource;

    return err_conflict(err, r->group, r->plural, c->name,
                        arena_printf(c->arena,
                                     "Precondition failed: %s in precondition: %.*s, %s in object "
                                     "meta: %.*s",
                                     what, STR_F(wanted), what, STR_F(is))
                            .p);
}

static int unmet(struct call *c, const char *what, struct str wanted, struct str is,
                 const char *guess, struct err *err)
{
    const struct resource *r = c->resource;

    return err_conflict(err, r->group, r->kind, c->name,
                        arena_printf(c->arena,
                                     "the %s in the precondition (%.*s) does not match the %s in "
                                     "record (%.*s). The object might have been %s",
                                     what, STR_F(wanted), what, STR_F(is), guess)
                            .p);
}

int delete_preconditions(struct call *c, const struct store_object *o, struct err *err)
{
    const struct call_options *given = &c->options;
    bool own = resource_is_namespace(c->resource);
    struct str is;

    if (given->uid.n && !str_eq(given->uid, o->uid))
        return own ? namespace_precondition(c, "UID", given->uid, o->uid, err)
                   : unmet(c, "UID", given->uid, o->uid, "deleted and then recreated", err);
    if (!given->delete_rv || given->delete_rv == o->revision)
        return 0;
    is = arena_printf(c->arena, "%lld", (long long)o->revision);
    struct str wanted = given->delete_rv_text.n
                            ? given->delete_rv_text
                            : arena_printf(c->arena, "%lld", (long long)given->delete_rv);
    return own ? namespace_precondition(c, "ResourceVersion", wanted, is, err)
               : unmet(c, "ResourceVersion", wanted, is, "modified", err);
}

/* ---- finalizers by propagation policy ---- */

static bool wants_orphan(const struct removal *d, const cJSON *finalizers)
{
    struct str policy = d->call->options.propagation;

    if (policy.n)
        return str_eqc(policy, "Orphan");
    if (json_list_has(finalizers, STR(ORPHAN)))
        return true;
    if (json_list_has(finalizers, STR(FOREGROUND)))
        return false;
    return (d->call->resource->flags & RES_ORPHAN_DEFAULT) != 0;
}

static bool wants_foreground(const struct removal *d, const cJSON *finalizers)
{
    struct str policy = d->call->options.propagation;

    if (policy.n)
        return str_eqc(policy, "Foreground");
    return json_list_has(finalizers, STR(FOREGROUND));
}

/* The collector's two finalizers are recomputed; others keep their positions. */
static void set_collector_finalizers(struct removal *d)
{
    struct arena *a = d->call->arena;
    cJSON *metadata = vapi_meta_of(a, d->object);
    const cJSON *before = json_get(metadata, "finalizers");
    /* The collector ignores resources that expire: its finalizer would keep an Event for ever. */
    bool expires = d->call->resource->flags & RES_EXPIRES;
    bool orphan = !expires && wants_orphan(d, before);
    bool foreground = !expires && wants_foreground(d, before);
    cJSON *now;

    if (orphan == json_list_has(before, STR(ORPHAN)) &&
        foreground == json_list_has(before, STR(FOREGROUND)))
        return;
    now = json_new_array(a);
    json_each(item,
              before) if (!str_eqc(json_str(item), ORPHAN) && !str_eqc(json_str(item), FOREGROUND))
        json_append(now, json_copy(a, item));
    if (orphan)
        json_append(now, json_new_string(a, STR(ORPHAN)));
    if (foreground)
        json_append(now, json_new_string(a, STR(FOREGROUND)));
    if (json_count(now))
        json_set(a, metadata, "finalizers", now);
    else
        json_remove(metadata, "finalizers");
}

/* ---- marking ---- */

static int64_t now_s(const struct removal *d)
{
    return clock_wall_s(vapi_clock(d->call->api));
}

static void mark(struct removal *d, int64_t when, int64_t grace)
{
    struct arena *a = d->call->arena;
    cJSON *metadata = vapi_meta_of(a, d->object);
    int64_t generation = json_i64_at(metadata, "generation", 0);

    if (!meta_is_terminating(metadata) && generation > 0)
        json_set_i64(a, metadata, "generation", generation + 1);
    json_put(a, metadata, JSON("deletionTimestamp", time_format_s(a, when)),
             JSON_I64("deletionGracePeriodSeconds", grace));
    d->marked = true;
}

static int64_t marked_at(const cJSON *object)
{
    return object_time_s(object, "metadata.deletionTimestamp");
}

/* ---- pods ---- */

/* The grace period of a pod that is deleted for the first time. */
static int64_t first_grace(const struct removal *d)
{
    int64_t grace = d->call->options.grace_seconds;

    if (grace < 0)
        grace = json_i64_at(d->old, "spec.terminationGracePeriodSeconds", 0);
    if (!json_str_at(d->old, "spec.nodeName").n || pod_is_finished(d->old))
        return 0;
    return grace < 0 ? 1 : grace;
}

/* The grace period of a terminating pod may only be shortened. True when there is nothing to do. */
static bool shorten(struct removal *d, int64_t *ret_grace)
{
    int64_t left = json_i64_at(d->old, "metadata.deletionGracePeriodSeconds", 0);
    int64_t wanted = d->call->options.grace_seconds;
    int64_t now = now_s(d), when;

    if (wanted < 0 || wanted >= left)
        return true;
    when = marked_at(d->old) - left + wanted;
    if (when < now) {
        when = now;
        wanted = wanted ? 1 : 0;
    }
    mark(d, when, wanted);
    *ret_grace = wanted;
    return false;
}

/* *ret_grace: its grace period in seconds; 0 when it needs none. Returns false when a deletion is
 * pending already. */
static bool plan_graceful(struct removal *d, int64_t *ret_grace)
{
    *ret_grace = 0;
    if (!(d->call->resource->flags & RES_GRACEFUL))
        return true;
    if (!object_is_terminating(d->old)) {
        *ret_grace = first_grace(d);
        mark(d, now_s(d) + *ret_grace, *ret_grace);
        return true;
    }
    if (json_i64_at(d->old, "metadata.deletionGracePeriodSeconds", 0) == 0)
        return true;
    return !shorten(d, ret_grace);
}

/* ---- namespaces: spec.finalizers hold them, and the controller empties them ---- */

static enum fate plan_namespace(struct removal *d)
{
    struct arena *a = d->call->arena;

    if (json_count(json_path(d->old, "spec.finalizers")) == 0 && !vapi_meta_has_finalizers(d->old))
        return REMOVE;
    if (object_is_terminating(d->old))
        return KEEP;
    json_set_str(a, vapi_meta_of(a, d->object), "deletionTimestamp", time_format_s(a, now_s(d)));
    json_set_str(a, json_ensure_object(a, d->object, "status"), "phase", STR("Terminating"));
    set_collector_finalizers(d);
    return MARK;
}

/* ---- kinds with finalizers of their own (CRDs): the first delete only marks ---- */

static bool plan_held(struct removal *d)
{
    const struct kind *kind = d->call->resource->built_in;
    struct arena *a = d->call->arena;

    if (!kind || !kind->prepare_delete || object_is_terminating(d->old))
        return false;
    json_set_str(a, vapi_meta_of(a, d->object), "deletionTimestamp", time_format_s(a, now_s(d)));
    kind->prepare_delete(a, d->object, now_s(d));
    return true;
}

/* Kinds whose content or instances are deleted first still wait for that; nothing else is known
 * that could keep it. */
static enum fate plan_unreadable(struct removal *d)
{
    struct arena *a = d->call->arena;

    if (!resource_is_namespace(d->call->resource))
        return plan_held(d) ? MARK : REMOVE;
    json_append(
        json_set(a, json_ensure_object(a, d->object, "spec"), "finalizers", json_new_array(a)),
        json_new_string(a, STR("kubernetes")));
    json_set_str(a, vapi_meta_of(a, d->object), "deletionTimestamp", time_format_s(a, now_s(d)));
    json_set_str(a, json_ensure_object(a, d->object, "status"), "phase", STR("Terminating"));
    return MARK;
}

static enum fate plan(struct removal *d)
{
    int64_t grace;

    if (d->unreadable)
        return plan_unreadable(d);
    if (resource_is_namespace(d->call->resource))
        return plan_namespace(d);
    if (plan_held(d))
        return MARK;
    if (!plan_graceful(d, &grace))
        return KEEP;
    set_collector_finalizers(d);
    if (vapi_meta_has_finalizers(d->object)) {
        if (!grace) {
            /* Finalizers keep the object: marks it with a grace period of 0, unless it is marked
             * already. */
            int64_t now = now_s(d);
            int64_t at = marked_at(d->object);

            mark(d, at && at <= now ? at : now, 0);
        }
        return json_equal(d->object, d->old) ? KEEP : MARK;
    }
    return grace > 0 ? MARK : REMOVE;
}

/* ---- answers ---- */

/* 202 for an object that stays for now, if the client used the deprecated
 * orphanDependents=false. */
static int code(const struct removal *d)
{
    const cJSON *orphan = json_get(d->call->body, "orphanDependents");

    return d->fate != REMOVE && json_is_bool(orphan) && !json_true(orphan) ? 202 : 200;
}

static void answer(struct removal *d)
{
    struct call *c = d->call;
    const struct store_object *shown = d->stored ? d->stored : d->base;
    const struct store_object *base = d->base, *stored = d->stored;
    bool returns_object = (c->resource->flags & RES_DELETE_RETURNS_OBJECT) != 0;

    if (c->resource != d->requested)
        kinds_convert(c->arena, d->requested, d->object);
    c->resource = d->requested;
    if (d->fate == REMOVE && !returns_object)
        call_success(c, arena_str(c->arena, base->uid));
    else if (d->fate == REMOVE || (d->fate == MARK && c->options.dry_run))
        respond_object(c, code(d), d->object);
    else
        call_stored(c, code(d), shown);
    store_object_unref(stored);
    store_object_unref(base);
}

static void fail(struct removal *d, const struct err *err)
{
    const struct store_object *base = d->base, *stored = d->stored;

    d->call->resource = d->requested;
    call_error(d->call, err);
    store_object_unref(stored);
    store_object_unref(base);
}

static void on_committed(void *ctx, const struct err *err)
{
    struct removal *d = ctx;

    assert(d->call->magic == CALL_MAGIC);
    if (err) {
        fail(d, err);
        return;
    }
    if (d->unreadable)
        quarantine_over(d->call->api, d->call->resource, d->base->ns, d->base->name);
    answer(d);
}

/* ---- execution ---- */

static int admit(struct removal *d)
{
    struct admission_call a;

    call_admission(d->call, ADMISSION_DELETE, &a);
    return admission_mutate(&a, NULL, d->seen, &d->err) ||
                   admission_validate(&a, NULL, d->seen, &d->err)
               ? -1
               : 0;
}

/* An object that a webhook converts stays in the version it is stored in. */
static int commit(struct removal *d, enum store_op op, const struct store_object **ret)
{
    struct call *c = d->call;
    const cJSON *form = op == STORE_DELETE ? d->old : d->object;

    call_entry(c)->stored_form = c->resource->conversion ? form : NULL;
    return commit_object(c, op, d->object, d->base, d->old, ret, &d->err);
}

/* Watchers see a pod with grace period 0 before it is removed, both in one transaction. An object
 * removed without having been marked is shown as it was stored. */
static int remove_now(struct removal *d)
{
    struct call *c = d->call;
    const struct store_object *marked;

    if (!d->marked)
        d->object = json_copy(c->arena, d->old);
    if (d->marked && !c->options.dry_run) {
        if (commit(d, STORE_UPDATE, &marked))
            return -1;
        store_object_unref(d->base);
        d->base = marked;
        d->old = d->object;
    }
    return commit(d, STORE_DELETE, NULL);
}

static void execute(struct removal *d)
{
    struct call *c = d->call;
    bool waits = d->base->revision > store_revision(vapi_store(c->api));

    d->fate = plan(d);
    if (d->fate != KEEP) {
        if (d->fate == REMOVE ? remove_now(d) : commit(d, STORE_UPDATE, &d->stored)) {
            fail(d, &d->err);
            return;
        }
        waits = !c->options.dry_run;
    }
    if (waits)
        store_on_commit(vapi_store(c->api), on_committed, d);
    else
        answer(d);
}

static void review(struct removal *d, enum webhook_phase phase);
static void on_versions(void *ctx, const struct err *err);

static void admit_and_go_on(struct removal *d)
{
    struct call *c = d->call;
    int failed = admit(d);

    d->paused |= versions_wanted(&call_entry(c)->of_admission);
    if (versions_make(&call_entry(c)->of_admission, on_versions, d))
        err_clear(&d->err);
    else if (failed)
        fail(d, &d->err);
    else if (d->unreadable || !call_has_webhooks(c))
        execute(d);
    else
        review(d, WEBHOOKS_MUTATING);
}

static void on_versions(void *ctx, const struct err *err)
{
    struct removal *d = ctx;

    assert(d->call->magic == CALL_MAGIC && !err);
    if (call_check_over(d->call, &d->err) || write_check_served(d->call, d->requested, &d->err) ||
        (d->unreadable && quarantine_of(d->call) != d->base && commit_modified(d->call, &d->err)))
        fail(d, &d->err);
    else
        admit_and_go_on(d);
}

static void begin_with(struct removal *d, const cJSON *seen)
{
    struct call *c = d->call;

    d->object = d->unreadable ? quarantine_stand_in(c->arena, c->resource, d->base)
                              : vapi_tree(c->arena, d->base);
    if (!c->resource->conversion || d->unreadable)
        json_set_str(c->arena, d->object, "apiVersion", c->resource->api_version);
    d->old = json_copy(c->arena, d->object);
    d->seen = seen ? seen : d->old;
    call_entry(c)->of_admission = (struct versions){0};
    if (delete_preconditions(c, d->base, &d->err))
        fail(d, &d->err);
    else
        admit_and_go_on(d);
}

static void on_seen(void *ctx, cJSON *tree, const struct err *err)
{
    struct removal *d = ctx;

    assert(d->call->magic == CALL_MAGIC);
    if (err || write_check_served(d->call, d->requested, &d->err))
        fail(d, err ? err : &d->err);
    else
        begin_with(d, tree);
}

/* Like upstream, a client deletes what can be shown to it; this process, whatever is stored. */
static void begin(struct removal *d)
{
    if (d->unreadable || !call_has_webhooks(d->call) ||
        !converted_base(d->call, d->base, on_seen, d))
        begin_with(d, NULL);
}

/* ---- webhooks: mutating ones see a deletion, too, but have nothing to change ---- */

/* The object may have changed in the pause: it is reviewed again, as upstream. */
static void resume(struct removal *d)
{
    struct call *c = d->call;
    const struct store_object *now =
        store_latest(vapi_store(c->api), c->resource->storage, c->ns, c->name);

    if (now == d->base || (now && now->revision == d->base->revision)) {
        execute(d);
        return;
    }
    if (!now || ++d->attempts == MAX_ATTEMPTS) {
        int failed = now ? commit_modified(c, &d->err) : commit_not_found(c, &d->err);

        assert(failed);
        fail(d, &d->err);
        return;
    }
    store_object_unref(d->base);
    d->base = store_object_ref(now);
    begin(d);
}

static void on_reviewed(void *ctx, cJSON *object, bool changed, const struct err *err)
{
    struct removal *d = ctx;

    assert(d->call->magic == CALL_MAGIC && !object && !changed);
    if (err)
        fail(d, err);
    else if (d->phase == WEBHOOKS_MUTATING)
        review(d, WEBHOOKS_VALIDATING);
    else
        resume(d);
}

static void review(struct removal *d, enum webhook_phase phase)
{
    const struct webhook_review r = {
        .call = d->call, .operation = ADMISSION_DELETE, .requested = d->requested, .old = d->seen};

    d->phase = phase;
    if (webhooks_run(phase, &r, NULL, on_reviewed, d))
        d->paused = true;
    else if (phase == WEBHOOKS_MUTATING)
        review(d, WEBHOOKS_VALIDATING);
    else if (d->paused)
        resume(d);
    else
        execute(d);
}

void delete_warn(struct call *c)
{
    /* Of the two kinds whose dependents are orphaned by default, upstream warns about the one where
     * users expect cascading. */
    if (c->exchange && (c->resource->flags & RES_ORPHAN_DEFAULT) && c->resource->group.n &&
        !c->options.propagation.p)
        call_warn(c, STR("child pods are preserved by default when jobs are deleted; set "
                         "propagationPolicy=Background to remove them or set "
                         "propagationPolicy=Orphan to suppress this warning"));
}

void call_delete(struct call *c)
{
    struct removal *d = ARENA_NEW(c->arena, struct removal);

    delete_warn(c);
    d->call = c;
    err_init(&d->err, c->arena);
    d->base = store_latest(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    d->unreadable = !d->base;
    if (d->unreadable)
        d->base = quarantine_of(c);
    if (!d->base) {
        if (commit_not_found(c, &d->err))
            call_error(c, &d->err);
        return;
    }
    store_object_ref(d->base);
    d->requested = commit_hub(c);
    begin(d);
}
