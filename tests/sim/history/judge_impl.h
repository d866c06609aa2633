/* SPDX-License-Identifier: Apache-2.0 */
/* What the invariants remember, and what their files share; see world.h. */
#pragma once

#include <sublet/hash.h>

#include "judge.h"
#include "tenant.h"

/* --- notes: sets of strings with a number (judge.c) --- */
struct note {
    struct map_entry entry;
    char *key;
    uint64_t value;
    int64_t since_us, at_us; /* when the value was noted first, and last */
    bool recorded;           /* it outlived the process that received it */
};

/* What a watcher over all restarts of a process saw. */
struct watcher {
    struct map content; /* revision -> what was seen under it */
    struct map mirror;  /* resource, namespace and name -> revision */
    struct map gone;    /* the same of what it saw deleted -> revision of that */
    int64_t position;
    unsigned generation;
};

struct notes {
    struct map excused; /* virtual uids of pods that others removed, and the generation */
    struct map lost;    /* virtual uids of claims that others removed, and the age */
    struct map told;    /* process and virtual uid of pods on the host that it knows of */
    struct map seen;    /* process and host uid of all pods of ours that it was shown */
    struct map late; /* virtual uids of pods that requests of an earlier age created, and the age */
    struct map shown; /* the same by the process's number: what it was shown itself */
    struct map lives; /* epoch and number of a life (core/life.h) -> host generation it began in */
    struct map removed; /* virtual uids of pods and claims whose host object was removed */
    struct map deleted; /* virtual uids that the tenant of the second process deleted */
    struct watcher watchers[MAX_LIVES];
    bool second_created; /* the second process created something on the host */
    char epoch[40];      /* of the store that the tenant's process serves */
    int64_t failed_us;   /* when the disk of the tenant's process failed last */
};
struct notes *judge_notes(struct world *w);
struct note *note_get(struct map *m, struct str key);
void note_put(struct map *m, struct str key, uint64_t value);
void note_drop(struct map *m, struct str key);

/* Did others remove the pod of this virtual uid from the host, since the store was last
 * restored? */
bool judge_is_excused(struct world *w, struct str uid);
/* Did any process or person remove the host object of this virtual uid, ever? */
bool judge_was_removed(struct world *w, struct str uid);
/* How often the store or the host was put back, from 1 on. */
uint64_t judge_age(const struct world *w);
/* Is it in m, of this age and of the process whose request is executed? */
bool judge_knows(struct world *w, struct map *m, struct str uid);
/* The disk of a process that lives is looked at for failures. */
void judge_look_at_disk(struct life *l);
/* The tenant's process serves: it knows what those before it put on record. */
void judge_begin(struct world *w);

/* Removes all. */
void note_drop_all(struct map *m);

/* --- the Lease (judge_lease.c) --- */
bool judge_leads(const struct life *l);
/* A superseded process reports every answered write that the other one lacks. */
void judge_one_acts(struct world *w);
void judge_report(struct life *l);

/* --- a watcher (judge_tenant.c) --- */
bool judge_has_caught_up(const struct life *l);
/* Of what it saw deleted last: the revision. NULL: it is there, or that was not seen. */
const struct note *judge_gone(struct life *l, const struct slot *s);

/* --- GPUs (judge_ledger.c) --- */
enum { LIMIT = 4 }; /* of the GPUs, in world.c */
enum judge_pods {
    PODS_ALL,
    PODS_SEEN,         /* ... that the process whose request is executed was shown */
    PODS_SEEN_IN_TIME, /* ... of those, what no request of an earlier age created */
};
int64_t judge_gpus_on_host(struct world *w, enum judge_pods which);
void judge_trace_gpus(struct world *w);
void judge_gpus(struct world *w, const cJSON *created);
/* What the ledger of a process that serves must charge at any moment. */
void judge_ledger(struct life *l);
/* Notes the life that its records are in; false: it has not noticed yet that the host was put back.
 */
bool judge_knows_host(struct life *l);

/* --- both worlds (judge_agree.c) --- */
struct agreeing {
    struct world *world;
    struct arena *arena;
    const char *plural;
    size_t with_host;
    const cJSON *waiting; /* the pod that is the first in line */
    bool same;
};
/* The host object that was made from the virtual object of this uid, or NULL. */
cJSON *judge_host_of(struct agreeing *g, struct str uid);
__attribute__((format(printf, 1, 2))) bool judge_differ(const char *format, ...);
bool judge_ledger_agrees(struct world *w, struct arena *a);
/* ConfigMaps and Secrets of the tenant that are on the host are used (judge_unused.c). */
bool judge_all_is_used(struct world *w, struct arena *a);
bool judge_may_have_orphans(const struct world *w, const struct life *l, const char *plural);
/* ConfigMaps and Secrets that a pod uses (judge_data.c). */
void judge_each_ref(const cJSON *pod, void (*call)(void *ctx, const char *plural, struct str name),
                    void *ctx);
/* What pods use on the host is what the tenant wrote (judge_data.c). */
bool judge_content_agrees(struct world *w, struct arena *a);
