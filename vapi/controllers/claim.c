/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of objects, and pods made from an owner's template. Must never take an object that
 * another controller owns, nor adopt for a terminating owner. */
#include "util.h"

#include <sublet/json_build.h>

struct claim {
    struct reconcile *run;
    const struct resource *owner_res, *res;
    const cJSON *owner;
    const struct selector *selector;
    struct str ns, uid;
    bool terminating; /* the owner is being deleted */
    cJSON *mine;
};

static void adopt(struct claim *c, const cJSON *pod)
{
    struct arena *a = reconcile_arena(c->run);
    cJSON *refs = owner_refs_copy(a, pod);

    json_append(refs, metadata_owner_ref(a, c->owner_res, c->owner));
    owner_refs_write(c->run, c->res, pod, refs);
}

static void release(struct claim *c, const cJSON *pod)
{
    cJSON *refs = owner_refs_copy(reconcile_arena(c->run), pod);

    owner_refs_drop(refs, c->uid);
    owner_refs_write(c->run, c->res, pod, refs);
}

static bool on_object(void *ctx, const struct store_object *o)
{
    struct claim *c = ctx;
    bool matches = selector_match(c->selector, o->labels);

    if (!matches && !str_contains(o->bytes, c->uid))
        return true;
    cJSON *object = vapi_tree(reconcile_arena(c->run), o);
    const cJSON *controller = owner_controller(object);
    bool owned = str_eq(json_str_at(controller, "uid"), c->uid);
    if (owned && matches) {
        json_append(c->mine, object);
    } else if (owned && !c->terminating && !object_is_terminating(object)) {
        release(c, object);
    } else if (!controller && matches && !c->terminating && !object_is_terminating(object)) {
        adopt(c, object);
        json_append(c->mine, object);
    }
    return true;
}

static cJSON *scan(struct claim *c, store_scan_cb each)
{
    struct err err;

    c->mine = json_new_array(reconcile_arena(c->run));
    err_init(&err, reconcile_arena(c->run));
    if (store_scan(vapi_store(reconcile_api(c->run)), c->res->storage, c->ns, STR_NULL, STR_NULL, 0,
                   each, c, &err))
        reconcile_fail(c->run, &err);
    return c->mine;
}

cJSON *objects_claim(struct reconcile *r, const struct resource *res,
                     const struct resource *owner_res, const cJSON *owner,
                     const struct selector *selector)
{
    struct claim c = {
        .run = r, .res = res, .owner_res = owner_res, .owner = owner, .selector = selector};

    c.ns = meta_ns(owner);
    c.uid = meta_uid(owner);
    c.terminating = object_is_terminating(owner);
    return scan(&c, on_object);
}

static bool on_maybe_owned(void *ctx, const struct store_object *o)
{
    struct claim *c = ctx;

    if (!c->uid.n || !str_contains(o->bytes, c->uid))
        return true;
    cJSON *object = vapi_tree(reconcile_arena(c->run), o);
    if (metadata_owner_is(object, c->uid))
        json_append(c->mine, object);
    return true;
}

cJSON *objects_owned(struct reconcile *r, const struct resource *res, struct str ns,
                     struct str owner_uid)
{
    struct claim c = {.run = r, .res = res, .ns = ns, .uid = owner_uid};

    return scan(&c, on_maybe_owned);
}

cJSON **controller_items(struct arena *a, const cJSON *array, size_t *ret_n)
{
    cJSON **items = arena_alloc(a, (json_count(array) + 1) * sizeof(*items));
    size_t n = 0;

    json_each(item, array) items[n++] = item;
    *ret_n = n;
    return items;
}

cJSON *controller_pod_from_template(struct arena *a, const struct resource *owner_res,
                                    const cJSON *owner, const cJSON *template_)
{
    const cJSON *from = json_get(template_, "metadata");
    struct str prefix = arena_concat(a, 2, (struct str[]){meta_name(owner), STR("-")});
    cJSON *metadata = json_object(
        a, JSON("generateName", prefix), JSON("namespace", meta_ns(owner)),
        JSON("labels", json_copy(a, json_get(from, "labels"))),
        JSON("annotations", json_copy(a, json_get(from, "annotations"))),
        JSON("finalizers", json_copy(a, json_get(from, "finalizers"))),
        JSON("ownerReferences", json_array(a, metadata_owner_ref(a, owner_res, owner))));

    return json_object(a, JSON("kind", "Pod"), JSON("apiVersion", "v1"), JSON("metadata", metadata),
                       JSON("spec", json_copy(a, json_get(template_, "spec"))));
}

void controller_status_commit(struct reconcile *r, const struct resource *res, const cJSON *object,
                              const cJSON *as_read)
{
    if (!json_equal(object, as_read))
        reconcile_update_status(r, res, object);
}
