/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Mapping records: which host object is whose. */
#pragma once

#include "core/core.h"

/* --- mapping.c: which host object is whose, in the tenant's own store --- */
enum { MAPPING_OLD = 6 };
struct mapping {
    bool exists;
    bool tried;                  /* a create was sent and its outcome is not known */
    int64_t gone_s;              /* since when a tried one is without its virtual object; 0: not */
    struct str uid;              /* of the virtual object */
    struct str host_uid;         /* empty: not known to have been on the host */
    int64_t life;                /* in which that was last seen */
    struct str given;            /* what the host allocated to it, "a,b"; of Services */
    bool headless;               /* a Service that takes no address of the host's */
    struct str old[MAPPING_OLD]; /* virtual uids before, whose host objects may linger */
    size_t n_old;
};
struct mapping mapping_get(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                           struct str name);
/* Without what departed.c knows and no record does. */
struct mapping mapping_on_record(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                                 struct str name);
void mapping_put(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                 const struct mapping *m);
void mapping_remove(struct syncer *s, enum sync_id id, struct str ns, struct str name);
/* Makes uid the current one (what was goes to the old; the oldest is lost when mapping_is_full());
 * false when it is already. */
bool mapping_begin(struct mapping *m, struct str uid);
bool mapping_is_full(const struct mapping *m);
/* The host object of m was there in this life. False: m says so already. */
bool mapping_set_host(const struct syncer *s, struct mapping *m, struct str host_uid);
/* A host object of ours came. It may have left before a run looks, or a restart may come first:
 * that it was there must be known all the same. */
void mapping_note_host(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                       struct str uid, const cJSON *host_object);
/* How many other Services are, or may be, on the host: with an address there, or headless. */
size_t mapping_count_services(struct syncer *s, bool headless, struct str but_ns,
                              struct str but_name);
/* Is it recorded that the host object carrying uid was made for a virtual object of this key? The
 * proof before a deletion. Of claims, whose data cannot be made again, the record must be of this
 * life. */
bool mapping_proves(const struct syncer *s, enum sync_id id, const struct mapping *m,
                    struct str uid);
/* Was uid ever the uid of a virtual object under this key? */
bool mapping_knows(const struct mapping *m, struct str uid);
