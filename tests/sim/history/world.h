/* SPDX-License-Identifier: Apache-2.0 */
/* One history: a host, a tenant's processes on their disks, a model of what the tenant was
 * promised, and the classes of faults that this history draws from. A broken invariant ends the
 * process (world_fail): histories run in processes of their own (main.c). */
#pragma once

#include <uv.h>

#include <sublet/config.h>
#include <sublet/store_identity.h>
#include <sublet/syncer.h>

#include "../schedule.h"
#include "disk.h"
#include "wire.h"

/* --- classes of faults: what a history has, and what can be left out by name --- */
enum fault_class {
#define CLASS(id, name) CLASS_##id,
#include "classes.h"
#undef CLASS
    N_CLASSES
};
extern const char *const CLASSES[N_CLASSES];

/* --- what the tenant was promised --- */
enum { MAX_SLOTS = 32, UID = 40 };
enum slot_write { WRITE_NONE, WRITE_CREATE, WRITE_PATCH, WRITE_DELETE };
/* One name that the tenant writes; one write at a time. */
struct slot {
    const char *resource, *json; /* json: printf format of the name and the mark, ' for " */
    char name[16];
    bool there, deleting; /* answered, or seen */
    bool asked_deletion;  /* and got no answer (yet) */
    char uid[UID];
    int64_t n, last;         /* the mark that it carries, and the newest one that was written */
    int64_t answered_us;     /* when a write of it was answered last; 0: never */
    enum slot_write writing; /* under way */
    bool unsure;             /* a write had no answer: what it did shows at the next start */
};

struct life;
/* What the tenant of one process was promised. */
struct model {
    struct slot slots[MAX_SLOTS];
    size_t n_slots;
    int64_t revision; /* newest that was seen */
};

struct backup {
    char path[300];
    struct disk *disk;
    struct model model;
    struct life *life; /* that makes it */
    bool done;
};

enum { MAX_BACKUPS = 4, MAX_LIVES = 2 };
struct world {
    struct moment moment;
    uint64_t seed;
    bool with[N_CLASSES]; /* allowed and drawn */
    unsigned counts[N_CLASSES];
    char root[64];
    struct arena *arena;
    struct config config;
    struct clock clock;
    struct rng rng;
    struct host_model *host;
    struct wires *wires;
    struct life *lives[MAX_LIVES];
    struct model models[MAX_LIVES]; /* [1]: of the copy */
    struct backup backups[MAX_BACKUPS];
    size_t n_backups;
    struct disk *disk, *copy; /* the tenant's, and an older copy of it */
    unsigned n_copies;
    bool copy_started;
    int64_t copied_us;
    unsigned n_disks, step;
    unsigned generation, host_generation; /* how often each was put back */
    char epoch[40];                       /* of the tenant's data */
    struct store_predecessor after;       /* the life after which it goes on, once forced to */
    bool force;                           /* until the tenant's process leads */
    int64_t died_us;                      /* when the tenant's process ended last */
    int64_t newest_wall_us;               /* of any clock that a process saw */
    uint64_t trace;
    unsigned refused, reported, reported_deleted, unknown; /* writes; ends of judge_report() */
    bool planted;                                          /* see plant.h */
    bool show;
    struct notes *notes; /* of judge.c */
};

extern struct world *WORLD; /* the one of this process */

__attribute__((noreturn, format(printf, 1, 2))) void world_fail(const char *format, ...);
/* Part of the history's hash; printed when it is shown. */
__attribute__((format(printf, 1, 2))) void world_trace(const char *format, ...);

/* An empty cluster that was started once: what every history begins with. */
struct world *world_new(uint64_t seed, const char *root);
/* Time passes; every process and the host do what they do. */
void world_run_us(struct world *w, int64_t us);
/* Runs until is() holds; false when it does not within so long. */
bool world_until(struct world *w, bool (*is)(struct world *w), int64_t us);
