/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Queues of KAI, which bound GPUPools of mode kai-fraction as ResourceQuotas bound the others: no
 * ResourceQuota counts parts of GPUs. A binding has one Queue, a pool one Queue that is the parent
 * of these. Which binding a Queue is of says annotation GRANT_QUEUE_OF, "namespace/pool" ("/pool":
 * the parent); one without it and without our label belongs to another component: it is never
 * written, and its name is taken. Whole GPUs of such a pool the ResourceQuota bounds to 0. Pure,
 * as grant_state.h. For its room.
 *
 *   (none) --POST--> limit > 0 <--PUT--> limit = what is held --PUT--> limit 0 --DELETE--> (none)
 *                                                                        binding or pool deleted
 *
 * Source: KAI 0.12.0, pkg/apis/scheduling/v2/queue_types.go, pkg/scheduler/plugins/proportion */
#pragma once

#include "grant_write.h"

#define GRANT_QUEUES      "/apis/scheduling.run.ai/v2/queues"
#define GRANT_QUEUE_OF    "sublet.dev/queue-of"
#define GRANT_QUEUE_FROM  "sublet.dev/lowered-from"
#define GRANT_QUEUE_UNTIL "sublet.dev/lowered-until"
#define GRANT_QUEUE_WORD  "{namespace}" /* in scheduler.queueTemplate: of the binding */
/* KAI has no version to lower a limit in, as admission has: what it decides by the limit of before
 * is a pod by then, so the limit of before is promised for so long. */
#define GRANT_QUEUE_SETTLES_S 30

struct grant_queue {
    struct map_entry by_name, by_owner;
    struct str name, owner; /* owner empty: it is not ours */
    const cJSON *tree;
    struct rational record; /* GPUs, by annotation GRANT_ANNOTATION */
    struct rational limit;  /* the same, by its limit, where that is more; else as the record */
    struct rational from;   /* may be used still; 0: the limit was not lowered just now */
    int64_t until_s;
    bool used, has_children; /* pods with devices name it; Queues do */
};

bool grant_is_queued(const struct grant_state *s, size_t pool); /* false for SHARE_NO_POOL */
/* Of a spec, as an item of `pools:`: why it cannot be granted; empty: it can. */
struct str grant_queue_spec_why(const struct grant_state *s, const cJSON *item);
/* The name of a binding's Queue: of the one there is, else by the template of the pool. */
struct str grant_queue_name(const struct grant_state *s, const struct grant_row *r);
/* Of the Queue of that name; empty: there is none. */
struct str grant_queue_version(const struct grant_state *s, const struct grant_row *r);
struct str grant_queue_path(struct grant_state *s, struct str name);
/* Why a binding of this pool can have no Queue; empty: it can. Its numbers are hundredths: of other
 * fractions each was rounded up, and their sum beyond the pool. */
struct str grant_queue_row_why(const struct grant_state *s, const struct grant_row *r);
/* Reads the tree, which stays the caller's until the end. After bindings, before pods. */
void grant_queue_add(struct grant_state *s, const cJSON *tree);
void grant_queue_pod(struct grant_state *s, const struct grant_pod *pod);
/* Of a binding: what its Queue lets through, and what others of its own or the limit of before may
 * let through still (0: no more than that). */
struct rational grant_queue_bound(const struct grant_state *s, struct str ns, size_t pool);
struct rational grant_queue_pending(struct grant_state *s, struct str ns, size_t pool);

/* What stands against the Queue of a binding, in words for its tenant, and against any of a pool,
 * in those of the host: the reason of a condition; NULL: nothing does. */
const char *grant_queue_trouble(struct grant_state *s, const struct grant_row *r,
                                struct str *ret_message);
const char *grant_queues_trouble(struct grant_state *s, size_t pool, struct str *ret_message);

/* The next write, of a row, of a pool's parent, and the delete of s->queues[k]. False: none. */
bool grant_queue_write(struct grant_state *s, size_t row, struct grant_write *ret);
bool grant_parent_write(struct grant_state *s, size_t pool, struct grant_write *ret);
bool grant_queue_delete(struct grant_state *s, size_t k, struct grant_write *ret);
