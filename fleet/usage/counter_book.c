/* SPDX-License-Identifier: Apache-2.0 */
/* Records come late: a pod's end is known when its node reports it. So the newest hour is computed
 * anew each time, and what is older is added up once a day:
 *
 *   begin of the ledger ... settled .......... seen
 *          sums kept          |  computed again, an hour or two
 *
 * What a late record takes away is not taken from what was shown; the counter stays until the sum
 * has passed it. Must not show what it has not written, name more series than fit, or drop one that
 * it has named. */
#include "counter_book.h"

#include <errno.h>
#include <unistd.h>

#include <sublet/file.h>
#include <sublet/fleet_ledger.h>
#include <sublet/hash.h>
#include <sublet/metrics.h>

#define MOST_SERIES 10000 /* of a family, as of the others by tenant and pool */
#define MOST_FILE   ((size_t)32 << 20)
#define MOST_MEMORY ((size_t)192 << 20) /* of records of a month, while they are summed */
#define MILLION     1000000
#define DAY_US      (24 * COUNTER_SETTLED_US)
#define MONTH_US    (30 * DAY_US)

struct series {
    struct map_entry by_labels;
    struct str labels; /* on the heap */
    /* GPU microseconds, or units of a currency. */
    struct exact settled, recent;
    uint64_t shown; /* GPU microseconds, or millionths of a currency */
};
enum { SECONDS, COST, N_FAMILIES };
struct counter_book {
    struct str directory, location;
    uint64_t identity;
    bool began;
    int64_t settled_us, until_us;
    int64_t whole_us; /* when all of it was counted last */
    struct map families[N_FAMILIES];
    size_t refused, most_refused;
};
static const enum metric METRIC_OF[N_FAMILIES] = {METRIC_FLEET_GPU_SECONDS, METRIC_FLEET_GPU_COST};
static const char *const NAMES[N_FAMILIES] = {"seconds", "cost"}; /* in the file */

/* --- series --- */

/* NULL: there are enough. */
static struct series *series_of(struct counter_book *b, int family, struct str labels)
{
    struct map_entry *e = map_get(&b->families[family], labels);
    struct series *s;

    if (e)
        return CONTAINER(e, struct series, by_labels);
    if (map_count(&b->families[family]) >= MOST_SERIES)
        return NULL;
    s = NEW(struct series);
    *s = (struct series){.labels = mem_str(labels), .settled = EXACT_ZERO, .recent = EXACT_ZERO};
    map_put(&b->families[family], &s->by_labels, s->labels);
    return s;
}

struct part {
    struct counter_book *b;
    bool settled, overflow;
};

static void add(struct part *p, int family, struct str labels, struct exact more)
{
    struct series *s = series_of(p->b, family, labels);
    struct exact *sum = s && p->settled ? &s->settled : s ? &s->recent : NULL;

    if (!sum)
        p->b->refused++;
    else if (!exact_add(*sum, more, sum))
        p->overflow = true;
}

static void add_line(struct part *p, const struct fleet_usage_line *l)
{
    struct buf labels = BUF_INIT(0);
    struct exact guaranteed = EXACT_ZERO;

    p->overflow |= !exact_sub(l->gpu_us, l->borrowed, &guaranteed);
    for (int borrowed = 0; borrowed < 2; borrowed++) {
        buf_clear(&labels);
        metrics_label(&labels, "borrowed", borrowed ? STR("true") : STR("false"));
        metrics_label(&labels, "pool", l->values[USAGE_POOL]);
        metrics_label(&labels, "tenant", l->values[USAGE_TENANT]);
        add(p, SECONDS, buf_str(&labels), borrowed ? l->borrowed : guaranteed);
    }
    if (l->currency.n) {
        buf_clear(&labels);
        metrics_label(&labels, "currency", l->currency);
        metrics_label(&labels, "pool", l->values[USAGE_POOL]);
        metrics_label(&labels, "tenant", l->values[USAGE_TENANT]);
        add(p, COST, buf_str(&labels), l->cost);
    }
    buf_fini(&labels);
}

/* --- the ledger --- */

/* Returns until when it is on record. */
static int add_period(struct counter_book *b, int64_t until_us, bool settled, int64_t *ret_until_us,
                      struct err *err)
{
    struct arena *a = arena_new(MOST_MEMORY);
    struct ledger_usage_request q = {.a = a,
                                     .location = b->location,
                                     .from_us = b->settled_us,
                                     .until_us = until_us,
                                     .columns = 1u << USAGE_TENANT | 1u << USAGE_POOL};
    struct part part = {.b = b, .settled = settled};
    struct usage usage;
    int result = ledger_usage(&q, &usage, err);

    b->refused = 0;
    for (size_t i = 0; !result && i < usage.n_lines; i++)
        if (usage.lines[i]->kind == USAGE_HELD)
            add_line(&part, usage.lines[i]);
    if (b->refused > b->most_refused)
        b->most_refused = b->refused;
    if (!result)
        *ret_until_us = usage.until_us;
    arena_free(a);
    return part.overflow ? err_set(err, &ERR_INTERNAL, "a counter does not fit") : result;
}

static void forget(void *ctx, struct map_entry *e)
{
    struct series *s = CONTAINER(e, struct series, by_labels);
    const bool *settled = ctx;

    *(*settled ? &s->settled : &s->recent) = EXACT_ZERO;
}

static void forget_all(struct counter_book *b, bool settled)
{
    for (int i = 0; i < N_FAMILIES; i++)
        map_each(&b->families[i], forget, &settled);
}

/* A month at a time: the memory bounds what is on record of one, not how old the ledger is. The
 * first ends where the ledger begins. */
static int settle(struct counter_book *b, int64_t until_us, struct err *err)
{
    int64_t before_us, next_us;

    do {
        before_us = b->settled_us;
        next_us = until_us - before_us < MONTH_US ? until_us : before_us + MONTH_US;
        if (add_period(b, next_us, true, &b->settled_us, err))
            return -1;
    } while (b->settled_us > before_us && b->settled_us < until_us);
    return 0;
}

/* The parts are read one after the other; what comes between is of the second's time, or late. */
static int add_ledger(struct counter_book *b, int64_t seen_us, struct err *err)
{
    int64_t settled_us = seen_us - COUNTER_SETTLED_US;

    if (seen_us - b->whole_us >= DAY_US) {
        forget_all(b, true);
        b->settled_us = 0;
        b->whole_us = seen_us;
    }
    if (settled_us - b->settled_us >= COUNTER_SETTLED_US && settle(b, settled_us, err))
        return -1;
    forget_all(b, false);
    return add_period(b, seen_us, false, &b->until_us, err);
}

/* --- what was shown --- */

static struct str file_path(const struct counter_book *b, struct arena *a)
{
    return arena_printf(a, "%.*s/" COUNTER_FILE, STR_F(b->directory));
}

static void add_head(const struct counter_book *b, struct buf *out)
{
    buf_printf(out, "sublet-counters 1 %llu\n", (unsigned long long)b->identity);
}

static void recall_line(struct counter_book *b, struct str line)
{
    struct str labels = line, name = str_cut(&labels, ' '), value = str_cut(&labels, ' ');

    for (int i = 0; i < N_FAMILIES; i++)
        if (str_eqc(name, NAMES[i]) && labels.n) {
            struct series *s = series_of(b, i, labels);

            if (s && !str_to_u64(value, &s->shown))
                s->shown = 0;
        }
}

static int recall(struct counter_book *b, struct err *err)
{
    struct arena *a = arena_new(0);
    struct buf head = BUF_INIT(0);
    struct str path = file_path(b, a), text = STR("");
    bool is_there = access(path.p, F_OK) == 0 || errno != ENOENT;
    int result = is_there ? file_read(a, path, MOST_FILE, &text, err) : 0;

    add_head(b, &head);
    if (!result && str_has_prefix(text, buf_str(&head)))
        for (struct str rest = str_from(text, head.n); rest.p;)
            recall_line(b, str_cut(&rest, '\n'));
    buf_fini(&head);
    arena_free(a);
    return result;
}

/* Rounded down: the sum of two roundings is not above that of what they round. */
static bool rounded(struct exact v, int family, uint64_t *ret)
{
    __int128 down;

    if (family == COST && !exact_mul(v, (struct exact){MILLION, 1}, &v))
        return false;
    down = v.num > 0 ? v.num / v.den : 0;
    if (down > UINT64_MAX)
        return false;
    *ret = (uint64_t)down;
    return true;
}

struct showing {
    int family;
    bool overflow, changed;
    struct buf *out;
};

static void show(void *ctx, struct map_entry *e)
{
    struct showing *w = ctx;
    struct series *s = CONTAINER(e, struct series, by_labels);
    struct exact sum;
    uint64_t now;

    if (!exact_add(s->settled, s->recent, &sum) || !rounded(sum, w->family, &now)) {
        w->overflow = true;
        return;
    }
    if (now > s->shown) {
        s->shown = now;
        w->changed = true;
    }
    buf_printf(w->out, "%s %llu %.*s\n", NAMES[w->family], (unsigned long long)s->shown,
               STR_F(s->labels));
}

static int show_all(struct counter_book *b, struct err *err)
{
    struct buf text = BUF_INIT(MOST_FILE);
    struct showing w = {.out = &text};
    struct arena *a = arena_new(0);
    int result = 0;

    add_head(b, &text);
    for (w.family = 0; w.family < N_FAMILIES; w.family++)
        map_each(&b->families[w.family], show, &w);
    if (w.overflow || text.failed)
        result = err_set(err, &ERR_INTERNAL, "the counters do not fit");
    else if (w.changed)
        result = file_replace(file_path(b, a), buf_str(&text), err);
    buf_fini(&text);
    arena_free(a);
    return result;
}

int fleet_book_count(struct counter_book *b, int64_t seen_us, struct err *err)
{
    if (!b->began && recall(b, err))
        return -1;
    b->began = true;
    return add_ledger(b, seen_us, err) || show_all(b, err) ? -1 : 0;
}

/* --- metrics --- */

static void write_series(void *ctx, struct map_entry *e)
{
    const struct showing *w = ctx;
    const struct series *s = CONTAINER(e, struct series, by_labels);

    if (w->family == SECONDS)
        metrics_sample_us(w->out, METRIC_OF[w->family], s->labels, s->shown);
    else
        metrics_sample_u64(w->out, METRIC_OF[w->family], s->labels, s->shown);
}

void fleet_book_write(struct counter_book *b, struct buf *out)
{
    struct showing w = {.out = out};

    for (w.family = 0; w.family < N_FAMILIES; w.family++) {
        metrics_family(out, METRIC_OF[w.family]);
        map_each(&b->families[w.family], write_series, &w);
    }
    metrics_family(out, METRIC_FLEET_COUNTED);
    metrics_sample_us(out, METRIC_FLEET_COUNTED, STR(""), (uint64_t)b->until_us);
}

size_t fleet_book_refused(const struct counter_book *b)
{
    return b->most_refused;
}

/* --- life --- */

struct counter_book *fleet_book_new(struct str directory, struct str location, uint64_t identity)
{
    struct counter_book *b = NEW(struct counter_book);

    *b = (struct counter_book){
        .directory = mem_str(directory), .location = mem_str(location), .identity = identity};
    return b;
}

static void free_series(void *ctx, struct map_entry *e)
{
    struct series *s = CONTAINER(e, struct series, by_labels);

    map_remove(ctx, e);
    mem_free(s->labels.p);
    mem_free(s);
}

struct counter_book *fleet_book_free(struct counter_book *b)
{
    if (!b)
        return NULL;
    for (int i = 0; i < N_FAMILIES; i++)
        map_each(&b->families[i], free_series, &b->families[i]);
    mem_free(b->directory.p);
    mem_free(b->location.p);
    return mem_free(b);
}
