/* SPDX-License-Identifier: Apache-2.0
 * What a failed write says of the disk, and the reserve that deletes live on while it is full. */
#pragma once

#include "db_impl.h"

/* db_sql.c: what a failure says of the disk, by the system's error or by SQLite's last one. */
enum store_disk db_disk_met(struct db *db, int system);
enum store_disk db_disk_blame(struct db *db);

/* --- db_disk.c --- */
/* After a failed write: db->met becomes what holds. */
void db_disk_failed(struct db *db, bool healed);
/* False: there is no room for it. */
bool db_reserve_fill(struct db *db, bool with_headroom) MUST_CHECK;
/* True: there is more room than before. */
bool db_reserve_give_up(struct db *db);
void db_reserve_close(struct db *db);
