/* SPDX-License-Identifier: Apache-2.0
 * Batches: the writes that share a transaction, from the first one collected to their answers. Of
 * the loop thread, but for the operations of the batch that the writer holds. */
#pragma once

#include <sublet/store.h>
#include "op.h"

struct done {
    store_done_cb call;
    void *ctx;
};

/* The writes of one transaction, and who waits for it. */
struct batch {
    struct op *ops;
    size_t n_ops, cap_ops;
    struct done *done;
    size_t n_done, cap_done;
    size_t bytes;
    size_t n_drops; /* how many of history's drops went along */
};

/* batch.c: collecting, committing, failing */
struct op *batch_add(struct store *s, enum op_kind kind, size_t bytes);
void batch_free(struct batch *b); /* takes NULL */
/* Adds a bounded number of rows to delete to the open batch. */
void batch_take_drops(struct store *s);
void batch_commit(struct store *s, struct batch *b); /* makes it visible */
/* Takes it back, and what is open with it, which is returned: both are still to be answered. */
struct batch *batch_undo(struct store *s, struct batch *flying);
void batch_answer(struct batch *b, const struct err *err); /* takes NULL */
/* The first of history's drops are no longer on disk. */
void batch_drops_done(struct store *s, size_t n);
