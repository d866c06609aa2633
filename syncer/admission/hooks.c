/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks that the API calls: pod rules and pools at admission, the ledger and the mapping in the
 * transaction of the write, host-first Services and verdicts in between. Must never write a record
 * in a dry run, nor wait: what takes time goes through admit(). */
#include "admission/admission.h"
#include "core/compare.h"
#include "gpu/ledger.h"
#include "nodes/node_addresses.h"
#include "nodes/nodes.h"
#include "objects/device_claims.h"
#include "objects/down.h"
#include "objects/mirror.h"
#include "objects/objects.h"
#include "pods/pods.h"
#include "streams/streams.h"

#include <sublet/translate_pool_node.h>

static bool is_core(const struct resource *r, const char *plural)
{
    return !r->group.n && str_eqc(r->plural, plural);
}

/* --- admission checks --- */

/* A template has no name of its own, and a pod that is to be generated none yet. */
static const cJSON *named(struct arena *a, struct str ns, const cJSON *pod)
{
    cJSON *ret, *metadata;

    if (json_str_at(pod, "metadata.name").n && json_str_at(pod, "metadata.namespace").n)
        return pod;
    ret = json_copy(a, pod);
    metadata = json_ensure_object(a, ret, "metadata");
    if (!json_str(json_get(metadata, "name")).n)
        json_set_str(a, metadata, "name", STR("pod"));
    json_set_str(a, metadata, "namespace", ns);
    return ret;
}

/* Of a stored pod its node is settled. */
static int check_pool_node(struct syncer *s, const struct pool_choice *choice, const cJSON *pod,
                           struct err *err)
{
    if (json_str_at(pod, "metadata.resourceVersion").n)
        return 0;
    return translate_check_pool_node(&s->tenant, choice, pod, json_str_at(pod, "spec.nodeName"),
                                     err);
}

static int claims_of(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                     struct pool_claims *ret, struct err *err)
{
    *ret = (struct pool_claims){0};
    if (!json_count(json_path(pod, "spec.resourceClaims")))
        return 0;
    pod = named(a, ns, pod);
    return sync_device_claims_of_pod(s, a, pod, sync_pod_on_host(s, a, pod), ret, err);
}

/* What no pool offers may be offered by one that is not known yet. */
static int resolve(struct syncer *s, struct arena *a, struct str ns, const cJSON *pod,
                   const struct pool_claims *claims, struct pool_choice *ret, struct err *err)
{
    if (!pool_resolve_with(a, s->config, ns, pod, syncer_namespace_labels(s, a, ns), claims, ret,
                           err))
        return 0;
    if (s->pools_known)
        return -1;
    err_clear(err);
    return err_set(err, &ERR_UNAVAILABLE,
                   "the GPUBindings of the host cluster were not read yet; try again later");
}

/* Of a template nothing was to be created, and of a stored pod nothing lacks a pool. */
static void note_unserved(struct syncer *s, struct str ns, const cJSON *pod)
{
    struct refused_owner owner = sync_refused_owner(pod);

    owner.ns = ns;
    if (!json_str_at(pod, "metadata.resourceVersion").n)
        sync_ledger_unserved(s->ledger, &owner);
}

/* Do the pods of this workload start together, or not at all? */
static bool is_gang(const struct pool_choice *choice, const struct vapi_template *of)
{
    return choice->binding && choice->binding->pool->gang && str_eqc(of->kind, "Job");
}

/* Its text follows "is forbidden: ", and no name of a pod has a blank. */
static bool is_guardrail(const struct err *err)
{
    return str_contains(err->message, STR("guardrail "));
}

static bool is_rate(const struct err *err)
{
    return is_guardrail(err) && str_contains(err->message, STR("pods-per-minute: "));
}

/* Passes warnings on, counted. */
struct warned {
    struct syncer *syncer;
    void (*warn)(void *ctx, struct str text);
    void *ctx;
};

static void on_warning(void *ctx, struct str text)
{
    const struct warned *w = ctx;

    sync_rejections_warned(w->syncer);
    w->warn(w->ctx, text);
}

/* A pod that was stored is part of what is used. */
static void warn_of_price(struct syncer *s, struct arena *a, const struct pool_choice *choice,
                          const cJSON *pod, const struct vapi_template *of, struct warned *to)
{
    bool created = !of && !json_str_at(pod, "metadata.resourceVersion").n;
    struct rational used = RATIONAL_ZERO;
    struct pool_price_facts facts = {0};
    struct str text;

    if (choice->binding)
        used = sync_ledger_used(s->ledger, choice->binding->pool);
    if (created)
        facts.used = &used;
    if (of)
        facts = (struct pool_price_facts){.kind = of->kind, .copies = of->copies};
    text = pool_price(a, choice, &facts);
    if (text.n)
        to->warn(to->ctx, text); /* of nothing that is amiss: not counted */
}

static bool warns_of_prices(const struct syncer *s, bool dry_run)
{
    return s->config->price_warnings == PRICES_ALWAYS ||
           (dry_run && s->config->price_warnings == PRICES_DRY_RUN);
}

static int check_pod(void *ctx, struct arena *a, struct str ns, const cJSON *pod,
                     const struct vapi_template *of, bool dry_run,
                     void (*to)(void *to_ctx, struct str text), void *to_ctx, struct err *err)
{
    struct syncer *s = ctx;
    struct warned warned = {s, to, to_ctx}, *warn_ctx = &warned;
    void (*warn)(void *ctx, struct str text) = on_warning;
    struct pool_choice choice;
    struct pool_claims claims;
    struct str text;
    cJSON *host = NULL;

    if (claims_of(s, a, ns, pod, &claims, err))
        return sync_rejected(s, REJECTED_CLAIM, dry_run, err);
    if (resolve(s, a, ns, pod, claims.binding ? &claims : NULL, &choice, err)) {
        if (!of && !dry_run)
            note_unserved(s, ns, pod);
        return sync_rejected(s, is_guardrail(err) ? REJECTED_GUARDRAIL : REJECTED_POOL, dry_run,
                             err);
    }
    if (translate_check_pod(a, &s->tenant, ns, pod, err))
        return sync_rejected(s, REJECTED_POD, dry_run, err);
    if (translate_check_pod_classes(&s->tenant, pod, err))
        return sync_rejected(s, REJECTED_CLASS, dry_run, err);
    if (check_pool_node(s, &choice, pod, err))
        return sync_rejected(s, REJECTED_NODE, dry_run, err);
    pool_warnings(a, s->config, &choice, pod, warn, warn_ctx);
    if (of && pool_exceeded_by(a, &choice, of->copies, is_gang(&choice, of), &text))
        warn(warn_ctx,
             arena_printf(a, "%.*s \"%.*s\": %.*s", STR_F(of->kind), STR_F(of->name), STR_F(text)));
    if (warns_of_prices(s, dry_run))
        warn_of_price(s, a, &choice, pod, of, &warned);
    if (!dry_run)
        return 0;
    pod = named(a, ns, pod);
    if (sync_pod_translate(s, a, pod, &choice, false, &host, err))
        return -1;
    sync_compare_warn(a, STR("Pod"), pod, host, warn, warn_ctx);
    return 0;
}

/* Its class is settled there, and may be copied up from the host. */
static bool is_on_host(struct syncer *s, struct arena *a, const cJSON *claim)
{
    struct mapping m = sync_mapping_get(s, a, SYNC_CLAIMS, json_str_at(claim, "metadata.namespace"),
                                        json_str_at(claim, "metadata.name"));

    return m.host_uid.n && str_eq(m.uid, sync_uid(claim));
}

/* A class is checked when it is set. While the host's default is not known, the claim's reconcile
 * checks it instead: the API must work without the host. */
static int check_claim(void *ctx, struct arena *a, const cJSON *claim, const cJSON *old,
                       struct err *err)
{
    struct syncer *s = ctx;

    if (translate_check_pvc(a, &s->tenant, claim, err))
        return sync_rejected(s, REJECTED_CLAIM, false, err);
    if (old && (is_on_host(s, a, old) || json_equal(json_path(old, "spec.storageClassName"),
                                                    json_path(claim, "spec.storageClassName"))))
        return 0;
    if (sync_claim_is_own(s, a, claim) || !translate_check_pvc_class(&s->tenant, claim, err))
        return 0;
    if (err->kind != &ERR_UNAVAILABLE)
        return sync_rejected(s, REJECTED_CLASS, false, err);
    err_clear(err);
    return 0;
}

static int check_synced(void *ctx, struct arena *a, const struct resource *r, const cJSON *object,
                        const cJSON *old, void (*warn)(void *warn_ctx, struct str text),
                        void *warn_ctx, struct err *err)
{
    struct syncer *s = ctx;
    struct warned warned = {s, warn, warn_ctx};

    if (object && (is_core(r, "configmaps") || is_core(r, "secrets")))
        translate_data_warnings(a, &s->tenant, object, on_warning, &warned);
    if (sync_device_claim_check(ctx, a, r, object, old, err))
        return sync_rejected(s, REJECTED_CLAIM, false, err);
    if (sync_webhooks_check(s, a, r, object, old, err) ||
        (is_core(r, "services") && sync_service_check(s, a, object, old, err)) ||
        sync_mirror_check(ctx, r, object, old, err) || sync_down_check(ctx, a, r, object, old, err))
        return sync_rejected(s, REJECTED_OBJECT, false, err);
    return 0;
}

static bool has_effect(void *ctx, const struct resource *r)
{
    return sync_down_has(ctx, r);
}

static bool node_admits(void *ctx, struct arena *a, struct str ns, const cJSON *pod,
                        struct str node)
{
    return sync_nodes_admit(ctx, a, ns, pod, node);
}

/* --- the transaction --- */

/* If the store then refuses the pod, its controller finds the record without a pod and removes the
 * record and the charge. */
static void note_pod(struct syncer *s, const cJSON *pod, struct mapping *m)
{
    struct str ns = json_str_at(pod, "metadata.namespace");
    struct str name = json_str_at(pod, "metadata.name");

    sync_mapping_begin(m, sync_uid(pod));
    sync_mapping_put(s, SYNC_PODS, ns, name, m);
    syncer_add(s, SYNC_PODS, ns, name);
}

/* Each force-deleted pod of this name may still be on the host; the record has room for so many. */
static int check_predecessors(const struct mapping *m, struct str name, struct err *err)
{
    if (!sync_mapping_is_full(m))
        return 0;
    return err_set(err, &ERR_TOO_MANY_REQUESTS,
                   "pods \"%.*s\" was removed and created again %d times before the host cluster "
                   "could follow; try again later",
                   STR_F(name), MAPPING_OLD);
}

static int store_pod(struct syncer *s, struct arena *a, const cJSON *pod, bool dry_run,
                     struct err *err)
{
    struct str ns = json_str_at(pod, "metadata.namespace"),
               name = json_str_at(pod, "metadata.name");
    struct mapping m = sync_mapping_get(s, a, SYNC_PODS, ns, name);
    struct pool_choice choice;
    bool queued;

    /* Created concurrently during admission: the store reports the conflict, and the other pod's
     * record stands. */
    if (store_latest(s->store, syncer_resource(s, "", "pods")->storage, ns, name))
        return 0;
    if (check_predecessors(&m, name, err) || sync_pod_choose(s, a, pod, &choice, err))
        return -1;
    if (!pod_is_finished(pod) && choice.binding && !s->compared)
        return err_set(err, &ERR_UNAVAILABLE,
                       "this virtual cluster was restored: its pods on the host cluster are not "
                       "counted yet; try again later");
    if (!pod_is_finished(pod) &&
        sync_ledger_charge(s->ledger, a, &choice, pod, dry_run, &queued, err))
        return sync_rejected(s, is_rate(err) ? REJECTED_RATE : REJECTED_QUOTA, dry_run, err);
    if (dry_run)
        return 0;
    note_pod(s, pod, &m);
    if (choice.binding)
        sync_rejections_created(s, choice.binding->pool->name);
    return 0;
}

/* A Binding either repeats the decision of the host's scheduler, or comes before the host has the
 * pod, which then goes down with an affinity to that node (sync_pod_create). A pod that the host's
 * scheduler already has cannot be bound here. */
static int check_binding(struct syncer *s, struct arena *a, const cJSON *pod, const cJSON *old,
                         struct err *err)
{
    struct str ns = json_str_at(pod, "metadata.namespace"),
               name = json_str_at(pod, "metadata.name");
    struct str node = json_str_at(pod, "spec.nodeName");
    struct mapping m = sync_mapping_get(s, a, SYNC_PODS, ns, name);
    struct pool_choice choice;

    if (!node.n || json_str_at(old, "spec.nodeName").n || sync_pod_is_on(s, a, pod, node))
        return 0;
    if (sync_nodes_meaning(s->nodes, node) == NODE_UNKNOWN)
        return err_forbidden(err, STR_NULL, STR("pods"), name,
                             "target.name: \"%.*s\": this virtual cluster has no such node",
                             STR_F(node));
    if (s->config->nodes_per_pool &&
        (sync_pod_choose(s, a, pod, &choice, err) ||
         translate_check_pool_node(&s->tenant, &choice, pod, node, err)))
        return -1;
    if (m.tried || m.host_uid.n)
        return err_conflict(
            err, STR(""), STR("pods/binding"), name,
            arena_printf(a, "pod %.*s is with the host cluster's scheduler already", STR_F(name))
                .p);
    return 0;
}

static int before_store(void *ctx, struct arena *a, const struct resource *r, const cJSON *object,
                        const cJSON *old, bool dry_run, struct err *err)
{
    struct syncer *s = ctx;

    if (object && !old && is_core(r, "pods"))
        return store_pod(s, a, object, dry_run, err);
    if (object && old && is_core(r, "pods"))
        return check_binding(s, a, object, old, err);
    if (object && !old && str_eqc(r->group, "resource.k8s.io") &&
        str_eqc(r->plural, "resourceclaims"))
        return sync_device_claim_store(s, a, object, dry_run, err);
    if (object && is_core(r, "services"))
        return sync_service_before_store(s, a, object, dry_run, err);
    return 0;
}

/* --- asynchronous admission --- */

static bool wants_admit(void *ctx, const struct resource *r, const cJSON *object, const cJSON *old)
{
    struct syncer *s = ctx;

    if (syncer_is_closing(s))
        return false;
    if (is_core(r, "services"))
        return sync_service_wants_admit(s, object, old);
    if (is_core(r, "nodes"))
        return sync_node_wants_notice(object, old);
    return sync_verdict_wanted(s, r, object, old);
}

static void warn_of_service(struct syncer *s, struct arena *a, const cJSON *service, void *admit)
{
    cJSON *host = NULL;
    struct err err;

    err_init(&err, a);
    if (!translate_service(a, &s->tenant, service, &host, &err) && host)
        sync_compare_warn(a, STR("Service"), service, host, vapi_admit_warn, admit);
}

static void admit(void *ctx, struct arena *a, const struct resource *r, cJSON *object,
                  const cJSON *old, bool dry_run,
                  void (*done)(void *done_ctx, const struct err *err), void *done_ctx)
{
    struct syncer *s = ctx;

    if (dry_run && is_core(r, "services"))
        warn_of_service(s, a, object, done_ctx);
    if (is_core(r, "services"))
        sync_service_admit(s, a, object, old, dry_run, done, done_ctx);
    else if (is_core(r, "nodes"))
        sync_node_notice(s, a, done, done_ctx);
    else
        sync_verdict_request(s, a, r, object, old, dry_run, done, done_ctx);
}

static void admit_undo(void *ctx, const struct resource *r, const cJSON *object)
{
    if (is_core(r, "services"))
        sync_service_admit_undo(ctx, object);
}

static void quarantine_over(void *ctx)
{
    syncer_quarantine_over(ctx);
}

static void connect_host(void *ctx, struct proxy *p)
{
    sync_streams_connect(ctx, p);
}

static void fetch_openapi(void *ctx, struct str path, int64_t timeout_ms,
                          void (*done)(void *done_ctx, struct str body, const struct err *err),
                          void *done_ctx)
{
    sync_descriptions_fetch(ctx, path, timeout_ms, done, done_ctx);
}

static void measure(void *ctx, const struct vapi_measure *what, vapi_measured_cb done,
                    void *done_ctx)
{
    sync_metrics_fetch(ctx, what, done, done_ctx);
}

static struct str node_at(void *ctx, struct str ip)
{
    struct syncer *s = ctx;

    return sync_node_address_owner(sync_nodes_addresses(s->nodes), ip);
}

static void devices(void *ctx, void (*done)(void *done_ctx, struct str body, const struct err *err),
                    void *done_ctx)
{
    const struct syncer *s = ctx;

    sync_devices_fetch(s->devices, done, done_ctx);
}

static void webhook(void *ctx, const struct vapi_webhook *q, vapi_webhook_cb done, void *done_ctx)
{
    const struct syncer *s = ctx;

    sync_webhooks_send(s->webhooks, q, done, done_ctx);
}

static cJSON *gpu_usage(void *ctx, struct arena *a, bool cluster, struct str ns)
{
    return sync_usage_list(ctx, a, cluster, ns);
}

void sync_hooks_register(struct syncer *s)
{
    struct vapi_hooks hooks = {.ctx = s,
                               .before_store = before_store,
                               .check_pod = check_pod,
                               .node_admits = node_admits,
                               .check_claim = check_claim,
                               .check_synced = check_synced,
                               .has_effect = has_effect,
                               .admit = admit,
                               .wants_admit = wants_admit,
                               .admit_undo = admit_undo,
                               .quarantine_over = quarantine_over,
                               .connect = connect_host,
                               .openapi = fetch_openapi,
                               .webhook = webhook};

    hooks.gpu_usage = gpu_usage;
    hooks.forward = &SYNC_EXTENSION_OPS;
    hooks.kubelets = s->config->kubelets;
    if (sync_nodes_addresses(s->nodes))
        hooks.node_at = node_at;
    if (s->config->metrics_from_host)
        hooks.measure = measure;
    if (s->config->telemetry_fleet.n)
        hooks.devices = devices;
    vapi_set_hooks(s->api, &hooks);
    vapi_add_metrics(s->api, sync_usage_metrics, s);
    vapi_add_metrics(s->api, sync_rejections_metrics, s);
    vapi_add_metrics(s->api, sync_reclaims_metrics, s);
    if (s->config->telemetry_fleet.n)
        vapi_add_metrics(s->api, sync_devices_metrics, s->devices);
}
