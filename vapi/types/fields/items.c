/* SPDX-License-Identifier: Apache-2.0
 *
 * Items of lists that are sets or maps, by their identity, and members of objects by their key.
 * Look-ups are by bisection and hashing: a tenant's list of 100,000 items must stay cheap.
 * Source: structured-merge-diff typed/helpers.go. */
#include "fields.h"

#include "../builtin.h"
#include "../index.h"

#include <stdlib.h>
#include <string.h>

#define MAX_KEYS 64

/* ---- identities ---- */

/* OpenAPI's default of a key that an item leaves out; NULL when it has none. */
static const cJSON *key_default(struct arena *a, const struct field_type *item, const char *key)
{
    const struct schema_field *f;
    const struct schema_node *n;
    struct err err;
    cJSON *value;

    if (item->form != TYPE_NODE)
        return NULL;
    f = schema_field_of(item->schema, schema_node(item->schema, item->node), key, 0);
    if (!f)
        return NULL;
    err_init(&err, a);
    if (f->flags & FIELD_HAS_DEFAULT &&
        json_parse(a, str_c(schema_text(item->schema, f->default_json)), &value, &err) == 0)
        return value;
    if (!(f->patch & PATCH_ZERO))
        return NULL;
    n = schema_node(item->schema, f->node);
    if (n->kind == SCHEMA_STRING)
        return json_new_string(a, STR(""));
    return n->kind == SCHEMA_BOOL ? json_new_bool(a, false) : json_new_i64(a, 0);
}

static const char *omits_keys(struct arena *a, const char *keys)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    buf_addc(&b, "associative list with keys has an element that omits all key fields [");
    for (const char *key = keys; *key; key += strlen(key) + 1) {
        buf_addc(&b, key == keys ? "" : " ");
        buf_json_string(&b, str_c(key));
    }
    buf_addc(&b, "] (and doesn't have default values for any key fields)");
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text.p;
}

static const char *identify_keyed(struct arena *a, const struct field_type *type, const char *keys,
                                  const cJSON *item, struct element *ret)
{
    struct element_part found[MAX_KEYS];
    struct element_part *parts;
    uint32_t n = 0;

    if (json_is_null(item))
        return "associative list with keys may not have a null element";
    if (!json_is_object(item))
        return "associative list with keys may not have non-map elements";
    for (const char *key = keys; *key && n < MAX_KEYS; key += strlen(key) + 1) {
        const cJSON *value = json_get(item, key);

        if (!value)
            value = key_default(a, type, key);
        if (value)
            found[n++] = (struct element_part){str_c(key), value};
    }
    if (!n)
        return omits_keys(a, keys);
    parts = arena_alloc(a, n * sizeof(*parts));
    memcpy(parts, found, n * sizeof(*parts));
    element_sort_parts(parts, n);
    *ret = (struct element){.kind = ELEMENT_KEY, .n = n, .parts = parts};
    return NULL;
}

static const char *identify(struct arena *a, const struct atom *list, const struct field_type *type,
                            const cJSON *item, struct element *ret)
{
    const struct schema_node *n = schema_node(list->type.schema, list->type.node);

    if (n->list_type == LIST_MAP && n->keys)
        return identify_keyed(a, type, schema_text(list->type.schema, n->keys), item, ret);
    if (json_is_object(item))
        return "associative list without keys has an element that's a map type";
    if (json_is_array(item))
        return "not supported: associative list with lists as elements";
    if (json_is_null(item))
        return "associative list without keys has an element that's an explicit null";
    *ret = (struct element){.kind = ELEMENT_VALUE, .value = item};
    return NULL;
}

/* ---- lists ---- */

static int by_element(const void *x, const void *y, void *ctx)
{
    const struct item *at = ctx;
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    int order = element_cmp(&at[a].element, &at[b].element);

    return order ? order : (a > b) - (a < b);
}

int items_of(struct arena *a, const struct atom *t, const cJSON *list, struct items *ret,
             struct str *ret_why)
{
    struct field_type type = type_item(t);
    size_t n = json_is_array(list) ? json_count(list) : 0;
    uint32_t first;

    *ret = (struct items){0};
    if (!n)
        return 0;
    ret->at = arena_alloc(a, n * sizeof(*ret->at));
    ret->order = arena_alloc(a, n * sizeof(*ret->order));
    json_each(item, list)
    {
        const char *why = identify(a, t, &type, item, &ret->at[ret->n].element);

        if (why) {
            *ret_why = arena_printf(a, "element %u: %s", ret->n, why);
            return -1;
        }
        ret->at[ret->n].value = item;
        ret->order[ret->n] = ret->n;
        ret->n++;
    }

    first = 0;
    qsort_r(ret->order, ret->n, sizeof(*ret->order), by_element, ret->at);
    for (uint32_t i = 0; i < ret->n; i++) {
        uint32_t at = ret->order[i];

        if (!i || element_cmp(&ret->at[first].element, &ret->at[at].element) != 0)
            ret->at[first = at].rank = i;
        ret->at[at].twin = first;
        ret->at[first].count++;
    }
    return 0;
}

int64_t items_find(const struct items *x, const struct element *e)
{
    uint32_t low = 0, high = x->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = element_cmp(e, &x->at[x->order[middle]].element);

        if (order == 0)
            return x->at[x->order[middle]].twin;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* ---- members ---- */

/* After this many look-ups that missed the next member, an index pays off. */
#define MANY_MISSES 8

void lookup_open(struct lookup *l, struct arena *a, const cJSON *object)
{
    bool usable = json_is_object(object);

    *l = (struct lookup){.arena = a};
    l->object = usable ? (cJSON *)(uintptr_t)object : NULL;
    l->next = json_first(l->object);
}

static cJSON *indexed(struct lookup *l, const char *key)
{
    struct index_slot *slot;
    bool fresh;

    if (!l->index) {
        l->index = ARENA_NEW(l->arena, struct index);
        index_init(l->index, l->arena, json_count(l->object) + 1);
        json_each(member, l->object) index_put(l->index, str_c(member->string), &fresh)->node =
            member;
    }
    slot = index_get(l->index, str_c(key));
    return slot ? slot->node : NULL;
}

cJSON *lookup_get(struct lookup *l, const char *key)
{
    cJSON *found;

    if (l->next && strcmp(l->next->string, key) == 0)
        found = l->next;
    else if (++l->misses > MANY_MISSES)
        found = indexed(l, key);
    else
        found = json_get(l->object, key);
    if (found)
        l->next = found->next;
    return found;
}
