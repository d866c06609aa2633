/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi/api/watch)
 *
 * Events that wait for a conversion webhook: some of one watch, in order, those that need none
 * between them included. A watch has a queue only while it waits. */
#pragma once

#include "watch_out.h"

#include <sublet/conversion.h>

struct watch_queue;

/* Whether this event must be queued: it needs the webhook, or one before it waits. */
bool watch_queue_takes(const struct watch_queue *q, const struct call *c,
                       const struct store_object *o);
/* Of q, made if it is NULL. Returns it. */
struct watch_queue *watch_queue_add(struct watch_queue *q, enum store_event_type type,
                                    const struct store_object *o, int64_t revision);
bool watch_queue_is_full(const struct watch_queue *q); /* takes NULL */
bool watch_queue_waits(const struct watch_queue *q);   /* for the webhook; takes NULL */
/* done() once all are as c's watch shows them; never before it returned, nor after the end of q. */
void watch_queue_convert(struct watch_queue *q, struct call *c, conversion_read_done done,
                         void *ctx);
/* Sends all. */
void watch_queue_send(struct watch_queue *q, struct watch_out *out);
struct watch_queue *watch_queue_free(struct watch_queue *q); /* takes NULL */
