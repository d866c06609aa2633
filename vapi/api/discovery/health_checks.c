/* SPDX-License-Identifier: Apache-2.0 */
/* The health checks, under the names that scripts, dashboards and upstream's own end-to-end test
 * request from an API server. Each name means the same as upstream, or its equivalent here. A check
 * must never wait, and /livez must never fail for a condition that a restart does not repair.
 * Source: apiserver pkg/server, controlplane and kube-aggregator, where they call AddPostStartHook
 * and AddHealthChecks. */
#include "discovery.h"

const struct health_path HEALTH_PATHS[N_HEALTH_PATHS] = {
    {"healthz", HEALTHZ}, {"livez", LIVEZ}, {"readyz", READYZ}};

/* How long the store may not respond: until readers should use another endpoint, and until only a
 * restart can help. Cloud disks pause for seconds. */
#define STORE_READY_MS 5000
#define STORE_LIVE_MS  60000

/* Always true: either the response itself is the check, or the work is part of each request and
 * cannot lag. */
static const char *always(struct vapi *api, enum health_endpoint which)
{
    (void)api;
    (void)which;
    return NULL;
}

/* The API listens only after all of this (vapi.c), and a failure ends the process: the store is
 * read completely, including the CRDs; the objects, roles and priority levels every cluster has
 * exist; the controllers run, and they read the store directly. */
static const char *started(struct vapi *api, enum health_endpoint which)
{
    (void)which;
    return api->state >= API_SERVING ? NULL : "not finished";
}

/* While it drains, a load balancer should use another endpoint. */
static const char *not_draining(struct vapi *api, enum health_endpoint which)
{
    (void)which;
    return api->state == API_SERVING ? NULL : "process is shutting down";
}

/* It is renewed long before it expires: an expired one means that renewal failed. */
static const char *certificate_good(struct vapi *api, enum health_endpoint which)
{
    int64_t from, end;

    (void)which;
    if (!api->o.pki)
        return NULL;
    pki_lifetime(api->o.pki, PKI_SERVING, &from, &end);
    return clock_wall_s(api->o.clock) < end ? NULL : "serving certificate expired";
}

static void on_store_answered(void *ctx, const struct err *err)
{
    struct vapi *api = ctx;

    /* A refused write is a response: a full disk can still be read (etcd does the same). */
    (void)err;
    api->store_asked = false;
    api->call_ended(api);
}

/* Reports the result of the previous probe, and starts the next one. */
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
    {"log", ALL, always}, /* log messages are not queued */
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
    {HOOK "start-kube-apiserver-identity-lease-controller", ALL,
     always}, /* and no leases for peers */
    {HOOK "start-kube-apiserver-identity-lease-garbage-collector", ALL, always},
    {HOOK "storage-readiness", ALL, started},
    {HOOK "start-legacy-token-tracking-controller", ALL, started},
    {HOOK "start-service-ip-repair-controllers", ALL, always}, /* the host assigns them */
    {HOOK "rbac/bootstrap-roles", ALL, started},
    {HOOK "scheduling/bootstrap-system-priority-classes", ALL, started},
    {HOOK "priority-and-fairness-config-producer", ALL, started},
    {HOOK "bootstrap-controller", ALL, started},
    {HOOK "start-kubernetes-service-cidr-controller", ALL, started},
    {HOOK "aggregator-reload-proxy-client-cert", ALL, always}, /* there are no aggregated APIs: */
    {HOOK "start-kube-aggregator-informers", ALL, always},
    {HOOK "apiservice-status-local-available-controller", ALL, started},
    {HOOK "apiservice-status-remote-available-controller", ALL, always},
    {HOOK "apiservice-registration-controller", ALL, started},
    {HOOK "apiservice-discovery-controller", ALL, always}, /* built on request, like OpenAPI */
    {HOOK "kube-apiserver-autoregistration", ALL, started},
    {"autoregister-completion", ALL, started},
    {HOOK "apiservice-openapi-controller", ALL, always},
    {HOOK "apiservice-openapiv3-controller", ALL, always},
};
const size_t HEALTH_N_CHECKS = COUNT(HEALTH_CHECKS);

const struct health_check HEALTH_LAST = {"shutdown", READYZ, not_draining};
