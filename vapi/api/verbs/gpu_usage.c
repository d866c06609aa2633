/* SPDX-License-Identifier: Apache-2.0 */
/* GET and LIST of GPUUsage and ClusterGPUUsage: what the hook `gpu_usage` says at this moment, in
 * every form a stored kind has: objects, Tables, metadata alone. Must never show a namespace but
 * the requested one. */
#include "verbs.h"

#include "../respond/respond.h"
#include "../watch/usage.h"

#include <sublet/json_build.h>

static cJSON *row_of(struct call *c, cJSON *object)
{
    if (c->output == OUTPUT_TABLE)
        return respond_table_row(c->arena, c->resource, object, c->include,
                                 clock_wall_s(vapi_clock(c->api)));
    return c->output == OUTPUT_PARTIAL ? respond_partial_metadata(c->arena, c->resource, object)
                                       : object;
}

static void answer_list(struct call *c)
{
    int64_t revision;
    const cJSON *items = watch_usage_list(c, &revision);
    bool table = c->output == OUTPUT_TABLE, partial = c->output == OUTPUT_PARTIAL;
    struct arena *a = c->arena;
    cJSON *rows = json_new_array(a), *list;

    json_each(item, items) json_append(rows, row_of(c, json_copy(a, item)));
    if (table) {
        list = respond_table_head(a, c->resource, revision, true);
        json_set(a, list, "rows", rows);
    } else {
        list = json_object(
            a, JSON("kind", partial ? STR("PartialObjectMetadataList") : c->resource->list_kind),
            JSON("apiVersion", partial ? STR("meta.k8s.io/v1") : c->resource->api_version),
            JSON("metadata", json_object(a, JSON("resourceVersion",
                                                 arena_printf(a, "%lld", (long long)revision)))),
            JSON("items", rows));
    }
    respond_tree(c, 200, list);
}

static void answer_one(struct call *c)
{
    int64_t revision;
    const cJSON *items = watch_usage_list(c, &revision);
    struct err err;

    json_each(item, items)
    {
        if (!str_eq(json_str_at(item, "metadata.name"), c->name))
            continue;
        respond_object(c, 200, json_copy(c->arena, item));
        return;
    }
    err_init(&err, c->arena);
    if (err_not_found(&err, c->resource->group, c->resource->plural, c->name))
        call_error(c, &err);
}

void call_gpu_usage(struct call *c)
{
    struct err err;

    err_init(&err, c->arena);
    if (c->api->usage_gone) { /* unknown, which is not empty */
        err_set(&err, &ERR_UNAVAILABLE, "the usage of GPUs is not known: this process is closing");
        call_error(c, &err);
    } else if (c->verb == CALL_WATCH)
        call_watch_usage(c);
    else if (c->verb == CALL_LIST && index_select(c, &err))
        call_error(c, &err);
    else if (c->verb == CALL_LIST)
        answer_list(c);
    else
        answer_one(c);
}
