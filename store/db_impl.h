/* SPDX-License-Identifier: Apache-2.0
 * What the SQLite backend's files share. */
#pragma once

#include <sqlite3.h>
#include "db.h"
#include "db_sum.h"

struct db_version;

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
    SQL_META_PUT,
    SQL_FREE_PAGES,
    SQL_PAGES,
    SQL_VACUUM,
    SQL_COUNT
};

#define DB_ACCOUNT 15

struct db {
    unsigned magic;
    sqlite3 *sql;
    char *dir, *file;
    int lock;   /* file descriptor of <dir>/lock */
    int raw;    /* of the file itself, once a copy was made of it; else -1 */
    int format; /* DB_FORMAT, but for the source of a restore and a file to be migrated */
    struct sum *sum;
    struct db_options options;
    struct db_state state;       /* as it was opened */
    int64_t account[DB_ACCOUNT]; /* the rows of meta then; db_meta.c knows which is which */
    sqlite3_stmt *statements[SQL_COUNT];
    int log_pages;  /* frames of the log since it was last folded into the file */
    bool young;     /* the file itself has no transaction of this life yet */
    bool log_there; /* as it was opened: with a header at least */
    bool log_used;  /* and with more than that */
    bool stale;     /* frames of a failed transaction may stand behind the end of the log */
    bool damaged;   /* the last commit failed because of the file's structure */
    bool read_only; /* opened for reading alone */
    bool mark_due;  /* all of the log is in the file, and no transaction since has marked it */
    int64_t mark, next_mark; /* db_mark.c: of the log; of the transaction under way */
    bool promise_due; /* the file does not say that it has a log: the next transaction does */
    bool keep_due;    /* damaged rows were found that no copy was made of */
    bool reserved;    /* the reserve holds its blocks */
    int reserve;      /* its file, or -1 */
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

/* The statement, ready for binding. */
sqlite3_stmt *db_statement(struct db *db, enum statement which);
/* Sets err to STORAGE with the file's name and what SQLite and the system say, and db->met; returns
 * -1. */
int db_error(struct db *db, const char *what, struct err *err);
int db_sql(struct db *db, const char *sql, struct err *err) MUST_CHECK;
/* The integer a one-row statement gives. */
int db_number(struct db *db, const char *sql, int64_t *ret, struct err *err) MUST_CHECK;
void db_bind_text(sqlite3_stmt *q, int index, struct str s);
struct str db_column(sqlite3_stmt *q, int index); /* a string or a blob; good until the next step */
int db_commit_sql(struct db *db, int result, struct err *err) MUST_CHECK;

/* db_format.c */
int db_format_create(struct db *db, struct err *err) MUST_CHECK;
int db_format_migrate(struct db *db, int format, struct err *err) MUST_CHECK;
/* The tables of a format, without rows. */
int db_format_tables(struct db *db, int format, struct err *err) MUST_CHECK;

/* db_meta.c: reads db->state, and begins a new life where that is due. */
int db_meta_settle(struct db *db, struct err *err) MUST_CHECK;
int db_meta_put(struct db *db, const char *key, int64_t value, struct err *err) MUST_CHECK;
int db_meta_create(struct db *db, struct err *err) MUST_CHECK; /* all rows, of a first life */
/* The file says that it has a log, or what it says cannot be read. */
bool db_meta_promises_log(struct db *db);
/* In a transaction: says so, if that is due. */
int db_meta_promise_log(struct db *db) MUST_CHECK;
int db_meta_forget_log(struct db *db, struct err *err) MUST_CHECK;
/* Into the rows of `to`, of any format, a report as of `from`'s clock. */
int db_meta_report(struct db *from, struct db *to, enum db_report report,
                   struct err *err) MUST_CHECK;
/* All rows as `from` was opened with them, but for the records, which are so many now. */
int db_meta_copy(struct db *from, struct db *to, int64_t records, struct err *err) MUST_CHECK;

/* db_mark.c */
/* In a transaction: marks the log, if that is due. And once it is committed. */
int db_mark(struct db *db) MUST_CHECK;
void db_marked(struct db *db);
/* Of a file that no log belongs to. A result of SQLite. */
int db_mark_own(sqlite3 *sql) MUST_CHECK;
void db_mark_load(struct db *db); /* once the file is open */

/* db_load.c: a row of VERSION_COLUMNS and sum, and whether that is right. */
void db_version_read(struct db *db, sqlite3_stmt *q, struct db_version *v);

/* db_commit.c */
int db_run_ops(struct db *db, const struct op *ops, size_t n) MUST_CHECK;
/* A transaction of nothing; 0 if it worked, else db->met. */
int db_heal(struct db *db) MUST_CHECK;
/* The whole log into the file. The second one always tries, and leaves db->trouble alone. */
bool db_fold(struct db *db) MUST_CHECK;
int db_fold_all(struct db *db, const char *what, struct err *err) MUST_CHECK;
/* Whatever comes of it, and whatever the file is: before it is closed. */
void db_fold_last(struct db *db);
