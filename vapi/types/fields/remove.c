/* SPDX-License-Identifier: Apache-2.0
 *
 * Removes the items of a set from a value. A value left empty becomes null, as upstream. Source:
 * structured-merge-diff typed/remove.go. */
#include "fields.h"

static cJSON *prune(struct arena *a, struct field_type t, cJSON *value, const struct field_set *x);

static void prune_child(struct arena *a, struct field_type t, cJSON *parent, cJSON *child,
                        const struct field_item *item)
{
    cJSON *made;

    if (item && item->member) {
        json_detach(parent, child);
    } else if (item && item->below) {
        made = prune(a, t, child, item->below);
        json_replace(parent, child, made);
    }
}

static void prune_members(struct arena *a, const struct atom *t, cJSON *value,
                          const struct field_set *x)
{
    cJSON *next;

    for (cJSON *member = json_first(value); member; member = next) {
        struct element e = element_field(member->string);
        bool declared;

        next = member->next;
        prune_child(a, type_member(t, member->string, &declared), value, member, set_find(x, &e));
    }
}

static void prune_items(struct arena *a, const struct atom *t, cJSON *value,
                        const struct field_set *x)
{
    struct items items;
    struct str why;

    if (items_of(a, t, value, &items, &why))
        return;
    for (uint32_t i = 0; i < items.n; i++)
        prune_child(a, type_item(t), value, items.at[i].value, set_find(x, &items.at[i].element));
}

static cJSON *prune(struct arena *a, struct field_type t, cJSON *value, const struct field_set *x)
{
    struct atom atom;
    bool list;

    atom_of(t.form == TYPE_NONE ? (struct field_type){.form = TYPE_DEDUCED} : t, &atom);
    switch (atom_choose(atom_deduce(&atom, value))) {
    case ATOM_MAP:
        list = false;
        break;
    case ATOM_LIST:
        list = true;
        break;
    default:
        return value;
    }
    if ((list ? atom.atomic_list : atom.atomic_map) ||
        !(list ? json_is_array(value) : json_is_object(value)))
        return json_new_null(a);
    if (list)
        prune_items(a, &atom, value, x);
    else
        prune_members(a, &atom, value, x);
    return json_first(value) ? value : json_new_null(a);
}

cJSON *typed_remove(struct arena *a, struct field_type t, cJSON *value, const struct field_set *x)
{
    return x ? prune(a, t, value, x) : value;
}
