/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * Resolves names below the cluster domain: Kubernetes DNS-Based Service Discovery 1.1.0, as CoreDNS
 * implements it where that leaves a choice. */
#pragma once

#include "name.h"
#include "zone.h"

enum dns_found {
    FOUND_NO_NAME,  /* NXDOMAIN */
    FOUND_NO_DATA,  /* the name exists, but has no items */
    FOUND_ITEMS,    /* addresses and ports */
    FOUND_EXTERNAL, /* an alias */
    FOUND_VERSION,  /* dns-version.<domain> */
};

/* An address of the name, with one of its ports; port 0: the address has none. */
struct dns_item {
    struct dns_ip ip;
    uint16_t port;
    const char *hostname; /* of the endpoint; NULL: the name is the Service's own */
};

enum { DNS_ITEMS_MAX = 4096 }; /* more than fit in an answer of 64 KB */

struct dns_finding {
    enum dns_found found;
    struct dns_item *items;
    size_t n;
    struct str external;
    char service[2 * 256]; /* "name.ns.svc", of FOUND_ITEMS of a Service; else empty */
};

/* The Service in front of this server: the target of ns.dns.<domain>. */
#define DNS_SERVICE_NAMESPACE "kube-system"
#define DNS_SERVICE_NAME      "kube-dns"

/* name is under origin; all of it lives in the arena, or until the zone changes. */
void dns_find(struct arena *a, const struct dns_zone *zone, const struct dns_name *origin,
              const struct dns_name *name, struct dns_finding *ret);
/* Does a pod look up its own name, hostname.subdomain.ns.svc? That needs no Service: Kubernetes has
 * it in the pod's /etc/hosts. */
bool dns_find_self(struct arena *a, const struct dns_zone *zone, const struct dns_name *origin,
                   const struct dns_name *name, const struct dns_ip *client,
                   struct dns_finding *ret);
