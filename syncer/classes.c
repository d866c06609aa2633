/* SPDX-License-Identifier: Apache-2.0 */
/* Classes that come from the host, read-only: the StorageClasses a claim may name, and one
 * PriorityClass per tier that the tenant's pools map. A table says what of each is shown. Must
 * never show parameters: they are the host admin's. */
#include "engine.h"

#include <string.h>

#define ANNOTATION_FROM_HOST "sublet.dev/from-host"
#define ANNOTATION_DEFAULT   "storageclass.kubernetes.io/is-default-class"

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

static bool is_default(const struct sync_run *run)
{
    struct str_list allowed = run->syncer->config->storage_classes;
    const cJSON *notes = json_path(run->host, "metadata.annotations");

    if (allowed.n)
        return str_eq(allowed.items[0], run->name);
    return str_eqc(json_str(json_get(notes, ANNOTATION_DEFAULT)), "true");
}

static cJSON *wanted_storage(struct sync_run *run)
{
    struct str_list allowed = run->syncer->config->storage_classes;
    cJSON *object;

    if (!run->host || (allowed.n && !str_list_has(allowed, run->name)))
        return NULL;
    object = new_class(run, run->host, STORAGE_FIELDS);
    if (is_default(run))
        json_set_str(run->arena, json_path(object, "metadata.annotations"), ANNOTATION_DEFAULT,
                     STR("true"));
    return object;
}

/* --- priority classes: named by tier, valued by the host class it stands for --- */

static struct str host_class_of(const struct syncer *s, struct str tier)
{
    for (size_t i = 0; i < s->config->n_bindings; i++) {
        struct str name = json_str(json_get_str(s->config->bindings[i].pool->priority_tiers, tier));

        if (name.n)
            return name;
    }
    return STR_NULL;
}

static cJSON *wanted_priority(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    struct str name = host_class_of(s, run->name);
    const struct host_object *o =
        name.n ? reflector_get(s->watches[SYNC_PRIORITY_CLASSES].reflector, name) : NULL;
    cJSON *host = NULL;

    if (!o || json_parse(run->arena, o->bytes, &host, NULL))
        return NULL;
    return new_class(run, host, PRIORITY_FIELDS);
}

/* A host class changed: every tier that stands for it is looked at. */
void classes_priority_changed(struct syncer *s, const struct host_object *now,
                              const struct host_object *before)
{
    struct str name = now ? now->name : before->name;

    for (size_t i = 0; i < s->config->n_bindings; i++) {
        json_each(tier, s->config->bindings[i].pool->priority_tiers)
        {
            if (str_eq(json_str(tier), name))
                syncer_add(s, SYNC_PRIORITY_CLASSES, STR(""), str_c(tier->string));
        }
    }
}

/* --- both --- */

static bool is_from_host(const cJSON *object)
{
    return json_get(json_path(object, "metadata.annotations"), ANNOTATION_FROM_HOST) != NULL;
}

/* The virtual object with what we own set anew; equal to it when nothing differs. */
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

/* Provisioner and value cannot be changed in place. */
static bool must_be_new(const cJSON *now, const cJSON *object)
{
    static const char *const fixed[] = {"provisioner", "reclaimPolicy", "volumeBindingMode",
                                        "value", "preemptionPolicy"};

    for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
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
    const struct resource *res = syncer_resource(s, SYNC_KINDS[id].group, SYNC_KINDS[id].plural);
    struct sync_run run;
    cJSON *object;

    if (!sync_run_init(&run, r, id) || !reflector_synced(s->watches[id].reflector))
        return;
    object = wanted(&run);
    if (!object) {
        if (run.virtual_ && is_from_host(run.virtual_))
            reconcile_delete(r, res, STR(""), run.name, run.uid, NULL);
    } else if (!run.virtual_) {
        reconcile_create(r, res, STR(""), object);
    } else if (is_from_host(run.virtual_)) {
        cJSON *copy = merged(&run, object);

        if (must_be_new(run.virtual_, object))
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

const struct controller_def STORAGE_CLASS_SYNCER = {.name = "sublet-storageclasses",
                                                    .sources = STORAGE_SOURCES,
                                                    .reconcile = reconcile_storage,
                                                    .workers = 1};
const struct controller_def PRIORITY_CLASS_SYNCER = {.name = "sublet-priorityclasses",
                                                     .sources = PRIORITY_SOURCES,
                                                     .reconcile = reconcile_priority,
                                                     .workers = 1};
