/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * What requests (curl.c) and raw connections (curl_raw.c) share: one multi handle on the loop, and
 * easy handles with the host's address and our credentials; and what requests to a tenant's own
 * servers share (elsewhere.c). */
#pragma once

#include <sys/queue.h>

#include <curl/curl.h>
#include <uv.h>

#include "transport.h"

#define CURL_MAGIC       0x6375726cu
#define WIRE_MAGIC       0x77697265u
#define ANSWER_LIMIT     (16u << 20)
#define CONNECT_MS       10000L
#define CREDENTIALS_MS   60000 /* client-go re-reads a token file every minute, too */
#define CREDENTIAL_LIMIT (1u << 20)

struct raw;

struct wire {
    unsigned magic;
    struct curl_transport *transport;
    LIST_ENTRY(wire) place;
    CURL *easy;
    struct curl_slist *headers;
    char *body, *path;
    struct buf data; /* received, not delivered yet */
    struct wire_handler handler;
    struct raw *raw; /* the raw connection it only connects for, or NULL */
    bool headed;     /* the head was received, not delivered yet */
    bool ended;
    CURLcode result;
    char error[CURL_ERROR_SIZE]; /* libcurl's message, with names and addresses */
};

LIST_HEAD(wire_list, wire);

struct curl_transport {
    struct transport base;
    unsigned magic;
    uv_loop_t *loop;
    uv_timer_t timer;
    CURLM *multi;
    const struct clock *clock;
    struct kubeconfig *config;
    struct curl_slist *connect_to;
    struct wire_list wires;
    struct buf token, ca; /* as last read from their files */
    int64_t credentials_at;
    unsigned open_handles;
    bool settling, closing;
    bool timing; /* inside libcurl, called by its timer */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

struct socket_poll {
    uv_poll_t handle;
    struct curl_transport *transport;
    curl_socket_t fd;
    struct raw *raw; /* its owner; NULL: libcurl */
};

/* curl.c */
struct curl_transport *host_curl_from(struct transport *t);
/* With an easy handle for the host; the caller adds that to the multi handle. */
struct wire *host_curl_wire_new(struct curl_transport *t, struct str path, int64_t timeout_ms);
void host_curl_wire_free(struct wire *w);
struct socket_poll *host_curl_poll_new(struct curl_transport *t, curl_socket_t fd);
void host_curl_poll_close(struct socket_poll *p);
struct str host_curl_token(const struct curl_transport *t);

/* curl_raw.c */
extern const struct raw_ops HOST_CURL_RAW;
void host_curl_raw_opened(struct raw *r, CURLcode result);

/* elsewhere.c: a server that is not the host's API, and why there is no answer of it */
struct elsewhere {
    char *where; /* "10.0.0.7:443", "hook.example:443" */
    struct curl_slist *connect_to;
};
/* address empty: name is resolved. */
void host_elsewhere_init(struct elsewhere *e, struct str name, struct str address, unsigned port);
void host_elsewhere_fini(struct elsewhere *e);
/* URL, protocols, trust: ca empty: what libcurl trusts. */
void host_elsewhere_set(CURL *easy, const struct elsewhere *e, struct str name, unsigned port,
                        struct str path, struct str ca);
/* In the words of Go's client. */
void host_elsewhere_explain(const struct elsewhere *e, const struct wire_failure *f,
                            struct err *err);
void host_curl_blob(CURL *easy, CURLoption option, struct str pem); /* empty: none */
void host_curl_header(struct wire *w, const char *start, struct str value);
