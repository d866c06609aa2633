/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Sends Events to the host, each at most once: one that fails is dropped, and counted. */
#pragma once

#include <sublet/buf.h>
#include <sublet/host.h>

#include "events.h"

struct event_writer;
struct event_writer *fleet_event_writer_new(struct host *host, const struct clock *clock);
/* After fleet_event_writer_stop(); takes NULL, returns NULL. */
struct event_writer *fleet_event_writer_free(struct event_writer *w);
void fleet_event_writer_stop(struct event_writer *w); /* of those under way none is heard of */
void fleet_event_write(struct event_writer *w, const char *kind, const cJSON *object,
                       const struct fleet_event *event);
void fleet_event_lost(struct event_writer *w, size_t n); /* counts what is never written */
void fleet_event_writer_metrics(const struct event_writer *w, struct buf *out);
