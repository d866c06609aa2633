/* SPDX-License-Identifier: Apache-2.0
 *
 * The paths of a value: its leaves, the items of its lists, its empty objects; and a set adjusted
 * to the types along its paths. Source: structured-merge-diff
 * typed/{tofieldset,reconcile_schema}.go, fieldpath/set.go. */
#include "fields.h"

/* Whether the path of value itself is a leaf; *ret receives the paths below it. */
static bool gather(struct arena *a, struct field_type t, const cJSON *value,
                   struct field_set **ret);

/* Items that share an identity count as one. */
static void gather_items(struct arena *a, const struct atom *t, const cJSON *value,
                         struct field_set **made)
{
    struct items items;
    struct str why;

    if (items_of(a, t, value, &items, &why))
        return;
    for (uint32_t i = 0; i < items.n; i++) {
        struct field_set *below = NULL;

        if (items.at[i].twin != i)
            continue;
        if (items.at[i].count == 1)
            gather(a, type_item(t), items.at[i].value, &below);
        set_add(a, made, &items.at[i].element, true, below);
    }
}

static bool gather(struct arena *a, struct field_type t, const cJSON *value, struct field_set **ret)
{
    struct field_set *made = NULL;
    struct atom atom;

    atom_of(t.form == TYPE_NONE ? (struct field_type){.form = TYPE_DEDUCED} : t, &atom);
    switch (atom_choose(atom_deduce(&atom, value))) {
    case ATOM_MAP:
        if (atom.atomic_map)
            return true;

        json_each(member, value)
        {
            struct field_set *below = NULL;
            struct element e = element_field(member->string);
            bool declared;
            struct field_type type = type_member(&atom, member->string, &declared);
            bool self = gather(a, type, member, &below);

            self |= !declared || json_is_null(member) ||
                    (json_is_object(member) && !json_first(member));
            set_add(a, &made, &e, self, below);
        }

        break;
    case ATOM_LIST:
        if (atom.atomic_list)
            return true;
        gather_items(a, &atom, value, &made);
        break;
    default:
        return true;
    }
    *ret = set_finish(a, made);
    return false;
}

struct field_set *typed_set(struct arena *a, struct field_type t, const cJSON *value)
{
    struct field_set *made = NULL;

    gather(a, t, value, &made);
    return made;
}

/* ---- sets by their types ---- */

/* The type one step below; TYPE_NONE where it is not known. */
static struct field_type step_type(const struct atom *t, const struct element *e, bool *declared)
{
    *declared = false;
    if (e->kind == ELEMENT_FIELD && t->bits & ATOM_MAP)
        return type_member(t, e->name.p, declared);
    if (e->kind == ELEMENT_KEY && t->bits & ATOM_LIST)
        return type_item(t);
    return (struct field_type){.form = TYPE_NONE};
}

struct field_set *typed_ensure_named(struct arena *a, struct field_type t, struct field_set *x)
{
    struct field_set *made = NULL;
    struct atom atom;

    if (!x)
        return NULL;
    atom_of(t, &atom);
    for (uint32_t i = 0; i < x->n; i++) {
        const struct field_item *item = &x->items[i];
        bool declared;
        struct field_type below = step_type(&atom, &item->element, &declared);

        set_add(a, &made, &item->element, item->member || (item->below && declared),
                typed_ensure_named(a, below, item->below));
    }
    return made;
}

static bool is_atomic(const struct atom *t)
{
    if (atom_choose(t->bits) == ATOM_MAP)
        return t->atomic_map;
    return atom_choose(t->bits) == ATOM_LIST && t->atomic_list;
}

/* Most sets stay unchanged: a copy is made only from the first change on. */
struct field_set *typed_reconcile(struct arena *a, struct field_type t, struct field_set *x)
{
    struct field_set *made = NULL;
    bool changed = false;
    struct atom atom;

    if (!x || t.form != TYPE_NODE)
        return x;
    atom_of(t, &atom);
    if (atom_choose(atom.bits) == ATOM_SCALAR || type_is_free(&atom))
        return x;
    for (uint32_t i = 0; i < x->n; i++) {
        struct field_item item = x->items[i];
        bool declared;
        struct field_type type = step_type(&atom, &item.element, &declared);
        struct atom below;

        atom_of(type, &below);
        if (item.below && type.form == TYPE_NODE && !type_is_free(&below) && is_atomic(&below)) {
            item.below = NULL;
            item.member = true;
        } else {
            item.below = typed_reconcile(a, type, item.below);
        }
        changed |= item.below != x->items[i].below;
        set_add(a, &made, &item.element, item.member, item.below);
    }
    return changed ? made : x;
}
