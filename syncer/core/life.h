/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * Which records prove something about the host: lives, revisions, quarantine, deletions that are
 * not on record yet. */
#pragma once

#include "core/mapping.h"

/* --- revisions.c: the highest resourceVersion on record, of each kind --- */
uint64_t sync_revision_on_record(struct syncer *s, enum sync_id id); /* 0: none in this life */
/* In the transaction that records the object's existence. */
void sync_revision_note(struct syncer *s, enum sync_id id, const cJSON *host_object);
void sync_revisions_forget(struct syncer *s);

/* --- life.c: periods of one history of our records and the host's objects --- */
#define LIFE_FIRST 1
void sync_life_open(struct syncer *s); /* at start, before records are read */
bool sync_life_is_first(const struct syncer *s);
/* The host was restored to an earlier state, or is another one. */
void sync_life_host_changed(struct syncer *s, const char *why);
void sync_life_keep(struct syncer *s); /* after a rollback, which may have removed its record */
void sync_life_watch_all(
    struct syncer *s); /* opens the watches of all kinds with mapping records */
void sync_life_listed(struct syncer *s, enum sync_id id); /* a list of a kind is complete */
enum sync_life_absence {
    ABSENCE_PROVEN,         /* the host object existed and was deleted */
    ABSENCE_OPEN,           /* not decided yet: the key is added again when it is */
    ABSENCE_OF_ANOTHER_LIFE /* the record is of another life: the object may never have existed */
};
/* What the absence of m's host object means; m has a host_uid. */
enum sync_life_absence sync_life_absence(struct syncer *s, enum sync_id id,
                                         const struct mapping *m);
/* Is the cache of this kind all that the host has, as far as a watch can show it? The host may have
 * been restored since it was not. False: the keys are added again when it is. */
bool sync_life_is_current(struct syncer *s, enum sync_id id);
struct str sync_life_epoch(const cJSON *host_object); /* that wrote it; empty: an earlier version */
/* False: it belongs to a later epoch of this virtual cluster. */
bool sync_life_owns(const struct syncer *s, const cJSON *host_object);
/* Does it carry our epoch? If not, its deletion may have been requested before the restore, and
 * proves nothing. */
bool sync_life_has_our_epoch(const struct syncer *s, const cJSON *host_object);

/* --- quarantine.c: host objects that carry our cluster uid, but that no record proves ours --- */
/* Puts the object in quarantine or ends that, as the records say now. */
void sync_quarantine_judge(struct syncer *s, enum sync_id id, const cJSON *host);
void sync_quarantine_end(struct syncer *s, enum sync_id id, struct str host_name);
bool sync_quarantine_has(struct syncer *s, enum sync_id id, struct str host_name);
size_t sync_quarantine_count(struct syncer *s, enum sync_id id);
void sync_quarantine_compare(struct syncer *s, enum sync_id id); /* judges all cached objects */
void sync_quarantine_start(struct syncer *s); /* reports those on record, and opens their watches */

/* --- departed.c: deletions on the host, until they are on record --- */
void sync_departed_note(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                        struct str uid, const cJSON *host_object);
/* Adds to m what a failed transaction rolled back. */
void sync_departed_apply(const struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                         struct str name, struct mapping *m);
void sync_departed_retry(
    struct syncer *s); /* records again what a failed transaction rolled back */
void sync_departed_fini(struct syncer *s);
