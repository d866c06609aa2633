/* SPDX-License-Identifier: Apache-2.0
 * room: store
 *
 * Who runs the jobs of a store's writer. The program gives it a thread; a test that owns time runs
 * every job on the loop thread, at a moment of its choice, and may let it be answered later. */
#pragma once

struct store_executor {
    /* Arranges that run(arg) is called once, later, on the loop thread. */
    void (*post)(void *ctx, void (*run)(void *arg), void *arg);
    void *ctx;
};
