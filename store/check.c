/* SPDX-License-Identifier: Apache-2.0
 * Checking a store without changing it: a copy of its files is opened as a start would open them,
 * and what that start would hide, make again or forget is reported. */
#include "db_file.h"
#include "db_impl.h"
#include "impl.h"

#include <sublet/clock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

struct check {
    struct store_check_calls calls;
    const char *path, *copy; /* what is checked, and where it was copied to */
    struct store *store;
    bool is_dir;
    int found;
};

static void find(struct check *c, const struct store_finding *f)
{
    c->found++;
    if (c->calls.finding)
        c->calls.finding(c->calls.ctx, f);
}

static bool find_object(void *ctx, const struct store_object *o)
{
    struct check *c = ctx;

    find(c, &(struct store_finding){
                .what = "object",
                .resource = store_resource_name(c->store, o->resource),
                .ns = o->ns,
                .name = o->name,
                .why = o->bytes.n ? STR("its bytes are not an object of its resource")
                                  : STR("its newest version is damaged or missing"),
            });
    return true;
}

static void find_if(struct check *c, size_t n, const char *what, const char *why)
{
    char text[256];

    if (!n)
        return;
    if (n > 1)
        snprintf(text, sizeof(text), "%zu times: %s", n, why);
    else
        snprintf(text, sizeof(text), "%s", why);
    find(c, &(struct store_finding){.what = what, .why = str_c(text)});
}

static const struct {
    unsigned report;
    const char *what, *why;
} MADE_GOOD[] = {
    {DB_REPORT_SALVAGED, "file", "its structure was damaged"},
    {DB_REPORT_LOG, "log",
     "it was damaged, or that of another file, and writes that were answered were lost"},
    {DB_REPORT_LOG_MISSING, "log", "it was missing, and writes that were answered may be lost"},
    {DB_REPORT_ACCOUNT, "file", "what it says of itself was damaged"},
};

/* What an earlier start found. */
static void find_reports(struct check *c)
{
    const struct db_state *s = &c->store->state;
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < COUNT(MADE_GOOD); i++) {
        if (!(s->reports & ~s->found & MADE_GOOD[i].report))
            continue;
        find(c, &(struct store_finding){.what = MADE_GOOD[i].what,
                                        .why = arena_printf(a, "a start made good at %.*s: %s",
                                                            STR_F(time_format_s(a, s->reported_at)),
                                                            MADE_GOOD[i].why)});
    }
    arena_free(a);
}

static void find_damage(struct check *c)
{
    struct store_damage d;
    const struct damage *own = &c->store->damage;
    unsigned found = c->store->state.found;

    store_damage(c->store, &d);
    store_scan_quarantined(c->store, 0, STR_NULL, find_object, c);
    find_if(c, d.nameless, "object", "damaged, and its name is unknown");
    for (size_t i = 0; i < own->n_records; i++)
        find(c, &(struct store_finding){
                    .what = "record", .name = own->records[i].key, .why = STR("it is damaged")});
    find_if(c, own->missing_records, "record", "missing");
    find_if(c, d.unattributed, "row", "damaged, and it is unknown what it was");
    find_if(c, d.superseded, "history", "an older version of an object is damaged");
    find_if(c, d.history && !d.superseded, "history", "events are damaged or missing");
    find_if(c, !!(found & DB_REPORT_SALVAGED), "file", "the structure of the file is damaged");
    find_if(c, !!(found & DB_REPORT_LOG), "log",
            "damaged, or that of another file: writes that were answered are lost");
    /* A file by itself is a copy of it, and the log may be wherever it was copied from. */
    find_if(c, (found & DB_REPORT_LOG_MISSING) && c->is_dir, "log",
            "missing: writes that were answered may be lost with it");
    find_if(c, !!(found & DB_REPORT_ACCOUNT), "file", "what it says of itself is damaged");
    find_reports(c);
}

/* -1 with errno; a missing file is no error when it may be missing. */
static int copy_file(const char *from, const char *to, bool may_miss)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out, result = 0;

    if (in < 0)
        return may_miss && errno == ENOENT ? 0 : -1;
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat st;
    result = out < 0 || fstat(in, &st) ? -1 : 0;
    for (off_t left = result ? 0 : st.st_size; left > 0 && !result;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        result = n > 0 ? 0 : -1;
        left -= n > 0 ? n : left;
    }
    int why = errno;
    close(in);
    if (out >= 0)
        close(out);
    errno = why;
    return result;
}

static int copy_store(const char *path, bool is_dir, const char *dir, struct err *err)
{
    char *from = is_dir ? db_path_join(path, DB_FILE) : mem_strdup(str_c(path));
    char *to = db_path_join(dir, DB_FILE);
    char *log = is_dir ? db_path_join(path, DB_LOG_FILE) : NULL;
    char *to_log = db_path_join(dir, DB_LOG_FILE);
    int result = copy_file(from, to, false);

    if (!result && log)
        result = copy_file(log, to_log, true);
    if (result)
        err_set(err, &ERR_STORAGE, "%s: %s", from, strerrordesc_np(errno));
    mem_free(from);
    mem_free(to);
    mem_free(log);
    mem_free(to_log);
    return result;
}

/* The directory is ours, so is what a start left in it; none of it is a directory. */
static void remove_copy(const char *path)
{
    DIR *dir = opendir(path);
    bool removed = dir != NULL;

    /* What readdir() returns of a directory that changes is unspecified: from the start again,
     * until nothing more can be removed. */
    while (removed) {
        removed = false;
        rewinddir(dir);
        for (const struct dirent *e; (e = readdir(dir)) != NULL;)
            removed |= !unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* A file that a start would refuse is a finding as well. */
static void find_refusal(struct check *c, struct str why)
{
    char text[512];

    if (str_has_prefix(why, str_c(c->copy))) {
        why = str_from(why, strlen(c->copy));
        snprintf(text, sizeof(text), "%s%.*s", c->path, STR_F(why));
        why = str_c(text);
    }
    find(c, &(struct store_finding){.what = "file", .why = why});
}

static void check_copy(struct check *c, const struct store_options *options)
{
    struct err why;
    struct db *db = NULL;

    err_init(&why, NULL);
    c->store = store_new(NULL, options);
    if (store_open_db(options, &db, &why) || store_load(c->store, db, &why)) {
        find_refusal(c, why.message);
    } else {
        find_damage(c);
        if (c->calls.opened)
            c->calls.opened(c->calls.ctx, c->store);
    }
    db_close(db);
    store_free(c->store);
}

static char *make_dir_in(const char *parent)
{
    char *dir = db_path_join(parent, "sublet-check-XXXXXX");

    return mkdtemp(dir) ? dir : mem_free(dir);
}

/* The directory of the copy: beside the store where there is no other place, as in a pod. */
static char *make_dir(const char *path, bool is_dir, struct err *err)
{
    const char *parent = getenv("TMPDIR"), *slash = strrchr(path, '/');
    char *dir = make_dir_in(parent && *parent ? parent : "/tmp");
    int why = errno;

    if (dir)
        return dir;
    char *beside = mem_strdup(is_dir  ? str_c(path)
                              : slash ? (struct str){path, (size_t)(slash - path) + 1}
                                      : STR("."));
    dir = make_dir_in(beside);
    mem_free(beside);
    if (!dir)
        err_set(err, &ERR_STORAGE, "no place for a copy: %s", strerrordesc_np(why));
    return dir;
}

int store_check(const char *path, const struct store_options *options,
                const struct store_check_calls *calls, struct err *err)
{
    struct check c = {.path = path};
    struct store_options copy = options ? *options : (struct store_options){0};
    char *dir = NULL;
    struct stat st;
    int lock = -1, result = -1;

    bool is_dir = !stat(path, &st) && S_ISDIR(st.st_mode);
    c.is_dir = is_dir;
    if (calls)
        c.calls = *calls;
    if (is_dir && db_lock(path, &lock, err))
        goto out;
    if (stat(path, &st)) {
        err_set(err, &ERR_STORAGE, "%s: %s", path, strerrordesc_np(errno));
        goto out;
    }
    dir = make_dir(path, is_dir, err);
    if (!dir)
        goto out;
    copy.path = c.copy = dir;
    result = copy_store(path, is_dir, dir, err);
    if (!result) {
        check_copy(&c, &copy);
        result = c.found;
    }
    remove_copy(dir);
out:
    if (lock >= 0)
        close(lock);
    mem_free(dir);
    return result;
}
