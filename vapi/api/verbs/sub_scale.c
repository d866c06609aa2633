/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * /scale: a view of an object's replica count, built from paths and written back through them. It
 * must never change any other field of the object. Source: k8s.io/kubernetes
 * pkg/registry/apps/deployment/storage (ScaleREST), autoscaling/v1 Scale. */
#include "managed.h"

#include "../../core/meta.h"
#include "../respond/respond.h"

#include <sublet/conversion.h>

static const struct scale_paths *paths_of(const struct call *c)
{
    return c->sub->scale;
}

static int64_t number_at(const cJSON *object, const char *path)
{
    return path ? json_i64_at(object, path, 0) : 0;
}

/* A LabelSelector, a plain map (ReplicationController), or a string (custom resources). */
static struct str selector_text(struct arena *a, const cJSON *node)
{
    struct selector s;

    if (!node)
        return STR_NULL;
    if (json_is_string(node))
        return json_str(node);
    if (!json_get(node, "matchLabels") && !json_get(node, "matchExpressions"))
        selector_from_map(a, node, &s);
    else if (selector_from_json(a, node, &s, NULL))
        return STR_NULL;
    return s.nothing ? STR_NULL : selector_format(a, &s);
}

static void copy_text(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    struct str value = json_str(json_get(from, key));

    if (value.n)
        json_set_str(a, to, key, value);
}

static cJSON *scale_of(struct call *c, const cJSON *object)
{
    static const char *const keys[] = {"name", "namespace", "uid", "resourceVersion",
                                       "creationTimestamp"};
    const struct scale_paths *p = paths_of(c);
    struct arena *a = c->arena;
    cJSON *scale = json_new_object(a), *metadata, *spec, *status;
    struct str selector =
        selector_text(a, json_path(object, p->selector ? p->selector : "spec.selector"));
    int64_t replicas = number_at(object, p->spec_replicas);

    json_set_str(a, scale, "kind", STR("Scale"));
    json_set_str(a, scale, "apiVersion", STR("autoscaling/v1"));
    metadata = json_ensure_object(a, scale, "metadata");
    for (size_t i = 0; i < COUNT(keys); i++)
        copy_text(a, metadata, json_get(object, "metadata"), keys[i]);
    spec = json_ensure_object(a, scale, "spec");
    if (replicas)
        json_set_i64(a, spec, "replicas", replicas);
    status = json_ensure_object(a, scale, "status");
    json_set_i64(a, status, "replicas", number_at(object, p->status_replicas));
    if (selector.n)
        json_set_str(a, status, "selector", selector);
    return scale;
}

/* Sets a dotted path whose parents may be missing. */
static void set_number(struct arena *a, cJSON *object, const char *path, int64_t value)
{
    struct str text = str_c(path);
    size_t dot = str_rfind(text, '.');

    if (dot == text.n) {
        json_set_i64(a, object, path, value);
        return;
    }
    json_set_i64(a, json_ensure_path(a, object, arena_cstr(a, str_sub(text, 0, dot))),
                 path + dot + 1, value);
}

/* The Scale that the client requests, beside the one that is. */
static int propose(struct call *c, cJSON *base, struct write_part *ret, struct err *err)
{
    cJSON *old = scale_of(c, base), *scale = NULL;
    struct managed m;
    struct str name;

    managed_open(&m, c, c->resource);
    if (managed_to_scale(&m, base, old, err) ||
        write_apply_body(c, json_copy(c->arena, old), &scale, err))
        return -1;
    name = json_str_at(scale, "metadata.name");
    if (name.n && !str_eq(name, c->name))
        return err_set(err, &ERR_BAD_REQUEST,
                       "the name of the object (%.*s) does not match the name on the URL (%.*s)",
                       STR_F(name), STR_F(c->name));
    if (c->verb != CALL_PATCH || c->patch != PATCH_TYPE_APPLY)
        managed_track(&m, old, old, scale, scale);
    *ret = (struct write_part){.object = scale, .old = old};
    return 0;
}

static int adopt(struct call *c, const struct write_part *part, cJSON *base, cJSON **ret,
                 struct err *err)
{
    const cJSON *old = part->old, *scale = part->object;
    cJSON *metadata = vapi_meta_of(c->arena, base);
    int64_t replicas = json_i64_at(scale, "spec.replicas", 0);
    struct managed m;
    struct field_errors e;

    managed_open(&m, c, c->resource);
    field_errors_init(&e, c->arena);
    if (replicas < 0 && !c->resource->crd) /* crd_validate() checks those */
        field_invalid(&e, FIELD(FIELD(NULL, "spec"), "replicas"), json_new_i64(c->arena, replicas),
                      "must be greater than or equal to 0");
    if (field_errors_to_err(&e, STR("autoscaling"), STR("Scale"), c->name, err))
        return -1;

    if (managed_from_scale(&m, scale, base, err))
        return -1;
    set_number(c->arena, base, paths_of(c)->spec_replicas, replicas);
    json_remove(metadata, "resourceVersion");
    copy_text(c->arena, metadata, json_get(scale, "metadata"), "resourceVersion");
    json_remove(metadata, "uid");
    copy_text(c->arena, metadata, json_get(scale, "metadata"), "uid");
    if (!json_get(metadata, "resourceVersion"))
        copy_text(c->arena, metadata, json_get(old, "metadata"), "resourceVersion");
    *ret = base;
    return 0;
}

static void answer_scale(struct call *c, int status, cJSON *object)
{
    respond_object_as(c, c->resource->crd ? &KINDS_SCALE_OF_CUSTOM : &KINDS_SCALE, status,
                      scale_of(c, object));
}

/* A custom resource without a replica count cannot be scaled. */
static int no_replicas(const struct call *c, const cJSON *object, struct err *err)
{
    const char *path = paths_of(c)->spec_replicas;
    struct str why;

    if (!c->resource->crd || !path || json_path(object, path))
        return 0;
    why = arena_printf(c->arena, "the spec replicas field \".%s\" does not exist", path);
    err_set(err, &ERR_INTERNAL, "Internal error occurred: %.*s", STR_F(why));
    err_cause(err, STR(""), STR(""), why);
    return -1;
}

static void answer_get(struct call *c, const struct store_object *o)
{
    cJSON *object;
    struct err err;

    err_init(&err, c->arena);
    object = convert_tree(c->arena, c->resource, o);
    if (no_replicas(c, object, &err))
        call_error(c, &err);
    else
        answer_scale(c, 200, object);
}

/* Read by a webhook first. */
struct read_scale {
    struct call *call;
    const struct store_object *object; /* a reference */
};

static void on_read(void *ctx, const struct err *err)
{
    struct read_scale *g = ctx;
    const struct store_object *o = g->object;

    if (err)
        call_error(g->call, err);
    else
        answer_get(g->call, o);
    store_object_unref(o);
}

static void get_scale(struct call *c)
{
    const struct store_object *o =
        store_get(vapi_store(c->api), c->resource->storage, c->ns, c->name);
    struct read_scale *g;
    struct err err;

    err_init(&err, c->arena);
    if (!o && commit_not_found(c, &err)) {
        call_error(c, &err);
    } else if (conversion_needed_stored(c->resource, o)) {
        g = ARENA_NEW(c->arena, struct read_scale);
        *g = (struct read_scale){c, store_object_ref(o)};
        conversion_read(c->api, c->resource, &g->object, 1, on_read, g);
    } else {
        answer_get(c, o);
    }
}

void sub_scale(struct call *c)
{
    static const struct write_plan plan = {
        .propose = propose, .adopt = adopt, .view = scale_of, .answer = answer_scale};

    if (c->verb == CALL_GET)
        get_scale(c);
    else
        write_start(c, &plan);
}
