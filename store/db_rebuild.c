/* SPDX-License-Identifier: Apache-2.0
 * A damaged file is made again while the store serves. Memory has all that lives, so nothing is
 * lost but history; only what memory knows by its revision alone, in quarantine, is copied. Runs on
 * the writer thread. Must never take rows that can be stale from the damaged file: one of an object
 * that was deleted since would bring it back. */
#include "db_file.h"
#include "db_impl.h"
#include "db_salvage.h"

#include <stdio.h>

static int fill(struct db *from, struct db *to, const void *ctx, struct err *err)
{
    const struct db_snapshot *s = ctx;
    bool untraced = s->untraced, copied;

    if (db_meta_copy(from, to, s->records, err) || db_salvage_resources(from, to, err))
        return -1;
    for (size_t i = 0; i < s->n_kept; i++) {
        if (db_salvage_row(from, to, s->kept[i], &copied, err))
            return -1;
        untraced |= !copied;
    }
    if (untraced && db_meta_put(to, "untraced", 1, err))
        return -1;
    if (db_prepare(to, err))
        return -1;
    return db_run_ops(to, s->ops, s->n_ops) ? db_error(to, "rebuild", err) : 0;
}

/* Without a file there is nothing but memory: a probe opens it again. */
static int open_again(struct db *db, struct err *err)
{
    if (!db_open_writable(db, err))
        return 0;
    if (db_read_only(db, NULL)) {
        db->disk = STORE_DISK_READ_ONLY;
        snprintf(db->why, sizeof(db->why), "a rebuilt file cannot be opened");
    }
    return -1;
}

int db_rebuild(struct db *db, const struct db_snapshot *s, struct err *err)
{
    bool due;

    if (db_salvage_due(db, &due, err))
        return -1;
    if (!due)
        return err_set(err, &ERR_STORAGE, "%s: a write found damage, a check of it none", db->file);
    int result = db_salvage_replace(db, fill, s, err);
    if (db->sql) /* it is still the damaged one */
        return -1;
    if (open_again(db, result ? NULL : err))
        return -1;
    db->damaged = false;
    return result;
}
