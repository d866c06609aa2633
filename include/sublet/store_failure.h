/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * For whoever writes records and waits for no answer: that they were taken back. */
#pragma once

#include <stdint.h>

struct store;

/* failed() is called from the loop when a transaction failed, after everything written since the
 * last one that did not was undone, records included. One listener; NULL ends it. */
void store_on_failure(struct store *s, void (*failed)(void *ctx), void *ctx);
/* How many transactions failed: what was computed from records when it was another number is to be
 * computed anew. It grows before anyone is called back. */
uint64_t store_undone(const struct store *s);
