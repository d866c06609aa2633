/* SPDX-License-Identifier: Apache-2.0 */
/* Two kinds of rows beside those of the ledger: "since/<pool>/<uid>", from when a charge counts and
 * for which namespace, and "spent/<pool>/<namespace>", what charges that have ended held in the
 * month. A charge counts from and until the pool's own time (hours.c), which never goes back: so
 * the sum by namespaces is at most that of the pool, and the difference is of others. Must never
 * keep, or list, more namespaces than the bound, whatever a tenant creates. */
#include "gpu/namespace_hours.h"

#include <stdlib.h>

#include <sublet/hash.h>

static struct str since_key(struct arena *a, const struct hours_of *h, struct str uid)
{
    return arena_printf(a, "since/%.*s/%.*s", STR_F(h->pool), STR_F(uid));
}

static struct str spent_key(struct arena *a, const struct hours_of *h, struct str ns)
{
    return arena_printf(a, "spent/%.*s/%.*s", STR_F(h->pool), STR_F(ns));
}

/* Until when the pool is counted, and the begin of that month. */
struct span {
    int64_t begin_us, until_us;
};

/* --- what has ended --- */

/* Zero, where it is of an earlier month or no row of this file. */
static struct rational read_spent(struct span span, struct str row)
{
    struct rational spent;
    int64_t until_us;

    if (!str_to_i64(str_cut(&row, ' '), &until_us) || until_us < span.begin_us ||
        !rational_parse(row, &spent))
        return RATIONAL_ZERO;
    return spent;
}

struct kept {
    struct arena *arena;
    struct span span;
    size_t n;
    struct str least; /* the key with the least */
    struct rational has;
};

static bool on_kept(void *ctx, struct str key, struct str value)
{
    struct kept *k = ctx;
    struct rational spent = read_spent(k->span, value);

    if (!k->n++ || rational_cmp(spent, k->has) < 0) {
        k->least = arena_str(k->arena, key);
        k->has = spent;
    }
    return true;
}

/* A new row has its place: that of the namespace with the least. False: it has less itself. */
static bool make_room(const struct hours_of *h, struct arena *a, struct span span,
                      struct rational more)
{
    struct kept k = {.arena = a, .span = span};

    store_record_each(h->store, RECORD_LEDGER, spent_key(a, h, STR("")), on_kept, &k);
    if (k.n < HOURS_NAMESPACES)
        return true;
    if (rational_cmp(k.has, more) > 0)
        return false;
    store_record_delete(h->store, RECORD_LEDGER, k.least);
    return true;
}

static void spend(const struct hours_of *h, struct arena *a, struct span span, struct str ns,
                  struct rational more)
{
    struct str key = spent_key(a, h, ns), row;
    struct rational spent = RATIONAL_ZERO;

    if (store_record_get(h->store, RECORD_LEDGER, key, &row))
        spent = read_spent(span, row);
    else if (!make_room(h, a, span, more))
        return;
    rational_add_most(&spent, more);
    store_record_put(
        h->store, RECORD_LEDGER, key,
        arena_printf(a, "%lld %.*s", (long long)span.until_us, STR_F(rational_format(a, spent))));
}

/* --- charges --- */

/* GPUs x time of a charge in this month, and its namespace; false: it is of others. */
static bool read_charge(const struct hours_of *h, struct arena *a, struct span span, struct str uid,
                        struct rational quantity, struct str *ret_ns, struct rational *ret)
{
    int64_t since_us;
    struct str row;

    if (!store_record_get(h->store, RECORD_LEDGER, since_key(a, h, uid), &row) ||
        !str_to_i64(str_cut(&row, ' '), &since_us) || !row.n)
        return false;
    since_us = since_us < span.begin_us ? span.begin_us : since_us;
    *ret_ns = arena_str(a, row);
    *ret = RATIONAL_ZERO;
    return since_us >= span.until_us ||
           rational_mul(quantity, (struct rational){span.until_us - since_us, 1}, ret);
}

static struct span span_of(const struct hours_of *h)
{
    struct span span;

    sync_hours_span(h, &span.begin_us, &span.until_us);
    return span;
}

void sync_hours_begin(const struct hours_of *h, struct str uid, struct str ns)
{
    struct arena *a = arena_new(0);

    if (ns.n)
        store_record_put(h->store, RECORD_LEDGER, since_key(a, h, uid),
                         arena_printf(a, "%lld %.*s", (long long)span_of(h).until_us, STR_F(ns)));
    arena_free(a);
}

void sync_hours_end(const struct hours_of *h, struct str uid, struct rational quantity)
{
    struct arena *a = arena_new(0);
    struct str key = since_key(a, h, uid), ns, unused;
    struct span span = span_of(h);
    struct rational more;

    if (read_charge(h, a, span, uid, quantity, &ns, &more) && more.num > 0)
        spend(h, a, span, ns, more);
    if (store_record_get(h->store, RECORD_LEDGER, key, &unused))
        store_record_delete(h->store, RECORD_LEDGER, key);
    arena_free(a);
}

/* --- the list --- */

struct part {
    struct map_entry by_ns;
    struct str ns; /* empty: others */
    struct rational gpu_us;
    int64_t milli;
    double rest; /* of a thousandth, which milli leaves out */
};

struct hours_split {
    const struct hours_of *h;
    struct arena *arena;
    struct span span;
    struct map map;
    struct part **parts;
    size_t n, cap;
    struct part others;
    struct rational total;
};

static void add_part(struct hours_split *s, struct str ns, struct rational more)
{
    struct map_entry *e = map_get(&s->map, ns);
    struct part *p = e ? CONTAINER(e, struct part, by_ns) : NULL;

    if (!p) {
        p = ARENA_NEW(s->arena, struct part);
        *p = (struct part){.ns = arena_str(s->arena, ns), .gpu_us = RATIONAL_ZERO};
        ARENA_GROW(s->arena, s->parts, s->n, s->cap);
        s->parts[s->n++] = p;
        map_put(&s->map, &p->by_ns, p->ns);
    }
    rational_add_most(&p->gpu_us, more);
}

static bool on_spent(void *ctx, struct str key, struct str value)
{
    struct hours_split *s = ctx;
    struct rational spent = read_spent(s->span, value);

    if (spent.num > 0)
        add_part(s, str_from(key, str_rfind(key, '/') + 1), spent);
    return true;
}

struct hours_split *sync_hours_split(struct arena *a, const struct hours_of *h)
{
    struct hours_split *s = ARENA_NEW(a, struct hours_split);

    *s = (struct hours_split){.h = h, .arena = a, .span = span_of(h), .total = sync_hours_read(h)};
    store_record_each(h->store, RECORD_LEDGER, spent_key(a, h, STR("")), on_spent, s);
    return s;
}

void sync_hours_split_charge(struct hours_split *s, struct str uid, struct rational quantity)
{
    struct rational more;
    struct str ns;

    if (read_charge(s->h, s->arena, s->span, uid, quantity, &ns, &more) && more.num > 0)
        add_part(s, ns, more);
}

static int by_hours(const void *x, const void *y)
{
    const struct part *const *a = x, *const *b = y;
    int order = rational_cmp((*b)->gpu_us, (*a)->gpu_us);

    return order ? order : str_cmp((*a)->ns, (*b)->ns);
}

static int by_rest(const void *x, const void *y)
{
    const struct part *const *a = x, *const *b = y;

    if ((*a)->rest != (*b)->rest)
        return (*a)->rest > (*b)->rest ? -1 : 1;
    return by_hours(x, y);
}

/* What the total has more than the parts: of namespaces that are not kept, and of those beyond the
 * list. Parts that are more than the total, where rows of the ledger are damaged, count for
 * nothing. */
static void sum_others(struct hours_split *s, size_t most)
{
    struct rational left = s->total;
    bool fits = true;

    for (size_t i = 0; i < s->n && fits; i++)
        fits = rational_sub(left, s->parts[i]->gpu_us, &left) && left.num >= 0;
    if (!fits)
        s->n = 0;
    s->others.gpu_us = fits ? left : s->total;
    for (size_t i = most; i < s->n; i++)
        rational_add_most(&s->others.gpu_us, s->parts[i]->gpu_us);
    s->n = s->n > most ? most : s->n;
}

static void round_down(struct part *p)
{
    __int128 thousandth = (__int128)p->gpu_us.den * HOUR_MILLI_US;

    p->milli = (int64_t)(p->gpu_us.num / thousandth);
    p->rest = (double)(p->gpu_us.num % thousandth) / (double)thousandth;
}

/* The thousandths that rounding left out go to the parts that lost the most. */
static void round_all(struct hours_split *s)
{
    struct part **all = arena_alloc(s->arena, (s->n + 1) * sizeof(*all));
    struct part total = {.gpu_us = s->total};
    int64_t left;

    round_down(&total);
    left = total.milli;
    for (size_t i = 0; i <= s->n; i++) {
        all[i] = i < s->n ? s->parts[i] : &s->others;
        round_down(all[i]);
        left -= all[i]->milli;
    }
    qsort(all, s->n + 1, sizeof(struct part *), by_rest);
    for (size_t i = 0; i <= s->n && left > 0; i++, left--)
        all[i]->milli++;
}

static struct rational thousandths(int64_t milli)
{
    struct rational ret = RATIONAL_MOST;

    (void)rational_mul((struct rational){milli, 1}, (struct rational){1, 1000}, &ret);
    return ret;
}

struct hours_list sync_hours_list(struct hours_split *s, size_t most)
{
    struct hours_list ret = {.total = sync_hours_rounded(s->total)};

    if (s->n)
        qsort(s->parts, s->n, sizeof(struct part *), by_hours);
    sum_others(s, most);
    round_all(s);
    ret.lines = arena_alloc(s->arena, (s->n + 1) * sizeof(*ret.lines));
    for (size_t i = 0; i < s->n; i++)
        if (s->parts[i]->milli)
            ret.lines[ret.n++] =
                (struct hours_line){s->parts[i]->ns, thousandths(s->parts[i]->milli)};
    ret.others = thousandths(s->others.milli);
    map_clear(&s->map);
    return ret;
}
