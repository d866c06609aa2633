/* SPDX-License-Identifier: Apache-2.0 */
/* GET and LIST of metrics.k8s.io: what the registrar of the hook `measure` knows at this moment,
 * with the selectors of the request applied to the labels of the virtual objects. Must never answer
 * with an empty list where nothing is known: an autoscaler would take it for idle pods. */
#include "verbs.h"

#include "../respond/respond.h"

#include <sublet/json_build.h>

/* As the aggregator of kube-apiserver answers for an API that is not available: plain text, of
 * which clients make a Status. Source: kube-aggregator pkg/apiserver/handler_proxy.go. */
static void refuse(struct call *c, const struct err *err)
{
    if (err->kind == &ERR_UNAVAILABLE && c->exchange)
        respond_text(c, 503, "service unavailable\n");
    else
        call_error(c, err);
}

static bool is_nodes(const struct call *c)
{
    return !resource_namespaced(c->resource);
}

static cJSON *whole(struct call *c, const cJSON *item)
{
    cJSON *ret = json_copy(c->arena, item);

    json_set_str(c->arena, ret, "apiVersion", c->resource->api_version);
    json_set_str(c->arena, ret, "kind", c->resource->kind);
    return ret;
}

static cJSON *list_of(struct call *c, const cJSON *items)
{
    struct arena *a = c->arena;
    cJSON *rows = json_new_array(a);

    json_each(item, items)
    {
        const cJSON *meta = json_get(item, "metadata");
        struct store_object o = {.ns = json_str(json_get(meta, "namespace")),
                                 .name = json_str(json_get(meta, "name")),
                                 .labels = labels_flatten(c->arena, json_get(meta, "labels"))};

        if (index_match(&c->options, &o))
            json_append(rows, json_copy(a, item));
    }
    return json_object(a, JSON("kind", arena_printf(a, "%.*sList", STR_F(c->resource->kind))),
                       JSON("apiVersion", c->resource->api_version),
                       JSON("metadata", json_new_object(a)), JSON("items", rows));
}

static void on_measured(void *ctx, const cJSON *items, const struct err *err)
{
    struct call *c = ctx;

    if (err) {
        refuse(c, err);
    } else if (c->verb == CALL_LIST) {
        call_tree(c, 200, list_of(c, items));
    } else if (json_first(items)) {
        call_tree(c, 200, whole(c, json_first(items)));
    } else {
        struct err missing;
        struct str name =
            c->ns.n ? arena_printf(c->arena, "%.*s/%.*s", STR_F(c->ns), STR_F(c->name)) : c->name;

        /* "podmetrics.metrics.k8s.io "ns/name" not found" */
        err_init(&missing, c->arena);
        if (err_not_found(&missing, c->resource->group,
                          is_nodes(c) ? STR("nodemetrics") : STR("podmetrics"), name))
            call_error(c, &missing);
    }
}

void call_measured(struct call *c)
{
    const struct vapi_hooks *hooks = vapi_get_hooks(c->api);
    struct vapi_measure what = {.nodes = is_nodes(c), .ns = c->ns, .name = c->name};
    struct err err;

    if (c->resource->crd) { /* the only kinds of that form that are not stored */
        call_gpu_usage(c);
        return;
    }
    err_init(&err, c->arena);
    if (c->verb == CALL_LIST && index_select(c, &err)) {
        call_error(c, &err);
    } else if (!hooks->measure) {
        if (err_set(&err, &ERR_UNAVAILABLE, "nothing is measured"))
            refuse(c, &err);
    } else {
        hooks->measure(hooks->ctx, &what, on_measured, c);
    }
}
