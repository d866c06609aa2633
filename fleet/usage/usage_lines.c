/* SPDX-License-Identifier: Apache-2.0 */
/* The collections of a computation: lines and balances by key, sorted at the end. Must keep strings
 * of different columns apart: they are chosen by tenants. */
#include "usage.h"

#include <stdlib.h>

#include <sublet/buf.h>

void fleet_usage_sum(struct sums *s, struct exact *sum, struct exact more)
{
    if (!exact_add(*sum, more, sum))
        s->overflow = true;
}

/* Each string behind its length, so that no content can pass for another key. Returns where it is
 * in the key: lines and balances have their strings there, since those of records may be gone
 * before the report is. */
static size_t add_key(struct buf *key, struct str value)
{
    buf_i64(key, (int64_t)value.n);
    buf_char(key, ':');
    buf_add(key, value);
    return key->n - value.n;
}

static struct line *line_new(struct sums *s, enum usage_kind kind, struct str currency)
{
    struct line *l = ARENA_NEW(s->a, struct line);

    l->line = (struct fleet_usage_line){.kind = kind,
                                        .currency = currency,
                                        .gpu_us = EXACT_ZERO,
                                        .cost = EXACT_ZERO,
                                        .list = EXACT_ZERO,
                                        .borrowed = EXACT_ZERO,
                                        .reserved = EXACT_ZERO,
                                        .idle_held = EXACT_ZERO,
                                        .unmeasured = EXACT_ZERO};
    return l;
}

struct line *fleet_usage_line(struct sums *s, enum usage_kind kind,
                              const struct str values[N_USAGE_COLUMNS], struct str currency)
{
    struct buf key = BUF_INIT(0);
    size_t places[N_USAGE_COLUMNS], place_of_currency;
    struct map_entry *found;
    struct line *l;
    struct str kept;

    buf_reserve(&key, 256);
    buf_i64(&key, kind);
    place_of_currency = add_key(&key, currency);
    for (unsigned i = 0; i < N_USAGE_COLUMNS; i++)
        places[i] = s->columns & (1u << i) ? add_key(&key, values[i]) : 0;
    found = map_get(&s->lines, buf_str(&key));
    if (found) {
        buf_fini(&key);
        return CONTAINER(found, struct line, by_key);
    }
    kept = arena_str(s->a, buf_str(&key));
    buf_fini(&key);
    l = line_new(s, kind, str_sub(kept, place_of_currency, currency.n));
    for (unsigned i = 0; i < N_USAGE_COLUMNS; i++)
        l->line.values[i] = places[i] ? str_sub(kept, places[i], values[i].n) : STR("");
    map_put(&s->lines, &l->by_key, kept);
    return l;
}

struct fleet_usage_balance *fleet_usage_balance(struct sums *s, struct str pool, struct str month)
{
    struct buf key = BUF_INIT(0);
    size_t place_of_pool = add_key(&key, pool), place_of_month = add_key(&key, month);
    struct map_entry *found = map_get(&s->balances, buf_str(&key));
    struct balance *b = found ? CONTAINER(found, struct balance, by_key) : NULL;

    if (!b) {
        struct str kept = arena_str(s->a, buf_str(&key));

        b = ARENA_NEW(s->a, struct balance);
        b->balance = (struct fleet_usage_balance){
            .pool = str_sub(kept, place_of_pool, pool.n),
            .month = str_sub(kept, place_of_month, month.n),
            .capacity = EXACT_ZERO,
            .held = EXACT_ZERO,
            .idle = EXACT_ZERO,
            .unhealthy = EXACT_ZERO,
            .unmatched = EXACT_ZERO,
            .borrowed = EXACT_ZERO,
            .reserved = EXACT_ZERO,
            .reserved_idle = EXACT_ZERO,
        };
        map_put(&s->balances, &b->by_key, kept);
    }
    buf_fini(&key);
    return &b->balance;
}

static int order_lines(const void *a, const void *b)
{
    const struct fleet_usage_line *x = *(struct fleet_usage_line *const *)a,
                                  *y = *(struct fleet_usage_line *const *)b;
    int order = (x->kind > y->kind) - (x->kind < y->kind);

    for (size_t i = 0; !order && i < N_USAGE_COLUMNS; i++)
        order = str_cmp(x->values[i], y->values[i]);
    return order ? order : str_cmp(x->currency, y->currency);
}

static int order_balances(const void *a, const void *b)
{
    const struct fleet_usage_balance *x = a, *y = b;
    int by_pool = str_cmp(x->pool, y->pool);

    return by_pool ? by_pool : str_cmp(x->month, y->month);
}

static void take_line(void *ctx, struct map_entry *e)
{
    struct usage *u = ctx;

    u->lines[u->n_lines++] = &CONTAINER(e, struct line, by_key)->line;
}

static void take_balance(void *ctx, struct map_entry *e)
{
    struct usage *u = ctx;

    u->balances[u->n_balances++] = CONTAINER(e, struct balance, by_key)->balance;
}

void fleet_usage_finish(struct sums *s, struct usage *ret)
{
    ret->lines = arena_alloc(s->a, (map_count(&s->lines) + 1) * sizeof(*ret->lines));
    ret->balances = arena_alloc(s->a, (map_count(&s->balances) + 1) * sizeof(*ret->balances));
    map_each(&s->lines, take_line, ret);
    map_each(&s->balances, take_balance, ret);
    map_clear(&s->lines);
    map_clear(&s->balances);
    qsort(ret->lines, ret->n_lines, sizeof(*ret->lines), order_lines);
    qsort(ret->balances, ret->n_balances, sizeof(*ret->balances), order_balances);
}

struct usage fleet_usage_copy(struct arena *a, const struct usage *u)
{
    struct usage copy = *u;

    copy.label = arena_str(a, u->label);

    copy.lines = arena_alloc(a, (u->n_lines + 1) * sizeof(*copy.lines));
    for (size_t i = 0; i < u->n_lines; i++) {
        struct fleet_usage_line *l = ARENA_NEW(a, struct fleet_usage_line);

        *l = *u->lines[i];
        l->currency = arena_str(a, l->currency);
        for (unsigned k = 0; k < N_USAGE_COLUMNS; k++)
            l->values[k] = arena_str(a, l->values[k]);
        copy.lines[i] = l;
    }
    copy.balances = arena_alloc(a, (u->n_balances + 1) * sizeof(*copy.balances));
    for (size_t i = 0; i < u->n_balances; i++) {
        copy.balances[i] = u->balances[i];
        copy.balances[i].pool = arena_str(a, u->balances[i].pool);
        copy.balances[i].month = arena_str(a, u->balances[i].month);
    }
    return copy;
}
