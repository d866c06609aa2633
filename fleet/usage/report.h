/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Parts of reports that the page and statements have as well. */
#pragma once

#include <sublet/fleet_report.h>
#include <sublet/json.h>

/* Decimals of hours and costs beside their exact fractions. */
#define REPORT_PLACES 9

#define REPORT_TABLE_PLACES 4
#define REPORT_CELLS        (N_USAGE_COLUMNS + 10)

/* fleet_usage_compute() and the totals checked that it fits. */
struct exact report_hours(struct exact gpu_us);
/* The cells of a line, and their names: kind, columns, GPU hours (where guarantees are on record
 * also guaranteed, borrowed and reserved ones), cost, currency, pods, estimated. Returns how many
 * there are. */
size_t report_line_cells(struct arena *a, const struct usage *u, const struct fleet_usage_line *l,
                         unsigned columns, unsigned places, struct str cells[REPORT_CELLS + 1]);
size_t report_head_cells(const struct usage *u, unsigned columns,
                         struct str cells[REPORT_CELLS + 1]);
/* Is cell i of n a number? */
bool report_is_number(const struct usage *u, size_t i, size_t n);
/* What was checked, what was held costs, what is not certain: sentences, a line each. */
void report_sums(struct arena *a, struct buf *out, const struct usage *u);

/* A report under way: `a` is emptied with each line. */
struct report_out {
    struct arena *a;
    struct buf buf;
    const struct report_sink *sink;
};
void report_line_ends(struct report_out *to);
void report_html(struct report_out *to, const struct usage *u, unsigned columns);

cJSON *report_line_json(struct arena *a, const struct usage *u, const struct fleet_usage_line *line,
                        unsigned columns);
cJSON *report_balance_json(struct arena *a, const struct usage *u,
                           const struct fleet_usage_balance *balance);
