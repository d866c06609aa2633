/* SPDX-License-Identifier: Apache-2.0
 * room: fleet
 *
 * Usage of GPUs out of the records of a ledger: pure arithmetic, exact, without a clock. Times are
 * microseconds since 1970 in UTC, intervals [from, until). */
#pragma once

#include <sublet/err.h>
#include <sublet/rational.h>

/* A fraction of 128-bit numbers in lowest terms, den > 0: sums of a year over thousands of GPUs,
 * times a price. */
struct exact {
    __int128 num, den;
};
#define EXACT_ZERO ((struct exact){0, 1})
struct exact exact_of(struct rational r);
/* False, and *ret is unchanged, when the result does not fit. */
bool exact_add(struct exact a, struct exact b, struct exact *ret);
bool exact_sub(struct exact a, struct exact b, struct exact *ret);
bool exact_mul(struct exact a, struct exact b, struct exact *ret);
int exact_cmp(struct exact a, struct exact b);
struct str exact_fraction(struct arena *a, struct exact v); /* "7/3", "4" */
/* Of what exact_fraction() prints, and of nothing else; not of negative numbers. */
bool exact_parse(struct arena *a, struct str fraction, struct exact *ret);
/* Rounded once, half away from zero, to so many (at most 9) decimals. */
struct str exact_decimal(struct arena *a, struct exact v, unsigned places);

#define FLEET_OPEN INT64_MAX /* the end of what has not ended */

/* What a pod does with its GPUs from a moment on, until its next record. Without one: not known. */
enum fleet_use { FLEET_USE_UNKNOWN, FLEET_USE_BUSY, FLEET_USE_WARM, FLEET_USE_UNUSED };
struct fleet_activity {
    int64_t from_us;
    enum fleet_use use;
};

/* A pod that holds GPUs, from its PodScheduled condition until its last container finished. */
struct fleet_hold {
    struct str pod_uid;
    struct str tenant;              /* its host namespace */
    struct str cluster;             /* uid of the virtual cluster; empty: a pod of no tenant */
    struct str ns, name, owner;     /* as the tenant knows them; owner is "Job/train" or empty */
    struct str node, pool, product; /* product: without -MIG-* and -SHARED */
    struct str resources;           /* "nvidia.com/gpu=2" */
    struct str mode;                /* of the pool; empty: not on record */
    struct rational gpu_eq;         /* > 0 */
    int64_t begin_us, end_us;       /* FLEET_OPEN */
    struct str reason;              /* of the end: "Succeeded", "Failed", "Deleted", ... */
    bool estimated;                 /* the end was not observed */
    size_t activity, n_activities;  /* fleet_records.activities from there on */
};
/* What a node has for a pool from a moment on, until the next record of both. */
struct fleet_capacity {
    struct str node, pool, product;
    int64_t from_us;
    struct rational total, unhealthy; /* unhealthy <= total */
    bool down;                        /* not Ready: all of it is unhealthy, and nothing is billed */
    bool estimated;
};
struct fleet_price {
    struct str pool, currency;
    int64_t from_us;
    struct rational price;  /* of one GPU for one hour */
    struct rational borrow; /* ... times this beyond a guarantee; 0/0 (not set) is 1 */
};
/* What a tenant was guaranteed and granted in a pool from a moment on, until the next record of
 * both. */
struct fleet_guarantee {
    struct str tenant, pool;
    int64_t from_us;
    bool bound; /* false: no binding counts from now on, and the others are 0 */
    struct rational guarantee, granted;
    struct str labels; /* of the binding: a "key=value\n" for each that is kept */
};
/* When no process watched the host. */
struct fleet_gap {
    int64_t from_us, until_us;
};
struct fleet_records {
    int64_t begin_us, seen_us; /* the ledger knows what happened from begin until seen */
    struct fleet_hold *holds;
    struct fleet_capacity *capacities; /* in order of from_us for each node and pool */
    struct fleet_price *prices;        /* in order of from_us for each pool */
    struct fleet_gap *gaps;
    struct fleet_guarantee *guarantees; /* in order of from_us for each tenant and pool */
    struct fleet_activity *activities;  /* those of a hold in order of from_us */
    size_t n_holds, n_capacities, n_prices, n_gaps, n_guarantees, n_activities;
    bool measured;    /* activities are on record, though perhaps not among these */
    struct str label; /* the key that column USAGE_LABEL is of */
};

enum usage_column {
    USAGE_TENANT,
    USAGE_NAMESPACE,
    USAGE_OWNER,
    USAGE_POD,
    USAGE_POOL,
    USAGE_PRODUCT,
    USAGE_NODE,
    USAGE_MODE,   /* of the pool; empty: not on record */
    USAGE_LABEL,  /* of the tenant's binding of the pool; fleet_records.label says which */
    USAGE_REASON, /* of the end of a pod's hold; "Running": it has not ended */
    USAGE_MONTH,  /* "2026-11", of UTC */
    N_USAGE_COLUMNS
};
extern const char *const FLEET_USAGE_COLUMNS[N_USAGE_COLUMNS]; /* "tenant", ... */

enum usage_kind { USAGE_HELD, USAGE_IDLE, USAGE_UNHEALTHY };
struct fleet_usage_line {
    enum usage_kind kind;
    struct str values[N_USAGE_COLUMNS]; /* of the columns of the report; others are empty */
    struct str currency;                /* empty: without a price */
    struct exact gpu_us, cost;
    struct exact list;       /* cost, as if nothing of it were borrowed */
    struct exact borrowed;   /* of gpu_us: beyond its tenant's guarantee */
    struct exact reserved;   /* GPU microseconds of its guarantee that a tenant did not hold; in the
                              line of tenant, pool and month alone */
    struct exact idle_held;  /* of gpu_us: of pods that telemetry calls warm or unused */
    struct exact unmeasured; /* of gpu_us: nothing says whether it was used */
    size_t pods, estimated, open; /* of kind USAGE_HELD */
};
/* Of one pool in one month: held + idle + unhealthy = capacity + unmatched, checked. */
struct fleet_usage_balance {
    struct str pool, month;
    struct exact capacity, held, idle, unhealthy; /* GPU microseconds */
    struct exact unmatched;                       /* held beyond the capacity on record */
    struct exact borrowed;                        /* of held: beyond guarantees */
    struct exact reserved;                        /* of guarantees, not held by their tenants */
    struct exact reserved_idle; /* of both idle and reserved; what else is reserved was lent */
};
struct usage {
    int64_t from_us, until_us;       /* the part of the period that is on record */
    struct fleet_usage_line **lines; /* sorted: tenants, then idle, then unhealthy */
    struct fleet_usage_balance *balances;
    size_t n_lines, n_balances;
    int64_t unobserved_us; /* of the period */
    bool bound;            /* a guarantee is on record in the period */
    bool measured;         /* telemetry is on record; else nothing is known of idle_held */
    struct str label;      /* of column USAGE_LABEL */
};
/* columns: a bit for each of the report's. Everything lives in the arena. INTERNAL when a balance
 * does not add up, TOO_LARGE when a sum does not fit. */
int fleet_usage_compute(struct arena *a, const struct fleet_records *records, int64_t from_us,
                        int64_t until_us, unsigned columns, struct usage *ret, struct err *err);
/* Into another arena, without the records that it was computed from. */
struct usage fleet_usage_copy(struct arena *a, const struct usage *u);
