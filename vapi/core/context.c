/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Access to the shared parts of the control plane: its store, clock, registry and options, the
 * callbacks that higher rooms registered, and deferred work on the loop. Must never start or end a
 * part. */
#include "core.h"

#include <assert.h>

#include <sublet/admission.h>
#include <sublet/admission_policies.h>

static const struct str INTERNAL_GROUPS[] = {{"system:masters", 14}, {"system:authenticated", 20}};
const struct user USER_INTERNAL = {
    .name = {"system:sublet", 13},
    .groups = INTERNAL_GROUPS,
    .n_groups = 2,
};

struct deferred {
    STAILQ_ENTRY(deferred) place;
    void (*run)(void *ctx);
    void *ctx;
};

/* ---- deferred until the caller returned ---- */

static void on_idle(uv_idle_t *handle)
{
    struct vapi *api = handle->data;
    struct deferred_list list = STAILQ_HEAD_INITIALIZER(list);
    struct deferred *first;

    assert(api->magic == VAPI_MAGIC);
    STAILQ_CONCAT(&list, &api->deferred);
    uv_idle_stop(handle);
    while ((first = STAILQ_FIRST(&list))) {
        struct deferred d = *first;

        STAILQ_REMOVE_HEAD(&list, place);
        mem_free(first);
        d.run(d.ctx);
    }
}

void api_defer(struct vapi *api, void (*run)(void *ctx), void *ctx)
{
    struct deferred *d = NEW(struct deferred);

    *d = (struct deferred){.run = run, .ctx = ctx};
    STAILQ_INSERT_TAIL(&api->deferred, d, place);
    uv_idle_start(&api->idle, on_idle);
}

void api_handle_closed(struct vapi *api)
{
    assert(api->magic == VAPI_MAGIC && api->open_handles);
    if (--api->open_handles == 0)
        api->all_closed(api);
}

void api_enter(struct vapi *api, enum api_state to)
{
    static const unsigned next[N_API_STATES] = {
        [API_NEW] = 1u << API_STARTING | 1u << API_DRAINING,
        [API_STARTING] = 1u << API_SERVING | 1u << API_DRAINING,
        [API_SERVING] = 1u << API_DRAINING,
        [API_DRAINING] = 1u << API_STOPPING,
        [API_STOPPING] = 1u << API_CLOSED,
        [API_CLOSED] = 0,
    };

    assert(next[api->state] & 1u << to);
    api->state = to;
}

/* ---- registered by higher rooms ---- */

void vapi_set_hooks(struct vapi *api, const struct vapi_hooks *hooks)
{
    assert(api->state == API_NEW || !hooks->ctx); /* the owner of the hooks may be closed */
    api->usage_gone = (api->usage_gone || api->hooks.gpu_usage) && !hooks->gpu_usage;
    api->hooks = *hooks;
}

void vapi_add_check(struct vapi *api, const char *name, const char *(*check)(void *ctx), void *ctx)
{
    assert(api->n_checks < API_MAX_CHECKS);
    api->checks[api->n_checks++] = (struct api_check){mem_strdup(str_c(name)), check, ctx};
}

/* ---- published address ---- */

const struct vapi_address *vapi_published_address(const struct vapi *api)
{
    return api->address_texts ? &api->address : NULL;
}

void vapi_on_address(struct vapi *api, void (*changed)(void *ctx), void *ctx)
{
    api->address_changed = changed;
    api->address_ctx = ctx;
}

/* ---- accessors ---- */

struct admission_policies *vapi_admission_policies(struct vapi *api)
{
    return api->admission_policies;
}

struct admission_memo *vapi_admission_memo(struct vapi *api)
{
    return api->admission_memo;
}

struct registry *vapi_registry(struct vapi *api)
{
    return api->registry;
}

struct store *vapi_store(struct vapi *api)
{
    return api->o.store;
}

struct auth *vapi_auth(struct vapi *api)
{
    return api->auth;
}

struct pki *vapi_pki(struct vapi *api)
{
    return api->o.pki;
}

const struct clock *vapi_clock(const struct vapi *api)
{
    return api->o.clock;
}

const struct rng *vapi_rng(const struct vapi *api)
{
    return api->o.rng;
}

struct uv_loop_s *vapi_loop(const struct vapi *api)
{
    return api->o.loop;
}

const struct config *vapi_config(const struct vapi *api)
{
    return api->o.config;
}

struct controllers *vapi_controllers(const struct vapi *api)
{
    return api->controllers;
}

const struct vapi_hooks *vapi_get_hooks(const struct vapi *api)
{
    return &api->hooks;
}
