/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * What the server's files share: struct dns, the destination of an answer, and TCP connections. */
#pragma once

#include <uv.h>

#include "clients.h"
#include "feed.h"
#include "forward.h"

enum { DNS_JOBS_MAX = 512 };

/* Outcomes of queries, for /metrics. */
enum dns_count {
    COUNT_OWN,       /* answered from the tenant's objects and options */
    COUNT_CACHED,    /* from the cache */
    COUNT_FORWARDED, /* by another resolver */
    COUNT_FAILED,    /* by none: SERVFAIL */
    COUNT_LIMITED,   /* refused: too many of this client, or of all */
    COUNT_STRANGER,  /* not answered: from an unknown client */
    COUNT_MALFORMED,
    N_DNS_COUNT
};

struct dns_conn;
TAILQ_HEAD(dns_conns, dns_conn);
TAILQ_HEAD(dns_jobs, dns_job);

struct dns {
    unsigned magic;
    struct dns_options o;
    struct arena *arena; /* lives as long as the server */
    struct arena *scratch;
    struct dns_policy policy;
    struct dns_zone *zone;
    struct dns_feed *feed;
    struct dns_view view;
    struct dns_forwarder *forwarder;
    struct dns_rates *rates;
    struct dns_held *held;
    uv_udp_t udp;
    uv_tcp_t tcp;
    uv_timer_t hold; /* until the next held query expires */
    struct dns_conns conns;
    size_t n_conns;
    struct dns_jobs jobs;
    size_t n_jobs;
    unsigned turn;
    uint64_t counts[N_DNS_COUNT];
    size_t handles; /* not closed yet, and the forwarder */
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
    char room[DNS_QUERY_MAX]; /* read buffer of all sockets */
};

/* The destination of an answer. */
struct dns_reply {
    struct dns_conn *conn; /* NULL: over UDP, to peer */
    struct sockaddr_storage peer;
};
/* bytes: one message of a known client. */
void dns_handle(struct dns *d, struct str bytes, const struct dns_ip *ip,
                const struct dns_reply *to);
void dns_handle_closed(struct dns *d);

/* --- conn.c --- */
void dns_conn_accept(struct dns *d);
void dns_conn_send(struct dns_conn *c, struct str message);
void dns_conn_close(struct dns_conn *c);
/* One more, or one fewer, answer to this connection is pending. */
void dns_conn_hold(struct dns_conn *c);
void dns_conn_release(struct dns_conn *c);
