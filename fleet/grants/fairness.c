/* SPDX-License-Identifier: Apache-2.0 */
/* Guarantees, demands and how even shares are. Must have no series of a pool that no GPUPool is:
 * bindings name any. */
#include "fairness.h"

#include <sublet/metrics.h>

#include "grant_write.h"

static double number(struct rational r)
{
    return r.num > 0 ? (double)r.num / (double)r.den : 0;
}

double fleet_fairness_index(const struct grants_view *v, struct str pool)
{
    double sum = 0, squares = 0;
    size_t n = 0;

    for (size_t i = 0; i < v->n_rows; i++) {
        const struct grants_row *r = &v->rows[i];
        double share = number(r->grant), placed = number(r->placed), x;

        if (!r->counts || !str_eq(r->pool, pool))
            continue;
        if (r->wants.num >= 0 && number(r->wants) < share)
            share = number(r->wants);
        if (share <= 0)
            continue;
        x = placed < share ? placed / share : 1;
        sum += x;
        squares += x * x;
        n++;
    }
    return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

static void write_tenants(struct buf *out, const struct grants_view *v, enum metric metric)
{
    metrics_family(out, metric);
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct grants_row *r = &v->rows[i];
        struct buf labels = BUF_INIT(0);

        if (!r->counts || (metric == METRIC_FLEET_WANTED && r->wants.num < 0))
            continue; /* a tenant that does not say what it wants does not want nothing */
        metrics_label(&labels, "pool", r->pool);
        metrics_label(&labels, "tenant", r->tenant);
        metrics_sample(out, metric, buf_str(&labels),
                       number(metric == METRIC_FLEET_WANTED ? r->wants : r->guarantee));
        buf_fini(&labels);
    }
}

static bool is_pool(const struct grants_view *v, struct str name)
{
    for (size_t i = 0; i < v->n_pools; i++)
        if (str_eq(v->pools[i].name, name))
            return true;
    return false;
}

/* pool empty: of bindings whose pool there is not. */
static void write_bindings(struct buf *out, const struct grants_view *v, struct str pool)
{
    for (size_t s = 0; s < N_SHARE_STATES; s++) {
        struct buf labels = BUF_INIT(0);
        size_t n = 0;

        for (size_t i = 0; i < v->n_rows; i++) {
            const struct grants_row *r = &v->rows[i];

            n += str_eqc(str_c(r->state), GRANT_REASONS[s]) &&
                 (pool.n ? str_eq(r->pool, pool) : !is_pool(v, r->pool));
        }
        metrics_label(&labels, "pool", pool);
        metrics_label(&labels, "state", str_c(GRANT_REASONS[s]));
        metrics_sample_u64(out, METRIC_FLEET_BINDINGS, buf_str(&labels), n);
        buf_fini(&labels);
    }
}

void fleet_fairness_metrics(struct buf *out, const struct grants_view *v)
{
    write_tenants(out, v, METRIC_FLEET_GUARANTEED);
    write_tenants(out, v, METRIC_FLEET_WANTED);
    metrics_family(out, METRIC_FLEET_FAIRNESS);
    for (size_t i = 0; i < v->n_pools; i++) {
        struct buf labels = BUF_INIT(0);

        metrics_label(&labels, "pool", v->pools[i].name);
        metrics_sample(out, METRIC_FLEET_FAIRNESS, buf_str(&labels),
                       fleet_fairness_index(v, v->pools[i].name));
        buf_fini(&labels);
    }
    metrics_family(out, METRIC_FLEET_BINDINGS);
    for (size_t i = 0; i < v->n_pools; i++)
        write_bindings(out, v, v->pools[i].name);
    write_bindings(out, v, STR(""));
}
