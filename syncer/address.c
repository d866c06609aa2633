/* SPDX-License-Identifier: Apache-2.0 */
/* Under which address pods reach this API: what the configuration says, else the host Service of
 * the cluster's name. The virtual Service `default/kubernetes` carries it. Nothing goes to the host
 * before the question is settled, since every pod is told the answer. */
#include "engine.h"

#include <uv.h>

#include <sublet/log.h>

#define RETRY_MS 1000

static void ask_host(struct syncer *s);

/* --- default/kubernetes --- */

static void on_written(void *ctx, const struct err *err, const struct store_object *object)
{
    (void)ctx;
    (void)object;
    if (err && err->kind != &ERR_ALREADY_EXISTS)
        log_warn("syncer: cannot write Service default/kubernetes: %.*s", STR_F(err->message));
}

static cJSON *api_service(struct syncer *s, struct arena *a)
{
    static const char text[] =
        "{\"metadata\":{\"name\":\"kubernetes\",\"namespace\":\"default\","
        "\"labels\":{\"component\":\"apiserver\",\"provider\":\"kubernetes\"}},"
        "\"spec\":{\"type\":\"ClusterIP\",\"sessionAffinity\":\"None\","
        "\"ports\":[{\"name\":\"https\",\"protocol\":\"TCP\"}]}}";
    struct str ip = s->tenant.api_ip.n ? s->tenant.api_ip : STR("None");
    cJSON *service = NULL, *spec, *port;

    if (json_parse(a, str_c(text), &service, NULL))
        return NULL;
    spec = json_get(service, "spec");
    port = json_first(json_get(spec, "ports"));
    json_set_i64(a, port, "port", s->tenant.api_port);
    json_set_i64(a, port, "targetPort", (int64_t)vapi_port(s->api));
    json_set_str(a, spec, "clusterIP", ip);
    json_append(json_set(a, spec, "clusterIPs", json_new_array(a)), json_new_string(a, ip));
    return service;
}

static void create_service(struct syncer *s)
{
    struct arena *a = arena_new(0);
    cJSON *service = api_service(s, a);

    if (service)
        vapi_create(s->api, syncer_resource(s, "", "services"), STR("default"), service, on_written,
                    NULL);
    arena_free(a);
}

static void on_removed(void *ctx, const struct err *err, const struct store_object *object)
{
    struct syncer *s = ctx;

    on_written(NULL, err, object);
    if (!err && !s->closing)
        create_service(s);
}

/* An address cannot be changed in place; ports can. */
static void update_service(struct syncer *s, struct arena *a, const cJSON *now)
{
    const struct resource *r = syncer_resource(s, "", "services");
    struct str address = json_str_at(now, "spec.clusterIP");
    const cJSON *ports = json_path(api_service(s, a), "spec.ports");
    struct vapi_delete options = {.grace_seconds = -1};
    cJSON *patch = json_new_object(a);

    if (s->tenant.api_ip.n && !str_eq(address, s->tenant.api_ip)) {
        vapi_delete(s->api, r, STR("default"), STR("kubernetes"), &options, on_removed, s);
        return;
    }
    if (json_equal(ports, json_path(now, "spec.ports")))
        return;
    json_set(a, json_ensure_object(a, patch, "spec"), "ports", json_copy(a, ports));
    vapi_patch(s->api, r, STR_NULL, STR("default"), STR("kubernetes"), patch, on_written, NULL);
}

static void ensure_service(struct syncer *s)
{
    const struct resource *r = syncer_resource(s, "", "services");
    const struct store_object *o =
        store_latest(s->store, r->storage, STR("default"), STR("kubernetes"));
    struct arena *a = arena_new(0);

    if (o)
        update_service(s, a, vapi_tree(a, o));
    else
        create_service(s);
    arena_free(a);
}

/* --- finding it --- */

void address_found(struct syncer *s, struct str ip, int64_t port)
{
    s->tenant.api_ip = arena_str(s->arena, ip);
    s->tenant.api_port = port;
    s->address_known = true;
    ensure_service(s);
    address_publish(s);
    runtime_classes_publish(s);
    for (int id = 0; id < N_SYNC; id++)
        syncer_rescan(s, (enum sync_id)id);
}

static void take_service(struct syncer *s, struct str body)
{
    struct arena *a = arena_new(0);
    cJSON *service = NULL;
    struct str ip;

    if (json_parse(a, body, &service, NULL))
        service = NULL;
    ip = json_str_at(service, "spec.clusterIP");
    if (str_eqc(ip, "None"))
        ip = STR("");
    address_found(s, ip, json_i64_at(json_first(json_path(service, "spec.ports")), "port", 443));
    arena_free(a);
}

static void on_timer(void *ctx)
{
    ask_host(ctx);
}

static void on_service(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct syncer *s = ctx;

    s->asked = true;
    if (s->closing || s->address_known)
        return;
    if (err && err->kind != &ERR_NOT_FOUND && err->kind != &ERR_FORBIDDEN) {
        syncer_defer_for(s, on_timer, s, RETRY_MS);
        return;
    }
    syncer_host_reached(s);
    if (err)
        address_found(s, STR(""), (int64_t)vapi_port(s->api));
    else
        take_service(s, answer->body);
}

static void ask_host(struct syncer *s)
{
    struct host_request q = {.method = "GET"};
    struct arena *a;

    if (s->closing || s->address_known)
        return;
    a = arena_new(0);
    q.path = sync_path(a, s, SYNC_SERVICES, s->config->name, "");
    host_send(s->host, &q, on_service, s);
    arena_free(a);
}

void address_find(struct syncer *s)
{
    if (s->config->api_address.n)
        address_found(s, s->config->api_address, (int64_t)vapi_port(s->api));
    else
        ask_host(s);
}
