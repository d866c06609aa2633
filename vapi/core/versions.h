/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Versions of a custom resource that a write needs while it cannot wait, where only a webhook makes
 * them. What is not there is wished for; the write pauses until all wishes are made, and what
 * needed them is run once more. In the arena of the call, as all of it. */
#pragma once

#include <sublet/call.h>

#define VERSIONS_MOST        128                /* of one list */
#define VERSIONS_LEAST_ARENA ((size_t)48 << 20) /* of the call's, for one more */

struct version_wish;
struct versions {
    struct version_wish *first;
    size_t n;
    bool strict; /* the first failure ends the pause */
};

/* object, of c's kind, in version `to`: the list's, never to be written. NULL with *ret_failed
 * NULL: it is not made yet, and wished for now; else why there is none. */
const cJSON *versions_find(struct versions *v, struct call *c, const cJSON *object, struct str to,
                           const struct err **ret_failed);
/* Makes what is wished for, one after another, then done(), never before this returned; err: of a
 * strict list. False: nothing is wished for, and done() is not called. */
bool versions_make(struct versions *v, void (*done)(void *ctx, const struct err *err), void *ctx);
bool versions_wanted(const struct versions *v); /* something is wished for */
bool versions_failed(const struct versions *v);
