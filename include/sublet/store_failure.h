/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * For whoever writes records and waits for no answer: that they were taken back. */
#pragma once

struct store;

/* failed() is called from the loop when a transaction failed, after everything written since the
 * last one that did not was undone, records included. One listener; NULL ends it. */
void store_on_failure(struct store *s, void (*failed)(void *ctx), void *ctx);
