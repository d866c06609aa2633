/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What is done with a GPUPool beside serving it: maintenance and conversion. Pure: facts of a
 * moment in, the phase out. What it must remember is in the status of the GPUPool, so that a
 * process that starts anew goes on where another was ended.
 *
 *   maintenance   none -> planned -> cordoned | draining -> drained     by spec.maintenance
 *   conversion    none -> draining -> nodes -> none                     by the devices of spec
 *
 * A pool in conversion is drained as by maintenance, with the devices of before in force
 * (status.inForce). Only when nothing of them is granted, bounded, held or under way does one write
 * put those of the spec in force; from then on nodes count as they advertise them. */
#pragma once

#include <sublet/config_pool.h>

#include "share.h"

enum grant_maintenance { GRANT_OPEN, GRANT_PLANNED, GRANT_CORDONED, GRANT_DRAINING, GRANT_DRAINED };
enum grant_conversion { GRANT_AS_IT_IS, GRANT_REFUSED, GRANT_CONVERTS, GRANT_WAITS_FOR_NODES };

struct grant_phase_facts {
    struct config_maintenance wants; /* of the spec */
    bool invalid;                    /* the spec is no pool, and what was before it is in force */
    bool differs;                    /* the spec has other devices than those in force */
    bool empty;        /* none of those in force are granted, bounded, held or under way, by any */
    bool was_changing; /* nodes were waited for, as the host shows */
    size_t nodes,
        changing;    /* of the pool; of these, those that do not advertise what is in force */
    int64_t since_s; /* of the drain, as the host shows; 0: there was none */
    int64_t now_s, grace_s;
};
struct grant_phase {
    enum share_door door;
    enum grant_maintenance maintenance;
    enum grant_conversion conversion;
    bool overdue;         /* it should be over by now */
    bool switches;        /* the devices of the spec are put in force */
    int64_t since_s;      /* of the drain; 0: there is none */
    int64_t not_before_s; /* from when on pods are ended: never later, whatever tenants do */
    int64_t next_s;       /* it is another one then, with nothing changed; 0: it is not */
};
struct grant_phase grant_phase_of(const struct grant_phase_facts *f);
/* What the pool is, other than open, in one word of a metric: "draining"; NULL: it is as usual. */
const char *grant_phase_state(const struct grant_phase *p);
/* Are the devices of both the same, but for further ones of the same mode? Then no pod that holds
 * some is in the way. */
bool grant_devices_stay(const struct config_pool *now, const struct config_pool *next);
/* A host name of both that is another part of a GPU in each, so that a node's resources do not say
 * which of them it has; empty: there is none. */
struct str grant_devices_mixed(const struct config_pool *now, const struct config_pool *next);
/* The value of a node's label GRANT_STRATEGY in this mode; empty: the mode has none. */
#define GRANT_STRATEGY "nvidia.com/gpu.sharing-strategy"
struct str grant_strategy(enum pool_mode mode);
/* "time-slicing nvidia.com/gpu=0.25" */
struct str grant_devices_text(struct arena *a, const struct config_pool *pool);
