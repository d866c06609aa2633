/* SPDX-License-Identifier: Apache-2.0 */
/* The set of completed indexes and its string, "1,3-5,7". Its cost must depend on the number of
 * intervals, never on the number of completions. */
#include "job.h"

#include <stdlib.h>

static bool parse_interval(struct str text, struct job_interval *ret)
{
    struct str rest = text, first = str_cut(&rest, '-');
    uint64_t a, b;

    if (!str_to_u64(first, &a) || a > INT32_MAX)
        return false;
    b = a;
    if (rest.p && (!str_to_u64(rest, &b) || b > INT32_MAX || b < a))
        return false;
    *ret = (struct job_interval){(int64_t)a, (int64_t)b};
    return true;
}

static void add_interval(struct job_indexes *s, struct job_interval one)
{
    struct job_interval *last = s->n ? &s->items[s->n - 1] : NULL;

    if (last && one.first <= last->last + 1)
        last->last = one.last > last->last ? one.last : last->last;
    else
        s->items[s->n++] = one;
}

struct job_indexes job_indexes_parse(struct arena *a, struct str text, int64_t limit)
{
    struct job_indexes s = {0};
    size_t commas = 1;
    struct job_interval one;

    for (size_t i = 0; i < text.n; i++)
        commas += text.p[i] == ',';
    s.items = arena_alloc(a, commas * sizeof(*s.items));
    while (text.n && parse_interval(str_cut(&text, ','), &one) && one.first < limit) {
        if (s.n && one.first <= s.items[s.n - 1].last)
            break; /* out of order */
        one.last = one.last < limit ? one.last : limit - 1;
        add_interval(&s, one);
    }
    return s;
}

bool job_indexes_have(const struct job_indexes *s, int64_t index)
{
    size_t low = 0, high = s->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (s->items[middle].last < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && s->items[low].first <= index;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

struct job_indexes job_indexes_merge(struct arena *a, const struct job_indexes *s,
                                     const struct job_indexes *t)
{
    struct job_indexes out = {.items = arena_alloc(a, (s->n + t->n + 1) * sizeof(*out.items))};
    size_t i = 0, k = 0;

    while (i < s->n || k < t->n) {
        if (k == t->n || (i < s->n && s->items[i].first <= t->items[k].first))
            add_interval(&out, s->items[i++]);
        else
            add_interval(&out, t->items[k++]);
    }
    return out;
}

struct job_indexes job_indexes_with(struct arena *a, const struct job_indexes *s, int64_t *values,
                                    size_t n)
{
    struct job_indexes more = {.items = arena_alloc(a, (n + 1) * sizeof(*more.items))};

    if (n)
        qsort(values, n, sizeof(*values), compare);
    for (size_t i = 0; i < n; i++)
        add_interval(&more, (struct job_interval){values[i], values[i]});
    return job_indexes_merge(a, s, &more);
}

int64_t job_indexes_overlap(const struct job_indexes *s, const struct job_indexes *t)
{
    int64_t total = 0;
    size_t i = 0, k = 0;

    while (i < s->n && k < t->n) {
        const struct job_interval *x = &s->items[i], *y = &t->items[k];
        int64_t first = x->first > y->first ? x->first : y->first;
        int64_t last = x->last < y->last ? x->last : y->last;

        total += last >= first ? last - first + 1 : 0;
        i += x->last <= y->last;
        k += y->last <= x->last;
    }
    return total;
}

int64_t job_indexes_total(const struct job_indexes *s)
{
    int64_t total = 0;

    for (size_t i = 0; i < s->n; i++)
        total += s->items[i].last - s->items[i].first + 1;
    return total;
}

struct str job_indexes_text(struct arena *a, const struct job_indexes *s)
{
    struct buf b = BUF_INIT(0);

    for (size_t i = 0; i < s->n; i++) {
        const struct job_interval *one = &s->items[i];

        buf_addc(&b, i ? "," : "");
        buf_i64(&b, one->first);
        if (one->last > one->first) {
            buf_char(&b, one->last > one->first + 1 ? '-' : ',');
            buf_i64(&b, one->last);
        }
    }
    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}
