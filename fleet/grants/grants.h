/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Grants across tenants, live: watches GPUPools, GPUBindings and the ResourceQuotas of grants, and
 * writes what follows from them and from nodes and pods. Only while the Lease is held: its owner
 * opens it then, and stops it before it is lost. */
#pragma once

#include <sublet/buf.h>
#include <sublet/rational.h>
#include <sublet/reflector.h>

#include "budget.h"
#include "core/watch.h"

struct grants;
struct grants_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct host *host;
    int64_t grace_ms, pause_ms;
    bool queues;                    /* Queues of KAI are kept */
    bool claims;                    /* GPUPools of mode dra are granted */
    struct str_list labels;         /* keys, which rows have of bindings */
    struct reflector *nodes, *pods; /* of the owner, who reports each change; they outlive it */
    struct fleet_watch *watch;      /* the same */
    /* What is known of money, good until control returns to the loop; may be NULL: nothing is. */
    void (*budgets)(void *ctx, struct budget_facts *ret);
    void (*refused)(void *ctx, const struct err *err); /* the host does not let it */
    void (*computed)(void *ctx);                       /* rows may differ; may be NULL */
    void *ctx;
};
struct grants *grants_open(const struct grants_options *options);
void grants_changed(struct grants *g); /* of what is current; takes NULL, as the next two do */
/* Each change of an object of theirs, under its name there. tree NULL: it is gone. */
void grants_node(struct grants *g, struct str name, const cJSON *tree);
void grants_pod(struct grants *g, struct str name, const cJSON *tree);
/* What a binding may cost in this month, and costs. */
struct grants_budget {
    bool is; /* false: it has none */
    struct str currency;
    int64_t amount, spent, forecast; /* in millionths; forecast 0: none */
    int64_t percent;
    unsigned threshold; /* that is reached; 0: none is */
    enum budget_enforcement enforcement;
};
/* A binding, as it was last computed. */
struct grants_row {
    struct str tenant, pool; /* tenant: its namespace */
    const char *state;       /* the reason of its condition Ready: "Granted" if it counts */
    bool counts;
    struct str labels; /* of its object, those of grants_options: a "key=value\n" for each */
    struct rational guarantee, burst, grant;
    struct rational holds, placed; /* by its pods; placed: of it, on nodes */
    struct rational wants;         /* as the tenant reports; less than 0: it does not */
    struct grants_budget budget;
    struct str reclaim_at; /* when pods beyond the grant are ended; empty: they are not */
};
/* A GPUPool. */
struct grants_pool {
    struct str name;
    struct rational nodes, healthy, absent; /* of its nodes; declared, but of no node yet */
    struct rational held;                   /* on nodes that are Ready, also without a binding */
    struct rational guaranteed;             /* to bindings that count */
    struct rational borrowed;               /* placed by bindings beyond their guarantees */
    struct str_list selector;               /* of fact_selector() */
    const char *state;                      /* of grant_phase_state(); NULL: as usual */
    struct str reason, until;               /* of a maintenance that has begun */
    bool overdue;
};
struct grants_view {
    const struct grants_row *rows; /* at most as many as metrics have */
    const struct grants_pool *pools;
    size_t n_rows, n_pools, n_not_shown;
    bool current; /* false: some watch is not; all of it may be old */
    bool budgets; /* a binding has one */
};
/* Good until control returns to the loop. Takes NULL: nothing, which is current. */
struct grants_view grants_view(const struct grants *g);
void grants_metrics(const struct grants *g, struct buf *out); /* takes NULL */
/* Sends nothing from now on, nor does it hear of what is under way. */
void grants_stop(struct grants *g); /* takes NULL */
/* After host_stop(); closed() from the loop. */
void grants_close(struct grants *g, void (*closed)(void *ctx), void *ctx);
