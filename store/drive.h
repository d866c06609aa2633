/* SPDX-License-Identifier: Apache-2.0
 * What the writer does next, and the backups among it. */
#pragma once

#include <sys/queue.h>
#include "batch.h"
#include "db.h"

struct backup_request {
    STAILQ_ENTRY(backup_request) place;
    char *path;
    struct db_backup *db;
    struct done done;
};

/* drive.c: what the writer does next */
int drive_start(struct store *s, struct db *db, struct err *err) MUST_CHECK; /* takes the db */
/* Something waits: it is looked at when this tick of the loop ends. */
void drive_schedule(struct store *s);
void drive_stop(struct store *s, void (*stopped)(struct store *s)); /* closes the loop's handles */
