/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of Table rows, printed as upstream prints them (pkg/printers/internalversion). Must never
 * fail: a field that is missing has a string of its own. */
#include "cells.h"

#include <sublet/clock.h>

/* ---- pieces ---- */

void cell_text(const struct row *r, struct str text)
{
    json_append(r->cells, json_new_string(r->a, text));
}

void cell_or(const struct row *r, struct str text, const char *otherwise)
{
    cell_text(r, text.n ? text : str_c(otherwise));
}

void cell_number(const struct row *r, int64_t number)
{
    json_append(r->cells, json_new_i64(r->a, number));
}

void cell_bool(const struct row *r, bool value)
{
    json_append(r->cells, json_new_bool(r->a, value));
}

void cell_pair(const struct row *r, const cJSON *object, const char *a, const char *b,
               const char *otherwise)
{
    if (object)
        cell_printf(r, "%.*s/%.*s", STR_F(json_str(json_get(object, a))),
                    STR_F(json_str(json_get(object, b))));
    else
        cell_text(r, str_c(otherwise));
}

struct str kinds_since(const struct row *r, struct str time)
{
    int64_t us;

    if (!time_parse(time, &us))
        return STR("<unknown>");
    return duration_human(r->a, r->now - us / 1000000);
}

struct str show_label_selector_text(struct arena *a, const cJSON *selector)
{
    struct selector s;
    struct err err;

    err_init(&err, a);
    if (selector_from_json(a, selector, &s, &err))
        return STR("<error>");
    return selector_format(a, &s);
}

struct str kinds_join(struct arena *a, const cJSON *list, const char *separator)
{
    struct buf b = BUF_INIT(0);

    json_each(item, list)
    {
        buf_addc(&b, item == list->child ? "" : separator);
        buf_add(&b, json_str(item));
    }
    struct str text = arena_str(a, buf_str(&b));
    buf_fini(&b);
    return text;
}

/* ---- columns ---- */

void show_text(const struct row *r, const struct column *c)
{
    cell_or(r, json_str_at(r->object, c->path), c->otherwise ? c->otherwise : "");
}

void show_number(const struct row *r, const struct column *c)
{
    cell_number(r, json_i64_at(r->object, c->path, 0));
}

void show_bool(const struct row *r, const struct column *c)
{
    cell_bool(r, json_true(json_path(r->object, c->path)));
}

void show_count(const struct row *r, const struct column *c)
{
    cell_number(r, (int64_t)json_count(json_path(r->object, c->path)));
}

void show_age(const struct row *r, const struct column *c)
{
    (void)c;
    cell_text(r, kinds_since(r, json_str_at(r->object, "metadata.creationTimestamp")));
}

static void show_members(const struct row *r, const cJSON *list, const char *key)
{
    struct buf b = BUF_INIT(0);

    json_each(item, list)
    {
        buf_addc(&b, item == list->child ? "" : ",");
        buf_add(&b, json_str(json_get(item, key)));
    }
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

void show_names(const struct row *r, const struct column *c)
{
    show_members(r, json_path(r->object, c->path), "name");
}

void show_images(const struct row *r, const struct column *c)
{
    show_members(r, json_path(r->object, c->path), "image");
}

void show_map(const struct row *r, const struct column *c)
{
    struct str rest = labels_flatten(r->a, json_path(r->object, c->path)), key, value;
    struct buf b = BUF_INIT(0);

    while (labels_next(&rest, &key, &value))
        buf_printf(&b, "%s%.*s=%.*s", b.n ? "," : "", STR_F(key), STR_F(value));
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

void show_selector(const struct row *r, const struct column *c)
{
    cell_or(r, show_label_selector_text(r->a, json_path(r->object, c->path)), c->otherwise);
}
