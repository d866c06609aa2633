/* SPDX-License-Identifier: Apache-2.0 */
/* Grants as arithmetic: cases with the figures an administrator expects, and random histories of
 * pools, tenants and interrupted writes in which no GPU is promised or held twice. */
#include "test.h"

#include <sublet/buf.h>

#include "grants/share.h"

#define MOST 8

static struct rational of(int64_t num, int64_t den)
{
    struct rational r = RATIONAL_ZERO;

    assert_true(rational_add((struct rational){0, den}, (struct rational){num, den}, &r));
    return r;
}

static struct share_binding binding(size_t tenant, int64_t guarantee, int64_t burst, int64_t lend)
{
    return (struct share_binding){.tenant = tenant,
                                  .guarantee = of(guarantee, 1),
                                  .burst = of(burst, 1),
                                  .lend = of(lend, 1),
                                  .lent = RATIONAL_ZERO,
                                  .paused_lend = RATIONAL_ZERO,
                                  .wants = RATIONAL_ZERO,
                                  .holds = RATIONAL_ZERO,
                                  .placed = RATIONAL_ZERO,
                                  .grant = RATIONAL_ZERO,
                                  .quota = RATIONAL_ZERO,
                                  .pending = RATIONAL_ZERO};
}

static struct share_pool pool(int64_t gpus)
{
    return (struct share_pool){.total = of(gpus, 1),
                               .healthy = of(gpus, 1),
                               .capacity = of(gpus, 1),
                               .serving = of(gpus, 1),
                               .stranded = RATIONAL_ZERO,
                               .parts = 7};
}

static void check_targets(struct share_binding *b, size_t n, struct share_pool *p, size_t n_pools,
                          const char *want)
{
    struct arena *a = arena_new(0);
    struct buf got = BUF_INIT(0);

    share_targets(b, n, p, n_pools);
    for (size_t i = 0; i < n; i++)
        buf_printf(&got, "%s%.*s", i ? " " : "", STR_F(rational_format(a, b[i].target)));
    assert_str(buf_str(&got), want);
    buf_fini(&got);
    arena_free(a);
}

static void guarantees_and_what_is_left(void **state)
{
    struct share_pool p = pool(16);
    struct share_binding b[] = {binding(0, 4, 8, 0), binding(1, 4, 4, 0), binding(2, 0, 16, 0)};

    (void)state;
    /* 8 are left; the weights are 4, 4 and 1 */
    check_targets(b, 3, &p, 1, "8 7 1");
    b[0].says = true; /* it wants no more than it holds: the others may borrow what it would */
    b[0].holds = of(2, 1);
    check_targets(b, 3, &p, 1, "4 8 4");
    assert_int_equal(p.guaranteed.num, 8);
    assert_int_equal(p.granted.num, 16);
}

static void lends_no_more_than_it_may(void **state)
{
    struct share_pool p = pool(8);
    struct share_binding b[] = {binding(0, 8, 0, 3), binding(1, 0, 8, 0)};

    (void)state;
    check_targets(b, 2, &p, 1, "8 0"); /* it does not say what it wants: nothing is lent */
    b[0].says = true;
    check_targets(b, 2, &p, 1, "5 3");
    b[0].wants = of(6, 1);
    check_targets(b, 2, &p, 1, "6 2");
    b[0].wants = of(100, 1);
    check_targets(b, 2, &p, 1, "8 0");
    b[0].wants = RATIONAL_ZERO;
    b[1].burst = of(1, 1); /* 2 are lent to no one */
    check_targets(b, 2, &p, 1, "7 1");
    b[1].says = true; /* it does not want it */
    check_targets(b, 2, &p, 1, "8 0");
    b[1].invalid = true;
    check_targets(b, 2, &p, 1, "8 0");
}

static void refuses_what_does_not_fit(void **state)
{
    struct share_pool p[] = {pool(8), pool(8)};
    struct share_binding b[] = {binding(0, 6, 0, 0), binding(1, 4, 0, 0), binding(2, 2, 0, 0),
                                binding(0, 1, 0, 0), binding(0, 2, 9, 0), binding(1, 0, 1, 0),
                                binding(3, 1, 0, 0)};

    (void)state;
    b[4].pool = b[5].pool = 1;
    b[6].pool = SHARE_NO_POOL;
    p[1].dedicated = true;
    check_targets(b, 7, p, 2, "6 0 2 0 8 0 0");
    assert_int_equal(b[0].state, SHARE_READY);
    assert_int_equal(b[1].state, SHARE_OVERCOMMITTED);
    assert_int_equal(b[2].state, SHARE_READY);
    assert_int_equal(b[3].state, SHARE_ALREADY_BOUND);
    assert_int_equal(b[5].state, SHARE_POOL_DEDICATED);
    assert_int_equal(b[6].state, SHARE_POOL_NOT_FOUND);
    assert_true(p[0].overcommitted && !p[0].short_of && !p[1].overcommitted);
    /* A node is unhealthy: no binding is refused for it, nor is a grant of a guarantee less. */
    p[0].serving = of(7, 1);
    check_targets(b, 7, p, 2, "6 0 2 0 8 0 0");
    assert_int_equal(b[2].state, SHARE_READY);
    assert_true(p[0].short_of);
}

static void the_dominant_share_counts_over_pools(void **state)
{
    struct share_pool p[] = {pool(10), pool(10)};
    struct share_binding b[] = {binding(0, 0, 8, 0), binding(0, 0, 10, 0), binding(1, 0, 10, 0)};

    (void)state;
    b[0].pool =
        0; /* tenant 0 borrows 8 of pool 0 without a rival: it is as rich as tenant 1 with 8 */
    b[1].pool = b[2].pool = 1;
    check_targets(b, 3, p, 2, "8 2 8");
}

static void fractions_are_exact(void **state)
{
    struct share_pool p = pool(1);
    struct share_binding b[] = {binding(0, 0, 0, 0), binding(1, 0, 9, 0)};

    (void)state;
    b[0].guarantee = of(3, 7);
    check_targets(b, 2, &p, 1, "3/7 4/7");
    b[0].holds = of(2, 7); /* its pods hold sevenths */
    check_targets(b, 2, &p, 1, "3/7 4/7");
    assert_int_equal(rational_cmp(b[0].holds, of(2, 7)), 0);
}

/* One whose numbers no sum can hold is invalid; others, and other pools, go on. */
static void numbers_of_one_stop_no_other(void **state)
{
    static const int64_t primes[] = {9973, 9967, 9949, 9941, 9931, 9929};
    struct share_pool p[] = {pool(16), pool(8)};
    struct share_binding b[9];

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        b[i] = binding(i, 0, 0, 0);
        b[i].guarantee = of(1, primes[i]);
    }
    b[6] = binding(6, 4, 0, 0);
    b[7] = binding(7, 0, 1, 0);
    b[7].guarantee = (struct rational){INT64_MAX, 2};
    b[8] = binding(8, 4, 4, 0);
    b[8].pool = 1;
    for (size_t i = 0; i < 9; i++) { /* of tenants and of other hands */
        b[i].says = true;
        b[i].wants = (struct rational){INT64_MAX, INT64_MAX - 1};
        b[i].holds = (struct rational){1, INT64_MAX - 2 - (int64_t)i};
    }
    b[8].wants = of(4, 1);
    b[0].holds = b[0].grant = b[0].quota = (struct rational){INT64_MAX, 9949};
    share_targets(b, 9, p, 2);
    share_writes(b, 9, p, 2);
    assert_false(p[0].overflow || p[1].overflow);
    assert_int_equal(b[0].state, SHARE_READY);
    for (size_t i = 1; i < 6; i++)
        assert_int_equal(b[i].state, SHARE_INVALID);
    assert_int_equal(b[7].state, SHARE_INVALID);
    assert_int_equal(b[6].state, SHARE_READY);
    assert_int_equal(rational_cmp(b[6].target, of(4, 1)), 0);
    assert_int_equal(b[8].write, SHARE_WRITE_QUOTA);
    assert_int_equal(rational_cmp(b[8].value, of(8, 1)), 0);
    p[0].total = (struct rational){INT64_MAX, 3}; /* a pool that makes no sense */
    share_targets(b, 9, p, 2);
    share_writes(b, 9, p, 2);
    assert_true(p[0].overflow && !p[1].overflow);
    assert_int_equal(b[8].write, SHARE_WRITE_QUOTA);
}

static void held(struct share_binding *b, int64_t placed, int64_t waiting)
{
    b->placed = of(placed, 1);
    b->holds = of(placed + waiting, 1);
}

static void health_takes_no_guarantee(void **state)
{
    struct share_pool p = pool(10);
    struct share_binding b[] = {binding(0, 5, 0, 0), binding(1, 5, 5, 0)};

    (void)state;
    /* The node of tenant 0, which is older, is down: what it holds there is not for others. */
    held(&b[0], 5, 0);
    held(&b[1], 5, 0);
    p.serving = p.stranded = of(5, 1);
    check_targets(b, 2, &p, 1, "5 5");
    held(&b[0], 0, 5); /* its pods are replaced, and wait */
    p.stranded = RATIONAL_ZERO;
    check_targets(b, 2, &p, 1, "5 5");
    b[1].guarantee = RATIONAL_ZERO; /* what is borrowed goes back, to a claim */
    check_targets(b, 2, &p, 1, "5 0");
    b[0].invalid = true;
    check_targets(b, 2, &p, 1, "0 5");
    /* All that it holds is on both nodes: no other may have it, none of it is taken. */
    b[1].burst = of(10, 1);
    held(&b[1], 10, 0);
    p.stranded = of(5, 1);
    check_targets(b, 2, &p, 1, "0 10");
}

static void nodes_that_leave_refuse_no_binding_that_counts(void **state)
{
    struct share_pool p = pool(92);
    struct share_binding b[] = {binding(0, 50, 0, 0), binding(1, 50, 0, 0), binding(2, 1, 0, 0)};

    (void)state;
    b[0].was_ready = b[1].was_ready = true;
    held(&b[0], 42, 8);
    held(&b[1], 50, 0);
    check_targets(b, 3, &p, 1, "42 50 0"); /* what runs comes first */
    assert_int_equal(b[1].state, SHARE_READY);
    assert_int_equal(b[2].state, SHARE_OVERCOMMITTED);
    assert_true(p.short_of);
    p = pool(100); /* an older one that would fit without it is not served at its cost */
    b[0].was_ready = false;
    b[0].guarantee = of(60, 1);
    check_targets(b, 3, &p, 1, "0 50 1");
    p = pool(0);
    check_targets(b, 3, &p, 1, "0 0 0");
    assert_int_equal(b[1].state, SHARE_READY);
    p = pool(4);
    p.dedicated = true;
    b[0].was_ready = b[1].was_ready = false;
    check_targets(b, 3, &p, 1, "0 0 0"); /* it stays with its first, whether that fits or not */
    assert_int_equal(b[0].state, SHARE_OVERCOMMITTED);
    assert_int_equal(b[1].state, SHARE_POOL_DEDICATED);
    assert_int_equal(b[2].state, SHARE_POOL_DEDICATED);
}

static void check_write(const struct share_binding *b, enum share_write write, int64_t value)
{
    assert_int_equal(b->write, write);
    if (write != SHARE_KEEP)
        assert_int_equal(rational_cmp(b->value, of(value, 1)), 0);
}

/* Cases of share_pause(): 8 guaranteed, 8 may be lent. */
static void check_pause(struct share_binding *b, int64_t wants, int64_t now_s, int64_t lend,
                        int64_t until_s)
{
    b->lend = of(8, 1);
    b->wants = of(wants, 1);
    share_pause(b, now_s, 100, 1);
    assert_int_equal(rational_cmp(b->lend, of(lend, 1)), 0);
    assert_int_equal(b->paused_until_s, until_s);
}

static void a_lender_that_takes_back_pauses(void **state)
{
    struct share_binding b = binding(0, 8, 0, 8);

    (void)state;
    b.says = true;
    check_pause(&b, 3, 1000, 8, 0); /* nothing is lent */
    b.lent = of(5, 1);
    check_pause(&b, 3, 1000, 8, 0); /* it wants no more than it has */
    check_pause(&b, 4, 1000, 4, 1100);
    b.lent = of(4, 1);
    check_pause(&b, 0, 1050, 4, 1100);
    check_pause(&b, 4, 1099, 4, 1100);
    check_pause(&b, 6, 1099, 2, 1199);
    b.lent = of(2, 1);
    check_pause(&b, 0, 1198, 2, 1199);
    check_pause(&b, 0, 1199, 8, 0);
    b.lent = of(8, 1);
    b.says = false;
    check_pause(&b, 0, 1200, 0, 1300);
    b.lent = of(8, 1);
    share_pause(&b, 1200, 0, 1); /* it is off */
    assert_int_equal(b.paused_until_s, 0);
}

/* The status is the host's, and another hand may write it. */
static void what_is_paused_widens_no_unit(void **state)
{
    struct share_pool p = pool(8);
    struct share_binding b[] = {binding(0, 4, 4, 4), binding(1, 0, 0, 0)};

    (void)state;
    b[1].guarantee = of(1, 10037);
    b[0].paused_until_s = 1100;
    b[0].paused_lend = of(19947, 9973); /* 2 and 1/9973 */
    share_pause(&b[0], 1000, 100, 2);
    assert_int_equal(rational_cmp(b[0].lend, of(2, 1)), 0);
    check_targets(b, 2, &p, 1, "80295/10037 1/10037");
    b[0].lend = of(4, 1);
    b[0].paused_lend = of(5, 2); /* of halves, as its pods hold */
    share_pause(&b[0], 1000, 100, 2);
    assert_int_equal(rational_cmp(b[0].lend, of(5, 2)), 0);
    assert_int_equal(b[0].paused_until_s, 1100);
}

/* 12 of 16 are healthy: the other one borrows what the lender does not want of them. */
static void a_pool_that_is_short_lends_as_well(void **state)
{
    struct share_pool p = pool(16);
    struct share_binding b[] = {binding(0, 8, 0, 6), binding(1, 8, 8, 0)};

    (void)state;
    p.serving = of(12, 1);
    b[0].says = true;
    b[0].wants = of(1, 1);
    check_targets(b, 2, &p, 1, "6 10");
    assert_true(p.short_of);
    assert_int_equal(rational_cmp(share_lent(&b[0], &p), of(2, 1)), 0);
    assert_int_equal(share_lent(&b[1], &p).num, 0);
    b[0].lent = of(2, 1);
    b[0].wants = of(7, 1);
    share_pause(&b[0], 1000, 100, 1);
    assert_int_equal(b[0].paused_until_s, 1100);
    assert_int_equal(rational_cmp(b[0].lend, of(1, 1)), 0);
    /* What it wants, and is not there, is not lent. */
    p = pool(4);
    b[0] = binding(0, 8, 0, 0);
    b[1] = binding(1, 8, 0, 0);
    b[0].lend = b[1].lend = of(8, 1);
    b[0].says = b[1].says = b[0].was_ready = b[1].was_ready = true;
    b[0].wants = b[1].wants = of(8, 1);
    check_targets(b, 2, &p, 1, "4 0");
    assert_int_equal(share_lent(&b[0], &p).num, 0);
    assert_int_equal(share_lent(&b[1], &p).num, 0);
}

/* Tenant 0 has all of the pool and holds it; tenant 1 wants its guarantee. */
static void writes_in_the_order_that_cannot_overshoot(void **state)
{
    struct share_pool p = pool(8);
    struct share_binding b[] = {binding(0, 4, 4, 0), binding(1, 4, 0, 0)};

    (void)state;
    b[0].grant = b[0].quota = b[0].holds = of(8, 1);
    share_targets(b, 2, &p, 1);
    share_writes(b, 2, &p, 1);
    check_write(&b[0], SHARE_WRITE_GRANT, 4);
    check_write(&b[1], SHARE_KEEP, 0);
    b[0].grant = of(4, 1);
    share_writes(b, 2, &p, 1); /* its pods still run */
    check_write(&b[0], SHARE_KEEP, 0);
    check_write(&b[1], SHARE_KEEP, 0);
    b[0].holds = of(4, 1);
    share_writes(b, 2, &p, 1);
    check_write(&b[0], SHARE_WRITE_QUOTA, 4);
    check_write(&b[1], SHARE_KEEP, 0);
    b[0].quota = of(4, 1);
    share_writes(b, 2, &p, 1);
    check_write(&b[0], SHARE_KEEP, 0);
    check_write(&b[1], SHARE_WRITE_QUOTA, 4);
    b[1].pending = of(4, 1); /* no answer: it may have arrived, and is tried again */
    share_writes(b, 2, &p, 1);
    check_write(&b[1], SHARE_WRITE_QUOTA, 4);
    b[1].quota = of(4, 1);
    b[1].pending = RATIONAL_ZERO;
    share_writes(b, 2, &p, 1);
    check_write(&b[1], SHARE_WRITE_GRANT, 4);
    b[1].grant = of(4, 1);
    share_writes(b, 2, &p, 1);
    check_write(&b[0], SHARE_KEEP, 0);
    check_write(&b[1], SHARE_KEEP, 0);
}

/* What is given back is another's, however long the last pod takes. */
static void a_quota_follows_what_is_given_back(void **state)
{
    struct share_pool p = pool(10);
    struct share_binding b[] = {binding(0, 4, 6, 0), binding(1, 6, 0, 0)};

    (void)state;
    b[0].quota = of(10, 1);
    b[0].grant = of(4, 1);
    b[0].holds = of(10, 1);
    for (int64_t holds = 9; holds >= 4; holds--) {
        b[0].holds = of(holds, 1);
        share_targets(b, 2, &p, 1);
        share_writes(b, 2, &p, 1);
        check_write(&b[0], SHARE_WRITE_QUOTA, holds);
        check_write(&b[1], holds == 9 ? SHARE_KEEP : SHARE_WRITE_GRANT, 9 - holds);
        b[1].grant = b[1].quota;
        b[0].quota = of(holds, 1);
        share_targets(b, 2, &p, 1);
        share_writes(b, 2, &p, 1);
        check_write(&b[0], SHARE_KEEP, 0);
        check_write(&b[1], SHARE_WRITE_QUOTA, 10 - holds);
        b[1].quota = of(10 - holds, 1);
    }
}

/* --- random histories --- */

#define PAUSE_S 300

/* What was taken back last. */
struct pause {
    int64_t until_s;
    struct rational lend;
};
struct history {
    uint64_t random;
    int64_t now_s;
    struct pause pauses[MOST];
    struct share_pool pools[2];
    struct share_binding b[MOST];
    size_t n;
};

static struct rational some(struct history *h, int64_t most)
{
    return of(BELOW(&h->random, most + 1), BELOW(&h->random, 3) ? 1 : 7);
}

static void begin(struct history *h, uint64_t seed)
{
    *h = (struct history){.random = seed * 0x9e3779b97f4a7c15u + 1, .now_s = 1000};
    for (size_t p = 0; p < 2; p++) {
        h->pools[p] = pool(1 + BELOW(&h->random, 24));
        h->pools[p].serving = of(BELOW(&h->random, h->pools[p].total.num + 1), 1);
        h->pools[p].dedicated = BELOW(&h->random, 5) == 0;
    }
    h->n = 1 + (size_t)BELOW(&h->random, MOST);
    for (size_t i = 0; i < h->n; i++) {
        h->b[i] = binding(i / 2, 0, 0, 0);
        h->b[i].pool = i % 2;
        h->b[i].guarantee = some(h, 10);
        h->b[i].burst = some(h, 12);
        h->b[i].lend = BELOW(&h->random, 2) ? h->b[i].guarantee : RATIONAL_ZERO;
        h->b[i].says = BELOW(&h->random, 3) > 0;
    }
}

/* What a tenant can make its pods hold, whether it obeys its grant or not. */
static void tenant_acts(struct history *h)
{
    struct share_binding *b = &h->b[BELOW(&h->random, h->n)];
    bool obeys = BELOW(&h->random, 2) > 0;
    struct rational may = obeys ? b->grant : b->quota, next = some(h, 12);

    if (BELOW(&h->random, 3) == 0)
        b->wants = some(h, 30);
    if (rational_cmp(next, may) <= 0 || rational_cmp(next, b->holds) < 0)
        b->holds = next;
}

static void check_pools(const struct history *h)
{
    for (size_t p = 0; p < 2; p++) {
        struct rational promised = RATIONAL_ZERO, held = RATIONAL_ZERO;

        for (size_t i = 0; i < h->n; i++) {
            const struct share_binding *b = &h->b[i];
            bool more = rational_cmp(b->quota, b->grant) > 0;

            if (b->pool != p)
                continue;
            assert_true(rational_add(promised, more ? b->quota : b->grant, &promised));
            assert_true(rational_add(held, b->holds, &held));
            assert_true(rational_cmp(b->holds, b->quota) <= 0); /* whether it obeys or not */
        }
        assert_true(rational_cmp(promised, h->pools[p].capacity) <= 0);
        assert_true(rational_cmp(held, h->pools[p].capacity) <= 0);
    }
}

/* A write arrives, against the host as it is then: a ResourceQuota that admission has charged
 * meanwhile is another version. */
static void arrives(struct history *h, const struct share_binding *planned, size_t i)
{
    struct share_binding *b = &h->b[i];

    if (planned->write == SHARE_WRITE_GRANT)
        b->grant = planned->value;
    else if (planned->write == SHARE_WRITE_QUOTA && rational_cmp(planned->value, b->holds) >= 0)
        b->quota = planned->value;
    b->lent = share_lent(planned, h->pools);
    b->paused_until_s = planned->paused_until_s;
    b->paused_lend = planned->paused_lend;
    if (b->paused_until_s > h->pauses[i].until_s)
        h->pauses[i] = (struct pause){b->paused_until_s, b->paused_lend};
}

/* What a lender took back it does not lend before its time, of what it did not take back it lends
 * as before, and its report alone begins a pause. */
static void check_lending(const struct history *h, const struct share_binding *all, size_t i)
{
    const struct share_binding *spec = &h->b[i], *planned = &all[i];
    struct rational lent = share_lent(planned, h->pools), left = RATIONAL_ZERO;

    if (spec->says &&
        rational_sub(spec->guarantee,
                     rational_cmp(spec->wants, spec->holds) > 0 ? spec->wants : spec->holds,
                     &left) &&
        left.num < 0)
        left = RATIONAL_ZERO;
    assert_true(rational_cmp(lent, left) <= 0);
    assert_true(rational_cmp(planned->lend, spec->lend) <= 0);
    assert_true(rational_cmp(lent, planned->lend) <= 0);
    if (h->now_s < h->pauses[i].until_s)
        assert_true(rational_cmp(lent, h->pauses[i].lend) <= 0);
    else if (rational_cmp(spec->lent, left) <= 0)
        assert_true(!planned->paused_until_s && !rational_cmp(planned->lend, spec->lend));
    assert_true(planned->paused_until_s <= h->now_s + PAUSE_S);
}

static void plan(struct history *h, struct share_binding *ret)
{
    memcpy(ret, h->b, sizeof(h->b));
    for (size_t i = 0; i < h->n; i++) {
        ret[i].placed = ret[i].holds;
        ret[i].was_ready = BELOW(&h->random, 2) && ret[i].grant.num > 0;
    }
    for (size_t i = 0; i < h->n; i++)
        share_pause(&ret[i], h->now_s, PAUSE_S, 7);
    share_targets(ret, h->n, h->pools, 2);
    share_writes(ret, h->n, h->pools, 2);
    for (size_t i = 0; i < h->n; i++)
        check_lending(h, ret, i);
    for (size_t i = 0; i < h->n; i++)
        if (ret[i].state == SHARE_READY && !h->pools[ret[i].pool].short_of)
            assert_true(rational_cmp(ret[i].holds, ret[i].guarantee) > 0 ||
                        rational_cmp(ret[i].target, ret[i].holds) >= 0);
    assert_false(h->pools[0].overflow || h->pools[1].overflow);
}

/* Some of the writes that a process plans arrive, in any order, between them whatever tenants do;
 * then it is killed, or its successor plans anew. */
static void round_of(struct history *h)
{
    struct share_binding planned[MOST];

    h->now_s += BELOW(&h->random, 200);
    plan(h, planned);
    for (size_t k = (size_t)BELOW(&h->random, 2 * h->n + 1); k-- > 0;) {
        size_t i = (size_t)BELOW(&h->random, h->n);

        arrives(h, &planned[i], i);
        planned[i].write = SHARE_KEEP;
        check_pools(h);
        tenant_acts(h);
        check_pools(h);
    }
}

static bool settles(struct history *h, struct share_binding *planned)
{
    bool moved = false;

    for (size_t i = 0; i < h->n; i++) /* tenants end what is beyond their grants */
        if (rational_cmp(h->b[i].holds, h->b[i].grant) > 0)
            h->b[i].holds = h->b[i].grant;
    plan(h, planned);
    for (size_t i = 0; i < h->n; i++) {
        arrives(h, &planned[i], i);
        moved |= planned[i].write != SHARE_KEEP;
        check_pools(h);
    }
    return !moved;
}

/* What it wants of its guarantee. */
static struct rational due(const struct share_binding *b)
{
    struct rational wants = rational_cmp(b->wants, b->holds) > 0 ? b->wants : b->holds;

    return b->says && rational_cmp(wants, b->guarantee) < 0 ? wants : b->guarantee;
}

/* Once tenants obey, a few rounds give each what it wants of its guarantee. */
static void end(struct history *h)
{
    struct share_binding planned[MOST];
    int rounds = 0;

    while (!settles(h, planned))
        assert_true(++rounds < 6);
    for (size_t i = 0; i < h->n; i++) {
        const struct share_binding *b = &planned[i];

        assert_int_equal(rational_cmp(b->grant, b->target), 0);
        if (b->state == SHARE_READY)
            assert_true(rational_cmp(b->grant, due(b)) >= 0);
        else
            assert_int_equal(b->grant.num, 0);
    }
}

/* Whatever one tenant reports, each of the others has what it wants of its own guarantee; and it
 * has its own back, no more than if it reported nothing. */
static void a_report_recalls_its_own_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct history h;
        size_t liar;

        begin(&h, seed);
        liar = (size_t)BELOW(&h.random, h.n);
        for (size_t i = 0; i < h.n; i++)
            h.b[i].wants = some(&h, 30);
        for (int64_t says = -1; says < 24; says += 6) {
            h.b[liar].says = says >= 0;
            h.b[liar].wants = of(says >= 0 ? says : 0, 1);
            share_targets(h.b, h.n, h.pools, 2);
            for (size_t i = 0; i < h.n; i++) {
                const struct share_pool *p = &h.pools[h.b[i].pool];

                if (h.b[i].state == SHARE_READY && rational_cmp(p->guaranteed, p->capacity) <= 0)
                    assert_true(rational_cmp(h.b[i].target, due(&h.b[i])) >= 0);
            }
        }
    }
}

static void nothing_is_promised_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100000; seed++) {
        struct history h;

        begin(&h, seed);
        for (int64_t rounds = BELOW(&h.random, 4); rounds >= 0; rounds--)
            round_of(&h);
        end(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarantees_and_what_is_left),
        cmocka_unit_test(lends_no_more_than_it_may),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(the_dominant_share_counts_over_pools),
        cmocka_unit_test(fractions_are_exact),
        cmocka_unit_test(a_lender_that_takes_back_pauses),
        cmocka_unit_test(what_is_paused_widens_no_unit),
        cmocka_unit_test(a_pool_that_is_short_lends_as_well),
        cmocka_unit_test(writes_in_the_order_that_cannot_overshoot),
        cmocka_unit_test(numbers_of_one_stop_no_other),
        cmocka_unit_test(health_takes_no_guarantee),
        cmocka_unit_test(nodes_that_leave_refuse_no_binding_that_counts),
        cmocka_unit_test(a_quota_follows_what_is_given_back),
        cmocka_unit_test(a_report_recalls_its_own_alone),
        cmocka_unit_test(nothing_is_promised_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
