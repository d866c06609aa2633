/* SPDX-License-Identifier: Apache-2.0
 *
 * Values in strategic merge patches: how Go types, compares and prints them, and the errors that
 * show them. Must never print a whole body: values in errors are truncated. */

#include "strategic.h"
#include "tree.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sublet/encode.h>
#include <sublet/patch.h>

enum { PRINT_MAX = 16384 };

struct str value_key(struct arena *a, const cJSON *value)
{
    static const char *const prefixes[] = {"z", "b", "i", "f", "s", "m", "l"};
    struct str text = json_is_string(value) ? json_str(value) : STR_NULL;

    if (value && !json_is_string(value))
        text = json_text(a, value);
    return arena_concat(a, 2, (struct str[]){str_c(prefixes[value_type(a, value)]), text});
}

/* Printing */

static int by_key(const void *left, const void *right)
{
    const cJSON *const *a = left, *const *b = right;

    return strcmp((*a)->string, (*b)->string);
}

/* How Go prints values: with %v, and as its own syntax with %#v. */
static const struct form {
    const char *map, *list, *map_end, *list_end, *between, *null;
    bool quotes;
} PLAIN = {"map[", "[", "]", "]", " ", "<nil>", false},
  SYNTAX = {
      "map[string]interface {}{", "[]interface {}{", "}", "}", ", ", "interface {}(nil)", true};

struct printer {
    struct arena *a;
    struct buf *b;
    const struct form *form;
};

static void print(const struct printer *p, const cJSON *value, unsigned depth);

static void print_str(const struct printer *p, struct str s)
{
    buf_add(p->b, p->form->quotes ? go_quote(p->a, s) : s);
}

static void print_items(const struct printer *p, struct items items, bool keys, unsigned depth)
{
    for (size_t i = 0; i < items.n && !p->b->failed; i++) {
        if (i)
            buf_addc(p->b, p->form->between);
        if (keys) {
            print_str(p, str_c(items.v[i]->string));
            buf_char(p->b, ':');
        }
        print(p, items.v[i], depth + 1);
    }
    buf_addc(p->b, keys ? p->form->map_end : p->form->list_end);
}

/* An int64 unchanged; a float64 in the fewest digits, with an exponent below 1e-4 and from 1e6
 * on. */
static void print_number(struct buf *b, const cJSON *value)
{
    double number = value->valuedouble;
    int64_t integer;
    char text[40];
    int digits = 0, exponent;

    if (json_i64(value, &integer)) {
        buf_i64(b, integer);
        return;
    }
    do
        snprintf(text, sizeof text, "%.*e", digits, number);
    while (strtod(text, NULL) != number && digits++ < DBL_DECIMAL_DIG);
    exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 6)
        snprintf(text, sizeof text, "%.*f", digits > exponent ? digits - exponent : 0, number);
    buf_addc(b, text);
}

static void print(const struct printer *p, const cJSON *value, unsigned depth)
{
    struct buf *b = p->b;
    struct items items;

    if (b->failed || depth == TREE_DEPTH)
        return;
    if (json_is_object(value)) {
        items = value_items(p->a, value);
        qsort(items.v, items.n, sizeof *items.v, by_key);
        buf_addc(b, p->form->map);
        print_items(p, items, true, depth);
    } else if (json_is_array(value)) {
        buf_addc(b, p->form->list);
        print_items(p, value_items(p->a, value), false, depth);
    } else if (json_is_string(value)) {
        print_str(p, json_str(value));
    } else if (!value || json_is_null(value)) {
        buf_addc(b, p->form->null);
    } else if (json_is_number(value)) {
        print_number(b, value);
    } else {
        buf_add(b, json_text(p->a, value));
    }
}

static struct str print_in(struct arena *a, const cJSON *value, const struct form *form)
{
    struct buf b = BUF_INIT(PRINT_MAX);
    struct str text;

    print(&(struct printer){a, &b, form}, value, 0);
    text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

struct str value_print(struct arena *a, const cJSON *value)
{
    return print_in(a, value, &PLAIN);
}

struct str patch_print_syntax(struct arena *a, const cJSON *value)
{
    return print_in(a, value, &SYNTAX);
}

/* Lists */

struct items value_items(struct arena *a, const cJSON *array)
{
    size_t n = json_count(array), i = 0;
    struct items items = {.v = arena_alloc(a, (n + 1) * sizeof *items.v), .n = n};

    json_each(item, array) items.v[i++] = item;
    return items;
}

cJSON *value_array(struct arena *a, struct items items)
{
    cJSON *array = json_new_array(a);

    for (size_t i = 0; i < items.n; i++) {
        items.v[i]->next = items.v[i]->prev = NULL;
        json_append(array, items.v[i]);
    }
    return array;
}

/* Cleaning */

void value_drop_nulls(cJSON *value, unsigned depth)
{
    cJSON *next;

    if (depth == TREE_DEPTH)
        return;
    for (cJSON *child = json_first(value); child; child = next) {
        next = child->next;
        if (json_is_null(child) && json_is_object(value))
            json_detach(value, child);
        else
            value_drop_nulls(child, depth + 1);
    }
}

bool value_drop_directives(cJSON *value, unsigned depth)
{
    cJSON *next;

    if (json_get(value, DIRECTIVE))
        return false;
    if (depth == TREE_DEPTH)
        return true;
    for (cJSON *child = json_first(value); child; child = next) {
        next = child->next;
        if (!value_drop_directives(child, depth + 1))
            json_detach(value, child);
    }
    return true;
}

void value_strip(struct strategic *s, uint32_t node, cJSON *value, unsigned depth)
{
    const struct schema_node *n = schema_node(s->schema, node);
    cJSON *next;

    if (depth == TREE_DEPTH || n->kind == SCHEMA_ANY)
        return;
    for (cJSON *child = json_first(value); child; child = next) {
        struct str key = str_c(child->string);

        next = child->next;
        if (json_is_array(value))
            value_strip(s, n->elem, child, depth + 1);
        else if (n->kind == SCHEMA_OBJECT && str_has_prefix(key, STR("$")) &&
                 !schema_field(s->schema, node, key))
            json_detach(value, child);
        else
            value_strip(s, schema_child(s->schema, node, key), child, depth + 1);
    }
}

/* Errors. Those without a specific reason are answered with 500, as upstream does. */

int strategic_bad_type(struct strategic *s, const char *expected, const cJSON *actual)
{
    static const char *const names[] = {"%!s(<nil>)",    "bool",   "int64",
                                        "float64",       "string", "map[string]interface {}",
                                        "[]interface {}"};

    return err_set(s->err, &ERR_UNKNOWN, "expected a %s, but received a %s", expected,
                   names[value_type(s->arena, actual)]);
}

int strategic_no_key(struct strategic *s, const cJSON *map, const char *key)
{
    return err_set(s->err, &ERR_UNKNOWN, "map: %.*s does not contain declared merge key: %s",
                   STR_F(value_print(s->arena, map)), key);
}

int strategic_bad_directive(struct strategic *s, const cJSON *directive, const cJSON *map)
{
    static const char *const scalars[] = {
        [VALUE_BOOL] = "bool=", [VALUE_INT] = "int64=", [VALUE_FLOAT] = "float64="};
    enum value_type type = value_type(s->arena, directive);

    if (type <= VALUE_FLOAT) /* fmt's %s of a value that is not a string */
        return err_set(s->err, &ERR_UNKNOWN, "unknown patch type: %%!s(%s%.*s) in map: %.*s",
                       scalars[type] ? scalars[type] : "", STR_F(value_print(s->arena, directive)),
                       STR_F(value_print(s->arena, map)));
    return err_set(s->err, &ERR_UNKNOWN, "unknown patch type: %.*s in map: %.*s",
                   STR_F(value_print(s->arena, directive)), STR_F(value_print(s->arena, map)));
}

int strategic_bad_order(struct strategic *s)
{
    return err_set(s->err, &ERR_BAD_REQUEST, "invalid patch format of setElementOrder list");
}
