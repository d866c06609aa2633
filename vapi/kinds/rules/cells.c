/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of Table rows, printed as upstream prints them (pkg/printers/internalversion). Must never
 * fail: a field that is missing has a text of its own. */
#include "cells.h"

#include <sublet/clock.h>
#include <sublet/kinds.h>

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

void cell_number_at(const struct row *r, const char *path)
{
    cell_number(r, json_i64_at(r->object, path, 0));
}

void cell_text_at(const struct row *r, const char *path)
{
    cell_text(r, json_str_at(r->object, path));
}

void cell_text_or(const struct row *r, const char *path, const char *otherwise)
{
    cell_or(r, json_str_at(r->object, path), otherwise);
}

void cell_bool(const struct row *r, bool value)
{
    json_append(r->cells, json_new_bool(r->a, value));
}

void cell_count(const struct row *r, const char *path)
{
    cell_number(r, (int64_t)json_count(json_path(r->object, path)));
}

struct str since(const struct row *r, struct str time)
{
    int64_t us;

    if (!time_parse(time, &us))
        return STR("<unknown>");
    return duration_human(r->a, r->now - us / 1000000);
}

void cell_age(const struct row *r)
{
    cell_text(r, since(r, json_str_at(r->object, "metadata.creationTimestamp")));
}

void cell_first(const struct row *r, struct str text)
{
    json_replace(r->cells, r->cells->child, json_new_string(r->a, text));
}

void cell_containers(const struct row *r, const cJSON *containers)
{
    struct buf names = BUF_INIT(0), images = BUF_INIT(0);

    json_each(c, containers)
    {
        buf_addc(&names, c == containers->child ? "" : ",");
        buf_add(&names, json_str(json_get(c, "name")));
        buf_addc(&images, c == containers->child ? "" : ",");
        buf_add(&images, json_str(json_get(c, "image")));
    }
    cell_text(r, buf_str(&names));
    cell_text(r, buf_str(&images));
    buf_fini(&names);
    buf_fini(&images);
}

void cell_map(const struct row *r, const cJSON *labels)
{
    struct str rest = labels_flatten(r->a, labels), key, value;
    struct buf b = BUF_INIT(0);

    while (labels_next(&rest, &key, &value)) {
        buf_addc(&b, b.n ? "," : "");
        buf_add(&b, key);
        buf_char(&b, '=');
        buf_add(&b, value);
    }
    cell_or(r, buf_str(&b), "<none>");
    buf_fini(&b);
}

struct str label_selector_text(struct arena *a, const cJSON *selector)
{
    struct selector s;
    struct err err;

    err_init(&err, a);
    if (selector_from_json(a, selector, &s, &err))
        return STR("<error>");
    return selector_format(a, &s);
}

void cell_selector(const struct row *r, const cJSON *selector, const char *otherwise)
{
    cell_or(r, label_selector_text(r->a, selector), otherwise);
}

struct str join(struct arena *a, const cJSON *list, const char *separator)
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

ROW_CELLS(cells_age)
{
    struct row r = {a, object, now, cells};

    cell_age(&r);
}

void kinds_cells_created_at(struct arena *a, const cJSON *object, int64_t now, cJSON *cells)
{
    struct row r = {a, object, now, cells};

    cell_text_at(&r, "metadata.creationTimestamp");
}
