/* SPDX-License-Identifier: Apache-2.0
 *
 * Small changes to JSON trees that keep their cost linear. Must never leave a child list without
 * its invariant: first->prev is the last child. */

#include "tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

cJSON *tree_add(cJSON *object, const char *key, cJSON *item)
{
    assert(json_is_object(object) && !item->next);
    /* The key of a node is never written through: the cast only takes cJSON's type. */
    item->string = (char *)(uintptr_t)key;
    item->next = NULL;
    if (object->child) {
        item->prev = object->child->prev;
        item->prev->next = item;
        object->child->prev = item;
    } else {
        item->prev = item;
        object->child = item;
    }
    return item;
}

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
            tree_add(object, node->string, node);
    }
}

void tree_become(cJSON *node, const cJSON *value)
{
    node->type = value->type;
    node->child = value->child;
    node->valuestring = value->valuestring;
    node->valueint = value->valueint;
    node->valuedouble = value->valuedouble;
}
