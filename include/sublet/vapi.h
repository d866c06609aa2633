/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The tenant's control plane for higher rooms: open and close, the in-process client that
 * controllers and the syncer use, and the hooks through which the syncer takes part
 * (vapi_hooks.h). */
#pragma once

#include <sublet/auth.h>
#include <sublet/config.h>
#include <sublet/registry.h>
#include <sublet/vapi_hooks.h>

struct uv_loop_s;

/* During admit(): adds a Warning to the answer of that request. done_ctx is admit()'s. */
void vapi_admit_warn(void *done_ctx, struct str text);

struct vapi_options {
    struct uv_loop_s *loop;
    struct store *store;
    struct pki *pki;
    const struct config *config;
    const struct clock *clock;
    const struct rng *rng;
    struct str version; /* "v1.36.3", for /version */
};
int vapi_new(const struct vapi_options *options, struct vapi **ret, struct err *err) MUST_CHECK;
void vapi_set_hooks(struct vapi *api, const struct vapi_hooks *hooks);
/* Bootstrap objects, CRDs from the store, controllers, then listens. ready() when /readyz
 * succeeds. */
int vapi_start(struct vapi *api, void (*ready)(void *ctx, const struct err *err), void *ctx,
               struct err *err) MUST_CHECK;
unsigned vapi_port(const struct vapi *api);
void vapi_close(struct vapi *api, void (*closed)(void *ctx), void *ctx);
/* A named check of /readyz and /livez ("host-sync"); at most 16. Returns NULL when healthy,
 * otherwise the reason. */
void vapi_add_check(struct vapi *api, const char *name, const char *(*check)(void *ctx), void *ctx);

/* A certificate that expires: renewed at two thirds of its lifetime by the API's one timer, exposed
 * in /metrics. At most 8, once the API is ready. */
#define VAPI_MOST_RENEWALS 8
struct vapi_renewal {
    const char *name; /* "kubeconfig" */
    void *ctx;
    void (*life)(void *ctx, int64_t *ret_from, int64_t *ret_end); /* wall clock seconds */
    int (*renew)(void *ctx, struct err *err);                     /* NULL: never */
};
void vapi_add_renewal(struct vapi *api, const struct vapi_renewal *r);

/* What the admin orders about certificates, once the API is ready. done() exactly once, now or
 * later: all certificates as [{name, from, until}] in seconds of the wall clock, valid until it
 * returns. Errors: CONFLICT when there is a previous authority already, or none to retire;
 * UNAVAILABLE when nothing is written now; STORAGE. */
enum vapi_certificates_order {
    VAPI_LIST_CERTIFICATES,
    VAPI_RENEW_LEAVES,
    VAPI_ROTATE_CA, /* a new authority; the previous one stays trusted */
    VAPI_RETIRE_CA, /* it is trusted no more */
};
typedef void (*vapi_certificates_cb)(void *ctx, const cJSON *list, const struct err *err);
void vapi_certificates(struct vapi *api, enum vapi_certificates_order what,
                       vapi_certificates_cb done, void *ctx);

/* The published address of this API: default/kubernetes, its Endpoints and its EndpointSlice are
 * kept so, and restored after any change. No cluster_ip: the Service is headless; no endpoint_ip:
 * no endpoints. Called again whenever it changes; before and after vapi_start(). The serving
 * certificate gets the cluster_ip, by which client libraries in pods verify the API, and the
 * further ones: the addresses of nodes (hook node_at). */
struct vapi_address {
    struct str cluster_ip, endpoint_ip; /* copied */
    unsigned port, target_port, endpoint_port;
    const struct str *further; /* read before it returns; at most PKI_MOST_ADDRESSES - 1 */
    size_t n_further;
};
void vapi_publish_address(struct vapi *api, const struct vapi_address *address);
/* For the controller that maintains it: NULL before there is one; changed() when it changed. */
const struct vapi_address *vapi_published_address(const struct vapi *api);
void vapi_on_address(struct vapi *api, void (*changed)(void *ctx), void *ctx);

struct registry *vapi_registry(struct vapi *api);
struct store *vapi_store(struct vapi *api);
struct auth *vapi_auth(struct vapi *api);
struct pki *vapi_pki(struct vapi *api);
const struct clock *vapi_clock(const struct vapi *api);
const struct rng *vapi_rng(const struct vapi *api);
struct uv_loop_s *vapi_loop(const struct vapi *api);
const struct config *vapi_config(const struct vapi *api);
/* Its controllers (controller.h), for the owner of the clock. */
struct controllers;
struct controllers *vapi_controllers(const struct vapi *api);
const struct vapi_hooks *vapi_get_hooks(const struct vapi *api);

/* The in-process client. Every write passes through all steps of a request (defaults, admission,
 * validation, quota) as USER_INTERNAL. done() is called exactly once, never before the call
 * returned; object is the committed result (borrowed, NULL on error and for deletions). Trees are
 * copied before returning. */
typedef void (*vapi_done_cb)(void *ctx, const struct err *err, const struct store_object *object);

void vapi_create(struct vapi *api, const struct resource *r, struct str ns, const cJSON *object,
                 vapi_done_cb done, void *ctx);
/* POST to a subresource of name ("binding", "eviction"). */
void vapi_create_sub(struct vapi *api, const struct resource *r, struct str subresource,
                     struct str ns, struct str name, const cJSON *object, vapi_done_cb done,
                     void *ctx);
/* PUT; object has the resourceVersion it was computed from. subresource STR_NULL, "status", ... */
void vapi_update(struct vapi *api, const struct resource *r, struct str subresource,
                 const cJSON *object, vapi_done_cb done, void *ctx);
/* JSON merge patch; retried internally on conflict unless the patch has a resourceVersion. */
void vapi_patch(struct vapi *api, const struct resource *r, struct str subresource, struct str ns,
                struct str name, const cJSON *patch, vapi_done_cb done, void *ctx);
struct vapi_delete {
    int64_t grace_seconds;   /* -1: the object's default */
    struct str uid;          /* precondition; empty for none */
    int64_t revision;        /* precondition; 0 for none */
    const char *propagation; /* NULL, "Background", "Foreground", "Orphan" */
};
void vapi_delete(struct vapi *api, const struct resource *r, struct str ns, struct str name,
                 const struct vapi_delete *options, vapi_done_cb done, void *ctx);
/* Records an Event about an object (aggregated by upstream's key: count increases), without
 * reporting failures. */
void vapi_event(struct vapi *api, const cJSON *involved, const char *type, const char *reason,
                struct str message, const char *component);
/* The tree of a stored object. */
cJSON *vapi_tree(struct arena *a, const struct store_object *o);
