/* SPDX-License-Identifier: Apache-2.0
 * room: config
 *
 * `sync.fromHost` of the configuration: objects of the host that the tenant is shown, read-only. A
 * row per enabled entry; everything in it was checked when it was loaded. */
#pragma once

#include <sublet/config.h>
#include <sublet/config_sync.h>
#include <sublet/selector.h>

enum config_from_kind {
#define SYNC_UP(id, ...) FROM_##id,
#include <sublet/tbl/sync_up.h>
#undef SYNC_UP
    FROM_CUSTOM_RESOURCES,
    FROM_ENDPOINT_SLICES, /* of the Services that `services.headless` shows: no entry of its own */
    N_FROM_KINDS
};

/* Of `mappings.byName`. Both names are empty (a whole namespace), or neither is. */
struct config_from_mapping {
    struct str host_ns; /* empty: host.namespace */
    struct str host_name;
    struct str ns, name; /* in the virtual cluster */
};

struct config_from {
    enum config_from_kind kind;
    struct str key;            /* as configured: "ingressClasses", "widgets.example.com/v1" */
    struct str group, version; /* version: empty for a custom resource that names none */
    struct str plural;
    bool namespaced;          /* read in the namespaces of its mappings */
    struct selector selector; /* of labels on the host */
    const struct config_from_mapping *mappings;
    size_t n_mappings;             /* namespaced kinds have at least one */
    struct str_list names;         /* gatewayClasses: of these alone; empty: all */
    struct str_list hosts;         /* gateways: which host names routes to them may have */
    bool wildcards;                /* a pattern of hosts is such a host name itself */
    bool headless;                 /* services: those without an address, too */
    struct str_list topology_keys; /* csiStorageCapacities: beside those of zone and region */
    struct config_patches patches; /* customResources: PATCH_VALUE and PATCH_DROP alone */
};

/* The row of a kind that has at most one; NULL: it is not enabled. */
const struct config_from *config_from_row(const struct config *config, enum config_from_kind kind);
