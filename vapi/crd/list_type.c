/* SPDX-License-Identifier: Apache-2.0 */
/* Checks beyond types and rules: embedded resources name their kind, lists that are sets or maps
 * have no duplicate items. Source: apiextensions-apiserver
 * pkg/apiserver/schema/{objectmeta,listtype}. Must take no more than n log n for a list. */
#include "judge.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/selector.h>

typedef void (*visit_cb)(struct judge *j, uint32_t node, const cJSON *value,
                         const struct field_path *path);

/* Visits every value below that has a node, parents first; keys of maps in brackets. */
static void each_value(struct judge *j, uint32_t node, const cJSON *value,
                       const struct field_path *path, visit_cb visit)
{
    const struct schema *s = &j->v->schema;
    size_t i = 0;

    if (!node)
        return;
    visit(j, node, value, path);
    if (json_is_array(value)) {
        json_each(item, value)
            each_value(j, schema_node(s, node)->elem, item, FIELD_INDEX(path, i++), visit);
    }
    if (!json_is_object(value))
        return;
    json_each(member, value)
    {
        const struct schema_field *f = schema_field(s, node, str_c(member->string));

        if (f)
            each_value(j, f->node, member, FIELD(path, member->string), visit);
        else
            each_value(j, schema_node(s, node)->elem, member,
                       FIELD_KEY(path, str_c(member->string)), visit);
    }
}

/* --- embedded resources --- */

static void embedded_kind(struct judge *j, const cJSON *value, const struct field_path *p)
{
    struct str text = json_str(value);
    char *lower = arena_cstr(j->arena, text);

    for (size_t i = 0; i < text.n; i++)
        lower[i] = (char)tolower((unsigned char)lower[i]);
    const char *wrong = name_check_dns1035_label((struct str){lower, text.n});
    if (!json_is_string(value))
        field_invalid(j->errors, p, value, "must be a string");
    else if (!text.n)
        field_invalid(j->errors, p, value, "must not be empty");
    else if (wrong)
        field_invalid(
            j->errors, p, value,
            arena_printf(j->arena, "may have mixed case, but should otherwise match: %s", wrong).p);
}

static void visit_embedded(struct judge *j, uint32_t node, const cJSON *value,
                           const struct field_path *path)
{
    const cJSON *version = json_get(value, "apiVersion"), *kind = json_get(value, "kind");

    if (!(crd_version_rules(j->v, node)->flags & RULE_EMBEDDED) || !json_is_object(value))
        return;
    if (!version)
        field_required(j->errors, FIELD(path, "apiVersion"), "");
    if (!kind)
        field_required(j->errors, FIELD(path, "kind"), "");
    if (version) {
        const struct field_path *p = FIELD(path, "apiVersion");
        struct str text = json_str(version);
        size_t slash = str_find(text, '/');

        if (!json_is_string(version))
            field_invalid(j->errors, p, version, "must be a string");
        else if (!text.n)
            field_invalid(j->errors, p, version, "must not be empty");
        else if (slash < text.n && str_rfind(text, '/') != slash)
            field_invalid(
                j->errors, p, version,
                arena_printf(j->arena, "unexpected GroupVersion string: %.*s", STR_F(text)).p);
    }
    if (kind)
        embedded_kind(j, kind, FIELD(path, "kind"));
}

void crd_judge_embedded(struct judge *j, const cJSON *object)
{
    each_value(j, j->v->root, object, NULL, visit_embedded);
}

/* --- sets and maps --- */

struct item {
    struct str text;
    size_t index;
};

static int by_text(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int order = str_cmp(x->text, y->text);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int by_index(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

static int by_word(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The key members of an item of a map. */
static cJSON *item_key(struct judge *j, const struct schema_node *n, const cJSON *item)
{
    const char *words[64], *key = n->keys ? schema_text(&j->v->schema, n->keys) : "";
    cJSON *object = json_new_object(j->arena);
    size_t count = 0;

    for (; *key && count < 64; key += strlen(key) + 1)
        words[count++] = key;
    qsort(words, count, sizeof(*words), by_word);
    for (size_t i = 0; i < count; i++) {
        const cJSON *part = json_get(item, words[i]);

        if (part)
            json_set(j->arena, object, words[i], json_copy(j->arena, part));
    }
    return object;
}

/* Reports the second occurrence of each, as upstream does; a third adds nothing. */
static void report_duplicates(struct judge *j, const struct schema_node *n, const cJSON *list,
                              const struct field_path *path)
{
    size_t count = json_count(list), i = 0, n_doubles = 0;
    struct item *items = arena_alloc(j->arena, (count + 1) * sizeof(*items));
    size_t *doubles = arena_alloc(j->arena, (count + 1) * sizeof(*doubles));
    const cJSON **values = arena_alloc(j->arena, (count + 1) * sizeof(*values));

    json_each(item, list)
    {
        values[i] = n->list_type == LIST_MAP ? item_key(j, n, item) : item;
        items[i] = (struct item){json_text(j->arena, values[i]), i};
        i++;
    }
    qsort(items, count, sizeof(*items), by_text);
    for (i = 1; i < count; i++) {
        if (str_eq(items[i].text, items[i - 1].text) &&
            (i < 2 || !str_eq(items[i].text, items[i - 2].text)))
            doubles[n_doubles++] = items[i].index;
    }
    qsort(doubles, n_doubles, sizeof(*doubles), by_index);
    for (i = 0; i < n_doubles; i++)
        field_duplicate(j->errors, FIELD_INDEX(path, doubles[i]), values[doubles[i]]);
}

static void visit_list(struct judge *j, uint32_t node, const cJSON *value,
                       const struct field_path *path)
{
    const struct schema_node *n = schema_node(&j->v->schema, node);
    size_t i = 0;

    if (n->kind != SCHEMA_LIST || n->list_type == LIST_ATOMIC || !json_is_array(value))
        return;
    json_each(item, value)
    {
        if (n->list_type == LIST_MAP && !json_is_object(item) && !json_is_null(item)) {
            field_invalid(j->errors, FIELD_INDEX(path, i), item,
                          "must be an object for an array of list-type map");
            return;
        }
        i++;
    }
    report_duplicates(j, n, value, path);
}

void crd_judge_lists(struct judge *j, const cJSON *object)
{
    each_value(j, j->v->root, object, NULL, visit_list);
}
