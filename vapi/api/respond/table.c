/* SPDX-License-Identifier: Apache-2.0 */
/* The other forms of an object: a row of a meta.k8s.io/v1 Table, and PartialObjectMetadata. Columns
 * and cells come from the resource's descriptor. */
#include "respond.h"

#include <sublet/crd.h>
#include <sublet/json_build.h>
#include <sublet/kinds.h>

#define META_V1 "meta.k8s.io/v1"

static void add_column(struct arena *a, cJSON *columns, const struct column *c)
{
    json_append(columns, json_object(a, JSON("name", c->name), JSON("type", c->type),
                                     JSON("format", c->format), JSON("description", c->description),
                                     JSON_I64("priority", c->priority)));
}

cJSON *respond_table_head(struct arena *a, const struct resource *r, int64_t revision,
                          bool with_columns)
{
    static const struct column name = {"Name", "string", "name", "Name of the object.", 0};
    static const struct column age = {"Age", "date", "", "Time since creation.", 0};
    /* Null, not absent: Go prints a nil list so. */
    cJSON *columns = with_columns ? json_new_array(a) : json_new_null(a);
    cJSON *meta = json_new_object(a);

    if (revision)
        json_set_str(a, meta, "resourceVersion", arena_printf(a, "%lld", (long long)revision));
    if (with_columns) {
        add_column(a, columns, r->first_column ? r->first_column : &name);
        for (const struct column *c = r->columns; c && c->name; c++)
            add_column(a, columns, c);
        if (!r->columns)
            add_column(a, columns, &age);
    }
    return json_object(a, JSON("kind", "Table"), JSON("apiVersion", META_V1),
                       JSON("metadata", meta), JSON("columnDefinitions", columns),
                       JSON("rows", json_new_array(a)));
}

cJSON *respond_partial_metadata(struct arena *a, const struct resource *r, const cJSON *object)
{
    const cJSON *meta = json_get(object, "metadata");
    cJSON *copy = meta ? json_copy(a, meta) : json_new_object(a);

    if (r->converted_annotation) {
        cJSON *annotations = json_get(copy, "annotations");

        /* Upstream converts an annotation to a field before it takes the metadata of an object. */
        json_remove(annotations, r->converted_annotation);
        if (annotations && !json_count(annotations))
            json_remove(copy, "annotations");
    }
    return json_object(a, JSON("kind", "PartialObjectMetadata"), JSON("apiVersion", META_V1),
                       JSON("metadata", copy));
}

cJSON *respond_table_row(struct arena *a, const struct resource *r, const cJSON *object,
                         enum table_include include, int64_t now)
{
    cJSON *row = json_new_object(a);
    cJSON *cells = json_set(a, row, "cells", json_new_array(a));

    if (!r->crd)
        kinds_cells(r, &(const struct row){a, object, now, cells});
    else
        json_append(cells, json_new_string(a, json_str_at(object, "metadata.name")));
    if (r->crd) {
        crd_cells(r->crd, a, object, now, cells);
    } else if (!r->columns) {
        int64_t created;

        if (time_parse(json_str_at(object, "metadata.creationTimestamp"), &created))
            json_append(cells, json_new_string(a, duration_human(a, now - created / 1000000)));
        else
            json_append(cells, json_new_string(a, STR("<unknown>")));
    }
    if (include == INCLUDE_OBJECT)
        json_set(a, row, "object", json_copy(a, object));
    else
        json_set(a, row, "object",
                 include == INCLUDE_METADATA ? respond_partial_metadata(a, r, object)
                                             : json_new_null(a));
    return row;
}

#define META_BETA STR("meta.k8s.io/v1beta1")

static void set_beta(struct arena *a, cJSON *form)
{
    if (str_eqc(json_str_at(form, "apiVersion"), META_V1))
        json_set_str(a, form, "apiVersion", META_BETA);
}

void respond_table_form_version(struct arena *a, const struct call *c, cJSON *form)
{
    if (!c->form_beta)
        return;
    set_beta(a, form);
    json_each(row, json_get(form, "rows")) set_beta(a, json_get(row, "object"));
    json_each(item, json_get(form, "items")) set_beta(a, item);
}
