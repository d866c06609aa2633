/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * One run of a key's reconcile: its view of both worlds, and the requests it may send to the host.
 */
#pragma once

#include "core/mapping.h"
#include "core/settle.h"

/* --- exchange.c: requests of a run to the host --- */
struct sync_change;
/* What a run sees of its key. */
struct sync_run {
    struct syncer *syncer;
    struct reconcile *reconcile;
    struct arena *arena;
    enum sync_id id;
    struct str ns, name;
    char host_name[64];
    struct mapping mapping;
    cJSON *virtual_;                  /* committed; NULL: deleted */
    cJSON *host;                      /* from the cache; NULL: none, or its kind is not watched */
    struct str uid;                   /* metadata.uid of virtual_ */
    struct str host_uid;              /* metadata.uid of host */
    struct str owner_uid;             /* the virtual uid that host carries */
    const struct sync_change *change; /* while a patch is answered */
    bool charged;                     /* what it creates is: see sync_create() */
    void *then_ctx;                   /* of the part whose sync_then is called; in the arena */
    /* Called when the host refuses a create; NULL, or false: the refusal is reported. */
    bool (*on_refusal)(struct sync_run *run, const struct err *err);
};
/* False: nothing to do. The key is not "ns/name", its object cannot be read, or the object or its
 * successor is not committed yet (the key is added again then). */
bool sync_run_init(struct sync_run *run, struct reconcile *r, enum sync_id id);

typedef void (*sync_then)(struct sync_run *run, const struct host_answer *answer,
                          const struct err *err);
/* The run stays open until the answer arrived and then() returned. */
void sync_send(struct sync_run *run, const struct host_request *q, sync_then then);
/* The same with a request that creates something for this virtual object: the attempt is recorded
 * first, and the request sent once that is durable. then() calls sync_attempt_over(). */
void sync_send_attempt(struct sync_run *run, const struct host_request *q, sync_then then);
/* The same for parts that have records of their own: what was written to the store is durable
 * before the request is sent. If it is rolled back, nothing is sent. */
void sync_send_recorded(struct sync_run *run, const struct host_request *q, sync_then then);
struct str sync_path_in(struct arena *a, const struct syncer *s, enum sync_id id, struct str ns,
                        struct str host_name, const char *tail);
struct str sync_path(struct arena *a, const struct syncer *s, enum sync_id id, struct str host_name,
                     const char *tail);
/* Creates the host object: records the attempt first, and caches the answer. After an attempt of
 * unknown outcome it is looked up first, since another client may delete what that one made while
 * the next is on its way. An existing object is adopted when it carries this virtual object's uid,
 * deleted by the next run when it carries another one of ours, and reported otherwise. What is
 * charged is sent only while the cache of its kind is current, and has been since this run: a host
 * that was restored holds what the ledger does not count before the list shows it. */
void sync_create(struct sync_run *run, const cJSON *object);
/* While a create waited for the rate, the Lease or another request, the tenant may have deleted the
 * object; or an earlier create of lost outcome may have shown up on the host, and have been deleted
 * there. */
bool sync_create_is_outdated(const struct sync_run *run);
/* Makes the record this virtual object's. */
void sync_take_mapping(struct sync_run *run);
/* After any create under this key, whose attempt was recorded first: records its end when the
 * answer settles the outcome. Until then the record is kept for as long as the create may still be
 * executed. */
void sync_attempt_over(struct sync_run *run, const struct err *err);
/* No answer, or one that leaves open whether the request was executed. */
bool sync_is_uncertain(const struct err *err);
/* No host object of the previous virtual uids exists any more: releases their GPUs. */
void sync_forget_old(struct sync_run *run);
/* With the cached object's uid as precondition; grace_s -1: the object's own grace period. */
void sync_delete(struct sync_run *run, int64_t grace_s);
/* A change of the host object, of one of its subresources where that is not "". */
struct sync_change {
    cJSON *patch;
    const char *type, *subresource;
    const cJSON *wanted; /* the host object that the patch is to lead to */
    /* What run->host lacks of it: not NULL for the answer to the patch if the host undid it. NULL:
     * not checked. */
    cJSON *(*lacks)(struct sync_run *run, const cJSON *wanted);
    sync_then then; /* in place of sync_patched(), unless NULL */
};
#define PATCH_MERGE     "application/merge-patch+json"
#define PATCH_STRATEGIC "application/strategic-merge-patch+json"
/* Patches the host object, with its uid as precondition. False: nothing is sent, since the host has
 * undone the same lately, or the object is of a later epoch. */
bool sync_patch(struct sync_run *run, const struct sync_change *change);
/* Takes the answer to a patch, and lets the next run continue. */
void sync_patched(struct sync_run *run, const struct host_answer *answer, const struct err *err);
/* The host refused a request: an Event on the virtual object, and a retry with backoff. */
void sync_refused(struct sync_run *run, const struct err *err);
/* The host undoes what is written to it: an Event on the virtual object, and not again at once. */
#define SYNC_FOUGHT_MS 60000
void sync_fought(struct sync_run *run);
/* --- fought.c: patches whose own answers lack what they wrote --- */
/* Has the host undone this lately? Then the key is added again once it may be sent. */
bool sync_fought_waits(struct sync_run *run, const struct sync_change *change);
/* Not again for a while; true: the first time. */
bool sync_fought_hold(struct sync_run *run, const struct sync_change *change);
/* ... and reports it, the first time. */
void sync_fought_note(struct sync_run *run, const struct sync_change *change);
void sync_fought_over(struct sync_run *run, const struct sync_change *change);
struct fights *sync_fights_new(void);
void sync_fights_clear(struct fights *fights); /* all may be sent again at once */
struct fights *sync_fights_free(struct fights *fights);
/* What the host wrote into the metadata of its object, to the virtual one, by policy. True: a write
 * is pending. */
bool sync_keys_up(struct sync_run *run);
/* May a create without an answer still be executed? The key is added again when it no longer can
 * be. */
bool sync_create_may_come(struct sync_run *run);
/* The virtual object is deleted, or need not be on the host: deletes the host object that the
 * record proves ours, then the record. True: both are gone. False as well when the run must delete
 * nothing (reconcile_spare()): the end of the quarantine adds the key again. */
bool sync_finish_gone(struct sync_run *run, int64_t grace_s);
/* What becomes of its two sides; needs no reconcile. */
enum sync_settlement sync_run_settle(struct sync_run *run);
/* Handles a host object that is not this virtual object's. True: it did, and the run is over. */
bool sync_settle_owner(struct sync_run *run);
/* --- unlisted.c: host objects on record that no list has --- */
/* No list has the host object on record, and no event said that its deletion was requested. Reads
 * it by its name: deleted(), or it only lacks the labels that lists select by, which are set
 * again. */
void sync_unlisted(struct sync_run *run, void (*deleted)(struct sync_run *run));
/* The record's host object was of another life: prepares to create it again, with an Event. */
void sync_recreate(struct sync_run *run);
/* Has the virtual object a version that is not committed yet? */
bool sync_is_being_written(const struct sync_run *run);
/* Was its deletion requested before the restore? Then it is awaited, and the object created again.
 */
bool sync_is_stale_deletion(const struct sync_run *run, const cJSON *object);
struct str sync_uid(const cJSON *object);
