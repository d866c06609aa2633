/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * What the API requests of the syncer: whether an object may be stored, and for what only the host
 * has. */
#pragma once

#include <sublet/err.h>
#include <sublet/json.h>

struct forward_ops;
struct proxy;
struct resource;

/* A review for a webhook of the tenant's (webhook.h), by its Service or by a URL. */
struct vapi_webhook {
    struct str ns, service; /* empty: url */
    int64_t port;
    struct str url;  /* "https://host[:port]/path" */
    struct str path; /* of a Service, with a query: "/validate?timeout=10s" */
    struct str ca;   /* PEM; empty: what the system trusts */
    struct str body;
    int64_t timeout_ms;
    size_t most; /* bytes of the answer */
};
/* err NULL: the server answered, with whatever status; otherwise its message is why it did not.
 * body is valid until this returned. */
typedef void (*vapi_webhook_cb)(void *ctx, int status, struct str body, const struct err *err);

/* What to measure: nodes, or the pods of a namespace (empty: of all). name: this one only. */
struct vapi_measure {
    bool nodes;
    struct str ns, name;
};
/* items: an array of NodeMetrics or PodMetrics of metrics.k8s.io/v1beta1 without apiVersion and
 * kind, with the labels of the virtual objects; valid until it returns. err: UNAVAILABLE. */
typedef void (*vapi_measured_cb)(void *ctx, const cJSON *items, const struct err *err);

/* The workload whose template a pod is, and how many such pods it wants at once; 0: not known. */
struct vapi_template {
    struct str kind, name;
    int64_t copies;
};
/* The copies of an object: its replicas, or a Job's parallelism. */
int64_t vapi_template_copies(const cJSON *object);

/* The syncer's part in the API. Any member may be NULL. The syncer registers before
 * vapi_start(). */
struct vapi_hooks {
    void *ctx;
    /* Called right before a write is passed to the store, synchronously, for every resource: may
     * refuse, may put store records that land in the same transaction. old NULL: create; object
     * NULL: delete. With dry_run nothing may be put. */
    int (*before_store)(void *ctx, struct arena *a, const struct resource *r, const cJSON *object,
                        const cJSON *old, bool dry_run, struct err *err);
    /* Checks beyond Kubernetes' own, at admission: escapes, pools (pods and pod templates).
     * Templates of workloads come as a pod, with `of`; for them a refusal becomes a Warning.
     * warn() adds a Warning to an answer that is no refusal; a dry run gets more of them. */
    int (*check_pod)(void *ctx, struct arena *a, struct str ns, const cJSON *pod,
                     const struct vapi_template *of, bool dry_run,
                     void (*warn)(void *warn_ctx, struct str text), void *warn_ctx,
                     struct err *err);
    /* The same for a claim (old NULL: created). Templates of claims in a StatefulSet come as a
     * claim, and a refusal becomes a Warning. */
    int (*check_claim)(void *ctx, struct arena *a, const cJSON *claim, const cJSON *old,
                       struct err *err);
    /* Of objects of every resource, before they are stored: may this one go down to the host? old
     * NULL: created. warn() says what of it does not. */
    int (*check_synced)(void *ctx, struct arena *a, const struct resource *r, const cJSON *object,
                        const cJSON *old, void (*warn)(void *warn_ctx, struct str text),
                        void *warn_ctx, struct err *err);
    /* Are objects of this resource synced to the host, though the kind has no effect by itself? */
    bool (*has_effect)(void *ctx, const struct resource *r);
    /* Whether such a pod may run on this node, whatever it tolerates; for controllers that choose
     * nodes themselves. */
    bool (*node_admits)(void *ctx, struct arena *a, struct str ns, const cJSON *pod,
                        struct str node);
    /* May change the object and may wait (a Service gets its host ClusterIP here). Must call done()
     * exactly once, not before returning. err is NULL for success. The object stays valid until
     * then. */
    void (*admit)(void *ctx, struct arena *a, const struct resource *r, cJSON *object,
                  const cJSON *old, bool dry_run,
                  void (*done)(void *done_ctx, const struct err *err), void *done_ctx);
    bool (*wants_admit)(void *ctx, const struct resource *r, const cJSON *object, const cJSON *old);
    /* The write for which admit() reserved something will not be stored. */
    void (*admit_undo)(void *ctx, const struct resource *r, const cJSON *object);
    /* A stored object that could not be read was deleted: nothing of it is hidden any more. */
    void (*quarantine_over)(void *ctx);
    /* Logs, exec, attach, port-forward and proxies (proxy.h): authorized, checked, of an existing
     * pod or service, with `kubelets` of a node. Answers now or later. NULL: 501. */
    void (*connect)(void *ctx, struct proxy *p);
    bool kubelets;
    /* The node that the tenant is shown under this address; empty: none. What is sent to it at the
     * port of kubelets is read as nodes/NAME/proxy, under a kubelet's own rights. */
    struct str (*node_at)(void *ctx, struct str ip);
    /* A document of the host's own OpenAPI v3 ("/openapi/v3", "/openapi/v3/apis/apps/v1?hash=..."),
     * as JSON, within timeout_ms. done() exactly once, not before returning; err NULL: body is
     * valid until done() returned. NULL: built-in types have no descriptions. */
    void (*openapi)(void *ctx, struct str path, int64_t timeout_ms,
                    void (*done)(void *done_ctx, struct str body, const struct err *err),
                    void *done_ctx);
    /* GPUs of the tenant itself now: an array of GPUUsages of a namespace (empty: of all that hold
     * or wait for some), or of ClusterGPUUsages, without apiVersion and kind, by namespace and name
     * (vapi/control_plane/gpu_usage.c has their members). NULL: those kinds are empty; but once it
     * was there, requests get a 503 without it, and watches wait. */
    cJSON *(*gpu_usage)(void *ctx, struct arena *a, bool cluster, struct str ns);
    /* Usage of nodes and pods. done() exactly once, not before returning. NULL: none is known. */
    void (*measure)(void *ctx, const struct vapi_measure *what, vapi_measured_cb done,
                    void *done_ctx);
    /* Posts a review; copies q. Only to the tenant's own Services, at the address that the host
     * gave them, and to URLs that the admin lists; never with credentials of this process. done()
     * exactly once, not before returning. NULL: no webhook can be reached. */
    void (*webhook)(void *ctx, const struct vapi_webhook *q, vapi_webhook_cb done, void *done_ctx);
    /* Requests to extension API servers (forward.h), by their Service, with the rules of `webhook`.
     * NULL: none can be reached. */
    const struct forward_ops *forward;
    /* Series of the tenant's own GPUs in Prometheus' text format, in its names. done() exactly
     * once; err NULL: body is valid until done() returned. NULL: there is no /metrics/dcgm. */
    void (*devices)(void *ctx, void (*done)(void *done_ctx, struct str body, const struct err *err),
                    void *done_ctx);
};
/* What the hook `gpu_usage` says may have changed; cheap while there is no watch. */
struct vapi;
void vapi_gpu_usage_changed(struct vapi *api);
