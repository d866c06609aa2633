/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * The processes that held the Lease with this very data directory. The one that runs has the flock
 * on its file `lock`, so the others are dead: proven for those on record with the same kernel (boot
 * id), device and inode. */
#pragma once

#include <sublet/store.h>

struct holders {
    struct store *store;
    struct str place; /* "BOOT DEV INO"; empty: not known */
    struct str dead;  /* identities, blank between */
};
/* Strings are of a. */
void sync_holders_open(struct holders *h, struct store *store, struct arena *a,
                       struct str data_dir);
/* Records this process, in the caller's transaction. */
void sync_holders_add(const struct holders *h, struct str identity);
bool sync_holders_are_dead(const struct holders *h, struct str identity);
