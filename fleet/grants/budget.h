/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * What a GPUBinding may cost in a month: `spec.budget`, held against what the ledger says that the
 * pods of its namespace cost in its pool. Pure. Money is whole millionths of a currency. */
#pragma once

#include <sublet/config_pool.h>
#include <sublet/fleet_usage.h>
#include <sublet/json.h>

#define BUDGET_WARNINGS     10                  /* thresholds of one */
#define BUDGET_MOST_PERCENT 1000                /* of a threshold */
#define BUDGET_CURRENCY     64                  /* characters of one */
#define BUDGET_RATE_US      INT64_C(3600000000) /* on record, before which nothing is forecast */

/* What follows once it is exceeded. WARN: nothing; QUEUE: nothing beyond the guarantee; STOP:
 * nothing new. */
enum budget_enforcement { BUDGET_WARN, BUDGET_QUEUE, BUDGET_STOP };
struct budget {
    bool is;             /* false: there is none */
    int64_t amount;      /* > 0 */
    struct str currency; /* of the spec; empty: that of the price */
    enum budget_enforcement enforcement;
    unsigned warn_at[BUDGET_WARNINGS]; /* percent, ascending */
    size_t n_warn_at;
};
/* Of `spec.budget`; NULL is none. False: *ret_why names what makes no sense, in the arena. */
bool fleet_budget_parse(struct arena *a, const cJSON *value, struct budget *ret,
                        struct str *ret_why);

/* The one that was in force, by `status.budget`; none without. A status of an earlier release has
 * no thresholds: then the usual ones. */
void fleet_budget_recall(struct arena *a, const cJSON *before, struct budget *ret);

/* What is known of money. */
struct budget_facts {
    const struct config_pool *pools; /* that are metered: their prices */
    size_t n_pools;
    const struct usage *month; /* by tenant and pool; NULL: the ledger was not read yet */
    int64_t month_us;          /* a time of the month that it is of */
    int64_t now_s;             /* of the present month, by the clock of month.h; or 0 */
    const struct usage *day;   /* of the 24 hours before, by tenant and pool; or NULL */
};
/* The pool of this name that has a price; NULL: there is none. facts may be NULL. */
const struct config_pool *fleet_budget_pool(const struct budget_facts *facts, struct str pool);
/* The currency of its price; empty: it has none. */
struct str fleet_budget_currency(const struct budget_facts *facts, struct str pool);

/* Of a budget, in the month of now. */
struct budget_state {
    struct str month; /* "2026-11" */
    int64_t next_s;   /* when the next month begins */
    struct str currency;
    bool current;     /* the ledger says so; else it is the least that was on record before */
    int64_t spent;    /* at least 0 */
    int64_t forecast; /* of the whole month at the rate of the last 24 hours; 0: not known */
    int64_t shown;    /* the same, as it stays until it is another one by a hundredth */
    int64_t percent;
    unsigned threshold;         /* the greatest of warn_at that is reached; 0: none is */
    bool exceeded, will_exceed; /* by the forecast that is shown */
    struct str other; /* a currency in which it cost something this month as well; or empty */
};
/* before: `status.budget` of the object, by which a process that starts goes on. */
void fleet_budget_judge(struct arena *a, const struct budget *budget,
                        const struct budget_facts *facts, struct str tenant, struct str pool,
                        const cJSON *before, int64_t now_s, struct budget_state *ret);
/* "1500.00", "0.002083": at least two places, and as few as say it exactly. */
struct str fleet_budget_text(struct arena *a, int64_t micros);
extern const char *const FLEET_BUDGET_ENFORCEMENTS[]; /* as in the spec */
