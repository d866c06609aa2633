/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of grants. Guarantees are served oldest first: one that does not fit into the pool
 * beside those that count already is refused whole, and one that counts stays. Where nodes are
 * fewer than guarantees, what runs within a guarantee comes first. Of what a tenant reports that it
 * does not want, at most `lend` is lent; what it takes back it does not lend again for a time. What
 * is healthy of what is left is borrowed in small portions, each for the tenant whose weighted
 * dominant share is the least: of all pools the greatest borrowed / (capacity x weight), where the
 * weight is the guarantee, and at least 1. What no tenant wants is headroom, in the same way, so
 * that a tenant need not wait for a round while GPUs are idle.
 *
 * A grant and the ResourceQuota behind it move so:
 *
 *   raise: quota up --> grant up           into room that no other binding can still use
 *   lower: grant down --> pods end --> quota down, with each of them --> room
 *
 * Must never count on a write that was not observed, nor on a tenant that obeys: what a binding may
 * still use is the greatest of its grant, its quota, what its pods hold and what is under way. Nor
 * may the numbers of one binding keep another, or another pool, from theirs. */
#include "share.h"

#include <sublet/fleet_usage.h>

#define PORTIONS   256 /* of what is borrowed of a pool at once: bounds the rounds */
#define MOST_UNIT  INT64_C(100000000)
#define MOST_WHOLE INT64_C(1000000000) /* GPUs. Times MOST_UNIT, and some such, it is an int64_t */

struct shares {
    struct share_binding *b;
    size_t n;
    struct share_pool *pools;
    size_t n_pools;
    struct rational *spare;    /* of the capacity, by pool */
    struct rational *lendable; /* of what can be used, by pool: less than nothing is nothing */
    struct rational *portion;  /* by pool */
    struct exact *dominant;    /* by tenant */
    size_t *rows;              /* n of them, of fill() */
};

static struct rational plus(struct share_pool *p, struct rational a, struct rational b)
{
    struct rational sum = a;

    p->overflow |= !rational_add(a, b, &sum);
    return sum;
}

static struct rational minus(struct share_pool *p, struct rational a, struct rational b)
{
    struct rational left = a;

    p->overflow |= !rational_sub(a, b, &left);
    return left;
}

static struct rational least(struct rational a, struct rational b)
{
    return rational_cmp(a, b) < 0 ? a : b;
}

static struct rational most(struct rational a, struct rational b)
{
    return rational_cmp(a, b) > 0 ? a : b;
}

static struct rational limit_of(struct shares *s, const struct share_binding *b)
{
    return plus(&s->pools[b->pool], b->guarantee, b->burst);
}

/* What it would use now, within its limit. */
static struct rational wants(struct shares *s, const struct share_binding *b)
{
    struct rational limit = limit_of(s, b);

    return b->says ? least(most(b->wants, b->holds), limit) : limit;
}

/* --- units --- */

static bool is_bounded(struct rational r)
{
    return r.num >= 0 && r.num / r.den < MOST_WHOLE;
}

/* The least common multiple with the denominator; false where it is beyond the bound. */
static bool widen(int64_t *unit, int64_t den)
{
    int64_t a = *unit, b = den, rest;

    while (b) {
        rest = a % b;
        a = b;
        b = rest;
    }
    return !__builtin_mul_overflow(*unit / a, den, unit) && *unit <= MOST_UNIT;
}

static struct rational round_up(struct rational r, int64_t unit)
{
    struct rational up = {MOST_WHOLE, 1};
    int64_t rest = r.num % r.den;

    if (r.num <= 0)
        return RATIONAL_ZERO;
    if (!is_bounded(r))
        return up;
    (void)rational_add(
        (struct rational){r.num / r.den, 1},
        (struct rational){(int64_t)(((__int128)rest * unit + r.den - 1) / r.den), unit}, &up);
    return up;
}

static struct rational round_down(struct rational r, int64_t unit)
{
    struct rational down = {r.num / r.den, 1};
    int64_t rest = r.num % r.den;

    (void)rational_add(down, (struct rational){(int64_t)((__int128)rest * unit / r.den), unit},
                       &down);
    return down;
}

static void begin_pool(struct share_pool *p)
{
    struct rational *const all[] = {&p->total, &p->capacity, &p->serving, &p->stranded};

    p->guaranteed = p->granted = RATIONAL_ZERO;
    p->overcommitted = p->overflow = false;
    p->unit = 1;
    p->overflow = !widen(&p->unit, p->parts ? p->parts : 1);
    for (size_t i = 0; i < COUNT(all) && !p->overflow; i++)
        p->overflow = !is_bounded(*all[i]) || !widen(&p->unit, all[i]->den);
}

static bool has_unit(struct share_pool *p, const struct share_binding *b)
{
    int64_t unit = p->unit;

    if (!is_bounded(b->guarantee) || !is_bounded(b->burst) || !is_bounded(b->lend) ||
        !widen(&unit, b->guarantee.den) || !widen(&unit, b->burst.den) ||
        !widen(&unit, b->lend.den))
        return false;
    p->unit = unit;
    return true;
}

/* --- a lender that changes its mind --- */

/* Of its guarantee, what it does not want. */
static struct rational left_of(const struct share_binding *b)
{
    struct rational left;

    if (!b->says || !rational_sub(b->guarantee, most(b->wants, b->holds), &left) || left.num < 0)
        return RATIONAL_ZERO;
    return left;
}

/* The host shows what it may lend, and another hand may have written it: a multiple of what its
 * guarantee, its spec's lend and its pods can leave, so that it widens no unit. */
static struct rational in_parts(const struct share_binding *b, struct rational lend, int64_t parts)
{
    int64_t unit = parts ? parts : 1;

    if (!widen(&unit, b->guarantee.den) || !widen(&unit, b->lend.den) || !is_bounded(lend))
        return RATIONAL_ZERO;
    return round_down(lend, unit);
}

void share_pause(struct share_binding *b, int64_t now_s, int64_t pause_s, int64_t parts)
{
    struct rational left = left_of(b);

    if (b->paused_until_s > now_s + pause_s) /* the clock, or the configuration, was set back */
        b->paused_until_s = now_s + pause_s;
    if (b->paused_until_s <= now_s)
        b->paused_until_s = 0;
    b->paused_lend = in_parts(b, b->paused_lend, parts);
    left = in_parts(b, left, parts);
    if (b->paused_until_s)
        b->lend = least(b->lend, b->paused_lend);
    if (pause_s <= 0 || rational_cmp(b->lent, left) <= 0)
        return;
    b->paused_until_s = now_s + pause_s;
    b->paused_lend = b->lend = least(left, b->lend);
}

/* Of what its target lacks of its guarantee, the part that it does not want and may lend; the other
 * is what the pool is short of. Of one that holds all of the pool nothing is with others. */
struct rational share_lent(const struct share_binding *b, const struct share_pool *pools)
{
    struct rational lent;

    if (b->state != SHARE_READY || pools[b->pool].door != SHARE_OPEN || b->closed ||
        rational_cmp(b->holds, pools[b->pool].total) >= 0 ||
        !rational_sub(b->guarantee, b->target, &lent) || lent.num < 0)
        return RATIONAL_ZERO;
    return least(lent, least(b->lend, left_of(b)));
}

/* --- which bindings count --- */

/* By what the older ones name, whether it fits or not: a dedicated pool stays with its first. */
static enum share_state state_beside(const struct shares *s, size_t i)
{
    const struct share_binding *b = &s->b[i];
    enum share_state state = SHARE_READY;

    if (b->invalid)
        return SHARE_INVALID;
    if (b->pool == SHARE_NO_POOL)
        return SHARE_POOL_NOT_FOUND;
    for (size_t k = 0; k < i; k++) {
        if (s->b[k].pool != b->pool || s->b[k].invalid)
            continue;
        if (s->b[k].tenant == b->tenant)
            return SHARE_ALREADY_BOUND;
        if (s->pools[b->pool].dedicated)
            state = SHARE_POOL_DEDICATED;
    }
    return state;
}

static void admit(struct shares *s, size_t i)
{
    struct share_binding *b = &s->b[i];
    struct share_pool *pool = b->pool == SHARE_NO_POOL ? NULL : &s->pools[b->pool];
    struct rational sum;

    b->target = RATIONAL_ZERO;
    b->state = state_beside(s, i);
    if (b->state != SHARE_READY)
        return;
    if (!is_bounded(b->guarantee) || !rational_add(pool->guaranteed, b->guarantee, &sum)) {
        b->state = SHARE_INVALID;
        return;
    }
    if (rational_cmp(sum, pool->total) > 0 && b->guarantee.num && !b->was_ready) {
        b->state = SHARE_OVERCOMMITTED;
        pool->overcommitted = true;
        return;
    }
    if (has_unit(pool, b))
        pool->guaranteed = sum;
    else
        b->state = SHARE_INVALID;
}

/* Those that count already, then those that would. */
static void admit_all(struct shares *s)
{
    for (size_t p = 0; p < s->n_pools; p++)
        begin_pool(&s->pools[p]);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < s->n; i++)
            if (s->b[i].was_ready == !pass)
                admit(s, i);
    for (size_t i = 0; i < s->n; i++) {
        struct share_binding *b = &s->b[i];
        const struct share_pool *p = b->pool == SHARE_NO_POOL ? NULL : &s->pools[b->pool];

        if (!p)
            continue;
        b->wants = round_up(b->wants, p->unit);
        b->holds = least(round_up(b->holds, p->unit), p->total);
        b->placed = least(round_up(b->placed, p->unit), b->holds);
    }
}

/* --- guarantees --- */

static void give(struct shares *s, struct share_binding *b, struct rational more)
{
    struct share_pool *p = &s->pools[b->pool];
    struct rational given = least(more, s->spare[b->pool]);

    if (given.num <= 0 || p->overflow)
        return;
    b->target = plus(p, b->target, given);
    s->spare[b->pool] = minus(p, s->spare[b->pool], given);
    s->lendable[b->pool] = minus(p, s->lendable[b->pool], given);
}

static void give_upto(struct shares *s, struct share_binding *b, struct rational upto)
{
    give(s, b, minus(&s->pools[b->pool], upto, b->target));
}

/* First what runs within guarantees, then what else is wanted of them, then what of them is not for
 * others. */
static void give_guarantees(struct shares *s)
{
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < s->n; i++) {
            struct share_binding *b = &s->b[i];

            if (b->state != SHARE_READY)
                continue;
            give_upto(s, b,
                      pass == 0   ? least(b->placed, b->guarantee)
                      : pass == 1 ? least(wants(s, b), b->guarantee)
                                  : minus(&s->pools[b->pool], b->guarantee, b->lend));
        }
    for (size_t p = 0; p < s->n_pools; p++)
        s->pools[p].short_of = rational_cmp(s->pools[p].guaranteed, s->pools[p].serving) > 0;
}

/* --- what is borrowed --- */

/* Its share of the pool for one more unit of its weight. */
static struct exact share_of(struct shares *s, const struct share_binding *b)
{
    struct share_pool *p = &s->pools[b->pool];
    struct rational borrowed = minus(p, b->target, b->guarantee);
    struct exact weight = exact_of(most(b->guarantee, (struct rational){1, 1})), per, share;
    struct exact capacity = exact_of(p->capacity);

    if (borrowed.num <= 0 || capacity.num <= 0)
        return EXACT_ZERO;
    if (!exact_mul(weight, capacity, &per) ||
        !exact_mul(exact_of(borrowed), (struct exact){per.den, per.num}, &share)) {
        p->overflow = true;
        return EXACT_ZERO;
    }
    return share;
}

/* Bindings that are given more, in their order. One that has enough, or whose pool has nothing
 * left, stays so: it leaves. */
struct fillable {
    const struct rational *upto;
    size_t *rows, n;
};

static struct share_binding *poorest(struct shares *s, struct fillable *f)
{
    struct share_binding *best = NULL;
    size_t n = 0;

    for (size_t k = 0; k < f->n; k++) {
        size_t i = f->rows[k];
        struct share_binding *b = &s->b[i];

        if (s->pools[b->pool].overflow || s->spare[b->pool].num <= 0 ||
            s->lendable[b->pool].num <= 0 || rational_cmp(b->target, f->upto[i]) >= 0)
            continue;
        f->rows[n++] = i;
        if (!best || exact_cmp(s->dominant[b->tenant], s->dominant[best->tenant]) < 0)
            best = b;
    }
    f->n = n;
    return best;
}

/* Until each has what `upto` says of it, or nothing is left. */
static void fill(struct shares *s, const struct rational *upto)
{
    struct fillable f = {.upto = upto, .rows = s->rows};

    for (size_t i = 0; i < s->n; i++)
        if (s->b[i].state == SHARE_READY)
            f.rows[f.n++] = i;
    for (size_t p = 0; p < s->n_pools; p++) {
        struct rational left = least(s->spare[p], s->lendable[p]);
        int64_t whole = left.num / left.den / PORTIONS;

        s->portion[p] = (struct rational){whole > 1 ? whole : 1, 1};
    }
    for (struct share_binding *b; (b = poorest(s, &f));) {
        struct share_pool *p = &s->pools[b->pool];
        struct rational more = minus(p, upto[b - s->b], b->target);
        struct exact share;

        give(s, b, least(least(s->portion[b->pool], more), s->lendable[b->pool]));
        share = share_of(s, b);
        if (exact_cmp(share, s->dominant[b->tenant]) > 0)
            s->dominant[b->tenant] = share;
    }
}

static void lend(struct shares *s, struct rational *upto)
{
    for (size_t i = 0; i < s->n; i++)
        upto[i] = s->b[i].state == SHARE_READY ? wants(s, &s->b[i]) : RATIONAL_ZERO;
    fill(s, upto);
    for (size_t i = 0; i < s->n; i++) /* what is lent to no one is its owner's */
        if (s->b[i].state == SHARE_READY)
            give_upto(s, &s->b[i], s->b[i].guarantee);
    for (size_t i = 0; i < s->n; i++)
        upto[i] = s->b[i].state == SHARE_READY ? limit_of(s, &s->b[i]) : RATIONAL_ZERO;
    fill(s, upto);
}

/* After all is shared, so that no other pool has another share by it. */
static void close_doors(struct shares *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct share_binding *b = &s->b[i];
        enum share_door door = b->state == SHARE_READY ? s->pools[b->pool].door : SHARE_OPEN;

        if (door == SHARE_OPEN && b->closed && b->state == SHARE_READY)
            door = SHARE_CLOSED;
        if (door != SHARE_OPEN)
            b->target = door == SHARE_CLOSED ? least(b->target, b->holds) : RATIONAL_ZERO;
    }
}

void share_targets(struct share_binding *b, size_t n, struct share_pool *pools, size_t n_pools)
{
    struct arena *a = arena_new(0);
    struct shares s = {.b = b, .n = n, .pools = pools, .n_pools = n_pools};

    s.spare = arena_alloc(a, (n_pools + 1) * sizeof(*s.spare));
    s.lendable = arena_alloc(a, (n_pools + 1) * sizeof(*s.lendable));
    s.portion = arena_alloc(a, (n_pools + 1) * sizeof(*s.portion));
    s.dominant = arena_alloc(a, (n + 1) * sizeof(*s.dominant));
    s.rows = arena_alloc(a, (n + 1) * sizeof(*s.rows));
    for (size_t i = 0; i < n; i++)
        s.dominant[i] = EXACT_ZERO;
    admit_all(&s);
    for (size_t p = 0; p < n_pools; p++) {
        s.spare[p] = pools[p].capacity;
        s.lendable[p] =
            least(pools[p].capacity, plus(&pools[p], pools[p].serving, pools[p].stranded));
    }
    give_guarantees(&s);
    lend(&s, arena_alloc(a, (n + 1) * sizeof(struct rational)));
    close_doors(&s);
    for (size_t i = 0; i < n; i++)
        if (b[i].state == SHARE_READY)
            pools[b[i].pool].granted =
                plus(&pools[b[i].pool], pools[b[i].pool].granted, b[i].target);
    arena_free(a);
}

/* --- writes --- */

/* What grant and quota promise. All of the pool is as much as more: nothing is raised beside it. */
static struct rational promised(const struct share_pool *p, const struct share_binding *b)
{
    return least(round_up(most(most(b->grant, b->quota), b->pending), p->unit), p->total);
}

/* Down, or up to what the quota allows already. True: there is nothing to raise. */
static bool settle(struct share_binding *b)
{
    struct rational bound = most(b->target, b->holds);

    b->write = SHARE_KEEP;
    b->value = b->target;
    if (rational_cmp(b->target, b->grant) < 0) {
        b->write = SHARE_WRITE_GRANT;
        return true;
    }
    if (rational_cmp(b->target, b->quota) < 0) { /* it follows what is given back */
        b->value = bound;
        if (rational_cmp(bound, b->quota) < 0)
            b->write = SHARE_WRITE_QUOTA;
        return true;
    }
    if (rational_cmp(b->grant, b->quota) < 0) {
        b->write = SHARE_WRITE_GRANT;
        b->value = b->quota;
        return true;
    }
    return rational_cmp(b->target, b->quota) == 0;
}

/* left: of the capacity beside all that is in use, and beside all that is promised. */
struct room {
    struct rational use, promise;
};

static void raise(struct share_pool *p, struct share_binding *b, struct room *left,
                  struct rational upto)
{
    struct rational promise = promised(p, b);
    struct rational was = b->write == SHARE_KEEP ? promise : most(b->value, promise);
    struct rational used = most(was, b->holds), next;
    struct rational spare = plus(p, minus(p, used, was), left->use);

    next = plus(p, was, least(spare, left->promise));
    next = least(most(next, was), upto);
    if (rational_cmp(next, b->quota) <= 0 ||
        (b->write != SHARE_KEEP && rational_cmp(next, b->value) <= 0))
        return;
    b->write = SHARE_WRITE_QUOTA;
    b->value = next;
    if (rational_cmp(next, was) > 0)
        left->promise = minus(p, left->promise, minus(p, next, was));
    if (rational_cmp(next, used) > 0)
        left->use = minus(p, left->use, minus(p, next, used));
}

void share_writes(struct share_binding *b, size_t n, struct share_pool *pools, size_t n_pools)
{
    struct arena *a = arena_new(0);
    struct room *left = arena_alloc(a, (n_pools + 1) * sizeof(*left));
    bool *done = arena_alloc(a, n + 1);

    for (size_t p = 0; p < n_pools; p++)
        left[p] = (struct room){pools[p].capacity, pools[p].capacity};
    for (size_t i = 0; i < n; i++) {
        struct share_pool *p = b[i].pool == SHARE_NO_POOL ? NULL : &pools[b[i].pool];
        struct room *room = p ? &left[b[i].pool] : NULL;

        b[i].write = SHARE_KEEP;
        done[i] = true;
        if (!p)
            continue;
        done[i] = settle(&b[i]);
        room->use = minus(p, room->use, most(promised(p, &b[i]), b[i].holds));
        room->promise = minus(p, room->promise, promised(p, &b[i]));
    }
    for (int pass = 0; pass < 2; pass++) /* guarantees first */
        for (size_t i = 0; i < n; i++)
            if (!done[i])
                raise(&pools[b[i].pool], &b[i], &left[b[i].pool],
                      pass ? b[i].target : least(b[i].target, b[i].guarantee));
    arena_free(a);
}
