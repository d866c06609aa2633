/* SPDX-License-Identifier: Apache-2.0
 * What a failure says of the disk, and the reserve. The reserve is a file of real blocks beside the
 * database. It is emptied when there is no room left, which is room for the deletes that make more;
 * once it could be filled again, with some to spare, the disk counts as writable. Must never take a
 * single failed operation, whatever it was, for a state of the disk: only errors that name it. */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A log at its limit, folded into a file that must grow by all of it, and as much again for deletes
 * and for moving pages to the front of the file. */
#define RESERVE ((off_t)2 * DB_LOG_PAGES * DB_PAGE)
/* So much more space is required before writes are accepted again, or the first one would fill the
 * disk. */
#define HEADROOM (RESERVE / 4)

void db_disk_failed(struct db *db, bool healed)
{
    if (db->met == STORE_DISK_FULL)
        db->disk = healed ? STORE_DISK_FULL : STORE_DISK_USED_UP;
    else if (db->met == STORE_DISK_READ_ONLY && !healed)
        db->disk = STORE_DISK_READ_ONLY;
}

void db_disk(const struct db *db, struct disk_state *ret)
{
    ret->disk = db->disk;
    snprintf(ret->why, sizeof(ret->why), "%s", db->why);
}

/* ---- the reserve ---- */

static int open_reserve(struct db *db)
{
    char *path = db_path_join(db->dir, "reserve");
    int why;

    db->reserve = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    why = db->reserve < 0 ? errno : 0;
    mem_free(path);
    return why;
}

static int allocate(int fd, off_t bytes)
{
    int why;

    do
        why = posix_fallocate(fd, 0, bytes);
    while (why == EINTR);
    return why;
}

static int set_size(int fd, off_t bytes)
{
    return ftruncate(fd, bytes) ? errno : 0;
}

static int fill(struct db *db, off_t headroom)
{
    int why = db->reserve < 0 ? open_reserve(db) : 0;

    if (why)
        return why;
    why = allocate(db->reserve, RESERVE + headroom);
    if (!why)
        why = set_size(db->reserve, RESERVE);
    else
        (void)set_size(db->reserve, 0);
    return why;
}

/* Without a reserve for another reason than that there is no room, the store works as well. */
bool db_reserve_fill(struct db *db, bool with_headroom)
{
    int why = fill(db, with_headroom ? HEADROOM : 0);

    db->reserved = !why;
    return db_disk_met(db, why) != STORE_DISK_FULL;
}

bool db_reserve_give_up(struct db *db)
{
    bool had = db->reserved;

    if (had)
        (void)set_size(db->reserve, 0);
    db->reserved = false;
    return had;
}

void db_reserve_close(struct db *db)
{
    if (db->reserve >= 0)
        close(db->reserve);
    db->reserve = -1;
}

/* ---- the probe ---- */

void db_probe(struct db *db)
{
    if (db->read_only && db_reopen(db))
        return;
    /* A log at its limit takes no more frames. */
    if (db->log_pages > DB_LOG_MAX && !db_fold(db))
        return;
    if (db_heal(db))
        db_disk_failed(db, false);
    else
        db->disk = db_fold(db) && db_reserve_fill(db, true) ? STORE_DISK_WRITABLE : STORE_DISK_FULL;
    if (db->keep_due && !db->disk)
        (void)db_keep_rows(db, false);
}
