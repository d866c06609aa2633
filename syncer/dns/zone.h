/* SPDX-License-Identifier: Apache-2.0
 * room: syncer/dns (private)
 *
 * The DNS data of the tenant's objects, in small structs that events update, so that no query
 * parses an object. Pure: no clock, no I/O. Events of different kinds may come in any order: a
 * slice may precede its Service. */
#pragma once

#include <sys/queue.h>

#include <sublet/json.h>

#include <sublet/hash.h>
#include "ip.h"

enum zone_kind { ZONE_NAMESPACES, ZONE_SERVICES, ZONE_SLICES, ZONE_PODS, ZONE_NODES, N_ZONE };

struct dns_zone;
struct dns_zone *dns_zone_new(void);
struct dns_zone *dns_zone_free(struct dns_zone *z);
/* Replaces the object's data; object NULL: it is deleted. */
void dns_zone_set(struct dns_zone *z, enum zone_kind kind, struct str ns, struct str name,
                  const cJSON *object);
void dns_zone_clear(struct dns_zone *z, enum zone_kind kind); /* before all are listed again */
uint32_t dns_zone_serial(const struct dns_zone *z);           /* grows with every change */

/* --- data for answers; valid until the next dns_zone_set() --- */
struct zone_port {
    char *name;     /* may be empty */
    char *protocol; /* "tcp" */
    uint16_t number;
};
struct zone_endpoint {
    char *hostname; /* without one: "10-0-0-1" */
    struct dns_ip ip;
};
struct zone_slice {
    struct map_entry entry;
    char *key; /* "ns/name" */
    struct zone_service *service;
    LIST_ENTRY(zone_slice) place; /* of the service */
    struct zone_port *ports;
    struct zone_endpoint *endpoints; /* the ready ones */
    size_t n_ports, n_endpoints;
};
struct zone_service {
    struct map_entry entry;
    char *key;   /* "ns/name" */
    bool exists; /* false: only slices refer to it */
    bool headless;
    char *external; /* spec.externalName of type ExternalName; else NULL */
    struct dns_ip *ips;
    struct zone_port *ports;
    size_t n_ips, n_ports;
    LIST_HEAD(, zone_slice) slices;
};

bool dns_zone_has_namespace(const struct dns_zone *z, struct str ns);
const struct zone_service *dns_zone_service(const struct dns_zone *z, struct str ns,
                                            struct str name); /* NULL: there is none */
/* Does an unfinished pod have this address? ns.p NULL: in any namespace. */
bool dns_zone_has_pod(const struct dns_zone *z, struct str ns, const struct dns_ip *ip);
/* The addresses of the pod with this address whose hostname and subdomain are these ("one.sub"),
 * which Kubernetes writes into its /etc/hosts. NULL: there is none. */
const struct dns_ip *dns_zone_self(const struct dns_zone *z, const struct dns_ip *client,
                                   struct str ns, struct str self, size_t *ret_n);
/* The internal addresses of the Node with this name, in lower case. NULL: there is none. */
const struct dns_ip *dns_zone_node(const struct dns_zone *z, struct str name, size_t *ret_n);
/* The owners of an address: first the Service with this cluster IP (hostname NULL), then ready
 * endpoints. Stops when each() returns false. */
typedef bool (*zone_owner_cb)(void *ctx, const struct zone_service *service, const char *hostname);
void dns_zone_owners(const struct dns_zone *z, const struct dns_ip *ip, zone_owner_cb each,
                     void *ctx);
