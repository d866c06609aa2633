/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Events have a time to live: what is due is removed. */
#pragma once

#include <sublet/vapi.h>

struct expiry;
struct expiry *expiry_start(struct vapi *api); /* NULL when Events are not served */
void expiry_watch(struct expiry *x);
void expiry_sweep(struct expiry *x); /* removes what is due; the timer's work */
void expiry_stop(struct expiry *x);
/* After expiry_stop(), when its removals were answered. */
void expiry_close(struct expiry *x, void (*closed)(void *ctx), void *ctx);
