/* SPDX-License-Identifier: Apache-2.0 */
/* The page's data: pools, bindings and holders, nodes that are not healthy, the month to
 * date. Pure. Must bound its rows: what more there is, is counted. */
#include "overview.h"

#include <sublet/clock.h>
#include <sublet/json_build.h>

#include "usage/report.h"

#define MOST_ROWS 2000
#define PLACES    3

static struct str gpus(struct arena *a, struct exact v)
{
    return exact_decimal(a, v, PLACES);
}

static struct str gpus_of(struct arena *a, struct rational v)
{
    return gpus(a, exact_of(v));
}

static bool is_metered(const struct usage *u, struct str pool)
{
    for (size_t i = 0; i < u->n_balances; i++)
        if (str_eq(u->balances[i].pool, pool))
            return true;
    return false;
}

static struct exact without(struct exact a, struct exact b)
{
    return exact_sub(a, b, &a) && a.num > 0 ? a : EXACT_ZERO;
}

static const struct grants_pool *granted_of(const struct grants_view *grants, struct str pool)
{
    for (size_t i = 0; i < grants->n_pools; i++)
        if (str_eq(grants->pools[i].name, pool))
            return &grants->pools[i];
    return NULL;
}

/* What grants alone know of a pool. */
static void add_granted(struct arena *a, cJSON *pool, const struct grants_pool *p)
{
    if (!p)
        return;
    json_set_str(a, pool, "guaranteed", gpus_of(a, p->guaranteed));
    json_set_str(a, pool, "borrowed", gpus_of(a, p->borrowed));
    json_set_str(a, pool, "absent", gpus_of(a, p->absent));
    json_put(a, pool, JSON_NONEMPTY("state", p->state ? str_c(p->state) : STR("")),
             JSON_NONEMPTY("reason", p->reason), JSON_NONEMPTY("until", p->until));
    if (p->overdue)
        json_set_bool(a, pool, "overdue", true);
}

static cJSON *granted_pool(struct arena *a, const struct grants_pool *p)
{
    struct exact healthy = exact_of(p->healthy), held = exact_of(p->held);
    cJSON *pool =
        json_object(a, JSON("name", p->name), JSON("capacity", gpus_of(a, p->nodes)),
                    JSON("held", gpus(a, held)), JSON("idle", gpus(a, without(healthy, held))),
                    JSON("unhealthy", gpus(a, without(exact_of(p->nodes), healthy))));

    add_granted(a, pool, p);
    return pool;
}

/* Those the ledger meters, then those that are granted only. */
static cJSON *pools_of(struct arena *a, const struct usage *u, const struct grants_view *grants)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < u->n_balances; i++) {
        const struct fleet_usage_balance *b = &u->balances[i];
        cJSON *pool =
            json_object(a, JSON("name", b->pool), JSON("capacity", gpus(a, b->capacity)),
                        JSON("held", gpus(a, b->held)), JSON("idle", gpus(a, b->idle)),
                        JSON("unhealthy", gpus(a, b->unhealthy)), JSON_BOOL("metered", true));

        add_granted(a, pool, granted_of(grants, b->pool));
        json_append(list, pool);
    }
    for (size_t i = 0; i < grants->n_pools; i++)
        if (!is_metered(u, grants->pools[i].name))
            json_append(list, granted_pool(a, &grants->pools[i]));
    return list;
}

static cJSON *holders_of(struct arena *a, const struct usage *u, size_t *more)
{
    cJSON *list = json_new_array(a);
    size_t n = 0;

    for (size_t i = 0; i < u->n_lines && u->lines[i]->kind == USAGE_HELD; i++) {
        const struct fleet_usage_line *l = u->lines[i];

        if (n++ < MOST_ROWS)
            json_append(list, json_object(a, JSON("tenant", l->values[USAGE_TENANT]),
                                          JSON("pool", l->values[USAGE_POOL]),
                                          JSON("held", gpus(a, l->gpu_us)),
                                          JSON_I64("pods", (int64_t)l->pods)));
    }
    *more += n > MOST_ROWS ? n - MOST_ROWS : 0;
    return list;
}

/* Money is a decimal string as well. NULL: it has none. */
static cJSON *budget_of(struct arena *a, const struct grants_budget *b)
{
    if (!b->is)
        return NULL;
    return json_object(
        a, JSON("amount", fleet_budget_text(a, b->amount)), JSON("currency", b->currency),
        JSON("spent", fleet_budget_text(a, b->spent)), JSON_I64("percent", b->percent),
        JSON_NONEMPTY("forecast", b->forecast ? fleet_budget_text(a, b->forecast) : STR("")),
        JSON("enforcement", FLEET_BUDGET_ENFORCEMENTS[b->enforcement]));
}

static cJSON *bindings_of(struct arena *a, const struct overview *o, size_t *more)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < o->grants.n_rows && i < MOST_ROWS; i++) {
        const struct grants_row *r = &o->grants.rows[i];

        json_append(
            list,
            json_object(a, JSON("tenant", r->tenant), JSON("pool", r->pool),
                        JSON("state", r->state), JSON("guarantee", gpus_of(a, r->guarantee)),
                        JSON("burst", gpus_of(a, r->burst)), JSON("grant", gpus_of(a, r->grant)),
                        JSON("placed", gpus_of(a, r->placed)), JSON("holds", gpus_of(a, r->holds)),
                        JSON_NONEMPTY("wants", r->wants.num < 0 ? STR("") : gpus_of(a, r->wants)),
                        JSON_NONEMPTY("reclaimAt", r->reclaim_at),
                        JSON("budget", budget_of(a, &r->budget))));
    }
    *more +=
        (o->grants.n_rows > MOST_ROWS ? o->grants.n_rows - MOST_ROWS : 0) + o->grants.n_not_shown;
    return list;
}

/* The newest record of a node and a pool is the last one of both: a snapshot has one. */
static cJSON *faults_of(struct arena *a, const struct fleet_records *now, size_t *more)
{
    cJSON *list = json_new_array(a);
    size_t n = 0;

    for (size_t i = 0; i < now->n_capacities; i++) {
        const struct fleet_capacity *c = &now->capacities[i];

        if ((!c->down || c->total.num <= 0) && c->unhealthy.num <= 0)
            continue;
        if (n++ < MOST_ROWS)
            json_append(
                list,
                json_object(a, JSON("node", c->node), JSON("pool", c->pool),
                            JSON("unhealthy", gpus_of(a, c->down ? c->total : c->unhealthy)),
                            JSON("total", gpus_of(a, c->total)), JSON_BOOL("ready", !c->down)));
    }
    *more += n > MOST_ROWS ? n - MOST_ROWS : 0;
    return list;
}

static cJSON *states_of(struct arena *a, const struct fleet_watch_node *n)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < N_FLEET_WATCH_STATES; i++)
        if (n->states & 1u << i)
            json_append(list, json_new_string(a, str_c(FLEET_WATCH_STATES[i])));
    return list;
}

static cJSON *nodes_of(struct arena *a, const struct fleet_watch_view *v)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; v && i < v->n_nodes; i++)
        json_append(list, json_object(a, JSON("node", v->nodes[i].node),
                                      JSON_NONEMPTY("pool", v->nodes[i].pool),
                                      JSON("states", states_of(a, &v->nodes[i])),
                                      JSON_NONEMPTY("conditions", v->nodes[i].conditions)));
    return list;
}

static cJSON *misuse_of(struct arena *a, const struct fleet_watch_view *v)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; v && i < v->n_misuse; i++)
        json_append(list, json_object(a, JSON("tenant", v->misuse[i].tenant),
                                      JSON("pool", v->misuse[i].pool),
                                      JSON_I64("pods", (int64_t)v->misuse[i].pods),
                                      JSON_I64("cpuMilli", v->misuse[i].cpu_milli),
                                      JSON_I64("memoryMiB", v->misuse[i].memory >> 20)));
    return list;
}

static cJSON *hoarders_of(struct arena *a, const struct overview *o)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < o->activity->n_idle; i++) {
        const struct activity_idle *x = &o->activity->idle[i];
        int64_t since_us = o->now->now_us - x->idle_ms * 1000;

        json_append(list, json_object(a, JSON("tenant", x->tenant), JSON("pod", x->name),
                                      JSON("node", x->node), JSON("pool", x->pool),
                                      JSON("gpus", gpus_of(a, x->gpu_eq)),
                                      JSON("state", ACTIVITY_STATES[x->state]),
                                      JSON("since", time_format_s(a, since_us / 1000000))));
    }
    return list;
}

static cJSON *exporters_of(struct arena *a, const struct overview *o)
{
    cJSON *list = json_new_array(a);

    for (size_t i = 0; i < o->exporters->n_rows; i++) {
        const struct exporter_node *x = &o->exporters->rows[i];
        int64_t since_us = o->now->now_us - x->age_ms * 1000;

        json_append(
            list,
            json_object(a, JSON("node", x->node), JSON("pool", x->pool), JSON("state", x->state),
                        JSON_NONEMPTY("reason", str_c(x->why)),
                        JSON_NONEMPTY("since",
                                      x->age_ms ? time_format_s(a, since_us / 1000000) : STR(""))));
    }
    return list;
}

static cJSON *month_of(struct arena *a, const struct overview *o, size_t *more)
{
    cJSON *list;
    size_t n = 0;

    if (!o->month)
        return json_object(a, JSON_NONEMPTY("trouble", o->month_trouble));
    list = json_new_array(a);
    for (size_t i = 0; i < o->month->n_lines && o->month->lines[i]->kind == USAGE_HELD; i++) {
        const struct fleet_usage_line *l = o->month->lines[i];

        if (n++ < MOST_ROWS)
            json_append(
                list,
                json_object(
                    a, JSON("tenant", l->values[USAGE_TENANT]), JSON("pool", l->values[USAGE_POOL]),
                    JSON("gpuHours", exact_decimal(a, report_hours(l->gpu_us), 1)),
                    JSON_NONEMPTY("cost", l->currency.n ? exact_decimal(a, l->cost, 2) : STR("")),
                    JSON_NONEMPTY("currency", l->currency)));
    }
    *more += n > MOST_ROWS ? n - MOST_ROWS : 0;
    return json_object(a, JSON("from", time_format_s(a, o->month->from_us / 1000000)),
                       JSON("until", time_format_s(a, o->month->until_us / 1000000)),
                       JSON("lines", list), JSON_NONEMPTY("trouble", o->month_trouble));
}

int fleet_overview_write(struct arena *a, struct buf *out, const struct overview *o,
                         struct err *err)
{
    const struct fleet_records *held = o->now->held;
    struct usage u = {0};
    size_t more = 0;
    cJSON *state;

    if (held && fleet_usage_compute(a, held, 0, 1, 1u << USAGE_TENANT | 1u << USAGE_POOL, &u, err))
        return -1;
    state = json_object(
        a, JSON_BOOL("leader", o->now->leader), JSON_BOOL("observed", held != NULL),
        JSON_BOOL("grantsCurrent", o->grants.current), JSON("pools", pools_of(a, &u, &o->grants)),
        JSON("holders", holders_of(a, &u, &more)), JSON("bindings", bindings_of(a, o, &more)),
        JSON("faults", held ? faults_of(a, held, &more) : json_new_array(a)),
        JSON("nodes", nodes_of(a, o->watched)), JSON("misuse", misuse_of(a, o->watched)),
        JSON("month", month_of(a, o, &more)));
    if (o->activity) {
        json_set(a, state, "hoarders", hoarders_of(a, o));
        more += o->activity->n_not_shown;
    }
    if (o->exporters) {
        json_set(a, state, "exporters", exporters_of(a, o));
        more += o->exporters->n_not_shown;
    }
    more += o->watched ? o->watched->n_not_shown : 0;
    json_set_i64(a, state, "notShown", (int64_t)more);
    json_print(out, state);
    return 0;
}
