/* SPDX-License-Identifier: Apache-2.0 */
/* A PostgreSQL of this test alone: a Unix socket in a directory of its own, and no port. As root it
 * runs as the user that Debian's package makes, because it refuses root. */
#pragma once

#include "test.h"

#include <glob.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static struct {
    char directory[40], programs[128];
    pid_t pid, owner;
    int schemas;
} postgres;

static inline pid_t postgres_spawn(const char *const argv[], const char *program)
{
    const struct passwd *user = geteuid() ? NULL : getpwnam("postgres");
    char path[256];
    pid_t pid;

    snprintf(path, sizeof(path), "%s/%s", postgres.programs, program);
    pid = fork();
    if (pid)
        return pid;
    if (user && (setgid(user->pw_gid) || setuid(user->pw_uid)))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (!freopen("/dev/null", "w", stdout) || !freopen("log", "a", stderr))
        _exit(126);
    execv(path, (char **)(uintptr_t)argv);
    _exit(127);
}

static inline bool postgres_run(const char *sql)
{
    char settings[128];
    PGconn *conn;
    PGresult *result;
    bool done;

    snprintf(settings, sizeof(settings),
             "host=%s user=sublet dbname=postgres options='-c search_path=w%d'", postgres.directory,
             postgres.schemas);
    conn = PQconnectdb(settings);
    result = PQexec(conn, sql);
    done = PQresultStatus(result) == PGRES_COMMAND_OK || PQresultStatus(result) == PGRES_TUPLES_OK;
    PQclear(result);
    PQfinish(conn);
    return done;
}

static inline void postgres_start(void)
{
    static const char *const argv[] = {
        "postgres",          "-D", "data",      "-k", postgres.directory, "-c",
        "listen_addresses=", "-c", "fsync=off", NULL};

    postgres.pid = postgres_spawn(argv, "postgres");
    for (int i = 0; !postgres_run("SELECT 1"); i++) {
        if (i == 600 || waitpid(postgres.pid, NULL, WNOHANG))
            fail_msg("PostgreSQL does not answer: see %s/log", postgres.directory);
        usleep(100000);
    }
}

static inline void postgres_stop(int signal)
{
    kill(postgres.pid, signal);
    waitpid(postgres.pid, NULL, 0);
    postgres.pid = 0;
}

static inline void postgres_remove(void)
{
    pid_t pid;

    if (getpid() != postgres.owner)
        return;
    if (postgres.pid > 0)
        postgres_stop(SIGQUIT);
    pid = chdir("/") ? -1 : fork();
    if (!pid) {
        execlp("rm", "rm", "-rf", postgres.directory, NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static inline void postgres_create(void)
{
    static const char *const argv[] = {"initdb", "-D", "data", "-U",   "sublet",     "-A",
                                       "trust",  "-N", "-E",   "UTF8", "--locale=C", NULL};
    const struct passwd *user = geteuid() ? NULL : getpwnam("postgres");
    int status;
    glob_t found;

    assert_int_equal(glob("/usr/lib/postgresql/*/bin", 0, NULL, &found), 0);
    snprintf(postgres.programs, sizeof(postgres.programs), "%s",
             found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    snprintf(postgres.directory, sizeof(postgres.directory), "/tmp/sublet-pg-XXXXXX");
    assert_non_null(mkdtemp(postgres.directory));
    postgres.owner = getpid();
    atexit(postgres_remove);
    assert_int_equal(chdir(postgres.directory), 0);
    if (user)
        assert_int_equal(chown(postgres.directory, user->pw_uid, user->pw_gid), 0);
    waitpid(postgres_spawn(argv, "initdb"), &status, 0);
    assert_int_equal(status, 0);
    postgres_start();
}

/* Of a ledger in a schema that is new and empty. */
static inline void postgres_schema(char *ret_location, size_t size)
{
    char sql[64], path[54];
    FILE *f;

    if (!postgres.owner)
        postgres_create();
    postgres.schemas++;
    snprintf(sql, sizeof(sql), "CREATE SCHEMA w%d", postgres.schemas);
    assert_true(postgres_run(sql));
    snprintf(path, sizeof(path), "%s/w%d", postgres.directory, postgres.schemas);
    f = fopen(path, "we");
    assert_non_null(f);
    fprintf(f, "host=%s user=sublet dbname=postgres options='-c search_path=w%d'\n",
            postgres.directory, postgres.schemas);
    fclose(f);
    snprintf(ret_location, size, "postgres:%s", path);
}
