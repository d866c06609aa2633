/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Read-only by order of what decides which process writes. Reads, watches, dry runs, logs,
 * TokenRequests and reviews are answered as ever; writes, exec, attach, port-forward and proxies
 * get a 503 with the reason and Retry-After, and controllers pause: no key is worked on, none backs
 * off, and all run again afterwards.
 *
 *   writes are answered <--set(NULL)-- held --set(reason)--> read-only
 *            '-------------------hold()-^ ^------hold()--------'        and each into the other */
#pragma once

#include <stdbool.h>

struct vapi;

/* From now on; NULL: writes are answered again. The reason is copied. A tenant reads it. */
void vapi_set_read_only(struct vapi *api, const char *reason);
/* Writes wait, within their deadlines, until vapi_set_read_only() decides. Controllers go on. */
void vapi_hold_writes(struct vapi *api);

/* Who pauses, then and while the disk takes nothing (store_disk.h). changed() comes when read_only
 * did; not from within a call of these functions. */
struct vapi_order {
    struct vapi_order *next, **prev;
    bool read_only;
    void (*changed)(struct vapi_order *order);
    void *ctx;
};
/* Sets order->read_only. */
void vapi_order_watch(struct vapi *api, struct vapi_order *order);
void vapi_order_unwatch(struct vapi_order *order);
