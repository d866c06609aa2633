/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumeClaims go down with an explicit storage class; their status and volume name come
 * up. The virtual PersistentVolume is built from the claim, so that the host's volumes need not be
 * readable. Must never show where the storage is. */
#include "core/life.h"
#include "objects/down.h"
#include "objects/objects.h"
#include "objects/volumes.h"

#define DRIVER              "host.sublet.dev"
#define ANNOTATION_MIRRORED "sublet.dev/claim" /* "ns/name": this volume is ours to delete */

static const struct resource *claims(const struct sync_run *run)
{
    return syncer_resource(run->syncer, "", "persistentvolumeclaims");
}

static const struct resource *volumes(const struct sync_run *run)
{
    return syncer_resource(run->syncer, "", "persistentvolumes");
}

/* --- the volume a claim is bound to --- */

static void copy(struct arena *a, cJSON *to, const char *key, const cJSON *value)
{
    if (value)
        json_set(a, to, key, json_copy(a, value));
}

/* What becomes of the data after the claim: the class decides when the host makes the volume, and
 * its field never changes. */
static struct str reclaim_policy(struct sync_run *run)
{
    const struct resource *classes =
        syncer_resource(run->syncer, "storage.k8s.io", "storageclasses");
    struct str name = json_str_at(run->virtual_, "spec.storageClassName");
    const cJSON *class = name.n ? reconcile_get(run->reconcile, classes, STR(""), name) : NULL;
    struct str policy = json_str_at(class, "reclaimPolicy");

    return policy.n ? policy : STR("Delete");
}

static cJSON *volume_of(struct sync_run *run, struct str name)
{
    struct arena *a = run->arena;
    const cJSON *claim = run->virtual_;
    cJSON *volume = json_new_object(a), *metadata, *spec, *csi, *ref;

    metadata = json_ensure_object(a, volume, "metadata");
    json_set_str(a, metadata, "name", name);
    json_set_str(a, json_ensure_object(a, metadata, "annotations"), ANNOTATION_MIRRORED,
                 key_join(a, run->ns, run->name));
    spec = json_ensure_object(a, volume, "spec");
    copy(a, spec, "capacity", json_path(claim, "status.capacity"));
    copy(a, spec, "accessModes", json_path(claim, "status.accessModes"));
    copy(a, spec, "storageClassName", json_path(claim, "spec.storageClassName"));
    copy(a, spec, "volumeMode", json_path(claim, "spec.volumeMode"));
    json_set_str(a, spec, "persistentVolumeReclaimPolicy", reclaim_policy(run));
    csi = json_ensure_object(a, spec, "csi");
    json_set_str(a, csi, "driver", STR(DRIVER));
    json_set_str(a, csi, "volumeHandle", name);
    ref = json_ensure_object(a, spec, "claimRef");
    json_set_str(a, ref, "apiVersion", STR("v1"));
    json_set_str(a, ref, "kind", STR("PersistentVolumeClaim"));
    json_set_str(a, ref, "namespace", run->ns);
    json_set_str(a, ref, "name", run->name);
    json_set_str(a, ref, "uid", run->uid);
    return volume;
}

static bool is_for(const struct sync_run *run, const cJSON *volume)
{
    struct str key =
        json_str(json_get(json_path(volume, "metadata.annotations"), ANNOTATION_MIRRORED));

    return str_eq(key, reconcile_key(run->reconcile)) &&
           str_eqc(json_str_at(volume, "spec.csi.driver"), DRIVER);
}

/* True: a write is pending. */
static bool mirror_volume(struct sync_run *run)
{
    struct str name = json_str_at(run->virtual_, "spec.volumeName");
    cJSON *volume, *status;

    if (!name.n || !str_eqc(json_str_at(run->virtual_, "status.phase"), "Bound") ||
        translate_pvc_has_volume(&run->syncer->tenant, run->host, run->virtual_))
        return false;
    volume = reconcile_get(run->reconcile, volumes(run), STR(""), name);
    if (!volume) {
        reconcile_create(run->reconcile, volumes(run), STR(""), volume_of(run, name));
        reconcile_again_after(run->reconcile, 10); /* to write its status */
        return true;
    }
    if (!is_for(run, volume))
        return false;
    if (!str_eq(json_str_at(volume, "spec.claimRef.uid"), run->uid)) {
        /* The claim was created again, and took over the host's with its data. */
        json_set_str(run->arena, json_path(volume, "spec.claimRef"), "uid", run->uid);
        reconcile_update(run->reconcile, volumes(run), volume);
        return true;
    }
    if (str_eqc(json_str_at(volume, "status.phase"), "Bound"))
        return false;
    status = json_ensure_object(run->arena, volume, "status");
    json_set_str(run->arena, status, "phase", STR("Bound"));
    reconcile_update_status(run->reconcile, volumes(run), volume);
    return true;
}

struct search {
    const struct sync_run *run;
    cJSON *found; /* an array */
};

static bool on_volume(void *ctx, const struct store_object *o)
{
    struct search *search = ctx;
    cJSON *volume;

    if (!str_contains(o->bytes, STR(ANNOTATION_MIRRORED)))
        return true;
    volume = vapi_tree(search->run->arena, o);
    if (is_for(search->run, volume))
        json_append(search->found, volume);
    return true;
}

/* The claim or its host claim is deleted. */
static void remove_volumes(struct sync_run *run)
{
    struct search search = {run, json_new_array(run->arena)};

    if (store_scan(run->syncer->store, volumes(run)->storage, STR_NULL, STR_NULL, STR_NULL, 0,
                   on_volume, &search, NULL))
        return;
    /* Released first: upstream's pv-protection keeps a Bound volume, and its binder, which would
     * set the phase, does not run. */
    json_each(volume, search.found)
    {
        cJSON *status = json_ensure_object(run->arena, volume, "status");

        json_set_str(run->arena, status, "phase", STR("Released"));
        reconcile_update_status(run->reconcile, volumes(run), volume);
        reconcile_delete(run->reconcile, volumes(run), STR(""),
                         json_str_at(volume, "metadata.name"), sync_uid(volume), NULL);
    }
}

/* --- the claim --- */

static bool update_up(struct sync_run *run)
{
    cJSON *spec = translate_pvc_spec_up(run->arena, &run->syncer->tenant, run->host, run->virtual_),
          *status;

    if (spec) {
        json_set(run->arena, run->virtual_, "spec", spec);
        reconcile_replace(run->reconcile, claims(run), run->virtual_);
        return true;
    }
    status = translate_pvc_status_up(run->arena, &run->syncer->tenant, run->host, run->virtual_);
    if (!status)
        return sync_keys_up(run);
    json_set(run->arena, run->virtual_, "status", status);
    reconcile_update_status(run->reconcile, claims(run), run->virtual_);
    return true;
}

static bool is_lost(const struct sync_run *run)
{
    return str_eqc(json_str_at(run->virtual_, "status.phase"), "Lost");
}

static void lost(struct sync_run *run)
{
    cJSON *status = json_ensure_object(run->arena, run->virtual_, "status");

    json_set_str(run->arena, status, "phase", STR("Lost"));
    reconcile_update_status(run->reconcile, claims(run), run->virtual_);
    reconcile_event(run->reconcile, run->virtual_, "Warning", "ClaimLost",
                    "the host cluster removed the claim; its data may be lost");
}

/* --- claims of the tenant's own provisioners --- */

struct own_search {
    struct arena *arena;
    struct str class;
    bool found;
};

static bool on_own_volume(void *ctx, const struct store_object *o)
{
    struct own_search *f = ctx;

    if (str_contains(o->bytes, f->class))
        f->found = str_eq(json_str_at(vapi_tree(f->arena, o), "spec.storageClassName"), f->class);
    return !f->found;
}

static bool has_volume(struct syncer *s, struct arena *a, struct str class)
{
    struct own_search f = {a, class, false};
    unsigned volumes = syncer_resource(s, "", "persistentvolumes")->storage;

    return !store_scan(s->store, volumes, STR_NULL, STR_NULL, STR_NULL, 0, on_own_volume, &f,
                       NULL) &&
           f.found;
}

bool sync_claim_is_own(struct syncer *s, struct arena *a, const cJSON *claim)
{
    struct str class = translate_pvc_class(claim);
    unsigned classes = syncer_resource(s, "storage.k8s.io", "storageclasses")->storage;

    return class.n && !translate_pvc_names_volume(&s->tenant, claim) &&
           !translate_class_offered(&s->tenant, class) && !sync_down_has_class(s, class) &&
           (store_get(s->store, classes, STR(""), class) || has_volume(s, a, class));
}

/* The host resolves its class by name, once: another's of that name must not be found there. */
static bool waits_for_class(struct sync_run *run)
{
    struct str class = translate_pvc_class(run->virtual_);

    if (!sync_down_awaits_class(run->syncer, run->arena, class))
        return false;
    reconcile_event(run->reconcile, run->virtual_, "Normal", "WaitForStorageClass",
                    "its storage class \"%.*s\" is not on the host yet", STR_F(class));
    return true;
}

static void create(struct sync_run *run, struct err *err)
{
    cJSON *object;

    if (run->mapping.host_uid.n && str_eq(run->mapping.uid, run->uid)) {
        switch (sync_life_absence(run->syncer, SYNC_CLAIMS, &run->mapping)) {
        case ABSENCE_PROVEN:
            if (!is_lost(run))
                sync_unlisted(run, lost);
            return; /* not created again: an empty volume would hide the loss */
        case ABSENCE_OPEN:
            return;
        case ABSENCE_OF_ANOTHER_LIFE:
            break;
        }
        if (sync_run_settle(run) != SETTLE_CREATE)
            return;
        remove_volumes(run);
        sync_recreate(run);
    }
    if (object_is_terminating(run->virtual_))
        return;
    if (translate_pvc_names_volume(&run->syncer->tenant, run->virtual_)) {
        sync_volume_claim(run, err);
        return;
    }
    if (sync_claim_is_own(run->syncer, run->arena, run->virtual_)) {
        reconcile_event(run->reconcile, run->virtual_, "Normal", "NotSynced",
                        "its storage class is not the host's: volumes for it are made in this "
                        "virtual cluster");
        return;
    }
    if (waits_for_class(run))
        return;
    if (!translate_pvc(run->arena, &run->syncer->tenant, run->virtual_, NULL, &object, err))
        sync_create(run, object);
    else if (err->kind == &ERR_UNAVAILABLE)
        err_clear(err); /* sync_classes_look() adds every claim again */
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    return translate_pvc_update(run->arena, run->host, wanted);
}

static void update(struct sync_run *run, struct err *err)
{
    cJSON *object, *patch;

    sync_refs_wake(run->syncer->refs, SYNC_CLAIMS, run->ns, run->name);
    if (update_up(run) || mirror_volume(run) || object_is_terminating(run->host))
        return;
    if (translate_pvc(run->arena, &run->syncer->tenant, run->virtual_, run->host, &object, err))
        return;
    patch = lacks(run, object);
    if (patch)
        sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", object, lacks, NULL});
}

static void claim_present(struct sync_run *run)
{
    struct err err;

    err_init(&err, run->arena);
    if (!translate_check_pvc(run->arena, &run->syncer->tenant, run->virtual_, &err)) {
        if (run->host)
            update(run, &err);
        else
            create(run, &err);
    }
    if (!err.kind)
        return;
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError", "%.*s",
                    STR_F(err.message));
    reconcile_fail(run->reconcile, &err);
}

static void reconcile_claim(struct reconcile *r)
{
    struct syncer *s = syncer_of(r);
    struct sync_run run;

    if (!sync_run_init(&run, r, SYNC_CLAIMS))
        return;
    if (!run.virtual_) /* a pod does not wait for what the tenant does not have */
        sync_refs_wake(s->refs, SYNC_CLAIMS, run.ns, run.name);
    if (!run.virtual_ && !run.mapping.exists)
        return;
    if (!syncer_ready(s, SYNC_CLAIMS, SYNC_CLAIMS, SYNC_CLAIMS) ||
        !sync_run_init(&run, r, SYNC_CLAIMS))
        return;
    if (!run.virtual_) {
        if (sync_finish_gone(&run, -1))
            remove_volumes(&run);
    } else if (!sync_settle_owner(&run)) {
        claim_present(&run);
    }
}

static const struct controller_source SOURCES[] = {
    {"", "persistentvolumeclaims", controller_map_self}, {0}};

const struct controller_def SYNC_CLAIM_CONTROLLER = {
    .name = "sublet-persistentvolumeclaims", .sources = SOURCES, .reconcile = reconcile_claim};
