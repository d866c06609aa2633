/* SPDX-License-Identifier: Apache-2.0 */
/* Claims stay while a pod uses them, volumes while a claim uses them, and VolumeAttributesClasses
 * while a claim or volume names them: the finalizer that admission set at creation is removed when
 * the object is terminating and unused. Must never release a claim that a scheduled pod names,
 * whatever the phase of that pod: its kubelet may still use it. Source:
 * pkg/controller/volume/{pvc,pv,vac}protection of Kubernetes 1.36. */
#include "util.h"

#define CLAIM_FINALIZER  "kubernetes.io/pvc-protection"
#define VOLUME_FINALIZER "kubernetes.io/pv-protection"
#define CLASS_FINALIZER  "kubernetes.io/vac-protection"

/* --- claims --- */

static struct str ephemeral_name(struct arena *a, const cJSON *pod, const cJSON *volume)
{
    return arena_concat(a, 3,
                        (struct str[]){meta_name(pod), STR("-"), json_str_at(volume, "name")});
}

/* The kubelet is done with it, or it was force-deleted: only finalizers keep it. */
static bool is_shut_down(const cJSON *pod)
{
    return object_is_terminating(pod) &&
           json_i64_at(pod, "metadata.deletionGracePeriodSeconds", -1) == 0;
}

static bool pod_uses(struct arena *a, const cJSON *pod, const cJSON *claim)
{
    const cJSON *owner = owner_controller(claim);
    bool made_for_it = str_eq(json_str_at(owner, "uid"), meta_uid(pod)) && !is_shut_down(pod);

    if (!json_str_at(pod, "spec.nodeName").n)
        return false;
    json_each(volume, json_path(pod, "spec.volumes"))
    {
        if (str_eq(json_str_at(volume, "persistentVolumeClaim.claimName"), meta_name(claim)))
            return true;
        if (made_for_it && json_get(volume, "ephemeral") &&
            str_eq(ephemeral_name(a, pod, volume), meta_name(claim)))
            return true;
    }
    return false;
}

struct usage {
    struct arena *arena;
    const cJSON *claim;
    bool used;
};

/* Most pods have no claim: searches the bytes before building a tree. */
static bool may_use(const struct store_object *pod)
{
    return str_contains(pod->bytes, STR("\"claimName\"")) ||
           str_contains(pod->bytes, STR("\"ephemeral\""));
}

static bool on_pod(void *ctx, const struct store_object *o)
{
    struct usage *u = ctx;

    if (may_use(o))
        u->used = pod_uses(u->arena, vapi_tree(u->arena, o), u->claim);
    return !u->used;
}

static bool claim_used(struct reconcile *r, const cJSON *claim)
{
    struct usage u = {reconcile_arena(r), claim, false};
    struct err err;

    err_init(&err, u.arena);
    if (store_scan(vapi_store(reconcile_api(r)), reconcile_resource(r, "", "pods")->storage,
                   meta_ns(claim), STR_NULL, STR_NULL, 0, on_pod, &u, &err)) {
        reconcile_fail(r, &err);
        return true;
    }
    return u.used;
}

/* --- volumes --- */

/* A volume bound to a claim that no longer exists is unused: where volumes are mirrored from the
 * host, no binder sets it to Released. */
static bool volume_used(struct reconcile *r, const cJSON *volume)
{
    const cJSON *ref = json_path(volume, "spec.claimRef"), *claim;

    if (!str_eqc(json_str_at(volume, "status.phase"), "Bound"))
        return false;
    claim = reconcile_get(r, reconcile_resource(r, "", "persistentvolumeclaims"),
                          json_str_at(ref, "namespace"), json_str_at(ref, "name"));
    return claim && str_eq(meta_uid(claim), json_str_at(ref, "uid"));
}

/* --- VolumeAttributesClasses --- */

/* Where claims and volumes name one. */
static const char *const CLASS_NAMES[] = {
    "spec.volumeAttributesClassName", "status.currentVolumeAttributesClassName",
    "status.modifyVolumeStatus.targetVolumeAttributesClassName"};
#define N_CLASS_NAMES COUNT(CLASS_NAMES)

static bool may_name_class(const struct store_object *o)
{
    return str_contains(o->bytes, STR("olumeAttributesClassName\""));
}

struct naming {
    struct arena *arena;
    struct str class;
    bool used;
};

static bool on_user(void *ctx, const struct store_object *o)
{
    struct naming *n = ctx;

    for (size_t i = 0; i < N_CLASS_NAMES && may_name_class(o); i++)
        n->used |= str_eq(json_str_at(vapi_tree(n->arena, o), CLASS_NAMES[i]), n->class);
    return !n->used;
}

static bool class_used(struct reconcile *r, const cJSON *class)
{
    static const char *const users[] = {"persistentvolumes", "persistentvolumeclaims"};
    struct naming n = {reconcile_arena(r), meta_name(class), false};
    struct err err;

    err_init(&err, n.arena);
    for (size_t i = 0; i < 2 && !n.used; i++) {
        if (store_scan(vapi_store(reconcile_api(r)), reconcile_resource(r, "", users[i])->storage,
                       STR_NULL, STR_NULL, STR_NULL, 0, on_user, &n, &err)) {
            reconcile_fail(r, &err);
            return true;
        }
    }
    return n.used;
}

/* --- reconcile --- */

static void protect(struct reconcile *r, const char *group, const char *plural,
                    const char *finalizer, bool (*used)(struct reconcile *r, const cJSON *object))
{
    const struct resource *res = reconcile_resource(r, group, plural);
    struct str ns, name;
    const cJSON *object;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    object = reconcile_get(r, res, ns, name);
    if (!object)
        return;
    if (!object_is_terminating(object)) {
        if (!finalizer_has(object, finalizer))
            metadata_finalizer_add(r, res, object, finalizer);
    } else if (finalizer_has(object, finalizer) && !used(r, object)) {
        metadata_finalizer_drop(r, res, object, finalizer);
    }
}

static void claim_reconcile(struct reconcile *r)
{
    protect(r, "", "persistentvolumeclaims", CLAIM_FINALIZER, claim_used);
}

static void volume_reconcile(struct reconcile *r)
{
    protect(r, "", "persistentvolumes", VOLUME_FINALIZER, volume_used);
}

static void class_reconcile(struct reconcile *r)
{
    protect(r, "storage.k8s.io", "volumeattributesclasses", CLASS_FINALIZER, class_used);
}

/* --- events --- */

/* Ignores objects that have the finalizer and are not terminating. */
static void map_protected(struct controller *c, const struct store_event *e, const char *finalizer)
{
    struct str bytes = e->object->bytes;

    if (e->type != STORE_DELETED &&
        (!str_contains(bytes, str_c(finalizer)) || object_may_be_terminating(bytes)))
        controller_map_self(c, e);
}

static void map_claim(struct controller *c, const struct store_event *e)
{
    map_protected(c, e, CLAIM_FINALIZER);
}

static void map_volume(struct controller *c, const struct store_event *e)
{
    map_protected(c, e, VOLUME_FINALIZER);
}

static void map_class(struct controller *c, const struct store_event *e)
{
    map_protected(c, e, CLASS_FINALIZER);
}

/* The class a claim or volume named before may be unused now. */
static void map_user(struct controller *c, const struct store_event *e)
{
    const struct store_object *before = e->type == STORE_DELETED ? e->object : e->previous;
    struct arena *a;
    const cJSON *tree;

    if (!before || !may_name_class(before))
        return;
    a = arena_new(0);
    tree = vapi_tree(a, before);
    for (size_t i = 0; i < N_CLASS_NAMES; i++) {
        struct str name = json_str_at(tree, CLASS_NAMES[i]);

        if (name.n)
            controller_add_name(c, STR(""), name);
    }
    arena_free(a);
}

/* A terminating or deleted pod releases its claims. */
static void map_pod(struct controller *c, const struct store_event *e)
{
    const struct store_object *o = e->object;
    struct arena *a;
    const cJSON *pod;

    if (!may_use(o) || (e->type != STORE_DELETED && !object_may_be_terminating(o->bytes)))
        return;
    a = arena_new(0);
    pod = vapi_tree(a, o);
    json_each(volume, json_path(pod, "spec.volumes"))
    {
        struct str name = json_str_at(volume, "persistentVolumeClaim.claimName");

        if (json_get(volume, "ephemeral"))
            name = ephemeral_name(a, pod, volume);
        if (name.n)
            controller_add_name(c, o->ns, name);
    }
    arena_free(a);
}

static void map_claim_to_volume(struct controller *c, const struct store_event *e)
{
    struct arena *a;
    struct str name;

    if (e->type != STORE_DELETED)
        return;
    a = arena_new(0);
    name = json_str_at(vapi_tree(a, e->object), "spec.volumeName");
    if (name.n)
        controller_add_name(c, STR(""), name);
    arena_free(a);
}

static const struct controller_source CLAIM_SOURCES[] = {
    {"", "persistentvolumeclaims", map_claim},
    {"", "pods", map_pod},
    {NULL, NULL, NULL},
};

static const struct controller_source VOLUME_SOURCES[] = {
    {"", "persistentvolumes", map_volume},
    {"", "persistentvolumeclaims", map_claim_to_volume},
    {NULL, NULL, NULL},
};

static const struct controller_source CLASS_SOURCES[] = {
    {"storage.k8s.io", "volumeattributesclasses", map_class},
    {"", "persistentvolumes", map_user},
    {"", "persistentvolumeclaims", map_user},
    {NULL, NULL, NULL},
};

const struct controller_def CLAIM_PROTECTION_CONTROLLER = {
    .name = "pvc-protection-controller",
    .sources = CLAIM_SOURCES,
    .reconcile = claim_reconcile,
};

const struct controller_def VOLUME_PROTECTION_CONTROLLER = {
    .name = "pv-protection-controller",
    .sources = VOLUME_SOURCES,
    .reconcile = volume_reconcile,
};

const struct controller_def CLASS_PROTECTION_CONTROLLER = {
    .name = "volumeattributesclass-protection-controller",
    .sources = CLASS_SOURCES,
    .reconcile = class_reconcile,
};
