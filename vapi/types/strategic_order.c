/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a merged list: items the patch names follow $setElementOrder (or the patch); items
 * only on the server keep their place between them. Source: apimachinery strategicpatch
 * (normalizeElementOrder). Must never be quadratic: positions are looked up in an index. One
 * difference: items in neither order keep their relative order; upstream's depends on its sort. */

#include "strategic.h"

#include <stdlib.h>
#include <string.h>

#include "index.h"

/* The identity of an item: the item itself, or its merge key's value. */
static struct str item_key(struct strategic *s, const cJSON *item, const char *key, bool maps)
{
    return value_key(s->arena, maps ? json_get(item, key) : item);
}

static void index_items(struct strategic *s, struct items items, const char *key, bool maps,
                        struct index *ret)
{
    index_init(ret, s->arena, items.n);
    for (size_t i = 0; i < items.n; i++) {
        bool fresh;
        struct index_slot *slot = index_put(ret, item_key(s, items.v[i], key, maps), &fresh);

        if (fresh)
            slot->at = i;
    }
}

enum { NOWHERE = -1, INSERTION_MAX = 20 };

struct ranked {
    cJSON *item;
    int64_t rank, place;
};

static int64_t rank_of(const struct index *x, struct str key)
{
    const struct index_slot *slot = index_get(x, key);

    return slot ? (int64_t)slot->at : NOWHERE;
}

/* Items without a rank come last, in their original order. */
static int by_rank(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int64_t x = a->rank == NOWHERE ? INT64_MAX : a->rank,
            y = b->rank == NOWHERE ? INT64_MAX : b->rank;

    if (x != y)
        return x < y ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

static bool is_deletion(const cJSON *item)
{
    return str_eqc(json_str(json_get(item, DIRECTIVE)), "delete");
}

/* Upstream's comparison says that an item without a rank is less than any other; in a short list,
 * the result depends on the steps of its insertion sort. */
static void insertion_sort(struct ranked *ranked, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct ranked item = ranked[i];
        size_t j = i;

        for (; j > 0; j--) {
            int64_t before = ranked[j - 1].rank;

            if (item.rank != NOWHERE && before != NOWHERE && item.rank >= before)
                break;
            ranked[j] = ranked[j - 1];
        }
        ranked[j] = item;
    }
}

static void sort_items(struct strategic *s, struct items items, const struct index *order,
                       const char *key, bool maps)
{
    struct ranked *ranked = arena_alloc(s->arena, (items.n + 1) * sizeof *ranked);
    size_t n = 0, deleted = 0;

    for (size_t i = 0; i < items.n; i++) {
        struct ranked r = {.item = items.v[i], .place = (int64_t)i};

        if (maps && is_deletion(r.item)) {
            ranked[items.n - ++deleted] = r;
            continue;
        }
        r.rank = rank_of(order, item_key(s, r.item, key, maps));
        ranked[n++] = r;
    }
    if (n <= INSERTION_MAX)
        insertion_sort(ranked, n);
    else
        qsort(ranked, n, sizeof *ranked, by_rank);
    for (size_t i = 0; i < n; i++)
        items.v[i] = ranked[i].item;
    for (size_t i = 0; i < deleted; i++) /* these come last, in their original order */
        items.v[n + i] = ranked[items.n - 1 - i].item;
}

/* A server item precedes a patch item only where both were on the server, in that order. */
static void interleave(struct strategic *s, struct items server_only, struct items patch,
                       const struct index *server, const char *key, bool maps, struct items *ret)
{
    size_t i = 0, j = 0;

    ret->n = 0;
    while (i < server_only.n || j < patch.n) {
        bool first = j == patch.n;

        if (i < server_only.n && j < patch.n) {
            int64_t left = rank_of(server, item_key(s, server_only.v[i], key, maps));
            int64_t right = rank_of(server, item_key(s, patch.v[j], key, maps));

            first = left != NOWHERE && right != NOWHERE && left < right;
        }
        ret->v[ret->n++] = first ? server_only.v[i++] : patch.v[j++];
    }
}

static int check_keys(struct strategic *s, struct items items, const char *key)
{
    for (size_t i = 0; i < items.n; i++) {
        if (!json_is_object(items.v[i]))
            return strategic_bad_type(s, "map[string]interface {}", items.v[i]);
        if (!json_get(items.v[i], key))
            return strategic_no_key(s, items.v[i], key);
    }
    return 0;
}

/* Looks up each merged item in `by`, from the start of `by`: every item compared on the way must be
 * an object. */
static int check_named(struct strategic *s, struct items merged, struct items by,
                       const struct index *named, const char *key)
{
    size_t good = 0;

    while (good < by.n && json_is_object(by.v[good]))
        good++;
    for (size_t i = 0; good < by.n && i < merged.n; i++) {
        int64_t rank = rank_of(named, item_key(s, merged.v[i], key, true));

        if (rank == NOWHERE || rank > (int64_t)good)
            return err_set(s->err, &ERR_UNKNOWN, "value for key %zu is not a map", good);
    }
    return 0;
}

int strategic_order(struct strategic *s, struct items merged, struct items by, struct items order,
                    struct items server, const char *key, bool maps, struct items *ret)
{
    struct items patch = {.v = arena_alloc(s->arena, (merged.n + 1) * sizeof(cJSON *))};
    struct items server_only = {.v = arena_alloc(s->arena, (merged.n + 1) * sizeof(cJSON *))};
    struct index named, wanted, stood;

    index_items(s, by, key, maps, &named);
    index_items(s, order, key, maps, &wanted);
    index_items(s, server, key, maps, &stood);
    if (maps && (check_keys(s, merged, key) || check_named(s, merged, by, &named, key) ||
                 check_keys(s, order, key) || check_keys(s, server, key)))
        return -1;

    for (size_t i = 0; i < merged.n; i++) {
        if (index_get(&named, item_key(s, merged.v[i], key, maps)))
            patch.v[patch.n++] = merged.v[i];
        else
            server_only.v[server_only.n++] = merged.v[i];
    }
    sort_items(s, patch, &wanted, key, maps);
    sort_items(s, server_only, &stood, key, maps);
    ret->v = arena_alloc(s->arena, (merged.n + 1) * sizeof(cJSON *));
    interleave(s, server_only, patch, &stood, key, maps, ret);
    return 0;
}

/* left == right as in mergeKeyValueEqual: with a key, both must be maps that have it. */
static int same_item(struct strategic *s, const cJSON *left, const cJSON *right, const char *key,
                     bool *ret)
{
    const cJSON *pair[] = {left, right};

    for (size_t i = 0; *key && i < 2; i++) {
        if (!json_is_object(pair[i]))
            return strategic_bad_type(s, "map[string]interface {}", pair[i]);
    }
    for (size_t i = 0; *key && i < 2; i++) {
        if (!json_get(pair[i], key))
            return strategic_no_key(s, pair[i], key);
    }
    *ret = str_eq(item_key(s, left, key, *key != 0), item_key(s, right, key, *key != 0));
    return 0;
}

/* The items of a patch that are not deletions. */
static int without_deletions(struct strategic *s, struct items patch, bool maps, struct items *ret)
{
    ret->v = arena_alloc(s->arena, (patch.n + 1) * sizeof(cJSON *));
    ret->n = 0;
    for (size_t i = 0; i < patch.n; i++) {
        if (maps && !json_is_object(patch.v[i]))
            return strategic_bad_type(s, "map[string]interface {}", patch.v[i]);
        if (!maps || !is_deletion(patch.v[i]))
            ret->v[ret->n++] = patch.v[i];
    }
    return 0;
}

int strategic_check_order(struct strategic *s, struct items patch, struct items order,
                          const char *key)
{
    struct items items;
    size_t i = 0, at = 0;

    if (patch.n == 0 || order.n == 0)
        return 0;
    if (without_deletions(s, patch, *key != 0, &items))
        return -1;
    while (i < items.n && at < order.n) {
        bool same = false;

        if (json_get(items.v[i], DIRECTIVE)) {
            i++;
            continue;
        }
        if (same_item(s, items.v[i], order.v[at++], key, &same))
            return -1;
        i += same;
    }
    if (i == items.n)
        return 0;
    return err_set(s->err, &ERR_UNKNOWN,
                   "The order in patch list:\n%.*s\n doesn't match " SET_ELEMENT_ORDER
                   " list:\n%.*s\n",
                   STR_F(value_print(s->arena, value_array(s->arena, patch))),
                   STR_F(value_print(s->arena, value_array(s->arena, order))));
}
