/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit log's file: appended to, rotated by size, old backups removed. Names are those of
 * kube-apiserver's log (audit-2026-01-02T15-04-05.000.log beside audit.log), which collectors know.
 * Must never remove a file it did not rotate itself, by name, and never follow a link to write.
 * Source: gopkg.in/natefinch/lumberjack.v2, which kube-apiserver rotates with. */
#include "file.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sublet/clock.h>

#define FILE_MAGIC  0x6175666cu
#define STAMP_SIZE  23 /* 2006-01-02T15-04-05.000 */
#define DAY_SECONDS (24 * 3600)

struct audit_file {
    unsigned magic;
    char *path; /* NULL: the standard output */
    struct str directory, stem, suffix;
    char *parts; /* the buffer of the next three */
    int fd;
    int64_t size, max_bytes, max_backups, max_age_days;
    const struct clock *clock;
};

/* "dir/audit.log": "dir", "audit", ".log". */
static void split_path(struct audit_file *f)
{
    struct str all = str_c(f->path), name;
    size_t slash = str_rfind(all, '/'), dot;

    f->parts = mem_strdup(all);
    all.p = f->parts;
    f->directory = slash < all.n ? str_sub(all, 0, slash ? slash : 1) : STR(".");
    name = slash < all.n ? str_from(all, slash + 1) : all;
    dot = str_rfind(name, '.');
    f->stem = str_sub(name, 0, dot);
    f->suffix = str_from(name, dot);
}

static int open_file(struct audit_file *f)
{
    struct stat st;

    f->fd =
        open(f->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (f->fd < 0)
        return -1;
    if (fstat(f->fd, &st) || !S_ISREG(st.st_mode)) {
        close(f->fd);
        f->fd = -1;
        errno = EINVAL;
        return -1;
    }
    f->size = st.st_size;
    return 0;
}

/* A temporary condition of the disk does not prevent serving: events are lost, counted and reported
 * until the file can be opened. */
static bool is_for_now(int why)
{
    return why == ENOSPC || why == EDQUOT || why == EROFS;
}

int audit_file_open(const struct audit_log_options *options, struct audit_file **ret,
                    struct err *err)
{
    struct audit_file *f = NEW(struct audit_file);

    f->magic = FILE_MAGIC;
    f->max_bytes = options->max_bytes;
    f->max_backups = options->max_backups;
    f->max_age_days = options->max_age_days;
    f->clock = options->clock;
    if (str_eqc(options->path, "-")) {
        f->fd = STDOUT_FILENO;
        *ret = f;
        return 0;
    }
    f->path = mem_strdup(options->path);
    split_path(f);
    if (!open_file(f) || is_for_now(errno)) {
        *ret = f;
        return 0;
    }
    err_set(err, &ERR_UNAVAILABLE, "audit log %s: %s", f->path, strerror(errno));
    audit_file_close(f);
    return -1;
}

void audit_file_close(struct audit_file *f)
{
    assert(f->magic == FILE_MAGIC);
    if (f->path && f->fd >= 0)
        close(f->fd);
    mem_free(f->path);
    mem_free(f->parts);
    f->magic = 0;
    mem_free(f);
}

/* ---- backups ---- */

/* "audit-<stamp>.log" */
static bool is_backup(const struct audit_file *f, struct str name)
{
    struct str stamp;

    if (name.n != f->stem.n + 1 + STAMP_SIZE + f->suffix.n || !str_has_prefix(name, f->stem) ||
        !str_has_suffix(name, f->suffix) || name.p[f->stem.n] != '-')
        return false;
    stamp = str_sub(name, f->stem.n + 1, STAMP_SIZE);
    for (size_t i = 0; i < stamp.n; i++) {
        char want = "0000-00-00T00-00-00.000"[i], c = stamp.p[i];

        if (want == '0' ? c < '0' || c > '9' : c != want)
            return false;
    }
    return true;
}

struct backups {
    char **names;
    size_t n, cap;
};

static int newest_first(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}

/* Compares the date in the name, as days of the same calendar. */
static bool too_old(const struct audit_file *f, const char *name)
{
    time_t limit = (time_t)(clock_wall_s(f->clock) - f->max_age_days * DAY_SECONDS);
    char stamp[STAMP_SIZE + 1];
    struct tm tm;

    if (!f->max_age_days)
        return false;
    gmtime_r(&limit, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%S.000", &tm);
    return strncmp(name + f->stem.n + 1, stamp, STAMP_SIZE) < 0;
}

static void remove_old(const struct audit_file *f)
{
    struct buf path = BUF_INIT(0);
    struct backups b = {NULL, 0, 0};
    struct dirent *entry;
    DIR *dir;

    buf_printf(&path, "%.*s", STR_F(f->directory));
    buf_char(&path, '\0');
    dir = opendir(path.p);
    buf_fini(&path);
    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        if (!is_backup(f, str_c(entry->d_name)))
            continue;
        GROW(b.names, b.n, b.cap);
        b.names[b.n++] = mem_strdup(str_c(entry->d_name));
    }
    if (b.n)
        qsort(b.names, b.n, sizeof(*b.names), newest_first);
    for (size_t i = 0; i < b.n; i++) {
        if ((f->max_backups && i >= (size_t)f->max_backups) || too_old(f, b.names[i]))
            unlinkat(dirfd(dir), b.names[i], 0);
        mem_free(b.names[i]);
    }
    mem_free(b.names);
    closedir(dir);
}

static char *backup_path(const struct audit_file *f)
{
    int64_t us = clock_wall_us(f->clock);
    time_t seconds = (time_t)(us / 1000000);
    struct buf b = BUF_INIT(0);
    char stamp[32];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H-%M-%S", &tm);
    buf_printf(&b, "%.*s/%.*s-%s.%03d%.*s", STR_F(f->directory), STR_F(f->stem), stamp,
               (int)(us / 1000 % 1000), STR_F(f->suffix));
    buf_char(&b, '\0');
    return b.p;
}

/* ---- writing ---- */

static size_t count_lines(struct str text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* The prefix that still fits: whole lines, at least one. */
static struct str fitting(const struct audit_file *f, struct str text)
{
    size_t room, end;

    if (!f->path || !f->max_bytes || f->size + (int64_t)text.n <= f->max_bytes)
        return text;
    room = f->size < f->max_bytes ? (size_t)(f->max_bytes - f->size) : 0;
    end = str_rfind(str_sub(text, 0, room), '\n');
    if (end < room)
        return str_sub(text, 0, end + 1);
    return f->size ? str_sub(text, 0, 0) : str_sub(text, 0, str_find(text, '\n') + 1);
}

/* A full disk accepted a part of a line: truncates it, so that the next line begins as one. Returns
 * the remaining bytes, from the beginning of that line. */
static struct str take_back(struct audit_file *f, struct str text, size_t done)
{
    size_t whole = str_rfind(str_sub(text, 0, done), '\n');

    whole = whole < done ? whole + 1 : 0;
    if (f->path && whole < done && !ftruncate(f->fd, f->size - (int64_t)(done - whole)))
        f->size -= (int64_t)(done - whole);
    return str_from(text, whole);
}

/* Returns the bytes that could not be written. */
static struct str write_all(struct audit_file *f, struct str text)
{
    size_t done = 0;

    while (done < text.n) {
        ssize_t n = write(f->fd, text.p + done, text.n - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return take_back(f, text, done);
        f->size += n;
        done += (size_t)n;
    }
    return STR("");
}

size_t audit_file_write(struct audit_file *f, struct str text)
{
    assert(f->magic == FILE_MAGIC);
    while (text.n) {
        struct str piece = fitting(f, text), left;

        if (!piece.n) {
            char *aside = backup_path(f);
            struct stat st;

            /* A file that cannot be rotated keeps growing: events matter more than sizes. */
            if (lstat(aside, &st) && !rename(f->path, aside)) {
                close(f->fd);
                open_file(f);
                remove_old(f);
            }
            mem_free(aside);
            piece = text; /* a file that could not be rotated accepts it nevertheless */
            if (f->fd >= 0 && f->size < f->max_bytes)
                piece = fitting(f, text);
        }
        if (f->path && f->fd < 0 && open_file(f))
            return count_lines(text);
        left = write_all(f, piece);
        if (left.n)
            return count_lines(left) + count_lines(str_from(text, piece.n));
        text = str_from(text, piece.n);
    }
    return 0;
}
