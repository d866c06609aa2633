/* SPDX-License-Identifier: Apache-2.0 */
/* A report that reads its holds in parts says to the bit what one says that reads them at once, and
 * one of the guarantees, capacities and prices of its period what one of all of them says:
 * histories over months with prices, guarantees, labels, nodes that fail, a clock that is set back
 * and what pods did, wherever the parts are cut. */
#include "world.h"

#include <sublet/fleet_report.h>

enum { STEPS = 120, HISTORIES = 8 };
#define DAY (24 * HOUR)
#define DO(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%.*s", STR_F(w->err.message));                                               \
    } while (0)

static const char *const POOLS[] = {"a100", "h100"}, *const NODES[] = {"n1", "n2", "n3"},
                         *const TENANTS[] = {"team-a", "team-b", "team-c"};

struct history {
    struct world w;
    uint64_t seed;
    int64_t now, n_holds;
    size_t left_out[3]; /* guarantees, capacities and prices that periods did not need */
};

static struct str pick(struct history *h, const char *const *of, int64_t n)
{
    return str_c(of[BELOW(&h->seed, n)]);
}

static struct str uid_of(struct history *h, int64_t i)
{
    return arena_printf(h->w.a, "u%lld", (long long)i);
}

static void add_hold(struct history *h)
{
    struct world *w = &h->w;
    struct fleet_hold hold = {.pod_uid = uid_of(h, h->n_holds++),
                              .tenant = pick(h, TENANTS, COUNT(TENANTS)),
                              .ns = STR("default"),
                              .name = arena_printf(w->a, "p%lld", (long long)(h->n_holds % 5)),
                              .owner = BELOW(&h->seed, 2) ? STR("Job/train") : STR(""),
                              .node = pick(h, NODES, COUNT(NODES)),
                              .pool = pick(h, POOLS, COUNT(POOLS)),
                              .product = STR("A100"),
                              .mode = BELOW(&h->seed, 2) ? STR("mig") : STR("exclusive"),
                              .gpu_eq = {1 + BELOW(&h->seed, 5), 1 + BELOW(&h->seed, 3)},
                              .begin_us = h->now - BELOW(&h->seed, 3 * DAY)};

    DO(ledger_add_hold(w->ledger, &hold, &w->err));
}

static void end_hold(struct history *h)
{
    struct world *w = &h->w;

    if (h->n_holds)
        DO(ledger_end_hold(w->ledger, uid_of(h, BELOW(&h->seed, h->n_holds)),
                           h->now - BELOW(&h->seed, DAY),
                           BELOW(&h->seed, 2) ? STR("Failed") : STR("Succeeded"),
                           BELOW(&h->seed, 3) == 0, &w->err));
}

static void add_capacity(struct history *h)
{
    struct world *w = &h->w;
    int64_t total = BELOW(&h->seed, 9);
    struct fleet_capacity c = {.node = pick(h, NODES, COUNT(NODES)),
                               .pool = pick(h, POOLS, 1), /* the other one has none on record */
                               .product = STR("A100"),
                               .from_us = h->now - BELOW(&h->seed, 2) * BELOW(&h->seed, 9 * DAY),
                               .total = {total, 1},
                               .unhealthy = {total / 4, 1},
                               .down = BELOW(&h->seed, 4) == 0};

    DO(ledger_add_capacity(w->ledger, &c, &w->err));
}

static void add_price_or_guarantee(struct history *h)
{
    struct world *w = &h->w;
    struct fleet_price price = {.pool = pick(h, POOLS, COUNT(POOLS)),
                                .currency = BELOW(&h->seed, 4) ? STR("USD") : STR("EUR"),
                                .from_us = h->now,
                                .price = {1 + BELOW(&h->seed, 9), 3},
                                .borrow = {1 + BELOW(&h->seed, 3), 2}};
    bool bound = BELOW(&h->seed, 4) > 0;
    struct fleet_guarantee g = {.tenant = pick(h, TENANTS, COUNT(TENANTS)),
                                .pool = pick(h, POOLS, COUNT(POOLS)),
                                .from_us = h->now,
                                .bound = bound,
                                .guarantee = {bound ? BELOW(&h->seed, 12) : 0, 2},
                                .granted = {bound ? 8 : 0, 1},
                                .labels = BELOW(&h->seed, 2) ? STR("cost=1\n") : STR("cost=2\n")};

    if (BELOW(&h->seed, 3) == 0)
        DO(ledger_add_price(w->ledger, &price, &w->err));
    else
        DO(ledger_add_guarantee(w->ledger, &g, &w->err));
}

static void step(struct history *h)
{
    struct world *w = &h->w;

    h->now += BELOW(&h->seed, 2 * DAY);
    DO(ledger_set_seen(w->ledger, h->now, &w->err));
    for (int i = 0; i < 3; i++)
        switch (BELOW(&h->seed, 6)) {
        case 0:
        case 1:
            add_hold(h);
            break;
        case 2:
            end_hold(h);
            break;
        case 3:
            add_capacity(h);
            break;
        case 4:
            add_price_or_guarantee(h);
            break;
        default:
            if (h->n_holds && h->seed % 3 == 0)
                DO(ledger_add_activity(w->ledger, uid_of(h, BELOW(&h->seed, h->n_holds)), h->now,
                                       (enum fleet_use)BELOW(&h->seed, 4), &w->err));
        }
    DO(ledger_commit(w->ledger, &w->err));
}

static struct str printed(struct history *h, const struct usage *u, unsigned columns)
{
    struct buf out = BUF_INIT(0);
    struct str text;

    report_print(&out, u, columns, REPORT_JSON);
    text = arena_str(h->w.a, buf_str(&out));
    buf_fini(&out);
    return text;
}

/* With the guarantees, capacities and prices of all time, of which the period needs some. */
static struct str with_all(struct history *h, struct fleet_records records, int64_t from,
                           int64_t until, unsigned columns)
{
    struct world *w = &h->w;
    struct fleet_records all;
    struct usage u;

    DO(ledger_read(w->a, w->location, 0, INT64_MAX, &all, &w->err));
    assert_true(records.n_guarantees <= all.n_guarantees &&
                records.n_capacities <= all.n_capacities && records.n_prices <= all.n_prices);
    h->left_out[0] += all.n_guarantees - records.n_guarantees;
    h->left_out[1] += all.n_capacities - records.n_capacities;
    h->left_out[2] += all.n_prices - records.n_prices;
    records.guarantees = all.guarantees;
    records.n_guarantees = all.n_guarantees;
    records.capacities = all.capacities;
    records.n_capacities = all.n_capacities;
    records.prices = all.prices;
    records.n_prices = all.n_prices;
    DO(fleet_usage_compute(w->a, &records, from, until, columns, &u, &w->err));
    return printed(h, &u, columns);
}

static void compare(struct history *h, int64_t from, int64_t until, unsigned columns)
{
    struct world *w = &h->w;
    struct ledger_usage_request q = {.a = w->a,
                                     .location = w->location,
                                     .from_us = from,
                                     .until_us = until,
                                     .columns = columns,
                                     .label = STR("cost")};
    static const size_t sizes[] = {1, 7, 50, 0};
    struct fleet_records records;
    struct usage whole, parts;

    DO(ledger_read(w->a, q.location, from, until, &records, &w->err));
    records.label = q.label;
    DO(fleet_usage_compute(w->a, &records, from, until, columns, &whole, &w->err));
    if (!str_eq(printed(h, &whole, columns), with_all(h, records, from, until, columns)))
        fail_msg("what was read of the period is not enough, columns %x", columns);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        q.holds = sizes[i];
        DO(ledger_usage(&q, &parts, &w->err));
        if (!str_eq(printed(h, &whole, columns), printed(h, &parts, columns)))
            fail_msg("parts of %zu holds, columns %x:\n%.*s\nat once:\n%.*s", sizes[i], columns,
                     STR_F(printed(h, &parts, columns)), STR_F(printed(h, &whole, columns)));
    }
}

static void parts_are_the_whole(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < HISTORIES; i++) {
        struct history h = {.seed = 20261128 + i, .now = BEGIN};

        world_open(&h.w);
        world_start(&h.w, BEGIN);
        for (int k = 0; k < STEPS; k++)
            step(&h);
        compare(&h, 0, INT64_MAX, (1u << N_USAGE_COLUMNS) - 1);
        compare(&h, 0, INT64_MAX, 1u << USAGE_TENANT | 1u << USAGE_OWNER);
        compare(&h, BEGIN + 20 * DAY, BEGIN + 70 * DAY, 1u << USAGE_POOL | 1u << USAGE_MONTH);
        compare(&h, BEGIN + 20 * DAY, BEGIN + 70 * DAY, 1u << USAGE_TENANT | 1u << USAGE_LABEL);
        compare(&h, BEGIN + 80 * DAY, INT64_MAX, (1u << N_USAGE_COLUMNS) - 1);
        compare(&h, BEGIN + DAY, BEGIN + 4 * DAY, 1u << USAGE_POOL | 1u << USAGE_NODE);
        assert_true(h.left_out[0] > 0 && h.left_out[1] > 0 && h.left_out[2] > 0);
        world_close(&h.w);
    }
}

static void what_is_not_on_record_is_empty(void **state)
{
    struct history h = {.now = BEGIN};
    struct world *w = &h.w;
    struct ledger_usage_request q = {.until_us = INT64_MAX, .columns = 1};
    struct usage u;

    (void)state;
    world_open(w);
    q.a = w->a;
    q.location = STR("/nonexistent");
    assert_int_equal(ledger_usage(&q, &u, &w->err), -1);
    world_start(w, BEGIN);
    DO(ledger_commit(w->ledger, &w->err));
    q.location = w->location;
    DO(ledger_usage(&q, &u, &w->err));
    assert_int_equal(u.n_lines, 0);
    world_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(what_is_not_on_record_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
