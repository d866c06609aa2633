/* SPDX-License-Identifier: Apache-2.0 */
/* Services: made on the host first (admit_service.c), kept alike here: ports and selectors down,
 * load balancer addresses and late allocations up. Must never touch `default/kubernetes`, which is
 * this process itself, nor a Service whose admission is still under way. */
#include "engine.h"

static const struct resource *services(const struct sync_run *run)
{
    return syncer_resource(run->syncer, "", "services");
}

bool service_is_api(struct str ns, struct str name)
{
    return str_eqc(ns, "default") && str_eqc(name, "kubernetes");
}

bool service_wants_host(const cJSON *service)
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

/* The tenant knows its address already: it is asked for again. */
static void keep_address(struct sync_run *run, cJSON *object)
{
    struct str address = json_str_at(run->virtual_, "spec.clusterIP");

    if (address.n)
        json_set_str(run->arena, json_ensure_object(run->arena, object, "spec"), "clusterIP",
                     address);
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
        return false;
    json_set(run->arena, run->virtual_, "spec", spec);
    reconcile_update(run->reconcile, services(run), run->virtual_);
    return true;
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
        keep_address(run, object);
        sync_create(run, object);
        return;
    }
    if (sync_is_deleting(run->host))
        return; /* made anew when it has left */
    if (relabel_service_waits(run, object))
        return;
    patch = translate_service_update(run->arena, run->host, object);
    if (patch)
        sync_patch(run, patch, "application/merge-patch+json", "");
    else
        update_up(run);
}

static void reconcile_service(struct reconcile *r)
{
    struct syncer *s = syncer_of(r);
    struct sync_run run;

    if (!sync_run_init(&run, r, SYNC_SERVICES) || service_is_api(run.ns, run.name) ||
        service_in_admission(s, run.ns, run.name))
        return;
    if (!service_wants_host(run.virtual_) && !run.mapping.exists)
        return;
    if (!syncer_ready(s, SYNC_SERVICES, SYNC_SERVICES, SYNC_SERVICES) ||
        !sync_run_init(&run, r, SYNC_SERVICES))
        return;
    if (!service_wants_host(run.virtual_))
        sync_finish_gone(&run, -1);
    else if (!sync_settle_owner(&run))
        service_present(&run);
}

static const struct controller_source SOURCES[] = {{"", "services", controller_map_self}, {0}};

const struct controller_def SERVICE_SYNCER = {
    .name = "sublet-services", .sources = SOURCES, .reconcile = reconcile_service};
