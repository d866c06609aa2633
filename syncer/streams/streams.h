/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Logs, exec, attach, port-forward, proxies, and the host's OpenAPI documents. */
#pragma once

#include "core/core.h"

/* --- streams.c: logs, exec, attach, port-forward, proxies --- */
struct proxy;
struct streams *streams_new(void);
void streams_connect(struct syncer *s, struct proxy *p); /* the hook */
void streams_stop(struct streams *all);                  /* ends all of them */
void streams_bar(struct streams *all);                   /* ... but logs, which change nothing */
struct streams *streams_free(struct streams *all);       /* takes NULL */

/* --- descriptions.c: one of the host's OpenAPI documents; the hook --- */
void descriptions_fetch(struct syncer *s, struct str path, int64_t timeout_ms,
                        void (*done)(void *ctx, struct str body, const struct err *err), void *ctx);
