/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * Scanning an older state: some of its versions may be on disk only. */
#pragma once

#include <sublet/store.h>

/* Reads them, and keeps them and those that would leave memory until it is closed: store_scan() at
 * the revision then fails only where the history is gone, or cannot be read. ready() is called
 * once, and never before this returns; not at all when store_recall_ready() is true at once. The
 * present always is, and needs no ready(). */
struct store_recall;
struct store_recall *store_recall_open(struct store *s, unsigned resource, int64_t revision,
                                       void (*ready)(void *ctx), void *ctx);
bool store_recall_ready(const struct store_recall *r);
struct store_recall *store_recall_close(struct store_recall *r); /* takes NULL, returns NULL */
