/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private)
 *
 * One run for one key: what it looks at, and the steps every kind takes towards the host. */
#pragma once

#include "core/mapping.h"

/* --- exchange.c: one run's talk with the host --- */
/* Everything a run for one namespaced key looks at. */
struct sync_run {
    struct syncer *syncer;
    struct reconcile *reconcile;
    struct arena *arena;
    enum sync_id id;
    struct str ns, name;
    char host_name[64];
    struct mapping mapping;
    cJSON *virtual_;      /* committed; NULL: gone */
    cJSON *host;          /* as watched; NULL: none, or not watched */
    struct str uid;       /* of virtual_ */
    struct str host_uid;  /* metadata.uid of host */
    struct str owner_uid; /* virtual uid the host object carries */
    bool was_tried;       /* an attempt before this run's own has no certain end yet */
    /* What to do when the host refuses a create for good; NULL: the refusal is reported. True: it
     * was dealt with. */
    bool (*on_refusal)(struct sync_run *run, const struct err *err);
};
/* False when there is nothing to look at: the key is not "ns/name", or its object or a successor of
 * it is not committed yet (the key comes back). */
bool sync_run_init(struct sync_run *run, struct reconcile *r, enum sync_id id);

typedef void (*sync_then)(struct sync_run *run, const struct host_answer *answer,
                          const struct err *err);
/* The run stays open until the answer came and then() ran. */
void sync_ask(struct sync_run *run, const struct host_request *q, sync_then then);
struct str sync_path(struct arena *a, const struct syncer *s, enum sync_id id, struct str host_name,
                     const char *tail);
/* Creates the host object: notes the attempt, learns the answer. What exists already is adopted
 * when it carries this virtual object's uid, removed when it carries another one of ours, and else
 * said. */
void sync_create(struct sync_run *run, const cJSON *object);
/* The record is the virtual object's from here on. */
void sync_take_mapping(struct sync_run *run);
/* Around any create under this key: notes it first, and its end when the answer says for certain
 * what became of it. What is not certain keeps the record for as long as it may still happen. */
void sync_attempt(struct sync_run *run);
void sync_attempt_over(struct sync_run *run, const struct err *err);
/* No answer, or one that does not say whether it was done. */
bool sync_is_uncertain(const struct err *err);
/* Nothing of the virtual uids before is on the host any more: their GPUs are free. */
void sync_forget_old(struct sync_run *run);
/* With the uid of what we saw; grace -1: the object's own. */
void sync_delete(struct sync_run *run, int64_t grace_s);
/* A merge patch (or type) of the host object, refused when it is another one by now. */
void sync_patch(struct sync_run *run, cJSON *patch, const char *type, const char *subresource);
/* What the host refused, told on the virtual object and tried again with backoff. */
void sync_refused(struct sync_run *run, const struct err *err);
/* A create without an answer may still be executed: the key comes back when it no longer can be. */
bool sync_create_may_come(struct sync_run *run);
/* The virtual object is gone: removes what the mapping proves, then the mapping. True: nothing is
 * left (and mapping_remove() was called). */
bool sync_finish_gone(struct sync_run *run, int64_t grace_s);
/* Where a host object is not this virtual object's. True: it was dealt with, the run is over. */
bool sync_settle_owner(struct sync_run *run);
/* The record's host object was in another life: it is to be created again, with an Event. */
void sync_begin_again(struct sync_run *run);
/* Has the virtual object a version that is not committed yet? */
bool sync_is_being_written(const struct sync_run *run);
/* Is it deleted on a request from before the restore? It is waited for, and created again. */
bool sync_is_leaving(const struct sync_run *run, const cJSON *object);
struct str sync_uid(const cJSON *object);
