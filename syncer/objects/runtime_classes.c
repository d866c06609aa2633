/* SPDX-License-Identifier: Apache-2.0 */
/* RuntimeClasses of the tenant's pools, so that a pod may name them, as charts do. On the host the
 * pool decides, whatever the pod names. Must never change a class that the tenant created itself,
 * and never show the host's handler or overhead. */

#include "objects/objects.h"
#include <sublet/log.h>

struct leaving {
    struct syncer *s;
    struct arena *arena;
    cJSON *names;
};

static const struct resource *classes(const struct syncer *s)
{
    return syncer_resource(s, "node.k8s.io", "runtimeclasses");
}

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)object;
    if (err && err->kind != &ERR_ALREADY_EXISTS && err->kind != &ERR_NOT_FOUND)
        log_warn("syncer: cannot write a RuntimeClass: %.*s", STR_F(err->message));
}

static bool is_offered(const struct syncer *s, struct str name)
{
    for (size_t i = 0; i < s->config->n_bindings; i++) {
        if (str_eq(s->config->bindings[i].pool->runtime_class, name))
            return true;
    }
    return false;
}

static void offer(struct syncer *s, struct arena *a, struct str name)
{
    cJSON *object = json_new_object(a), *metadata = json_ensure_object(a, object, "metadata");

    if (!name.n || store_latest(s->store, classes(s)->storage, STR(""), name))
        return;
    json_set_str(a, metadata, "name", name);
    json_set_str(a, json_ensure_object(a, metadata, "annotations"), ANNOTATION_FROM_HOST,
                 STR("true"));
    json_set_str(a, object, "handler", name);
    vapi_create(s->api, classes(s), STR(""), object, on_written, NULL);
}

static bool on_class(void *ctx, const struct store_object *o)
{
    struct leaving *l = ctx;
    const cJSON *notes = json_path(vapi_tree(l->arena, o), "metadata.annotations");

    const cJSON *mark = json_get(notes, ANNOTATION_FROM_HOST);

    if (mark && !str_eqc(json_str(mark), FROM_HOST_SYNC) && !is_offered(l->s, o->name))
        json_append(l->names, json_new_string(l->arena, arena_str(l->arena, o->name)));
    return true;
}

void sync_runtime_classes_publish(struct syncer *s)
{
    struct arena *a = arena_new(0);
    struct leaving l = {.s = s, .arena = a, .names = json_new_array(a)};
    struct vapi_delete options = {.grace_seconds = -1};

    store_scan_latest(s->store, classes(s)->storage, STR(""), on_class, &l);
    json_each(name, l.names)
    {
        vapi_delete(s->api, classes(s), STR(""), json_str(name), &options, on_written, NULL);
    }
    for (size_t i = 0; i < s->config->n_bindings; i++)
        offer(s, a, s->config->bindings[i].pool->runtime_class);
    arena_free(a);
}
