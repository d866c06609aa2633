/* SPDX-License-Identifier: Apache-2.0
 * room: syncer
 *
 * The tenant's DNS server: names of its Services, endpoints and pods from the store, everything
 * else from resolvers the configuration names (network.dns). UDP and TCP on the caller's loop. Only
 * the tenant's pods are answered. Sources: Kubernetes DNS-Based Service Discovery 1.1.0, RFC 1034,
 * 1035, 2308, 5452, 6891, 7766. */
#pragma once

#include <sublet/config.h>

struct buf;
struct clock;
struct dns;
struct rng;
struct store;
struct uv_loop_s;

/* The resolver configuration of the process (resolv.conf(5)), as far as it concerns the tenant. */
struct dns_resolv {
    struct str_list servers;  /* nameservers */
    struct str_list searches; /* but those of the host's cluster */
    struct str_list hidden; /* the host's cluster domain (X, where "svc.X" is searched); or none */
};
/* Never fails: unknown lines are ignored. Strings live in the arena. */
void dns_resolv_parse(struct arena *a, struct str text, struct dns_resolv *ret);

struct dns_options {
    struct uv_loop_s *loop;
    struct store *store; /* open, until dns_close() */
    const struct config *config;
    const struct dns_resolv *resolv;
    const struct clock *clock;
    const struct rng *rng;
};
/* Listens at config.dns_listen, which is not empty. Errors are BAD_REQUEST for options that make no
 * sense, naming the place, and UNAVAILABLE where the socket cannot be had. */
int dns_open(const struct dns_options *options, struct dns **ret, struct err *err) MUST_CHECK;
unsigned dns_port(const struct dns *d);
void dns_write_metrics(void *dns, struct buf *out); /* for vapi_add_metrics() */
/* Queries under way end without an answer. */
void dns_close(struct dns *d, void (*closed)(void *ctx), void *ctx);
