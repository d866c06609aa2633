/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * The options of network.dns as the server uses them, and how a name is resolved. Pure. */
#pragma once

#include <sublet/dns.h>

#include "name.h"

enum { DNS_SERVERS_MAX = 8 }; /* of one domain */

/* The servers of a domain and of all domains below it. */
struct dns_upstream {
    struct dns_name domain; /* the root: the default */
    struct dns_endpoint servers[DNS_SERVERS_MAX];
    size_t n;
};

struct dns_host {
    struct dns_name name;
    struct dns_ip *ips;
    size_t n;
};

/* A name that stands for another one. */
struct dns_alias {
    struct dns_name name, target;
    bool below;        /* "*.old.example": all names below the name */
    bool keeps_labels; /* the labels before the name stand before the target, "*.new.example" */
};

struct dns_policy {
    struct dns_name origin; /* the tenant's cluster domain */
    struct dns_endpoint listen;
    struct dns_host *hosts; /* in order of their names */
    size_t n_hosts;
    struct dns_host *below; /* "*.corp.example" under corp.example: all names below it */
    size_t n_below;
    struct dns_alias *aliases;
    size_t n_aliases;
    struct dns_upstream *stubs;
    size_t n_stubs;
    struct dns_upstream forward; /* n == 0: nothing is forwarded */
    struct dns_name *hidden;     /* domains of the host's cluster: never forwarded or returned */
    size_t n_hidden;
    bool nodes;                /* names of Nodes lead to their internal addresses */
    struct dns_range *clients; /* clients besides the tenant's pods */
    size_t n_clients;
};

/* Everything lives in the arena. Errors are BAD_REQUEST with the option's place. */
int dns_policy_load(struct arena *a, const struct config *config, const struct dns_resolv *resolv,
                    struct dns_policy *ret, struct err *err) MUST_CHECK;
/* By its name, else by the longest pattern. */
const struct dns_host *dns_policy_host(const struct dns_policy *p, const struct dns_name *name);
/* The alias of this name, else the longest pattern, and *ret, its target for this name; ret->n 0:
 * that is too long. NULL: the name is no alias. */
const struct dns_alias *dns_policy_alias(const struct dns_policy *p, const struct dns_name *name,
                                         struct dns_name *ret);

enum dns_way { DNS_WAY_OWN, DNS_WAY_UPSTREAM, DNS_WAY_HIDDEN, DNS_WAY_NONE };
/* The longest matching domain decides. UPSTREAM: by *ret. HIDDEN: NXDOMAIN. */
enum dns_way dns_policy_way(const struct dns_policy *p, const struct dns_name *name,
                            const struct dns_upstream **ret);
