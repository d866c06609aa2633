/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims and their pools: charged in the transaction that creates them, sent down by down.c
 * while they are charged, released when they have left the host. Pods are charged nothing for
 * them, so that a claim that many share counts once. Must never let a claim go down that is not
 * charged, nor release one whose host object may still hold devices. */
#include "objects/device_claims.h"

#include <sublet/config_sync.h>
#include <sublet/translate_kind.h>

#include "core/life.h"
#include "gpu/ledger.h"

#define GROUP "resource.k8s.io"

static bool is_of(const struct resource *r, const char *plural)
{
    return str_eqc(r->group, GROUP) && str_eqc(r->plural, plural);
}

static bool is_enabled(const struct syncer *s)
{
    return s->config->to_host->enabled[DOWN_RESOURCE_CLAIMS];
}

static const struct store_object *find(struct syncer *s, const char *plural, struct str ns,
                                       struct str name)
{
    return store_get(s->store, syncer_resource(s, GROUP, plural)->storage, ns, name);
}

/* --- its pool --- */

/* A charged claim stays in its pool, even if its namespace's label has changed since. */
static int choose(struct syncer *s, struct arena *a, const cJSON *object, bool is_template,
                  struct pool_choice *ret, struct err *err)
{
    const cJSON *metadata =
        is_template ? json_path(object, "spec.metadata") : json_get(object, "metadata");
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str charged = is_template
                             ? STR_NULL
                             : sync_ledger_charged(s->ledger, json_str(json_get(metadata, "uid")));
    cJSON *pinned;

    if (charged.n) {
        pinned = json_copy(a, object);
        json_set_str(a, json_ensure_path(a, pinned, "metadata.labels"), LABEL_GPU_POOL, charged);
        object = pinned;
    }
    return pool_resolve_claim(a, s->config, object, is_template, syncer_namespace_labels(s, a, ns),
                              ret, err);
}

/* --- admission --- */

static bool is_unchanged(const cJSON *object, const cJSON *old)
{
    return old && json_equal(json_get(object, "spec"), json_get(old, "spec")) &&
           json_equal(json_path(object, "metadata.annotations"),
                      json_path(old, "metadata.annotations"));
}

static void note_unserved(struct syncer *s, const cJSON *claim)
{
    struct refused_owner owner = sync_refused_owner(claim);

    sync_ledger_unserved(s->ledger, &owner);
}

int sync_device_claim_check(struct syncer *s, struct arena *a, const struct resource *r,
                            const cJSON *object, const cJSON *old, struct err *err)
{
    bool is_template = is_of(r, "resourceclaimtemplates");
    struct pool_choice choice;

    if (!is_enabled(s) || (!is_template && !is_of(r, "resourceclaims")) ||
        is_unchanged(object, old))
        return 0;
    if (!choose(s, a, object, is_template, &choice, err))
        return 0;
    if (!is_template && !old)
        note_unserved(s, object);
    return -1;
}

/* What this host has of claims is not known before its first list, where records may lack some. */
static bool is_counted(struct syncer *s)
{
    enum sync_id id = sync_kind_of_ref(s, REF_DEVICE_CLAIM);

    return s->compared && (s->life == LIFE_FIRST || reflector_synced(syncer_watch(s, id)));
}

/* If the store then refuses the claim, its controller finds the record without a claim and removes
 * the record and the charge. */
int sync_device_claim_store(struct syncer *s, struct arena *a, const cJSON *claim, bool dry_run,
                            struct err *err)
{
    struct str ns = json_str_at(claim, "metadata.namespace");
    struct str name = json_str_at(claim, "metadata.name");
    enum sync_id id = sync_kind_of_ref(s, REF_DEVICE_CLAIM);
    struct pool_choice choice;
    struct mapping m;
    bool queued;

    if (!is_enabled(s) || store_latest(s->store, syncer_storage(s, id), ns, name))
        return 0;
    m = sync_mapping_get(s, a, id, ns, name);
    if (sync_mapping_is_full(&m))
        return err_set(err, &ERR_TOO_MANY_REQUESTS,
                       "resourceclaims \"%.*s\" was removed and created again %d times before the "
                       "host cluster could follow; try again later",
                       STR_F(name), MAPPING_OLD);
    if (choose(s, a, claim, false, &choice, err))
        return -1;
    if (!is_counted(s))
        return err_set(err, &ERR_UNAVAILABLE,
                       "this virtual cluster was restored: its claims on the host cluster are not "
                       "counted yet; try again later");
    if (sync_ledger_charge(s->ledger, a, &choice, claim, dry_run, &queued, err))
        return -1;
    if (dry_run)
        return 0;
    sync_mapping_begin(&m, sync_uid(claim));
    sync_mapping_put(s, id, ns, name, &m);
    syncer_add(s, id, ns, name);
    return 0;
}

/* --- down --- */

static bool say(struct sync_run *run, struct err *err)
{
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError", "%.*s",
                    STR_F(err->message));
    return false;
}

/* What is on the host holds its devices, whatever the limit. A claim that was stored while claims
 * did not go down is charged here. */
bool sync_device_claim_admit(struct sync_run *run)
{
    struct ledger *ledger = run->syncer->ledger;
    struct pool_choice choice;
    struct err err;
    bool queued;

    err_init(&err, run->arena);
    if (choose(run->syncer, run->arena, run->virtual_, false, &choice, &err))
        return say(run, &err);
    if (run->host) {
        sync_ledger_force(ledger, &choice, run->ns, run->uid);
        return true;
    }
    if (!sync_ledger_charged(ledger, run->uid).n &&
        sync_ledger_charge(ledger, run->arena, &choice, run->virtual_, false, &queued, &err))
        return say(run, &err);
    if (!sync_ledger_is_over(ledger, &choice, run->uid))
        return true;
    err_set(&err, &ERR_FORBIDDEN, "pool \"%.*s\" is over its limit: the claim waits",
            STR_F(choice.binding->pool->name));
    return say(run, &err);
}

void sync_device_claim_label(struct syncer *s, struct arena *a, const cJSON *claim, cJSON *host)
{
    struct str charged = sync_ledger_charged(s->ledger, sync_uid(claim));

    if (charged.n)
        json_set_str(a, json_ensure_path(a, host, "metadata.labels"), LABEL_POOL, charged);
}

void sync_device_claim_release(struct syncer *s, const struct mapping *m)
{
    sync_ledger_release(s->ledger, m->uid);
    for (size_t i = 0; i < m->n_old; i++)
        sync_ledger_release(s->ledger, m->old[i]);
}

/* --- its status --- */

/* A pod of the host by name and uid, as the tenant knows it. */
static bool find_pod(void *ctx, struct str host_name, struct str host_uid, struct str *ret_name,
                     struct str *ret_uid)
{
    struct sync_run *run = ctx;
    struct syncer *s = run->syncer;
    const struct host_object *o = reflector_get(s->watches[SYNC_PODS].reflector, host_name);
    cJSON *pod = NULL;
    struct str ns;

    return o && str_eq(o->uid, host_uid) && !json_parse(run->arena, o->bytes, &pod, NULL) &&
           translate_owner(&s->tenant, pod, &ns, ret_name, ret_uid) && str_eq(ns, run->ns);
}

cJSON *sync_device_claim_status(struct sync_run *run, cJSON *status)
{
    const cJSON *old = json_get(run->virtual_, "status");
    cJSON *reserved = translate_reserved_up(run->arena, json_path(run->host, "status.reservedFor"),
                                            find_pod, run);

    if (!status)
        status = old ? json_copy(run->arena, old) : json_new_object(run->arena);
    json_remove(status, "reservedFor");
    if (reserved)
        json_set(run->arena, status, "reservedFor", reserved);
    return json_equal(status, old) || (!old && !json_count(status)) ? NULL : status;
}

/* --- pods --- */

/* The claim is of its template for this pod: another of that name is not. */
static bool is_for(const cJSON *claim, const cJSON *pod, const cJSON *entry)
{
    if (json_str(json_get(entry, "resourceClaimName")).n)
        return true;
    json_each(owner, json_path(claim, "metadata.ownerReferences"))
    {
        if (json_true(json_get(owner, "controller")))
            return str_eq(json_str(json_get(owner, "uid")), sync_uid(pod));
    }
    return false;
}

static int add_claim(struct syncer *s, struct arena *a, const cJSON *pod, const cJSON *object,
                     bool is_template, struct pool_claims *sum, struct err *err)
{
    struct pool_choice choice;

    if (choose(s, a, object, is_template, &choice, err))
        return -1;
    if (sum->binding && sum->binding != choice.binding)
        return err_forbidden(err, STR_NULL, STR("pods"), json_str_at(pod, "metadata.name"),
                             "its resource claims are of pool \"%.*s\" and pool \"%.*s\"; a pod "
                             "runs in one",
                             STR_F(sum->binding->pool->name), STR_F(choice.binding->pool->name));
    sum->binding = choice.binding;
    sum->devices = i64_add_most(sum->devices, choice.devices);
    return 0;
}

int sync_device_claims_of_pod(struct syncer *s, struct arena *a, const cJSON *pod,
                              const cJSON *host_pod, struct pool_claims *ret, struct err *err)
{
    const struct config_binding *bound = sync_binding_of(s, host_pod);
    struct str ns = json_str_at(pod, "metadata.namespace");

    *ret = (struct pool_claims){.binding = bound && bound->pool->mode == POOL_DRA ? bound : NULL};
    if (!is_enabled(s) || ret->binding)
        return 0;
    json_each(entry, json_path(pod, "spec.resourceClaims"))
    {
        struct str name = translate_pod_claim(pod, entry);
        struct str template_ = json_str(json_get(entry, "resourceClaimTemplateName"));
        const struct store_object *claim = name.n ? find(s, "resourceclaims", ns, name) : NULL;
        const struct store_object *o =
            claim || !template_.n ? claim : find(s, "resourceclaimtemplates", ns, template_);

        if (o && add_claim(s, a, pod, vapi_tree(a, o), !claim, ret, err))
            return -1;
    }
    return 0;
}

/* Is the claim on the host, made for this very virtual one? */
static bool is_there(struct sync_run *run, struct str name, const cJSON *claim)
{
    struct syncer *s = run->syncer;
    enum sync_id id = sync_kind_of_ref(s, REF_DEVICE_CLAIM);
    const struct host_object *o;
    struct str ns, of, uid;
    cJSON *host = NULL;
    char host_name[64];

    translate_name(&s->tenant, run->ns, name, host_name);
    o = reflector_get(syncer_watch(s, id), str_c(host_name));
    if (o && !json_parse(run->arena, o->bytes, &host, NULL) &&
        translate_owner(&s->tenant, host, &ns, &of, &uid) && str_eq(uid, sync_uid(claim)) &&
        sync_ledger_charged(s->ledger, uid).n)
        return true;
    syncer_add(s, id, run->ns, name); /* its controller adds this pod again */
    return false;
}

bool sync_device_claims_ready(struct sync_run *run, struct str *ret_waits)
{
    struct syncer *s = run->syncer;

    json_each(entry, json_path(run->virtual_, "spec.resourceClaims"))
    {
        struct str name = translate_pod_claim(run->virtual_, entry);
        const struct store_object *o =
            name.n && is_enabled(s) ? find(s, "resourceclaims", run->ns, name) : NULL;
        const cJSON *claim = o ? vapi_tree(run->arena, o) : NULL;
        bool fits = claim && is_for(claim, run->virtual_, entry);

        if (fits && is_there(run, name, claim))
            continue;
        *ret_waits = arena_printf(run->arena, "waiting for the resource claim of \"%.*s\"%s",
                                  STR_F(json_str(json_get(entry, "name"))),
                                  claim && !fits ? ": it was not made for this pod" : "");
        return false;
    }
    return true;
}
