/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * What is known of the host in this life: revisions, lives, quarantine, removals that are not on
 * record yet. */
#pragma once

#include "core/mapping.h"

/* --- revisions.c: the newest host object on record, of each kind --- */
uint64_t revision_on_record(struct syncer *s, enum sync_id id); /* 0: none in this life */
/* With the record that says that the object is there. */
void revision_note(struct syncer *s, enum sync_id id, const cJSON *host_object);
void revisions_forget(struct syncer *s);

/* --- life.c: one history of our records and the host's objects --- */
#define LIFE_FIRST 1
void life_open(struct syncer *s); /* at start, before anything else reads records */
bool life_is_first(const struct syncer *s);
/* The host was restored to an earlier state, or is another one. */
void life_host_changed(struct syncer *s, const char *why);
void life_keep(struct syncer *s);      /* a failed transaction may have taken its beginning back */
void life_watch_all(struct syncer *s); /* what is on the host is not known to be what we made */
void life_listed(struct syncer *s, enum sync_id id); /* the first list of a kind is complete */
enum life_absence {
    ABSENCE_PROVEN,         /* the host object was there and was deleted */
    ABSENCE_OPEN,           /* not known yet: the keys come again when it is */
    ABSENCE_OF_ANOTHER_LIFE /* what is recorded was never on this host, or may not have been */
};
/* What does it prove that the host object of m, which has a host_uid, is missing? */
enum life_absence life_absence(struct syncer *s, enum sync_id id, const struct mapping *m);
/* False: a later epoch of this virtual cluster has it. */
bool life_owns(const struct syncer *s, const cJSON *host_object);
/* Does it carry our epoch? What becomes of an object before it does may have been requested before
 * the restore, which took that back: it proves nothing. */
bool life_has_taken_up(const struct syncer *s, const cJSON *host_object);

/* --- quarantine.c: host objects that no record proves ours --- */
/* Enters it, or ends its quarantine, by what the records say now. */
void quarantine_judge(struct syncer *s, enum sync_id id, const cJSON *host);
void quarantine_end(struct syncer *s, enum sync_id id, struct str host_name);
bool quarantine_has(struct syncer *s, enum sync_id id, struct str host_name);
size_t quarantine_count(struct syncer *s, enum sync_id id);
void quarantine_compare(struct syncer *s, enum sync_id id); /* all that the watch shows */
void quarantine_start(struct syncer *s); /* reports what is on record, and watches it */

/* --- departed.c: removals on the host, until they are on record --- */
void departed_note(struct syncer *s, enum sync_id id, struct str ns, struct str name,
                   struct str uid, const cJSON *host_object);
/* What m lacks because its transaction failed. */
void departed_apply(const struct syncer *s, struct arena *a, enum sync_id id, struct str ns,
                    struct str name, struct mapping *m);
void departed_again(struct syncer *s); /* after a failed transaction */
void departed_fini(struct syncer *s);
