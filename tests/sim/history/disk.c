/* SPDX-License-Identifier: Apache-2.0 */
/* See disk.h. A file is two images, durable and current, and the list of the operations between
 * them. */
#include "disk.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECTOR 512
#define PAGE   4096

struct image {
    char *bytes;
    size_t size, room;
};

/* A write (bytes set), or a change of the size. */
struct pending {
    struct pending *next;
    char *bytes;
    size_t at, n;
};

struct file {
    struct file *next;
    char name[64];
    struct image now, durable;
    struct pending *first, **last;
    bool named, entered; /* its directory entry is there, and durable */
    bool unsettled;      /* since its last sync, over all crashes */
};

struct disk {
    struct disk *next;
    char path[PATH_MAX];
    struct file *files;
    struct disk_faults faults;
    unsigned generation; /* of the process that may use it */
    bool trapped, frozen;
    unsigned left;
    void (*died)(void *ctx);
    void *ctx;
};

struct handle {
    sqlite3_file base;
    struct disk *disk; /* NULL: a file without a name */
    struct file *file;
    unsigned generation;
    bool syncs_names; /* its next sync is one of the directory as well */
};

static struct {
    struct moment *moment;
    char path[PATH_MAX];
    struct disk *disks;
    unsigned torn, unread;
    bool show;
    sqlite3_vfs vfs;
    sqlite3_vfs *system;
} root;

/* As "<disk>/<file>: <what> at <at>, <n> bytes, hash <hash>"; the same content has the same
 * hash. */
static void show(const char *path, const char *name, const char *what, size_t at, struct str bytes)
{
    const char *mount = strrchr(path, '/');

    if (!root.show)
        return;
    printf("%*s%s/%s: %s at %zu", 18, "", mount ? mount + 1 : path, name, what, at);
    if (bytes.n)
        printf(", %zu bytes, hash %08x", bytes.n, (unsigned)str_hash(bytes, 1));
    printf("\n");
}

/* --- images --- */

static void image_size(struct image *i, size_t size)
{
    if (size > i->room) {
        i->room = size * 2;
        i->bytes = mem_realloc(i->bytes, i->room);
    }
    if (size > i->size)
        memset(i->bytes + i->size, 0, size - i->size);
    i->size = size;
}

static void image_write(struct image *i, size_t at, const char *bytes, size_t n)
{
    if (at + n > i->size)
        image_size(i, at + n);
    memcpy(i->bytes + at, bytes, n);
}

static void image_copy(struct image *to, const struct image *from)
{
    to->size = 0;
    image_size(to, from->size);
    if (from->size)
        memcpy(to->bytes, from->bytes, from->size);
}

/* --- files --- */

static struct file *file_new(struct disk *d, const char *name)
{
    struct file *f = NEW(struct file);

    snprintf(f->name, sizeof(f->name), "%s", name);
    f->last = &f->first;
    f->named = true;
    if (d) {
        f->next = d->files;
        d->files = f;
    }
    return f;
}

static void forget_pending(struct file *f)
{
    while (f->first) {
        struct pending *p = f->first;

        f->first = p->next;
        mem_free(p->bytes);
        mem_free(p);
    }
    f->last = &f->first;
}

static void file_free(struct file *f)
{
    forget_pending(f);
    mem_free(f->now.bytes);
    mem_free(f->durable.bytes);
    mem_free(f);
}

static struct file *file_find(const struct disk *d, const char *name)
{
    struct file *f = d->files;

    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    return f;
}

static void file_remove(struct disk *d, struct file *f)
{
    struct file **at = &d->files;

    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    file_free(f);
}

static void file_pend(struct file *f, size_t at, const char *bytes, size_t n)
{
    struct pending *p = NEW(struct pending);

    *p = (struct pending){.at = at, .n = n};
    if (bytes) {
        p->bytes = mem_alloc(n ? n : 1);
        memcpy(p->bytes, bytes, n);
    }
    *f->last = p;
    f->last = &p->next;
    f->unsettled = true;
}

/* What a sync that succeeded covers is what was pending, not the whole file. */
static void file_sync(struct file *f)
{
    for (const struct pending *p = f->first; p; p = p->next) {
        if (p->bytes)
            image_write(&f->durable, p->at, p->bytes, p->n);
        else
            image_size(&f->durable, p->at);
    }
    forget_pending(f);
    f->entered = true;
    f->unsettled = false;
}

/* --- power --- */

static void keep_part(struct file *f, const struct pending *p, unsigned of_thousand)
{
    if (!p->bytes) {
        if (dice_chance(root.moment, DICE_DISK, of_thousand))
            image_size(&f->durable, p->at);
        return;
    }
    for (size_t at = 0; at < p->n;) {
        size_t n = SECTOR - (p->at + at) % SECTOR;

        if (n > p->n - at)
            n = p->n - at;
        if (dice_chance(root.moment, DICE_DISK, of_thousand))
            image_write(&f->durable, p->at + at, p->bytes + at, n);
        else
            root.torn++;
        at += n;
    }
}

/* Of each file another share survives, none and all included. */
static void lose_power(struct file *f)
{
    unsigned share = (unsigned)dice_below(root.moment, DICE_DISK, 5) * 250;

    for (const struct pending *p = f->first; p; p = p->next)
        keep_part(f, p, share);
    forget_pending(f);
    image_copy(&f->now, &f->durable);
}

static void show_file(const struct disk *d, const struct file *f, const char *what)
{
    show(d->path, f->name, what, f->now.size, (struct str){f->now.bytes, f->now.size});
}

void disk_after_crash(struct disk *d, bool power)
{
    struct file *next;

    d->generation++;
    d->trapped = d->frozen = false;
    show(d->path, "", power ? "power lost" : "process died", 0, STR_NULL);
    for (struct file *f = d->files; f; f = next) {
        next = f->next;
        if (power) {
            /* A name that was made or removed without a sync of its directory: either way. */
            if (f->named != f->entered)
                f->named = dice_chance(root.moment, DICE_DISK, 500);
            lose_power(f);
            show_file(d, f, f->named ? "as it was left, end" : "lost its name, end");
            f->entered = f->named;
        }
        if (!f->named)
            file_remove(d, f);
    }
}

void disk_trap(struct disk *d, unsigned operations, void (*died)(void *ctx), void *ctx)
{
    d->trapped = true;
    d->left = operations;
    d->died = died;
    d->ctx = ctx;
}

void disk_show(void)
{
    root.show = true;
}

void disk_trap_off(struct disk *d)
{
    d->trapped = false;
}

/* True: the process that does this is dead already, or dies right before it. */
static bool is_dead(struct handle *h)
{
    struct disk *d = h->disk;

    if (!d)
        return false;
    if (d->frozen || h->generation != d->generation)
        return true;
    if (!d->trapped || d->left-- > 0)
        return false;
    d->trapped = false;
    d->frozen = true;
    d->died(d->ctx);
    return true;
}

static bool fails(struct handle *h, unsigned of_thousand)
{
    return h->disk && of_thousand && dice_chance(root.moment, DICE_DISK, of_thousand);
}

static bool is_bad(const struct handle *h, uint64_t page)
{
    const struct disk_faults *f = &h->disk->faults;

    return str_hash(str_c(h->file->name), f->bad_sectors + page * 1000003) % 1000 < f->read_errors;
}

/* A disk that is tired reads at the next try; a bad sector stays bad. */
static bool read_fails(struct handle *h, size_t from, size_t n)
{
    bool bad = false;

    if (!h->disk || !h->disk->faults.bad_sectors)
        return fails(h, h->disk ? h->disk->faults.read_errors : 0);
    for (uint64_t page = from / PAGE; page * PAGE < from + n && !bad; page++)
        bad = is_bad(h, page);
    return bad;
}

/* --- SQLite's file --- */

static struct handle *handle_of(sqlite3_file *file)
{
    return (struct handle *)file;
}

static int on_close(sqlite3_file *file)
{
    struct handle *h = handle_of(file);

    if (!h->disk)
        file_free(h->file);
    return SQLITE_OK;
}

static int on_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    struct handle *h = handle_of(file);
    const struct image *i = &h->file->now;
    size_t from = (size_t)at, have = from < i->size ? i->size - from : 0;

    if (h->disk && (h->disk->frozen || h->generation != h->disk->generation))
        return SQLITE_IOERR_READ;
    if (read_fails(h, from, (size_t)n)) {
        root.unread++;
        errno = EIO;
        return SQLITE_IOERR_READ;
    }
    if (have > (size_t)n)
        have = (size_t)n;
    if (have)
        memcpy(out, i->bytes + from, have);
    memset((char *)out + have, 0, (size_t)n - have);
    return have == (size_t)n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static void put(struct handle *h, const void *data, size_t n, size_t at)
{
    if (h->disk)
        show(h->disk->path, h->file->name, "write", at, (struct str){data, n});
    image_write(&h->file->now, at, data, n);
    if (h->disk)
        file_pend(h->file, at, data, n);
}

/* A write that fails may have reached the disk in part: whole sectors from its start on. */
static void put_part(struct handle *h, const void *data, size_t n, size_t at)
{
    size_t end = (at + n / 2) / SECTOR * SECTOR;

    if (end > at)
        put(h, data, end - at, at);
}

static int on_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    struct handle *h = handle_of(file);
    size_t end = (size_t)at + (size_t)n;

    if (is_dead(h))
        return SQLITE_IOERR_WRITE;
    if (h->disk && h->disk->faults.full && end > h->file->now.size) {
        put_part(h, data, (size_t)n, (size_t)at);
        return SQLITE_FULL;
    }
    if (fails(h, h->disk ? h->disk->faults.write_errors : 0)) {
        if (dice_chance(root.moment, DICE_DISK, 500))
            put_part(h, data, (size_t)n, (size_t)at);
        return SQLITE_IOERR_WRITE;
    }
    put(h, data, (size_t)n, (size_t)at);
    return SQLITE_OK;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct handle *h = handle_of(file);

    if (is_dead(h) || fails(h, h->disk ? h->disk->faults.write_errors : 0))
        return SQLITE_IOERR_TRUNCATE;
    image_size(&h->file->now, (size_t)size);
    if (h->disk)
        show(h->disk->path, h->file->name, "truncation", (size_t)size, STR_NULL);
    if (h->disk)
        file_pend(h->file, (size_t)size, NULL, 0);
    return SQLITE_OK;
}

/* Names that were made and removed stay so. */
static void sync_names(struct disk *d)
{
    struct file *next;

    for (struct file *f = d->files; f; f = next) {
        next = f->next;
        f->entered = true;
        if (!f->named)
            file_remove(d, f);
    }
}

static int on_sync(sqlite3_file *file, int flags)
{
    struct handle *h = handle_of(file);

    (void)flags;
    if (is_dead(h) || fails(h, h->disk ? h->disk->faults.sync_errors : 0))
        return SQLITE_IOERR_FSYNC;
    file_sync(h->file);
    if (h->disk)
        show_file(h->disk, h->file, "sync, end");
    if (h->syncs_names)
        sync_names(h->disk);
    h->syncs_names = false;
    return SQLITE_OK;
}

static int on_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)handle_of(file)->file->now.size;
    return SQLITE_OK;
}

static int on_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int on_check_lock(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int on_control(sqlite3_file *file, int op, void *arg)
{
    (void)file;
    (void)op;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int on_sector(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

/* As SQLite's own VFS says of Linux: bytes beside a torn write keep their value. */
static int on_device(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 1,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_lock,
    .xCheckReservedLock = on_check_lock,
    .xFileControl = on_control,
    .xSectorSize = on_sector,
    .xDeviceCharacteristics = on_device,
};

/* --- SQLite's VFS --- */

static struct disk *find_disk(const char *path, const char **ret_name)
{
    for (struct disk *d = root.disks; d; d = d->next) {
        size_t n = strlen(d->path);

        if (!strncmp(path, d->path, n) && path[n] == '/') {
            *ret_name = path + n + 1;
            return d;
        }
    }
    return NULL;
}

static int on_open(sqlite3_vfs *self, sqlite3_filename path, sqlite3_file *file, int flags,
                   int *ret_flags)
{
    struct handle *h = handle_of(file);
    const char *name = NULL;

    (void)self;
    memset(h, 0, sizeof(*h));
    h->base.pMethods = &METHODS;
    if (ret_flags)
        *ret_flags = flags;
    if (!path) {
        h->file = file_new(NULL, "");
        return SQLITE_OK;
    }
    h->disk = find_disk(path, &name);
    assert(h->disk);
    h->generation = h->disk->generation;
    /* As SQLite's own VFS does it, by UNIXFILE_DIRSYNC. */
    h->syncs_names =
        (flags & SQLITE_OPEN_CREATE) && (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL));
    h->file = file_find(h->disk, name);
    show(h->disk->path, name, "open, end", h->file ? h->file->now.size : 0, STR_NULL);
    if (h->file && !h->file->named) {
        /* Removed, and made again before the removal was durable: the content is gone. */
        image_size(&h->file->now, 0);
        file_pend(h->file, 0, NULL, 0);
        h->file->named = true;
    }
    if (h->file)
        return SQLITE_OK;
    if (h->disk->faults.full) {
        h->base.pMethods = NULL;
        return SQLITE_CANTOPEN;
    }
    h->file = file_new(h->disk, name);
    return SQLITE_OK;
}

static int remove_path(const char *path, bool durable)
{
    const char *name;
    struct disk *d = find_disk(path, &name);
    struct file *f = d && !d->frozen ? file_find(d, name) : NULL;

    if (!f || !f->named)
        return -1;
    show_file(d, f, "removal, end");
    if (durable || !f->entered) {
        file_remove(d, f);
        return 0;
    }
    f->named = false;
    return 0;
}

static int on_delete(sqlite3_vfs *self, const char *path, int sync_dir)
{
    (void)self;
    return remove_path(path, sync_dir != 0) ? SQLITE_IOERR_DELETE_NOENT : SQLITE_OK;
}

static int on_access(sqlite3_vfs *self, const char *path, int flags, int *ret)
{
    const char *name;
    struct disk *d = find_disk(path, &name);
    struct file *f = d ? file_find(d, name) : NULL;

    (void)self;
    *ret = f && f->named && (flags != SQLITE_ACCESS_EXISTS || f->now.size > 0);
    return SQLITE_OK;
}

static int on_full_path(sqlite3_vfs *self, const char *path, int n, char *out)
{
    (void)self;
    snprintf(out, (size_t)n, "%s", path);
    return SQLITE_OK;
}

static int on_randomness(sqlite3_vfs *self, int n, char *out)
{
    (void)self;
    for (int i = 0; i < n; i++)
        out[i] = (char)(dice_next(root.moment, DICE_PRODUCT) >> 24);
    return n;
}

static int on_sleep(sqlite3_vfs *self, int us)
{
    (void)self;
    return us;
}

static int on_time_64(sqlite3_vfs *self, sqlite3_int64 *ret)
{
    struct clock c = moment_clock(root.moment);

    (void)self;
    *ret = 210866760000000 + c.wall_us(c.ctx) / 1000;
    return SQLITE_OK;
}

static int on_time(sqlite3_vfs *self, double *ret)
{
    sqlite3_int64 ms;

    on_time_64(self, &ms);
    *ret = (double)ms / 86400000.0;
    return SQLITE_OK;
}

void disk_install(struct moment *m, const char *path)
{
    root.moment = m;
    snprintf(root.path, sizeof(root.path), "%s", path);
    if (root.system)
        return;
    sqlite3_initialize();
    root.system = sqlite3_vfs_find(NULL);
    root.vfs = (sqlite3_vfs){.iVersion = 2,
                             .szOsFile = sizeof(struct handle),
                             .mxPathname = PATH_MAX,
                             .zName = "simulated",
                             .xOpen = on_open,
                             .xDelete = on_delete,
                             .xAccess = on_access,
                             .xFullPathname = on_full_path,
                             .xRandomness = on_randomness,
                             .xSleep = on_sleep,
                             .xCurrentTime = on_time,
                             .xCurrentTimeInt64 = on_time_64};
    int rc = sqlite3_vfs_register(&root.vfs, 1);
    assert(rc == SQLITE_OK);
}

/* --- names in the real directory ---
 * The store makes, renames and removes names by itself; what they stand for is here. */

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    const char *name, *new_name;
    struct disk *d = root.moment ? find_disk(from, &name) : NULL;
    struct file *f = d ? file_find(d, name) : NULL;

    bool moved = f && f->named && find_disk(to, &new_name) == d && !d->frozen;

    if (moved) {
        remove_path(to, true);
        snprintf(f->name, sizeof(f->name), "%s", new_name);
    }
    /* What SQLite made has no name in the real directory. */
    int rc = (int)syscall(SYS_rename, from, to);
    return moved ? 0 : rc;
}

__attribute__((visibility("default"))) int unlink(const char *path)
{
    if (root.moment)
        remove_path(path, false);
    return (int)syscall(SYS_unlink, path);
}

/* --- disks --- */

void disk_move_root(const char *path)
{
    snprintf(root.path, sizeof(root.path), "%s", path);
    for (struct disk *d = root.disks; d; d = d->next) {
        char name[64];

        snprintf(name, sizeof(name), "%s", strrchr(d->path, '/') + 1);
        snprintf(d->path, sizeof(d->path), "%.3900s/%s", path, name);
    }
}

struct disk *disk_new(const char *name)
{
    struct disk *d = NEW(struct disk);

    snprintf(d->path, sizeof(d->path), "%.3900s/%s", root.path, name);
    d->next = root.disks;
    root.disks = d;
    return d;
}

static void file_copy(struct disk *to, const struct file *from)
{
    struct file *f = file_new(to, from->name);

    image_copy(&f->now, &from->now);
    image_copy(&f->durable, &from->durable);
    for (const struct pending *p = from->first; p; p = p->next)
        file_pend(f, p->at, p->bytes, p->n);
    f->named = from->named;
    f->entered = from->entered;
    f->unsettled = from->unsettled;
}

struct disk *disk_copy(struct disk *from, const char *name)
{
    struct disk *d = disk_new(name);

    for (const struct file *f = from->files; f; f = f->next)
        file_copy(d, f);
    return d;
}

const char *disk_path(const struct disk *d)
{
    return d->path;
}

void disk_take(struct disk *d, const struct disk *from, const char *name)
{
    struct file *there = file_find(d, name), *f = file_find(from, name);

    if (there)
        file_remove(d, there);
    if (f)
        file_copy(d, f);
}

bool disk_is_settled(const struct disk *d, const char *name)
{
    const struct file *f = file_find(d, name);

    return !f || !f->unsettled;
}

size_t disk_size(const struct disk *d, const char *name)
{
    const struct file *f = file_find(d, name);

    return f ? f->now.size : 0;
}

static uint64_t file_hash(const struct file *f, uint64_t seed)
{
    return str_hash((struct str){f->now.bytes, f->now.size}, seed);
}

uint64_t disk_file_hash(const struct disk *d, const char *name)
{
    const struct file *f = file_find(d, name);

    return f ? file_hash(f, 7) : 0;
}

struct disk_faults *disk_faults(struct disk *d)
{
    return &d->faults;
}

unsigned disk_torn(void)
{
    return root.torn;
}

unsigned disk_unread(void)
{
    return root.unread;
}

uint64_t disk_hash(const struct disk *d)
{
    uint64_t hash = 0;

    for (const struct file *f = d->files; f; f = f->next)
        hash ^= file_hash(f, str_hash(str_c(f->name), 7));
    return hash;
}
