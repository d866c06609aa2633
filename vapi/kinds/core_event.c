/* SPDX-License-Identifier: Apache-2.0 */
/* Events, in the versions v1 (stored) and events.k8s.io/v1: one object under two sets of names. */
#include "cells.h"

/* What differs between the two: name in v1, name in events.k8s.io/v1. */
static const struct {
    const char *core, *events;
} NAMES[] = {
    {"involvedObject", "regarding"},
    {"source", "deprecatedSource"},
    {"message", "note"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

static void rename_member(struct arena *a, cJSON *object, const char *from, const char *to)
{
    cJSON *member = json_get(object, from);

    if (!member)
        return;
    json_remove(object, to);
    member->string = arena_cstr(a, str_c(to));
}

void event_from_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].core, NAMES[i].events);
}

void event_to_storage(struct arena *a, cJSON *event)
{
    for (size_t i = 0; i < COUNT(NAMES); i++)
        rename_member(a, event, NAMES[i].events, NAMES[i].core);
}

const struct kind_ops EVENT_OPS = {
    .cells = cells_event,
};
