/* SPDX-License-Identifier: Apache-2.0 */
/* What pods and nodes say of scheduling: quantities, ports, terms of affinity; read from their
 * objects by incoming.c. */
#pragma once

#include "impl.h"

struct node_entry;

/* CPU in thousandths, everything else in units. */
struct named_quantity {
    struct str name;
    int64_t value;
};
struct quantities {
    struct named_quantity *list;
    size_t n;
};
#define MAX_QUANTITIES 64

struct host_port {
    struct str ip, protocol;
    int64_t port;
};
/* A term of (anti-)affinity between pods. */
struct pod_term {
    struct selector selector, ns_selector;
    bool has_ns_selector;
    struct str topology;
    const struct str *namespaces;
    size_t n_namespaces;
    int64_t weight;
};
struct pod_terms {
    struct pod_term *list;
    size_t n;
};

struct quantities quantities_of_pod(struct arena *a, const cJSON *pod);
struct quantities quantities_read(struct arena *a, const cJSON *map);
struct host_port *embedded_pod_host_ports(struct arena *a, const cJSON *pod, size_t *ret_n);
/* kind: "podAffinity" or "podAntiAffinity"; required, else preferred with weights. */
struct pod_terms embedded_pod_terms_read(struct arena *a, const cJSON *pod, const char *kind,
                                         bool required);
bool embedded_pod_term_matches(struct vapi *api, const struct pod_term *t,
                               const struct store_object *pod);
/* A v1.NodeSelector; NULL matches everything. */
bool embedded_node_selector_matches(struct arena *a, const cJSON *selector,
                                    const struct node_entry *n);
bool embedded_node_term_matches(struct arena *a, const cJSON *term, const struct node_entry *n);
/* cluster.c */
int64_t quantities_get(const struct quantities *list, struct str name);
