/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The state of the control plane, which every higher folder shares, and what the files of core
 * offer them beside the public headers. */
#pragma once

#include <sys/queue.h>
#include <uv.h>

#include <sublet/call.h>
#include <sublet/clock.h>
#include <sublet/net.h>
#include <sublet/read_only.h>
#include "state.h"

#define VAPI_MAGIC     0x5AB1E7A0u
#define API_MAX_BODY   (3u * 1024 * 1024)
#define API_MAX_CHECKS 16

struct api_audit;
struct api_metrics;
struct call_entry;
struct call_handlers;
struct events;
struct initial;
struct flows;
struct notices;
struct openapi;
struct streaming;

struct api_check {
    char *name;
    const char *(*check)(void *ctx);
    void *ctx;
};

struct api_metric_writer {
    void (*write)(void *ctx, struct buf *out);
    void *ctx;
};

/* Revisions of the last minutes, oldest first; see list_token.c. */
struct token_marks {
    struct {
        int64_t at_ms, revision;
    } mark[16];
    size_t n;
    int64_t floor; /* the newest revision that is too old to list from */
};

struct vapi {
    unsigned magic;
    enum api_state state;
    struct vapi_options o;
    struct vapi_hooks hooks;
    const struct call_handlers *handlers;
    void (*call_ended)(struct vapi *api); /* a call ended; vapi.c */
    void (*all_closed)(struct vapi *api); /* open_handles is 0; vapi.c */
    size_t call_arena;                    /* the limit of one call's arena */
    char *version;
    struct registry *registry;
    struct crd_version *gpu_usage[2];   /* NULL: not served */
    struct watch_usages *usage_watches; /* NULL where they are not served */
    struct auth *auth;
    struct crds *crds;
    struct controllers *controllers;
    struct net_server *server;
    struct admission_memo *admission_memo;
    struct webhooks *webhooks; /* NULL until the first write */
    struct conversions *conversions;
    struct extensions *extensions; /* NULL: none was used */
    struct admission_policies *admission_policies;
    struct events *events;
    struct notices *notices;
    struct expiry *expiry;
    struct initial *initial; /* NULL: nothing is to be applied */
    struct openapi *openapi; /* NULL until the first request */
    /* Of the headers that name the matched FlowSchema and priority level. */
    char flow_uid[37], level_uid[37];
    struct api_check checks[API_MAX_CHECKS];
    size_t n_checks;
    bool store_asked; /* whether the store responds; health_checks.c */
    int64_t store_asked_ms;
    struct api_metric_writer metric_writers[API_MAX_CHECKS];
    size_t n_metric_writers;
    struct api_audit *audit;     /* NULL: there is no audit log */
    struct api_metrics *metrics; /* NULL until the first request */
    struct flows *flows;
    struct streaming *streaming;
    struct budget *budget;
    struct token_marks tokens;
    LIST_HEAD(, vapi_order) orders;  /* read_only.c */
    LIST_HEAD(, vapi_retry) retries; /* retry.c */
    STAILQ_HEAD(, held_call) held;   /* waiting writes, in order of arrival */
    bool holding, usage_gone;        /* the hook `gpu_usage` was taken away */
    struct vapi_address address;     /* address clients use */
    struct arena *address_texts;     /* of it; NULL: not published yet */
    void (*address_changed)(void *ctx);
    void *address_ctx;
    uv_timer_t deadline; /* of the call that is due first */
    int64_t deadline_ms;
    /* Calls that are unanswered, or whose exchange is still open; oldest first. */
    TAILQ_HEAD(, call_entry) calls;
    uint64_t sequence;
    /* Answers that must wait until the caller returned. */
    uv_idle_t idle;
    STAILQ_HEAD(deferred_list, deferred) deferred;
    uv_timer_t renewal;             /* of certificates */
    struct vapi_renewals *renewals; /* NULL before it listens, and without keys */
    bool watches_stale;             /* watch.c serves them when the caller returned */
    unsigned open_handles, closing_parts;
    void (*ready)(void *ctx, const struct err *err);
    void *ready_ctx;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* context.c */
/* Runs run(ctx) once from the loop, after every function on the stack has returned. */
void api_defer(struct vapi *api, void (*run)(void *ctx), void *ctx);
/* Reports that one of api->open_handles is closed. */
void api_handle_closed(struct vapi *api);

/* registry.c */
void registry_sweep(struct registry *g, uint64_t oldest_call);
void registry_set_clock(struct registry *g, const uint64_t *sequence);

/* events.c */
struct events *events_new(struct vapi *api);
struct events *events_free(struct events *e);

/* index.c, convert.c */
/* Checks c's field selector, 400 `field label not supported: x`, and translates its names to those
 * of the index: the stored version's. */
int index_select(struct call *c, struct err *err) MUST_CHECK;
/* True when stored bytes need no conversion to this version. */
bool convert_is_identity(const struct resource *r, const struct store_object *o);

/* status.c: a decoder's message without the position, which Go does not report. */
struct str status_body_text(struct str message);

/* read_only.c: recomputes whether writes are possible, and notifies listeners of a pause. */
void read_only_settle(struct vapi *api);

/* disk.c */
void disk_watch(struct vapi *api);
void disk_unwatch(struct vapi *api);
/* Whether err is a refused write that the notice explains. */
bool disk_excuses(const struct vapi *api, const struct err *err);
