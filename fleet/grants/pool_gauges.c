/* SPDX-License-Identifier: Apache-2.0 */
/* What alerts and dashboards need of pools beside their GPUs: what an hour costs, and what their
 * conditions say, in the form of kube-state-metrics (kube_node_status_condition). Must never write
 * one series twice, which spoils a whole scrape, whatever the status of an object has. */
#include "pool_gauges.h"

#include <sublet/metrics.h>
#include <sublet/object.h>
#include <sublet/rational.h>

#include "grants.h"

/* --- prices --- */

static void write_price(struct buf *out, const struct config_pool *pool, bool borrowed)
{
    struct rational price, factor = {1, 1};
    struct buf labels = BUF_INIT(0);

    if (!rational_parse(pool->price, &price) ||
        (borrowed && pool->borrow_factor.n && !rational_parse(pool->borrow_factor, &factor)))
        return;
    metrics_label(&labels, "borrowed", borrowed ? STR("true") : STR("false"));
    metrics_label(&labels, "currency", pool->currency);
    metrics_label(&labels, "mode", config_mode_name(pool->mode));
    metrics_label(&labels, "pool", pool->name);
    metrics_sample(out, METRIC_FLEET_PRICE, buf_str(&labels),
                   1e6 * (double)price.num / (double)price.den * (double)factor.num /
                       (double)factor.den);
    buf_fini(&labels);
}

void fleet_price_metrics(struct buf *out, const struct config_pool *pools, size_t n_pools)
{
    metrics_family(out, METRIC_FLEET_PRICE);
    for (size_t i = 0; i < n_pools; i++) {
        if (!pools[i].price.n)
            continue;
        write_price(out, &pools[i], false);
        write_price(out, &pools[i], true);
    }
}

/* --- conditions --- */

static const struct {
    const char *status, *label;
} STATUSES[] = {{"True", "true"}, {"False", "false"}, {"Unknown", "unknown"}};

/* NULL: it is none of Kubernetes' own. */
static const char *label_of(const cJSON *condition)
{
    struct str status = json_str(json_get(condition, "status"));

    for (size_t i = 0; i < COUNT(STATUSES); i++)
        if (str_eqc(status, STATUSES[i].status))
            return STATUSES[i].label;
    return NULL;
}

static bool has_type(const struct fleet_conditions *list, size_t first, struct str type)
{
    for (size_t i = first; i < list->n; i++)
        if (str_eq(list->items[i].type, type))
            return true;
    return false;
}

void fleet_conditions_add(struct arena *a, struct fleet_conditions *list, const cJSON *pool)
{
    struct str name = arena_str(a, meta_name(pool));
    size_t first = list->n;

    json_each(condition, json_path(pool, "status.conditions"))
    {
        struct str type = json_str(json_get(condition, "type"));
        const char *status = label_of(condition);

        if (list->n - first == FLEET_CONDITIONS_OF_POOL || list->n == FLEET_CONDITIONS)
            return;
        if (!status || !type.n || has_type(list, first, type))
            continue;
        ARENA_GROW(a, list->items, list->n, list->cap);
        list->items[list->n++] =
            (struct fleet_condition){.pool = name, .type = arena_str(a, type), .status = status};
    }
}

static void write_condition(struct buf *out, const struct fleet_condition *c)
{
    for (size_t i = 0; i < COUNT(STATUSES); i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "condition", c->type);
        metrics_label(&labels, "pool", c->pool);
        metrics_label(&labels, "status", str_c(STATUSES[i].label));
        metrics_sample_u64(out, METRIC_FLEET_POOL_CONDITION, buf_str(&labels),
                           c->status == STATUSES[i].label);
        buf_fini(&labels);
    }
}

void fleet_conditions_metrics(struct buf *out, const struct fleet_conditions *list)
{
    metrics_family(out, METRIC_FLEET_POOL_CONDITION);
    for (size_t i = 0; i < list->n; i++)
        write_condition(out, &list->items[i]);
}

/* --- budgets --- */

static double budget_value(enum metric metric, const struct grants_budget *b)
{
    return metric == METRIC_FLEET_BUDGET_RATIO ? (double)b->spent / (double)b->amount
                                               : (double)b->threshold;
}

static void sample_budget(struct buf *out, enum metric metric, const struct grants_row *r)
{
    const struct grants_budget *b = &r->budget;
    struct buf labels = BUF_INIT(0);

    metrics_label(&labels, "currency", b->currency);
    metrics_label(&labels, "pool", r->pool);
    metrics_label(&labels, "tenant", r->tenant);
    switch (metric) {
    case METRIC_FLEET_BUDGET_SPENT:
        metrics_sample_u64(out, metric, buf_str(&labels), (uint64_t)b->spent);
        break;
    case METRIC_FLEET_BUDGET_AMOUNT:
        metrics_sample_u64(out, metric, buf_str(&labels), (uint64_t)b->amount);
        break;
    case METRIC_FLEET_BUDGET_FORECAST:
        if (b->forecast)
            metrics_sample_u64(out, metric, buf_str(&labels), (uint64_t)b->forecast);
        break;
    default:
        metrics_sample(out, metric, buf_str(&labels), budget_value(metric, b));
    }
    buf_fini(&labels);
}

void fleet_budget_metrics(struct buf *out, const struct grants_view *view, int64_t unread_s)
{
    static const enum metric families[] = {METRIC_FLEET_BUDGET_SPENT, METRIC_FLEET_BUDGET_AMOUNT,
                                           METRIC_FLEET_BUDGET_FORECAST, METRIC_FLEET_BUDGET_RATIO,
                                           METRIC_FLEET_BUDGET_THRESHOLD};

    for (size_t f = 0; f < COUNT(families); f++) {
        metrics_family(out, families[f]);
        for (size_t i = 0; i < view->n_rows; i++)
            if (view->rows[i].counts && view->rows[i].budget.is)
                sample_budget(out, families[f], &view->rows[i]);
    }
    metrics_single_u64(out, METRIC_FLEET_BUDGET_UNREAD, unread_s > 0 ? (uint64_t)unread_s : 0);
}
