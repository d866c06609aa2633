/* SPDX-License-Identifier: Apache-2.0 */
/* Claims get volumes: one that is there and fits, else one that the simulated provisioner makes.
 * Volumes of claims that are gone are kept or removed as they say. One step per run, so that a kill
 * at any instant leaves nothing half-bound: a volume names its claim before the claim names it.
 * Must never bind a volume that names another claim.
 *
 *   claim Pending -> (WaitForFirstConsumer: a node was chosen) -> volume names the claim
 *         -> claim names the volume -> Bound
 *
 * Where upstream's manager binds, this is only the provisioner it calls: volumes are made and
 * removed, grown, and nothing else.
 *
 * Source: k8s.io/kubernetes pkg/controller/volume/persistentvolume. */
#include "impl.h"

#include <assert.h>

#include <sublet/json_build.h>
#include <sublet/log.h>
#include <sublet/object.h>
#include <sublet/quantity.h>

#define PROVISIONER    "sublet.dev/simulated"
#define DRIVER         "simulated.sublet.dev"
#define PROVISIONED_BY "pv.kubernetes.io/provisioned-by"
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define BOUND_BY       "pv.kubernetes.io/bound-by-controller"
#define SELECTED_NODE  "volume.kubernetes.io/selected-node"
#define ASKED          "volume.kubernetes.io/storage-provisioner"
#define WAIT_MODE      "WaitForFirstConsumer"

/* --- storage classes --- */

static const char *const CLASSES[] = {
    "{\"metadata\":{\"name\":\"standard\",\"annotations\":{\"storageclass.kubernetes.io/"
    "is-default-class\":\"true\"}},\"provisioner\":\"" PROVISIONER
    "\",\"reclaimPolicy\":\"Delete\","
    "\"allowVolumeExpansion\":true,\"volumeBindingMode\":\"Immediate\"}",
    "{\"metadata\":{\"name\":\"local\"},\"provisioner\":\"" PROVISIONER "\",\"reclaimPolicy\":"
    "\"Delete\",\"allowVolumeExpansion\":true,\"volumeBindingMode\":\"" WAIT_MODE "\"}",
};

static void on_seeded(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)object;
    if (err && err->kind != &ERR_ALREADY_EXISTS)
        log_error("embedded host: storage class not made: %.*s", STR_F(err->message));
}

/* Only on a host without any: an administrator may have removed one. */
void volumes_seed(struct embedded *e)
{
    const struct resource *res = embedded_resource(e->api, "storage.k8s.io", "storageclasses");
    struct arena *a = arena_new(0);

    for (size_t i = 0; i < 2 && !store_count(vapi_store(e->api), res->storage); i++) {
        cJSON *class_ = NULL;
        int failed = json_parse(a, str_c(CLASSES[i]), &class_, NULL);

        assert(!failed);
        vapi_create(e->api, res, STR(""), class_, on_seeded, e);
    }
    arena_free(a);
}

/* --- what objects say --- */

struct binding {
    struct reconcile *run;
    struct arena *arena;
    const struct resource *claims, *volumes;
    cJSON *claim;
};

static const cJSON *class_of(struct reconcile *r, const cJSON *claim)
{
    struct str name = json_str_at(claim, "spec.storageClassName");

    return name.n ? reconcile_get(r, reconcile_resource(r, "storage.k8s.io", "storageclasses"),
                                  STR(""), name)
                  : NULL;
}

static bool waits_for_pod(const cJSON *class_)
{
    return str_eqc(json_str_at(class_, "volumeBindingMode"), WAIT_MODE);
}

static bool is_bound(const cJSON *claim)
{
    return str_eqc(json_str_at(claim, "status.phase"), "Bound");
}

static bool names_claim(const cJSON *volume, const cJSON *claim, bool uid_needed)
{
    const cJSON *ref = json_path(volume, "spec.claimRef");
    struct str uid = json_str_at(ref, "uid");

    return str_eq(json_str_at(ref, "namespace"), meta_ns(claim)) &&
           str_eq(json_str_at(ref, "name"), meta_name(claim)) &&
           (str_eq(uid, meta_uid(claim)) || (!uid.n && !uid_needed));
}

static __int128 storage_of(const cJSON *object, const char *path)
{
    struct quantity q;

    return quantity_parse(json_str_at(object, path), &q) ? q.nano : 0;
}

static bool modes_cover(const cJSON *volume, const cJSON *claim)
{
    json_each(want, json_path(claim, "spec.accessModes"))
    {
        bool found = false;

        json_each(have, json_path(volume, "spec.accessModes")) found |=
            str_eq(json_str(have), json_str(want));
        if (!found)
            return false;
    }
    return true;
}

static bool same_text(const cJSON *a, const cJSON *b, const char *path)
{
    return str_eq(json_str_at(a, path), json_str_at(b, path));
}

/* --- a volume that is there --- */

struct find_volume {
    struct binding *binding;
    struct selector selector;
    bool selects;
    cJSON *best;
};

static bool fits(const struct find_volume *f, const cJSON *volume, struct str labels)
{
    const cJSON *claim = f->binding->claim;

    if (object_is_terminating(volume) || !str_eqc(json_str_at(volume, "status.phase"), "Available"))
        return false;
    if (json_path(volume, "spec.claimRef"))
        return names_claim(volume, claim, false);
    return same_text(volume, claim, "spec.storageClassName") &&
           same_text(volume, claim, "spec.volumeMode") && modes_cover(volume, claim) &&
           storage_of(volume, "spec.capacity.storage") >=
               storage_of(claim, "spec.resources.requests.storage") &&
           (!f->selects || selector_match(&f->selector, labels));
}

static bool on_volume(void *ctx, const struct store_object *o)
{
    struct find_volume *f = ctx;
    cJSON *volume = vapi_tree(f->binding->arena, o);

    if (fits(f, volume, o->labels) && (!f->best || json_path(volume, "spec.claimRef") ||
                                       storage_of(volume, "spec.capacity.storage") <
                                           storage_of(f->best, "spec.capacity.storage")))
        f->best = volume;
    return !json_path(f->best, "spec.claimRef");
}

static cJSON *find_volume(struct binding *b)
{
    struct find_volume f = {.binding = b};
    const cJSON *selector = json_path(b->claim, "spec.selector");

    f.selects = json_is_object(selector);
    if (f.selects && selector_from_json(b->arena, selector, &f.selector, NULL))
        return NULL;
    store_scan_latest(vapi_store(reconcile_api(b->run)), b->volumes->storage, STR_NULL, on_volume,
                      &f);
    return f.best;
}

/* --- steps --- */

static cJSON *claim_ref(struct binding *b)
{
    return json_object(b->arena, JSON("kind", "PersistentVolumeClaim"), JSON("apiVersion", "v1"),
                       JSON("namespace", meta_ns(b->claim)), JSON("name", meta_name(b->claim)),
                       JSON("uid", meta_uid(b->claim)));
}

static struct str provisioned_name(struct binding *b)
{
    return arena_printf(b->arena, "pvc-%.*s", STR_F(meta_uid(b->claim)));
}

static void on_provisioned(struct reconcile *r, void *ctx, const struct err *err,
                           const struct store_object *object)
{
    if (err)
        reconcile_take(r, err);
    else
        reconcile_event(r, ctx, "Normal", "ProvisioningSucceeded",
                        "Successfully provisioned volume %.*s", STR_F(object->name));
}

static void provision(struct binding *b, const cJSON *class_)
{
    struct arena *a = b->arena;
    const cJSON *want = json_get(b->claim, "spec");
    struct str policy = json_str_at(class_, "reclaimPolicy"), name = provisioned_name(b);
    struct str size = json_str_at(want, "resources.requests.storage");
    struct str mode = json_str_at(want, "volumeMode");
    cJSON *annotations = json_object(a, JSON(PROVISIONED_BY, PROVISIONER));
    cJSON *spec =
        json_object(a, JSON("accessModes", json_copy(a, json_get(want, "accessModes"))),
                    JSON("capacity", json_object(a, JSON("storage", size))),
                    JSON("persistentVolumeReclaimPolicy", policy.n ? policy : STR("Delete")),
                    JSON("storageClassName", json_str_at(want, "storageClassName")),
                    JSON_NONEMPTY("volumeMode", mode),
                    JSON("csi", json_object(a, JSON("driver", DRIVER), JSON("volumeHandle", name))),
                    JSON("claimRef", claim_ref(b)));
    cJSON *metadata = json_object(a, JSON("name", name), JSON("annotations", annotations));

    reconcile_create(b->run, b->volumes, STR(""),
                     json_object(a, JSON("metadata", metadata), JSON("spec", spec)));
    reconcile_then(b->run, on_provisioned, b->claim);
}

/* The volume names the claim already: the claim names it, then says that it is bound. */
static void complete(struct binding *b, cJSON *volume)
{
    struct arena *a = b->arena;
    cJSON *claim = b->claim, *annotations;
    struct str name = meta_name(volume);

    if (!str_eq(json_str_at(claim, "spec.volumeName"), name)) {
        json_set_str(a, json_ensure_object(a, claim, "spec"), "volumeName", name);
        annotations = json_ensure_path(a, claim, "metadata.annotations");
        json_put(a, annotations, JSON(BIND_COMPLETED, "yes"), JSON(BOUND_BY, "yes"));
        reconcile_update(b->run, b->claims, claim);
        return; /* its event brings the next step */
    }
    json_put(a, json_ensure_object(a, claim, "status"), JSON("phase", "Bound"),
             JSON("accessModes", json_copy(a, json_path(volume, "spec.accessModes"))),
             JSON("capacity", json_copy(a, json_path(volume, "spec.capacity"))));
    reconcile_update_status(b->run, b->claims, claim);
}

static void bind(struct binding *b, cJSON *volume)
{
    if (names_claim(volume, b->claim, true)) {
        complete(b, volume);
        return;
    }
    json_set(b->arena, json_ensure_object(b->arena, volume, "spec"), "claimRef", claim_ref(b));
    json_set_str(b->arena, json_ensure_path(b->arena, volume, "metadata.annotations"), BOUND_BY,
                 STR("yes"));
    reconcile_update(b->run, b->volumes, volume);
}

static void say(struct binding *b, const char *type, const char *reason, struct str message)
{
    reconcile_event(b->run, b->claim, type, reason, "%.*s", STR_F(message));
}

static void make_volume(struct binding *b, const cJSON *class_)
{
    struct str class_name = json_str_at(b->claim, "spec.storageClassName");
    struct str provisioner = json_str_at(class_, "provisioner");

    if (!class_name.n)
        say(b, "Normal", "FailedBinding",
            STR("no persistent volumes available for this claim and no storage class is set"));
    else if (!class_)
        say(b, "Warning", "ProvisioningFailed",
            arena_printf(b->arena, "storageclass.storage.k8s.io \"%.*s\" not found",
                         STR_F(class_name)));
    else if (!str_eqc(provisioner, PROVISIONER))
        say(b, "Normal", "ExternalProvisioning",
            arena_printf(b->arena,
                         "Waiting for a volume to be created either by the external provisioner "
                         "'%.*s' or manually by the system administrator. If volume creation is "
                         "delayed, please verify that the provisioner is running and correctly "
                         "registered.",
                         STR_F(provisioner)));
    else
        provision(b, class_);
}

static void bind_new(struct binding *b)
{
    const cJSON *class_ = class_of(b->run, b->claim);
    struct str named = json_str_at(b->claim, "spec.volumeName");
    cJSON *volume;

    if (named.n) { /* names this volume, or is being bound */
        volume = reconcile_get(b->run, b->volumes, STR(""), named);
        if (volume && (!json_path(volume, "spec.claimRef") || names_claim(volume, b->claim, false)))
            bind(b, volume);
        return;
    }
    volume = reconcile_get(b->run, b->volumes, STR(""), provisioned_name(b));
    if (volume) {
        if (names_claim(volume, b->claim, true))
            complete(b, volume);
        return;
    }
    if (waits_for_pod(class_) && !meta_annotation(b->claim, SELECTED_NODE).n) {
        say(b, "Normal", "WaitForFirstConsumer",
            STR("waiting for first consumer to be created before binding"));
        return;
    }
    volume = find_volume(b);
    if (volume)
        bind(b, volume);
    else
        make_volume(b, class_);
}

static bool is_external(struct reconcile *r)
{
    const struct embedded *e = controller_state(reconcile_controller(r));

    return e->external_controllers;
}

/* Upstream's controller binds, and requested a volume that this claim then gets. */
static void provision_requested(struct binding *b)
{
    const cJSON *class_ = class_of(b->run, b->claim);

    if (json_str_at(b->claim, "spec.volumeName").n || !class_ ||
        !str_eqc(meta_annotation(b->claim, ASKED), PROVISIONER) ||
        (waits_for_pod(class_) && !meta_annotation(b->claim, SELECTED_NODE).n) ||
        reconcile_get(b->run, b->volumes, STR(""), provisioned_name(b)))
        return;
    provision(b, class_);
}

/* The request grew: the simulated disk has always room. */
static void grow(struct binding *b)
{
    cJSON *volume =
        reconcile_get(b->run, b->volumes, STR(""), json_str_at(b->claim, "spec.volumeName"));
    __int128 want = storage_of(b->claim, "spec.resources.requests.storage");
    struct str text = json_str_at(b->claim, "spec.resources.requests.storage");

    if (!volume || !str_eqc(meta_annotation(volume, PROVISIONED_BY), PROVISIONER))
        return;
    if (storage_of(volume, "spec.capacity.storage") < want) {
        json_set_str(b->arena, json_ensure_path(b->arena, volume, "spec.capacity"), "storage",
                     text);
        reconcile_update(b->run, b->volumes, volume);
    } else if (storage_of(b->claim, "status.capacity.storage") < want) {
        json_set_str(b->arena, json_ensure_path(b->arena, b->claim, "status.capacity"), "storage",
                     text);
        reconcile_update_status(b->run, b->claims, b->claim);
    }
}

static void claim_reconcile(struct reconcile *r)
{
    struct binding b = {.run = r, .arena = reconcile_arena(r)};
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    b.claims = reconcile_resource(r, "", "persistentvolumeclaims");
    b.volumes = reconcile_resource(r, "", "persistentvolumes");
    b.claim = reconcile_get(r, b.claims, ns, name);
    if (!b.claim || object_is_terminating(b.claim))
        return;
    if (is_bound(b.claim))
        grow(&b);
    else if (is_external(r))
        provision_requested(&b);
    else
        bind_new(&b);
}

/* --- volumes --- */

static void set_phase(struct reconcile *r, const struct resource *res, cJSON *volume,
                      const char *phase)
{
    struct arena *a = reconcile_arena(r);
    cJSON *status = json_ensure_object(a, volume, "status");

    if (str_eqc(json_str_at(status, "phase"), phase))
        return;
    json_put(a, status, JSON("phase", phase),
             JSON("lastPhaseTransitionTime", time_format_s(a, reconcile_now_s(r))));
    reconcile_update_status(r, res, volume);
}

/* Once its claim is gone. */
static bool is_removed(const cJSON *volume)
{
    return str_eqc(meta_annotation(volume, PROVISIONED_BY), PROVISIONER) &&
           str_eqc(json_str_at(volume, "spec.persistentVolumeReclaimPolicy"), "Delete");
}

static void release(struct reconcile *r, const struct resource *res, cJSON *volume)
{
    if (is_removed(volume))
        reconcile_delete(r, res, STR(""), meta_name(volume), meta_uid(volume), NULL);
    else
        set_phase(r, res, volume, "Released");
}

static void volume_reconcile(struct reconcile *r)
{
    const struct resource *res = reconcile_resource(r, "", "persistentvolumes");
    struct str ns, name;

    if (!key_split(reconcile_key(r), &ns, &name))
        return;
    cJSON *volume = reconcile_get(r, res, STR(""), name);
    const cJSON *ref = json_path(volume, "spec.claimRef"), *claim;
    if (!volume || object_is_terminating(volume))
        return;
    if (is_external(r)) {
        /* Upstream's manager says when a volume is released; its provisioner then removes it. */
        if (str_eqc(json_str_at(volume, "status.phase"), "Released") && is_removed(volume))
            reconcile_delete(r, res, STR(""), meta_name(volume), meta_uid(volume), NULL);
        return;
    }
    if (!json_str_at(ref, "uid").n) {
        set_phase(r, res, volume, "Available");
        return;
    }
    claim = reconcile_get(r, reconcile_resource(r, "", "persistentvolumeclaims"),
                          json_str_at(ref, "namespace"), json_str_at(ref, "name"));
    if (!claim || !names_claim(volume, claim, true))
        release(r, res, volume);
    else if (str_eq(json_str_at(claim, "spec.volumeName"), name))
        set_phase(r, res, volume, "Bound");
}

/* --- events --- */

static bool on_claim(void *ctx, const struct store_object *o)
{
    struct controller *c = ctx;

    if (!str_contains(o->bytes, STR("\"phase\":\"Bound\"")))
        controller_add_name(c, o->ns, o->name);
    return true;
}

static void add_pending_claims(struct controller *c)
{
    struct vapi *api = controller_api(c);

    store_scan_latest(vapi_store(api),
                      embedded_resource(api, "", "persistentvolumeclaims")->storage, STR_NULL,
                      on_claim, c);
}

static void map_volume_to_claim(struct controller *c, const struct store_event *e)
{
    struct arena *a = arena_new(0);
    const cJSON *ref = json_path(vapi_tree(a, e->object), "spec.claimRef");

    if (ref)
        controller_add_name(c, json_str_at(ref, "namespace"), json_str_at(ref, "name"));
    else if (e->type != STORE_DELETED)
        add_pending_claims(c);
    arena_free(a);
}

static void map_class_to_claims(struct controller *c, const struct store_event *e)
{
    if (e->type != STORE_DELETED)
        add_pending_claims(c);
}

static void map_claim_to_volume(struct controller *c, const struct store_event *e)
{
    struct arena *a = arena_new(0);
    struct str volume = json_str_at(vapi_tree(a, e->object), "spec.volumeName");

    if (volume.n)
        controller_add_name(c, STR(""), volume);
    /* The claim may have been deleted before it named the volume that was made for it. */
    if (e->type == STORE_DELETED)
        controller_add_name(c, STR(""), arena_printf(a, "pvc-%.*s", STR_F(e->object->uid)));
    arena_free(a);
}

static const struct controller_source CLAIM_SOURCES[] = {
    {"", "persistentvolumeclaims", controller_map_self},
    {"", "persistentvolumes", map_volume_to_claim},
    {"storage.k8s.io", "storageclasses", map_class_to_claims},
    {NULL, NULL, NULL},
};
static const struct controller_source VOLUME_SOURCES[] = {
    {"", "persistentvolumes", controller_map_self},
    {"", "persistentvolumeclaims", map_claim_to_volume},
    {NULL, NULL, NULL},
};

const struct controller_def CLAIM_PART = {
    .name = "persistentvolume-controller",
    .sources = CLAIM_SOURCES,
    .reconcile = claim_reconcile,
};
const struct controller_def VOLUME_PART = {
    .name = "persistentvolume-controller",
    .sources = VOLUME_SOURCES,
    .reconcile = volume_reconcile,
};

/* --- for the scheduler --- */

static struct str claim_name(struct arena *a, const cJSON *pod, const cJSON *volume)
{
    if (json_get(volume, "ephemeral"))
        return arena_printf(a, "%.*s-%.*s", STR_F(meta_name(pod)),
                            STR_F(json_str_at(volume, "name")));
    return json_str_at(volume, "persistentVolumeClaim.claimName");
}

struct str volumes_missing(struct reconcile *r, const cJSON *pod)
{
    struct arena *a = reconcile_arena(r);
    const struct resource *res = reconcile_resource(r, "", "persistentvolumeclaims");

    json_each(v, json_path(pod, "spec.volumes"))
    {
        struct str name = claim_name(a, pod, v);

        if (!name.n)
            continue;
        const cJSON *claim = reconcile_get(r, res, meta_ns(pod), name);
        if (!claim)
            return arena_printf(a, "persistentvolumeclaim \"%.*s\" not found", STR_F(name));
        if (object_is_terminating(claim))
            return arena_printf(a, "persistentvolumeclaim \"%.*s\" is being deleted", STR_F(name));
        if (!is_bound(claim) && !waits_for_pod(class_of(r, claim)))
            return STR("pod has unbound immediate PersistentVolumeClaims");
    }
    return STR_NULL;
}

static void select_node(struct reconcile *r, const struct resource *res, const cJSON *claim,
                        struct str node)
{
    struct arena *a = reconcile_arena(r);
    cJSON *patch = json_new_object(a);

    if (str_eq(meta_annotation(claim, SELECTED_NODE), node))
        return;
    json_set_str(a, json_ensure_path(a, patch, "metadata.annotations"), SELECTED_NODE, node);
    reconcile_patch(r, res, STR_NULL, meta_ns(claim), meta_name(claim), patch);
}

bool volumes_pending(struct reconcile *r, const cJSON *pod, struct str node)
{
    const struct resource *res = reconcile_resource(r, "", "persistentvolumeclaims");
    bool pending = false;

    json_each(v, json_path(pod, "spec.volumes"))
    {
        struct str name = claim_name(reconcile_arena(r), pod, v);
        const cJSON *claim = name.n ? reconcile_get(r, res, meta_ns(pod), name) : NULL;

        if (!claim || is_bound(claim))
            continue;
        select_node(r, res, claim, node);
        pending = true;
    }
    return pending;
}
