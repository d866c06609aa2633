/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of lists: Kubernetes' own (sum, min, max, isSorted, indexOf), sets, and cel-go's
 * ext/lists. Source: k8s.io/apiserver pkg/cel/library/lists.go, cel-go ext/sets.go, lists.go. */
#include "impl.h"

#include <string.h>

static struct cel_value is_sorted(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    int order;

    (void)n;
    cel_charge(r, l.n);
    for (size_t i = 1; i < l.n && !r->over; i++) {
        if (!cel_compare(r, l.items[i - 1], l.items[i], &order))
            return cel_no_overload(r);
        if (order > 0)
            return cel_bool(false);
    }
    return cel_bool(true);
}

static struct cel_value add(struct cel_run *r, struct cel_value a, struct cel_value b)
{
    if (a.kind != b.kind)
        return cel_no_overload(r);
    if (a.kind == CEL_DOUBLE)
        return cel_double(a.d + b.d);
    if (a.kind == CEL_UINT)
        return __builtin_add_overflow(a.u, b.u, &a.u) ? cel_error(r, "unsigned integer overflow")
                                                      : a;
    if (a.kind == CEL_INT || a.kind == CEL_DURATION)
        return __builtin_add_overflow(a.i, b.i, &a.i) ? cel_error(r, "integer overflow") : a;
    return cel_no_overload(r);
}

static struct cel_value sum(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    struct cel_value total = l.n ? l.items[0] : cel_int(0);

    (void)n;
    cel_charge(r, l.n);
    for (size_t i = 1; i < l.n && total.kind != CEL_ERROR; i++)
        total = add(r, total, l.items[i]);
    return total;
}

static struct cel_value extreme(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    bool is_max = str_eqc(r->node->name, "max");
    struct cel_value best;
    int order;

    (void)n;
    cel_charge(r, l.n);
    if (!l.n)
        return cel_error(r, "%s called on empty list", is_max ? "max" : "min");
    best = l.items[0];
    for (size_t i = 1; i < l.n && !r->over; i++) {
        if (!cel_compare(r, l.items[i], best, &order))
            return cel_no_overload(r);
        if (is_max ? order > 0 : order < 0)
            best = l.items[i];
    }
    return best;
}

static struct cel_value position(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    bool last = str_eqc(r->node->name, "lastIndexOf");

    (void)n;
    cel_charge(r, l.n);
    for (size_t i = 0; i < l.n && !r->over; i++) {
        size_t at = last ? l.n - 1 - i : i;

        if (cel_equal(r, l.items[at], a[1]))
            return cel_int((int64_t)at);
    }
    return cel_int(-1);
}

/* ---- sets ---- */

static bool holds(struct cel_run *r, struct cel_list l, struct cel_value v)
{
    cel_charge(r, l.n);
    for (size_t i = 0; i < l.n && !r->over; i++) {
        if (cel_equal(r, l.items[i], v))
            return true;
    }
    return false;
}

static bool holds_all(struct cel_run *r, struct cel_list l, struct cel_list wanted)
{
    for (size_t i = 0; i < wanted.n && !r->over; i++) {
        if (!holds(r, l, wanted.items[i]))
            return false;
    }
    return true;
}

static struct cel_value sets_contains(struct cel_run *r, const struct cel_value *a, size_t n)
{
    (void)n;
    return cel_bool(holds_all(r, cel_items(r, a[0]), cel_items(r, a[1])));
}

static struct cel_value sets_equivalent(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list x = cel_items(r, a[0]), y = cel_items(r, a[1]);

    (void)n;
    return cel_bool(holds_all(r, x, y) && holds_all(r, y, x));
}

static struct cel_value sets_intersects(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list x = cel_items(r, a[0]), y = cel_items(r, a[1]);

    (void)n;
    for (size_t i = 0; i < y.n && !r->over; i++) {
        if (holds(r, x, y.items[i]))
            return cel_bool(true);
    }
    return cel_bool(false);
}

/* ---- new lists ---- */

static struct cel_value slice(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    int64_t from = a[1].i, to = a[2].i;

    (void)n;
    if (from < 0 || to < 0)
        return cel_error(r, "cannot slice(%lld, %lld), negative indexes not supported",
                         (long long)from, (long long)to);
    if (from > to)
        return cel_error(r,
                         "cannot slice(%lld, %lld), start index must be less than or equal to "
                         "end index",
                         (long long)from, (long long)to);
    if ((uint64_t)to > l.n)
        return cel_error(r, "cannot slice(%lld, %lld), list is length %zu", (long long)from,
                         (long long)to, l.n);
    return cel_new_list(r, l.items + from, (size_t)(to - from));
}

static size_t count_flat(struct cel_list l, int64_t depth, unsigned level)
{
    size_t n = 0;

    for (size_t i = 0; i < l.n; i++) {
        struct cel_value v = l.items[i];

        if (v.kind != CEL_LIST || depth <= 0 || level > CEL_MAX_VALUE)
            n++;
        else
            n += v.is_json ? json_count(v.json) : count_flat(*v.list, depth - 1, level + 1);
    }
    return n;
}

static void put_flat(struct cel_run *r, struct cel_list l, int64_t depth, unsigned level,
                     struct cel_value *items, size_t most, size_t *n)
{
    cel_charge(r, l.n);
    for (size_t i = 0; i < l.n && *n < most && !r->over; i++) {
        if (l.items[i].kind != CEL_LIST || depth <= 0 || level > CEL_MAX_VALUE)
            items[(*n)++] = l.items[i];
        else
            put_flat(r, cel_items(r, l.items[i]), depth - 1, level + 1, items, most, n);
    }
}

/* Lists of JSON are flattened one level at a time. */
static struct cel_value flatten(struct cel_run *r, const struct cel_value *a, size_t n)
{
    int64_t depth = n == 2 ? a[1].i : 1;
    struct cel_value v = a[0];

    if (depth < 0)
        return cel_error(r, "level must be non-negative");
    for (bool more = true; depth > 0 && more && !r->over; depth--) {
        struct cel_list l = cel_items(r, v);
        size_t most = count_flat(l, 1, 0), put = 0;
        struct cel_value *items = cel_room(r, most * sizeof(*items));

        if (!items)
            return cel_no_overload(r);
        more = false;
        for (size_t i = 0; i < l.n; i++)
            more |= l.items[i].kind == CEL_LIST;
        put_flat(r, l, 1, 0, items, most, &put);
        v = cel_new_list(r, items, put);
    }
    return v;
}

static struct cel_value distinct(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    struct cel_value *items = cel_room(r, l.n * sizeof(*items));
    size_t kept = 0;

    (void)n;
    for (size_t i = 0; items && i < l.n && !r->over; i++) {
        if (!holds(r, (struct cel_list){kept, items}, l.items[i]))
            items[kept++] = l.items[i];
    }
    return cel_new_list(r, items, kept);
}

static struct cel_value reverse(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    struct cel_value *items = cel_room(r, l.n * sizeof(*items));

    (void)n;
    cel_charge(r, l.n);
    for (size_t i = 0; items && i < l.n; i++)
        items[i] = l.items[l.n - 1 - i];
    return cel_new_list(r, items, items ? l.n : 0);
}

static struct cel_value sort(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);
    struct cel_value *items = cel_room(r, l.n * sizeof(*items));
    int order;

    (void)n;
    for (size_t i = 0; items && i < l.n && !r->over; i++) {
        size_t at = i;

        cel_charge(r, 1);
        for (; at && !r->over; at--) {
            if (!cel_compare(r, items[at - 1], l.items[i], &order))
                return cel_error(r, "list elements must be comparable");
            cel_charge(r, 1);
            if (order <= 0)
                break;
            items[at] = items[at - 1];
        }
        items[at] = l.items[i];
    }
    return cel_new_list(r, items, items ? l.n : 0);
}

static struct cel_value range(struct cel_run *r, const struct cel_value *a, size_t n)
{
    size_t count = a[0].i > 0 ? (size_t)a[0].i : 0;
    struct cel_value *items;

    (void)n;
    cel_charge(r, count);
    items = r->over ? NULL : cel_room(r, count * sizeof(*items));
    for (size_t i = 0; items && i < count; i++)
        items[i] = cel_int((int64_t)i);
    return cel_new_list(r, items, items ? count : 0);
}

static struct cel_value end_of(struct cel_run *r, const struct cel_value *a, size_t n)
{
    struct cel_list l = cel_items(r, a[0]);

    (void)n;
    if (!l.n)
        return cel_none();
    return cel_some(r, l.items[str_eqc(r->node->name, "first") ? 0 : l.n - 1]);
}

static const struct cel_function ROWS[] = {
    {"isSorted", true, "LA", "b", is_sorted},
    {"sum", true, "LA", "A", sum},
    {"min", true, "LA", "A", extreme},
    {"max", true, "LA", "A", extreme},
    {"indexOf", true, "LAA", "i", position},
    {"lastIndexOf", true, "LAA", "i", position},
    {"sets.contains", false, "LALA", "b", sets_contains},
    {"sets.equivalent", false, "LALA", "b", sets_equivalent},
    {"sets.intersects", false, "LALA", "b", sets_intersects},
    {"slice", true, "LAii", "LA", slice},
    {"flatten", true, "L*", "L*", flatten},
    {"flatten", true, "L*i", "L*", flatten},
    {"distinct", true, "LA", "LA", distinct},
    {"reverse", true, "LA", "LA", reverse},
    {"sort", true, "LA", "LA", sort},
    {"first", true, "LA", "OA", end_of},
    {"last", true, "LA", "OA", end_of},
    {"lists.range", false, "i", "Li", range},
};
const struct cel_functions CEL_LISTS = {ROWS, COUNT(ROWS)};
