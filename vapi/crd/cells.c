/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of a custom resource's table row: additionalPrinterColumns by JSONPath, or its age. */
#include "version.h"

#include <stdlib.h>
#include <string.h>

#include <sublet/clock.h>
#include <sublet/patch.h>

static cJSON *age(struct arena *a, struct str text, int64_t now)
{
    int64_t us;

    if (!text.n)
        return json_new_string(a, STR("<unknown>"));
    if (!time_parse(text, &us))
        return json_new_string(a, STR("<invalid>"));
    return json_new_string(a, duration_human(a, now - us / 1000000));
}

/* Upstream shows the first value of a path, however many there are. */
static bool on_found(void *ctx, const cJSON *node)
{
    const cJSON **first = ctx;

    *first = node;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(cJSON *const *)a)->string, (*(cJSON *const *)b)->string);
}

/* A value with the members of all its objects sorted, as Go prints its maps. */
static cJSON *in_order(struct arena *a, const cJSON *value)
{
    bool is_object = json_is_object(value);
    const cJSON **members;
    cJSON *copy;
    size_t n = 0;

    if (!is_object && !json_is_array(value))
        return json_copy(a, value);
    members = arena_alloc(a, (json_count(value) + 1) * sizeof(*members));
    json_each(member, value) members[n++] = member;
    if (is_object)
        qsort(members, n, sizeof(*members), by_name);
    copy = is_object ? json_new_object(a) : json_new_array(a);
    for (size_t i = 0; i < n; i++) {
        if (is_object)
            json_set(a, copy, members[i]->string, in_order(a, members[i]));
        else
            json_append(copy, in_order(a, members[i]));
    }
    return copy;
}

/* As Go converts a float to an int64 on amd64. */
static int64_t cut_number(double value)
{
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

static cJSON *cell_of(struct arena *a, const struct printer_column *c, const cJSON *object,
                      int64_t now)
{
    const cJSON *value = NULL;
    int64_t number;

    if (c->path)
        jsonpath_eval(c->path, object, on_found, &value);
    if (value && !strcmp(c->type, "string")) {
        if (json_is_object(value) || json_is_array(value))
            return json_new_string(a, json_text(a, in_order(a, value)));
        return json_new_string(a, json_is_null(value) ? STR("<no value>") : patch_print(a, value));
    }
    if (json_is_string(value) && !strcmp(c->type, "date"))
        return age(a, json_str(value), now);
    if (!strcmp(c->type, "integer") && json_is_number(value))
        return json_new_i64(a, json_i64(value, &number) ? number : cut_number(value->valuedouble));
    if (json_is_number(value) && !strcmp(c->type, "number"))
        return json_new_double(a, value->valuedouble);
    if (json_is_bool(value) && !strcmp(c->type, "boolean"))
        return json_copy(a, value);
    return json_new_null(a);
}

void crd_cells(const struct crd_version *v, struct arena *a, const cJSON *object, int64_t now,
               cJSON *cells)
{
    for (size_t i = 0; i < v->n_columns; i++)
        json_append(cells, cell_of(a, &v->columns[i], object, now));
    if (!v->n_columns)
        json_append(cells, age(a, json_str_at(object, "metadata.creationTimestamp"), now));
}
