/* SPDX-License-Identifier: Apache-2.0 */
/* GET and LIST of GPUUsage and ClusterGPUUsage: what the hook `gpu_usage` says at this moment, in
 * every form a stored kind has: objects, Tables, metadata alone. Must never show a namespace but
 * the requested one. */
#include "verbs.h"

#include "../respond/respond.h"

#include <sublet/json_build.h>

static cJSON *read_all(struct call *c)
{
    const struct vapi_hooks *hooks = vapi_get_hooks(c->api);

    if (!hooks->gpu_usage)
        return json_new_array(c->arena);
    return hooks->gpu_usage(hooks->ctx, c->arena, !resource_namespaced(c->resource), c->ns);
}

/* In the order of members that clients expect. */
static cJSON *typed(const struct call *c, const cJSON *item)
{
    return json_object(c->arena, JSON("apiVersion", c->resource->api_version),
                       JSON("kind", c->resource->kind),
                       JSON("metadata", json_copy(c->arena, json_get(item, "metadata"))),
                       JSON("status", json_copy(c->arena, json_get(item, "status"))));
}

static bool is_selected(struct call *c, const cJSON *item)
{
    const cJSON *meta = json_get(item, "metadata");
    struct store_object o = {.ns = json_str(json_get(meta, "namespace")),
                             .name = json_str(json_get(meta, "name")),
                             .labels = labels_flatten(c->arena, NULL)};

    return index_match(&c->options, &o);
}

static cJSON *row_of(struct call *c, cJSON *object)
{
    if (c->output == OUTPUT_TABLE)
        return respond_table_row(c->arena, c->resource, object, c->include,
                                 clock_wall_s(vapi_clock(c->api)));
    return c->output == OUTPUT_PARTIAL ? respond_partial_metadata(c->arena, c->resource, object)
                                       : object;
}

static void answer_list(struct call *c, const cJSON *items)
{
    bool table = c->output == OUTPUT_TABLE, partial = c->output == OUTPUT_PARTIAL;
    struct arena *a = c->arena;
    cJSON *rows = json_new_array(a), *list;

    json_each(item, items)
    {
        if (is_selected(c, item))
            json_append(rows, row_of(c, typed(c, item)));
    }
    if (table) {
        list = respond_table_head(a, c->resource, 0, true);
        json_set(a, list, "rows", rows);
    } else {
        list = json_object(
            a, JSON("kind", partial ? STR("PartialObjectMetadataList") : c->resource->list_kind),
            JSON("apiVersion", partial ? STR("meta.k8s.io/v1") : c->resource->api_version),
            JSON("metadata", json_object(a, JSON("resourceVersion", ""))), JSON("items", rows));
    }
    respond_tree(c, 200, list);
}

static void answer_one(struct call *c, const cJSON *items)
{
    struct err err;

    json_each(item, items)
    {
        if (!str_eq(json_str_at(item, "metadata.name"), c->name))
            continue;
        respond_object(c, 200, typed(c, item));
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
    if (c->verb == CALL_LIST && index_select(c, &err))
        call_error(c, &err);
    else if (c->verb == CALL_LIST)
        answer_list(c, read_all(c));
    else
        answer_one(c, read_all(c));
}
