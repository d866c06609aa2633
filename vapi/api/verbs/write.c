/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Create, update and patch, as one machine. Every step may fail the call; only PROPOSE, HOOK, ADMIT
 * and REVIEW may wait: for mutating webhooks, the syncer, and validating webhooks; and for the one
 * that converts a custom resource BASE, MAKE, MUTATE, CONFIRM and KEEP.
 *
 *   DECODE -> BASE -> PROPOSE -> MAKE -> META -> MUTATE -> HOOK -> PREPARE -> VALIDATE
 *              ^                                                                v
 *              '-- the base changed meanwhile - COMMIT <- KEEP <- REVIEW <- CONFIRM <- ADMIT
 *                                                  '-> answered
 *
 * PROPOSE: an object that is written through another one (a Scale): that one, and its mutating
 * admission, which the whole object then does not pass.
 * Over 1000 lines, because its steps share one struct. A step must never change the base's tree,
 * and nothing may be stored that VALIDATE did not check. */
#include "converted.h"

#include "../observe/observe.h"
#include "../request/request.h"
#include "../respond/respond.h"
#include "../review/review.h"
#include "../../core/meta.h"
#include "../../core/quarantine.h"

#include <assert.h>

#include <sublet/admission.h>
#include <sublet/conversion.h>
#include <sublet/crd.h>
#include <sublet/kinds.h>
#include <sublet/object.h>
#include <sublet/spelling.h>
#include <sublet/webhook.h>

#define WRITE_MAGIC    0x37173A9Eu
#define MAX_ATTEMPTS   5
#define MAX_NAME_TRIES 8

enum write_step {
    STEP_DECODE,
    STEP_BASE,
    STEP_PROPOSE,
    STEP_MAKE,
    STEP_META,
    STEP_MUTATE,
    STEP_HOOK,
    STEP_PREPARE,
    STEP_VALIDATE,
    STEP_ADMIT,
    STEP_CONFIRM,
    STEP_REVIEW,
    STEP_KEEP,
    STEP_COMMIT,
    N_STEPS
};

enum outcome { GO_ON, FAILED, WAITING, AGAIN, ANSWERED };

struct write {
    unsigned magic;
    enum write_step step;
    struct call *call;
    const struct resource *requested; /* the version of the request; the call's is the stored one */
    const struct write_plan *plan;
    const struct store_object *base; /* a reference; NULL while creating */
    const cJSON *old;                /* its tree */
    const cJSON *respelled;          /* old for comparisons: its quantities spelled as in object */
    cJSON *object;
    struct write_part part; /* of a plan that proposes */
    bool creating, generates_name, admitted;
    bool kept; /* a webhook made the stored form */
    unsigned attempts, names_tried;
    size_t warned; /* number of warnings before those of the kind */
    const struct store_object *stored;
    struct err err;
};

static const struct write_plan PLAIN = {.whole = false};

/* The body is not the object, or not all of it. */
static bool has_own_body(const struct write_plan *p)
{
    return p->make || p->adopt;
}

static bool on_status(const struct call *c)
{
    return c->sub && c->sub->kind == SUB_STATUS;
}

static void write_tick(struct write *w);

/* ---- end ---- */

static void undo_admission(struct write *w)
{
    const struct vapi_hooks *h = vapi_get_hooks(w->call->api);

    if (w->admitted && h->admit_undo)
        h->admit_undo(h->ctx, w->call->resource, w->object);
    w->admitted = false;
}

/* The call may be freed after this. */
static void let_go(struct write *w)
{
    w->call->resource = w->requested;
    w->base = store_object_unref(w->base);
    w->magic = 0;
}

static void fail(struct write *w, const struct err *err)
{
    struct call *c = w->call;

    if ((c->verb == CALL_CREATE || c->verb == CALL_UPDATE) && c->body)
        audit_request(c, c->body); /* it may have failed before its defaults were set */
    undo_admission(w);
    w->stored = store_object_unref(w->stored);
    let_go(w);
    call_error(c, err);
}

static void on_shown(void *ctx, cJSON *tree, const struct err *err)
{
    struct write *w = ctx;

    if (err)
        call_error(w->call, err);
    else
        respond_object(w->call, w->creating ? 201 : 200, tree);
}

static void answer(struct write *w)
{
    struct call *c = w->call;
    const struct store_object *stored = w->stored;
    cJSON *shown = w->object;
    int status = w->creating ? 201 : 200;

    if (c->options.dry_run && w->kept && !w->plan->answer && !c->done) {
        let_go(w);
        converted_tree(c, converted_again(c, call_entry(c)->stored_form), c->resource->api_version,
                       on_shown, w);
        return;
    }
    if (c->resource != w->requested)
        kinds_convert(c->arena, w->requested, shown);
    else if (c->options.dry_run && c->resource->crd &&
             !c->resource->conversion) { /* as it would be read */
        crd_from_stored(c->resource->crd, c->arena, shown);
        vapi_meta_canonical(c->arena, c->resource, shown);
    }
    let_go(w);
    if (c->done)
        call_finish(c, NULL, stored);
    else if (w->plan->answer)
        w->plan->answer(c, status, shown);
    else if (stored)
        call_stored(c, status, stored);
    else
        respond_object(c, status, shown);
    store_object_unref(stored);
}

static void on_committed(void *ctx, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC);
    if (err)
        fail(w, err);
    else
        answer(w);
}

/* ---- DECODE: a body that is the object itself; patches wait for their base ---- */

static enum outcome step_decode(struct write *w, struct err *err)
{
    struct call *c = w->call;

    if (c->verb == CALL_PATCH || !c->body || (c->verb == CALL_CREATE && c->sub))
        return GO_ON;
    if (body_normalise(c, c->body, err) || body_strict(c, NULL, err))
        return FAILED;
    vapi_meta_dedup_owners(c, c->body, false);
    return GO_ON;
}

/* ---- BASE ---- */

static enum outcome allow_create_on_update(struct write *w, struct err *err)
{
    struct call *c = w->call;
    const struct resource *r = c->resource;
    struct attributes what = {"create", r->group, r->version, r->plural,
                              STR_NULL, c->name,  c->ns,      STR_NULL};
    struct str reason = STR_NULL;

    bool applies = c->verb == CALL_PATCH && c->patch == PATCH_TYPE_APPLY;
    bool may = applies || (r->flags & RES_CREATE_ON_UPDATE && c->verb == CALL_UPDATE);

    if (!may || c->sub || quarantine_of(c))
        return commit_not_found(c, err) ? FAILED : GO_ON;
    if (!c->done && !auth_authorize(vapi_auth(c->api), c->arena, &c->user, &what, &reason))
        return auth_forbidden(err, c->arena, &c->user, &what, reason) ? FAILED : GO_ON;
    w->creating = true;
    return GO_ON;
}

/* Reported before a missing name. */
static int check_space(const struct call *c, struct err *err)
{
    struct str ns = json_str_at(c->body, "metadata.namespace");

    if (!ns.n || !resource_namespaced(c->resource) || str_eq(ns, c->ns))
        return 0;
    return vapi_meta_wrong_namespace(err);
}

static void on_base(void *ctx, cJSON *tree, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC && w->step == STEP_BASE);
    if (err || write_check_served(w->call, w->requested, &w->err)) {
        fail(w, err ? err : &w->err);
        return;
    }
    w->old = tree;
    w->step++;
    write_tick(w);
}

static enum outcome step_base(struct write *w, struct err *err)
{
    struct call *c = w->call;

    c->resource = w->requested;
    call_entry(c)->stored_form = NULL;
    call_entry(c)->of_admission = (struct versions){0};
    w->kept = false;
    w->base = store_object_unref(w->base);
    w->old = w->respelled = NULL;
    w->creating = c->verb == CALL_CREATE && !has_own_body(w->plan);
    if (w->creating)
        return GO_ON;
    if (c->verb == CALL_UPDATE && !has_own_body(w->plan) &&
        (check_space(c, err) || write_check_name(c, c->body, err)))
        return FAILED;
    w->base = store_latest(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    if (!w->base)
        return allow_create_on_update(w, err);
    store_object_ref(w->base);
    if (converted_base(c, w->base, on_base, w))
        return WAITING;
    w->old = convert_tree(c->arena, c->resource, w->base);
    return GO_ON;
}

/* ---- MAKE: the object the client requests ---- */

/* An apply tracked them itself, as do writes to Scale; a POST to a subresource does not change
 * managedFields. */
static bool tracks_fields(const struct call *c)
{
    if (c->sub && (c->sub->kind == SUB_SCALE || c->verb == CALL_CREATE))
        return false;
    return c->verb != CALL_PATCH || c->patch != PATCH_TYPE_APPLY;
}

/* Makes it once more, with all versions its managers need. */
static void on_versions(void *ctx, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC && w->step == STEP_MAKE);
    if (err || write_check_served(w->call, w->requested, &w->err)) {
        fail(w, err ? err : &w->err);
        return;
    }
    err_clear(&w->err);
    write_tick(w);
}

/* What a Scale changes in a custom resource has no other defaults than the stored object. */
static bool written_through(const struct write *w)
{
    return w->plan->adopt && w->requested->conversion;
}

static enum outcome step_make(struct write *w, struct err *err)
{
    struct call *c = w->call;
    cJSON *copy = w->base ? json_copy(c->arena, w->old) : NULL;
    int failed = w->plan->adopt  ? w->plan->adopt(c, &w->part, copy, &w->object, err)
                 : w->plan->make ? w->plan->make(c, copy, &w->object, err)
                                 : write_apply_body(c, copy, &w->object, err);

    if (converted_wishes(c, on_versions, w))
        return WAITING;
    if (failed)
        return FAILED;
    /* From here on the object has the stored version, for which the kind's rules are written. */
    if (!c->resource->crd && !str_eq(c->resource->api_version, c->resource->storage_version)) {
        kinds_convert_to_storage(c->arena, c->resource, w->object);
        if (w->base)
            w->old = vapi_tree(c->arena, w->base);
        commit_hub(c);
    }
    if (!written_through(w) && write_set_defaults(c, w->object, err))
        return FAILED;
    if (c->verb != CALL_PATCH && !has_own_body(w->plan))
        audit_request(c, c->resource == w->requested ? w->object : c->body);
    if (w->creating && c->verb == CALL_CREATE)
        vapi_meta_wipe(c->arena, w->object); /* fields the endpoint cannot set get no owner */
    if (tracks_fields(c))
        managed_update(c, w->requested, w->old, w->object);
    return converted_wishes(c, on_versions, w) ? WAITING : GO_ON;
}

/* ---- META ---- */

static enum outcome meta_create(struct write *w, struct err *err)
{
    struct call *c = w->call;
    cJSON *metadata = vapi_meta_of(c->arena, w->object);
    uint64_t revision;

    /* An invalid number counts as absent, as upstream reads it. */
    if (c->verb == CALL_CREATE && !c->options.dry_run &&
        str_to_u64(json_str(json_get(metadata, "resourceVersion")), &revision) && revision) {
        err_set(err, &ERR_UNKNOWN, "resourceVersion should not be set on objects to be created");
        return FAILED;
    }
    json_remove(metadata, "resourceVersion");
    vapi_meta_wipe(c->arena, w->object);
    vapi_meta_fill(c->api, c->arena, w->object);
    if (c->resource->flags & RES_GENERATION)
        json_set_i64(c->arena, metadata, "generation", 1);
    w->generates_name =
        json_str(json_get(metadata, "generateName")).n && !json_str(json_get(metadata, "name")).n;
    if (w->generates_name)
        vapi_meta_generate_name(c->api, c->arena, w->object);
    if (!c->name.n || w->generates_name)
        c->name = json_str(json_get(metadata, "name"));
    return GO_ON;
}

/* Compares the revision the client's update is based on; it may be missing where the kind allows
 * it. */
static int check_revision(struct write *w, struct err *err)
{
    struct call *c = w->call;
    const struct resource *r = c->resource;
    struct str rv = json_str_at(w->object, "metadata.resourceVersion");
    struct field_errors e;
    uint64_t wanted = 0;

    if (rv.n && !str_to_u64(rv, &wanted))
        return err_set(err, &ERR_UNKNOWN, "strconv.ParseUint: parsing \"%.*s\": invalid syntax",
                       STR_F(rv));
    if (wanted && wanted != (uint64_t)w->base->revision)
        return commit_modified(c, err);
    if (!wanted && r->flags & RES_CONDITIONAL_UPDATE && c->verb == CALL_UPDATE) {
        field_errors_init(&e, c->arena);
        field_invalid(&e, FIELD(FIELD(NULL, "metadata"), "resourceVersion"),
                      json_new_i64(c->arena, 0), "must be specified for an update");
        return field_errors_to_err(&e, r->group, r->plural, c->name, err);
    }
    vapi_meta_set_revision(c->arena, w->object, w->base->revision);
    return 0;
}

static int check_uid(struct write *w, struct err *err)
{
    struct call *c = w->call;
    struct str uid = json_str_at(w->object, "metadata.uid");
    struct str is = w->base ? w->base->uid : STR("");

    if (c->verb != CALL_UPDATE || !uid.n || str_eq(uid, is))
        return 0;
    return err_conflict(
        err, c->resource->group, c->resource->plural, c->name,
        arena_printf(c->arena,
                     "Precondition failed: UID in precondition: %.*s, UID in object "
                     "meta: %.*s",
                     STR_F(uid), STR_F(is))
            .p);
}

static enum outcome step_meta(struct write *w, struct err *err)
{
    struct call *c = w->call;

    if (vapi_meta_check_namespace(c, c->arena, w->object, err) ||
        (c->verb != CALL_CREATE && write_check_name(c, w->object, err)))
        return FAILED;
    if (check_uid(w, err))
        return FAILED;
    if (w->creating)
        return meta_create(w, err);
    if (check_revision(w, err))
        return FAILED;
    vapi_meta_carry_over(c->arena, w->object, w->old);
    return GO_ON;
}

/* ---- MUTATE ---- */

static enum admission_operation operation(const struct write *w)
{
    return w->creating ? ADMISSION_CREATE : ADMISSION_UPDATE;
}

/* Built-in plug-ins and policies; *ret_before: the object before a policy changed it, or NULL. */
static int mutate(struct write *w, cJSON **ret_before, struct err *err)
{
    struct admission_call a;

    *ret_before = NULL;
    if (w->plan->reviewed || w->plan->propose)
        return 0;
    call_admission(w->call, operation(w), &a);
    a.decode = write_decode_hooked;
    a.replaced = ret_before;
    return admission_mutate(&a, w->object, w->old, err);
}

/* Policies see other versions of the object: the step is repeated once a webhook made them. */
static void on_admission_versions(void *ctx, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC && !err);
    if (call_check_over(w->call, &w->err) || write_check_served(w->call, w->requested, &w->err))
        fail(w, &w->err);
    else
        write_tick(w);
}

static bool awaits_versions(struct write *w, void (*done)(void *ctx, const struct err *err))
{
    if (!versions_make(&call_entry(w->call)->of_admission, done, w))
        return false;
    err_clear(&w->err);
    return true;
}

static enum outcome step_mutate(struct write *w, struct err *err)
{
    bool converts = w->requested->conversion;
    cJSON *kept = converts ? json_copy(w->call->arena, w->object) : NULL, *before;
    int failed = mutate(w, &before, err);

    if (awaits_versions(w, on_admission_versions)) {
        w->object = kept;
        return WAITING;
    }
    if (failed || (before && write_keep_identity(w->call, w->object, before, w->base, err)) ||
        (!converts && write_set_defaults(w->call, w->object, err)))
        return FAILED;
    vapi_meta_dedup_owners(w->call, w->object, true);
    return GO_ON;
}

/* ---- HOOK: mutating webhooks ---- */

static void take_member(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *value = json_get(from, key);

    if (value)
        json_set(a, to, key, json_copy(a, value));
    else
        json_remove(to, key);
}

static struct webhook_review review_of(const struct write *w, struct write_part part)
{
    return (struct webhook_review){.call = w->call,
                                   .operation = operation(w),
                                   .requested = w->requested,
                                   .object = part.object,
                                   .old = part.old,
                                   .apart = w->plan->view,
                                   .unnamed = w->generates_name};
}

static void on_hooked(void *ctx, cJSON *object, bool changed, const struct err *err)
{
    struct write *w = ctx;
    const cJSON *before = w->object;

    assert(w->magic == WRITE_MAGIC && w->step == STEP_HOOK);
    w->object = object;
    if (err || write_check_served(w->call, w->requested, &w->err) ||
        (changed && write_keep_identity(w->call, w->object, before, w->base, &w->err))) {
        fail(w, err ? err : &w->err);
        return;
    }
    vapi_meta_dedup_owners(w->call, w->object, true);
    w->step++;
    write_tick(w);
}

static bool has_webhooks(const struct write *w)
{
    return !w->plan->reviewed && call_has_webhooks(w->call);
}

/* PROPOSE may have waited for the webhooks of the object's part. */
static void on_proposed(void *ctx, cJSON *object, bool changed, const struct err *err)
{
    struct write *w = ctx;

    (void)changed;
    assert(w->magic == WRITE_MAGIC && w->step == STEP_PROPOSE);
    w->part.object = object;
    if (err || write_check_served(w->call, w->requested, &w->err)) {
        fail(w, err ? err : &w->err);
        return;
    }
    w->step++;
    write_tick(w);
}

static enum outcome step_propose(struct write *w, struct err *err)
{
    struct call *c = w->call;
    cJSON *before = NULL;
    struct admission_call a;
    struct webhook_review r;

    if (!w->plan->propose)
        return GO_ON;
    if (w->plan->propose(c, json_copy(c->arena, w->old), &w->part, err))
        return FAILED;
    call_admission(c, operation(w), &a);
    a.apart = true;
    a.decode = reviewed_decode;
    a.replaced = &before;
    if (admission_mutate(&a, w->part.object, w->part.old, err))
        return FAILED;
    r = review_of(w, w->part);
    return has_webhooks(w) && webhooks_run(WEBHOOKS_MUTATING, &r, reviewed_decode, on_proposed, w)
               ? WAITING
               : GO_ON;
}

static enum outcome step_hook(struct write *w, struct err *err)
{
    struct webhook_review r = review_of(w, (struct write_part){w->object, w->old});

    (void)err;
    return has_webhooks(w) && !w->plan->propose &&
                   webhooks_run(WEBHOOKS_MUTATING, &r, write_decode_hooked, on_hooked, w)
               ? WAITING
               : GO_ON;
}

/* ---- PREPARE: fields this kind of write cannot change come from the old object ---- */

/* A write to /status takes the status from the request and other fields from the old object; some
 * kinds let metadata change, too. Source: the status strategies under pkg/registry, apiextensions'
 * status_strategy.go. */
static void keep_status_only(struct write *w)
{
    const struct resource *r = w->call->resource;
    struct arena *a = w->call->arena;
    cJSON *made = json_copy(a, w->old);

    take_member(a, made, w->object, "status");
    if (r->crd || r->flags & RES_STATUS_KEEPS_META)
        take_member(a, vapi_meta_of(a, made), json_get(w->object, "metadata"), "managedFields");
    else
        take_member(a, made, w->object, "metadata");
    vapi_meta_set_revision(a, made, w->base->revision);
    if (r->built_in && r->built_in->prepare_status)
        r->built_in->prepare_status(a, made, w->old);
    w->object = made;
}

static void on_kind_warning(void *ctx, struct str text)
{
    call_warn(ctx, text);
}

static void prepare_create(struct write *w)
{
    const struct resource *r = w->call->resource;

    if ((r->flags & (RES_STATUS | RES_STATUS_ON_CREATE)) == RES_STATUS)
        json_remove(w->object, "status");
    w->warned = w->call->n_warnings;
    if (r->built_in && r->built_in->warnings_before_create)
        r->built_in->warnings_before_create(w->call->arena, w->object, on_kind_warning, w->call);
    kinds_prepare_create(r, w->call->arena, w->object);
}

static void prepare_update(struct write *w)
{
    const struct resource *r = w->call->resource;
    struct arena *a = w->call->arena;

    if (w->plan->prepare) {
        w->object = w->plan->prepare(a, w->object, w->old);
        vapi_meta_set_revision(a, w->object, w->base->revision);
    } else if (!w->plan->whole) {
        if (r->flags & RES_STATUS)
            take_member(a, w->object, w->old, "status");
        if (r->built_in && r->built_in->prepare_update)
            r->built_in->prepare_update(a, w->object, w->old);
    }
}

/* Whether the spec changes only in its spelling. */
static bool respell(struct write *w)
{
    const struct resource *r = w->call->resource;

    w->respelled = w->old;
    if (vapi_meta_spec_equal(w->object, w->old))
        return true;
    if (r->crd || !r->node)
        return false;
    w->respelled = schema_respell(w->call->arena, r->schema, r->node, w->old, w->object);
    return vapi_meta_spec_equal(w->object, w->respelled);
}

static enum outcome step_prepare(struct write *w, struct err *err)
{
    bool same_spec;

    (void)err;
    if (w->creating)
        prepare_create(w);
    else if (on_status(w->call))
        keep_status_only(w);
    else
        prepare_update(w);
    if (!w->old)
        return GO_ON;
    same_spec = respell(w);
    if (!on_status(w->call)) {
        struct arena *a = w->call->arena;
        unsigned flags = w->call->resource->flags;
        int64_t generation = json_i64_at(w->old, "metadata.generation", 0);
        bool same = same_spec && (flags & RES_STATUS || json_equal(json_get(w->object, "status"),
                                                                   json_get(w->old, "status")));

        if ((flags & RES_GENERATION) && !same && !w->plan->uncounted)
            json_set_i64(a, vapi_meta_of(a, w->object), "generation", generation + 1);
    }
    managed_keep_times(w->call->arena, w->object, w->old);
    return GO_ON;
}

/* ---- VALIDATE ---- */

/* What a rule refuses, but did not change, is warned about. */
static void validate_custom(struct write *w, struct field_errors *e)
{
    struct call *c = w->call;
    struct field_errors kept;

    field_errors_init(&kept, c->arena);
    crd_validate(w->requested->crd, e, &kept, w->object, w->old);
    for (const struct err_cause *cause = kept.first; cause; cause = cause->next)
        call_warn(c,
                  arena_printf(c->arena, "%.*s: %.*s", STR_F(cause->field), STR_F(cause->message)));
}

static void validate_kind(struct write *w, struct field_errors *e)
{
    const struct resource *r = w->requested; /* validation depends on the requested version */

    if (r->crd)
        validate_custom(w, e);
    else if (w->plan->validate)
        w->plan->validate(e, w->object, w->respelled);
    else if (on_status(w->call))
        kinds_validate_status(r, e, w->object, w->old);
    else
        kinds_validate(r, e, w->object, w->respelled);
}

/* In upstream's order: later checks do not run after errors. */
static void validate_whole(struct write *w, struct field_errors *e)
{
    const struct resource *r = w->requested;
    bool on_whole = !w->plan->validate && !on_status(w->call);

    if (r->built_in && r->built_in->validate_first && on_whole)
        r->built_in->validate_first(e, w->object, w->respelled);
    if (e->n)
        return;
    if (!w->creating)
        vapi_meta_validate_update(e, r, w->object, w->old, on_status(w->call));
    else if (!(r->flags & RES_META_LAST))
        vapi_meta_validate(e, r, w->object);
    validate_kind(w, e);
    if (w->creating && !e->n)
        vapi_meta_validate_last(e, r, w->object);
}

/* For kinds with metadata.generation only changed specs produce warnings, except for pods. */
static bool warns(const struct write *w)
{
    unsigned flags = w->call->resource->flags;

    return w->creating || !(flags & RES_GENERATION) || flags & RES_GRACEFUL ||
           json_i64_at(w->object, "metadata.generation", 0) !=
               json_i64_at(w->old, "metadata.generation", 0);
}

static bool is_synced(const struct call *c)
{
    const struct vapi_hooks *h = vapi_get_hooks(c->api);

    return h->has_effect && h->has_effect(h->ctx, c->resource);
}

static enum outcome step_validate(struct write *w, struct err *err)
{
    struct call *c = w->call;
    const struct resource *r = c->resource;
    struct field_errors e;

    field_errors_init(&e, c->arena);
    validate_whole(w, &e);
    if (field_errors_to_err(&e, r->group, r->kind, json_str_at(w->object, "metadata.name"), err)) {
        if (w->creating)
            c->n_warnings = w->warned; /* warnings apply to valid objects only */
        return FAILED;
    }
    if (r->crd)
        vapi_meta_warn_finalizers(c, w->object, w->old);
    if (r->built_in && r->built_in->warnings && !on_status(c) && warns(w))
        r->built_in->warnings(c->arena, w->object, on_kind_warning, c);
    if (!on_status(c) && !is_synced(c))
        kinds_warn_no_effect(c->arena, r, w->object, on_kind_warning, c);
    return GO_ON;
}

/* ---- ADMIT: the syncer's hook, which may wait ---- */

static void on_admitted(void *ctx, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC && w->step == STEP_ADMIT);
    if (err) {
        w->admitted = false;
        fail(w, err);
        return;
    }
    w->step++;
    write_tick(w);
}

void vapi_admit_warn(void *done_ctx, struct str text)
{
    struct write *w = done_ctx;

    assert(w->magic == WRITE_MAGIC && w->step == STEP_ADMIT);
    call_warn(w->call, text);
}

static bool base_moved(const struct write *w)
{
    const struct call *c = w->call;
    const struct store_object *now =
        store_latest(vapi_store(c->api), c->resource->storage, c->ns, c->name);

    return now != w->base && !(now && w->base && now->revision == w->base->revision);
}

/* By another object, readable or not. */
static bool name_is_taken(const struct write *w)
{
    return w->creating && (base_moved(w) || quarantine_of(w->call));
}

/* COMMIT refuses a name that is taken. The hook is not called then: it would record the refused
 * object in the other one's place, and take the other one's host object for a predecessor. */
static enum outcome step_admit(struct write *w, struct err *err)
{
    struct call *c = w->call;
    const struct vapi_hooks *h = vapi_get_hooks(c->api);

    if (on_status(c))
        return GO_ON;
    if (c->admitted)
        c->admitted(c->done_ctx, w->object);
    if (admit_shape(c, w->object, w->old, err))
        return FAILED;
    if (name_is_taken(w) || !h->admit || !h->wants_admit ||
        !h->wants_admit(h->ctx, c->resource, w->object, w->old))
        return GO_ON;
    w->admitted = true;
    h->admit(h->ctx, c->arena, c->resource, w->object, w->old, c->options.dry_run, on_admitted, w);
    return WAITING;
}

/* What validating admission sees: the object, or that in its place. */
static struct write_part seen(const struct write *w)
{
    struct call *c = w->call;

    return w->plan->view
               ? (struct write_part){w->plan->view(c, w->object), w->plan->view(c, w->old)}
               : (struct write_part){w->object, w->old};
}

static int confirm(struct write *w, struct err *err)
{
    struct write_part part;
    struct admission_call a;

    if (w->plan->reviewed)
        return 0;
    part = seen(w);
    call_admission(w->call, operation(w), &a);
    a.apart = w->plan->view;
    return admission_validate(&a, part.object, part.old, err);
}

static enum outcome step_confirm(struct write *w, struct err *err)
{
    int failed = confirm(w, err);

    if (awaits_versions(w, on_admission_versions))
        return WAITING;
    return failed ? FAILED : GO_ON;
}

/* ---- REVIEW: validating webhooks ---- */

/* What was decided before the pause may no longer hold. */
static int confirm_again(struct write *w, struct err *err)
{
    struct admission_call a;

    call_admission(w->call, operation(w), &a);
    if (write_check_served(w->call, w->requested, err) ||
        (w->creating && admission_lifecycle(&a, w->object, err)))
        return -1;
    return confirm(w, err);
}

static void on_versions_again(void *ctx, const struct err *err);

/* A policy that came in the pause may need another version of the object. */
static void resume(struct write *w)
{
    int failed = confirm_again(w, &w->err);

    if (awaits_versions(w, on_versions_again))
        return;
    if (failed) {
        fail(w, &w->err);
        return;
    }
    w->step++;
    write_tick(w);
}

static void on_versions_again(void *ctx, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC && !err);
    if (call_check_over(w->call, &w->err))
        fail(w, &w->err);
    else
        resume(w);
}

static void on_reviewed(void *ctx, cJSON *object, bool changed, const struct err *err)
{
    struct write *w = ctx;

    (void)object;
    assert(w->magic == WRITE_MAGIC && w->step == STEP_REVIEW && !changed);
    if (err)
        fail(w, err);
    else
        resume(w);
}

static enum outcome step_review(struct write *w, struct err *err)
{
    struct webhook_review r;

    (void)err;
    if (!has_webhooks(w))
        return GO_ON;
    r = review_of(w, seen(w));
    return webhooks_run(WEBHOOKS_VALIDATING, &r, NULL, on_reviewed, w) ? WAITING : GO_ON;
}

/* ---- KEEP: the stored form, where a webhook makes it ---- */

static void on_kept(void *ctx, cJSON *tree, const struct err *err)
{
    struct write *w = ctx;

    assert(w->magic == WRITE_MAGIC && w->step == STEP_KEEP);
    if (err) {
        fail(w, err);
        return;
    }
    call_entry(w->call)->stored_form = tree;
    w->kept = true;
    resume(w);
}

static bool is_removal(const struct write *w);

static enum outcome step_keep(struct write *w, struct err *err)
{
    struct call *c = w->call;
    const struct resource *r = c->resource;

    (void)err;
    if (r->conversion && w->base && is_removal(w)) {
        call_entry(c)->stored_form = vapi_tree(c->arena, w->base);
        return GO_ON;
    }
    if (!conversion_needed(r, r->storage_version))
        return GO_ON;
    converted_tree(c, w->object, r->storage_version, on_kept, w);
    return WAITING;
}

/* ---- COMMIT ---- */

static enum outcome refuse_existing(struct write *w, struct err *err)
{
    struct call *c = w->call;
    const struct resource *r = c->resource;
    const struct store_object *now = store_latest(vapi_store(c->api), r->storage, c->ns, c->name);

    if (w->generates_name && ++w->names_tried < MAX_NAME_TRIES) {
        undo_admission(w);
        return AGAIN;
    }
    if (w->generates_name) {
        err_already_exists(err, r->group, r->plural, c->name);
        err->message = arena_printf(c->arena,
                                    "%.*s \"%.*s\" already exists, the server was not able to "
                                    "generate a unique name for the object",
                                    STR_F(r->group_resource), STR_F(c->name));
        err->retry_after = 1;
        return FAILED;
    }
    err_already_exists(err, w->requested->group, w->requested->plural, c->name);
    if (now && object_is_terminating(vapi_tree(c->arena, now)))
        err_wrap(err, "object is being deleted");
    return FAILED;
}

/* What is stored in another version than the present one is written in any case: so objects are
 * migrated. */
static bool unchanged(const struct write *w)
{
    struct call *c = w->call;
    const struct resource *r = c->resource;
    const cJSON *kept = call_entry(c)->stored_form;
    cJSON *form;

    vapi_meta_set_revision(c->arena, w->object, w->base->revision);
    if (r->crd && !str_eq(conversion_carried(r, w->base), r->storage_version))
        return false;
    if (!kept)
        return json_equal(w->object, w->old);
    form = json_copy(c->arena, kept);
    vapi_meta_set_revision(c->arena, form, w->base->revision);
    return json_equal(form, vapi_tree(c->arena, w->base));
}

/* Removing the last finalizer of a terminating object deletes the object. */
static bool is_removal(const struct write *w)
{
    const cJSON *before = json_get(w->old, "metadata");

    if (!meta_is_terminating(before) || vapi_meta_has_finalizers(w->object))
        return false;
    if (json_i64_at(before, "deletionGracePeriodSeconds", 0) != 0)
        return false;
    return !resource_is_namespace(w->call->resource) ||
           json_count(json_path(w->object, "spec.finalizers")) == 0;
}

static enum outcome commit_now(struct write *w, enum store_op op, struct err *err)
{
    struct call *c = w->call;
    const struct store_object **stored = op == STORE_DELETE ? NULL : &w->stored;

    if (commit_object(c, op, w->object, w->base, w->old, stored, err))
        return FAILED;
    if (op == STORE_DELETE) /* as it last was: only watchers see the revision of the deletion */
        vapi_meta_set_revision(c->arena, w->object, w->base->revision);
    if (c->options.dry_run) {
        undo_admission(w);
        answer(w);
        return ANSWERED;
    }
    w->admitted = false;
    store_on_commit(vapi_store(c->api), on_committed, w);
    return ANSWERED;
}

/* Nothing to store, but the version in the answer must be durable. */
static enum outcome answer_unchanged(struct write *w)
{
    undo_admission(w);
    w->stored = store_object_ref(w->base);
    if (w->base->revision <= store_revision(vapi_store(w->call->api)))
        answer(w);
    else
        store_on_commit(vapi_store(w->call->api), on_committed, w);
    return ANSWERED;
}

static enum outcome step_commit(struct write *w, struct err *err)
{
    struct call *c = w->call;

    if (base_moved(w) || name_is_taken(w)) {
        if (w->creating && c->verb == CALL_CREATE)
            return refuse_existing(w, err);
        undo_admission(w);
        if (++w->attempts < MAX_ATTEMPTS)
            return AGAIN;
        return commit_modified(c, err) ? FAILED : GO_ON;
    }
    if (w->creating)
        return commit_now(w, STORE_CREATE, err);
    if (is_removal(w))
        return commit_now(w, STORE_DELETE, err);
    return unchanged(w) ? answer_unchanged(w) : commit_now(w, STORE_UPDATE, err);
}

/* ---- machine ---- */

typedef enum outcome (*step_run)(struct write *w, struct err *err);

static const step_run STEPS[N_STEPS] = {
    [STEP_DECODE] = step_decode, [STEP_BASE] = step_base,       [STEP_PROPOSE] = step_propose,
    [STEP_MAKE] = step_make,     [STEP_META] = step_meta,       [STEP_MUTATE] = step_mutate,
    [STEP_HOOK] = step_hook,     [STEP_PREPARE] = step_prepare, [STEP_VALIDATE] = step_validate,
    [STEP_ADMIT] = step_admit,   [STEP_CONFIRM] = step_confirm, [STEP_REVIEW] = step_review,
    [STEP_KEEP] = step_keep,     [STEP_COMMIT] = step_commit,
};

static void write_tick(struct write *w)
{
    for (;;) {
        assert(w->magic == WRITE_MAGIC && w->step < N_STEPS);
        switch (STEPS[w->step](w, &w->err)) {
        case GO_ON:
            w->step++;
            break;
        case AGAIN:
            err_clear(&w->err);
            w->step = STEP_BASE;
            break;
        case FAILED:
            fail(w, &w->err);
            return;
        case WAITING:
        case ANSWERED:
            return;
        }
    }
}

void write_start(struct call *c, const struct write_plan *plan)
{
    struct write *w = ARENA_NEW(c->arena, struct write);

    w->magic = WRITE_MAGIC;
    w->call = c;
    w->requested = c->resource;
    w->plan = plan ? plan : &PLAIN;
    err_init(&w->err, c->arena);
    write_tick(w);
}

void call_create(struct call *c)
{
    if (c->resource->flags & RES_REVIEW)
        sub_review(c);
    else
        write_start(c, NULL);
}

void call_update(struct call *c)
{
    write_start(c, NULL);
}

void call_patch(struct call *c)
{
    write_start(c, NULL);
}
