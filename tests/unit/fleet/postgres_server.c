/* SPDX-License-Identifier: Apache-2.0 */
/* See postgres_server.h. The server ends with the test. */
#include "postgres_server.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* --- the server --- */

static const char *program(const char *name)
{
    static char path[256];
    glob_t found;

    snprintf(path, sizeof(path), "/usr/lib/postgresql/*/bin/%s", name);
    if (glob(path, 0, NULL, &found))
        fail_msg("PostgreSQL is not installed: tests/setup does that");
    snprintf(path, sizeof(path), "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return path;
}

/* The user that owns the directory. */
static void become_owner(const char *directory)
{
    struct stat st;

    if (!stat(directory, &st) && st.st_uid && !geteuid() &&
        (setgroups(0, NULL) || setgid(st.st_gid) || setuid(st.st_uid)))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static pid_t run(struct postgres_server *s, const char *const *argv)
{
    const char *path = program(argv[0]);
    char log[96];
    pid_t pid = fork();
    int fd;

    assert_true(pid >= 0);
    if (pid)
        return pid;
    become_owner(s->directory);
    snprintf(log, sizeof(log), "%s/log", s->directory);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execv(path, (char *const *)(uintptr_t)argv);
    _exit(127);
}

void server_write(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static PGconn *connect_to(struct postgres_server *s)
{
    const char *keys[] = {"host", "dbname", "user", "password", NULL};
    const char *values[] = {s->directory, "postgres", "postgres", SERVER_PASSWORD, NULL};

    return PQconnectdbParams(keys, values, 0);
}

void server_start(struct postgres_server *s)
{
    char data[96];
    const char *argv[] = {"postgres",          "-D", data,        "-k", s->directory, "-c",
                          "listen_addresses=", "-c", "fsync=off", NULL};
    PGconn *c;

    snprintf(data, sizeof(data), "%s/data", s->directory);
    s->pid = run(s, argv);
    for (;;) {
        c = connect_to(s);
        if (PQstatus(c) == CONNECTION_OK)
            break;
        PQfinish(c);
        assert_int_equal(waitpid(s->pid, NULL, WNOHANG), 0);
        poll(NULL, 0, 20);
    }
    PQfinish(c);
}

/* Its processes are sessions of their own. */
void server_signal(struct postgres_server *s, int number)
{
    glob_t found;
    char line[512];
    int pid, parent;
    FILE *f;

    kill(s->pid, number);
    assert_int_equal(glob("/proc/[0-9]*/stat", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        f = fopen(found.gl_pathv[i], "r");
        if (!f)
            continue;
        if (fgets(line, sizeof(line), f) &&
            sscanf(line, "%d (postgres) %*c %d", &pid, &parent) == 2 && parent == s->pid)
            kill(pid, number);
        fclose(f);
    }
    globfree(&found);
}

void server_end(struct postgres_server *s, int number)
{
    if (!s->pid)
        return;
    if (number == SIGKILL)
        server_signal(s, SIGKILL);
    else
        kill(s->pid, number);
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
    s->pid = 0;
}

void server_open(struct postgres_server *s)
{
    char data[96], password[96], pwfile[128];
    const char *argv[] = {"initdb",    "-D",
                          data,        "-U",
                          "postgres",  "--auth=scram-sha-256",
                          pwfile,      "-E",
                          "UTF8",      "--locale=C.UTF-8",
                          "--no-sync", NULL};
    const struct passwd *user = getpwnam("postgres");
    int status;

    *s = (struct postgres_server){.pid = 0};
    snprintf(s->directory, sizeof(s->directory), "/tmp/sublet-pg-XXXXXX");
    assert_non_null(mkdtemp(s->directory));
    snprintf(data, sizeof(data), "%s/data", s->directory);
    snprintf(password, sizeof(password), "%s/password", s->directory);
    snprintf(pwfile, sizeof(pwfile), "--pwfile=%s", password);
    server_write(password, SERVER_PASSWORD, 0600);
    if (!geteuid()) {
        assert_non_null(user);
        assert_int_equal(chown(s->directory, user->pw_uid, user->pw_gid), 0);
        assert_int_equal(chown(password, user->pw_uid, user->pw_gid), 0);
    }
    assert_true(waitpid(run(s, argv), &status, 0) > 0);
    assert_int_equal(status, 0);
    server_start(s);
}

void server_close(struct postgres_server *s)
{
    const char *argv[] = {"rm", "-rf", s->directory, NULL};
    pid_t pid;

    server_end(s, SIGKILL);
    pid = fork();
    if (!pid) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

char *server_sql(struct postgres_server *s, const char *sql)
{
    PGconn *c = connect_to(s);
    PGresult *r = PQexec(c, sql);
    char *ret = NULL;

    if (PQresultStatus(r) == PGRES_TUPLES_OK || PQresultStatus(r) == PGRES_COMMAND_OK)
        ret = strdup(PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(c);
    return ret;
}

char *server_location(struct postgres_server *s, const char *host, const char *name)
{
    char text[512], *ret = malloc(256);

    snprintf(text, sizeof(text), "CREATE SCHEMA %s", name);
    free(server_sql(s, text)); /* it may be there */
    snprintf(text, sizeof(text),
             "host='%s' dbname=postgres user=postgres password='%s' options='-c search_path=%s'\n",
             host, SERVER_PASSWORD, name);
    snprintf(ret, 256, "postgres:%s/%s", s->directory, name);
    server_write(ret + strlen("postgres:"), text, 0600);
    return ret;
}

/* --- the proxy --- */

static struct sockaddr_un address(const char *directory)
{
    struct sockaddr_un ret = {.sun_family = AF_UNIX};
    int n = snprintf(ret.sun_path, sizeof(ret.sun_path), "%s/.s.PGSQL.5432", directory);

    assert_true(n < (int)sizeof(ret.sun_path));
    return ret;
}

static int listen_at(const char *directory)
{
    struct sockaddr_un at = address(directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static int dial(const char *directory)
{
    struct sockaddr_un to = address(directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
        return fd;
    close(fd);
    return -1;
}

struct connection {
    struct postgres_proxy *p;
    unsigned number;
    int client, server;
};

/* False: this connection is to be cut. A query of libpq is in one piece. */
static bool forward(struct connection *c, bool to_server)
{
    struct postgres_proxy *p = c->p;
    int from = to_server ? c->client : c->server, to = to_server ? c->server : c->client;
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof(bytes));
    bool cuts =
        to_server && n == 12 && !memcmp(bytes + 5, "COMMIT", 7) && p->commits && !--p->commits;

    if (n <= 0)
        return false;
    if ((!cuts || !p->before) && write(to, bytes, (size_t)n) != n)
        return false;
    if (cuts && !p->before) /* the server has done it when it answers */
        (void)!read(to, bytes, sizeof(bytes));
    p->cuts += cuts;
    return !cuts;
}

static void *serve(void *arg)
{
    struct connection *c = arg;
    bool goes_on = true;

    while (goes_on && !c->p->closing) {
        struct pollfd fds[] = {{.fd = c->client, .events = POLLIN},
                               {.fd = c->server, .events = POLLIN}};
        bool frozen = c->number <= c->p->frozen;

        if (poll(fds, frozen ? 0 : COUNT(fds), 20) <= 0 || c->number <= c->p->frozen)
            continue;
        if (fds[0].revents)
            goes_on = forward(c, true);
        if (goes_on && fds[1].revents)
            goes_on = forward(c, false);
    }
    close(c->client);
    close(c->server);
    c->p->open--;
    free(c);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct postgres_proxy *p = arg;
    int client;

    while ((client = accept(p->listener, NULL, NULL)) >= 0) {
        struct connection *c = calloc(1, sizeof(*c));
        pthread_t thread;

        *c = (struct connection){p, ++p->accepted, client, dial(p->server->directory)};
        p->open++;
        if (c->server < 0 || pthread_create(&thread, NULL, serve, c)) {
            close(client);
            p->open--;
            free(c);
            continue;
        }
        pthread_detach(thread);
    }
    return NULL;
}

void proxy_open(struct postgres_proxy *p, struct postgres_server *s)
{
    *p = (struct postgres_proxy){.server = s};
    snprintf(p->directory, sizeof(p->directory), "%s/proxy-XXXXXX", s->directory);
    assert_non_null(mkdtemp(p->directory));
    p->listener = listen_at(p->directory);
    assert_int_equal(pthread_create(&p->thread, NULL, accept_all, p), 0);
}

void proxy_close(struct postgres_proxy *p)
{
    p->closing = true;
    shutdown(p->listener, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listener);
    while (p->open)
        poll(NULL, 0, 5);
}
