/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/control_plane)
 *
 * Shared by the files that start and maintain the control plane. */
#pragma once

#include "../core/calls.h"

/* handlers.c */
extern const struct call_handlers API_HANDLERS;

/* gpu_usage.c */
/* Serves GPUUsage and ClusterGPUUsage, where pools are or may be bound. */
void vapi_gpu_usage_serve(struct vapi *api);
void vapi_gpu_usage_free(struct vapi *api); /* after registry_free() */

/* bootstrap.c */
/* Creates the objects every cluster has; calls done() once they are durable. */
void bootstrap_objects(struct vapi *api, void (*done)(void *ctx, const struct err *err), void *ctx);

/* initial.c */
struct initial;
struct initial *initial_start(struct vapi *api); /* NULL when there are no init.manifests */
void initial_stop(struct initial *x);
/* After initial_stop(), once its write was answered. */
void initial_close(struct initial *x, void (*closed)(void *ctx), void *ctx);

/* renewal.c */
void renewal_serving_tls(struct vapi *api, struct net_tls *ret);
int renewal_serve(struct vapi *api, struct err *err) MUST_CHECK; /* with what pki has now */
/* Renews all but the CA, up to the first failure. */
int renewal_all(struct vapi *api, struct err *err) MUST_CHECK;
/* [{name, from, until}], seconds of the wall clock. */
cJSON *renewal_list(struct vapi *api, struct arena *a);
void renewal_start(struct vapi *api);
void renewal_check(struct vapi *api); /* called by the timer, which it sets again */
/* Adds this IP to the serving certificate: clients in pods verify the API by it. */
void renewal_serve_at(struct vapi *api, const struct str *ips, size_t n);
