/* SPDX-License-Identifier: Apache-2.0
 *
 * What a merge would replace as a whole: a mutation may not set it. Keys of maps that are no fields
 * of a struct are not followed, as upstream. Source: k8s.io/apiserver
 * pkg/admission/plugin/policy/mutating/patch/smd.go (findAtomics). */
#include "fields.h"

static void find(struct field_type t, const cJSON *value, const struct element_step *at,
                 struct buf *paths, unsigned depth);

static void note(struct buf *paths, const struct element_step *at)
{
    if (paths->n)
        buf_addc(paths, ", ");
    element_path(paths, at);
}

static void find_in_map(const struct atom *t, const cJSON *value, const struct element_step *at,
                        struct buf *paths, unsigned depth)
{
    if (t->atomic_map)
        note(paths, at);
    json_each(member, value)
    {
        struct element e = element_field(member->string);
        struct element_step here = {at, &e};
        bool declared;
        struct field_type type = type_member(t, member->string, &declared);

        if (declared)
            find(type, member, &here, paths, depth + 1);
    }
}

static void find_in_list(const struct atom *t, const cJSON *value, const struct element_step *at,
                         struct buf *paths, unsigned depth)
{
    struct element e = {.kind = ELEMENT_INDEX};
    struct element_step here = {at, &e};

    if (t->atomic_list)
        note(paths, at);
    json_each(item, value)
    {
        find(type_item(t), item, &here, paths, depth + 1);
        e.index++;
    }
}

static void find(struct field_type t, const cJSON *value, const struct element_step *at,
                 struct buf *paths, unsigned depth)
{
    struct atom atom;

    if (depth > FIELDS_DEPTH)
        return;
    atom_of(t, &atom);
    if (json_is_object(value) && atom.bits & ATOM_MAP)
        find_in_map(&atom, value, at, paths, depth);
    else if (json_is_array(value) && atom.bits & ATOM_LIST)
        find_in_list(&atom, value, at, paths, depth);
}

bool typed_atomics(struct field_type t, const cJSON *value, struct buf *paths)
{
    const struct element_step root = {0};
    size_t n = paths->n;

    find(t, value, &root, paths, 0);
    return paths->n > n;
}
