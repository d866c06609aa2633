/* SPDX-License-Identifier: Apache-2.0 */
/* From a virtual pod to its host pod: its pool, its charge, what must exist on the host first, its
 * translation; and later the few mutable fields of a running pod. Must never create a host pod
 * whose GPUs are not charged. */

#include "pods/pods.h"
#include "pods/gangs.h"
#include "gpu/ledger.h"
#include "nodes/nodes.h"
#include "objects/device_claims.h"
#include "objects/down.h"
#include "objects/objects.h"
#include <string.h>

#define LABEL_GPU_POOL "sublet.dev/gpu-pool"

/* --- the pool --- */

int sync_pod_choose(struct syncer *s, struct arena *a, const cJSON *pod, struct pool_choice *ret,
                    struct err *err)
{
    struct str ns = json_str_at(pod, "metadata.namespace");
    struct str charged = sync_ledger_charged(s->ledger, sync_uid(pod));
    const cJSON *host_pod = NULL;
    struct pool_claims claims;
    cJSON *pinned;

    if (json_count(json_path(pod, "spec.resourceClaims")))
        host_pod = sync_pod_on_host(s, a, pod);
    if (sync_device_claims_of_pod(s, a, pod, host_pod, &claims, err))
        return -1;
    if (charged.n) { /* it stays in its pool, even if its namespace's label has changed since */
        pinned = json_copy(a, pod);
        json_set_str(a, json_ensure_path(a, pinned, "metadata.labels"), LABEL_GPU_POOL, charged);
        pod = pinned;
    }
    if (pool_resolve_with(a, s->config, ns, pod, syncer_namespace_labels(s, a, ns),
                          claims.binding ? &claims : NULL, ret, err))
        return -1;
    sync_gang_choose(s, a, pod, ret);
    return 0;
}

/* --- the translation --- */

struct gather {
    struct arena *arena;
    cJSON *list;
};

static bool on_object(void *ctx, const struct store_object *o)
{
    struct gather *g = ctx;

    json_append(g->list, vapi_tree(g->arena, o));
    return true;
}

static cJSON *services_of(struct syncer *s, struct arena *a, struct str ns)
{
    struct gather g = {a, json_new_array(a)};
    const struct resource *r = syncer_resource(s, "", "services");

    if (store_scan(s->store, r->storage, ns, STR_NULL, STR_NULL, 0, on_object, &g, NULL))
        return NULL;
    return g.list;
}

int sync_pod_translate(struct syncer *s, struct arena *a, const cJSON *pod,
                       const struct pool_choice *choice, bool with_services, cJSON **ret,
                       struct err *err)
{
    struct translate_tenant tenant = s->tenant;
    struct str ns = json_str_at(pod, "metadata.namespace");
    const cJSON *links = json_path(pod, "spec.enableServiceLinks");
    const cJSON *affinity = json_path(pod, "spec.affinity"), *services = NULL;

    if (json_get(affinity, "podAffinity") || json_get(affinity, "podAntiAffinity"))
        tenant.namespaces = syncer_namespaces(s, a, NULL);
    /* The plan of a restore knows no nodes, and compares no affinity. */
    if (!choice->binding && s->nodes)
        (void)sync_nodes_unfenced(s->nodes, &tenant.unfenced); /* sync_pod_create() checks it */
    if (with_services && (!links || json_true(links)))
        services = services_of(s, a, ns);
    return translate_pod(a, &tenant, choice, pod, services, ret, err);
}

/* --- what must exist on the host first --- */

static void refuse(struct sync_run *run, const struct err *err)
{
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError", "%.*s",
                    STR_F(err->message));
    reconcile_fail(run->reconcile, err);
}

struct missing {
    struct sync_run *run;
    bool any;
};

/* A reference to an object that the tenant does not have is not awaited: the host's kubelet reports
 * it, as on any cluster. */
static void on_ref(void *ctx, enum translate_ref_kind kind, struct str name, bool optional)
{
    struct missing *m = ctx;
    struct sync_run *run = m->run;
    struct syncer *s = run->syncer;
    enum sync_id id = sync_kind_of_ref(s, kind);
    char host_name[64];

    (void)optional;
    if (id == SYNC_NONE || kind == REF_DEVICE_CLAIM || kind == REF_SERVICE_ACCOUNT)
        return; /* sync_device_claims_ready(), has_account() */
    if (!store_get(s->store, syncer_storage(s, id), run->ns, name))
        return;
    translate_name(&s->tenant, run->ns, name, host_name);
    if (reflector_get(syncer_watch(s, id), str_c(host_name)))
        return;
    syncer_add(s, id, run->ns, name); /* its controller adds this pod again (sync_refs_wake) */
    m->any = true;
}

static bool refs_present(struct sync_run *run)
{
    struct missing m = {run, false};

    translate_pod_refs(run->virtual_, on_ref, &m);
    return !m.any;
}

/* --- its account on the host --- */

/* The host refuses a pod without one, and must not find another's under its name. */
static bool has_account(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    enum sync_id id = sync_kind_of_ref(s, REF_SERVICE_ACCOUNT);
    struct str name = json_str_at(run->virtual_, "spec.serviceAccountName");
    const cJSON *account;
    struct err err;

    if (id == SYNC_NONE || !name.n)
        return true;
    account = syncer_virtual(s, run->arena, id, run->ns, name);
    if (account && sync_down_is_there(s, run->arena, id, account))
        return true;
    syncer_add(s, id, run->ns, name); /* its controller adds this pod again */
    if (account)
        return false;
    err_init(&err, run->arena);
    (void)err_not_found(&err, STR(""), STR("serviceaccounts"), name);
    refuse(run, &err);
    return false;
}

cJSON *sync_pod_to_judge(struct syncer *s, struct arena *a, const cJSON *host_pod)
{
    enum sync_id id = sync_kind_of_ref(s, REF_SERVICE_ACCOUNT);
    struct str name = json_str_at(host_pod, "spec.serviceAccountName");
    cJSON *ret = json_copy(a, host_pod), *spec = json_get(ret, "spec");

    if (id == SYNC_NONE || !name.n || reflector_get(syncer_watch(s, id), name))
        return ret;
    json_remove(spec, "serviceAccountName");
    if (s->config->pod_service_account.n)
        json_set_str(a, spec, "serviceAccountName", s->config->pod_service_account);
    return ret;
}

/* --- create --- */

const cJSON *sync_pod_on_host(struct syncer *s, struct arena *a, const cJSON *pod)
{
    const struct host_object *o;
    struct str ns, name, uid;
    char host_name[64];
    cJSON *host = NULL;

    translate_name(&s->tenant, json_str_at(pod, "metadata.namespace"),
                   json_str_at(pod, "metadata.name"), host_name);
    o = reflector_get(s->watches[SYNC_PODS].reflector, str_c(host_name));
    if (!o || json_parse(a, o->bytes, &host, NULL) ||
        !translate_owner(&s->tenant, host, &ns, &name, &uid) || !str_eq(uid, sync_uid(pod)))
        return NULL;
    return host;
}

bool sync_pod_is_on(struct syncer *s, struct arena *a, const cJSON *pod, struct str node)
{
    const cJSON *host = sync_pod_on_host(s, a, pod);

    return host && str_eq(sync_nodes_of_pod(s, host, false), node);
}

static bool names_nodes(const cJSON *pod)
{
    return json_str_at(pod, "spec.nodeName").n || json_path(pod, "spec.affinity.nodeAffinity");
}

/* A pending Binding would come too late for the host's scheduler; node names cannot be translated,
 * nor those known that a pod without devices has to avoid, before the nodes are. */
static bool may_be_placed(struct sync_run *run, const struct pool_choice *choice)
{
    const struct nodes *nodes = run->syncer->nodes;

    if (!sync_is_being_written(run) && (sync_nodes_known(nodes) || !names_nodes(run->virtual_)) &&
        (choice->binding || sync_nodes_listed(nodes)))
        return true;
    reconcile_again_after(run->reconcile, 1000);
    return false;
}

/* Too many nodes to name: only a pod that does not exist yet waits. The affinity of one that exists
 * is immutable, so neither its updates nor its identity depend on the nodes. */
static int check_unfenced(const struct syncer *s, const struct pool_choice *choice, struct err *err)
{
    struct str_list nodes;

    if (choice->binding || sync_nodes_unfenced(s->nodes, &nodes))
        return 0;
    return err_set(err, &ERR_UNAVAILABLE,
                   "too many nodes of the host cluster have devices and no label that keeps "
                   "other pods off: its admin labels them sublet.dev/pool, or sets "
                   "policy.cpuNodes");
}

/* For room in its pool, or for the pool. */
static void say_waits(struct sync_run *run, const struct pool_choice *choice,
                      const struct ledger_wait *wait)
{
    bool closed = choice->binding->pool->maintenance.state != MAINTENANCE_NONE;

    if (sync_pod_say_waiting(run, "SchedulingGated", wait->message))
        reconcile_event(run->reconcile, run->virtual_, closed ? "Warning" : "Normal",
                        closed ? "PoolUnavailable" : "WaitingForQuota", "%.*s",
                        STR_F(wait->message));
    if (wait->again_ms)
        reconcile_again_after(run->reconcile, wait->again_ms);
}

void sync_pod_create(struct sync_run *run)
{
    const struct ledger_pod ledger_pod = {
        .uid = run->uid,
        .key = reconcile_key(run->reconcile),
        .created = json_str_at(run->virtual_, "metadata.creationTimestamp")};
    struct pool_choice choice;
    struct ledger_wait wait;
    struct err err;
    cJSON *pod;

    err_init(&err, run->arena);
    if (translate_pod_gated(run->virtual_)) {
        sync_pod_say_waiting(run, "SchedulingGated",
                             STR("Scheduling is blocked due to non-empty scheduling gates"));
        return;
    }
    if (!sync_device_claims_ready(run, &wait.message)) {
        sync_pod_say_waiting(run, "Unschedulable", wait.message);
        return;
    }
    if (sync_pod_choose(run->syncer, run->arena, run->virtual_, &choice, &err)) {
        sync_ledger_step_out(run->syncer->ledger, run->uid);
        refuse(run, &err);
        return;
    }
    if (sync_ledger_is_over(run->syncer->ledger, &choice, run->uid) && !sync_create_may_come(run))
        sync_ledger_release(run->syncer->ledger, run->uid);
    if (!sync_ledger_admit(run->syncer->ledger, run->arena, &choice, &ledger_pod, &wait)) {
        say_waits(run, &choice, &wait);
        return;
    }
    if (!sync_gang_ready(run, &choice, &wait.message)) {
        if (wait.message.n)
            sync_pod_say_waiting(run, "Unschedulable", wait.message);
        else if (sync_pod_translate(run->syncer, run->arena, run->virtual_, &choice, true, &pod,
                                    &err))
            refuse(run, &err);
        return;
    }
    if (!refs_present(run) || !has_account(run) || !sync_tokens_ensure(run) ||
        !may_be_placed(run, &choice))
        return;
    run->charged = choice.binding && !choice.by_claims;
    if (check_unfenced(run->syncer, &choice, &err) ||
        sync_pod_translate(run->syncer, run->arena, run->virtual_, &choice, true, &pod, &err))
        refuse(run, &err);
    else
        sync_create(run, pod);
}

bool sync_pod_fits_host(struct sync_run *run)
{
    struct pool_choice choice;
    struct err err;
    cJSON *pod;

    err_init(&err, run->arena);
    return !sync_pod_choose(run->syncer, run->arena, run->virtual_, &choice, &err) &&
           !sync_pod_translate(run->syncer, run->arena, run->virtual_, &choice, false, &pod,
                               &err) &&
           translate_pod_is_made_of(run->host, pod);
}

/* --- changes of a running pod --- */

bool sync_pod_is_changed(const cJSON *pod)
{
    return json_i64_at(pod, "metadata.generation", 1) > 1;
}

bool sync_pod_is_applied(struct sync_run *run)
{
    struct pool_choice choice;
    struct err err;
    cJSON *pod, *ephemeral = NULL;

    err_init(&err, run->arena);
    if (object_is_terminating(run->virtual_) && !object_is_terminating(run->host))
        return false;
    return !sync_pod_choose(run->syncer, run->arena, run->virtual_, &choice, &err) &&
           !sync_pod_translate(run->syncer, run->arena, run->virtual_, &choice, false, &pod,
                               &err) &&
           translate_pod_is_applied(run->arena, run->host, pod,
                                    sync_pod_is_changed(run->virtual_)) &&
           !translate_ephemeral(run->arena, &run->syncer->tenant, &choice, run->virtual_, run->host,
                                &ephemeral, &err) &&
           !ephemeral;
}

static cJSON *lacks_ephemeral(struct sync_run *run, const cJSON *wanted)
{
    struct pool_choice choice;
    cJSON *patch = NULL;
    struct err err;

    (void)wanted;
    err_init(&err, run->arena);
    if (sync_pod_choose(run->syncer, run->arena, run->virtual_, &choice, &err) ||
        translate_ephemeral(run->arena, &run->syncer->tenant, &choice, run->virtual_, run->host,
                            &patch, &err))
        return NULL;
    return patch;
}

static bool add_ephemeral(struct sync_run *run, const struct pool_choice *choice)
{
    struct err err;
    cJSON *patch = NULL;

    err_init(&err, run->arena);
    if (!json_count(json_path(run->virtual_, "spec.ephemeralContainers")))
        return false;
    if (translate_ephemeral(run->arena, &run->syncer->tenant, choice, run->virtual_, run->host,
                            &patch, &err)) {
        refuse(run, &err);
        return true;
    }
    return patch && sync_patch(run, &(struct sync_change){.patch = patch,
                                                          .type = PATCH_STRATEGIC,
                                                          .subresource = "/ephemeralcontainers",
                                                          .wanted = json_copy(run->arena, patch),
                                                          .lacks = lacks_ephemeral});
}

/* The host may have set other quantities than those sent: that is its decision, so they are on
 * record whatever the answer has. */
static void on_resized(struct sync_run *run, const struct host_answer *answer,
                       const struct err *err)
{
    struct pool_choice choice;
    struct err why;
    cJSON *pod;

    err_init(&why, run->arena);
    if (err || sync_pod_choose(run->syncer, run->arena, run->virtual_, &choice, &why) ||
        sync_pod_translate(run->syncer, run->arena, run->virtual_, &choice, false, &pod, &why)) {
        sync_patched(run, answer, err);
        return;
    }
    sync_patch(run, &(struct sync_change){.patch = translate_pod_resized(run->arena, pod),
                                          .type = PATCH_MERGE,
                                          .subresource = ""});
}

static bool resize(struct sync_run *run, const cJSON *wanted)
{
    cJSON *patch =
        translate_pod_resize(run->arena, run->host, wanted, sync_pod_is_changed(run->virtual_));

    return patch && sync_patch(run, &(struct sync_change){.patch = patch,
                                                          .type = PATCH_STRATEGIC,
                                                          .subresource = "/resize",
                                                          .then = on_resized});
}

static cJSON *lacks_gates(struct sync_run *run, const cJSON *wanted)
{
    (void)wanted;
    return translate_pod_gates_down(run->arena, run->host, run->virtual_);
}

/* The right is optional, and a controller of the host may own the condition as well: neither is
 * tried again at once, unless the tenant sets the condition to something else. */
static void on_gates(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    struct str text;

    if (err && !host_err_is_permanent(err)) {
        sync_patched(run, answer, err);
        return;
    }
    if (!err) {
        sync_fought_hold(run, run->change);
        sync_patched(run, answer, NULL);
        return;
    }
    reconcile_again_after(run->reconcile, SYNC_FOUGHT_MS);
    if (!sync_fought_hold(run, run->change))
        return;
    text = translate_refusal_up(run->arena, &run->syncer->tenant, err, str_c(run->host_name),
                                run->ns, run->name);
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                    "its readiness gates stay closed on the host cluster: %.*s", STR_F(text));
}

static bool open_gates(struct sync_run *run)
{
    cJSON *patch = lacks_gates(run, NULL);

    return patch && sync_patch(run, &(struct sync_change){.patch = patch,
                                                          .type = PATCH_STRATEGIC,
                                                          .subresource = "/status",
                                                          .wanted = json_copy(run->arena, patch),
                                                          .lacks = lacks_gates,
                                                          .then = on_gates});
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    cJSON *patch =
        translate_pod_update(run->arena, run->host, wanted, sync_pod_is_changed(run->virtual_));

    return patch ? sync_relabel_pod_keep(run, wanted, patch) : NULL;
}

bool sync_pod_update_down(struct sync_run *run)
{
    struct pool_choice choice;
    struct err err;
    cJSON *pod, *patch;

    err_init(&err, run->arena);
    if (sync_pod_choose(run->syncer, run->arena, run->virtual_, &choice, &err) ||
        sync_pod_translate(run->syncer, run->arena, run->virtual_, &choice, false, &pod, &err)) {
        /* It runs as it was admitted; a change that is refused stays in the virtual cluster. */
        refuse(run, &err);
        return true;
    }
    sync_ledger_force(run->syncer->ledger, &choice, run->ns, run->uid);
    patch = lacks(run, pod);
    if (patch && sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", pod, lacks, NULL}))
        return true;
    return add_ephemeral(run, &choice) || resize(run, pod) || open_gates(run);
}
