/* SPDX-License-Identifier: Apache-2.0
 * Whether SQLite will lose answered writes by reading the log. It takes the log to end at the first
 * frame that is not right, because that is how a transaction looks that a crash interrupted; behind
 * one damaged frame every later transaction is dropped without a word. The two differ when another
 * transaction follows: a commit is synced before the next one begins, so what stands before a
 * commit that has a successor was whole once.
 *
 * A log with such a loss is kept, and the store goes on like a copy of the moment its log ends at:
 * in a new life, at revisions no client has seen. The kept log has the name <file>-wal.lost until
 * that is durable, <file>-wal.damaged then.
 *
 * A log is always there, with its header at least, once the file says so (db_meta.c); the file does
 * not before a log was synced, and its name too. One that is missing then was removed, or left
 * behind by a copy: the store goes on like a restored one. LOST is there as well until that is
 * durable, and empty. It may be a false alarm: an older program and the sqlite3 shell remove the
 * log of a file they close.
 *
 * A log beside a file that is missing or empty has the newest answered writes, and nothing they
 * apply to. SQLite would remove it with the first read of the empty file: the store is not opened.
 *
 * A log that is another file's (db_mark.c) is LOST as it is: the store goes on with the file alone.
 *
 * What cannot be known: whether the last transaction of the log, when it is the damaged one, was
 * answered. Format: https://sqlite.org/fileformat2.html#walformat */
#include "db_disk.h"
#include "db_file.h"
#include "db_impl.h"

#include <sublet/store_admin.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER       DB_LOG_EMPTY
#define FRAME_HEADER 24
#define MAGIC        0x377f0682u /* the lowest bit: checksums of big-endian words */
#define PAGE_LEAST   512
#define PAGE_MOST    65536
#define FRAME_MOST   (FRAME_HEADER + PAGE_MOST)
#define PAGES_MOST   (1u << 22) /* more than a file of ours ever has */
#define LOST         DB_LOG_FILE ".lost"

struct check {
    uint32_t a, b;
};

struct frame {
    uint32_t salt[2];
    struct check stored, computed;
    bool commit;
};

struct log {
    sqlite3_file *file;
    sqlite3_int64 size;
    unsigned char *bytes; /* of one frame */
    unsigned page;
    bool big;
    uint32_t salt[2];
};

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t get_word(const struct log *l, const unsigned char *p)
{
    uint32_t n = get_u32(p);

    return l->big ? n : __builtin_bswap32(n);
}

static struct check add(const struct log *l, struct check c, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i + 8 <= n; i += 8) {
        c.a += get_word(l, p + i) + c.b;
        c.b += get_word(l, p + i + 4) + c.a;
    }
    return c;
}

/* add() backwards over the page: the sum in front of it. */
static struct check take_off(const struct log *l, struct check c, const unsigned char *p, size_t n)
{
    for (size_t i = n; i; i -= 8) {
        c.b -= get_word(l, p + i - 4) + c.a;
        c.a -= get_word(l, p + i - 8) + c.b;
    }
    return c;
}

static bool same(struct check x, struct check y)
{
    return x.a == y.a && x.b == y.b;
}

static struct check check_at(const unsigned char *p)
{
    return (struct check){get_u32(p), get_u32(p + 4)};
}

static int read_at(struct log *l, sqlite3_int64 at, unsigned n)
{
    return l->file->pMethods->xRead(l->file, l->bytes, (int)n, at);
}

/* True: the header is as SQLite wrote it. */
static bool take_header(struct log *l)
{
    const unsigned char *p = l->bytes;
    uint32_t magic = get_u32(p);

    l->big = magic & 1;
    l->page = get_u32(p + 8);
    if ((magic & ~1u) != MAGIC || l->page < PAGE_LEAST || l->page > PAGE_MOST || l->page % 8)
        return false;
    l->salt[0] = get_u32(p + 16);
    l->salt[1] = get_u32(p + 20);
    return same(add(l, (struct check){0}, p, 24), check_at(p + 24));
}

static int read_frame(struct log *l, sqlite3_int64 index, struct check seed, struct frame *ret)
{
    unsigned n = FRAME_HEADER + l->page;
    const unsigned char *p = l->bytes;
    int rc = read_at(l, HEADER + index * n, n);

    *ret = (struct frame){
        .salt = {get_u32(p + 8), get_u32(p + 12)},
        .stored = check_at(p + 16),
        .computed = add(l, add(l, seed, p, 8), p + FRAME_HEADER, l->page),
        .commit = get_u32(p + 4) != 0,
    };
    return rc;
}

/* Whether the frame in l->bytes, whose sum is wrong, ends a transaction. A write that was cut off
 * inside a frame's header puts the page number and mark of one transaction in front of the page and
 * the sum of another; those two give the number and mark that they were written with. */
static bool is_commit(const struct log *l, struct check seed, const struct frame *f)
{
    struct check behind = take_off(l, f->stored, l->bytes + FRAME_HEADER, l->page);
    uint32_t number = behind.a - seed.a - seed.b, mark = behind.b - seed.b - behind.a;

    if (!l->big)
        number = __builtin_bswap32(number);
    return f->commit && (mark || !number || number > PAGES_MOST);
}

/* The frame in l->bytes comes right after `before`, which may be damaged in its page or its sum. */
static bool follows(const struct log *l, const struct frame *before, const struct frame *f)
{
    const unsigned char *p = l->bytes;
    struct check other = add(l, add(l, before->computed, p, 8), p + FRAME_HEADER, l->page);

    return f->salt[0] == l->salt[0] && f->salt[1] == l->salt[1] &&
           (same(f->computed, f->stored) || same(other, f->stored));
}

/* Looks for the end SQLite will find, and behind it for a commit that has a successor. */
static int find_lost(struct log *l, bool *ret_lost)
{
    sqlite3_int64 n = (l->size - HEADER) / (FRAME_HEADER + l->page);
    struct frame before = {.stored = check_at(l->bytes + 24)}, f;
    bool ended = false;
    int rc = 0;

    for (sqlite3_int64 i = 0; i < n && !rc && !*ret_lost; i++) {
        rc = read_frame(l, i, before.stored, &f);
        if (ended)
            *ret_lost = before.commit && follows(l, &before, &f);
        else
            ended =
                f.salt[0] != l->salt[0] || f.salt[1] != l->salt[1] || !same(f.computed, f.stored);
        if (!same(f.computed, f.stored))
            f.commit = is_commit(l, before.stored, &f);
        before = f;
    }
    return rc;
}

/* A header of zeros was never synced, and no frame behind it was. Any other is written at once. */
static bool never_synced(const struct log *l)
{
    static const unsigned char zeros[HEADER];

    return !memcmp(l->bytes, zeros, HEADER);
}

static int inspect(struct log *l, bool *ret_lost)
{
    int rc = l->file->pMethods->xFileSize(l->file, &l->size);

    if (rc || l->size < HEADER + FRAME_HEADER + PAGE_LEAST || (rc = read_at(l, 0, HEADER)) != 0)
        return rc;
    if (take_header(l))
        return find_lost(l, ret_lost);
    *ret_lost = !never_synced(l);
    return 0;
}

static ssize_t read_log(void *ctx, void *bytes, size_t n, int64_t at)
{
    const struct log *l = ctx;
    size_t left = at < l->size ? (size_t)(l->size - at) : 0;

    n = n < left ? n : left;
    if (!n || l->file->pMethods->xRead(l->file, bytes, (int)n, at) == SQLITE_OK)
        return (ssize_t)n;
    errno = EIO;
    return -1;
}

/* xAccess of unix: a file is there when it has a size. */
static int exists(const char *path, int *ret)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);

    *ret = 0;
    return vfs->xAccess(vfs, path, SQLITE_ACCESS_EXISTS, ret);
}

/* Through SQLite's own layer, and before it opens the file itself: closing a database folds its
 * log. A log with a loss is copied to `lost`; *ret_kept is the result of that. */
static int inspect_file(struct db *db, const char *lost, bool *ret_lost, int *ret_kept,
                        struct err *err)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    struct log l = {.file = mem_alloc((size_t)vfs->szOsFile), .bytes = mem_alloc(FRAME_MOST)};
    char *path = db_path_join(db->dir, DB_LOG_FILE);
    sqlite3_filename name = sqlite3_create_filename(db->file, "", path, 0, NULL);
    int there = 0, rc = name ? SQLITE_OK : SQLITE_NOMEM;

    errno = 0;
    if (!rc)
        rc = exists(path, &there);
    db->log_there = db->log_used = false;
    if (!rc && there) {
        memset(l.file, 0, (size_t)vfs->szOsFile);
        rc = vfs->xOpen(vfs, sqlite3_filename_wal(name), l.file,
                        SQLITE_OPEN_READONLY | SQLITE_OPEN_WAL, NULL);
        if (!rc)
            rc = inspect(&l, ret_lost);
        db->log_there = l.size >= HEADER;
        db->log_used = l.size > HEADER;
        if (!rc && *ret_lost)
            *ret_kept = db_keep_bytes(read_log, &l, lost, err);
        if (l.file->pMethods)
            l.file->pMethods->xClose(l.file);
    }
    sqlite3_free_filename(name);
    mem_free(path);
    mem_free(l.bytes);
    mem_free(l.file);
    return rc;
}

/* Begun through a rollback journal, a file has its first page before it has a log. */
int db_log_check_file(struct db *db, struct err *err)
{
    char *log = db_path_join(db->dir, DB_LOG_FILE);
    int file = 0, there = 0, rc = exists(db->file, &file), result = 0;

    if (!rc && !file)
        rc = exists(log, &there);
    if (rc)
        result = err_set(err, &ERR_STORAGE, "%s: %s", db->file, sqlite3_errstr(rc));
    else if (!file)
        result = db_restore_check(db->dir, err);
    if (!result && there)
        result = err_set(err, &ERR_STORAGE,
                         "%s is missing or empty, and its log is not: put the file back, or remove "
                         "%s and restore a backup",
                         db->file, log);
    mem_free(log);
    return result;
}

/* Whatever a kill leaves, the log is either there, and found again, or LOST. */
static int put_foreign_aside(struct db *db, const char *lost, struct err *err)
{
    char *log = db_path_join(db->dir, DB_LOG_FILE);
    int result = 0;

    db->log_there = db->log_used = false;
    if (rename(log, lost)) {
        db_disk_met(db, errno);
        result = err_set(err, &ERR_STORAGE, "%s is the log of another file: %s", log,
                         strerrordesc_np(errno));
    } else {
        result = store_sync_dir_of(lost, err);
    }
    mem_free(log);
    return result;
}

int db_log_inspect(struct db *db, struct err *err)
{
    char *lost = db_path_join(db->dir, LOST);
    bool *state = &db->state.log_lost, foreign = false;
    int rc = 0, result = 0;
    struct stat st = {0};

    db->log_used = false;
    /* Only what is known not to be there is not. */
    *state = !stat(lost, &st);
    db->state.log_missing = *state && !st.st_size;
    if (db->state.log_missing)
        *state = false;
    else if (!*state && errno != ENOENT)
        result = err_set(err, &ERR_STORAGE, "%s: %s", lost, strerrordesc_np(errno));
    else if (!*state && (rc = inspect_file(db, lost, state, &result, err)) != 0) {
        if (rc == SQLITE_CANTOPEN)
            db_disk_met(db, errno);
        result = err_set(err, &ERR_STORAGE, "%s: the log: %s", db->file, sqlite3_errstr(rc));
    }
    if (!result && !*state && db->log_used)
        result = db_log_is_foreign(db, &foreign, err);
    if (foreign) {
        *state = true;
        result = put_foreign_aside(db, lost, err);
    }
    mem_free(lost);
    return result;
}

int db_log_look(struct db *db, struct err *err)
{
    char *path = db_path_join(db->dir, DB_LOG_FILE), *lost = db_path_join(db->dir, LOST);
    struct stat st;
    int there = 0, result = 0;
    bool foreign = false;

    /* One that cannot be looked at is one that holds something. */
    db->log_there = exists(path, &there) || there;
    db->state.log_missing = !stat(lost, &st) && !st.st_size;
    if (there && !db->state.log_missing)
        result = db_log_is_foreign(db, &foreign, err);
    if (foreign) {
        db->state.log_lost = true;
        db->log_there = false;
    }
    mem_free(path);
    mem_free(lost);
    return result;
}

static ssize_t read_nothing(void *ctx, void *bytes, size_t n, int64_t at)
{
    (void)ctx, (void)bytes, (void)n, (void)at;
    return 0;
}

/* SQLite makes a log with the first transaction, and a kill within that one leaves it without it:
 * what is missing is written down first. */
int db_log_find(struct db *db, int format, struct err *err)
{
    struct db_state *s = &db->state;

    if (s->log_lost || s->log_missing || db->log_there || format < 2 || !db_meta_promises_log(db))
        return 0;
    s->log_missing = true;
    if (db->read_only)
        return 0;
    char *lost = db_path_join(db->dir, LOST);
    int result = db_keep_bytes(read_nothing, NULL, lost, err);
    if (result)
        db_disk_met(db, errno);
    mem_free(lost);
    return result;
}

static int forget_missing(const char *lost, struct err *err)
{
    if (unlink(lost) && errno != ENOENT)
        return err_set(err, &ERR_STORAGE, "%s: %s", lost, strerrordesc_np(errno));
    return store_sync_dir_of(lost, err);
}

static int keep_lost(struct db *db, const char *lost, struct err *err)
{
    char *log = db_path_join(db->dir, DB_LOG_FILE), *kept = NULL;
    int result = db_keep_name(log, &kept, err);

    if (!result && rename(lost, kept))
        result = err_set(err, &ERR_STORAGE, "%s: cannot be renamed", lost);
    if (!result)
        result = store_sync_dir_of(kept, err);
    mem_free(log);
    mem_free(kept);
    return result;
}

int db_log_settled(struct db *db, struct err *err)
{
    const struct db_state *s = &db->state;
    char *lost = db_path_join(db->dir, LOST);
    int result = s->log_missing ? forget_missing(lost, err)
                 : s->log_lost  ? keep_lost(db, lost, err)
                                : 0;

    mem_free(lost);
    return result;
}
