/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/control_plane)
 *
 * What the control plane starts with and keeps up by itself. */
#pragma once

#include "../core/calls.h"

/* handlers.c */
extern const struct call_handlers API_HANDLERS;

/* bootstrap.c */
/* The objects every cluster has; done() once they are durable. */
void bootstrap_objects(struct vapi *api, void (*done)(void *ctx, const struct err *err), void *ctx);

/* renewal.c */
void renewal_serving_tls(struct vapi *api, struct net_tls *ret);
void renewal_start(struct vapi *api);
void renewal_check(struct vapi *api); /* what the timer does; sets it anew */
