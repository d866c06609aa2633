/* SPDX-License-Identifier: Apache-2.0 */
/* Exporters beside the nodes they should be on. Why from the nodes: an exporter whose pod does not
 * start, or that no DaemonSet wants there, is in no list of exporters. */
#include "exporter_nodes.h"

#include <sublet/hash.h>

struct node {
    struct map_entry by_name;
    bool has_row, shown;
    struct exporter_row row;
};
struct exporter_nodes {
    struct arena *a;
    struct map by_name;
};

struct exporter_nodes *exporter_nodes_new(struct arena *a)
{
    struct exporter_nodes *n = ARENA_NEW(a, struct exporter_nodes);

    *n = (struct exporter_nodes){.a = a};
    return n;
}

static struct node *node_of(struct exporter_nodes *n, struct str name)
{
    struct map_entry *e = map_get(&n->by_name, name);
    struct node *node;

    if (e)
        return CONTAINER(e, struct node, by_name);
    node = ARENA_NEW(n->a, struct node);
    *node = (struct node){0};
    map_put(&n->by_name, &node->by_name, name);
    return node;
}

void exporter_nodes_add(struct exporter_nodes *n, const struct exporter_row *row)
{
    struct node *node = node_of(n, row->node);

    if (node->has_row && node->row.state <= row->state)
        return; /* EXPORTER_ANSWERING is the least */
    node->row = *row;
    node->has_row = true;
}

static struct exporter_node row_of(const struct node *node, const struct fleet_capacity *c)
{
    if (!node->has_row)
        return (struct exporter_node){.node = c->node, .pool = c->pool, .state = "absent"};
    return (struct exporter_node){
        .node = c->node,
        .pool = c->pool,
        .state = EXPORTER_STATES[node->row.state],
        .why = node->row.state == EXPORTER_FAILING ? EXPORTER_FAILURES[node->row.why] : NULL,
        .age_ms = node->row.age_ms};
}

void exporter_nodes_end(struct exporter_nodes *n, const struct fleet_records *now,
                        struct exporter_nodes_view *ret)
{
    struct exporter_node *rows = arena_alloc(n->a, EXPORTER_NODES_ROWS * sizeof(*rows));

    *ret = (struct exporter_nodes_view){.rows = rows};
    for (size_t i = 0; i < now->n_capacities; i++) {
        const struct fleet_capacity *c = &now->capacities[i];
        struct node *node;

        if (c->down || c->total.num <= 0)
            continue;
        node = node_of(n, c->node);
        if (node->shown || (node->has_row && node->row.state == EXPORTER_ANSWERING))
            continue; /* a node of two pools is one */
        node->shown = true;
        ret->n_absent += !node->has_row;
        if (ret->n_rows < EXPORTER_NODES_ROWS)
            rows[ret->n_rows++] = row_of(node, c);
        else
            ret->n_not_shown++;
    }
    map_clear(&n->by_name);
}
