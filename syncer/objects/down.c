/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of configured kinds, down to the host: created after their record, kept as they are
 * wanted, their status copied up, deleted by the record's proof. A host object that is deleted
 * there is created again. One controller serves all kinds: what differs is in the rules of
 * translate. Must never let an object go down that admission would refuse now. */
#include "core/life.h"
#include "objects/device_claims.h"
#include "objects/down.h"
#include "objects/mirror.h"
#include "objects/objects.h"
#include "objects/volumes.h"

#include <string.h>

#include <sublet/store_quarantine.h>
#include <sublet/translate_volume.h>

#define MOST_SEEN   32
#define MOST_DENIED 8 /* Events of one write */

/* Kinds whose fields are the same in several versions, of which hosts serve some; the newest first.
 * Gateway API 1.5 has TLSRoute in v1, 1.4 has it in v1alpha3, and earlier ones in v1alpha2; 1.4 has
 * BackendTLSPolicy in v1, and earlier ones in v1alpha3. */
static const struct {
    enum sync_down kind;
    const char *versions[3];
} SERVED[] = {{DOWN_TLS_ROUTES, {"v1", "v1alpha3", "v1alpha2"}},
              {DOWN_BACKEND_TLS, {"v1", "v1alpha3"}}};

enum { MOST_VERSIONS = 3 };

struct sync_rules {
    const struct kind_rules *kind;
    /* Where it may be on the host, and where it was found last. */
    struct {
        const char *root;
        const struct kind_rules *kind;
    } versions[MOST_VERSIONS];
    size_t n_versions, version;
    struct controller_def controller;
    struct controller_source sources[5];
    struct sync_handlers handlers;
    bool again;   /* a rescan is deferred */
    bool waits;   /* a claim is not charged, its pool is over its limit, or classes are at theirs */
    bool awaited; /* PersistentVolumeClaims wait for a StorageClass, or for a volume */
};

/* --- translation --- */

/* A look-up of one translation: many references lead to the same namespace, or the same Gateway. */
struct looked_up {
    const char *plural;
    struct str ns, name; /* name.p NULL: the list of a namespace */
    const cJSON *found;
};

/* What one translation reads, and what it found not to be permitted. */
struct related {
    struct looked_up seen[MOST_SEEN];
    size_t n_seen;
    struct syncer *syncer;
    struct translate_related calls;
    struct translate_tenant tenant;
    struct arena *arena;
    cJSON *denied; /* sentences; NULL: not wanted */
    bool hidden;   /* what it did not find may be there, and hidden by damage */
};

struct gather {
    struct arena *arena;
    cJSON *list;
};

static bool on_object(void *ctx, const struct store_object *o)
{
    struct gather *gather = ctx;

    json_append(gather->list, vapi_tree(gather->arena, o));
    return true;
}

static const struct resource *find(const struct syncer *s, const char *group, const char *plural)
{
    return registry_find_group_resource(vapi_registry(s->api), str_c(group), str_c(plural));
}

/* A resource that is not served may have a definition that is hidden. */
static bool is_undefined(struct syncer *s, const char *group, const char *plural)
{
    const struct resource *crds = find(s, "apiextensions.k8s.io", "customresourcedefinitions");
    struct arena *a = arena_new(0);
    bool absent =
        store_is_absent(s->store, crds->storage, STR(""), arena_printf(a, "%s.%s", plural, group));

    arena_free(a);
    return absent;
}

static bool is_absent(struct syncer *s, const char *group, const char *plural, struct str ns,
                      struct str name)
{
    const struct resource *r = find(s, group, plural);

    return r ? store_is_absent(s->store, r->storage, ns, name) : is_undefined(s, group, plural);
}

static bool is_whole(struct syncer *s, const char *group, const char *plural, struct str ns)
{
    const struct resource *r = find(s, group, plural);

    return r ? store_is_whole(s->store, r->storage, ns) : is_undefined(s, group, plural);
}

/* Its endpoints are the tenant's to write, and its host Service has none of its own. */
static bool is_bare_service(void *ctx, struct str ns, struct str name)
{
    struct related *related = ctx;
    struct syncer *s = related->syncer;
    struct arena *a = arena_new(0);
    const cJSON *service = syncer_virtual(s, a, SYNC_SERVICES, ns, name);
    bool bare = sync_service_wants_host(service) &&
                !json_count(json_path(service, "spec.selector")) &&
                !sync_service_is_shown(s, service, ns, name);

    related->hidden |= !service && !is_absent(s, "", "services", ns, name);
    arena_free(a);
    return bare;
}

static const struct looked_up *seen(const struct related *r, const char *plural, struct str ns,
                                    struct str name)
{
    for (size_t i = 0; i < r->n_seen; i++) {
        const struct looked_up *one = &r->seen[i];

        if (!strcmp(one->plural, plural) && str_eq(one->ns, ns) && !one->name.p == !name.p &&
            str_eq(one->name, name))
            return one;
    }
    return NULL;
}

static const cJSON *remember(struct related *r, const char *plural, struct str ns, struct str name,
                             const cJSON *found)
{
    if (r->n_seen < MOST_SEEN)
        r->seen[r->n_seen++] = (struct looked_up){plural, ns, name, found};
    return found;
}

static const cJSON *find_object(void *ctx, struct arena *a, const char *group, const char *plural,
                                struct str ns, struct str name)
{
    struct related *related = ctx;
    struct syncer *s = related->syncer;
    const struct looked_up *known = seen(related, plural, ns, name);
    const struct resource *r = find(s, group, plural);
    const struct store_object *o;

    if (known)
        return known->found;
    o = r ? store_get(s->store, r->storage, ns, name) : NULL;
    related->hidden |= !o && !is_absent(s, group, plural, ns, name);
    return remember(related, plural, ns, name, o ? vapi_tree(a, o) : NULL);
}

static const cJSON *list_objects(void *ctx, struct arena *a, const char *group, const char *plural,
                                 struct str ns)
{
    struct related *related = ctx;
    struct syncer *s = related->syncer;
    const struct looked_up *known = seen(related, plural, ns, STR_NULL);
    const struct resource *r = find(s, group, plural);
    struct gather g = {a, json_new_array(a)};
    struct err err;

    if (known)
        return known->found;
    err_init(&err, a);
    if (r && store_scan(s->store, r->storage, ns, STR_NULL, STR_NULL, 0, on_object, &g, &err))
        return NULL; /* what cannot be read permits nothing */
    related->hidden |= !is_whole(s, group, plural, ns);
    return remember(related, plural, ns, STR_NULL, g.list);
}

static void on_denied(void *ctx, struct str why)
{
    struct related *related = ctx;

    if (json_count(related->denied) < MOST_DENIED)
        json_append(related->denied, json_new_string(related->arena, why));
}

/* denied: where the sentences are put; or NULL. */
static void related_init(struct related *related, struct syncer *s, struct arena *a, cJSON *denied)
{
    *related = (struct related){.syncer = s,
                                .arena = a,
                                .calls = {.ctx = related,
                                          .bare_service = is_bare_service,
                                          .object = find_object,
                                          .list = list_objects,
                                          .denied = denied ? on_denied : NULL},
                                .tenant = s->tenant,
                                .denied = denied};
    related->tenant.related = &related->calls;
}

/* What of an object that is stored already does not go down, and why. */
struct reasons {
    struct err left_out;
    cJSON *denied; /* sentences */
    bool hidden;   /* perhaps because of damage: see struct related */
};

static void reasons_init(struct reasons *r, struct arena *a)
{
    err_init(&r->left_out, a);
    r->denied = json_new_array(a);
    r->hidden = false;
}

/* ResourceClaims are charged to a pool. */
static bool is_claims(const struct kind_rules *rules)
{
    return rules == translate_kind_rules(DOWN_RESOURCE_CLAIMS);
}

/* PersistentVolumes are deleted on the host with the tenant's alone. */
static bool is_volumes(const struct kind_rules *rules)
{
    return rules == translate_kind_rules(DOWN_VOLUMES);
}

/* reasons NULL: at admission. */
static int translate(struct syncer *s, struct arena *a, const struct kind_rules *rules,
                     const cJSON *object, struct reasons *reasons, cJSON **ret, struct err *err)
{
    struct related related;
    int failed;

    if (rules == translate_kind_rules(DOWN_GATEWAYS) &&
        sync_mirror_is_copy(s, MIRROR_GATEWAYS, object)) {
        *ret = NULL; /* it is the host's already */
        return 0;
    }
    related_init(&related, s, a, reasons ? reasons->denied : NULL);
    if (translate_kind_reads_namespaces(rules)) {
        related.tenant.namespaces = syncer_namespaces(s, a, err);
        if (!related.tenant.namespaces)
            return -1;
    }
    failed = translate_kind_narrowed(a, &related.tenant, rules, object, ret,
                                     reasons ? &reasons->left_out : NULL, err);
    if (reasons)
        reasons->hidden = related.hidden;
    if (!failed && *ret && is_claims(rules))
        sync_device_claim_label(s, a, object, *ret);
    return failed;
}

static const struct kind_rules *rules_of(const struct sync_run *run)
{
    return run->syncer->kinds[run->id].rules->kind;
}

/* --- one key --- */

static void rescan_later(struct sync_watch *w);

/* Those that wait for another class wait again. */
static void wake_claims(struct sync_run *run)
{
    struct sync_rules *rules = run->syncer->kinds[run->id].rules;

    if (!rules->awaited)
        return;
    rules->awaited = false;
    syncer_rescan(run->syncer, SYNC_CLAIMS);
}

/* It need not be on the host. */
static void finish_gone(struct sync_run *run)
{
    struct sync_rules *rules = run->syncer->kinds[run->id].rules;
    struct mapping before = run->mapping;

    wake_claims(run);
    if (!sync_finish_gone(run, -1) || !before.exists)
        return;
    if (is_claims(rules->kind))
        sync_device_claim_release(run->syncer, &before);
    if (rules->waits)
        rescan_later(&run->syncer->watches[run->id]);
    rules->waits = false;
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    if (is_volumes(rules_of(run)))
        return sync_volume_lacks(run, wanted);
    return translate_kind_update(run->arena, rules_of(run), run->host, wanted);
}

static void status_up(struct sync_run *run)
{
    struct syncer *s = run->syncer;
    const struct sync_kind *k = &s->kinds[run->id];
    const struct resource *r =
        registry_find_group_resource(vapi_registry(s->api), str_c(k->group), str_c(k->plural));
    struct related related;
    cJSON *status;

    related_init(&related, s, run->arena, NULL);
    status = translate_kind_status_up(run->arena, &related.tenant, rules_of(run), run->host,
                                      run->virtual_);

    if (is_claims(rules_of(run)))
        status = sync_device_claim_status(run, status);
    if (is_claims(rules_of(run)) || translate_kind_goes_with_pods(rules_of(run)))
        sync_refs_wake(s->refs, run->id, run->ns, run->name);
    if (k->rules->awaited && sync_down_is_there(s, run->arena, run->id, run->virtual_))
        wake_claims(run);
    /* First: what the tenant's schema prunes of a status stays different for ever. */
    if (sync_keys_up(run) || !status || !r)
        return;
    json_set(run->arena, run->virtual_, "status", status);
    if (resource_sub(r, STR("status")))
        reconcile_update_status(run->reconcile, r, run->virtual_);
    else
        reconcile_update(run->reconcile, r, run->virtual_);
}

/* What does not go down leaves the host; of a volume, only one that the tenant deleted. So does a
 * claim that is there, which holds its devices: no pool may be bound that grants it, or it may not
 * be known yet what is bound. */
static void unwanted(struct sync_run *run)
{
    bool stays = is_volumes(rules_of(run)) || (is_claims(rules_of(run)) && run->host);

    if (!stays)
        finish_gone(run);
    else if (run->host && sync_settle_owner(run))
        return;
    else if (is_volumes(rules_of(run)))
        sync_volume_stays(run);
    else if (!object_is_terminating(run->host))
        status_up(run);
}

/* Stored before the configuration changed, or by a version that did not check. What is on the host
 * is removed; a fence that cannot be narrowed stays, since its absence would permit more. */
static void refused(struct sync_run *run, const struct err *err)
{
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError", "%.*s",
                    STR_F(err->message));
    if (!translate_kind_is_fence(rules_of(run)))
        unwanted(run);
}

static void report_denied(struct sync_run *run, const cJSON *denied)
{
    json_each(why, denied) reconcile_event(run->reconcile, run->virtual_, "Warning",
                                           "RefNotPermitted", "%.*s", STR_F(json_str(why)));
}

/* A claim that is not charged does not go down; its pool is known once it is. */
static bool waits_for_charge(struct sync_run *run, cJSON *wanted)
{
    struct sync_rules *rules = run->syncer->kinds[run->id].rules;

    if (!is_claims(rules->kind))
        return false;
    if (!sync_device_claim_admit(run)) {
        rules->waits = true;
        return true;
    }
    run->charged = true;
    sync_device_claim_label(run->syncer, run->arena, run->virtual_, wanted);
    return false;
}

/* Those without a namespace have none there whose quota could bound them. */
static int check_room(struct syncer *s, const struct kind_rules *kind, struct str name,
                      struct err *err)
{
    const struct config_to_host *to = s->config->to_host;
    const struct {
        enum sync_down kind;
        const char *record;
        int64_t most;
    } bounded[] = {{DOWN_STORAGE_CLASSES, "storageclasses.storage.k8s.io", to->max_storage_classes},
                   {DOWN_VOLUMES, "persistentvolumes", to->max_volumes}};

    for (size_t i = 0; i < COUNT(bounded); i++) {
        const struct config_down_kind *k = &CONFIG_DOWN_KINDS[bounded[i].kind];
        enum sync_id id = sync_kind_of_record(s, str_c(bounded[i].record));
        size_t used;

        if (kind != translate_kind_rules(bounded[i].kind) || id == SYNC_NONE)
            continue;
        used = sync_mapping_count(s, id, STR(""), name) + sync_quarantine_count(s, id);
        if (used >= (size_t)bounded[i].most)
            return err_forbidden(err, str_c(k->group), str_c(k->plural), name,
                                 "exceeded quota: sync.toHost.%s.max, requested: %s=1, used: "
                                 "%s=%zu, limited: %s=%lld",
                                 k->key, k->plural, k->plural, used, k->plural,
                                 (long long)bounded[i].most);
    }
    return 0;
}

bool sync_down_waits_for_room(struct sync_run *run)
{
    struct err err;

    err_init(&err, run->arena);
    if (run->mapping.exists || !check_room(run->syncer, rules_of(run), run->name, &err))
        return false;
    run->syncer->kinds[run->id].rules->waits = true;
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError", "%.*s",
                    STR_F(err.message));
    return true;
}

/* Where an object that the translation reads is hidden, what is on the host stays as it is. */
static void present(struct sync_run *run, cJSON *wanted, const cJSON *denied)
{
    cJSON *body = NULL;

    if (sync_settle_owner(run))
        return;
    if (!run->host) {
        if (object_is_terminating(run->virtual_) || waits_for_charge(run, wanted) ||
            sync_down_waits_for_room(run))
            return;
        report_denied(run, denied);
        if (is_volumes(rules_of(run)))
            sync_volume_create(run, wanted);
        else
            sync_create(run, wanted);
        return;
    }
    if (object_is_terminating(run->host))
        return; /* created again once it is deleted */
    if (is_claims(rules_of(run)) && !sync_device_claim_admit(run)) {
        status_up(run);
        return;
    }
    if (!reconcile_spares(run->reconcile))
        body = lacks(run, wanted);
    if (body && sync_patch(run, &(struct sync_change){body, PATCH_MERGE, "", wanted, lacks, NULL}))
        report_denied(run, denied);
    else
        status_up(run);
}

/* With the virtual object. */
static void translated(struct sync_run *run)
{
    struct reasons reasons;
    struct err err;
    cJSON *wanted;
    int failed;

    err_init(&err, run->arena);
    reasons_init(&reasons, run->arena);
    failed =
        translate(run->syncer, run->arena, rules_of(run), run->virtual_, &reasons, &wanted, &err);
    if (reasons.hidden)
        reconcile_spare(run->reconcile);
    if (failed)
        refused(run, &err);
    else if (!wanted)
        unwanted(run);
    else
        present(run, wanted, reasons.denied);
    if (reasons.left_out.kind)
        reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError",
                        "left out on the host: %.*s", STR_F(reasons.left_out.message));
}

/* No pod uses it. The record proves that the host's object is ours; a pod hidden by damage may
 * still use it. */
static bool is_unused(struct sync_run *run)
{
    struct refs *refs = run->syncer->refs;

    if (!translate_kind_goes_with_pods(rules_of(run)) ||
        sync_refs_wanted(refs, run->id, run->ns, run->name))
        return false;
    if (run->virtual_ && run->mapping.exists && !sync_refs_are_whole(refs, run->ns))
        reconcile_spare(run->reconcile);
    return true;
}

static void reconcile_down(struct reconcile *r)
{
    struct syncer *s = syncer_of(r);
    enum sync_id id = sync_id_of(r);
    enum sync_id also = is_volumes(s->kinds[id].rules->kind) ? SYNC_CLAIMS : id;
    struct sync_run run;
    bool unused;

    if (!sync_run_init(&run, r, id))
        return;
    unused = !run.virtual_ || is_unused(&run);
    if (unused && !run.mapping.exists)
        return;
    if (!syncer_ready(s, id, also, id)) {
        if (run.virtual_ && reflector_refused(s->watches[id].reflector))
            reconcile_event(r, run.virtual_, "Warning", "SyncError",
                            "the host cluster does not have this kind, or does not let Sublet "
                            "watch it");
        return;
    }
    if (!sync_run_init(&run, r, id))
        return;
    if (run.virtual_ && translate_kind_reads_gateways(rules_of(&run)))
        sync_refs_object(s->refs, id, reconcile_key(r),
                         run.virtual_); /* a grant may have changed */
    if (!run.virtual_ || is_unused(&run))
        finish_gone(&run);
    else
        translated(&run);
    if (also == SYNC_CLAIMS)
        wake_claims(&run);
}

/* --- StorageClasses --- */

bool sync_down_has_class(void *ctx, struct str class)
{
    struct syncer *s = ctx;
    enum sync_id id = sync_kind_of_record(s, STR("storageclasses.storage.k8s.io"));
    struct reasons reasons;
    cJSON *object, *wanted = NULL;
    struct arena *a;
    struct err err;
    bool down;

    if (id == SYNC_NONE)
        return false;
    a = arena_new(0);
    err_init(&err, a);
    reasons_init(&reasons, a);
    object = syncer_virtual(s, a, id, STR(""), class);
    down = object && !translate(s, a, s->kinds[id].rules->kind, object, &reasons, &wanted, &err) &&
           wanted;
    arena_free(a);
    return down;
}

bool sync_down_awaits_class(struct syncer *s, struct arena *a, struct str class)
{
    enum sync_id id = sync_kind_of_record(s, STR("storageclasses.storage.k8s.io"));

    if (!class.n || translate_class_offered(&s->tenant, class) || !sync_down_has_class(s, class) ||
        sync_down_is_there(s, a, id, syncer_virtual(s, a, id, STR(""), class)))
        return false;
    s->kinds[id].rules->awaited = true;
    syncer_add(s, id, STR(""), class);
    return true;
}

void sync_down_await(struct syncer *s, enum sync_id id)
{
    s->kinds[id].rules->awaited = true;
}

/* --- events of the virtual cluster --- */

static bool refs_of(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                    translate_ref_cb each, void *ctx)
{
    struct related related;

    related_init(&related, s, a, NULL);
    translate_kind_refs(a, &related.tenant, s->kinds[id].rules->kind, object, each, ctx);
    return !related.hidden;
}

static void map_object(struct controller *c, const struct store_event *e)
{
    const struct sync_watch *w = controller_state(c);
    struct arena *a = arena_new(0);

    sync_refs_object(w->syncer->refs, w->id, key_join(a, e->object->ns, e->object->name),
                     e->type == STORE_DELETED ? NULL : vapi_tree(a, e->object));
    arena_free(a);
    controller_map_self(c, e);
}

static void on_again(void *ctx)
{
    struct sync_watch *w = ctx;

    w->syncer->kinds[w->id].rules->again = false;
    syncer_rescan(w->syncer, w->id);
}

static void rescan_later(struct sync_watch *w)
{
    struct sync_rules *rules = w->syncer->kinds[w->id].rules;

    if (rules->again)
        return;
    rules->again = true;
    syncer_defer(w->syncer, on_again, w);
}

/* Selectors of namespaces went down as names. */
static void map_namespace(struct controller *c, const struct store_event *e)
{
    if (!e->previous || !str_eq(e->previous->labels, e->object->labels))
        rescan_later(controller_state(c));
}

static bool has_selector(const struct store_object *service)
{
    return str_contains(service->bytes, STR("\"selector\":{\""));
}

/* Which EndpointSlices go down depends on their Services. */
static void map_service(struct controller *c, const struct store_event *e)
{
    if (!has_selector(e->object) || (e->previous && !has_selector(e->previous)))
        rescan_later(controller_state(c));
}

/* What of a Gateway decides whose routes it takes is in its spec; its status changes often. */
static void map_gateway(struct controller *c, const struct store_event *e)
{
    struct arena *a = arena_new(0);

    if (e->type == STORE_DELETED || !e->previous ||
        !json_equal(json_get(vapi_tree(a, e->previous), "spec"),
                    json_get(vapi_tree(a, e->object), "spec")))
        rescan_later(controller_state(c));
    arena_free(a);
}

static void map_grant(struct controller *c, const struct store_event *e)
{
    (void)e;
    rescan_later(controller_state(c));
}

/* --- both sides compared --- */

/* What is refused stays with the tenant, and its Events say why; so does what no pod has. */
static bool wants_host(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object)
{
    cJSON *wanted = NULL;
    struct reasons reasons;
    struct err err;

    err_init(&err, a);
    reasons_init(&reasons, a);
    if (translate_kind_goes_with_pods(s->kinds[id].rules->kind) &&
        !sync_refs_wanted(s->refs, id, json_str_at(object, "metadata.namespace"),
                          json_str_at(object, "metadata.name")))
        return false;
    if (!translate(s, a, s->kinds[id].rules->kind, object, &reasons, &wanted, &err) && wanted)
        return true;
    return is_volumes(s->kinds[id].rules->kind) &&
           sync_mapping_get(s, a, id, STR(""), json_str_at(object, "metadata.name")).host_uid.n;
}

bool sync_down_is_there(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str name = json_str_at(object, "metadata.name"), owner_ns, owner, uid;
    const struct host_object *o;
    cJSON *wanted = NULL, *host = NULL;
    struct reasons reasons;
    char host_name[64];
    struct err err;

    err_init(&err, a);
    reasons_init(&reasons, a);
    translate_name(&s->tenant, ns, name, host_name);
    o = reflector_get(syncer_watch(s, id), str_c(host_name));
    return o && !json_parse(a, o->bytes, &host, NULL) && !object_is_terminating(host) &&
           translate_owner(&s->tenant, host, &owner_ns, &owner, &uid) &&
           str_eq(uid, sync_uid(object)) &&
           !translate(s, a, s->kinds[id].rules->kind, object, &reasons, &wanted, &err) && wanted &&
           translate_kind_is_written(host, wanted);
}

static cJSON *difference(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                         const cJSON *host)
{
    const struct kind_rules *rules = s->kinds[id].rules->kind;
    cJSON *wanted = NULL;
    struct reasons reasons;
    struct err err;

    err_init(&err, a);
    reasons_init(&reasons, a);
    if (translate(s, a, rules, object, &reasons, &wanted, &err) || !wanted)
        return NULL;
    return translate_kind_update(a, rules, host, wanted);
}

/* --- admission --- */

enum sync_id sync_down_kind(const struct syncer *s, const struct resource *r)
{
    for (size_t id = N_SYNC_FIXED; id < s->n_kinds; id++) {
        const struct sync_kind *k = &s->kinds[id];

        if (k->handlers->refs == refs_of && str_eqc(r->plural, k->plural) &&
            str_eqc(r->group, k->group))
            return (enum sync_id)id;
    }
    return SYNC_NONE;
}

bool sync_down_has(const struct syncer *s, const struct resource *r)
{
    return sync_down_kind(s, r) != SYNC_NONE;
}

int sync_down_translate(struct syncer *s, struct arena *a, enum sync_id id, const cJSON *object,
                        cJSON *left_out, cJSON **ret, struct err *err)
{
    struct reasons reasons;

    *ret = NULL;
    reasons_init(&reasons, a);
    reasons.denied = left_out;
    if (translate(s, a, s->kinds[id].rules->kind, object, &reasons, ret, err))
        return -1;
    if (reasons.left_out.kind)
        json_append(left_out, json_new_string(a, reasons.left_out.message));
    return 0;
}

static bool is_same(const cJSON *is, const cJSON *was)
{
    return is && was ? json_equal(is, was) : is == was;
}

/* Is all equal that goes down? */
static bool is_unchanged(const cJSON *object, const cJSON *old)
{
    static const char *const read[] = {"metadata.annotations", "metadata.labels"};
    bool same = json_count(object) == json_count(old);

    for (size_t i = 0; i < COUNT(read); i++)
        same &= is_same(json_path(object, read[i]), json_path(old, read[i]));
    json_each(member, object)
    {
        if (!str_eqc(json_key(member), "metadata") && !str_eqc(json_key(member), "status"))
            same &= is_same(member, json_get(old, member->string));
    }
    return same;
}

int sync_down_check(struct syncer *s, struct arena *a, const struct resource *r,
                    const cJSON *object, const cJSON *old, struct err *err)
{
    enum sync_id id = sync_down_kind(s, r);
    const struct sync_rules *rules = id == SYNC_NONE ? NULL : s->kinds[id].rules;
    cJSON *wanted;

    if (!rules || translate_kind_is_made(rules->kind, object) || (old && is_unchanged(object, old)))
        return 0;
    if (is_volumes(rules->kind) && sync_volume_check(s, object, old, err))
        return -1;
    if (translate(s, a, rules->kind, object, NULL, &wanted, err))
        return -1;
    return !old && wanted ? check_room(s, rules->kind, json_str_at(object, "metadata.name"), err)
                          : 0;
}

/* --- the rows --- */

struct adding {
    struct syncer *syncer;
    void (*changed)(struct syncer *s, enum sync_id id, const struct host_object *now,
                    const struct host_object *before);
};

static void set_sources(struct controller_source *to, const char *group, const char *plural,
                        const struct kind_rules *kind)
{
    static const char gateway[] = "gateway.networking.k8s.io";
    bool gateways = translate_kind_reads_gateways(kind);

    *to++ = (struct controller_source){group, plural, map_object};
    if (translate_kind_reads_namespaces(kind) || gateways)
        *to++ = (struct controller_source){"", "namespaces", map_namespace};
    if (kind == translate_kind_rules(DOWN_ENDPOINT_SLICES))
        *to++ = (struct controller_source){"", "services", map_service};
    if (gateways)
        *to++ = (struct controller_source){gateway, "referencegrants", map_grant};
    if (gateways && kind != translate_kind_rules(DOWN_GATEWAYS))
        *to++ = (struct controller_source){gateway, "gateways", map_gateway};
}

static void set_versions(struct arena *a, struct sync_rules *rules)
{
    const struct kind_rules *kind = rules->kind;

    for (size_t i = 0; i < COUNT(SERVED); i++) {
        if (kind != translate_kind_rules(SERVED[i].kind))
            continue;
        for (size_t k = 0; k < MOST_VERSIONS && SERVED[i].versions[k]; k++, rules->n_versions++) {
            rules->versions[k].root =
                arena_printf(a, "/apis/%s/%s", CONFIG_DOWN_KINDS[SERVED[i].kind].group,
                             SERVED[i].versions[k])
                    .p;
            rules->versions[k].kind = translate_kind_rules_at(a, kind, SERVED[i].versions[k]);
        }
    }
}

static bool elsewhere(struct syncer *s, enum sync_id id, size_t tried)
{
    struct sync_rules *rules = s->kinds[id].rules;

    rules->version = (rules->version + 1) % rules->n_versions;
    rules->kind = rules->versions[rules->version].kind;
    s->kinds[id].root = rules->versions[rules->version].root;
    return tried + 1 < rules->n_versions;
}

static void add_kind(const struct adding *x, const char *group, const char *version,
                     const char *plural, enum config_scope scope, const struct kind_rules *kind)
{
    struct arena *a = x->syncer->arena;
    struct sync_rules *rules = ARENA_NEW(a, struct sync_rules);
    bool core = !*group;
    const char *record = core ? plural : arena_printf(a, "%s.%s", plural, group).p;
    struct sync_kind row = {.plural = plural,
                            .group = group,
                            .root =
                                core ? "/api/v1" : arena_printf(a, "/apis/%s/%s", group, version).p,
                            .namespaced = scope == SYNC_NAMESPACE,
                            .labelled = true,
                            .maps = true,
                            .record = record,
                            .rules = rules,
                            .handlers = &rules->handlers};

    rules->kind = kind;
    set_versions(a, rules);
    set_sources(rules->sources, group, plural, kind);
    rules->controller = (struct controller_def){.name = arena_printf(a, "sublet-%s", record).p,
                                                .sources = rules->sources,
                                                .reconcile = reconcile_down};
    rules->handlers =
        (struct sync_handlers){.controller = &rules->controller,
                               .changed = x->changed,
                               .fits_host = is_volumes(kind) ? sync_volume_fits_host : NULL,
                               .refs = refs_of,
                               .wants_host = wants_host,
                               .elsewhere = rules->n_versions ? elsewhere : NULL,
                               .difference = difference};
    sync_kind_add(x->syncer, &row);
}

void sync_down_add_kinds(struct syncer *s, void (*changed)(struct syncer *s, enum sync_id id,
                                                           const struct host_object *now,
                                                           const struct host_object *before))
{
    const struct config_to_host *to = s->config->to_host;
    struct adding x = {s, changed};

    for (int i = 0; i < N_SYNC_DOWN; i++) {
        const struct config_down_kind *k = &CONFIG_DOWN_KINDS[i];

        if (to->enabled[i])
            add_kind(&x, k->group, k->version, k->plural, k->scope,
                     translate_kind_rules((enum sync_down)i));
    }
    for (size_t i = 0; i < to->n_custom; i++)
        add_kind(&x, to->custom[i].group, to->custom[i].version, to->custom[i].plural,
                 SYNC_NAMESPACE, translate_custom_rules(s->arena, &to->custom[i]));
}
