/* SPDX-License-Identifier: Apache-2.0 */
/* Which pods belong to an owner, and how new ones are made from its template. Must never take a pod
 * that another controller has, nor adopt for an owner that is going away. */
#include "util.h"

struct claim {
    struct reconcile *run;
    const struct resource *owner_res, *pods;
    const cJSON *owner;
    const struct selector *selector;
    struct str uid;
    bool going; /* the owner is being deleted */
    cJSON *mine;
};

static cJSON *refs_patch(struct arena *a, const cJSON *pod, cJSON *refs)
{
    cJSON *patch = json_new_object(a), *meta = json_ensure_object(a, patch, "metadata");

    json_set_str(a, meta, "uid", meta_uid(pod));
    json_set_str(a, meta, "resourceVersion", json_str_at(pod, "metadata.resourceVersion"));
    json_set(a, meta, "ownerReferences", refs);
    return patch;
}

static cJSON *refs_of(struct arena *a, const cJSON *pod)
{
    const cJSON *refs = json_path(pod, "metadata.ownerReferences");

    return json_is_array(refs) ? json_copy(a, refs) : json_new_array(a);
}

static void adopt(struct claim *c, const cJSON *pod)
{
    struct arena *a = reconcile_arena(c->run);
    cJSON *refs = refs_of(a, pod);

    json_append(refs, owner_ref(a, c->owner_res, c->owner));
    reconcile_patch(c->run, c->pods, STR_NULL, meta_ns(pod), meta_name(pod),
                    refs_patch(a, pod, refs));
}

static void release(struct claim *c, const cJSON *pod)
{
    struct arena *a = reconcile_arena(c->run);
    cJSON *refs = refs_of(a, pod);

    json_each(ref, refs)
    {
        if (str_eq(json_str_at(ref, "uid"), c->uid)) {
            json_detach(refs, ref);
            break;
        }
    }
    reconcile_patch(c->run, c->pods, STR_NULL, meta_ns(pod), meta_name(pod),
                    refs_patch(a, pod, refs));
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct claim *c = ctx;
    bool matches = selector_match(c->selector, o->labels);

    if (!matches && !str_contains(o->bytes, c->uid))
        return true;
    cJSON *pod = vapi_tree(reconcile_arena(c->run), o);
    const cJSON *controller = owner_controller(pod);
    bool owned = str_eq(json_str_at(controller, "uid"), c->uid);
    if (owned && matches)
        json_append(c->mine, pod);
    else if (owned && !c->going)
        release(c, pod);
    else if (!controller && matches && !c->going && !pod_is_terminating(pod)) {
        adopt(c, pod);
        json_append(c->mine, pod);
    }
    return true;
}

cJSON *pods_claim(struct reconcile *r, const struct resource *owner_res, const cJSON *owner,
                  const struct selector *selector)
{
    struct claim c = {.run = r, .owner_res = owner_res, .owner = owner, .selector = selector};
    struct err err;

    c.pods = reconcile_resource(r, "", "pods");
    c.uid = meta_uid(owner);
    c.going = json_path(owner, "metadata.deletionTimestamp") != NULL;
    c.mine = json_new_array(reconcile_arena(r));
    err_init(&err, reconcile_arena(r));
    if (store_scan(vapi_store(reconcile_api(r)), c.pods->storage, meta_ns(owner), STR_NULL,
                   STR_NULL, 0, on_pod, &c, &err))
        reconcile_fail(r, &err);
    return c.mine;
}

static void copy_member(struct arena *a, cJSON *to, const cJSON *from, const char *key)
{
    const cJSON *item = json_get(from, key);

    if (item)
        json_set(a, to, key, json_copy(a, item));
}

cJSON *pod_from_template(struct arena *a, const struct resource *owner_res, const cJSON *owner,
                         const cJSON *template_)
{
    cJSON *pod = json_new_object(a), *meta;
    const cJSON *from = json_get(template_, "metadata");

    json_set_str(a, pod, "kind", STR("Pod"));
    json_set_str(a, pod, "apiVersion", STR("v1"));
    meta = json_ensure_object(a, pod, "metadata");
    json_set_str(a, meta, "generateName",
                 arena_concat(a, 2, (struct str[]){meta_name(owner), STR("-")}));
    json_set_str(a, meta, "namespace", meta_ns(owner));
    copy_member(a, meta, from, "labels");
    copy_member(a, meta, from, "annotations");
    copy_member(a, meta, from, "finalizers");
    json_append(json_set(a, meta, "ownerReferences", json_new_array(a)),
                owner_ref(a, owner_res, owner));
    copy_member(a, pod, template_, "spec");
    return pod;
}

struct candidates {
    struct controller *controller;
};

static bool on_owner(void *ctx, const struct store_object *o)
{
    struct candidates *c = ctx;
    struct store_event e = {.type = STORE_ADDED, .object = o, .revision = o->revision};

    controller_map_self(c->controller, &e);
    return true;
}

void map_pod_to_owner(struct controller *c, const struct store_event *e, const char *group,
                      const char *plural, struct str kind)
{
    struct vapi *api = controller_api(c);
    const struct resource *owners;
    struct err err;

    controller_map_owner(c, e, kind);
    if (e->type == STORE_DELETED || str_contains(e->object->bytes, STR("\"controller\":true")))
        return;
    struct candidates all = {c};
    err_init(&err, NULL);
    owners = registry_find_group_resource(vapi_registry(api), str_c(group), str_c(plural));
    if (store_scan(vapi_store(api), owners->storage, e->object->ns, STR_NULL, STR_NULL, 0, on_owner,
                   &all, &err))
        return; /* the present can always be read */
}
