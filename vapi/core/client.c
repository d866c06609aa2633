/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The API for in-process callers: controllers and the syncer. Their writes take the same path as a
 * client's, as system:masters. It must never call back before the function that was called has
 * returned. */
#include "calls.h"

#include <assert.h>

#include <sublet/webhook.h>

static const struct subresource *sub_of(const struct resource *r, struct str name)
{
    const struct subresource *s = name.n ? resource_sub(r, name) : NULL;

    assert(!name.n || s);
    return s;
}

/* A body made by the caller: kind and version may be absent. */
static void set_body(struct call *c, const cJSON *object)
{
    struct str group, version, kind;
    struct arena *a = c->arena;

    c->body = json_copy(a, object);
    call_body_expected(c, &group, &version, &kind);
    if (!json_get(c->body, "kind"))
        json_set_str(a, c->body, "kind", kind);
    if (!json_get(c->body, "apiVersion"))
        json_set_str(a, c->body, "apiVersion",
                     group.n ? arena_printf(a, "%.*s/%.*s", STR_F(group), STR_F(version))
                             : version);
}

void vapi_create(struct vapi *api, const struct resource *r, struct str ns, const cJSON *object,
                 vapi_done_cb done, void *ctx)
{
    vapi_create_by(api, NULL, r, ns, object, done, ctx);
}

void vapi_create_by(struct vapi *api, const char *account, const struct resource *r, struct str ns,
                    const cJSON *object, vapi_done_cb done, void *ctx)
{
    struct call *c =
        call_inside(api, &USER_INTERNAL, CALL_CREATE, r, NULL, ns, STR_NULL, done, ctx);

    c->controller = account;
    set_body(c, object);
    call_run(c);
}

void vapi_try_create(struct vapi *api, const struct resource *r, struct str ns, const cJSON *object,
                     void (*admitted)(void *ctx, const cJSON *object), vapi_done_cb done, void *ctx)
{
    struct call *c =
        call_inside(api, &USER_INTERNAL, CALL_CREATE, r, NULL, ns, STR_NULL, done, ctx);

    c->options.dry_run = true;
    c->admitted = admitted;
    set_body(c, object);
    call_run(c);
}

void vapi_create_sub(struct vapi *api, const struct resource *r, struct str subresource,
                     struct str ns, struct str name, const cJSON *object, vapi_done_cb done,
                     void *ctx)
{
    struct call *c = call_inside(api, &USER_INTERNAL, CALL_CREATE, r, sub_of(r, subresource), ns,
                                 name, done, ctx);

    set_body(c, object);
    call_run(c);
}

void vapi_update(struct vapi *api, const struct resource *r, struct str subresource,
                 const cJSON *object, vapi_done_cb done, void *ctx)
{
    struct str ns = resource_namespaced(r) ? json_str_at(object, "metadata.namespace") : STR("");
    struct call *c = call_inside(api, &USER_INTERNAL, CALL_UPDATE, r, sub_of(r, subresource), ns,
                                 json_str_at(object, "metadata.name"), done, ctx);

    set_body(c, object);
    call_run(c);
}

void vapi_replace(struct vapi *api, const struct resource *r, const cJSON *object,
                  vapi_done_cb done, void *ctx)
{
    /* In no resource's list: no request can name it. */
    static const struct subresource whole = {.name = "replace", .kind = SUB_REPLACE};
    struct call *c = call_inside(api, &USER_INTERNAL, CALL_UPDATE, r, &whole,
                                 json_str_at(object, "metadata.namespace"),
                                 json_str_at(object, "metadata.name"), done, ctx);

    set_body(c, object);
    call_run(c);
}

void vapi_patch(struct vapi *api, const struct resource *r, struct str subresource, struct str ns,
                struct str name, const cJSON *patch, vapi_done_cb done, void *ctx)
{
    struct call *c = call_inside(api, &USER_INTERNAL, CALL_PATCH, r, sub_of(r, subresource), ns,
                                 name, done, ctx);

    c->patch = PATCH_TYPE_MERGE;
    c->body = json_copy(c->arena, patch);
    call_run(c);
}

void vapi_delete(struct vapi *api, const struct resource *r, struct str ns, struct str name,
                 const struct vapi_delete *options, vapi_done_cb done, void *ctx)
{
    struct call *c = call_inside(api, &USER_INTERNAL, CALL_DELETE, r, NULL, ns, name, done, ctx);

    if (options) {
        c->options.grace_seconds = options->grace_seconds;
        c->options.uid = arena_str(c->arena, options->uid);
        c->options.delete_rv = options->revision;
        c->options.propagation = str_c(options->propagation);
    }
    call_run(c);
}
