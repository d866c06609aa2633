/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * A controller whose object was refused retries with a growing delay. When the room it lacked comes
 * free, the component that sees this makes it retry at once. */
#pragma once

#include <sys/queue.h>

#include <sublet/str.h>

struct vapi;

/* A listener for owners of one kind ("ReplicaSet"). again() must not run anything itself. */
struct vapi_retry {
    LIST_ENTRY(vapi_retry) others;
    const char *kind;
    void (*again)(struct vapi_retry *retry, struct str ns, struct str name);
    void *ctx;
};
void vapi_retry_watch(struct vapi *api, struct vapi_retry *retry);
void vapi_retry_unwatch(struct vapi_retry *retry);
/* What was refused to this owner may be created now. Kinds without a listener are ignored: their
 * controllers run elsewhere. */
void vapi_retry_owner(struct vapi *api, struct str kind, struct str ns, struct str name);
