/* SPDX-License-Identifier: Apache-2.0 */
/* Classes that come from the host, read-only: the StorageClasses a claim may name, and one
 * PriorityClass per tier that the tenant's pools map. A table lists the fields that are shown.
 * Where StorageClasses on the host are not readable, the default is found by a dry run of a claim,
 * and those on offer are shown by name. Must never show parameters: they are the host admin's. */

#include "objects/mirror.h"
#include "objects/objects.h"
#include <string.h>

#define ANNOTATION_DEFAULT "storageclass.kubernetes.io/is-default-class"
#define PROBE_AGAIN_MS     5000

/* --- storage classes --- */

static const char *const STORAGE_FIELDS[] = {"provisioner", "reclaimPolicy", "volumeBindingMode",
                                             "allowVolumeExpansion", NULL};
static const char *const PRIORITY_FIELDS[] = {"value", "preemptionPolicy", NULL};

static cJSON *new_class(struct sync_run *run, const cJSON *host, const char *const *fields)
{
    struct arena *a = run->arena;
    cJSON *object = json_new_object(a), *metadata, *notes;

    metadata = json_ensure_object(a, object, "metadata");
    json_set_str(a, metadata, "name", run->name);
    notes = json_ensure_object(a, metadata, "annotations");
    json_set_str(a, notes, ANNOTATION_FROM_HOST, STR("true"));
    for (; *fields; fields++) {
        const cJSON *value = json_get(host, *fields);

        if (value)
            json_set(a, object, *fields, json_copy(a, value));
    }
    return object;
}

static bool is_unreadable(const struct syncer *s)
{
    const struct reflector *classes = s->watches[SYNC_STORAGE_CLASSES].reflector;

    return reflector_refused(classes) && !reflector_synced(classes);
}

static cJSON *wanted_storage(struct sync_run *run)
{
    const struct translate_tenant *t = &run->syncer->tenant;
    cJSON *host = run->host, *object;

    if (!host && is_unreadable(run->syncer)) {
        host = json_new_object(run->arena);
        json_set_str(run->arena, host, "provisioner", STR("host.sublet.dev"));
    }
    if (!host || !translate_class_listed(t, run->name))
        return NULL;
    object = new_class(run, host, STORAGE_FIELDS);
    if (str_eq(translate_default_class(t), run->name))
        json_set_str(run->arena, json_path(object, "metadata.annotations"), ANNOTATION_DEFAULT,
                     STR("true"));
    return object;
}

/* --- the host's default --- */

static void set_default(struct syncer *s, struct str name)
{
    enum sync_id own = sync_kind_of_record(s, STR("storageclasses.storage.k8s.io"));
    bool known = s->tenant.host_class_known;

    if (known && str_eq(s->tenant.host_class, name))
        return;
    if (s->tenant.host_class.n)
        syncer_add(s, SYNC_STORAGE_CLASSES, STR(""), s->tenant.host_class);
    if (name.n)
        syncer_add(s, SYNC_STORAGE_CLASSES, STR(""), name);
    mem_free(s->host_class);
    s->host_class = mem_strdup(name);
    s->tenant.host_class = str_c(s->host_class);
    s->tenant.host_class_known = true;
    if (own != SYNC_NONE)
        syncer_rescan(s, own); /* those of that name go down, or no longer do */
    syncer_rescan(s, SYNC_CLAIMS);
    sync_mirrors_rescan(s->mirrors);
}

bool sync_class_is_default(const cJSON *class)
{
    return str_eqc(json_str(json_get(json_path(class, "metadata.annotations"), ANNOTATION_DEFAULT)),
                   "true");
}

struct newest {
    struct arena *arena;
    struct str name, created;
};

/* As the host's DefaultStorageClass admission picks it: the newest, then the first by name. */
static void on_class(void *ctx, const struct host_object *o)
{
    struct newest *best = ctx;
    struct str created;
    cJSON *tree = NULL;
    int order;

    if (!str_contains(o->bytes, STR(ANNOTATION_DEFAULT)) ||
        json_parse(best->arena, o->bytes, &tree, NULL) || !sync_class_is_default(tree))
        return;
    created = json_str_at(tree, "metadata.creationTimestamp");
    order = best->name.n ? str_cmp(created, best->created) : 1;
    if (order > 0 || (order == 0 && str_cmp(o->name, best->name) < 0)) {
        best->name = o->name;
        best->created = created;
    }
}

static void probe_default(struct syncer *s);

static void on_probe_again(void *ctx)
{
    struct syncer *s = ctx;

    s->probing_class = false;
    if (is_unreadable(s))
        probe_default(s);
}

/* A refusal, by a quota of the host for example: there is no default. */
static void on_claim_judged(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct syncer *s = ctx;
    struct arena *a;
    cJSON *claim = NULL;

    s->probing_class = false;
    if (syncer_is_closing(s) || !is_unreadable(s))
        return;
    if (err && sync_is_uncertain(err)) {
        s->probing_class = true;
        syncer_defer_for(s, on_probe_again, s, PROBE_AGAIN_MS);
        return;
    }
    a = arena_new(0);
    if (!err && json_parse(a, answer->body, &claim, NULL))
        claim = NULL;
    set_default(s, json_str_at(claim, "spec.storageClassName"));
    arena_free(a);
}

/* Like any claim of ours, under a name that no virtual object has: no namespace is named "_". */
static cJSON *classless_claim(struct syncer *s, struct arena *a)
{
    static const char spec[] = "{\"accessModes\":[\"ReadWriteOnce\"],"
                               "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}}";
    cJSON *claim = json_new_object(a), *virtual_ = json_new_object(a), *meta, *tree = NULL;
    char name[64];

    translate_name(&s->tenant, STR("_"), STR("verdict"), name);
    meta = json_ensure_object(a, virtual_, "metadata");
    json_set_str(a, meta, "name", STR("verdict"));
    json_set_str(a, meta, "namespace", STR("default"));
    json_set_str(a, meta, "uid", s->tenant.cluster_uid);
    json_set_str(a, claim, "apiVersion", STR("v1"));
    json_set_str(a, claim, "kind", STR("PersistentVolumeClaim"));
    json_set(a, claim, "metadata", translate_metadata(a, &s->tenant, virtual_, str_c(name)));
    if (!json_parse(a, str_c(spec), &tree, NULL))
        json_set(a, claim, "spec", tree);
    return claim;
}

/* A dry run in our own namespace: the host's admission sets the default class in a claim without
 * one, and stores nothing. */
static void probe_default(struct syncer *s)
{
    struct host_request q = {.method = "POST", .dry_run = true};
    struct arena *a;

    if (syncer_is_closing(s) || s->probing_class)
        return;
    s->probing_class = true;
    a = arena_new(0);
    q.path = sync_path(a, s, SYNC_CLAIMS, STR(""), "?dryRun=All");
    q.body = json_text(a, classless_claim(s, a));
    host_send(s->host, &q, on_claim_judged, s);
    arena_free(a);
}

void sync_classes_look(struct syncer *s)
{
    struct reflector *classes = s->watches[SYNC_STORAGE_CLASSES].reflector;
    struct newest best = {0};

    if (reflector_synced(classes)) {
        best.arena = arena_new(0);
        reflector_each(classes, on_class, &best);
        set_default(s, best.name);
        arena_free(best.arena);
        return;
    }
    if (!is_unreadable(s))
        return;
    for (size_t i = 0; i < s->config->storage_classes.n; i++)
        syncer_add(s, SYNC_STORAGE_CLASSES, STR(""), s->config->storage_classes.items[i]);
    if (!s->config->storage_classes.n)
        probe_default(s);
}

/* --- priority classes: named after the tier, with the value of its host class --- */

static cJSON *wanted_priority(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    struct str name = STR_NULL;
    const struct host_object *o;
    cJSON *host = NULL;

    for (size_t i = 0; i < s->config->n_bindings && !name.n; i++)
        name = json_str(json_get_str(s->config->bindings[i].pool->priority_tiers, run->name));
    o = name.n ? reflector_get(s->watches[SYNC_PRIORITY_CLASSES].reflector, name) : NULL;
    if (!o || json_parse(run->arena, o->bytes, &host, NULL))
        return NULL;
    return new_class(run, host, PRIORITY_FIELDS);
}

bool sync_classes_host_priority(void *ctx, struct str class, int64_t *ret)
{
    struct syncer *s = ctx;
    const struct host_object *o = reflector_get(s->watches[SYNC_PRIORITY_CLASSES].reflector, class);
    struct arena *a = arena_new(0);
    cJSON *tree = NULL;
    bool known =
        o && !json_parse(a, o->bytes, &tree, NULL) && json_i64(json_get(tree, "value"), ret);

    arena_free(a);
    return known;
}

/* Adds every tier that maps to the host class. */
void sync_classes_priority_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                                   const struct host_object *before)
{
    struct str name = now ? now->name : before->name;

    for (size_t i = 0; i < s->config->n_bindings; i++) {
        json_each(tier, s->config->bindings[i].pool->priority_tiers)
        {
            if (str_eq(json_str(tier), name))
                syncer_add(s, id, STR(""), str_c(tier->string));
        }
    }
}

/* --- both --- */

/* Those of sync.fromHost are mirror.c's. */
static bool is_from_host(const cJSON *object)
{
    const cJSON *mark = json_get(json_path(object, "metadata.annotations"), ANNOTATION_FROM_HOST);

    return mark && !str_eqc(json_str(mark), FROM_HOST_SYNC);
}

/* The virtual object with the fields we own set as wanted; equal to it when nothing differs. */
static cJSON *merged(struct sync_run *run, const cJSON *object)
{
    struct arena *a = run->arena;
    cJSON *copy = json_copy(a, run->virtual_);
    cJSON *notes = json_ensure_path(a, copy, "metadata.annotations");

    json_remove(notes, ANNOTATION_DEFAULT);
    json_each(note, json_path(object, "metadata.annotations"))
        json_set(a, notes, note->string, json_copy(a, note));
    json_each(field, object)
    {
        if (strcmp(field->string, "metadata") != 0)
            json_set(a, copy, field->string, json_copy(a, field));
    }
    return copy;
}

/* These fields are immutable. */
static bool must_recreate(const cJSON *now, const cJSON *object)
{
    static const char *const fixed[] = {"provisioner", "reclaimPolicy", "volumeBindingMode",
                                        "value", "preemptionPolicy"};

    for (size_t i = 0; i < COUNT(fixed); i++) {
        const cJSON *want = json_get(object, fixed[i]);

        if (want && !json_equal(want, json_get(now, fixed[i])))
            return true;
    }
    return false;
}

static void reconcile_class(struct reconcile *r, enum sync_id id,
                            cJSON *(*wanted)(struct sync_run *run))
{
    struct syncer *s = syncer_of(r);
    const struct resource *res = syncer_resource(s, s->kinds[id].group, s->kinds[id].plural);
    struct sync_run run;
    cJSON *object;

    if (!sync_run_init(&run, r, id) || (!reflector_synced(s->watches[id].reflector) &&
                                        (id != SYNC_STORAGE_CLASSES || !is_unreadable(s))))
        return;
    object = wanted(&run);
    if (!object) {
        if (run.virtual_ && is_from_host(run.virtual_))
            reconcile_delete(r, res, STR(""), run.name, run.uid, NULL);
    } else if (!run.virtual_) {
        reconcile_create(r, res, STR(""), object);
    } else if (is_from_host(run.virtual_)) {
        cJSON *copy = merged(&run, object);

        if (must_recreate(run.virtual_, object))
            reconcile_delete(r, res, STR(""), run.name, run.uid, NULL);
        else if (!json_equal(copy, run.virtual_))
            reconcile_update(r, res, copy);
    }
}

static void reconcile_storage(struct reconcile *r)
{
    reconcile_class(r, SYNC_STORAGE_CLASSES, wanted_storage);
}

static void reconcile_priority(struct reconcile *r)
{
    reconcile_class(r, SYNC_PRIORITY_CLASSES, wanted_priority);
}

static const struct controller_source STORAGE_SOURCES[] = {
    {"storage.k8s.io", "storageclasses", controller_map_self}, {0}};
static const struct controller_source PRIORITY_SOURCES[] = {
    {"scheduling.k8s.io", "priorityclasses", controller_map_self}, {0}};

const struct controller_def SYNC_STORAGE_CLASS_CONTROLLER = {.name = "sublet-storageclasses",
                                                             .sources = STORAGE_SOURCES,
                                                             .reconcile = reconcile_storage,
                                                             .workers = 1};
const struct controller_def SYNC_PRIORITY_CLASS_CONTROLLER = {.name = "sublet-priorityclasses",
                                                              .sources = PRIORITY_SOURCES,
                                                              .reconcile = reconcile_priority,
                                                              .workers = 1};
