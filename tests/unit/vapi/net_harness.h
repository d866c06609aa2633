/* SPDX-License-Identifier: Apache-2.0 */
/* A net server with a handler of many routes on one loop, and clients in a helper thread. Why: real
 * sockets, real clients, and no waiting by time: the loop runs until the client function returned.
 * Client functions must not use cmocka: they put what they saw into memory that the test looks at.
 *
 *   GET /hello          "hello"                      any  /echo        the body back
 *   GET /size?N         N bytes, in pieces           GET  /stream?N    N bytes, streamed with
 * drained() GET /patient?N        the same, to a reader that may pause
 *   GET /whole?N        the same, an answer that ends by itself; /sized?N: with its length
 *   GET /watch          one line, then nothing       GET  /later       "later", 50 ms later
 *   GET /peer           cn|organizations|rejected    GET  /request     method, path, query, headers
 *   GET /never          no answer, until closed      GET  /abort       one line, then cut
 *   GET /pipe           upgrades; gives back what comes, ends with the peer */
#pragma once

#include "test.h"

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <uv.h>

#include <sublet/buf.h>
#include <sublet/net.h>

struct identity {
    X509 *cert;
    EVP_PKEY *key;
    struct str cert_pem, key_pem; /* in the fixture's arena */
};

struct net_fixture {
    uv_loop_t loop;
    uv_async_t done;
    struct arena *arena;
    struct net_server *server;
    unsigned port;
    int64_t life; /* of certificates that net_identity() makes, seconds */
    bool tls, server_closed;
    struct identity ca, leaf;
    /* What the handler saw. Read it when no client runs. */
    unsigned requests, closed, drained, released, running;
    size_t max_backlog, last_body;
    bool pause_pipes; /* received() is paused while what it gave back is not drained */
    void (*client)(struct net_fixture *f, void *arg);
    void *arg;
    pthread_t thread;
    int client_turn; /* for client and test to take turns */
};

/* options may be NULL; address and handler are filled in, tls when `tls`. */
void net_fixture_open(struct net_fixture *f, bool tls, const struct net_options *options);
void net_fixture_close(struct net_fixture *f);
/* Runs client() in a thread, and the loop until it returned. */
void net_fixture_run(struct net_fixture *f, void (*client)(struct net_fixture *f, void *arg),
                     void *arg);
/* The same in two halves: the test may do things while the client runs. */
void net_fixture_start(struct net_fixture *f, void (*client)(struct net_fixture *f, void *arg),
                       void *arg);
void net_fixture_wait(struct net_fixture *f);
/* Closes the server and lets what is under way finish; net_fixture_close() is still due. */
void net_fixture_shut(struct net_fixture *f, int64_t grace_ms);
struct identity net_identity(struct net_fixture *f, const struct identity *ca, int use,
                             const char *cn, const char *organization);
struct net_tls net_fixture_tls(struct net_fixture *f);

/* A raw client: everything the peer sends until it closes or `want` bytes are there. */
int raw_connect(struct net_fixture *f);
void raw_send(int fd, struct str bytes);
size_t raw_receive(int fd, struct buf *into, size_t want);
void raw_receive_until(int fd, struct buf *into, const char *text);
/* True once the peer closed, whatever came before. */
bool raw_closed(int fd);
/* Connects, sends, reads until the peer closes. */
void raw_talk(struct net_fixture *f, struct str bytes, struct buf *into);
