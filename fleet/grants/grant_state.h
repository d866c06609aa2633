/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What the host shows of pools, bindings, quotas, nodes and pods at one moment, and the writes that
 * follow from it. Pure: trees and facts in, requests out; nothing is remembered from
 * one moment to the next, so that a process that starts anew goes on where another was ended. */
#pragma once

#include <sublet/config_bound.h>
#include <sublet/err.h>
#include <sublet/hash.h>
#include <sublet/json.h>

#include "budget.h"
#include "core/grant_claims.h"
#include "grant_facts.h"
#include "grant_phase.h"
#include "share.h"
#include "core/watch.h"

#define GRANT_QUOTA      "sublet-gpu"
#define GRANT_DEMAND     CONFIG_GPU_DEMAND
#define GRANT_ANNOTATION "sublet.dev/grants"
#define GRANT_CONVERTING "Converting" /* condition of a GPUPool, and a reason of it */
#define GRANT_DRAINS     "Draining"
#define GRANT_GROUP      "/apis/sublet.dev/v1alpha1"

struct grant_pool {
    const cJSON *tree;
    struct str name, why; /* why it is none; empty: it is */
    size_t index;         /* of configs and shares, or SHARE_NO_POOL */
    struct str refused;   /* the first binding that it has no room for; ret */
    cJSON *item, *next;   /* of `pools:`: in force, and by the spec */
    struct str next_why;  /* why the spec is none, where another one is in force */
    struct str change;    /* "from exclusive to mig" */
    struct str before; /* devices that nodes may have still, not known by resources; else empty */
    struct str mixed;  /* the same, once the spec is in force */
    bool unrecorded;   /* no status says yet what is in force: nothing of it is written but that */
    struct str wish_why; /* why spec.maintenance counts as none; empty: it is as it says */
    struct grant_phase_facts facts;
    struct grant_phase phase; /* ret */
};
/* Of the nodes of a pool, and of pods on them of namespaces without a binding. */
struct grant_sums {
    struct rational nodes, down; /* of nodes, down those that are not Ready */
    struct rational stranded;    /* held on those by pods of bindings */
    struct rational foreign, foreign_up;
    struct str foreign_ns;             /* a namespace of these */
    struct rational aside, aside_held; /* usable ones of nodes that get no pod now; by bindings */
    struct rational aside_foreign;
    struct rational declared;   /* spec.capacity */
    size_t n_nodes, n_changing; /* of its nodes those that do not advertise what is in force */
    size_t n_unlabelled;        /* of these, those that have no label to know them by */
};
struct grant_tenant {
    struct map_entry by_ns;
    struct str ns;
    size_t number;
    const cJSON *quota, *demand;       /* NULL: there is none */
    struct rational *placed, *waiting; /* what its pods hold on nodes, and will; by pool */
};
/* tree NULL: a pool of a quota whose GPUBinding was deleted. */
struct grant_queue;
struct grant_row {
    const cJSON *tree;
    struct str name, pool, why;
    struct grant_tenant *tenant;
    int64_t created_s;
    struct rational guarantee, burst, lend;
    size_t index; /* of the pool */
    struct budget budget;
    struct str budget_why; /* why spec.budget counts as none, and what was before stays; or empty */
    struct budget_state spent; /* where there is a budget */
};
struct grant_state {
    struct arena *a;
    int64_t now_s, grace_s, pause_s;
    int64_t next_s; /* ret: what follows is otherwise then, with nothing changed; 0: it is not */
    const struct budget_facts *budgets; /* NULL: no pool has a price */
    /* The greatest value of a write to this object, at this version, that may hold already. */
    struct rational (*pending)(void *ctx, struct str path, struct str version, struct str pool);
    void *ctx;
    struct grant_pool *pools;
    size_t n_pools, cap_pools;
    struct config_pool *configs;
    struct share_pool *shares;
    struct grant_sums *sums;
    struct str_list *selectors;             /* of fact_selector() */
    const struct fleet_watch_sums *watched; /* of the configs, before writes; NULL: not known */
    size_t n_configs, cap_configs;
    struct grant_row *rows;
    size_t n_rows, cap_rows;
    struct share_binding *bindings; /* of the rows, once they are settled */
    struct map tenants, nodes;
    struct grant_class_source classes; /* set after the beginning, before pools, as the next is */
    /* Of Queues of KAI. */
    bool keeps_queues;     /* pools of mode kai-fraction are granted */
    bool queues_known;     /* all of them are read: else nothing is granted of those pools */
    struct str queues_why; /* what the host has against their list; empty: nothing */
    /* What the host has against a write to this object, of a ResourceQuota for the part of a pool;
     * empty: nothing. NULL: it refuses none. */
    struct str (*refused)(void *ctx, struct str path, struct str part);
    struct grant_queue **queues;
    size_t n_queues, cap_queues;
    struct map queues_by_name, queues_by_owner;
};
/* grant_state_begin(), all pools, all bindings, all quotas, demands and Queues (grant_queue_add()),
 * all nodes, all pods and claims, grant_state_settle(), writes, grant_state_end(). Trees and facts
 * live until the end. */
struct grant_times {
    int64_t now_s;
    int64_t grace_s; /* between a notice and the end of pods */
    int64_t pause_s; /* before a lender lends again what it took back */
};
void grant_state_begin(struct grant_state *s, struct arena *a, const struct grant_times *times);
void grant_state_pool(struct grant_state *s, const cJSON *pool);
void grant_state_binding(struct grant_state *s, const cJSON *binding);
void grant_state_quota(struct grant_state *s, const cJSON *quota);
void grant_state_demand(struct grant_state *s, const cJSON *config_map);
void grant_state_node(struct grant_state *s, const struct grant_node *node);
void grant_state_pod(struct grant_state *s, const struct grant_pod *pod);
void grant_state_claim(struct grant_state *s, const struct grant_claim *claim);
void grant_state_settle(struct grant_state *s);
void grant_state_end(struct grant_state *s);

/* Does what it cost in this month bound its grant? To the guarantee (QUEUE) or what it holds. */
bool grant_is_bounded(const struct grant_row *r, enum budget_enforcement by);
/* Of a tenant's ResourceQuota and a pool: GPUs. */
struct rational grant_quota_of(const struct grant_state *s, const struct grant_tenant *t,
                               size_t pool);

/* Of several bindings of a tenant and a pool one has its bound and its pods. */
bool grant_row_carries(const struct grant_state *s, size_t i);
/* Of a namespace, whether it has a binding or not. */
void grant_state_namespace(struct grant_state *s, struct str ns);

/* The pool of a configuration; NULL: there is none. */
const struct grant_pool *grant_pool_at(const struct grant_state *s, size_t index);
/* Another pool with a resource of this one; NULL: there is none. */
const struct config_pool *grant_shares_resource(const struct grant_state *s, size_t pool);

/* a - b, never less than nothing: nodes and pods need not agree at one moment. */
struct rational grant_without(struct rational a, struct rational b);
