/* SPDX-License-Identifier: Apache-2.0 */
/* A PostgreSQL server of a test: in a directory of its own, on a socket of the file system, as a
 * user without privileges, since it refuses root. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <sublet/str.h>

#define SERVER_PASSWORD "t0p/secret:of@the\"ledger"

struct postgres_server {
    char directory[64]; /* data/ and the socket; connection strings of tests */
    pid_t pid;
};
/* Each fails the test. */
void server_open(struct postgres_server *s);
void server_close(struct postgres_server *s);
void server_start(struct postgres_server *s);              /* and waits until it answers */
void server_end(struct postgres_server *s, int signal);    /* and waits for the end of all of it */
void server_signal(struct postgres_server *s, int signal); /* to all of its processes */
/* Commands of the superuser; the first value of the last one, on the heap, or NULL: it failed. */
char *server_sql(struct postgres_server *s, const char *sql);
/* Writes DIRECTORY/NAME, mode 0600, with a connection string by `host` (a directory of a socket)
 * and a schema, which is created; returns the location of a ledger there, on the heap. */
char *server_location(struct postgres_server *s, const char *host, const char *name);
void server_write(const char *path, const char *text, mode_t mode);

/* Between clients and the server: forwards bytes, until a COMMIT is sent. */
struct postgres_proxy {
    char directory[96]; /* of its socket */
    int listener;
    _Atomic unsigned commits; /* from now on; at this one the connection is cut. 0: none */
    _Atomic unsigned cuts;    /* that were made */
    _Atomic bool before;      /* cut before the server has the COMMIT, else before its answer */
    _Atomic unsigned frozen;  /* so many of the first connections: neither end hears of the other */
    _Atomic unsigned accepted, open;
    _Atomic bool closing;
    pthread_t thread;
    struct postgres_server *server;
};
void proxy_open(struct postgres_proxy *p, struct postgres_server *s);
void proxy_close(struct postgres_proxy *p);
