/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory behind SQLite's VFS, that loses power. What was written since a file's last sync
 * is pending: a power loss keeps any part of it, sector by sector of 512 bytes and in no order; a
 * crash of the process alone keeps all of it. Must never lose or mix what a sync that succeeded
 * covers. */
#pragma once

#include "../moment.h"

struct disk;

/* Of a thousand operations of a kind, how many fail. */
struct disk_faults {
    unsigned write_errors, sync_errors, read_errors;
    uint64_t bad_sectors; /* not 0: which reads fail depends on their place, by this seed */
    bool full;            /* no file grows */
};

/* The default VFS of this process from here on: what is below `root` (a real directory, which holds
 * nothing but empty files) lives in memory. */
void disk_install(struct moment *m, const char *root);
/* All disks are mounted there from here on. */
void disk_move_root(const char *path);
/* An empty disk, mounted at <root>/<name>. */
struct disk *disk_new(const char *name);
/* The same content, pending writes included, as a disk of its own. */
struct disk *disk_copy(struct disk *from, const char *name);
const char *disk_path(const struct disk *d);
/* A file of another disk takes the place of the one of this name, which is removed where the other
 * disk has none. */
void disk_take(struct disk *d, const struct disk *from, const char *name);
/* A file has no bytes but those that a sync covers: no crash left it between two states. True of
 * one that is not there. */
bool disk_is_settled(const struct disk *d, const char *name);
size_t disk_size(const struct disk *d, const char *name);        /* of a file; 0: there is none */
uint64_t disk_file_hash(const struct disk *d, const char *name); /* of its bytes */
struct disk_faults *disk_faults(struct disk *d);
/* After so many more writes, syncs and truncations nothing reaches the disk any more, and died(ctx)
 * is called, once. 0: at once. */
void disk_trap(struct disk *d, unsigned operations, void (*died)(void *ctx), void *ctx);
void disk_trap_off(struct disk *d);
/* Who had files open has died; they are closed. power: with its power, else only its process. */
void disk_after_crash(struct disk *d, bool power);
/* A hash of all files as they are now. */
uint64_t disk_hash(const struct disk *d);
/* Prints every operation on a named file from here on. */
void disk_show(void);
unsigned disk_torn(void);   /* sectors that were lost, on all disks */
unsigned disk_unread(void); /* reads that failed, on all disks */
