/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Where a computation collects: lines by their columns, balances by pool and month. */
#pragma once

#include <sublet/fleet_usage.h>
#include <sublet/hash.h>

struct line {
    struct map_entry by_key;
    struct fleet_usage_line line;
    const struct fleet_hold *last; /* the one counted last */
};
struct balance {
    struct map_entry by_key;
    struct fleet_usage_balance balance;
};
struct sums {
    struct arena *a;
    const struct fleet_records *records;
    int64_t from, until;
    unsigned columns;
    int64_t *edges;
    struct str *months; /* in which they are */
    size_t n_edges, cap_edges;
    struct map lines, balances;
    bool overflow; /* a sum did not fit */
};
void fleet_usage_sum(struct sums *s, struct exact *sum, struct exact more);
/* The line of these values, of which the report's columns count; made when it is new. */
struct line *fleet_usage_line(struct sums *s, enum usage_kind kind,
                              const struct str values[N_USAGE_COLUMNS], struct str currency);
struct fleet_usage_balance *fleet_usage_balance(struct sums *s, struct str pool, struct str month);
/* Lines and balances as sorted arrays; the maps are empty afterwards. */
void fleet_usage_finish(struct sums *s, struct usage *ret);
