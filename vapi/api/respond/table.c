/* SPDX-License-Identifier: Apache-2.0 */
/* The other forms of an object: a row of a meta.k8s.io/v1 Table, and PartialObjectMetadata. Columns
 * and cells come from the resource's descriptor. */
#include "respond.h"

#include <sublet/crd.h>
#include <sublet/kinds.h>

#define META_V1 STR("meta.k8s.io/v1")

static void add_column(struct arena *a, cJSON *columns, const struct column *c)
{
    cJSON *column = json_append(columns, json_new_object(a));

    json_set_str(a, column, "name", str_c(c->name));
    json_set_str(a, column, "type", str_c(c->type));
    json_set_str(a, column, "format", str_c(c->format ? c->format : ""));
    json_set_str(a, column, "description", str_c(c->description ? c->description : ""));
    json_set_i64(a, column, "priority", c->priority);
}

cJSON *table_head(struct arena *a, const struct resource *r, int64_t revision, bool with_columns)
{
    static const struct column name = {"Name", "string", "name", "Name of the object.", 0};
    static const struct column age = {"Age", "date", "", "Time since creation.", 0};
    cJSON *table = json_new_object(a);
    cJSON *meta;

    json_set_str(a, table, "kind", STR("Table"));
    json_set_str(a, table, "apiVersion", META_V1);
    meta = json_ensure_object(a, table, "metadata");
    if (revision)
        json_set_str(a, meta, "resourceVersion", arena_printf(a, "%lld", (long long)revision));
    /* Null, not absent: Go prints a nil list so. */
    cJSON *columns = json_set(a, table, "columnDefinitions",
                              with_columns ? json_new_array(a) : json_new_null(a));
    if (with_columns) {
        add_column(a, columns, r->first_column ? r->first_column : &name);
        for (const struct column *c = r->columns; c && c->name; c++)
            add_column(a, columns, c);
        if (!r->columns)
            add_column(a, columns, &age);
    }
    json_set(a, table, "rows", json_new_array(a));
    return table;
}

/* Upstream converts an annotation to a field before it takes the metadata of an object. */
static void drop_converted(cJSON *meta, const char *name)
{
    cJSON *annotations = json_get(meta, "annotations");

    json_remove(annotations, name);
    if (annotations && !json_count(annotations))
        json_remove(meta, "annotations");
}

cJSON *table_partial_metadata(struct arena *a, const struct resource *r, const cJSON *object)
{
    cJSON *partial = json_new_object(a);
    const cJSON *meta = json_get(object, "metadata");

    json_set_str(a, partial, "kind", STR("PartialObjectMetadata"));
    json_set_str(a, partial, "apiVersion", META_V1);
    cJSON *copy = json_set(a, partial, "metadata", meta ? json_copy(a, meta) : json_new_object(a));
    if (r->converted_annotation)
        drop_converted(copy, r->converted_annotation);
    return partial;
}

static void default_cells(struct arena *a, const cJSON *object, int64_t now, cJSON *cells)
{
    int64_t created;

    if (time_parse(json_str_at(object, "metadata.creationTimestamp"), &created))
        json_append(cells, json_new_string(a, duration_human(a, now - created / 1000000)));
    else
        json_append(cells, json_new_string(a, STR("<unknown>")));
}

cJSON *table_row(struct arena *a, const struct resource *r, const cJSON *object,
                 enum table_include include, int64_t now)
{
    cJSON *row = json_new_object(a);
    cJSON *cells = json_set(a, row, "cells", json_new_array(a));

    if (!r->crd)
        kinds_cells(r, &(const struct row){a, object, now, cells});
    else
        json_append(cells, json_new_string(a, json_str_at(object, "metadata.name")));
    if (r->crd)
        crd_cells(r->crd, a, object, now, cells);
    else if (!r->columns)
        default_cells(a, object, now, cells);
    if (include == INCLUDE_OBJECT)
        json_set(a, row, "object", json_copy(a, object));
    else
        json_set(a, row, "object",
                 include == INCLUDE_METADATA ? table_partial_metadata(a, r, object)
                                             : json_new_null(a));
    return row;
}

#define META_BETA STR("meta.k8s.io/v1beta1")

static void set_beta(struct arena *a, cJSON *form)
{
    if (str_eq(json_str_at(form, "apiVersion"), META_V1))
        json_set_str(a, form, "apiVersion", META_BETA);
}

void table_form_version(struct arena *a, const struct call *c, cJSON *form)
{
    if (!c->form_beta)
        return;
    set_beta(a, form);
    json_each(row, json_get(form, "rows")) set_beta(a, json_get(row, "object"));
    json_each(item, json_get(form, "items")) set_beta(a, item);
}
