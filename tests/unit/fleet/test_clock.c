/* SPDX-License-Identifier: Apache-2.0 */
/* Histories of a host and of what it guarantees, seen by processes whose clock steps back and forth
 * by hours and which are killed at any moment: what the ledger then has is in order, nothing in it
 * is negative or counted twice, and every report adds up. The host's own times are those of one
 * clock. */
#include "world.h"

#include "ledger/guarantees.h"

enum { NODES = 3, PODS = 40, STEPS = 60, HISTORIES = 60, GPUS = 40 };

struct host_pod {
    int64_t begin_us, end_us; /* 0: not yet */
    int gpus, node;
    bool deleted;
};

struct history {
    struct world w;
    uint64_t seed;
    int64_t host_us, skew_us; /* the process's clock is ahead of the host's by skew */
    bool there[NODES], ready[NODES];
    int64_t ready_us[NODES];
    struct host_pod pods[PODS];
    int n_pods;
    bool nodes_fail;
    struct guarantees *guarantees;
    struct grants_row row; /* of the tenant that has the pods */
    bool always_bound;
};

static int64_t below(struct history *h, int64_t n)
{
    return (int64_t)(next_random(&h->seed) % (uint64_t)n);
}

static int64_t now(const struct history *h)
{
    return h->host_us + h->skew_us;
}

#define DO(call) assert_int_equal((call), 0)

/* --- what the ledger may hold --- */

static const char *judge_holds(const struct fleet_records *r)
{
    for (size_t i = 0; i < r->n_holds; i++) {
        const struct fleet_hold *h = &r->holds[i];

        if (h->end_us < h->begin_us)
            return "a hold ends before it begins";
        if (h->begin_us < r->begin_us)
            return "a hold begins before the ledger";
        if (h->gpu_eq.num <= 0)
            return "a hold of nothing, or less";
        for (size_t k = 0; k < i; k++)
            if (str_eq(r->holds[k].pod_uid, h->pod_uid))
                return "a pod has two holds";
    }
    return NULL;
}

static const char *judge_gaps(const struct fleet_records *r)
{
    for (size_t i = 0; i < r->n_gaps; i++) {
        if (r->gaps[i].until_us <= r->gaps[i].from_us)
            return "a gap of no time, or less";
        if (r->gaps[i].until_us > r->seen_us)
            return "a gap of what was not seen yet";
        if (i && r->gaps[i].from_us < r->gaps[i - 1].until_us)
            return "two gaps of one time";
    }
    return NULL;
}

static const char *judge_nodes_and_prices(const struct fleet_records *r)
{
    for (size_t i = 0; i < r->n_capacities; i++) {
        const struct fleet_capacity *c = &r->capacities[i];

        if (c->unhealthy.num < 0 || rational_cmp(c->unhealthy, c->total) > 0)
            return "a node has more unhealthy than all, or less than none";
        if (c->from_us < r->begin_us)
            return "a capacity before the ledger";
    }
    for (size_t i = 1; i < r->n_prices; i++)
        if (r->prices[i].from_us < r->prices[i - 1].from_us)
            return "a price that changes the past";
    return NULL;
}

static const char *judge_guarantees(const struct fleet_records *r)
{
    for (size_t i = 0; i < r->n_guarantees; i++) {
        const struct fleet_guarantee *g = &r->guarantees[i];

        if (g->from_us < r->begin_us)
            return "a guarantee before the ledger";
        if (i && g->from_us < r->guarantees[i - 1].from_us)
            return "a guarantee that changes the past";
        if (!g->bound && (g->guarantee.num || g->granted.num))
            return "a guarantee without a binding";
    }
    return NULL;
}

/* A row of before is there, as it was; of a hold its end may have come. */
static const char *judge_growth(const struct fleet_records *before, const struct fleet_records *r)
{
    if (r->seen_us < before->seen_us || r->begin_us != before->begin_us)
        return "what was seen is not seen any more";
    if (r->n_holds < before->n_holds || r->n_capacities < before->n_capacities ||
        r->n_prices < before->n_prices || r->n_gaps < before->n_gaps ||
        r->n_guarantees < before->n_guarantees)
        return "a row is gone";
    for (size_t i = 0; i < before->n_holds; i++) {
        const struct fleet_hold *was = &before->holds[i], *is = &r->holds[i];

        if (!str_eq(was->pod_uid, is->pod_uid) || was->begin_us != is->begin_us ||
            rational_cmp(was->gpu_eq, is->gpu_eq) ||
            (was->end_us != FLEET_OPEN && was->end_us != is->end_us))
            return "a hold was changed";
    }
    return NULL;
}

static int64_t clip(int64_t us, const struct usage *u)
{
    return us < u->from_us ? u->from_us : us > u->until_us ? u->until_us : us;
}

/* The GPU time of all holds within the report, each for itself. */
static struct exact sum_of_holds(const struct fleet_records *r, const struct usage *u)
{
    struct exact sum = EXACT_ZERO, one;

    for (size_t i = 0; i < r->n_holds; i++) {
        int64_t us = clip(r->holds[i].end_us, u) - clip(r->holds[i].begin_us, u);

        assert_true(exact_mul(exact_of(r->holds[i].gpu_eq), (struct exact){us, 1}, &one) &&
                    exact_add(sum, one, &sum));
    }
    return sum;
}

/* What the tenant was guaranteed, GPU microseconds. */
static struct exact sum_of_guarantees(const struct fleet_records *r, const struct usage *u)
{
    struct exact sum = EXACT_ZERO, one;

    for (size_t i = 0; i < r->n_guarantees; i++) {
        int64_t end = i + 1 < r->n_guarantees ? r->guarantees[i + 1].from_us : FLEET_OPEN;
        int64_t us = clip(end, u) - clip(r->guarantees[i].from_us, u);

        assert_true(exact_mul(exact_of(r->guarantees[i].guarantee), (struct exact){us, 1}, &one) &&
                    exact_add(sum, one, &sum));
    }
    return sum;
}

static bool is_bound_throughout(const struct fleet_records *r)
{
    for (size_t i = 0; i < r->n_guarantees; i++)
        if (!r->guarantees[i].bound)
            return false;
    return true;
}

static bool is_sum(struct exact a, struct exact b, struct exact sum)
{
    struct exact got = EXACT_ZERO;

    return exact_add(a, b, &got) && !exact_cmp(got, sum);
}

/* All is guaranteed time that was used or not; held time was within it, borrowed, or unbound. */
static const char *judge_borrowed(const struct fleet_records *r, const struct usage *u)
{
    struct exact borrowed = EXACT_ZERO, reserved = EXACT_ZERO, all[2] = {EXACT_ZERO, EXACT_ZERO};
    struct exact held = EXACT_ZERO, within = EXACT_ZERO, owed = sum_of_guarantees(r, u);

    for (size_t i = 0; i < u->n_lines; i++) {
        const struct fleet_usage_line *l = u->lines[i];

        if (l->borrowed.num < 0 || l->reserved.num < 0)
            return "less than nothing is borrowed or reserved";
        assert_true(exact_add(borrowed, l->borrowed, &borrowed) &&
                    exact_add(reserved, l->reserved, &reserved));
        if (l->kind == USAGE_HELD)
            assert_true(exact_add(held, l->gpu_us, &held));
    }
    for (size_t i = 0; i < u->n_balances; i++)
        assert_true(exact_add(all[0], u->balances[i].borrowed, &all[0]) &&
                    exact_add(all[1], u->balances[i].reserved, &all[1]));
    if (exact_cmp(borrowed, all[0]) || exact_cmp(reserved, all[1]))
        return "what lines borrow or reserve is not what pools do";
    assert_true(exact_sub(held, borrowed, &within));
    if (within.num < 0 || exact_cmp(reserved, owed) > 0)
        return "more is borrowed than held, or reserved than guaranteed";
    if (r->n_guarantees && r->guarantees[0].from_us <= u->from_us && is_bound_throughout(r) &&
        !is_sum(within, reserved, owed))
        return "a guarantee is not what was held within it and what was not used";
    return NULL;
}

static const char *judge_usage(struct arena *a, const struct fleet_records *r, bool nodes_fail)
{
    struct exact held = EXACT_ZERO, lines = EXACT_ZERO, owned = EXACT_ZERO, all;
    struct usage u;
    struct err err;
    int order;

    err_init(&err, a);
    if (fleet_usage_compute(a, r, 0, INT64_MAX, 1u << USAGE_TENANT, &u, &err))
        return "a report does not add up";
    for (size_t i = 0; i < u.n_lines; i++) {
        if (u.lines[i]->gpu_us.num < 0 || u.lines[i]->cost.num < 0)
            return "a line is negative";
        assert_true(exact_add(lines, u.lines[i]->gpu_us, &lines));
        if (u.lines[i]->kind == USAGE_HELD)
            assert_true(exact_add(held, u.lines[i]->gpu_us, &held));
    }
    for (size_t i = 0; i < u.n_balances; i++) {
        if (u.balances[i].capacity.num < 0 || u.balances[i].unmatched.num < 0)
            return "a balance is negative";
        assert_true(exact_add(owned, u.balances[i].capacity, &owned) &&
                    exact_add(owned, u.balances[i].unmatched, &owned));
    }
    if (exact_cmp(lines, owned))
        return "the lines are not what there was";
    all = sum_of_holds(r, &u);
    order = exact_cmp(held, all);
    if (order > 0 || (order < 0 && !nodes_fail))
        return "what is billed is not what was held";
    if (u.unobserved_us < 0 || u.unobserved_us > r->seen_us - r->begin_us)
        return "more time without an observer than time";
    return judge_borrowed(r, &u);
}

/* NULL: it may be so. */
static const char *judge(struct arena *a, const struct fleet_records *before,
                         const struct fleet_records *r, bool nodes_fail)
{
    const char *why = judge_growth(before, r);

    why = why ? why : judge_holds(r);
    why = why ? why : judge_gaps(r);
    why = why ? why : judge_nodes_and_prices(r);
    why = why ? why : judge_guarantees(r);
    return why ? why : judge_usage(a, r, nodes_fail);
}

static struct fleet_records records_of(struct world *w)
{
    struct fleet_records r;

    DO(ledger_read(w->a, w->location, 0, INT64_MAX, &r, &w->err));
    return r;
}

/* --- a history --- */

static void see_node(struct history *h, int i)
{
    static const char *const names[NODES] = {"n0", "n1", "n2"};

    if (h->there[i])
        DO(observer_node(h->w.observer,
                         world_node(&h->w, names[i], GPUS, GPUS - i, h->ready[i], h->ready_us[i]),
                         now(h), &h->w.err));
}

static const char *uid_of(struct history *h, int i)
{
    return arena_printf(h->w.a, "u%d", i).p;
}

static void see_pod(struct history *h, int i)
{
    static const char *const names[NODES] = {"n0", "n1", "n2"};
    const struct host_pod *p = &h->pods[i];

    if (!p->deleted)
        DO(observer_pod(
            h->w.observer,
            world_pod(&h->w, uid_of(h, i), names[p->node], p->gpus, p->begin_us, p->end_us), now(h),
            &h->w.err));
}

static void see_all(struct history *h)
{
    for (int i = 0; i < NODES; i++)
        see_node(h, i);
    for (int i = 0; i < h->n_pods; i++)
        see_pod(h, i);
    DO(observer_nodes_listed(h->w.observer, now(h), &h->w.err));
    DO(observer_pods_listed(h->w.observer, now(h), &h->w.err));
}

static void look(struct history *h)
{
    const struct grants_view view = {
        .rows = &h->row, .n_rows = h->row.tenant.n > 0, .current = true};

    DO(guarantees_look(h->guarantees, &h->w.pool, 1, &view, now(h), &h->w.err));
}

static void change_grant(struct history *h)
{
    h->row.grant = (struct rational){below(h, 9), 1 + below(h, 3)};
    look(h);
}

static void change_guarantee(struct history *h)
{
    if (below(h, 4) || h->always_bound)
        h->row = (struct grants_row){.tenant = STR("team-a"),
                                     .pool = STR("a100"),
                                     .counts = true,
                                     .guarantee = {below(h, 12), 1 + below(h, 3)},
                                     .grant = {below(h, 12), 1}};
    else
        h->row = (struct grants_row){.tenant = STR("")};
    look(h);
}

static void kill_all(struct history *h)
{
    h->guarantees = guarantees_free(h->guarantees);
    world_kill(&h->w);
}

static void start(struct history *h)
{
    struct fleet_records r;

    world_start(&h->w, now(h));
    DO(ledger_read(h->w.a, h->w.location, LEDGER_OPEN, INT64_MAX, &r, &h->w.err));
    h->guarantees = guarantees_new(h->w.ledger, &r);
}

static void history_end(struct history *h)
{
    h->guarantees = guarantees_free(h->guarantees);
    world_close(&h->w);
}

static void restart(struct history *h)
{
    static const char *const prices[] = {"2.50", "1/3", "7"};

    if (below(h, 2))
        DO(ledger_commit(h->w.ledger, &h->w.err));
    kill_all(h);
    h->w.pool.price = str_c(prices[below(h, 3)]);
    start(h);
    see_all(h);
    look(h);
}

static void new_pod(struct history *h)
{
    int i = h->n_pods;

    if (i == PODS)
        return;
    h->pods[i] = (struct host_pod){.begin_us = h->host_us, .gpus = 1 + i % 3};
    h->pods[i].node = (int)below(h, NODES);
    h->n_pods++;
    see_pod(h, i);
}

static void end_pod(struct history *h)
{
    int i = h->n_pods ? (int)below(h, h->n_pods) : 0;
    struct host_pod *p = &h->pods[i];

    if (!h->n_pods || p->deleted)
        return;
    if (!p->end_us && below(h, 2)) {
        p->end_us = h->host_us;
        see_pod(h, i);
        return;
    }
    p->deleted = true;
    DO(observer_pod_gone(h->w.observer, str_c(uid_of(h, i)), below(h, 2), now(h), &h->w.err));
}

static void change_node(struct history *h)
{
    static const char *const names[NODES] = {"n0", "n1", "n2"};
    int i = (int)below(h, NODES);

    if (!h->nodes_fail)
        return;
    if (h->there[i] && !below(h, 3)) {
        h->there[i] = false;
        DO(observer_node_gone(h->w.observer, str_c(names[i]), now(h), &h->w.err));
        return;
    }
    h->ready[i] = !h->there[i] || !h->ready[i];
    h->there[i] = true;
    h->ready_us[i] = h->host_us;
    see_node(h, i);
}

static void step(struct history *h)
{
    static void (*const changes[])(struct history *h) = {
        new_pod, new_pod, end_pod, change_node, see_all, change_guarantee, change_grant};

    h->host_us += (1 + below(h, 50)) * SECOND;
    if (!below(h, 6))
        h->skew_us = (below(h, 4 * 3600) - 2 * 3600) * SECOND;
    changes[below(h, COUNT(changes))](h);
    if (!below(h, 12))
        restart(h);
    if (!below(h, 4))
        DO(observer_seen(h->w.observer, now(h), &h->w.err));
}

static void history_begin(struct history *h, uint64_t seed)
{
    *h = (struct history){.seed = seed * 7919, .host_us = BEGIN, .nodes_fail = seed % 2};
    world_open(&h->w);
    for (int i = 0; i < NODES; i++) {
        h->there[i] = h->ready[i] = true;
        h->ready_us[i] = BEGIN - HOUR;
    }
    h->host_us = BEGIN + 5 * HOUR;
    start(h);
    see_all(h);
    h->always_bound = seed / 2 % 2;
    change_guarantee(h);
    DO(ledger_commit(h->w.ledger, &h->w.err));
}

static void every_history_adds_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct fleet_records before, r;
        struct history h;
        const char *why;

        history_begin(&h, seed);
        before = records_of(&h.w);
        for (int i = 0; i < STEPS; i++) {
            step(&h);
            DO(ledger_commit(h.w.ledger, &h.w.err));
            r = records_of(&h.w);
            why = judge(h.w.a, &before, &r, h.nodes_fail);
            if (why)
                fail_msg("seed %llu, step %d: %s", (unsigned long long)seed, i, why);
            before = r;
        }
        history_end(&h);
    }
}

/* --- the judge can find fault --- */

static void spoil_end(struct fleet_records *r)
{
    r->holds[0].end_us = r->holds[0].begin_us - 1;
}

static void spoil_twice(struct fleet_records *r)
{
    r->holds[1] = r->holds[0];
}

static void spoil_quantity(struct fleet_records *r)
{
    r->holds[0].gpu_eq.num = -1;
}

static void spoil_begin(struct fleet_records *r)
{
    r->holds[0].begin_us = r->begin_us - 1;
}

static void spoil_unhealthy(struct fleet_records *r)
{
    r->capacities[0].unhealthy.num = -3;
}

static void spoil_capacity(struct fleet_records *r)
{
    r->capacities[0].unhealthy.num = r->capacities[0].total.num + 1;
}

static void spoil_gap(struct fleet_records *r)
{
    r->gaps[1].from_us = r->gaps[0].until_us - 1;
}

static void spoil_gap_end(struct fleet_records *r)
{
    r->gaps[0].until_us = r->gaps[0].from_us;
}

static void spoil_price(struct fleet_records *r)
{
    r->prices[1].from_us = r->prices[0].from_us - 1;
}

static void spoil_guarantee(struct fleet_records *r)
{
    r->guarantees[0].from_us = r->begin_us - 1;
}

static void spoil_guarantees(struct fleet_records *r)
{
    r->guarantees[0].from_us = r->begin_us + 1;
    r->guarantees[1].from_us = r->begin_us;
}

static void spoil_bound(struct fleet_records *r)
{
    r->guarantees[1].bound = false;
    r->guarantees[1].guarantee.num = 1;
}

static void spoil_seen(struct fleet_records *r)
{
    r->seen_us--;
}

static void spoil_row(struct fleet_records *r)
{
    r->n_capacities--;
}

static void planted_defects_are_found(void **state)
{
    static const struct {
        void (*spoil)(struct fleet_records *r);
        const char *why;
    } plants[] = {
        {spoil_end, "a hold ends before it begins"},
        {spoil_twice, "a pod has two holds"},
        {spoil_quantity, "a hold of nothing, or less"},
        {spoil_begin, "a hold begins before the ledger"},
        {spoil_unhealthy, "a node has more unhealthy than all, or less than none"},
        {spoil_capacity, "a node has more unhealthy than all, or less than none"},
        {spoil_gap, "two gaps of one time"},
        {spoil_gap_end, "a gap of no time, or less"},
        {spoil_price, "a price that changes the past"},
        {spoil_guarantee, "a guarantee before the ledger"},
        {spoil_guarantees, "a guarantee that changes the past"},
        {spoil_bound, "a guarantee without a binding"},
        {spoil_seen, "what was seen is not seen any more"},
        {spoil_row, "a row is gone"},
    };
    const struct fleet_records none = {0};
    struct history h;

    (void)state;
    history_begin(&h, 2);
    while (records_of(&h.w).n_gaps < 2 || records_of(&h.w).n_holds < 2 ||
           records_of(&h.w).n_prices < 2 || records_of(&h.w).n_guarantees < 2) {
        step(&h);
        DO(ledger_commit(h.w.ledger, &h.w.err));
    }
    for (size_t i = 0; i < COUNT(plants); i++) {
        struct fleet_records good = records_of(&h.w), bad = records_of(&h.w), begin = none;
        const char *why;

        begin.begin_us = good.begin_us;
        assert_null(judge(h.w.a, &good, &good, false));
        plants[i].spoil(&bad);
        why = judge(h.w.a, i < COUNT(plants) - 2 ? &begin : &good, &bad, false);
        assert_non_null(why);
        assert_string_equal(why, plants[i].why);
    }
    history_end(&h);
}

/* Rows that the writer takes but no observer writes: they are in the file, and are found there. */
static void planted_rows_are_found(void **state)
{
    struct fleet_capacity c = {.node = STR("n0"), .pool = STR("a100"), .product = STR("A100")};
    struct fleet_gap gap = {BEGIN + 8 * HOUR, BEGIN + 9 * HOUR};
    struct fleet_records before, r;
    struct history h;

    (void)state;
    history_begin(&h, 2);
    before = records_of(&h.w);
    c.from_us = BEGIN + 6 * HOUR;
    c.total = (struct rational){1, 1};
    c.unhealthy = (struct rational){2, 1};
    DO(ledger_add_capacity(h.w.ledger, &c, &h.w.err));
    DO(ledger_commit(h.w.ledger, &h.w.err));
    r = records_of(&h.w);
    assert_string_equal(judge(h.w.a, &before, &r, true),
                        "a node has more unhealthy than all, or less than none");
    history_end(&h);

    history_begin(&h, 2);
    before = records_of(&h.w);
    DO(ledger_add_gap(h.w.ledger, &gap, &h.w.err));
    DO(ledger_commit(h.w.ledger, &h.w.err));
    r = records_of(&h.w);
    assert_string_equal(judge(h.w.a, &before, &r, true), "a gap of what was not seen yet");
    history_end(&h);
}

/* A price is from now on, whatever the clock says: what was seen stays at what it cost. */
static void a_price_does_not_change_the_past(void **state)
{
    struct fleet_records r;
    struct history h;

    (void)state;
    history_begin(&h, 2);
    h.skew_us = HOUR;
    kill_all(&h);
    h.w.pool.price = STR("5");
    start(&h);
    DO(observer_seen(h.w.observer, now(&h), &h.w.err));
    DO(ledger_commit(h.w.ledger, &h.w.err));
    h.skew_us = 10 * SECOND;
    kill_all(&h);
    h.w.pool.price = STR("7");
    start(&h);
    DO(ledger_commit(h.w.ledger, &h.w.err));
    r = records_of(&h.w);
    assert_int_equal(r.n_prices, 3);
    assert_int_equal(r.prices[1].from_us, BEGIN + 6 * HOUR);
    assert_int_equal(r.prices[2].from_us, BEGIN + 6 * HOUR);
    history_end(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_history_adds_up),
        cmocka_unit_test(planted_defects_are_found),
        cmocka_unit_test(planted_rows_are_found),
        cmocka_unit_test(a_price_does_not_change_the_past),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
