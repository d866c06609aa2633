/* SPDX-License-Identifier: Apache-2.0 */
/* Services: created on the host first (admit_service.c), then reconciled here: ports and selectors
 * down, load balancer addresses and late allocations up. What the host allocated is in the mapping
 * record, and nothing else is requested when a Service is created again. Must never touch
 * `default/kubernetes` and `kube-system/kube-dns`, which are this process itself, nor a Service
 * whose admission is still pending. */
#include "core/life.h"
#include "objects/dns_service.h"
#include "objects/mirror.h"
#include "objects/objects.h"

static const struct resource *services(const struct sync_run *run)
{
    return syncer_resource(run->syncer, "", "services");
}

bool sync_service_is_api(struct str ns, struct str name)
{
    return str_eqc(ns, "default") && str_eqc(name, "kubernetes");
}

bool sync_service_wants_host(const cJSON *service)
{
    return service && !str_eqc(json_str_at(service, "spec.type"), "ExternalName");
}

static cJSON *wanted(struct sync_run *run, struct err *err)
{
    cJSON *object = NULL;

    if (translate_check_service(run->arena, &run->syncer->tenant, run->virtual_, err) ||
        translate_service(run->arena, &run->syncer->tenant, run->virtual_, &object, err))
        return NULL;
    return object;
}

bool sync_service_is_headless(const cJSON *service)
{
    return str_eqc(json_str_at(service, "spec.clusterIP"), "None");
}

int sync_service_check_room(struct syncer *s, const cJSON *service, const struct mapping *m,
                            struct err *err)
{
    struct str ns = json_str_at(service, "metadata.namespace");
    struct str name = json_str_at(service, "metadata.name");
    bool headless = sync_service_is_headless(service);
    const char *what = headless ? "services.headless" : "services";
    size_t used;

    if (m->exists && str_eq(m->uid, sync_uid(service)) && m->headless == headless)
        return 0; /* it is counted already */
    used = sync_mapping_count_services(s, headless, ns, name) +
           (headless ? 0 : sync_quarantine_count(s, SYNC_SERVICES));
    if (used < (size_t)s->config->max_services)
        return 0;
    return err_forbidden(err, STR_NULL, STR("services"), name,
                         "exceeded quota: sync.maxServices, requested: %s=1, used: %s=%zu, "
                         "limited: %s=%lld",
                         what, what, used, what, (long long)s->config->max_services);
}

int sync_service_keep_address(struct arena *a, const struct mapping *m, const cJSON *service,
                              cJSON *host_object, struct err *err)
{
    const cJSON *address = json_path(service, "spec.clusterIP");

    if (!json_str(address).n || sync_service_is_headless(service))
        return 0;
    if (!str_eq(m->uid, sync_uid(service)) || !translate_service_gave(m->given, address))
        return err_forbidden(err, STR_NULL, STR("services"), json_str_at(service, "metadata.name"),
                             "spec.clusterIP: the host did not allocate this address to this "
                             "Service; delete it and create it again");
    json_set_str(a, json_ensure_object(a, host_object, "spec"), "clusterIP", json_str(address));
    return 0;
}

/* A headless Service is created on the host after it is stored: its record, which counts, is
 * written in the same transaction. If the store refuses it, the controller finds a record without
 * an object and removes it. */
int sync_service_before_store(struct syncer *s, struct arena *a, const cJSON *object, bool dry_run,
                              struct err *err)
{
    struct str ns = json_str_at(object, "metadata.namespace");
    struct str name = json_str_at(object, "metadata.name");
    struct mapping m;

    if (sync_service_wants_host(object) && sync_service_is_headless(object) &&
        !sync_service_is_shown(s, object, ns, name) && !object_is_terminating(object)) {
        m = sync_mapping_get(s, a, SYNC_SERVICES, ns, name);
        if (sync_service_check_room(s, object, &m, err))
            return -1;
        if (!dry_run && (sync_mapping_begin(&m, sync_uid(object)) || !m.headless)) {
            m.headless = true;
            sync_mapping_put(s, SYNC_SERVICES, ns, name, &m);
            syncer_add(s, SYNC_SERVICES, ns, name);
        }
    }
    if (!dry_run)
        sync_service_stored(s, object);
    return 0;
}

static void refuse(struct sync_run *run, const struct err *err)
{
    reconcile_event(run->reconcile, run->virtual_, "Warning", "SyncError", "%.*s",
                    STR_F(err->message));
    reconcile_fail(run->reconcile, err);
}

static bool update_up(struct sync_run *run)
{
    cJSON *status = translate_service_status_up(run->arena, run->host, run->virtual_), *spec;

    if (status) {
        json_set(run->arena, run->virtual_, "status", status);
        reconcile_update_status(run->reconcile, services(run), run->virtual_);
        return true;
    }
    spec = translate_service_spec_up(run->arena, run->host, run->virtual_);
    if (!spec)
        return sync_keys_up(run);
    json_set(run->arena, run->virtual_, "spec", spec);
    reconcile_replace(run->reconcile, services(run), run->virtual_);
    return true;
}

/* Before the tenant sees the allocation, so that it may send it back. */
static void note_given(struct sync_run *run)
{
    struct str given = translate_service_given(run->arena, run->host);
    bool headless = sync_service_is_headless(run->host);

    if (str_eq(given, run->mapping.given) && headless == run->mapping.headless)
        return;
    run->mapping.given = given;
    run->mapping.headless = headless;
    sync_mapping_put(run->syncer, run->id, run->ns, run->name, &run->mapping);
}

/* Another host has other addresses, and this one may have allocated these to another Service since:
 * the Service is created without a request for them. */
static bool drop_given(struct sync_run *run, const struct err *err)
{
    if (err->kind != &ERR_INVALID || !run->mapping.given.n)
        return false;
    run->mapping.given = STR("");
    sync_mapping_put(run->syncer, run->id, run->ns, run->name, &run->mapping);
    syncer_add(run->syncer, run->id, run->ns, run->name);
    return true;
}

static void without_given(cJSON *object)
{
    cJSON *spec = json_get(object, "spec");

    json_remove(spec, "healthCheckNodePort");
    json_each(port, json_get(spec, "ports")) json_remove(port, "nodePort");
}

/* Is it created again, in another life? Then with its previous address, if that is still free. */
static bool is_again(const struct sync_run *run)
{
    return run->mapping.exists && str_eq(run->mapping.uid, run->uid) &&
           run->mapping.life != run->syncer->life;
}

static void create(struct sync_run *run, cJSON *object)
{
    struct err err;
    bool again = is_again(run);

    err_init(&err, run->arena);
    if (again && !run->mapping.given.n)
        without_given(object);
    else if (sync_service_keep_address(run->arena, &run->mapping, run->virtual_, object, &err))
        again = false;
    if (err.kind || sync_service_check_room(run->syncer, run->virtual_, &run->mapping, &err)) {
        refuse(run, &err);
        return;
    }
    sync_mapping_begin(&run->mapping, run->uid);
    run->mapping.headless = sync_service_is_headless(run->virtual_);
    if (again)
        run->on_refusal = drop_given;
    sync_create(run, object);
}

static cJSON *lacks(struct sync_run *run, const cJSON *wanted)
{
    return translate_service_update(run->arena, run->host, wanted);
}

static void service_present(struct sync_run *run)
{
    struct err err;
    cJSON *object, *patch;

    err_init(&err, run->arena);
    object = wanted(run, &err);
    if (err.kind) {
        refuse(run, &err);
        return;
    }
    if (!run->host) {
        create(run, object);
        return;
    }
    if (object_is_terminating(run->host))
        return; /* created again once it is deleted */
    note_given(run);
    if (sync_relabel_service_waits(run, object))
        return;
    patch = lacks(run, object);
    if (!patch ||
        !sync_patch(run, &(struct sync_change){patch, PATCH_MERGE, "", object, lacks, NULL}))
        update_up(run);
}

/* --- the Service in front of the tenant's DNS --- */

/* One that the tenant created while network.dns was off stays its own, as its record says; without
 * a mark of ours also when the record may be lost. */
bool sync_service_is_dns(struct syncer *s, const cJSON *object, struct str ns, struct str name)
{
    struct str note =
        json_str(json_get(json_path(object, "metadata.annotations"), ANNOTATION_FROM_HOST));
    struct arena *a;
    bool free;

    if (!str_eq(ns, STR(DNS_NAMESPACE)) || !str_eq(name, STR(DNS_NAME)))
        return false;
    a = arena_new(0);
    free = !sync_mapping_get(s, a, SYNC_SERVICES, ns, name).exists &&
           (!object || str_eqc(note, "true") || !sync_mapping_is_lost(s, SYNC_SERVICES, ns, name));
    arena_free(a);
    return free && (s->tenant.dns_ip.n || str_eqc(note, "true"));
}

bool sync_service_is_shown(struct syncer *s, const cJSON *object, struct str ns, struct str name)
{
    return sync_service_is_api(ns, name) || sync_service_is_dns(s, object, ns, name) ||
           sync_mirror_is_copy(s, "services", object);
}

static void keep_slice(struct sync_run *run, struct str ip)
{
    const struct resource *slices =
        syncer_resource(run->syncer, "discovery.k8s.io", "endpointslices");
    const cJSON *now = reconcile_get(run->reconcile, slices, STR(DNS_NAMESPACE), STR(DNS_NAME)),
                *want;

    if (!ip.n) {
        if (now)
            reconcile_delete(run->reconcile, slices, STR(DNS_NAMESPACE), STR(DNS_NAME),
                             sync_uid(now), NULL);
        return;
    }
    want = sync_dns_slice_want(run->arena, ip);
    if (!now)
        reconcile_create(run->reconcile, slices, STR(DNS_NAMESPACE), want);
    else if (!json_equal(json_get(now, "endpoints"), json_get(want, "endpoints")))
        reconcile_delete(run->reconcile, slices, STR(DNS_NAMESPACE), STR(DNS_NAME), sync_uid(now),
                         NULL);
}

static void keep_dns(struct sync_run *run)
{
    const struct resource *services = syncer_resource(run->syncer, "", "services");
    struct str ip = run->syncer->tenant.dns_ip;
    const cJSON *now = run->virtual_;
    cJSON *want = sync_dns_service_want(run->arena, ip), *patch;

    if (!run->syncer->address_known || (now && object_is_terminating(now)))
        return;
    keep_slice(run, ip);
    if (!now) {
        if (ip.n)
            reconcile_create(run->reconcile, services, STR(DNS_NAMESPACE), want);
    } else if (!str_eq(json_str_at(now, "spec.clusterIP"), ip)) {
        /* Immutable; the event of the deletion adds the key again. */
        reconcile_delete(run->reconcile, services, STR(DNS_NAMESPACE), STR(DNS_NAME), run->uid,
                         NULL);
    } else if ((patch = sync_dns_service_difference(run->arena, now, want))) {
        reconcile_patch(run->reconcile, services, STR_NULL, STR(DNS_NAMESPACE), STR(DNS_NAME),
                        patch);
    }
}

void sync_service_publish_dns(struct syncer *s)
{
    syncer_add(s, SYNC_SERVICES, STR(DNS_NAMESPACE), STR(DNS_NAME));
}

/* --- one key --- */

static void reconcile_service(struct reconcile *r)
{
    struct syncer *s = syncer_of(r);
    struct sync_run run;
    bool wants_host;

    if (!sync_run_init(&run, r, SYNC_SERVICES) || sync_service_is_api(run.ns, run.name) ||
        sync_service_in_admission(s, run.ns, run.name))
        return;
    if (sync_service_is_dns(s, run.virtual_, run.ns, run.name)) {
        keep_dns(&run);
        return;
    }
    wants_host =
        sync_service_wants_host(run.virtual_) && !sync_mirror_is_copy(s, "services", run.virtual_);
    if (!wants_host && !run.mapping.exists)
        return;
    if (!syncer_ready(s, SYNC_SERVICES, SYNC_SERVICES, SYNC_SERVICES) ||
        !sync_run_init(&run, r, SYNC_SERVICES))
        return;
    if (run.virtual_ && sync_is_being_written(&run)) /* the pending version may have another type */
        reconcile_again_after(r, 1000); /* the commit adds the key again; if it fails, this does */
    else if (!wants_host)
        sync_finish_gone(&run, -1);
    else if (!sync_settle_owner(&run))
        service_present(&run);
}

static const struct controller_source SOURCES[] = {{"", "services", controller_map_self}, {0}};

const struct controller_def SYNC_SERVICE_CONTROLLER = {
    .name = "sublet-services", .sources = SOURCES, .reconcile = reconcile_service};
