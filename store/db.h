/* SPDX-License-Identifier: Apache-2.0
 * What the store needs of a database: a log of versions, a few records, and transactions. Only
 * db_*.c know SQLite; another backend replaces these functions. A db belongs to one thread at a
 * time: the loop thread opens and loads it, then the writer thread owns it until it is closed. */
#pragma once

#include <sublet/store_disk.h>
#include <sublet/store_identity.h>

struct db;
struct op;

/* In the directory of a store. SQLite finds the log by the name of its file. */
#define DB_FILE       "state.db"
#define DB_LOG_SUFFIX "-wal"
#define DB_LOG_FILE   DB_FILE DB_LOG_SUFFIX

/* A version to be read back. */
struct db_row {
    int64_t revision;
    const struct store_object *object; /* out, owned; NULL: there is none, or it cannot be right */
    enum store_event_type type;        /* out */
};

struct db_options {
    int64_t (*wall_us)(void); /* never NULL */
    const struct rng *rng;
    struct store_predecessor after; /* epoch "": none */
};

/* Opens or creates <dir>/state.db and takes the lock on it. */
int db_open(const char *dir, const struct db_options *options, struct db **ret,
            struct err *err) MUST_CHECK;

/* What the file says of itself. */
struct db_state {
    struct store_identity identity;
    int64_t floor;     /* every event after this revision is there */
    int64_t revision;  /* the newest used up without a version, 0 if none was */
    int64_t records;   /* how many there are */
    bool salvaged;     /* the file was damaged, and made again of what could be read */
    bool untraced;     /* once, rows may have been lost without a trace */
    bool log_lost;     /* answered writes are missing; so a new life was begun */
    bool log_missing;  /* so answered writes may be; likewise, but where nothing can be written */
    bool meta_damaged; /* so a new life was begun */
    bool behind;       /* log_lost or log_missing, and none could begin: absence proves nothing */
    /* What a start finds once and makes good: what this one found, and starts of the last day. */
    unsigned found, reports; /* DB_REPORT_*: of this start; of all of them */
    int64_t reported_at;     /* of the last of them, Unix seconds; 0 without */
};
enum db_report {
    DB_REPORT_SALVAGED = 1,
    DB_REPORT_LOG = 2,
    DB_REPORT_LOG_MISSING = 4,
    DB_REPORT_ACCOUNT = 8
};
/* A report is durable together with what was made good, and starts repeat it for so long. */
#define DB_REPORT_S 86400
void db_state(const struct db *db, struct db_state *ret);
/* Keeps a copy of the file with its damaged rows beside it, <file>.damaged, unless there is one;
 * these: unless there is one of these bytes, since one of before lacks what was damaged later.
 * False: the disk does not take it now. It is made then before the first write of a file that was
 * open for reading alone, and once a full disk has room; until the next start its rows stay. */
bool db_keep_rows(struct db *db, bool these);
/* There are nine copies of damaged files, or of logs: a further one replaces the newest, .9. */
bool db_keep_is_full(const struct db *db);
/* One transaction; durable when it returns 0, and without effect when it returns -1. */
int db_commit(struct db *db, const struct op *ops, size_t n, struct err *err) MUST_CHECK;
/* After a commit was answered: moves the log into the file when it has grown. Errors show up in a
 * later commit, once the log is over its hard limit. */
void db_after_commit(struct db *db);
/* The structure of the file was found damaged by the last commit, which failed. */
bool db_is_damaged(const struct db *db);
/* All that the store has in memory, as of the last commit. */
struct db_snapshot {
    const struct op *ops; /* as in a transaction; nothing is undone */
    size_t n_ops;
    const int64_t
        *kept; /* revisions of versions in quarantine: their rows are copied as they are */
    size_t n_kept;
    int64_t records; /* how many there ought to be */
    bool untraced;   /* objects may be missing of which nothing is known */
};
/* A damaged file is made again while the store serves; state.db.damaged stays. -1: the file is as
 * it was, or the disk took that much of it and no more: see db_disk(). */
int db_rebuild(struct db *db, const struct db_snapshot *s, struct err *err) MUST_CHECK;
/* Fills rows in their order until they are most_bytes together, but never less than DB_READ_MIN;
 * *ret_n says how many. When it fails, nothing is known about any of them. */
#define DB_READ_MIN 2
int db_read(struct db *db, struct db_row *rows, size_t n, size_t most_bytes, size_t *ret_n,
            struct err *err) MUST_CHECK;
/* What the disk lets us do, as of the last call. */
struct disk_state {
    enum store_disk disk;
    char why[64]; /* as the system says it */
};
void db_disk(const struct db *db, struct disk_state *ret);
/* Tests whether there is space again, or whether the disk can be written again. */
void db_probe(struct db *db);
/* Does a bounded part of the deferred work. True: there is more. */
bool db_tidy(struct db *db);
/* Like free(): takes NULL, returns NULL. */
struct db *db_close(struct db *db);

/* The path of the file; constant, good on any thread while the db is open. */
const char *db_file(const struct db *db);

/* Backup: copies a bounded number of pages per step, commits may come in between. */
struct db_backup;
int db_backup_open(struct db *db, const char *path, struct db_backup **ret,
                   struct err *err) MUST_CHECK;
int db_backup_step(struct db_backup *b, bool *ret_more, struct err *err) MUST_CHECK;
/* Removes what is unfinished. Takes NULL, returns NULL. */
struct db_backup *db_backup_close(struct db_backup *b);

/* <dir>/state.db from the file `from`; <dir> must not hold a database yet. */
int db_restore(const char *from, const char *dir, struct err *err) MUST_CHECK;
