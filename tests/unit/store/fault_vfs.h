/* SPDX-License-Identifier: Apache-2.0
 * A SQLite VFS over the system's that fails on demand, and SQLite's memory likewise. Once installed
 * it is the default one. */
#pragma once

#include <stdbool.h>

enum fault_op {
    FAULT_READ = 1,
    FAULT_WRITE = 2,
    FAULT_SYNC = 4,
    FAULT_TRUNCATE = 8,
    FAULT_OPEN = 16
};
enum fault_file {
    FAULT_MAIN = 1,
    FAULT_LOG = 2,
    FAULT_OTHER = 4,
    FAULT_SALVAGE = 8, /* the database that is to replace a damaged one */
    FAULT_ANY = 15
};
enum fault_kind {
    FAULT_IO,   /* an I/O error, nothing done */
    FAULT_FULL, /* no space: a write leaves half of it behind */
    FAULT_LATE, /* an I/O error reported for something that was done */
    FAULT_QUOTA,
    FAULT_READ_ONLY,
    FAULT_DENIED,     /* as the system says it; nothing done */
    FAULT_INTERRUPTED /* a read that was interrupted and repeated: no failure */
};

void fault_install(void);
/* The operations of `ops` on `files` succeed `after` times, then fail `times` times (-1: until
 * fault_disarm). */
void fault_arm(unsigned ops, unsigned files, enum fault_kind kind, int after, int times);
/* Reads fail by chance, so many of a thousand, by this seed; until fault_disarm(). */
void fault_arm_reads(unsigned of_thousand, unsigned seed);
/* One page of the file cannot be read, until fault_disarm(). */
void fault_arm_page(int page);
/* SQLite gets memory `after` times, then `times` times none (-1: until fault_disarm). */
void fault_arm_memory(int after, int times);
/* How often it has failed since it was armed. */
int fault_disarm(void);
/* While held, syncs of the log wait. */
void fault_hold(void);
void fault_release(void);
/* Syncs do nothing but copy the file to "<file>.durable": what a power loss would leave at least.
 */
void fault_shadow(void);
