/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * How much of the GPUs that a pod holds it uses: what exporters say, of pods that the fleet itself
 * saw there. A pod of which no exporter said anything lately is not idle: it is unknown. Pure;
 * times are milliseconds of one monotonic clock. */
#pragma once

#include <sublet/rational.h>

#include "dcgm.h"

struct activity;
struct activity_options {
    double idle_below;     /* of 1: less is idle */
    int64_t idle_after_ms; /* ... when it lasts so long */
    int64_t fresh_ms;      /* an answer that is older says nothing */
};
struct activity *activity_new(const struct activity_options *options);
struct activity *activity_free(struct activity *a); /* takes NULL, returns NULL */

/* A pod of the host that holds GPUs now, or as it is now. */
struct activity_hold {
    struct str name; /* "namespace/name", on the host */
    struct str uid, node, pool;
    struct rational gpu_eq;
    size_t devices; /* an exporter names so many of it; 0: that is not known */
};
void activity_hold(struct activity *a, const struct activity_hold *h, int64_t now_ms);
void activity_release(struct activity *a, struct str name, int64_t now_ms);

/* What the exporter of a node says now. */
void activity_answer(struct activity *a, struct str node, const struct dcgm *d, int64_t now_ms);

/* Does the exporter of a node name a device of a pod that shares it with none? */
bool activity_is_own(const struct activity *a, struct str node, const struct dcgm_device *d);

enum activity_refusal {
    ACTIVITY_NO_POD,     /* of a pod that holds no GPUs, */
    ACTIVITY_OTHER_NODE, /* or holds them elsewhere, */
    ACTIVITY_OTHER_UID,  /* or was another one of its name */
    ACTIVITY_SHARED,     /* of a GPU that is one pod's, but said to be two tenants' */
    ACTIVITY_OUT_OF_RANGE,
    N_ACTIVITY_REFUSALS
};
extern const char *const ACTIVITY_REFUSALS[N_ACTIVITY_REFUSALS]; /* "no-pod", ... */
enum activity_state {
    ACTIVITY_BUSY,
    ACTIVITY_WARM,    /* idle, with memory of the GPU in use */
    ACTIVITY_UNUSED,  /* idle, without */
    ACTIVITY_UNKNOWN, /* no exporter said lately */
    N_ACTIVITY_STATES
};
extern const char *const ACTIVITY_STATES[N_ACTIVITY_STATES]; /* "busy", "warm", ... */

/* Strings are the activity's: good until the next change. */
struct activity_line { /* of a tenant in a pool */
    struct str tenant, pool;
    double gpus[N_ACTIVITY_STATES];         /* held by pods in each state */
    double idle_seconds[N_ACTIVITY_STATES]; /* of GPUs, since the process began; warm and unused */
    double utilised;                        /* GPUs: activity times what is held */
    uint64_t xids; /* errors of GPUs (XID) while pods held them, since the process began */
};
struct activity_idle {
    struct str name, tenant, node, pool; /* name without its namespace */
    struct rational gpu_eq;
    enum activity_state state; /* warm, unused */
    int64_t idle_ms;
};
struct activity_view {
    const struct activity_line *lines; /* in the order of pool and tenant */
    const struct activity_idle *idle;  /* the most GPUs times time first; at most ACTIVITY_ROWS */
    size_t n_lines, n_idle, n_not_shown;
    uint64_t refused[N_ACTIVITY_REFUSALS]; /* samples, since the process began */
};
/* Each pod that holds GPUs, in any order. */
void activity_each(struct activity *a, int64_t now_ms,
                   void (*visit)(void *ctx, struct str uid, enum activity_state state), void *ctx);
#define ACTIVITY_ROWS  2000
#define ACTIVITY_LINES 10000 /* tenants and pools; more are not counted */
void activity_look(struct activity *a, struct arena *arena, int64_t now_ms,
                   struct activity_view *ret);
