/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategic merge of lists: of objects by their merge key, of scalars as sets. Source: apimachinery
 * strategicpatch (mergeSlice). Must never find an item by a linear search. */

#include "strategic.h"

#include <stdlib.h>
#include <string.h>

#include "index.h"
#include "tree.h"

/* All items must be of one type, and none a list. */
static int check_types(struct strategic *s, struct items original, struct items patch,
                       enum value_type *ret)
{
    struct items lists[] = {original, patch};
    const cJSON *first = original.n ? original.v[0] : patch.n ? patch.v[0] : NULL;
    enum value_type type;

    if (!first)
        return err_set(s->err, &ERR_UNKNOWN, "no elements in any of the given slices");
    type = value_type(s->arena, first);
    if (type == VALUE_LIST)
        return err_set(s->err, &ERR_INVALID,
                       "the server rejected our request due to an error in our request");
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l].n; i++) {
            if (value_type(s->arena, lists[l].v[i]) != type || type == VALUE_NIL)
                return err_set(s->err, &ERR_UNKNOWN,
                               "list element types are not identical: [%.*s %.*s]",
                               STR_F(value_print(s->arena, value_array(s->arena, original))),
                               STR_F(value_print(s->arena, value_array(s->arena, patch))));
        }
    }
    *ret = type;
    return 0;
}

/* original without the items of patch. */
static struct items subtract(struct strategic *s, struct items original, struct items patch)
{
    struct items out = {.v = arena_alloc(s->arena, (original.n + 1) * sizeof(cJSON *))};
    struct index named;
    bool fresh;

    index_init(&named, s->arena, patch.n);
    for (size_t i = 0; i < patch.n; i++)
        index_put(&named, value_key(s->arena, patch.v[i]), &fresh);
    for (size_t i = 0; i < original.n; i++) {
        if (!index_get(&named, value_key(s->arena, original.v[i])))
            out.v[out.n++] = original.v[i];
    }
    return out;
}

/* The union of both lists, without duplicates. */
static struct items join(struct strategic *s, struct items original, struct items patch)
{
    struct items out = {.v = arena_alloc(s->arena, (original.n + patch.n + 1) * sizeof(cJSON *))};
    struct items lists[] = {original, patch};
    struct index seen;

    index_init(&seen, s->arena, original.n + patch.n);
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l].n; i++) {
            bool fresh;

            index_put(&seen, value_key(s->arena, lists[l].v[i]), &fresh);
            if (fresh)
                out.v[out.n++] = lists[l].v[i];
        }
    }
    return out;
}

/* An item to delete, and the directive that names it. */
struct deletion {
    size_t at, turn;
};

static int by_turn(const void *left, const void *right)
{
    const struct deletion *a = left, *b = right;

    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Removes the items named in `deleted` from the list, in place. Upstream's slice keeps its length
 * for its other holders: after the remaining items it holds, for each removed item, the item that
 * was last at that moment. The order of the result depends on it. */
static void delete_items(struct strategic *s, const char *key, const struct index *deleted,
                         struct items *list)
{
    struct deletion *gone = arena_alloc(s->arena, (list->n + 1) * sizeof *gone);
    bool *is_gone = arena_alloc(s->arena, list->n + 1);
    struct items old = {.v = arena_alloc(s->arena, (list->n + 1) * sizeof(cJSON *))};
    size_t n = 0, last = list->n, kept = 0;

    for (size_t i = 0; i < list->n; i++) {
        const cJSON *value = json_get(list->v[i], key);
        const struct index_slot *slot =
            value ? index_get(deleted, value_key(s->arena, value)) : NULL;

        old.v[i] = list->v[i];
        if (slot)
            gone[n++] = (struct deletion){i, slot->at};
    }
    qsort(gone, n, sizeof *gone, by_turn);
    for (size_t i = 0; i < n; i++) {
        while (is_gone[last - 1])
            last--;
        list->v[list->n - 1 - i] = old.v[last - 1];
        is_gone[gone[i].at] = true;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (!is_gone[i])
            list->v[kept++] = old.v[i];
    }
    list->n = kept;
}

/* Removes the directives from patch and applies them. */
static int obey_directives(struct strategic *s, const char *key, struct items *original,
                           struct items *patch)
{
    struct items rest = {.v = arena_alloc(s->arena, (patch->n + 1) * sizeof(cJSON *))};
    struct index deleted;
    bool replace = false, fresh;

    index_init(&deleted, s->arena, patch->n);
    for (size_t i = 0; i < patch->n; i++) {
        const cJSON *item = patch->v[i], *directive = json_get(item, DIRECTIVE);
        struct index_slot *slot;

        if (!directive) {
            rest.v[rest.n++] = patch->v[i];
        } else if (str_eqc(json_str(directive), "delete")) {
            if (!json_get(item, key))
                return strategic_no_key(s, item, key);
            slot = index_put(&deleted, value_key(s->arena, json_get(item, key)), &fresh);
            if (fresh)
                slot->at = i;
        } else if (str_eqc(json_str(directive), "replace")) {
            replace = true;
        } else if (str_eqc(json_str(directive), "merge")) {
            return err_set(s->err, &ERR_UNKNOWN,
                           "merging lists cannot yet be specified in the patch");
        } else {
            return strategic_bad_directive(s, directive, item);
        }
    }
    delete_items(s, key, &deleted, original);
    if (replace) {
        *original = rest;
        rest = (struct items){.v = rest.v};
    }
    *patch = rest;
    return 0;
}

/* Merging consumes an item of the patch; its key must stay, to order the list. */
static cJSON *key_alone(struct strategic *s, const cJSON *item, const char *key)
{
    cJSON *alone = json_new_object(s->arena);

    return json_add(alone, key, json_copy(s->arena, json_get(item, key))), alone;
}

/* Merges each item of patch into the first of original with its key, or appends it. Upstream
 * appends in place while the slice has capacity (see delete_items). */
static int merge_maps(struct strategic *s, const struct patch_meta *meta, struct items original,
                      size_t room, struct items patch, unsigned depth, struct items *ret)
{
    struct items out = {.v = arena_alloc(s->arena, (original.n + patch.n + 1) * sizeof(cJSON *))};
    struct index known;
    bool fresh;

    index_init(&known, s->arena, original.n + patch.n);
    for (size_t i = 0; i < original.n; i++) {
        const cJSON *value = json_get(original.v[i], meta->key);
        struct index_slot *slot =
            value ? index_put(&known, value_key(s->arena, value), &fresh) : NULL;

        if (slot && fresh)
            slot->at = i;
        out.v[out.n++] = original.v[i];
    }
    for (size_t i = 0; i < patch.n; i++) {
        const cJSON *value = json_get(patch.v[i], meta->key);
        struct index_slot *slot;
        cJSON *change;

        if (!value)
            return strategic_no_key(s, patch.v[i], meta->key);
        slot = index_put(&known, value_key(s->arena, value), &fresh);
        if (fresh) {
            slot->at = out.n;
            if (out.n < room)
                original.v[out.n] = patch.v[i];
            value_strip(s, meta->node, patch.v[i], 0);
            out.v[out.n++] = patch.v[i];
            continue;
        }
        change = patch.v[i];
        patch.v[i] = key_alone(s, change, meta->key);
        if (strategic_map(s, meta->node, out.v[slot->at], change, depth + 1, &out.v[slot->at]))
            return -1;
    }
    *ret = out;
    return 0;
}

int strategic_list(struct strategic *s, const struct patch_meta *meta, struct items original,
                   struct items patch, bool is_delete, unsigned depth, struct items *ret)
{
    size_t room = original.n;
    struct items merged;
    enum value_type type = VALUE_NIL;

    if (!(meta->patch & PATCH_MERGE) && !is_delete) {
        for (size_t i = 0; i < patch.n; i++)
            value_strip(s, meta->node, patch.v[i], 0);
        *ret = patch;
        return 0;
    }
    *ret = original;
    if (original.n == 0 && patch.n == 0)
        return 0;
    if (check_types(s, original, patch, &type))
        return -1;
    if (type != VALUE_MAP) {
        if (is_delete) {
            *ret = subtract(s, original, patch);
            return 0;
        }
        merged = join(s, original, patch);
        return strategic_order(s, merged, patch, patch, original, "", false, ret);
    }
    if (!*meta->key)
        return err_set(s->err, &ERR_UNKNOWN, "cannot merge lists without merge key for struct");
    if (obey_directives(s, meta->key, &original, &patch))
        return -1;
    if (merge_maps(s, meta, original, room, patch, depth, &merged))
        return -1;
    return strategic_order(s, merged, patch, patch, original, meta->key, true, ret);
}
