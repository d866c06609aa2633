/* SPDX-License-Identifier: Apache-2.0
 * What the SQLite backend's files share. */
#pragma once

#include <sqlite3.h>
#include <sys/types.h>
#include "db.h"
#include "db_sum.h"

enum statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_RESOURCE,
    SQL_RESOURCE_DELETE,
    SQL_VERSION,
    SQL_VERSION_DELETE,
    SQL_VERSION_READ,
    SQL_TRAIL,
    SQL_TRAIL_DELETE,
    SQL_RECORD_PUT,
    SQL_RECORD_DELETE,
    SQL_FLOOR,
    SQL_REVISION,
    SQL_RECORDS,
    SQL_HEAL,
    SQL_FREE_PAGES,
    SQL_PAGES,
    SQL_VACUUM,
    SQL_COUNT
};

#define DB_ACCOUNT 12

struct db {
    unsigned magic;
    sqlite3 *sql;
    char *dir, *file;
    int lock;   /* file descriptor of <dir>/lock */
    int raw;    /* of the file itself, once a copy was made of it; else -1 */
    int format; /* DB_FORMAT, but for the source of a restore */
    struct sum *sum;
    struct db_options options;
    struct db_state state;       /* as it was opened */
    int64_t account[DB_ACCOUNT]; /* the rows of meta then; db_meta.c knows which is which */
    sqlite3_stmt *statements[SQL_COUNT];
    int log_pages;  /* frames of the log since it was last folded into the file */
    bool stale;     /* frames of a failed transaction may stand behind the end of the log */
    bool damaged;   /* the last commit failed because of the file's structure */
    bool read_only; /* opened for reading alone */
    bool reserved;  /* the reserve holds its blocks */
    int reserve;    /* its file, or -1 */
    enum store_disk disk, met; /* the present state; that of the last failure */
    char why[64];              /* of the disk, as the system says it */
    int64_t newest;            /* read_only: the newest row that was read */
    char trouble[96];          /* why folding the log failed; "" when it did not */
};

#define DB_MAGIC       0x53514c21u
#define DB_APPLICATION 0x5355424cu /* "SUBL" */
#define DB_FORMAT      2           /* user_version; db_format.c */
#define DB_PAGE        4096
/* Frames after which the log is folded into the file; a single commit may go beyond. */
#define DB_LOG_PAGES 512
/* Beyond this, with folding failing, writes are refused: the log must not fill the disk. */
#define DB_LOG_MAX 4096
/* A transaction of at most so many bytes may use the reserve whatever it is: deletes can be in it.
 */
#define DB_SMALL ((size_t)256 << 10)
/* Up to so many free pages are left where they are. */
#define DB_FREE_PAGES 256
/* More resources than this are looked through for unused ones at start. */
#define DB_RESOURCES   1000
#define DB_VACUUM_STEP 64
#define DB_BACKUP_STEP 64

/* The statement, ready for binding. */
sqlite3_stmt *db_statement(struct db *db, enum statement which);
/* Steps a statement that returns no rows (rows are skipped) and resets it. */
int db_run(struct db *db, enum statement which);
/* Sets err to STORAGE with the file's name and what SQLite and the system say, and db->met; returns
 * -1. */
int db_error(struct db *db, const char *what, struct err *err);
int db_sql(struct db *db, const char *sql, struct err *err) MUST_CHECK;
/* The integer a one-row statement gives. */
int db_number(struct db *db, const char *sql, int64_t *ret, struct err *err) MUST_CHECK;
void db_bind_text(sqlite3_stmt *q, int index, struct str s);
void db_bind_blob(sqlite3_stmt *q, int index, struct str s);
struct str db_column(sqlite3_stmt *q, int index); /* a string or a blob; good until the next step */
/* mkdir, and the lock on the directory. *ret_lock is a file descriptor. */
int db_lock(const char *dir, int *ret_lock, struct err *err) MUST_CHECK;
/* *ret_format: 0 when the file is empty, or a crash left it without a schema. Else it must be ours,
 * and of a format this program knows. */
int db_check_owner(struct db *db, int *ret_format, struct err *err) MUST_CHECK;
char *db_path_join(const char *dir, const char *name); /* for mem_free() */
/* db_identity.c: reads it; one of a copy, or of a file from before epochs, begins. */
int db_identity_settle(struct db *db, struct err *err) MUST_CHECK;
int db_prepare(struct db *db, struct err *err) MUST_CHECK;
void db_disconnect(struct db *db); /* closes the file, not the lock */
int db_commit_sql(struct db *db, int result, struct err *err) MUST_CHECK;

/* db_format.c */
int db_format_create(struct db *db, struct err *err) MUST_CHECK;
int db_format_migrate(struct db *db, int format, struct err *err) MUST_CHECK;
/* The tables of the present format, without rows. */
int db_format_tables(struct db *db, struct err *err) MUST_CHECK;

/* db_meta.c: reads db->state, and begins a new life where that is due. */
int db_meta_settle(struct db *db, struct err *err) MUST_CHECK;
int db_meta_put(struct db *db, const char *key, int64_t value, struct err *err) MUST_CHECK;
int db_meta_create(struct db *db, struct err *err) MUST_CHECK; /* all rows, of a first life */
/* All rows as `from` was opened with them, but for the records, which are so many now. */
int db_meta_copy(struct db *from, struct db *to, int64_t records, struct err *err) MUST_CHECK;

/* db_log.c: before the file is opened: state.log_lost, with the log kept. And once a new life that
 * begins because of it is durable. */
int db_log_inspect(struct db *db, struct err *err) MUST_CHECK;
int db_log_settled(struct db *db, struct err *err) MUST_CHECK;

/* db_salvage.c: makes a file whose structure is damaged again, of what can be read of it. */
int db_salvage(struct db *db, bool *ret_salvaged, struct err *err) MUST_CHECK;
/* Its parts. 1: SQLite finds the structure damaged, and the disk is not to blame; 0: it is whole; -1:
 * that could not be found out. */
int db_salvage_due(struct db *db, struct err *err) MUST_CHECK;
/* A file of its own that takes the place of db's, with what fill() puts into its tables. Once it is
 * in place db is disconnected. */
typedef int (*db_fill)(struct db *from, struct db *to, const void *ctx, struct err *err);
int db_salvage_replace(struct db *db, db_fill fill, const void *ctx, struct err *err) MUST_CHECK;
/* The names of resources that can be read. */
int db_salvage_resources(struct db *from, struct db *to, struct err *err) MUST_CHECK;
/* The version of a revision and its trail, as they are. False: neither can be read. */
bool db_salvage_row(struct db *from, struct db *to, int64_t revision);

/* db_disk.c: what a failure says of the disk, by the system's error or by SQLite's last one. */
enum store_disk db_disk_met(struct db *db, int system);
enum store_disk db_disk_blame(struct db *db);
/* After a failed write: db->met becomes what holds. */
void db_disk_failed(struct db *db, bool healed);
/* False: there is no room for it. */
bool db_reserve_fill(struct db *db, bool with_headroom) MUST_CHECK;
/* True: there is more room than before. */
bool db_reserve_give_up(struct db *db);
void db_reserve_close(struct db *db);

/* db_read_only.c: the file as it is, with its log, on a disk that takes nothing. */
int db_read_only(struct db *db, struct err *err) MUST_CHECK;
/* For writing again; 0 if that worked. */
int db_reopen(struct db *db) MUST_CHECK;

/* db_open.c */
int db_connect(struct db *db, const char *name, int flags, const char *vfs,
               struct err *err) MUST_CHECK;
int db_open_writable(struct db *db, struct err *err) MUST_CHECK;

/* db_commit.c */
int db_run_ops(struct db *db, const struct op *ops, size_t n) MUST_CHECK;
/* A transaction of nothing; 0 if it worked, else db->met. */
int db_heal(struct db *db) MUST_CHECK;
/* The whole log into the file. */
bool db_fold(struct db *db) MUST_CHECK;

/* db_keep.c */
#define DB_KEPT 9
/* For what is damaged and about to be replaced: <file>.damaged, or while there is one .damaged.2 to
 * .damaged.9. The last of them is replaced. */
char *db_keep_name(const char *file);
int db_keep_damaged(struct db *db, struct err *err) MUST_CHECK;
/* Bytes at an offset, as pread(2) gives them. */
typedef ssize_t (*db_keep_read)(void *ctx, void *bytes, size_t n, int64_t at);
/* A copy that appears under its name when it is complete and synced. */
int db_keep_bytes(db_keep_read read, void *ctx, const char *to, struct err *err) MUST_CHECK;
int db_sync_dir_of(const char *path, struct err *err) MUST_CHECK;

/* db_load.c: a row of VERSION_COLUMNS and sum, and whether that is right. */
void db_version_read(struct db *db, sqlite3_stmt *q, struct db_version *v);

/* The columns of a row, in the order in which they are stored and hashed. */
#define VERSION_COLUMNS                                                                            \
    "revision, at, type, resource, skip, ns, name, uid, labels, fields, bytes, key"
#define VERSION_SUM "row_sum('version', " VERSION_COLUMNS ")"
#define TRAIL_SUM   "row_sum('trail', revision, type, key)"
#define META_SUM    "row_sum('meta', key, value)"
