/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Where a computation collects: lines by their columns, balances by pool and month. The period may
 * come in parts, one after the other, each with the records that touch it: nothing of those is kept
 * between parts. */
#pragma once

#include <sublet/fleet_usage.h>
#include <sublet/hash.h>

struct line {
    struct map_entry by_key;
    struct fleet_usage_line line;
    uint64_t last; /* the hold that was counted last */
};
struct balance {
    struct map_entry by_key;
    struct fleet_usage_balance balance;
};
struct sums {
    struct arena *a;       /* of lines and balances */
    struct arena *scratch; /* of the part */
    const struct fleet_records *records;
    int64_t from, until;             /* the part */
    int64_t whole_from, whole_until; /* the period */
    uint64_t counted;                /* holds of earlier parts */
    struct map spanning;             /* holds of earlier parts that reach into the next one */
    unsigned columns;
    int64_t *edges;
    struct str *months; /* in which they are */
    size_t n_edges, cap_edges;
    struct map lines, balances;
    bool overflow; /* a sum did not fit */
    /* Of guarantees: */
    struct map groups, pools;
    struct usage_group *first_group;
    struct usage_pool *first_pool;
    bool bound;       /* one is on record in the period */
    struct str split; /* whose pods borrowed something else than it did; nobody's */
    bool measured;
};
/* Without a part yet. False: nothing of the period is on record, and *ret is that. */
bool fleet_usage_start(struct sums *s, struct arena *a, const struct fleet_records *records,
                       int64_t from_us, int64_t until_us, unsigned columns, struct usage *ret);
/* A pool that holds of the period are in has a balance for each month. */
void fleet_usage_mention(struct sums *s, struct str pool);
/* From where the last part ended until here, with all holds that touch this time, in the order of
 * the ledger, and all other records. */
void fleet_usage_part(struct sums *s, const struct fleet_records *records, int64_t until_us);
/* Whatever came of the parts; s is empty afterwards. records: of the whole, but for holds. */
int fleet_usage_total(struct sums *s, const struct fleet_records *records, struct usage *ret,
                      struct err *err) MUST_CHECK;
void fleet_usage_drop(struct sums *s); /* instead of a total */

void fleet_usage_sum(struct sums *s, struct exact *sum, struct exact more);
/* The line of these values, of which the report's columns count; made when it is new. */
struct line *fleet_usage_line(struct sums *s, enum usage_kind kind,
                              const struct str values[N_USAGE_COLUMNS], struct str currency);
struct fleet_usage_balance *fleet_usage_balance(struct sums *s, struct str pool, struct str month);
/* Lines and balances as sorted arrays; the maps are empty afterwards. */
void fleet_usage_finish(struct sums *s, struct usage *ret);
/* Of a hold from an edge on, to the next; no pod is counted. */
struct line *fleet_usage_hold_line(struct sums *s, const struct fleet_hold *hold, size_t edge);
/* NULL: there is none. */
const struct fleet_price *fleet_usage_price(const struct sums *s, struct str pool, size_t edge);

void fleet_usage_edge(struct sums *s, int64_t at); /* lines are split there */

/* --- usage_guarantees.c: begin, then spells and idle levels, then end --- */

void fleet_usage_guarantees_begin(struct sums *s);
/* The value of records->label of a tenant's binding of a pool; empty: it has none. Lines are split
 * where one changes, if the report is by it. */
struct str fleet_usage_label(struct sums *s, struct str tenant, struct str pool, int64_t at);
void fleet_usage_label_edges(struct sums *s);
/* NULL: no guarantee of both, or of the pool, is on record. The others take NULL. */
struct usage_group *fleet_usage_group(struct sums *s, struct str tenant, struct str pool);
struct usage_pool *fleet_usage_pool(struct sums *s, struct str pool);
/* A hold is billed for this time. Those of a hold come in order. */
void fleet_usage_spell(struct usage_group *g, const struct fleet_hold *hold, int64_t from,
                       int64_t until);
/* What is idle of a node is another level from `at` on. */
void fleet_usage_idle(struct sums *s, struct usage_pool *p, int64_t at, struct exact *level,
                      struct exact to);
void fleet_usage_guarantees_end(struct sums *s);
