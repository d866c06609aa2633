/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What the API calls before it stores an object: hooks, and the host's verdict. */
#pragma once

#include "core/dry_run.h"

/* --- verdict.c --- */
bool sync_verdict_wanted(const struct syncer *s, const struct resource *r, const cJSON *object,
                         const cJSON *old);
void sync_verdict_request(struct syncer *s, struct arena *a, const struct resource *r,
                          const cJSON *object, const cJSON *old, bool dry_run,
                          void (*done)(void *ctx, const struct err *err), void *ctx);

/* The pod, or the pod of a workload's template, under its name; NULL: it has none. */
cJSON *sync_verdict_pod(struct arena *a, const struct resource *r, const cJSON *object);
/* Is it a quota of the host that refuses, of devices alone? The quota is the last that a host asks:
 * "exceeded quota: q, requested: a=1,b=2, used: a=3,b=4, limited: ...". */
bool sync_verdict_is_of_devices(const struct err *refusal);

/* --- usage.c --- */
/* See gpu_usage of struct vapi_hooks. */
cJSON *sync_usage_list(struct syncer *s, struct arena *a, bool cluster, struct str ns);
/* For vapi_add_metrics(). */
void sync_usage_metrics(void *syncer, struct buf *out);

/* --- rejections.c --- */
enum rejection {
    REJECTED_POOL,      /* no pool serves the pod */
    REJECTED_GUARDRAIL, /* of a pool: GPUs of a pod or container, devices of a claim */
    REJECTED_RATE,      /* pods in this minute */
    REJECTED_QUOTA,     /* GPUs of the binding */
    REJECTED_POD,       /* the rules of pods on the host */
    REJECTED_CLASS,     /* a class of priority, runtime or storage that is not offered */
    REJECTED_NODE,      /* the node that the pod, or a Binding, names */
    REJECTED_CLAIM,     /* device and volume claims */
    REJECTED_OBJECT,    /* what else is synced: Services, ConfigMaps, ... */
    REJECTED_HOST,      /* the host refused it in a dry run */
    REJECTED_NOT_READY, /* it could not be decided yet */
    N_REJECTIONS
};
struct rejections *sync_rejections_new(void);
struct rejections *sync_rejections_free(struct rejections *r); /* takes NULL */
/* Counts a write that err refuses, but for a dry run. Returns -1. */
int sync_rejected(struct syncer *s, enum rejection why, bool dry_run, const struct err *err);
void sync_rejections_warned(struct syncer *s);                   /* one warning was sent */
void sync_rejections_created(struct syncer *s, struct str pool); /* a pod with its GPUs */
void sync_rejections_metrics(void *syncer, struct buf *out);     /* for vapi_add_metrics() */

/* --- webhooks.c --- */
struct sync_webhooks *sync_webhooks_new(struct syncer *s);
/* See webhook of struct vapi_hooks. */
void sync_webhooks_send(struct sync_webhooks *w, const struct vapi_webhook *q, vapi_webhook_cb done,
                        void *ctx);
/* Answers what is under way. False: there is nothing to close; closed() is not called. */
bool sync_webhooks_close(struct sync_webhooks *w, void (*closed)(void *ctx), void *ctx);
struct sync_webhooks *sync_webhooks_free(struct sync_webhooks *w); /* takes NULL */
/* Of a configuration of webhooks, or a CRD: may its URLs be called? What old has stays. */
int sync_webhooks_check(struct syncer *s, struct arena *a, const struct resource *r,
                        const cJSON *object, const cJSON *old, struct err *err) MUST_CHECK;
/* What a listed name may resolve to: none of this machine, its link, or a cloud's metadata. */
bool sync_webhook_may_resolve_to(struct str address);
/* Is it an address at all, and none of this machine or its link? */
bool sync_webhook_may_call(struct str address);
/* Where a Service of the tenant's own is: the cluster IP that the host gave this very one. An error
 * for any other: one without a selector, whose endpoints the tenant writes itself, is one. */
int sync_service_address(struct syncer *s, struct arena *a, struct str ns, struct str name,
                         int64_t port, struct str *ret, struct err *err) MUST_CHECK;

/* --- extensions.c --- */
struct sync_extensions *sync_extensions_new(struct syncer *s);
extern const struct forward_ops SYNC_EXTENSION_OPS; /* the hook `forward` */
/* As sync_webhooks_close(). */
bool sync_extensions_close(struct sync_extensions *x, void (*closed)(void *ctx), void *ctx);
struct sync_extensions *sync_extensions_free(struct sync_extensions *x); /* takes NULL */

/* --- hooks.c --- */
void sync_hooks_register(struct syncer *s);
