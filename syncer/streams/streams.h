/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Logs, exec, attach, port-forward, proxies, and the host's OpenAPI documents. */
#pragma once

#include "core/core.h"

/* --- streams.c: logs, exec, attach, port-forward, proxies --- */
struct proxy;
struct streams *sync_streams_new(void);
void sync_streams_connect(struct syncer *s, struct proxy *p); /* the hook */
void sync_streams_stop(struct streams *all);                  /* ends all of them */
void sync_streams_bar(struct streams *all);             /* ... but logs, which change nothing */
struct streams *sync_streams_free(struct streams *all); /* takes NULL */

/* --- kubelet.c: what is shown of a node's kubelet, with sync.kubelets --- */
struct proxy_request;
struct net_header;
struct kubelet;
#define KUBELET_TIMEOUT_MS 30000 /* of a whole answer */
#define KUBELETS_MAX       32    /* open at once: each may hold a document */
/* NULL: the path is not served, or the tenant is not shown the node. */
struct kubelet *sync_kubelet_new(struct syncer *s, const struct proxy_request *r, struct err *err);
struct kubelet *sync_kubelet_free(struct kubelet *k);  /* takes NULL */
struct str sync_kubelet_path(const struct kubelet *k); /* on the host */
/* Is it an answer of the status, type and encoding that this path has? */
bool sync_kubelet_accepts(const struct kubelet *k, int status, const struct net_header *headers,
                          size_t n);
int sync_kubelet_refuse(const struct kubelet *k, struct err *err); /* in place of its answer */
bool sync_kubelet_is_stream(const struct kubelet *k); /* else nothing is shown before it is whole */
struct str sync_kubelet_type(const struct kubelet *k); /* content-type of what is shown */
/* Appends what may be shown. False: the answer is too long, names too much, or is unreadable. */
bool sync_kubelet_data(struct kubelet *k, struct str bytes, struct buf *out) MUST_CHECK;
bool sync_kubelet_end(struct kubelet *k, int status, struct buf *out) MUST_CHECK;

/* The virtual object of a kind whose host object, of this name, is proved to be its own, by its uid
 * and the record; NULL: there is none. *uid is the host object's. Both live in a. */
const cJSON *sync_streams_prove(struct syncer *s, struct arena *a, enum sync_id id,
                                struct str host_name, struct str *uid);

/* --- devices.c: what the fleet shows of the tenant's own GPUs; the hook --- */
struct devices;
struct devices *sync_devices_new(struct syncer *s);
void sync_devices_fetch(struct devices *d,
                        void (*done)(void *ctx, struct str body, const struct err *err), void *ctx);
void sync_devices_metrics(void *devices, struct buf *out); /* for vapi_add_metrics() */
void sync_devices_stop(struct devices *d); /* fails what is under way, and all later ones */
struct devices *sync_devices_free(struct devices *d); /* takes NULL */

/* --- descriptions.c: one of the host's OpenAPI documents; the hook --- */
void sync_descriptions_fetch(struct syncer *s, struct str path, int64_t timeout_ms,
                             void (*done)(void *ctx, struct str body, const struct err *err),
                             void *ctx);

/* --- metrics.c: what the tenant's pods use, by the host's metrics API; the hook --- */
void sync_metrics_fetch(struct syncer *s, const struct vapi_measure *what, vapi_measured_cb done,
                        void *ctx);
