/* SPDX-License-Identifier: Apache-2.0 */
/* What extension API servers have of a terminating namespace. */
#pragma once

#include <sublet/controller.h>

#define NAMESPACE_ELSEWHERE_MS 5000 /* until it is looked at again */

struct namespace_remaining {
    struct str resource; /* "gauges.ext.example.com" */
    size_t n;
};
struct namespace_elsewhere {
    struct str undiscovered; /* why it is not known what there is; or empty */
    struct str failure;      /* why something could not be deleted; or empty */
    struct namespace_remaining *remaining;
    size_t n_remaining, cap_remaining;
};
/* Deletes what is deletable, and counts what remains. done() once, now or later; the run stays open
 * until then. */
void namespace_sweep_elsewhere(struct reconcile *r, struct str ns, struct namespace_elsewhere *ret,
                               reconcile_phase done, void *ctx);
