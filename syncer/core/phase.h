/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The life of a syncer; syncer_enter() moves it on. Who leads is the Lease's (lease.h), and whether
 * the host answers is the client's.
 *
 *   NEW --syncer_start()--> RUNNING --syncer_close()--> RELEASING --Lease released--> CLOSING
 *    '--------------------------------syncer_close()-------^                             |
 *                            ENDING: host and Lease are closed <--parts are closed-------'
 *
 *   RUNNING     keys are reconciled, watches are open
 *   RELEASING   the same, but the host is not changed any more
 *   CLOSING     requests to the host fail; nothing is begun
 */
#pragma once

#include <stdbool.h>

struct syncer;

enum sync_phase {
    SYNC_NEW,
    SYNC_RUNNING,
    SYNC_RELEASING,
    SYNC_CLOSING,
    SYNC_ENDING,
    N_SYNC_PHASES
};

/* The only function that changes s->phase; asserts that the transition is permitted. */
void syncer_enter(struct syncer *s, enum sync_phase to);
bool syncer_is_running(const struct syncer *s); /* RUNNING, or RELEASING */
bool syncer_is_closing(const struct syncer *s); /* CLOSING, or ENDING */
