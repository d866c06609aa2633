/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Read-only mode, ordered by the component that decides which process writes. Reads, watches, dry
 * runs, logs, TokenRequests and reviews are answered as usual; writes, exec, attach, port-forward
 * and proxies get a 503 with the reason and Retry-After, and controllers pause: no key is
 * processed, none backs off, and all run again afterwards.
 *
 *   writes are answered <--set(NULL)-- held --set(reason)--> read-only
 *            '-------------------hold()-^ ^------hold()--------'        and each into the other */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

struct vapi;

/* Takes effect at once; NULL: writes are answered again. The reason is copied, and shown to
 * tenants. */
void vapi_set_read_only(struct vapi *api, const char *reason);
/* Writes wait, within their deadlines, until vapi_set_read_only() decides. Controllers continue. */
void vapi_hold_writes(struct vapi *api);

/* A listener that pauses, also while the disk accepts nothing (store_disk.h). changed() is called
 * when read_only changed; never from within a call of these functions. */
struct vapi_order {
    LIST_ENTRY(vapi_order) place;
    bool read_only;
    void (*changed)(struct vapi_order *order);
    void *ctx;
};
/* Sets order->read_only. */
void vapi_order_watch(struct vapi *api, struct vapi_order *order);
void vapi_order_unwatch(struct vapi_order *order);
