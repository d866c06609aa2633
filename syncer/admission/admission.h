/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What the API calls before it stores an object: hooks, and the host's verdict. */
#pragma once

#include "core/dry_run.h"

/* --- verdict.c --- */
bool sync_verdict_wanted(const struct syncer *s, const struct resource *r, const cJSON *object,
                         const cJSON *old);
void sync_verdict_request(struct syncer *s, struct arena *a, const struct resource *r,
                          const cJSON *object, const cJSON *old, bool dry_run,
                          void (*done)(void *ctx, const struct err *err), void *ctx);

/* The pod, or the pod of a workload's template, under its name; NULL: it has none. */
cJSON *sync_verdict_pod(struct arena *a, const struct resource *r, const cJSON *object);

/* --- usage.c --- */
/* See gpu_usage of struct vapi_hooks. */
cJSON *sync_usage_list(struct syncer *s, struct arena *a, bool cluster, struct str ns);
/* For vapi_add_metrics(). */
void sync_usage_metrics(void *syncer, struct buf *out);

/* --- hooks.c --- */
void sync_hooks_register(struct syncer *s);
