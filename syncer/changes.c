/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of each synced kind: its controller, and the mapping from a change of a host object
 * to keys of virtual ones. They are part of the table of kinds, so that no file below names a
 * kind's functions. */
#include "engine.h"

#include <sublet/vgpu.h>

#include "objects/down.h"

extern const struct controller_def SYNC_POD_CONTROLLER, SYNC_CONFIG_MAP_CONTROLLER,
    SYNC_SECRET_CONTROLLER, SYNC_SERVICE_CONTROLLER, SYNC_CLAIM_CONTROLLER, SYNC_NODE_CONTROLLER,
    SYNC_STORAGE_CLASS_CONTROLLER, SYNC_PRIORITY_CLASS_CONTROLLER;

/* --- reducing host objects to what is cached --- */

static void drop_data(struct arena *a, cJSON *object)
{
    (void)a;
    json_remove(object, "data");
    json_remove(object, "binaryData");
    json_remove(object, "stringData");
}

/* status.images alone is half of a Node. */
static void reduce_node(struct arena *a, cJSON *node)
{
    cJSON *status = json_get(node, "status"), *metadata = json_get(node, "metadata");

    vgpu_note_node(a, node);
    json_remove(status, "images");
    json_remove(status, "volumesInUse");
    json_remove(status, "volumesAttached");
    json_remove(status, "runtimeHandlers");
    json_remove(metadata, "annotations");
    json_each(condition, json_get(status, "conditions"))
        json_remove(condition, "lastHeartbeatTime");
}

static void reduce_class(struct arena *a, cJSON *class)
{
    (void)a;
    json_remove(class, "parameters");
    json_remove(class, "mountOptions");
}

/* --- from a host object to a key --- */

static cJSON *tree_of(struct arena *a, const struct host_object *o)
{
    cJSON *tree = NULL;

    return o && !json_parse(a, o->bytes, &tree, NULL) ? tree : NULL;
}

/* tree: of now, or of before where now is NULL. */
static void add_owner_of(struct syncer *s, enum sync_id id, const cJSON *tree,
                         const struct host_object *now, const struct host_object *before)
{
    struct str ns, name, uid;

    if (!translate_owner(&s->tenant, tree, &ns, &name, &uid))
        return;
    if (now) {
        if (!before || !str_eq(now->uid, before->uid) || sync_quarantine_has(s, id, now->name) ||
            !sync_life_owns(s, tree))
            sync_quarantine_judge(s, id, tree);
    } else {
        /* An object that the first list of a life lacks was not deleted in this life. */
        if (reflector_synced(s->watches[id].reflector) && sync_life_has_our_epoch(s, tree))
            sync_departed_note(s, id, ns, name, uid, tree);
        sync_quarantine_end(s, id, before->name);
    }
    syncer_add(s, id, ns, name);
}

static void add_owner(struct syncer *s, enum sync_id id, const struct host_object *now,
                      const struct host_object *before)
{
    struct arena *a = arena_new(0);

    add_owner_of(s, id, tree_of(a, now ? now : before), now, before);
    arena_free(a);
}

/* It stays; the tenant learns of it. */
static void report_resize(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *is,
                          const cJSON *was)
{
    struct str ns, name, uid, text;
    const cJSON *object;

    if (!is || !was || json_equal(json_get(is, "spec"), json_get(was, "spec")) ||
        !str_eq(sync_uid(is), sync_uid(was)) || !translate_owner(&s->tenant, is, &ns, &name, &uid))
        return;
    object = syncer_virtual(s, a, id, ns, name);
    if (!object || !str_eq(sync_uid(object), uid))
        return;
    text = translate_resized_by_host(a, was, is, object);
    if (text.n)
        vapi_event(s->api, object, "Normal", "ResizedByHost",
                   arena_printf(a, "the host cluster changed %.*s", STR_F(text)),
                   s->kinds[id].handlers->controller->name);
}

static void pod_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                        const struct host_object *before)
{
    struct arena *a = arena_new(0);
    const cJSON *is = tree_of(a, now), *was = tree_of(a, before);

    sync_nodes_pod_changed(s->nodes, is, was);
    if (!now) {
        sync_last_status_note(s, before, was);
        sync_gangs_host_pod_gone(s->gangs, was);
    }
    report_resize(s, a, id, is, was);
    sync_reclaims_look(s->reclaims, false);
    add_owner_of(s, id, now ? is : was, now, before);
    arena_free(a);
    sync_events_object_changed(s, now, before);
}

static void config_map_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                               const struct host_object *before)
{
    add_owner(s, id, now, before);
}

/* Secrets with the tokens of a pod lead to the pod's key. */
static void secret_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                           const struct host_object *before)
{
    const struct host_object *o = now ? now : before;
    struct arena *a = arena_new(0);
    const cJSON *tree = tree_of(a, o);
    struct str ns, name, uid;
    char token_name[64];

    if (translate_owner(&s->tenant, tree, &ns, &name, &uid)) {
        translate_token_secret_name(&s->tenant, ns, name, token_name);
        if (!now)
            sync_quarantine_end(s, id, o->name);
        else if (reflector_synced(s->watches[id].reflector))
            sync_quarantine_judge(s, id, tree); /* the first list is judged when it is complete */
        syncer_add(s, str_eqc(o->name, token_name) ? SYNC_PODS : id, ns, name);
    }
    arena_free(a);
}

static void service_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                            const struct host_object *before)
{
    sync_aliases_changed(s->aliases, now ? now->name : before->name);
    add_owner(s, id, now, before);
    sync_relabel_service_changed(s, now, before);
    sync_events_object_changed(s, now, before);
}

static void claim_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                          const struct host_object *before)
{
    struct arena *a = arena_new(0);

    report_resize(s, a, id, tree_of(a, now), tree_of(a, before));
    arena_free(a);
    add_owner(s, id, now, before);
    sync_events_object_changed(s, now, before);
}

/* Of a kind that the configuration enables. */
static void configured_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                               const struct host_object *before)
{
    add_owner(s, id, now, before);
    sync_events_object_changed(s, now, before);
}

static void node_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                         const struct host_object *before)
{
    syncer_add(s, id, STR(""), now ? now->name : before->name);
    sync_nodes_host_changed(s->nodes, now, before);
}

static void quota_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                          const struct host_object *before)
{
    (void)id;
    (void)now;
    (void)before;
    sync_nodes_recheck(s->nodes);
}

static void storage_class_changed(struct syncer *s, enum sync_id id, const struct host_object *now,
                                  const struct host_object *before)
{
    syncer_add(s, id, STR(""), now ? now->name : before->name);
    sync_classes_look(s);
}

static bool pod_refs(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *pod,
                     translate_ref_cb each, void *ctx)
{
    (void)s;
    (void)a;
    (void)id;
    translate_pod_refs(pod, each, ctx);
    return true;
}

/* --- both sides compared --- */

static bool wants_pod(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *pod)
{
    (void)s;
    (void)a;
    (void)id;
    return !pod_is_finished(pod) && !translate_pod_gated(pod);
}

static cJSON *pod_difference(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *pod,
                             const cJSON *host)
{
    struct pool_choice choice;
    cJSON *wanted = NULL;
    struct err err;

    (void)id;
    err_init(&err, a);
    if (pod_is_finished(host) || sync_pod_choose(s, a, pod, &choice, &err) ||
        sync_pod_translate(s, a, pod, &choice, false, &wanted, &err))
        return NULL;
    return translate_pod_update(a, host, wanted, sync_pod_is_changed(pod));
}

static bool wants_service(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *service)
{
    struct str ns = json_str_at(service, "metadata.namespace");
    struct str name = json_str_at(service, "metadata.name");

    (void)a;
    (void)id;
    return sync_service_wants_host(service) && !sync_service_is_shown(s, service, ns, name);
}

static cJSON *service_difference(struct syncer *s, struct arena *a, enum sync_id id,
                                 const cJSON *service, const cJSON *host)
{
    cJSON *wanted = NULL;
    struct err err;

    (void)id;
    err_init(&err, a);
    if (translate_service(a, &s->tenant, service, &wanted, &err) || !wanted)
        return NULL;
    return translate_service_update(a, host, wanted);
}

static bool wants_claim(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *claim)
{
    (void)id;
    return !sync_claim_is_own(s, a, claim);
}

static cJSON *claim_difference(struct syncer *s, struct arena *a, enum sync_id id,
                               const cJSON *claim, const cJSON *host)
{
    cJSON *wanted = NULL;
    struct err err;

    (void)id;
    err_init(&err, a);
    if (translate_pvc(a, &s->tenant, claim, host, &wanted, &err))
        return NULL;
    return translate_pvc_update(a, host, wanted);
}

static const struct sync_handlers FIXED[N_SYNC_FIXED] = {
    [SYNC_PODS] = {&SYNC_POD_CONTROLLER, .changed = pod_changed, .fits_host = sync_pod_fits_host,
                   .refs = pod_refs, .wants_host = wants_pod, .difference = pod_difference},
    [SYNC_CONFIG_MAPS] = {&SYNC_CONFIG_MAP_CONTROLLER, drop_data, config_map_changed,
                          .wants_host = sync_data_is_wanted, .difference = sync_data_difference},
    [SYNC_SECRETS] = {&SYNC_SECRET_CONTROLLER, drop_data, secret_changed,
                      .wants_host = sync_data_is_wanted, .difference = sync_data_difference},
    [SYNC_SERVICES] = {&SYNC_SERVICE_CONTROLLER, .changed = service_changed,
                       .wants_host = wants_service, .difference = service_difference},
    [SYNC_CLAIMS] = {&SYNC_CLAIM_CONTROLLER, .changed = claim_changed, .wants_host = wants_claim,
                     .difference = claim_difference},
    [SYNC_NODES] = {&SYNC_NODE_CONTROLLER, reduce_node, node_changed},
    [SYNC_STORAGE_CLASSES] = {&SYNC_STORAGE_CLASS_CONTROLLER, reduce_class, storage_class_changed},
    [SYNC_PRIORITY_CLASSES] = {&SYNC_PRIORITY_CLASS_CONTROLLER,
                               .changed = sync_classes_priority_changed},
    [SYNC_EVENTS] = {.changed = sync_events_changed},
    [SYNC_QUOTAS] = {.changed = quota_changed},
};

void syncer_make_kinds(struct syncer *s)
{
    sync_kinds_init(s, FIXED);
    sync_down_add_kinds(s, configured_changed);
}
