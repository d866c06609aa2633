/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * What requests (curl.c) and raw connections (curl_raw.c) share: one multi handle on the loop, and
 * how an easy handle is told where the host is and who we are. */
#pragma once

#include <curl/curl.h>
#include <uv.h>

#include "transport.h"

#define CURL_MAGIC       0x6375726cu
#define WIRE_MAGIC       0x77697265u
#define ANSWER_LIMIT     (16u << 20)
#define CONNECT_MS       10000L
#define CREDENTIALS_MS   60000 /* client-go reads a token file anew every minute, too */
#define CREDENTIAL_LIMIT (1u << 20)

struct raw;

struct wire {
    unsigned magic;
    struct curl_transport *transport;
    struct wire *next, **prev;
    CURL *easy;
    struct curl_slist *headers;
    char *body, *path;
    struct buf data; /* received, not told yet */
    struct wire_handler handler;
    struct raw *raw; /* it only connects, for this one */
    bool ended;
    CURLcode result;
    char error[CURL_ERROR_SIZE]; /* libcurl's own words, with names and addresses */
};

struct curl_transport {
    struct transport base;
    unsigned magic;
    uv_loop_t *loop;
    uv_timer_t timer;
    CURLM *multi;
    const struct clock *clock;
    struct kubeconfig *config;
    struct curl_slist *connect_to;
    struct wire *wires;
    struct buf token, ca; /* as last read from their files */
    int64_t credentials_at;
    unsigned open_handles;
    bool settling, closing;
    bool timing; /* libcurl runs because its time has come */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct socket_poll {
    uv_poll_t handle;
    struct curl_transport *transport;
    curl_socket_t fd;
    struct raw *raw; /* whose it is, when not curl's */
};

/* curl.c */
struct curl_transport *curl_from(struct transport *t);
/* In the list, with an easy handle that knows the host and us; the caller adds it to the multi. */
struct wire *curl_wire_new(struct curl_transport *t, struct str path, int64_t timeout_ms);
void curl_wire_free(struct wire *w);
struct socket_poll *curl_poll_new(struct curl_transport *t, curl_socket_t fd);
void curl_poll_close(struct socket_poll *p);
struct str curl_token(const struct curl_transport *t);

/* curl_raw.c */
extern const struct raw_ops CURL_RAW;
void curl_raw_opened(struct raw *r, CURLcode result);
