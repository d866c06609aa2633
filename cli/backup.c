/* SPDX-License-Identifier: Apache-2.0 */
/* `sublet backup` and `sublet restore`: one file that holds a whole virtual cluster, its keys
 * included. A running process makes the copy; a store that no process has open is copied here.
 * Must never write over a store, nor leave a file that only looks like a backup. */
#include "arguments.h"
#include "cli.h"
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include <sublet/kinds.h>
#include <sublet/restore_plan.h>
#include <sublet/store_admin.h>

#define ANSWER_LIMIT 4096

struct backup {
    struct arena *arena;
    struct config config;
    struct err err;
    const char *directory;                                    /* of the store */
    const char *copy;                                         /* <directory>/backup.db */
    int (*use)(void *ctx, const char *path, struct err *err); /* cli_with_data() */
    void *ctx;
    const char *file; /* where the backup is, or goes to; "-": the standard streams */
};

static int fail(struct backup *b, const char *what, const char *path)
{
    return err_set(&b->err, &ERR_STORAGE, "cannot %s %s: %s", what, path, strerrordesc_np(errno));
}

/* --- arguments --- */

static int prepare(struct backup *b, int argc, char **argv, const char *name)
{
    err_init(&b->err, b->arena);
    b->file = arguments_take(&argc, argv, name);
    b->file = b->file ? b->file : "-";
    if (cli_config(b->arena, argc, argv, &b->config))
        return -1;
    b->directory = arena_cstr(b->arena, b->config.data_dir);
    b->copy = arena_printf(b->arena, "%s/" CONTROL_BACKUP, b->directory).p;
    return 0;
}

/* --- copying bytes --- */

static int pump(struct backup *b, int from, int to)
{
    char bytes[65536];
    ssize_t n;

    while ((n = read(from, bytes, sizeof(bytes))) != 0) {
        if (n < 0)
            return fail(b, "read", "the backup");
        for (ssize_t at = 0, wrote; at < n; at += wrote) {
            wrote = write(to, bytes + at, (size_t)(n - at));
            if (wrote <= 0)
                return fail(b, "write", b->file);
        }
    }
    return 0;
}

static const char *partial_of(struct backup *b, const char *to)
{
    return arena_printf(b->arena, "%s.partial", to).p;
}

/* Copies a file to a temporary one and renames it when it is complete; else that one stays. */
static int copy_file(struct backup *b, int from, const char *to)
{
    const char *partial = partial_of(b, to);
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int result;

    if (fd < 0)
        return fail(b, "create", partial);
    result = pump(b, from, fd);
    if (!result && fsync(fd))
        result = fail(b, "write", partial);
    close(fd);
    if (!result && rename(partial, to))
        result = fail(b, "rename", partial);
    if (result)
        return result;
    if (store_sync_dir_of(to, &b->err))
        return err_set(&b->err, b->err.kind, "cannot write %.*s", STR_F(b->err.message));
    return 0;
}

static int give_copy(struct backup *b)
{
    int fd = open(b->copy, O_RDONLY | O_CLOEXEC), result;
    bool to_file = strcmp(b->file, "-") != 0;

    if (fd < 0)
        return fail(b, "open", b->copy);
    result = to_file ? copy_file(b, fd, b->file) : pump(b, fd, STDOUT_FILENO);
    if (result && to_file)
        unlink(partial_of(b, b->file));
    close(fd);
    return result;
}

/* --- from a process that serves --- */

/* The copy exists while the connection is open. */
static int request_backup(struct backup *b, int fd, int (*use)(struct backup *b))
{
    char text[ANSWER_LIMIT];
    size_t n = 0;
    ssize_t got;

    if (write(fd, "backup\n", 7) != 7)
        return fail(b, "ask", "the running process");
    while (n < sizeof(text) && (got = read(fd, text + n, sizeof(text) - n)) > 0) {
        n += (size_t)got;
        if (text[n - 1] == '\n')
            break;
    }
    struct str answer = str_trim((struct str){text, n});
    if (str_eqc(answer, "ok"))
        return use(b);
    return err_set(&b->err, &ERR_STORAGE, "the running process says: %.*s",
                   STR_F(answer.n ? answer : STR("nothing")));
}

/* --- of a store that no process has open --- */

struct offline {
    struct backup *backup;
    struct store *store;
    int result;
};

static void on_closed(void *ctx)
{
    (void)ctx;
}

static void on_copied(void *ctx, const struct err *err)
{
    struct offline *o = ctx;

    if (err)
        o->result = err_set(&o->backup->err, err->kind, "%.*s", STR_F(err->message));
    store_close(o->store, on_closed, NULL);
}

/* Opening must not create a store. */
static int check_exists(struct backup *b)
{
    struct stat st;

    if (!stat(arena_printf(b->arena, "%s/state.db", b->directory).p, &st))
        return 0;
    return fail(b, "find", arena_printf(b->arena, "%s/state.db", b->directory).p);
}

static int copy_offline(struct backup *b)
{
    struct store_options options = {.path = b->directory};
    struct offline o = {.backup = b};
    uv_loop_t loop;

    if (check_exists(b))
        return -1;
    uv_loop_init(&loop);
    if (store_open(&loop, &options, &o.store, &b->err))
        o.result = -1;
    else
        store_backup(o.store, b->copy, on_copied, &o);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    if (!o.result) {
        o.result = give_copy(b);
        unlink(b->copy);
    }
    return o.result;
}

/* --- for other commands --- */

static int use_copy(struct backup *b)
{
    return b->use(b->ctx, b->copy, &b->err);
}

int cli_with_data(struct arena *a, const char *directory,
                  int (*use)(void *ctx, const char *path, struct err *err), void *ctx,
                  struct err *err)
{
    struct backup b = {.arena = a, .directory = directory, .use = use, .ctx = ctx};
    int fd, result = -1;

    err_init(&b.err, a);
    b.copy = arena_printf(a, "%s/" CONTROL_BACKUP, directory).p;
    if (!check_exists(&b)) {
        fd = control_connect(b.directory, &b.err);
        if (!b.err.kind)
            result = fd >= 0 ? request_backup(&b, fd, use_copy) : use(ctx, directory, &b.err);
        if (fd >= 0)
            close(fd);
    }
    if (result)
        err_set(err, b.err.kind, "%.*s", STR_F(b.err.message));
    return result;
}

/* --- the commands --- */

static const char BACKUP_HELP[] =
    "usage: sublet backup [--config FILE] [--data-dir DIR] [--output FILE]\n\n"
    "Copies the whole virtual cluster, its keys included, into one file (default: standard\n"
    "output). A process that serves goes on meanwhile.\n";
static const char RESTORE_HELP[] =
    "usage: sublet restore [--plan] [--config FILE] [--data-dir DIR] [--input FILE]\n\n"
    "Makes a data directory that holds no store yet of a backup (default: standard input). Where "
    "it\n"
    "does not finish, run it again: meanwhile `sublet serve` begins no empty cluster there. With\n"
    "--plan it compares the backup with the host cluster instead, prints what the next start\n"
    "would do there, and changes nothing.\n";

static int finish(struct backup *b, int result)
{
    if (result && b->err.kind)
        fprintf(stderr, "sublet: %.*s\n", STR_F(b->err.message));
    arena_free(b->arena);
    return result ? 1 : 0;
}

int cmd_backup(int argc, char **argv)
{
    struct backup b = {.arena = arena_new(0)};
    int fd, result;

    if (arguments_want_help(argc, argv)) {
        fputs(BACKUP_HELP, stdout);
        return finish(&b, 0);
    }
    if (prepare(&b, argc, argv, "--output"))
        return finish(&b, -1);
    if (!strcmp(b.file, "-") && isatty(STDOUT_FILENO)) {
        err_set(&b.err, &ERR_BAD_REQUEST, "a backup is no text: give --output FILE, or a pipe");
        return finish(&b, -1);
    }
    umask(077);
    signal(SIGPIPE,
           SIG_IGN); /* a closed pipe is an error to report, and the copy is still removed */
    fd = control_connect(b.directory, &b.err);
    if (b.err.kind)
        return finish(&b, -1);
    result = fd >= 0 ? request_backup(&b, fd, give_copy) : copy_offline(&b);
    if (fd >= 0)
        close(fd);
    return finish(&b, result);
}

/* A backup from a pipe is written to a file first: it must be complete before it is used. Of one
 * that cannot be read or written an empty file stays in a directory that was there before: no start
 * begins an empty cluster there. */
static int take_input(struct backup *b)
{
    const char *path = arena_printf(b->arena, "%s/" STORE_RESTORE_INPUT, b->directory).p;
    bool made;

    if (strcmp(b->file, "-"))
        return 0;
    made = !mkdir(b->directory, 0700);
    if (!made && errno != EEXIST)
        return fail(b, "make", b->directory);
    b->file = path;
    if (!copy_file(b, STDIN_FILENO, path))
        return 0;
    if (made) {
        unlink(partial_of(b, path));
        rmdir(b->directory);
    } else if (truncate(partial_of(b, path), 0)) {
        unlink(partial_of(b, path)); /* it must not fill the disk */
    }
    return -1;
}

/* --- the plan --- */

static void print_step(void *ctx, const struct restore_step *step)
{
    static const char *const words[] = {
        [RESTORE_KEEP] = "keep",     [RESTORE_CREATE] = "create",
        [RESTORE_ADOPT] = "adopt",   [RESTORE_QUARANTINE] = "quarantine",
        [RESTORE_DELETE] = "delete", [RESTORE_DAMAGED] = "damaged",
        [RESTORE_WAIT] = "wait"};
    size_t *counts = ctx;

    counts[step->action]++;
    if (step->action == RESTORE_KEEP)
        return;
    printf("%-10s %.*s %.*s%s%.*s", words[step->action], STR_F(step->resource), STR_F(step->ns),
           step->ns.n ? "/" : "", STR_F(step->name));
    if (step->detail.n)
        printf(" (%.*s)", STR_F(step->detail));
    printf("\n");
}

static int plan_from(struct backup *b, uv_loop_t *loop, const char *directory)
{
    struct store_options options = {.path = directory, .readable = kinds_stored_readable};
    size_t counts[N_RESTORE_ACTIONS] = {0};
    struct store *store;
    int result;

    if (store_open(loop, &options, &store, &b->err))
        return -1;
    result = restore_plan(loop, store, &b->config, print_step, counts, &b->err);
    store_close(store, on_closed, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    if (!result)
        printf("plan: %zu keep, %zu create, %zu adopt, %zu quarantine, %zu delete; nothing was "
               "changed\n",
               counts[RESTORE_KEEP], counts[RESTORE_CREATE], counts[RESTORE_ADOPT],
               counts[RESTORE_QUARANTINE], counts[RESTORE_DELETE]);
    return result;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

/* Works on a copy of the backup, which is removed afterwards. */
static int make_plan(struct backup *b)
{
    const char *parent = getenv("TMPDIR");
    char *directory = arena_cstr(
        b->arena, arena_printf(b->arena, "%s/sublet-plan-XXXXXX", parent ? parent : "/tmp"));
    uv_loop_t loop;
    int result = -1;

    if (!mkdtemp(directory))
        return fail(b, "make", directory);
    b->directory = arena_printf(b->arena, "%s/store", directory).p;
    uv_loop_init(&loop);
    if (!take_input(b) && !store_restore(b->file, b->directory, &b->err))
        result = plan_from(b, &loop, b->directory);
    uv_loop_close(&loop);
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return result;
}

int cmd_restore(int argc, char **argv)
{
    struct backup b = {.arena = arena_new(0)};
    bool plan = arguments_take_switch(&argc, argv, "--plan"), piped;
    int result;

    if (arguments_want_help(argc, argv)) {
        fputs(RESTORE_HELP, stdout);
        return finish(&b, 0);
    }
    if (prepare(&b, argc, argv, "--input"))
        return finish(&b, -1);
    umask(077);
    if (plan)
        return finish(&b, cli_need_namespace(&b.config) ? -1 : make_plan(&b));
    piped = !strcmp(b.file, "-");
    result = take_input(&b) || store_restore(b.file, b.directory, &b.err) ? -1 : 0;
    if (piped)
        unlink(b.file);
    if (!result)
        printf("%s: restored; the next start goes on from there\n", b.directory);
    return finish(&b, result);
}
