/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of a custom resource's table row: additionalPrinterColumns by JSONPath, or its age. */
#include "version.h"

#include <string.h>

#include <sublet/clock.h>

static cJSON *age(struct arena *a, struct str text, int64_t now)
{
    int64_t us;

    if (!time_parse(text, &us))
        return json_new_string(a, STR("<invalid>"));
    return json_new_string(a, duration_human(a, now - us / 1000000));
}

struct found {
    struct arena *arena;
    const cJSON *first;
    struct buf joined;
    size_t n;
};

static bool on_found(void *ctx, const cJSON *node)
{
    struct found *f = ctx;

    if (!f->n++)
        f->first = node;
    else
        buf_char(&f->joined, ',');
    buf_add(&f->joined, json_is_string(node) ? json_str(node) : json_text(f->arena, node));
    return f->n < 64;
}

static cJSON *cell_of(struct arena *a, const struct printer_column *c, const cJSON *object,
                      int64_t now)
{
    struct found f = {.arena = a, .joined = BUF_INIT(64 * 1024)};
    cJSON *cell = json_new_null(a);
    int64_t number;

    if (c->path)
        jsonpath_eval(c->path, object, on_found, &f);
    if (!f.first) {
        buf_fini(&f.joined);
        return cell;
    }
    if (!strcmp(c->type, "date"))
        cell = age(a, json_str(f.first), now);
    else if (!strcmp(c->type, "string"))
        cell = json_new_string(a, buf_str(&f.joined));
    else if (!strcmp(c->type, "integer") && json_i64(f.first, &number))
        cell = json_new_i64(a, number);
    else if (!strcmp(c->type, "number") && json_is_number(f.first))
        cell = json_copy(a, f.first);
    else if (!strcmp(c->type, "boolean") && json_is_bool(f.first))
        cell = json_copy(a, f.first);
    buf_fini(&f.joined);
    return cell;
}

void crd_cells(const struct crd_version *v, struct arena *a, const cJSON *object, int64_t now,
               cJSON *cells)
{
    for (size_t i = 0; i < v->n_columns; i++)
        json_append(cells, cell_of(a, &v->columns[i], object, now));
    if (!v->n_columns)
        json_append(cells, age(a, json_str_at(object, "metadata.creationTimestamp"), now));
}
