/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Removes Events whose time to live has passed. */
#pragma once

#include <sublet/vapi.h>

struct expiry;
struct expiry *expiry_start(struct vapi *api); /* NULL when Events are not served */
void expiry_watch(struct expiry *x);
void expiry_sweep(struct expiry *x); /* removes due Events; called by the timer */
void expiry_stop(struct expiry *x);
/* After expiry_stop(), once its removals were answered. */
void expiry_close(struct expiry *x, void (*closed)(void *ctx), void *ctx);
