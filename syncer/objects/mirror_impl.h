/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What the files of sync.fromHost share: a mirror per enabled row. */
#pragma once

#include <sublet/hash.h>

#include "objects/mirror.h"

#define MIRROR_PREFIX     "from-host/"  /* of records: see mirror_copy.c */
#define MIRROR_REFUSED_MS 5000          /* a namespace that is terminating, a quota */
#define MIRROR_CALM_MS    300           /* the registry follows a CRD a moment later */
#define SLICES_MAX        1000          /* EndpointSlices of a Service that are shown */
#define CAPACITIES_NS     "kube-system" /* of the copies of CSIStorageCapacities */

struct mirror_source {
    struct mirror *mirror;
    const struct config_from_mapping *mapping; /* NULL: all objects of the kind */
    struct reflector *reflector;
    struct map slices; /* EndpointSlices of a single Service: host names by those of the copies */
    bool has_open_absence; /* copies are looked at again when the reflector's cache is current */
};

struct mirror {
    struct syncer *syncer;
    const struct config_from *row;
    struct mirror_source *sources;
    size_t n_sources;
    struct controller_def def;
    struct controller_source watched[4];
    struct controller *controller;
};

struct mirrors {
    struct syncer *syncer;
    struct mirror *items;
    size_t n;
};

/* --- mirror_copy.c --- */
/* The virtual resource; NULL: its CRD is missing. */
const struct resource *sync_mirror_resource(const struct mirror *m);
struct str sync_mirror_record_prefix(struct arena *a, const struct config_from *row);
/* The uid of the copy, MIRROR_CREATING, or empty. */
#define MIRROR_CREATING "-"
struct str sync_mirror_record_get(struct arena *a, const struct mirror *m, struct str ns,
                                  struct str name);
/* Of a source of EndpointSlices that has one Service: the name of the copy of this one, which is
 * found by it from now on. Why: looking for it costs a hash of each slice there is. */
struct str sync_mirror_slice_seen(struct arena *a, struct mirror_source *source,
                                  struct str host_name);
void sync_mirror_slice_gone(struct mirror_source *source, struct str name); /* of the copy */
void sync_mirror_slices_forget(struct mirror_source *source);
/* Makes the copy what it must be. Every source is synced. */
void sync_mirror_reconcile(struct mirror *m, struct reconcile *r, const struct resource *resource,
                           struct str ns, struct str name);
