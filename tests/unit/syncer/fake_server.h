/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server on loopback that plays the host, and the loop it shares with what is tested.
 * A test answers each request itself, so every fault is a few lines of it. Must never wait by time
 * where it can wait for what it needs. */
#pragma once

#include "test.h"

#include <uv.h>

#include <sublet/host.h>
#include <sublet/net.h>

struct fake_server;
typedef void (*fake_answer)(struct fake_server *s, struct net_exchange *x,
                            const struct net_request *r);

struct fake_server {
    uv_loop_t loop;
    uv_timer_t guard;
    struct arena *arena;
    struct net_server *server;
    unsigned port;
    fake_answer answer;
    struct net_exchange *streams[8]; /* watches that are open */
    size_t n_streams;
    unsigned requests, lists, watches;
    char last_path[1024], last_query[1024], last_body[4096], last_authorization[256];
    char kubeconfig[128];
    struct host *host;
    void *ctx;
};

/* Opens the server and a host client of it (qps 0: no limit). */
void fake_open(struct fake_server *s, fake_answer answer, const struct host_options *options);
/* No server, but a client of what listens at that port. */
void fake_open_at(struct fake_server *s, const char *scheme, unsigned port);
void fake_close(struct fake_server *s);
/* The server stops with its connections, and comes back on its port. */
void fake_go_away(struct fake_server *s);
void fake_come_back(struct fake_server *s);
/* Runs the loop until *flag; fails the test after 20 s. */
void fake_run_until(struct fake_server *s, const bool *flag);
void fake_run_ms(struct fake_server *s, unsigned ms);
void fake_reply(struct net_exchange *x, int status, const char *json);
/* A watch: begins to answer; lines are sent with fake_line() and ended with fake_end_streams(). */
void fake_begin_watch(struct fake_server *s, struct net_exchange *x);
void fake_line(struct fake_server *s, const char *json);
void fake_end_streams(struct fake_server *s, bool cut);
