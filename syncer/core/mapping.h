/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Mapping records: which virtual object each host object was made for. */
#pragma once

#include "core/core.h"

/* --- mapping.c: in the tenant's own store --- */
enum { MAPPING_OLD = 6, MAPPING_TRIED = 9 };
struct mapping {
    bool exists;
    unsigned tried;      /* creates that were sent and whose outcome is not known */
    int64_t lost_s;      /* from when on these count as lost, not as under way; 0: not yet */
    struct str uid;      /* of the virtual object */
    struct str host_uid; /* empty: never seen on the host */
    int64_t life;        /* the life in which host_uid was last seen */
    struct str given;    /* of a Service: addresses and ports the host allocated, "a,b" */
    bool headless;       /* a Service that takes no address of the host's */
    struct str old[MAPPING_OLD]; /* previous virtual uids, whose host objects may still exist */
    size_t n_old;
};
struct mapping sync_mapping_get(struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                                struct str name);
/* The record alone, without the deletions that departed.c keeps. */
struct mapping sync_mapping_on_record(struct syncer *s, struct arena *a, enum sync_id id,
                                      struct str ns, struct str name);
/* There is no record, and that may be an effect of damage. */
bool sync_mapping_is_lost(struct syncer *s, enum sync_id id, struct str ns, struct str name);
void sync_mapping_put(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                      const struct mapping *m);
/* The value of such a record, for records under other keys. */
struct mapping sync_mapping_parse(struct arena *a, struct str text);
struct str sync_mapping_text(struct arena *a, const struct mapping *m);
void sync_mapping_remove(struct syncer *s, enum sync_id id, struct str ns, struct str name);
/* Makes uid the current one; the previous one becomes the first of the old, and the oldest is lost
 * when sync_mapping_is_full(). False: it is the current one already. */
bool sync_mapping_begin(struct mapping *m, struct str uid);
/* A create is about to be sent; its outcome is known, false: none was without one. */
void sync_mapping_try(struct mapping *m);
bool sync_mapping_try_over(struct mapping *m);
/* The same for a record whose object has no other create under way: it counts as lost from now. */
void sync_mapping_try_alone(const struct syncer *s, struct mapping *m);
/* For so many seconds more a create without an outcome may still be executed; counted from lost_s,
 * while that is 0 from now on. 0: none is, or not any more. */
int64_t sync_mapping_lost_left_s(const struct syncer *s, const struct mapping *m);
bool sync_mapping_is_full(const struct mapping *m);
/* Was its host object seen in this life? */
bool sync_mapping_has_host(const struct syncer *s, const struct mapping *m);
/* The host object exists: its uid, in this life. One of the creates made it; what others there are
 * may be executed when it has left. */
void sync_mapping_set_host(const struct syncer *s, struct mapping *m, struct str host_uid);
/* Records a host object of ours as soon as it is seen: it may be deleted, or this process may end,
 * before the key's next run. */
void sync_mapping_note_host(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                            struct str uid, const cJSON *host_object);
/* How many other Services are, or may be, on the host: headless ones, or those with an address. */
size_t sync_mapping_count_services(struct syncer *s, bool headless, struct str but_ns,
                                   struct str but_name);
/* How many other objects of a kind are, or may be, on the host. */
size_t sync_mapping_count(struct syncer *s, enum sync_id id, struct str but_ns,
                          struct str but_name);
/* Does the record say that the host object carrying uid was made for a virtual object of this key?
 * The proof that every deletion needs. A claim's data is lost with it: its record must be of this
 * life. */
bool sync_mapping_proves(const struct syncer *s, enum sync_id id, const struct mapping *m,
                         struct str uid);
/* Was uid ever the uid of a virtual object under this key? */
bool sync_mapping_knows(const struct mapping *m, struct str uid);
