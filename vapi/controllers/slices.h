/* SPDX-License-Identifier: Apache-2.0 */
/* Distributes wanted endpoints over EndpointSlices, with as few writes as possible. Internal to
 * vapi/controllers. */
#pragma once

#include "util.h"

#define SLICE_SERVICE    "kubernetes.io/service-name"
#define SLICE_MANAGED_BY "endpointslice.kubernetes.io/managed-by"

/* Endpoints of one address type with the same ports. */
struct slice_group {
    struct slice_group *next;
    const char *address_type; /* "IPv4" */
    const cJSON *ports;       /* an array, maybe empty */
    cJSON *endpoints;         /* an array */
};

struct slice_plan {
    struct reconcile *run;
    const struct resource *owner_res;
    const cJSON *owner;                /* a Service or Endpoints: the slices' controller */
    struct str manager;                /* value of SLICE_MANAGED_BY */
    const cJSON *labels, *annotations; /* of every slice; annotations may be NULL */
    const cJSON *keep_types; /* address types that have a slice even without endpoints; array */
    size_t max;              /* endpoints of one slice */
    struct slice_group *groups;
};

/* The group of a type and ports; created when missing. */
struct slice_group *slice_group_get(struct slice_plan *p, const char *address_type,
                                    const cJSON *ports);
/* The manager's slices of a service. */
cJSON *slices_list(struct reconcile *r, struct str ns, struct str service, struct str manager);
void slices_write(struct slice_plan *p);
/* Deletes all of the manager's slices of a service. */
void slices_remove(struct reconcile *r, struct str ns, struct str service, struct str manager);
/* Maps a slice of the manager to its service. */
void slices_map(struct controller *c, const struct store_event *e, struct str manager);
const char *slices_address_type(struct str ip); /* "IPv4", "IPv6", or NULL for no address */
