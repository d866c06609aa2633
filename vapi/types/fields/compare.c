/* SPDX-License-Identifier: Apache-2.0
 *
 * The changes between two values of a type, as sets of paths. One path is in at most one of them.
 * The hot walk of every write: it takes time linear in both values and allocates for changes only.
 * Source: structured-merge-diff typed/compare.go. */
#include "fields.h"

/* How the path of the value itself changed. */
enum self { SELF_SAME = 0, SELF_REMOVED = 1, SELF_MODIFIED = 2, SELF_ADDED = 4 };

struct walk {
    struct arena *arena;
    struct err *err;
};

static int compare(struct walk *w, struct field_type t, const cJSON *old, const cJSON *now,
                   struct field_diff *ret, unsigned *self);

static void note(struct walk *w, struct field_diff *d, const struct element *e, unsigned self,
                 const struct field_diff *below)
{
    set_add(w->arena, &d->removed, e, self & SELF_REMOVED, below->removed);
    set_add(w->arena, &d->modified, e, self & SELF_MODIFIED, below->modified);
    set_add(w->arena, &d->added, e, self & SELF_ADDED, below->added);
}

static unsigned leaf(const cJSON *old, const cJSON *now)
{
    if (!old)
        return SELF_ADDED;
    if (!now)
        return SELF_REMOVED;
    return json_equal(old, now) ? SELF_SAME : SELF_MODIFIED;
}

/* ---- objects ---- */

static int compare_member(struct walk *w, const struct atom *t, const char *key, const cJSON *old,
                          const cJSON *now, struct field_diff *ret)
{
    struct field_diff below = {NULL, NULL, NULL};
    struct element e = element_field(key);
    unsigned self = SELF_SAME;
    bool declared;
    struct field_type type = type_member(t, key, &declared);

    if (type.form == TYPE_NONE)
        type.form = TYPE_DEDUCED;
    if (compare(w, type, old, now, &below, &self))
        return -1;
    note(w, ret, &e, self, &below);
    return 0;
}

static int compare_map(struct walk *w, const struct atom *t, const cJSON *old, const cJSON *now,
                       struct field_diff *ret)
{
    struct lookup olds, nows;
    size_t shared = 0;

    old = json_is_object(old) ? old : NULL;
    now = json_is_object(now) ? now : NULL;
    lookup_open(&olds, w->arena, old);
    json_each(member, now)
    {
        const cJSON *before = lookup_get(&olds, member->string);

        shared += before != NULL;
        if (compare_member(w, t, member->string, before, member, ret))
            return -1;
    }
    if (shared == json_count(old))
        return 0;
    lookup_open(&nows, w->arena, now);
    json_each(member, old)
    {
        if (!lookup_get(&nows, member->string) &&
            compare_member(w, t, member->string, member, NULL, ret))
            return -1;
    }
    return 0;
}

/* ---- lists that are sets or maps ---- */

static int compare_one(struct walk *w, const struct atom *t, const struct element *e,
                       const cJSON *old, const cJSON *now, unsigned more, struct field_diff *ret)
{
    struct field_diff below = {NULL, NULL, NULL};
    unsigned self = SELF_SAME;

    if ((old || now) && compare(w, type_item(t), old, now, &below, &self))
        return -1;
    note(w, ret, e, self | more, &below);
    return 0;
}

static bool twins_equal(const struct items *x, uint32_t i, const struct items *y, uint32_t j)
{
    const uint32_t *left = &x->order[x->at[i].rank], *right = &y->order[y->at[j].rank];

    if (x->at[i].count != y->at[j].count)
        return false;
    for (uint32_t n = 0; n < x->at[i].count; n++)
        if (!json_equal(x->at[left[n]].value, y->at[right[n]].value))
            return false;
    return true;
}

/* Items that share an identity are compared as one unit. */
static int compare_item(struct walk *w, const struct atom *t, const struct items *olds, int64_t i,
                        const struct items *nows, int64_t j, struct field_diff *ret)
{
    const struct item *old = i < 0 ? NULL : &olds->at[i], *now = j < 0 ? NULL : &nows->at[j];
    const struct element *e = old ? &old->element : &now->element;
    bool many_old = old && old->count > 1, many_now = now && now->count > 1;

    if (!many_old && !many_now)
        return compare_one(w, t, e, old ? old->value : NULL, now ? now->value : NULL, 0, ret);
    if (many_old && many_now)
        return twins_equal(olds, (uint32_t)i, nows, (uint32_t)j)
                   ? 0
                   : compare_one(w, t, e, NULL, NULL, SELF_MODIFIED, ret);
    if (many_old)
        return compare_one(w, t, e, NULL, now ? now->value : NULL, SELF_REMOVED, ret);
    return compare_one(w, t, e, old ? old->value : NULL, NULL, SELF_ADDED, ret);
}

static int compare_items(struct walk *w, const struct atom *t, const cJSON *old, const cJSON *now,
                         struct field_diff *ret)
{
    struct items olds, nows;
    struct str why;

    if (items_of(w->arena, t, old, &olds, &why) || items_of(w->arena, t, now, &nows, &why))
        return err_set(w->err, &ERR_BAD_REQUEST, "%.*s", STR_F(why));
    for (uint32_t i = 0; i < olds.n; i++) {
        if (olds.at[i].twin == i &&
            compare_item(w, t, &olds, i, &nows, items_find(&nows, &olds.at[i].element), ret))
            return -1;
    }
    for (uint32_t j = 0; j < nows.n; j++) {
        if (nows.at[j].twin == j && items_find(&olds, &nows.at[j].element) < 0 &&
            compare_item(w, t, &olds, -1, &nows, j, ret))
            return -1;
    }
    return 0;
}

/* ---- any value ---- */

static bool empty(const cJSON *value, bool list)
{
    return !value || !(list ? json_is_array(value) : json_is_object(value)) || !json_first(value);
}

static int compare_as(struct walk *w, const struct atom *t, unsigned bit, const cJSON *old,
                      const cJSON *now, struct field_diff *ret, unsigned *self)
{
    bool list = bit == ATOM_LIST;

    if (bit == ATOM_SCALAR || !bit || (list ? t->atomic_list : t->atomic_map) ||
        (empty(old, list) && empty(now, list))) {
        *self |= leaf(old, now);
        return 0;
    }
    *self |= !old ? (unsigned)SELF_ADDED : !now ? (unsigned)SELF_REMOVED : 0;
    return list ? compare_items(w, t, old, now, ret) : compare_map(w, t, old, now, ret);
}

/* A value whose kind changed is compared as both kinds. */
static int compare(struct walk *w, struct field_type t, const cJSON *old, const cJSON *now,
                   struct field_diff *ret, unsigned *self)
{
    struct atom atom;
    unsigned left, right;

    atom_of(t, &atom);
    left = atom_deduce(&atom, old);
    right = atom_deduce(&atom, now);
    if (!now)
        right = left;
    else if (!old)
        left = right;
    if (left != right && compare_as(w, &atom, atom_choose(left), old, now, ret, self))
        return -1;
    if (compare_as(w, &atom, atom_choose(right), old, now, ret, self))
        return -1;

    ret->removed = set_finish(w->arena, ret->removed);
    ret->modified = set_finish(w->arena, ret->modified);
    ret->added = set_finish(w->arena, ret->added);
    return 0;
}

int typed_compare(struct arena *a, struct field_type t, const cJSON *old, const cJSON *now,
                  struct field_diff *ret, struct err *err)
{
    struct walk w = {a, err};
    unsigned ignored = SELF_SAME;

    *ret = (struct field_diff){NULL, NULL, NULL};
    return compare(&w, t, old, now, ret, &ignored);
}
