/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of paths: their order, their form in messages, and their form as keys of fieldsV1. Input
 * comes from stored objects and from clients: it must never be trusted. Source:
 * structured-merge-diff fieldpath/{element,serialize-pe}.go, value/value.go. */
#include "fields.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

/* Order of types: numbers, strings, booleans, lists, objects, null. */
static int rank(const cJSON *v)
{
    if (json_is_number(v))
        return 0;
    if (json_is_string(v))
        return 1;
    if (json_is_bool(v))
        return 2;
    if (json_is_array(v))
        return 3;
    return json_is_object(v) ? 4 : 5;
}

static int cmp_numbers(const cJSON *a, const cJSON *b)
{
    int64_t x, y;

    if (json_i64(a, &x) && json_i64(b, &y))
        return (x > y) - (x < y);
    return (a->valuedouble > b->valuedouble) - (a->valuedouble < b->valuedouble);
}

static int cmp_values(const cJSON *a, const cJSON *b);

static int cmp_children(const cJSON *a, const cJSON *b)
{
    const cJSON *x = json_first(a), *y = json_first(b);

    for (; x && y; x = x->next, y = y->next) {
        int order = x->string && y->string ? strcmp(x->string, y->string) : 0;

        if (!order)
            order = cmp_values(x, y);
        if (order)
            return order;
    }
    return (x != NULL) - (y != NULL);
}

/* Depth is bounded by the reader of the tree. */
static int cmp_values(const cJSON *a, const cJSON *b)
{
    int left = rank(a), right = rank(b);

    if (left != right)
        return left < right ? -1 : 1;
    switch (left) {
    case 0:
        return cmp_numbers(a, b);
    case 1:
        return str_cmp(json_str(a), json_str(b));
    case 2:
        return (int)json_true(a) - (int)json_true(b);
    case 3:
    case 4:
        return cmp_children(a, b);
    default:
        return 0;
    }
}

static int cmp_parts(const struct element *a, const struct element *b)
{
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        int order = str_cmp(a->parts[i].name, b->parts[i].name);

        if (!order)
            order = cmp_values(a->parts[i].value, b->parts[i].value);
        if (order)
            return order;
    }
    return (a->n > b->n) - (a->n < b->n);
}

int element_cmp(const struct element *a, const struct element *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    switch (a->kind) {
    case ELEMENT_FIELD:
        return str_cmp(a->name, b->name);
    case ELEMENT_KEY:
        return cmp_parts(a, b);
    case ELEMENT_VALUE:
        return cmp_values(a->value, b->value);
    case ELEMENT_INDEX:
    default:
        return (a->index > b->index) - (a->index < b->index);
    }
}

/* ---- messages ---- */

/* %q for a string, %v for other values. */
static void add_value(struct buf *b, const cJSON *v)
{
    const char *between = "";

    if (!json_is_array(v) && !json_is_object(v)) {
        json_print(b, v);
        return;
    }
    buf_addc(b, json_is_array(v) ? "[" : "");
    json_each(item, v)
    {
        buf_addc(b, between);
        if (item->string) {
            buf_addc(b, item->string);
            buf_addc(b, "=");
        }
        add_value(b, item);
        between = json_is_array(v) ? "," : "";
    }
    buf_addc(b, json_is_array(v) ? "]" : "");
}

void element_text(struct buf *b, const struct element *e)
{
    switch (e->kind) {
    case ELEMENT_FIELD:
        buf_char(b, '.');
        buf_add(b, e->name);
        return;
    case ELEMENT_KEY:
        buf_char(b, '[');
        for (uint32_t i = 0; i < e->n; i++) {
            buf_addc(b, i ? "," : "");
            buf_add(b, e->parts[i].name);
            buf_char(b, '=');
            add_value(b, e->parts[i].value);
        }
        buf_char(b, ']');
        return;
    case ELEMENT_VALUE:
        buf_addc(b, "[=");
        add_value(b, e->value);
        buf_char(b, ']');
        return;
    case ELEMENT_INDEX:
    default:
        buf_printf(b, "[%lld]", (long long)e->index);
    }
}

/* ---- keys of fieldsV1 ---- */

/* Escapes <, > and & as Go's JSON encoder does. */
static void add_json(struct buf *b, const cJSON *v)
{
    if (json_is_string(v))
        buf_json_string(b, json_str(v));
    else
        json_print(b, v);
}

const char *element_print(struct arena *a, const struct element *e)
{
    struct buf b = BUF_INIT(0);
    struct str text;

    if (e->kind == ELEMENT_FIELD)
        return arena_concat(a, 2, (struct str[]){STR("f:"), e->name}).p;
    if (e->kind == ELEMENT_KEY) {
        buf_addc(&b, "k:{");
        for (uint32_t i = 0; i < e->n; i++) {
            buf_addc(&b, i ? "," : "");
            buf_json_string(&b, e->parts[i].name);
            buf_char(&b, ':');
            add_json(&b, e->parts[i].value);
        }
        buf_char(&b, '}');
    } else if (e->kind == ELEMENT_VALUE) {
        buf_addc(&b, "v:");
        add_json(&b, e->value);
    } else {
        buf_printf(&b, "i:%lld", (long long)e->index);
    }
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text.p;
}

static int by_name(const void *x, const void *y)
{
    const struct element_part *a = x, *b = y;

    return str_cmp(a->name, b->name);
}

void element_sort_parts(struct element_part *parts, size_t n)
{
    if (n == 2 && by_name(&parts[0], &parts[1]) > 0) {
        struct element_part first = parts[0];

        parts[0] = parts[1];
        parts[1] = first;
    } else if (n > 2) {
        qsort(parts, n, sizeof(*parts), by_name);
    }
}

static int parse_parts(struct arena *a, struct str text, struct element *ret)
{
    struct element_part *parts;
    struct err err;
    cJSON *tree;

    err_init(&err, a);
    if (json_parse(a, text, &tree, &err) || !json_is_object(tree))
        return -1;
    ret->kind = ELEMENT_KEY;
    parts = arena_alloc(a, (json_count(tree) + 1) * sizeof(*parts));
    json_each(member, tree) parts[ret->n++] = (struct element_part){str_c(member->string), member};
    element_sort_parts(parts, ret->n);
    ret->parts = parts;
    return 0;
}

static int parse_value(struct arena *a, struct str text, struct element *ret)
{
    struct err err;
    cJSON *value;

    err_init(&err, a);
    ret->kind = ELEMENT_VALUE;
    if (json_parse(a, text, &value, &err))
        return -1;
    ret->value = value;
    return 0;
}

enum element_read element_parse(struct arena *a, const char *key, struct element *ret)
{
    struct str text = str_c(key), rest = str_from(text, 2);

    memset(ret, 0, sizeof(*ret));
    if (text.n < 2 || text.p[1] != ':')
        return ELEMENT_BAD;
    switch (text.p[0]) {
    case 'f':
        ret->kind = ELEMENT_FIELD;
        ret->name = rest.p ? rest : STR("");
        return ELEMENT_READ;
    case 'k':
        return parse_parts(a, rest, ret) ? ELEMENT_BAD : ELEMENT_READ;
    case 'v':
        return parse_value(a, rest, ret) ? ELEMENT_BAD : ELEMENT_READ;
    case 'i':
        ret->kind = ELEMENT_INDEX;
        return str_to_i64(rest, &ret->index) ? ELEMENT_READ : ELEMENT_BAD;
    default:
        return ELEMENT_IGNORED;
    }
}

void element_path(struct buf *b, const struct element_step *at)
{
    if (!at || !at->element)
        return;
    element_path(b, at->up);
    element_text(b, at->element);
}
