/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a control plane's health, by the names that scripts, dashboards and upstream's
 * own end-to-end test ask an API server for. Each name stands for what it does upstream, or for
 * what does that here. A check must never wait, and none may fail over what a restart cannot mend
 * where a restart is the answer (/livez). Source: apiserver pkg/server, controlplane and
 * kube-aggregator, where they call AddPostStartHook and AddHealthChecks. */
#include "discovery.h"

const struct health_path HEALTH_PATHS[N_HEALTH_PATHS] = {
    {"healthz", HEALTHZ}, {"livez", LIVEZ}, {"readyz", READYZ}};

/* How long the store may be silent: until readers had better look elsewhere, and until only a new
 * process can help. Disks of a cloud pause for seconds. */
#define STORE_READY_MS 5000
#define STORE_LIVE_MS  60000

/* Always true: that it answers is the check, or it is about work that is done as part of each
 * request and cannot be behind. */
static const char *always(struct vapi *api, enum health_endpoint which)
{
    (void)api;
    (void)which;
    return NULL;
}

/* Nobody is listened to before all of this was done (vapi.c), and a failure of it ends the process:
 * the store was read whole, and with it the CRDs; the objects, the roles and the levels every
 * cluster has are there; the controllers run, which read the store as it is. */
static const char *started(struct vapi *api, enum health_endpoint which)
{
    (void)which;
    return api->state >= API_SERVING ? NULL : "not finished";
}

/* Once it drains, a load balancer should look elsewhere. */
static const char *not_draining(struct vapi *api, enum health_endpoint which)
{
    (void)which;
    return api->state == API_SERVING ? NULL : "process is shutting down";
}

/* Renewed long before its end: it ended because nothing could be renewed. */
static const char *certificate_good(struct vapi *api, enum health_endpoint which)
{
    int64_t from, end;

    (void)which;
    if (!api->o.pki)
        return NULL;
    pki_life(api->o.pki, PKI_SERVING, &from, &end);
    return clock_wall_s(api->o.clock) < end ? NULL : "serving certificate expired";
}

static void on_store_answered(void *ctx, const struct err *err)
{
    struct vapi *api = ctx;

    /* A refused write is an answer: of a full disk all can be read (etcd does as much). */
    (void)err;
    api->store_asked = false;
    api->call_ended(api);
}

/* Who asks for it now learns what became of the question before. */
static const char *store_answers(struct vapi *api, enum health_endpoint which)
{
    int64_t now = clock_mono_ms(api->o.clock);
    int64_t most = which == READYZ ? STORE_READY_MS : STORE_LIVE_MS;

    if (api->store_asked)
        return now - api->store_asked_ms < most ? NULL : "the store does not answer";
    api->store_asked = true;
    api->store_asked_ms = now;
    store_on_commit(api->o.store, on_store_answered, api);
    return NULL;
}

#define ALL  (HEALTHZ | LIVEZ | READYZ)
#define HOOK "poststarthook/"

const struct health_check HEALTH_CHECKS[] = {
    {"ping", ALL, always},
    {"log", ALL, always}, /* messages are not queued */
    {"loopback-serving-certificate", HEALTHZ | LIVEZ, certificate_good},
    {"etcd", ALL, store_answers},
    {"etcd-readiness", READYZ, store_answers},
    {"informer-sync", READYZ, started},
    {HOOK "start-apiserver-admission-initializer", ALL, started},
    {HOOK "generic-apiserver-start-informers", ALL, started},
    {HOOK "priority-and-fairness-config-consumer", ALL, started},
    {HOOK "priority-and-fairness-filter", ALL, started},
    {HOOK "storage-object-count-tracker-hook", ALL, always}, /* counted with each write */
    {HOOK "start-apiextensions-informers", ALL, started},
    {HOOK "start-apiextensions-controllers", ALL, started},
    {HOOK "crd-informer-synced", ALL, started},
    {HOOK "start-system-namespaces-controller", ALL, started},
    {HOOK "peer-endpoint-reconciler-controller", ALL, always}, /* one process: no peers */
    {HOOK "start-cluster-authentication-info-controller", ALL, started},
    {HOOK "start-kube-apiserver-identity-lease-controller", ALL, always}, /* nor leases of them */
    {HOOK "start-kube-apiserver-identity-lease-garbage-collector", ALL, always},
    {HOOK "storage-readiness", ALL, started},
    {HOOK "start-legacy-token-tracking-controller", ALL, started},
    {HOOK "start-service-ip-repair-controllers", ALL, always}, /* the host gives them */
    {HOOK "rbac/bootstrap-roles", ALL, started},
    {HOOK "scheduling/bootstrap-system-priority-classes", ALL, started},
    {HOOK "priority-and-fairness-config-producer", ALL, started},
    {HOOK "bootstrap-controller", ALL, started},
    {HOOK "start-kubernetes-service-cidr-controller", ALL, started},
    {HOOK "aggregator-reload-proxy-client-cert", ALL, always}, /* none is aggregated: */
    {HOOK "start-kube-aggregator-informers", ALL, always},
    {HOOK "apiservice-status-local-available-controller", ALL, started},
    {HOOK "apiservice-status-remote-available-controller", ALL, always},
    {HOOK "apiservice-registration-controller", ALL, started},
    {HOOK "apiservice-discovery-controller", ALL, always}, /* made when asked for, as OpenAPI */
    {HOOK "kube-apiserver-autoregistration", ALL, started},
    {"autoregister-completion", ALL, started},
    {HOOK "apiservice-openapi-controller", ALL, always},
    {HOOK "apiservice-openapiv3-controller", ALL, always},
};
const size_t N_HEALTH_CHECKS = sizeof(HEALTH_CHECKS) / sizeof(HEALTH_CHECKS[0]);

const struct health_check HEALTH_LAST = {"shutdown", READYZ, not_draining};
