/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing the SQLite file: locks, permissions, settings, schema. One process owns a
 * tenant's data at a time; a second one gets a clear error, never a busy database. */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"
#include "db_salvage.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before the file is first read. The lock mode comes first, because others below already read: the
 * log's index then lives on the heap and needs no shared memory file. None of them writes. */
static const char SETTINGS_EARLY[] = "PRAGMA locking_mode=EXCLUSIVE;"
                                     "PRAGMA cache_size=-256;"
                                     "PRAGMA mmap_size=0;"
                                     "PRAGMA temp_store=MEMORY;"
                                     "PRAGMA trusted_schema=OFF;"
                                     "PRAGMA cell_size_check=ON;";
/* Before the first page is written. */
static const char SETTINGS_FIRST[] = "PRAGMA page_size=4096;PRAGMA auto_vacuum=INCREMENTAL;";
/* Once we know that the file is ours: the journal mode is written into it. */
static const char SETTINGS_LATE[] = "PRAGMA journal_mode=WAL;"
                                    "PRAGMA synchronous=FULL;"
                                    "PRAGMA wal_autocheckpoint=0;"
                                    "PRAGMA journal_size_limit=4194304;";

char *db_path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = mem_alloc(n);

    snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static int open_dir(const char *dir, struct err *err)
{
    if (mkdir(dir, 0700) && errno != EEXIST)
        return err_set(err, &ERR_STORAGE, "%s: %s", dir, strerrordesc_np(errno));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, &ERR_STORAGE, "%s: %s", dir, strerrordesc_np(errno));
    return fd;
}

int db_lock(const char *dir, int *ret_lock, struct err *err)
{
    int dir_fd = open_dir(dir, err);
    if (dir_fd < 0)
        return -1;
    int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int why = errno;
    if (fd < 0 && (why == EROFS || why == EACCES)) /* a lock needs no right to write */
        fd = openat(dir_fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    close(dir_fd);
    if (fd < 0)
        return err_set(err, &ERR_STORAGE, "%s/lock: %s", dir, strerrordesc_np(why));

    struct stat st;
    bool locked = !flock(fd, LOCK_EX | LOCK_NB);
    why = errno;
    if (locked && !fstat(fd, &st) && st.st_nlink) {
        *ret_lock = fd;
        return 0;
    }
    close(fd);
    if (locked) /* by a restore of nothing: see db_restore.c */
        why = ENOENT;
    if (why == EWOULDBLOCK)
        return err_set(err, &ERR_STORAGE, "%s is in use by another process", dir);
    return err_set(err, &ERR_STORAGE, "%s/lock: %s", dir, strerrordesc_np(why));
}

/* SQLite gives its log the permissions of the file, so the file is made first. */
static int make_file(struct db *db, struct err *err)
{
    int dir_fd = open_dir(db->dir, err);
    if (dir_fd < 0)
        return -1;

    int fd = openat(dir_fd, DB_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool made = fd >= 0 && !fchmod(fd, 0600) && !fsync(dir_fd);
    int why = errno;
    /* Closing drops this process's record locks on the file: it happens before SQLite takes any. */
    if (fd >= 0)
        close(fd);
    close(dir_fd);
    if (made)
        return 0;
    db_disk_met(db, why);
    return err_set(err, &ERR_STORAGE, "%s: %s", db->file, strerrordesc_np(why));
}

static int on_log(void *ctx, sqlite3 *sql, const char *name, int pages)
{
    (void)sql, (void)name;
    struct db *db = ctx;
    assert(db->magic == DB_MAGIC);
    db->log_pages = pages;
    return SQLITE_OK;
}

int db_connect(struct db *db, const char *name, int flags, const char *vfs, struct err *err)
{
    flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE;
    errno = 0;
    if (sqlite3_open_v2(name, &db->sql, flags, vfs))
        return db_error(db, "open", err);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0); /* 48 KiB, for parsing */
    /* Closing would remove the log: see db_log.c. */
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_limit(db->sql, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (db_sum_register(db->sum, db->sql))
        return db_error(db, "open", err);
    return db_sql(db, SETTINGS_EARLY, err);
}

/* A full disk that a start copes with is a state, and no cause of what fails after it. */
static int go_on_full(struct db *db, struct err *err)
{
    db->disk = STORE_DISK_FULL;
    db_disk_met(db, 0);
    if (err)
        err_clear(err);
    return 0;
}

/* The hook above counts commits of this process; what a crash left in the log counts as well. A
 * file that has no room to grow keeps its log: it is read all the same, and deletes are added. */
static int fold_old_log(struct db *db, bool fresh, struct err *err)
{
    if (!db_fold_all(db, "recover", err))
        return 0;
    if (fresh || db->met != STORE_DISK_FULL)
        return -1;
    if (db_reserve_give_up(db) && !db_fold_all(db, "recover", err))
        return go_on_full(db, err);
    db->log_pages = DB_LOG_PAGES;
    return go_on_full(db, err);
}

/* A store that cannot even have its reserve is not begun. */
static int make_reserve(struct db *db, bool fresh, struct err *err)
{
    if (db_reserve_fill(db, false)) {
        db_disk_met(db, 0);
        return 0;
    }
    if (fresh)
        return err_set(err, &ERR_STORAGE, "%s/reserve: %s", db->dir, db->why);
    return go_on_full(db, err);
}

int db_check_owner(struct db *db, int *ret_format, struct err *err)
{
    int64_t application, version, tables;

    if (db_number(db, "PRAGMA application_id", &application, err) ||
        db_number(db, "PRAGMA user_version", &version, err) ||
        db_number(db, "SELECT count(*) FROM sqlite_schema", &tables, err))
        return -1;
    *ret_format = 0;
    if (!application && !version && !tables)
        return 0;
    if (application != DB_APPLICATION)
        return err_set(err, &ERR_STORAGE, "%s is not a Sublet database", db->file);
    if (version < 1 || version > DB_FORMAT)
        return err_set(err, &ERR_STORAGE,
                       "%s has format %lld, this program knows formats 1 to %d: run the version of "
                       "Sublet that wrote it or a later one, or restore a backup of format %d",
                       db->file, (long long)version, DB_FORMAT, DB_FORMAT);
    *ret_format = (int)version;
    return 0;
}

static int settle_file(struct db *db, int format, struct err *err)
{
    int64_t vacuum;

    if (make_reserve(db, !format, err) || (!format && db_sql(db, SETTINGS_FIRST, err)) ||
        db_sql(db, SETTINGS_LATE, err) || fold_old_log(db, !format, err))
        return -1;
    /* After wal_autocheckpoint, which is a hook itself and would take this one's place. */
    sqlite3_wal_hook(db->sql, on_log, db);
    if ((!format && db_format_create(db, err)) || db_number(db, "PRAGMA auto_vacuum", &vacuum, err))
        return -1;
    if (vacuum != 2)
        return err_set(err, &ERR_STORAGE, "%s was rewritten by another program: auto_vacuum is off",
                       db->file);
    return 0;
}

int db_check_connected(struct db *db, int connected, int *ret_format, bool *ret_damaged,
                       struct err *err)
{
    *ret_damaged = false;
    if (!connected && !db_check_owner(db, ret_format, err))
        return 0;
    if ((sqlite3_errcode(db->sql) & 0xff) != SQLITE_CORRUPT)
        return -1;
    if (err)
        err_clear(err);
    if (db_salvage_due(db, ret_damaged, err))
        return -1;
    if (*ret_damaged)
        db_salvage_accept(db);
    return db_sql(db, SETTINGS_EARLY, err) || db_check_owner(db, ret_format, err) ? -1 : 0;
}

static int connect_file(struct db *db, int *ret_format, bool *ret_damaged, struct err *err)
{
    int connected = db_connect(db, db->file, SQLITE_OPEN_READWRITE, NULL, err);

    return db_check_connected(db, connected, ret_format, ret_damaged, err);
}

/* A file that was made again is opened again: once, because what is new is not damaged. One of an
 * earlier format is made again in that format, and migrated then: a migration reads every row. */
static int open_file(struct db *db, struct err *err)
{
    bool salvaged = false, damaged;
    int format;

    if (db_log_inspect(db, err))
        return -1;
    for (bool whole = false; !whole;) {
        if (connect_file(db, &format, &damaged, err) || db_log_find(db, format, err) ||
            settle_file(db, format, err))
            return -1;
        db->format = format ? format : DB_FORMAT;
        whole = salvaged;
        if (!whole && db_salvage(db, damaged, &salvaged, err))
            return -1;
        whole |= !salvaged;
    }
    if (db->format < DB_FORMAT && db_format_migrate(db, db->format, err))
        return -1;
    db->state.salvaged = salvaged;
    db->format = DB_FORMAT;
    return db_meta_settle(db, err) || db_log_settled(db, err) ? -1 : 0;
}

int db_open_writable(struct db *db, struct err *err)
{
    db->met = db->disk = STORE_DISK_WRITABLE;
    return db_log_check_file(db, err) || make_file(db, err) || open_file(db, err) ||
                   db_prepare(db, err)
               ? -1
               : 0;
}

static int open_steps(struct db *db, struct err *err)
{
    if (db_lock(db->dir, &db->lock, err))
        return -1;
    if (!db_open_writable(db, err))
        return 0;
    return db->met ? db_read_only(db, err) : -1;
}

/* Pages are taken one by one and given back when it is quiet, not twenty at once for ever. Says no
 * once the library is in use, and then it was said before. */
static void configure_library(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
    sqlite3_soft_heap_limit64(1 << 20);
}

int db_open(const char *dir, const struct db_options *options, struct db **ret, struct err *err)
{
    struct db *db = NEW(struct db);

    db->magic = DB_MAGIC;
    db->lock = db->raw = db->reserve = -1;
    db->options = *options;
    db->sum = db_sum_new();
    db->dir = mem_strdup(str_c(dir));
    db->file = db_path_join(dir, DB_FILE);
    configure_library();
    if (open_steps(db, err)) {
        db_close(db);
        return -1;
    }
    *ret = db;
    return 0;
}

void db_state(const struct db *db, struct db_state *ret)
{
    *ret = db->state;
}

const char *db_file(const struct db *db)
{
    return db->file;
}

void db_disconnect(struct db *db)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(db->statements[i]);
        db->statements[i] = NULL;
    }
    if (db->sql) {
        if (!db->read_only)
            db_fold_last(db);
        int rc = sqlite3_close(db->sql);
        assert(rc == SQLITE_OK);
        db->sql = NULL;
    }
    db->format = 0;
    if (db->raw >= 0)
        close(db->raw);
    db->raw = -1;
}

struct db *db_close(struct db *db)
{
    if (!db)
        return NULL;
    assert(db->magic == DB_MAGIC);

    db_disconnect(db);
    db_reserve_close(db);
    if (db->lock >= 0)
        close(db->lock);
    db_sum_free(db->sum);
    mem_free(db->file);
    mem_free(db->dir);
    db->magic = 0;
    mem_free(db);
    return NULL;
}
