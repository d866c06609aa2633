/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of paths as sorted trees. Operations take time linear in their inputs and share unchanged
 * subtrees: a set that was returned must never be changed. Source: structured-merge-diff
 * fieldpath/set.go. */
#include "fields.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- construction ---- */

static void append(struct arena *a, struct field_set **x, const struct field_item *item)
{
    struct field_set *set = *x;

    if (!set)
        set = *x = ARENA_NEW(a, struct field_set);
    if (set->n == set->cap) {
        uint32_t cap = set->cap ? 2 * set->cap : 4;
        struct field_item *items = arena_alloc(a, cap * sizeof(*items));

        if (set->n)
            memcpy(items, set->items, set->n * sizeof(*items));
        set->items = items;
        set->cap = cap;
    }
    set->items[set->n++] = *item;
}

void set_add(struct arena *a, struct field_set **x, const struct element *e, bool member,
             struct field_set *below)
{
    if (member || below)
        append(a, x, &(struct field_item){*e, member, below});
}

static int by_element(const void *x, const void *y)
{
    const struct field_item *a = x, *b = y;

    return element_cmp(&a->element, &b->element);
}

static bool is_sorted(const struct field_set *x)
{
    for (uint32_t i = 1; i < x->n; i++)
        if (element_cmp(&x->items[i - 1].element, &x->items[i].element) >= 0)
            return false;
    return true;
}

/* Merges n equal items into one. Their children are sorted together: a pairwise union would take
 * quadratic time for many spellings of one key. */
static struct field_item unite(struct arena *a, const struct field_item *items, uint32_t n)
{
    struct field_item made = items[0];

    if (n == 1)
        return made;
    made.below = NULL;
    for (uint32_t i = 0; i < n; i++) {
        made.member |= items[i].member;
        for (uint32_t k = 0; items[i].below && k < items[i].below->n; k++)
            append(a, &made.below, &items[i].below->items[k]);
    }
    made.below = set_finish(a, made.below);
    return made;
}

struct field_set *set_finish(struct arena *a, struct field_set *x)
{
    uint32_t n = 0, run;

    if (!x || is_sorted(x))
        return x;
    qsort(x->items, x->n, sizeof(*x->items), by_element);
    for (uint32_t i = 0; i < x->n; i += run) {
        run = 1;
        while (i + run < x->n && element_cmp(&x->items[i].element, &x->items[i + run].element) == 0)
            run++;
        x->items[n++] = unite(a, &x->items[i], run);
    }
    x->n = n;
    return x;
}

/* ---- walking two sets together ---- */

static const struct field_item *at(const struct field_set *x, uint32_t i)
{
    return x && i < x->n ? &x->items[i] : NULL;
}

/* The next step of either set; of both when they share it. False at the end. */
static bool side_by_side(const struct field_set *x, const struct field_set *y, uint32_t *i,
                         uint32_t *j, const struct field_item **left,
                         const struct field_item **right)
{
    int order;

    *left = at(x, *i);
    *right = at(y, *j);
    if (!*left && !*right)
        return false;
    order = !*left ? 1 : !*right ? -1 : element_cmp(&(*left)->element, &(*right)->element);
    if (order < 0)
        *right = NULL;
    else if (order > 0)
        *left = NULL;
    *i += *left != NULL;
    *j += *right != NULL;
    return true;
}

struct field_set *set_union(struct arena *a, struct field_set *x, struct field_set *y)
{
    const struct field_item *left, *right;
    struct field_set *made = NULL;
    uint32_t i = 0, j = 0;

    if (!x || !y || x == y)
        return x ? x : y;
    while (side_by_side(x, y, &i, &j, &left, &right)) {
        if (left && right)
            set_add(a, &made, &left->element, left->member || right->member,
                    set_union(a, left->below, right->below));
        else
            append(a, &made, left ? left : right);
    }
    return made;
}

/* A small set beside a large one is searched item by item: a write that changes much must not cost
 * that much for each of a thousand managers. */
static bool is_much_smaller(const struct field_set *x, const struct field_set *y)
{
    return x->n < y->n / 16;
}

struct field_set *set_intersection(struct arena *a, struct field_set *x, struct field_set *y)
{
    const struct field_item *left, *right;
    struct field_set *made = NULL;
    uint32_t i = 0, j = 0;

    if (!x || !y)
        return NULL;
    if (is_much_smaller(y, x))
        return set_intersection(a, y, x);
    for (; is_much_smaller(x, y) && i < x->n; i++) {
        left = &x->items[i];
        right = set_find(y, &left->element);
        if (right)
            set_add(a, &made, &left->element, left->member && right->member,
                    set_intersection(a, left->below, right->below));
    }
    if (i)
        return made;
    while (side_by_side(x, y, &i, &j, &left, &right)) {
        if (left && right)
            set_add(a, &made, &left->element, left->member && right->member,
                    set_intersection(a, left->below, right->below));
    }
    return made;
}

struct field_set *set_difference(struct arena *a, struct field_set *x, struct field_set *y)
{
    const struct field_item *left, *right;
    struct field_set *made = NULL;
    uint32_t i = 0, j = 0;

    if (!x || !y)
        return x;
    for (; is_much_smaller(x, y) && i < x->n; i++) {
        left = &x->items[i];
        right = set_find(y, &left->element);
        set_add(a, &made, &left->element, left->member && !(right && right->member),
                right ? set_difference(a, left->below, right->below) : left->below);
    }
    if (i)
        return made;
    while (side_by_side(x, y, &i, &j, &left, &right)) {
        if (left && right)
            set_add(a, &made, &left->element, left->member && !right->member,
                    set_difference(a, left->below, right->below));
        else if (left)
            append(a, &made, left);
    }
    return made;
}

struct field_set *set_without(struct arena *a, struct field_set *x, struct field_set *y)
{
    const struct field_item *left, *right;
    struct field_set *made = NULL;
    uint32_t i = 0, j = 0;

    if (!x || !y)
        return x;
    while (side_by_side(x, y, &i, &j, &left, &right)) {
        if (left && !right)
            append(a, &made, left);
        else if (left && !right->member)
            set_add(a, &made, &left->element, left->member,
                    set_without(a, left->below, right->below));
    }
    return made;
}

/* ---- look-ups ---- */

const struct field_item *set_find(const struct field_set *x, const struct element *e)
{
    uint32_t low = 0, high = x ? x->n : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = element_cmp(e, &x->items[middle].element);

        if (order == 0)
            return &x->items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

bool set_has(const struct field_set *x, const struct element *const *steps, size_t n)
{
    const struct field_item *item = NULL;

    for (size_t i = 0; i < n; i++) {
        item = set_find(i ? item->below : x, steps[i]);
        if (!item)
            return false;
    }
    return item && item->member;
}

bool set_has_path(const struct field_set *x, const char *dotted)
{
    struct str rest = str_c(dotted);
    const struct field_item *item = NULL;

    while (rest.p) {
        struct element e = {.kind = ELEMENT_FIELD, .name = str_cut(&rest, '.')};

        item = set_find(item ? item->below : x, &e);
        if (!item)
            return false;
    }
    return item && item->member;
}

static struct field_set *set_of_path(struct arena *a, struct str path)
{
    struct field_set *made = NULL;
    struct str first = str_cut(&path, '.');
    struct element e = element_field(arena_cstr(a, first));

    set_add(a, &made, &e, !path.p, path.p ? set_of_path(a, path) : NULL);
    return made;
}

struct field_set *set_of(struct arena *a, const char *const *paths)
{
    struct field_set *made = NULL;

    for (; *paths; paths++)
        made = set_union(a, made, set_of_path(a, str_c(*paths)));
    return made;
}

/* ---- each path ---- */

struct visit {
    struct arena *arena;
    set_path_cb each;
    void *ctx;
    const struct element *steps[FIELDS_DEPTH];
};

static struct str path_text(struct arena *a, const struct element *const *steps, size_t n)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    for (size_t i = 0; i < n; i++)
        element_text(&b, steps[i]);
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

/* Visits the members of a level before their children. */
static void visit(struct visit *v, const struct field_set *x, size_t depth)
{
    if (!x || depth == FIELDS_DEPTH)
        return;
    for (uint32_t i = 0; i < x->n; i++) {
        v->steps[depth] = &x->items[i].element;
        if (x->items[i].member)
            v->each(v->ctx, path_text(v->arena, v->steps, depth + 1), v->steps, depth + 1);
    }
    for (uint32_t i = 0; i < x->n; i++) {
        v->steps[depth] = &x->items[i].element;
        visit(v, x->items[i].below, depth + 1);
    }
}

void set_each(struct arena *a, const struct field_set *x, set_path_cb each, void *ctx)
{
    struct visit *v = ARENA_NEW(a, struct visit);

    v->arena = a;
    v->each = each;
    v->ctx = ctx;
    visit(v, x, 0);
}
