/* SPDX-License-Identifier: Apache-2.0 */
/* PersistentVolumes of the tenant on the host, and the claims that name them. The tenant's claim
 * and volume are bound here, the host's by its own binder, since each names the other there. A
 * handle is the key to the data behind it: before a volume, and before its claim, the volumes of
 * the host are listed, and one handle serves one volume. Must never let a claim go down while
 * another volume has the handle, nor delete a volume that the tenant did not delete. */
#include "objects/volumes.h"

#include <sublet/encode.h>
#include <sublet/json_build.h>
#include <sublet/translate_volume.h>

#include "core/life.h"
#include "objects/down.h"

#define RECORD         "persistentvolumes"
#define DRIVER         "host.sublet.dev" /* of the volumes in claims.c */
#define BY_CONTROLLER  "pv.kubernetes.io/bound-by-controller"
#define IN_USE_AGAIN_S 60

enum { PAGE = 200, MOST_PAGES = 500 };

static enum sync_id kind_of(const struct syncer *s)
{
    return sync_kind_of_record(s, STR(RECORD));
}

static const struct resource *resource(const struct sync_run *run)
{
    return syncer_resource(run->syncer, "", "persistentvolumes");
}

bool sync_volume_is_for_host(void *ctx, struct str volume)
{
    struct syncer *s = ctx;
    enum sync_id id = kind_of(s);
    struct arena *a;
    bool is;

    if (id == SYNC_NONE)
        return false;
    a = arena_new(0);
    is = translate_volume_is_listed(&s->tenant, syncer_virtual(s, a, id, STR(""), volume));
    arena_free(a);
    return is;
}

void sync_volume_rescan(struct syncer *s)
{
    if (kind_of(s) != SYNC_NONE)
        syncer_rescan(s, kind_of(s));
}

/* The volumes that claims of the host have in the virtual cluster are written by this process. */
int sync_volume_check(const struct syncer *s, const cJSON *object, const cJSON *old,
                      struct err *err)
{
    if (old || str_eqc(json_str_at(object, "spec.csi.driver"), DRIVER))
        return 0;
    return translate_check_volume(&s->tenant, object, err);
}

/* ---- one handle, one volume ---- */

struct handle_check {
    struct str driver, handle;
    struct str name, uid, created; /* of our volume on the host; uid empty: to be created */
    const cJSON *object;           /* what is created then */
    unsigned pages;
};

/* Between two virtual clusters the earlier volume prevails, so that one of two that were created at
 * once remains; but one that is bound prevails in any case, since the servers of the host that set
 * the times can have different clocks. All others prevail. */
static bool is_rival(const struct syncer *s, const struct handle_check *c, const cJSON *volume)
{
    struct str created = json_str_at(volume, "metadata.creationTimestamp"), ns, name, uid;
    int order = str_cmp(created, c->created);

    if (!str_eq(json_str_at(volume, "spec.csi.driver"), c->driver) ||
        !str_eq(json_str_at(volume, "spec.csi.volumeHandle"), c->handle))
        return false;
    if (str_eq(json_str_at(volume, "metadata.name"), c->name) &&
        translate_owner(&s->tenant, volume, &ns, &name, &uid))
        return false;
    if (!c->uid.n || !json_get(json_path(volume, "metadata.labels"), LABEL_CLUSTER) ||
        json_str_at(volume, "spec.claimRef.uid").n)
        return true;
    return order ? order < 0 : str_cmp(sync_uid(volume), c->uid) < 0;
}

static bool has_rival(const struct syncer *s, const struct handle_check *c, const cJSON *list)
{
    bool found = false;

    json_each(volume, json_get(list, "items")) found |= is_rival(s, c, volume);
    return found;
}

static void on_page(struct sync_run *run, const struct host_answer *answer, const struct err *err);

static void list_page(struct sync_run *run, struct str from)
{
    struct arena *a = run->arena;
    struct handle_check *c = run->then_ctx;
    struct host_request q = {.method = "GET"};

    if (c->pages++ == MOST_PAGES) {
        reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                        "the host cluster has too many volumes to compare handles");
        reconcile_again_after(run->reconcile, IN_USE_AGAIN_S * 1000);
        return;
    }
    q.path = arena_printf(a, "/api/v1/persistentvolumes?limit=%d%s%.*s", PAGE,
                          from.n ? "&continue=" : "", STR_F(url_encode(a, from)));
    sync_send(run, &q, on_page);
}

/* The list took its time: others may have gone down meanwhile. */
static void create_if_current(struct sync_run *run)
{
    struct handle_check *c = run->then_ctx;

    if (sync_create_is_outdated(run))
        syncer_add(run->syncer, run->id, run->ns, run->name);
    else if (run->id == SYNC_CLAIMS || !sync_down_waits_for_room(run))
        sync_create(run, c->object);
}

static void on_page(struct sync_run *run, const struct host_answer *answer, const struct err *err)
{
    const struct handle_check *c = run->then_ctx;
    struct arena *a = arena_new(0);
    cJSON *list = NULL;
    struct str next;

    if (err) {
        sync_refused(run, err);
    } else if (json_parse(a, answer->body, &list, NULL)) {
        reconcile_again_after(run->reconcile, 1000);
    } else if (has_rival(run->syncer, c, list)) {
        reconcile_event(run->reconcile, run->virtual_, "Warning", "VolumeInUse",
                        "spec.csi.volumeHandle: another volume of the host cluster has the handle "
                        "\"%.*s\" of %.*s",
                        STR_F(c->handle), STR_F(c->driver));
        reconcile_again_after(run->reconcile, IN_USE_AGAIN_S * 1000);
    } else {
        next = json_str_at(list, "metadata.continue");
        if (next.n)
            list_page(run, next);
        else
            create_if_current(run);
    }
    arena_free(a);
}

static void create_checked(struct sync_run *run, struct handle_check check)
{
    struct sync_run checking = *run;
    struct handle_check *kept = ARENA_NEW(run->arena, struct handle_check);

    *kept = check;
    checking.then_ctx = kept;
    list_page(&checking, STR(""));
}

void sync_volume_create(struct sync_run *run, const cJSON *wanted)
{
    create_checked(run,
                   (struct handle_check){.driver = json_str_at(wanted, "spec.csi.driver"),
                                         .handle = json_str_at(wanted, "spec.csi.volumeHandle"),
                                         .name = arena_str(run->arena, str_c(run->host_name)),
                                         .object = wanted});
}

/* ---- the volume ---- */

bool sync_volume_fits_host(struct sync_run *run)
{
    static const char *const kept[] = {"spec.csi.driver", "spec.csi.volumeHandle"};
    bool fits = true;

    for (size_t i = 0; i < COUNT(kept); i++)
        fits &= str_eq(json_str_at(run->host, kept[i]), json_str_at(run->virtual_, kept[i]));
    return fits;
}

static bool is_claim_there(struct syncer *s, struct arena *a, struct str host_name, struct str uid)
{
    const struct host_object *o = reflector_get(syncer_watch(s, SYNC_CLAIMS), host_name);
    cJSON *claim = NULL;

    return o && !json_parse(a, o->bytes, &claim, NULL) && str_eq(sync_uid(claim), uid);
}

/* Is the host volume bound to a host claim that is there no more, although the tenant's volume is
 * free for the claim that it names? A volume of a deleted claim is Released, until the tenant
 * removes that claim's uid. */
static bool is_bound_in_vain(struct sync_run *run, const cJSON *wanted)
{
    struct syncer *s = run->syncer;
    const cJSON *ref = json_path(run->virtual_, "spec.claimRef");
    struct str ns = json_str_at(ref, "namespace"), name = json_str_at(ref, "name");
    struct str uid = json_str_at(ref, "uid");
    struct str bound = json_str_at(run->host, "spec.claimRef.uid");
    struct mapping m = sync_mapping_get(s, run->arena, SYNC_CLAIMS, ns, name);

    if (!bound.n || is_claim_there(s, run->arena, json_str_at(wanted, "spec.claimRef.name"), bound))
        return false;
    if (!uid.n)
        return true;
    return str_eq(uid, sync_uid(syncer_virtual(s, run->arena, SYNC_CLAIMS, ns, name))) &&
           !(str_eq(m.uid, uid) && m.host_uid.n);
}

/* The host's binder adds to claimRef which claim it bound. */
cJSON *sync_volume_lacks(struct sync_run *run, const cJSON *wanted)
{
    static const char *const bound[] = {"uid", "resourceVersion"};
    const struct kind_rules *rules = translate_kind_rules(DOWN_VOLUMES);
    struct arena *a = run->arena;
    const cJSON *now = json_path(run->host, "spec.claimRef");
    bool in_vain = is_bound_in_vain(run, wanted);
    cJSON *full = json_copy(a, wanted), *ref = json_path(full, "spec.claimRef"), *patch;

    for (size_t i = 0; i < COUNT(bound); i++)
        if (!in_vain && json_get(now, bound[i]))
            json_set(a, ref, bound[i], json_copy(a, json_get(now, bound[i])));
    patch = translate_kind_update(a, rules, run->host, full);
    if (!in_vain)
        return patch;
    patch = patch ? patch : json_new_object(a);
    ref = json_ensure_path(a, patch, "spec.claimRef");
    for (size_t i = 0; i < COUNT(bound); i++)
        json_set(a, ref, bound[i], json_new_null(a));
    return patch;
}

void sync_volume_stays(struct sync_run *run)
{
    cJSON *status = json_ensure_object(run->arena, run->virtual_, "status");

    if (!translate_volume_is_listed(&run->syncer->tenant, run->virtual_) ||
        json_path(run->virtual_, "spec.claimRef") ||
        str_eqc(json_str(json_get(status, "phase")), "Available"))
        return;
    json_set_str(run->arena, status, "phase", STR("Available"));
    json_remove(status, "lastPhaseTransitionTime"); /* the phase comes now */
    reconcile_update_status(run->reconcile, resource(run), run->virtual_);
}

/* ---- its claim ---- */

/* False, and an Event says why: the claim cannot have the volume. */
static bool may_have(struct sync_run *run, const cJSON *volume)
{
    const cJSON *ref = json_path(volume, "spec.claimRef");
    struct str name = json_str_at(volume, "metadata.name"), uid = json_str_at(ref, "uid");
    const char *why;

    if (ref &&
        (!str_eq(json_str_at(ref, "namespace"), run->ns) ||
         !str_eq(json_str_at(ref, "name"), run->name) || (uid.n && !str_eq(uid, run->uid)))) {
        reconcile_event(run->reconcile, run->virtual_, "Warning", "FailedBinding",
                        "volume \"%.*s\" already bound to a different claim.", STR_F(name));
        return false;
    }
    why = ref ? NULL : translate_volume_mismatch(volume, run->virtual_);
    if (why)
        reconcile_event(run->reconcile, run->virtual_, "Warning", "VolumeMismatch",
                        "Cannot bind to requested volume \"%.*s\": %s", STR_F(name), why);
    return !why;
}

/* As upstream's binder: the volume first. True: a write is pending. */
static bool bind(struct sync_run *run, cJSON *volume)
{
    struct arena *a = run->arena;
    cJSON *ref = json_path(volume, "spec.claimRef");

    if (json_str_at(ref, "uid").n)
        return false;
    if (!ref)
        json_set_str(a, json_ensure_path(a, volume, "metadata.annotations"), BY_CONTROLLER,
                     STR("yes"));
    json_set(a, json_get(volume, "spec"), "claimRef",
             json_object(a, JSON("apiVersion", STR("v1")),
                         JSON("kind", STR("PersistentVolumeClaim")), JSON("namespace", run->ns),
                         JSON("name", run->name), JSON("uid", run->uid)));
    reconcile_update(run->reconcile, resource(run), volume);
    return true;
}

/* The host volume, once it is as the tenant has it and free for this claim; else NULL. */
static cJSON *on_host(struct sync_run *run, const cJSON *volume)
{
    struct syncer *s = run->syncer;
    enum sync_id id = kind_of(s);
    struct str name = json_str_at(volume, "metadata.name"), bound;
    const struct host_object *o;
    cJSON *host = NULL;
    char host_name[64];

    translate_name(&s->tenant, STR(""), name, host_name);
    o = reflector_get(syncer_watch(s, id), str_c(host_name));
    if (!sync_down_is_there(s, run->arena, id, volume) || !o ||
        json_parse(run->arena, o->bytes, &host, NULL))
        return NULL;
    bound = json_str_at(host, "spec.claimRef.uid");
    return bound.n && !str_eq(bound, run->mapping.host_uid) ? NULL : host;
}

static void wait_for(struct sync_run *run, struct str volume)
{
    sync_down_await(run->syncer, kind_of(run->syncer));
    reconcile_event(run->reconcile, run->virtual_, "Normal", "WaitForVolume",
                    "its volume \"%.*s\" is not on the host yet", STR_F(volume));
}

void sync_volume_claim(struct sync_run *run, struct err *err)
{
    struct str name = json_str_at(run->virtual_, "spec.volumeName");
    cJSON *volume = reconcile_get(run->reconcile, resource(run), STR(""), name), *host, *object;

    if (!volume || object_is_terminating(volume)) {
        wait_for(run, name);
        return;
    }
    if (!may_have(run, volume) || bind(run, volume)) {
        sync_down_await(run->syncer, kind_of(run->syncer));
        return;
    }
    host = on_host(run, volume);
    if (!host) {
        wait_for(run, name);
        return;
    }
    if (translate_pvc(run->arena, &run->syncer->tenant, run->virtual_, NULL, &object, err))
        return;
    create_checked(run,
                   (struct handle_check){.driver = json_str_at(host, "spec.csi.driver"),
                                         .handle = json_str_at(host, "spec.csi.volumeHandle"),
                                         .name = json_str_at(host, "metadata.name"),
                                         .uid = sync_uid(host),
                                         .created = json_str_at(host, "metadata.creationTimestamp"),
                                         .object = object});
}
