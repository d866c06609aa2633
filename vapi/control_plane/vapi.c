/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The control plane as a whole: its parts, its start, its end. The states are in core/state.h (enum
 * api_state); STARTING creates CRDs, bootstrap objects, roles and controllers, in this order.
 *
 * It must never listen before everything the API promises exists, and never free anything while a
 * call, a controller or a uv handle could still call back. */
#include "control_plane.h"

#include "../api/discovery/discovery.h"
#include "../api/flow/flow.h"
#include "../api/observe/observe.h"
#include "../api/request/request.h"
#include "../api/respond/respond.h"
#include "../api/watch/watch.h"
#include "../controllers/expiry.h"
#include "../core/notice.h"
#include "../core/quarantine.h"
#include "../extension/extension.h"

#include <assert.h>

#include <sublet/kinds.h>
#include <sublet/pki.h>
#include <sublet/admission.h>
#include <sublet/admission_policies.h>
#include <sublet/webhook.h>
#include <sublet/controller.h>
#include <sublet/conversion.h>
#include <sublet/crd.h>
#include <sublet/store_admin.h>

#define CLOSE_GRACE_MS 5000

/* ---- open ---- */

static void on_call_ended(struct vapi *api);
static void free_api(struct vapi *api);

int vapi_new(const struct vapi_options *options, struct vapi **ret, struct err *err)
{
    struct vapi *api = NEW(struct vapi);

    (void)err;
    api->magic = VAPI_MAGIC;
    api->o = *options;
    api->handlers = &API_HANDLERS;
    api->call_ended = on_call_ended;
    api->all_closed = free_api;
    api->admission_memo = admission_memo_new(options->rng);
    api->admission_policies = admission_policies_new();
    api->version = mem_strdup(options->version);
    api->o.version = str_c(api->version);
    TAILQ_INIT(&api->calls);
    STAILQ_INIT(&api->held);
    STAILQ_INIT(&api->deferred);
    uv_idle_init(options->loop, &api->idle);
    uv_timer_init(options->loop, &api->renewal);
    uv_unref((uv_handle_t *)&api->renewal);
    api->idle.data = api;
    api->renewal.data = api;
    api->open_handles = 3;
    uv_timer_init(options->loop, &api->deadline);
    uv_unref((uv_handle_t *)&api->deadline);
    api->deadline.data = api;
    api->deadline_ms = INT64_MAX;
    budget_open(api);
    flow_open(api);
    streaming_open(api);

    api->registry = registry_new(options->store);
    if (options->config->metrics_from_host)
        registry_add_kinds(api->registry, METRICS_KINDS);
    if (options->config->n_bindings || options->config->fleet_bindings)
        vapi_gpu_usage_serve(api);
    registry_set_clock(api->registry, &api->sequence);
    registry_on_change(api->registry, watch_registry_changed, api);
    api->auth = auth_new(api, options->store, options->pki);
    api->events = events_new(api);
    api->notices = notices_new();
    disk_watch(api);
    rng_uuid(options->rng, api->flow_uid);
    rng_uuid(options->rng, api->level_uid);
    *ret = api;
    return 0;
}

/* ---- where it is reached ---- */

void vapi_publish_address(struct vapi *api, const struct vapi_address *address)
{
    struct arena *a = arena_new(0);
    struct str ips[PKI_MOST_ADDRESSES];
    size_t n = 0;

    arena_free(api->address_texts);
    api->address_texts = a;
    api->address = *address;
    api->address.cluster_ip = arena_str(a, address->cluster_ip);
    api->address.endpoint_ip = arena_str(a, address->endpoint_ip);
    api->address.further = NULL;
    api->address.n_further = 0;
    ips[n++] = address->cluster_ip;
    for (size_t i = 0; i < address->n_further && n < COUNT(ips); i++)
        ips[n++] = address->further[i];
    renewal_serve_at(api, ips, n);
    if (api->address_changed)
        api->address_changed(api->address_ctx);
}

/* ---- start ---- */

static void started(struct vapi *api, const struct err *err)
{
    if (api->state == API_STARTING && !err)
        api_enter(api, API_SERVING);
    if (api->state == API_SERVING) {
        notices_serving(api);
        api->initial = initial_start(api);
    }
    if (api->ready)
        api->ready(api->ready_ctx, err);
    api->ready = NULL;
}

static int listen_now(struct vapi *api, struct err *err)
{
    struct net_options options = {
        .address = api->o.config->listen_address,
        .max_body = API_MAX_BODY,
    };
    struct net_tls tls;

    request_handler(api, &options.handler);
    if (api->o.pki) {
        renewal_serving_tls(api, &tls);
        options.tls = &tls;
    }
    if (net_listen(api->o.loop, &options, &api->server, err))
        return -1;
    if (api->o.pki)
        renewal_start(api);
    return 0;
}

/* Roles need namespaces: those objects are created first. */
static void on_roles(void *ctx, const struct err *failure)
{
    struct vapi *api = ctx;
    struct err err;

    assert(api->magic == VAPI_MAGIC);
    if (failure || api->state != API_STARTING) {
        started(api, failure);
        return;
    }
    api->expiry = expiry_start(api);
    api->controllers = controllers_start(api, api->o.config->controllers_native);
    flow_start(api);
    err_init(&err, NULL);
    started(api, listen_now(api, &err) ? &err : NULL);
}

static void on_bootstrapped(void *ctx, const struct err *failure)
{
    struct vapi *api = ctx;

    assert(api->magic == VAPI_MAGIC);
    if (failure || api->state != API_STARTING)
        started(api, failure);
    else
        auth_bootstrap(api->auth, on_roles, api);
}

int vapi_start(struct vapi *api, void (*ready)(void *ctx, const struct err *err), void *ctx,
               struct err *err)
{
    assert(api->magic == VAPI_MAGIC && api->state == API_NEW);
    if (audit_open(api, err))
        return -1;
    api_enter(api, API_STARTING);
    api->ready = ready;
    api->ready_ctx = ctx;
    api->crds = crds_start(api);
    quarantine_report(api);
    bootstrap_objects(api, on_bootstrapped, api);
    return 0;
}

unsigned vapi_port(const struct vapi *api)
{
    return api->server ? net_port(api->server) : 0;
}

/* ---- close ---- */

static void free_api(struct vapi *api)
{
    void (*closed)(void *) = api->closed;
    void *ctx = api->closed_ctx;

    api_enter(api, API_CLOSED);
    disk_unwatch(api);
    quarantine_unwatch(api);
    flow_free(api);
    budget_free(api);
    streaming_free(api);
    audit_close(api);
    api->metrics = api_metrics_free(api->metrics);
    api->events = events_free(api->events);
    api->notices = notices_free(api->notices);
    api->admission_memo = admission_memo_free(api->admission_memo);
    api->webhooks = webhooks_free(api->webhooks);
    api->conversions = conversions_free(api->conversions);
    api->extensions = extensions_free(api->extensions);
    api->admission_policies = admission_policies_free(api->admission_policies);
    api->auth = auth_free(api->auth);
    api->renewals = mem_free(api->renewals);
    api->registry = registry_free(api->registry);
    vapi_gpu_usage_free(api);
    for (size_t i = 0; i < api->n_checks; i++)
        mem_free(api->checks[i].name);
    mem_free(api->version);
    arena_free(api->address_texts);
    api->magic = 0;
    mem_free(api);
    if (closed)
        closed(ctx);
}

static void on_handle_closed(uv_handle_t *handle)
{
    api_handle_closed(handle->data);
}

static void on_own_closed(void *ctx)
{
    api_handle_closed(ctx);
}

static void on_last_turn(void *ctx)
{
    struct vapi *api = ctx;

    /* Nothing can call back any more: no part is closing, no call is in progress, nothing is
     * deferred. */
    if (api->state != API_STOPPING || api->closing_parts || !TAILQ_EMPTY(&api->calls) ||
        !STAILQ_EMPTY(&api->deferred) || api->store_asked ||
        uv_is_closing((uv_handle_t *)&api->idle))
        return;
    if (api->expiry) {
        api->open_handles++;
        expiry_close(api->expiry, on_own_closed, api);
    }
    if (api->initial) {
        api->open_handles++;
        initial_close(api->initial, on_own_closed, api);
    }
    if (api->openapi) {
        api->open_handles++;
        openapi_close(api->openapi, on_own_closed, api);
    }
    uv_close((uv_handle_t *)&api->idle, on_handle_closed);
    uv_close((uv_handle_t *)&api->renewal, on_handle_closed);
    uv_close((uv_handle_t *)&api->deadline, on_handle_closed);
    flow_close(api);
    streaming_close(api);
}

static void on_crds_closed(void *ctx)
{
    struct vapi *api = ctx;

    assert(api->magic == VAPI_MAGIC);
    api->crds = NULL;
    api->closing_parts--;
    api_defer(api, on_last_turn, api);
}

static void on_part_closed(void *ctx)
{
    struct vapi *api = ctx;

    assert(api->magic == VAPI_MAGIC && api->closing_parts);
    if (--api->closing_parts)
        return;
    api->server = NULL;
    api->controllers = NULL;
    api_enter(api, API_STOPPING);
    if (!api->crds) {
        api_defer(api, on_last_turn, api);
        return;
    }
    api->closing_parts = 1;
    crds_close(api->crds, on_crds_closed, api);
}

static void on_call_ended(struct vapi *api)
{
    const struct call_entry *oldest = TAILQ_FIRST(&api->calls);

    registry_sweep(api->registry, oldest ? oldest->sequence : api->sequence + 1);
    if (api->state == API_STOPPING && !oldest)
        api_defer(api, on_last_turn, api);
}

void vapi_close(struct vapi *api, void (*closed)(void *ctx), void *ctx)
{
    assert(api->magic == VAPI_MAGIC);
    api_enter(api, API_DRAINING);
    api->closed = closed;
    api->closed_ctx = ctx;
    uv_timer_stop(&api->renewal);
    api->holding = false;
    if (!STAILQ_EMPTY(&api->held))
        vapi_set_read_only(api, store_read_only(api->o.store));
    if (api->expiry)
        expiry_stop(api->expiry);
    if (api->initial)
        initial_stop(api->initial);
    /* One count for this function, so that a part that closes at once does not end the phase too
     * early. */
    api->closing_parts = 1;
    if (api->server) {
        api->closing_parts++;
        net_close(api->server, CLOSE_GRACE_MS, on_part_closed, api);
    }
    if (api->controllers) {
        api->closing_parts++;
        controllers_close(api->controllers, on_part_closed, api);
    }
    on_part_closed(api);
}
