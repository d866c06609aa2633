/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * GPU nodes of which no exporter answers: its reads fail, it was not read yet, or there is none on
 * the node. Pure. */
#pragma once

#include <sublet/fleet_usage.h>

#include "exporters.h"

struct exporter_node {
    struct str node, pool;
    const char *state; /* "failing", "new", "absent" */
    const char *why;   /* of "failing"; else NULL */
    int64_t age_ms;    /* since its last answer, or since it is known; absent: 0 */
};
struct exporter_nodes_view {
    const struct exporter_node *rows; /* in the order of the records; at most EXPORTER_NODES_ROWS */
    size_t n_rows, n_not_shown;
    size_t n_absent; /* nodes */
};
#define EXPORTER_NODES_ROWS 2000

struct exporter_nodes;
struct exporter_nodes *exporter_nodes_new(struct arena *a); /* lives in the arena */
/* What an exporter does; of several on a node one that answers decides. */
void exporter_nodes_add(struct exporter_nodes *n, const struct exporter_row *row);
/* Against the nodes that are Ready and have GPUs of a pool. Ends it. */
void exporter_nodes_end(struct exporter_nodes *n, const struct fleet_records *now,
                        struct exporter_nodes_view *ret);
