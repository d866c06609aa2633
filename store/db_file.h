/* SPDX-License-Identifier: Apache-2.0
 * The file of the SQLite backend: its directory and lock, opening it for writing and for reading
 * alone, its log, and the copies that stay beside it. */
#pragma once

#include <sys/types.h>
#include "db_impl.h"

/* db_open.c */
/* mkdir, and the lock on the directory. *ret_lock is a file descriptor. */
int db_lock(const char *dir, int *ret_lock, struct err *err) MUST_CHECK;
/* *ret_format: 0 when the file is empty, or a crash left it without a schema. Else it must be ours,
 * and of a format this program knows. */
int db_check_owner(struct db *db, int *ret_format, struct err *err) MUST_CHECK;
/* The same after db_connect(), whose result `connected` is. *ret_damaged: it is known that the file
 * must be made again, because of a tail it has lost: then there is no more of it than can be read.
 * What is not our file is refused as it is. */
int db_check_connected(struct db *db, int connected, int *ret_format, bool *ret_damaged,
                       struct err *err) MUST_CHECK;
char *db_path_join(const char *dir, const char *name); /* for mem_free() */
int db_prepare(struct db *db, struct err *err) MUST_CHECK;
void db_disconnect(struct db *db); /* closes the file, not the lock */
int db_connect(struct db *db, const char *name, int flags, const char *vfs,
               struct err *err) MUST_CHECK;
int db_open_writable(struct db *db, struct err *err) MUST_CHECK;

/* db_restore.c: of a directory without a database: refuses one in which a restore did not
 * finish. */
int db_restore_check(const char *dir, struct err *err) MUST_CHECK;

/* db_log.c: refuses a directory without a database where a log or a restore was begun. */
int db_log_check_file(struct db *db, struct err *err) MUST_CHECK;
/* Before the file is opened: state.log_lost, with the log kept. Before it is changed: the same for
 * state.log_missing. And once a new life that begins because of either is durable. */
int db_log_inspect(struct db *db, struct err *err) MUST_CHECK;
int db_log_find(struct db *db, int format, struct err *err) MUST_CHECK;
int db_log_settled(struct db *db, struct err *err) MUST_CHECK;

/* db_mark.c: what a file says of its log, alone or as the log changes it. */
#define DB_MARK_NUMBERS 5
struct db_mark_account {
    int64_t values[DB_MARK_NUMBERS];
    unsigned there; /* a bit per number that could be read */
    bool read;      /* the rows were read; if there is no table, none */
    bool corrupt;   /* they were not, because the pages make no database */
    int64_t newest; /* revision in the trail; INT64_MAX: unknown */
};
void db_mark_read(struct db *db, bool alone, struct db_mark_account *ret);
bool db_mark_is_there(const struct db_mark_account *file);
bool db_mark_fits(const struct db_mark_account *file, const struct db_mark_account *both);

/* The bytes of one with no frame in it. */
#define DB_LOG_EMPTY 32
/* Where nothing can be written: whether there is a log of this file, and whether it is known to be
 * missing. */
int db_log_look(struct db *db, struct err *err) MUST_CHECK;

/* db_read_only.c: the file as it is, with its log, on a disk that takes nothing; a damaged one as
 * what can be read of it, in memory. */
int db_read_only(struct db *db, struct err *err) MUST_CHECK;
/* For reading alone, with its log or without. */
int db_connect_reading(struct db *db, bool alone, struct err *err) MUST_CHECK;
/* Before the file is opened, with a log beside it: is that of another file? -1: there is no memory.
 */
int db_log_is_foreign(struct db *db, bool *ret_foreign, struct err *err) MUST_CHECK;
/* For writing again; 0 if that worked. */
int db_reopen(struct db *db) MUST_CHECK;

/* db_keep.c */
/* For what is damaged and about to be replaced: <file>.damaged, or while there is one .damaged.2 to
 * .damaged.9. The last of them is replaced. *ret is for mem_free(). */
int db_keep_name(const char *file, char **ret, struct err *err) MUST_CHECK;
/* *ret: there is something of this name. Of one that cannot be looked at that is not known: -1. */
int db_is_there(const char *path, bool *ret, struct err *err) MUST_CHECK;
int db_keep_damaged(struct db *db, struct err *err) MUST_CHECK;
/* The same with another suffix, unless one of these copies has the bytes of the file. */
int db_keep_version(struct db *db, const char *suffix, struct err *err) MUST_CHECK;
/* Bytes at an offset, as pread(2) gives them. */
typedef ssize_t (*db_keep_read)(void *ctx, void *bytes, size_t n, int64_t at);
/* A copy that appears under its name when it is complete and synced. -1: errno says why. */
int db_keep_bytes(db_keep_read read, void *ctx, const char *to, struct err *err) MUST_CHECK;
