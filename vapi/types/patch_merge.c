/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON merge patch (RFC 7386) as the API server applies it: nulls delete, also inside added lists.
 * Source: gopkg.in/evanphx/json-patch.v4 merge.go. Must never change the patch, which is applied
 * again when a write meets a conflict. */

#include "index.h"
#include "tree.h"

#include <sublet/schema.h>

/* Removes null members from all objects below value; nulls in lists stay. */
static void prune_nulls(cJSON *value, unsigned depth)
{
    cJSON *next;

    if (depth == TREE_DEPTH)
        return;
    for (cJSON *child = json_first(value); child; child = next) {
        next = child->next;
        if (json_is_null(child) && json_is_object(value))
            json_detach(value, child);
        else
            prune_nulls(child, depth + 1);
    }
}

static cJSON *copied(struct arena *a, const cJSON *value, bool pruned)
{
    cJSON *copy = json_copy(a, value);

    if (pruned)
        prune_nulls(copy, 0);
    return copy;
}

static void merge(struct arena *a, cJSON *object, const cJSON *patch, unsigned depth)
{
    struct members members;

    if (depth == TREE_DEPTH)
        return;
    members_open(&members, a, object, json_count(patch));
    json_each(change, patch)
    {
        cJSON *old = members_get(&members, change->string);

        if (json_is_null(change))
            members_remove(&members, change->string);
        else if (json_is_object(old) && json_is_object(change))
            merge(a, old, change, depth + 1);
        else /* a list that replaces an object keeps its nulls upstream */
            members_set(&members, arena_cstr(a, str_c(change->string)),
                        copied(a, change, !json_is_object(old)));
    }
}

int patch_merge(struct arena *a, cJSON *object, const cJSON *patch, cJSON **ret, struct err *err)
{
    if (json_is_null(patch))
        return err_set(err, &ERR_BAD_REQUEST, "Invalid JSON Patch");
    if (!json_is_object(patch))
        return err_set(err, &ERR_BAD_REQUEST,
                       "error decoding patch: json: cannot unmarshal %s into Go value of type "
                       "map[string]interface {}",
                       json_type_name(patch));
    merge(a, object, patch, 0);
    if (arena_over(a))
        return err_set(err, &ERR_TOO_LARGE, "Request entity is too large: the patched object");
    *ret = object;
    return 0;
}
