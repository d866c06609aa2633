/* SPDX-License-Identifier: Apache-2.0 */
/* The usage of a period without all of its holds in memory: a year has a million of them. The
 * period is cut into parts by time, of about as many holds each; a part has the holds that begin in
 * it and those of earlier parts that have not ended. Only the times of all holds are known at once,
 * 24 bytes each. Must say to the bit what the whole period at once says. */
#include "ledger/ledger_rows.h"
#include "usage.h"

#include <stdlib.h>

#define HOLDS_OF_A_PART 32768 /* that begin in it; more where more are open already */

struct parts {
    struct ledger_reading reading;
    struct sums sums;
    int64_t *ids; /* of the part: first those of earlier ones, in the order of the ledger */
    size_t n_ids, cap_ids;
    size_t *open; /* spans that have not ended where the part ends */
    size_t n_open, cap_open;
    size_t next; /* span that no part had */
};

static int order_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Where the part that begins at `from` ends: at the begin of a hold, or of the period. */
static int64_t part_end(const struct parts *p, int64_t from, size_t most)
{
    const struct ledger_span *spans = p->reading.spans;
    size_t i = most < p->reading.n_spans - p->next ? p->next + most : p->reading.n_spans;

    while (i < p->reading.n_spans && spans[i].begin_us <= from)
        i++;
    return i < p->reading.n_spans && spans[i].begin_us < p->sums.whole_until ? spans[i].begin_us
                                                                             : p->sums.whole_until;
}

static void take(struct parts *p, size_t span)
{
    GROW(p->ids, p->n_ids, p->cap_ids);
    p->ids[p->n_ids++] = p->reading.spans[span].id;
}

/* The ids of the part that ends there, and what stays open then. */
static void choose(struct parts *p, int64_t from, int64_t until)
{
    const struct ledger_span *spans = p->reading.spans;
    size_t n = 0;

    p->n_ids = 0;
    for (size_t i = 0; i < p->n_open; i++) {
        take(p, p->open[i]);
        if (spans[p->open[i]].end_us > until)
            p->open[n++] = p->open[i];
    }
    p->n_open = n;
    for (; p->next < p->reading.n_spans && spans[p->next].begin_us < until; p->next++) {
        if (spans[p->next].end_us <= from)
            continue;
        take(p, p->next);
        if (spans[p->next].end_us <= until)
            continue;
        GROW(p->open, p->n_open, p->cap_open);
        p->open[p->n_open++] = p->next;
    }
    if (p->n_ids)
        qsort(p->ids, p->n_ids, sizeof(*p->ids), order_ids);
}

static int add_part(struct parts *p, int64_t until, struct err *err)
{
    struct arena *rows = arena_new(0);
    struct fleet_records part;
    int result = ledger_read_holds(&p->reading, rows, p->ids, p->n_ids, &part, err);

    if (!result)
        fleet_usage_part(&p->sums, &part, until);
    arena_free(rows);
    if (!result && arena_over(p->reading.a))
        return err_set(err, &ERR_TOO_LARGE, "the report has more lines than fit");
    return result;
}

static void mention(void *ctx, struct map_entry *e)
{
    struct parts *p = ctx;

    fleet_usage_mention(&p->sums, (struct str){e->hh.key, e->hh.keylen});
}

static int add_parts(struct parts *p, size_t most, struct err *err)
{
    map_each(&p->reading.pools, mention, p);
    for (int64_t from = p->sums.whole_from; from < p->sums.whole_until;) {
        int64_t until = part_end(p, from, p->n_open > most ? p->n_open : most);

        choose(p, from, until);
        if (add_part(p, until, err))
            return -1;
        from = until;
    }
    return 0;
}

static int compute(struct parts *p, const struct ledger_usage_request *q,
                   struct fleet_records *records, struct usage *ret, struct err *err)
{
    int result;

    if (ledger_reading_open(&p->reading, q->a, q->location, q->from_us, q->until_us, records,
                            err) ||
        ledger_read_spans(&p->reading, err))
        return -1;
    records->label = q->label;
    if (!fleet_usage_start(&p->sums, q->a, records, q->from_us, q->until_us, q->columns, ret))
        return 0;
    result = add_parts(p, q->holds ? q->holds : HOLDS_OF_A_PART, err) ||
                     fleet_usage_total(&p->sums, records, ret, err)
                 ? -1
                 : 0;
    fleet_usage_drop(&p->sums);
    return result;
}

int ledger_usage(const struct ledger_usage_request *q, struct usage *ret, struct err *err)
{
    struct parts p = {0};
    struct fleet_records records;
    int result = compute(&p, q, &records, ret, err);

    ledger_reading_close(&p.reading);
    mem_free(p.ids);
    mem_free(p.open);
    return result;
}
