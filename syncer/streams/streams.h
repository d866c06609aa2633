/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Logs, exec, attach, port-forward, proxies, and the host's OpenAPI documents. */
#pragma once

#include "core/core.h"

/* --- streams.c: logs, exec, attach, port-forward, proxies --- */
struct proxy;
struct streams *sync_streams_new(void);
void sync_streams_connect(struct syncer *s, struct proxy *p); /* the hook */
void sync_streams_stop(struct streams *all);                  /* ends all of them */
void sync_streams_bar(struct streams *all);             /* ... but logs, which change nothing */
struct streams *sync_streams_free(struct streams *all); /* takes NULL */

/* --- descriptions.c: one of the host's OpenAPI documents; the hook --- */
void sync_descriptions_fetch(struct syncer *s, struct str path, int64_t timeout_ms,
                             void (*done)(void *ctx, struct str body, const struct err *err),
                             void *ctx);

/* --- metrics.c: what the tenant's pods use, by the host's metrics API; the hook --- */
void sync_metrics_fetch(struct syncer *s, const struct vapi_measure *what, vapi_measured_cb done,
                        void *ctx);
