/* SPDX-License-Identifier: Apache-2.0
 *
 * Small changes to JSON trees that keep their cost linear. Must never leave a child list without
 * its invariant: first->prev is the last child. */

#include "tree.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    cJSON *node;
    size_t place;
};

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = strcmp(a->node->string, b->node->string);

    if (order)
        return order;
    return (a->place > b->place) - (a->place < b->place);
}

static bool is_sorted(const cJSON *object)
{
    json_each(member, object)
    {
        if (member->next && strcmp(member->string, member->next->string) >= 0)
            return false;
    }
    return true;
}

void tree_sort_members(struct arena *a, cJSON *object)
{
    size_t n = 0;
    struct entry *entries;

    if (is_sorted(object))
        return;
    entries = arena_alloc(a, json_count(object) * sizeof *entries);
    json_each(member, object)
    {
        entries[n] = (struct entry){member, n};
        n++;
    }
    qsort(entries, n, sizeof *entries, compare_entries);

    object->child = NULL;
    for (size_t i = 0; i < n; i++) {
        cJSON *node = entries[i].node;

        node->next = node->prev = NULL;
        if (i + 1 == n || strcmp(node->string, entries[i + 1].node->string) != 0)
            json_add(object, node->string, node);
    }
}

void tree_sort(struct arena *a, cJSON *value)
{
    if (json_is_object(value))
        tree_sort_members(a, value);
    if (!json_is_object(value) && !json_is_array(value))
        return;
    json_each(member, value) tree_sort(a, member);
}

void tree_become(cJSON *node, const cJSON *value)
{
    node->type = value->type;
    node->child = value->child;
    node->valuestring = value->valuestring;
    node->valueint = value->valueint;
    node->valuedouble = value->valuedouble;
}

/* sigs.k8s.io/json with PreserveInts: a literal without a point that fits is an int64. */
static enum value_type number_type(struct arena *a, const cJSON *value)
{
    int64_t ignored;

    if (!value->valuestring && fabs(value->valuedouble) < 1e15)
        return floor(value->valuedouble) == value->valuedouble ? VALUE_INT : VALUE_FLOAT;
    return str_to_i64(json_text(a, value), &ignored) ? VALUE_INT : VALUE_FLOAT;
}

enum value_type value_type(struct arena *a, const cJSON *value)
{
    if (json_is_string(value))
        return VALUE_STRING;
    if (json_is_object(value))
        return VALUE_MAP;
    if (json_is_array(value))
        return VALUE_LIST;
    if (json_is_bool(value))
        return VALUE_BOOL;
    return json_is_number(value) ? number_type(a, value) : VALUE_NIL;
}
