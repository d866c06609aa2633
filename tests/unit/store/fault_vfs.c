/* SPDX-License-Identifier: Apache-2.0
 * See fault_vfs.h. Files are opened through the system's VFS; only what can fail is wrapped. The
 * counters are shared between the loop thread, which arms, and the writer thread, which fails. */
#include "fault_vfs.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fault_handle {
    sqlite3_file base;
    unsigned file; /* enum fault_file */
    bool read_only;
    char path[256];
    sqlite3_file *real; /* follows in the same allocation */
};

static sqlite3_vfs vfs;
static sqlite3_vfs *system_vfs;
static atomic_uint armed_ops, armed_files;
static atomic_int armed_kind, after_left, times_left, failures;
static atomic_uint read_chance, read_seed;
static atomic_int bad_page; /* from 1 */
static atomic_bool shadowing;
static sqlite3_mem_methods memory;
static atomic_bool memory_armed;
static atomic_int memory_after, memory_times;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

void fault_arm(unsigned ops, unsigned files, enum fault_kind kind, int after, int times)
{
    armed_ops = 0;
    armed_files = files;
    armed_kind = (int)kind;
    after_left = after;
    times_left = times;
    failures = 0;
    armed_ops = ops;
}

void fault_arm_reads(unsigned of_thousand, unsigned seed)
{
    failures = 0;
    read_seed = seed * 2654435761u;
    read_chance = of_thousand;
}

void fault_arm_page(int page)
{
    failures = 0;
    bad_page = page;
}

void fault_arm_memory(int after, int times)
{
    failures = 0;
    memory_after = after;
    memory_times = times;
    memory_armed = true;
}

int fault_disarm(void)
{
    memory_armed = false;
    armed_ops = 0;
    read_chance = 0;
    bad_page = 0;
    return failures;
}

void fault_hold(void)
{
    pthread_mutex_lock(&gate);
}

void fault_release(void)
{
    pthread_mutex_unlock(&gate);
}

void fault_shadow(void)
{
    shadowing = true;
}

/* What the system says when it fails so: SQLite reads it after the operation. */
static const int SYSTEM[] = {
    [FAULT_IO] = EIO,
    [FAULT_FULL] = ENOSPC,
    [FAULT_LATE] = EIO,
    [FAULT_QUOTA] = EDQUOT,
    [FAULT_READ_ONLY] = EROFS,
    [FAULT_DENIED] = EACCES,
    [FAULT_INTERRUPTED] = EINTR,
};

static bool fails(unsigned op, unsigned file)
{
    if (!(armed_ops & op) || !(armed_files & file))
        return false;
    if (atomic_fetch_sub(&after_left, 1) > 0)
        return false;
    int left = times_left;
    if (!left)
        return false;
    if (left > 0)
        times_left = left - 1;
    failures++;
    errno = SYSTEM[armed_kind];
    return true;
}

#define PAGE 4096

static bool read_fails(unsigned file, int n, sqlite3_int64 at)
{
    sqlite3_int64 begin = (sqlite3_int64)(bad_page - 1) * PAGE;
    bool bad = bad_page && file == FAULT_MAIN && at < begin + PAGE && at + n > begin;

    if (!bad && read_chance) {
        read_seed = read_seed * 1664525u + 1013904223u;
        bad = (read_seed >> 16) % 1000 < read_chance;
    }
    if (!bad)
        return fails(FAULT_READ, file);
    failures++;
    errno = EIO;
    return true;
}

static struct fault_handle *handle_of(sqlite3_file *file)
{
    return (struct fault_handle *)file;
}

static int fault_close(sqlite3_file *file)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xClose(real);
}

static int fault_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    struct fault_handle *h = handle_of(file);

    bool failing = read_fails(h->file, n, at);
    if (failing && armed_kind != FAULT_INTERRUPTED)
        return SQLITE_IOERR_READ;
    int rc = h->real->pMethods->xRead(h->real, out, n, at);
    if (failing)
        errno = EINTR;
    return rc;
}

static int fault_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    struct fault_handle *h = handle_of(file);

    if (!fails(FAULT_WRITE, h->file))
        return h->real->pMethods->xWrite(h->real, data, n, at);
    if (armed_kind != FAULT_FULL && armed_kind != FAULT_LATE)
        return SQLITE_IOERR_WRITE;
    h->real->pMethods->xWrite(h->real, data, armed_kind == FAULT_FULL ? n / 2 : n, at);
    errno = SYSTEM[armed_kind];
    return armed_kind == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct fault_handle *h = handle_of(file);

    if (fails(FAULT_TRUNCATE, h->file))
        return SQLITE_IOERR_TRUNCATE;
    return h->real->pMethods->xTruncate(h->real, size);
}

static int copy_durable(struct fault_handle *h)
{
    char partial[300], durable[300];
    static char bytes[65536];
    sqlite3_int64 size = 0;

    snprintf(partial, sizeof(partial), "%s.partial", h->path);
    snprintf(durable, sizeof(durable), "%s.durable", h->path);
    FILE *out = fopen(partial, "w");
    if (!out || h->real->pMethods->xFileSize(h->real, &size))
        return SQLITE_IOERR_FSYNC;
    for (sqlite3_int64 at = 0; at < size; at += (sqlite3_int64)sizeof(bytes)) {
        sqlite3_int64 left = size - at;
        int n = left < (sqlite3_int64)sizeof(bytes) ? (int)left : (int)sizeof(bytes);
        if (h->real->pMethods->xRead(h->real, bytes, n, at) ||
            fwrite(bytes, 1, (size_t)n, out) != (size_t)n)
            return SQLITE_IOERR_FSYNC;
    }
    return fclose(out) || rename(partial, durable) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int fault_sync(sqlite3_file *file, int flags)
{
    struct fault_handle *h = handle_of(file);

    if (h->file == FAULT_LOG) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    bool failing = fails(FAULT_SYNC, h->file);
    if (failing && armed_kind != FAULT_LATE)
        return SQLITE_IOERR_FSYNC;
    int rc = shadowing ? copy_durable(h) : h->real->pMethods->xSync(h->real, flags);
    if (failing)
        errno = SYSTEM[armed_kind];
    return failing ? SQLITE_IOERR_FSYNC : rc;
}

static int fault_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xFileSize(real, ret);
}

/* A file that is open for reading alone is locked by other means. */
static int fault_lock(sqlite3_file *file, int level)
{
    sqlite3_file *real = handle_of(file)->real;

    if (handle_of(file)->read_only)
        return SQLITE_OK;
    return real->pMethods->xLock(real, level);
}

static int fault_unlock(sqlite3_file *file, int level)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xUnlock(real, level);
}

static int fault_check_lock(sqlite3_file *file, int *ret)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xCheckReservedLock(real, ret);
}

static int fault_control(sqlite3_file *file, int op, void *arg)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xFileControl(real, op, arg);
}

static int fault_sector(sqlite3_file *file)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xSectorSize(real);
}

static int fault_device(sqlite3_file *file)
{
    sqlite3_file *real = handle_of(file)->real;

    return real->pMethods->xDeviceCharacteristics(real);
}

/* Version 1: no shared memory. The store needs none, and this proves it. */
static const sqlite3_io_methods METHODS = {
    .iVersion = 1,
    .xClose = fault_close,
    .xRead = fault_read,
    .xWrite = fault_write,
    .xTruncate = fault_truncate,
    .xSync = fault_sync,
    .xFileSize = fault_size,
    .xLock = fault_lock,
    .xUnlock = fault_unlock,
    .xCheckReservedLock = fault_check_lock,
    .xFileControl = fault_control,
    .xSectorSize = fault_sector,
    .xDeviceCharacteristics = fault_device,
};

static unsigned kind_of(const char *name, int flags)
{
    const char *dot = name ? strrchr(name, '.') : NULL;

    if (flags & SQLITE_OPEN_MAIN_DB)
        return dot && !strcmp(dot, ".salvage") ? FAULT_SALVAGE : FAULT_MAIN;
    return flags & SQLITE_OPEN_WAL ? FAULT_LOG : FAULT_OTHER;
}

static int fault_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *file, int flags,
                      int *ret_flags)
{
    struct fault_handle *h = handle_of(file);

    (void)self;
    memset(h, 0, sizeof(*h));
    h->real = (sqlite3_file *)(h + 1);
    h->file = kind_of(name, flags);
    snprintf(h->path, sizeof(h->path), "%s", name ? name : "");
    if (fails(FAULT_OPEN, h->file))
        return SQLITE_CANTOPEN;
    int rc = system_vfs->xOpen(system_vfs, name, h->real, flags, ret_flags);
    h->read_only = flags & SQLITE_OPEN_READONLY;
    if (!rc)
        h->base.pMethods = &METHODS;
    return rc;
}

/* ---- memory ---- */

static bool no_memory(void)
{
    if (!memory_armed || atomic_fetch_sub(&memory_after, 1) > 0)
        return false;
    int left = memory_times;
    if (!left)
        return false;
    if (left > 0)
        memory_times = left - 1;
    failures++;
    errno = ENOMEM;
    return true;
}

static void *fault_malloc(int n)
{
    return no_memory() ? NULL : memory.xMalloc(n);
}

static void *fault_realloc(void *p, int n)
{
    return no_memory() ? NULL : memory.xRealloc(p, n);
}

static void install_memory(void)
{
    sqlite3_mem_methods methods;
    int rc = sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);

    methods = memory;
    methods.xMalloc = fault_malloc;
    methods.xRealloc = fault_realloc;
    if (!rc)
        rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    assert(rc == SQLITE_OK);
    (void)rc;
}

void fault_install(void)
{
    if (system_vfs)
        return;
    install_memory();
    sqlite3_initialize();
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "fault";
    vfs.szOsFile = (int)sizeof(struct fault_handle) + system_vfs->szOsFile;
    vfs.xOpen = fault_open;
    int rc = sqlite3_vfs_register(&vfs, 1);
    assert(rc == SQLITE_OK);
    (void)rc;
}
