/* SPDX-License-Identifier: Apache-2.0 */
/* Under which address pods reach this API: what the configuration says, else the host Service of
 * the cluster's name. The virtual Service `default/kubernetes` carries it. Nothing goes to the host
 * before the question is settled, since every pod is told the answer. */
#include "engine.h"

#define RETRY_MS 1000
#define API_PORT 443

static void ask_host(struct syncer *s);

/* What stands behind the Service is the host's affair: its endpoint says what it says itself. */
static void publish(struct syncer *s)
{
    unsigned port = (unsigned)s->tenant.api_port, own = vapi_port(s->api);
    struct vapi_address address = {.cluster_ip = s->tenant.api_ip,
                                   .endpoint_ip = s->tenant.api_ip,
                                   .port = port ? port : API_PORT,
                                   .target_port = own ? own : API_PORT,
                                   .endpoint_port = port ? port : API_PORT};

    vapi_publish_address(s->api, &address);
}

/* --- finding it --- */

void address_found(struct syncer *s, struct str ip, int64_t port)
{
    s->tenant.api_ip = arena_str(s->arena, ip);
    s->tenant.api_port = port;
    s->address_known = true;
    publish(s);
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
    struct str ns = s->config->service_namespace;
    struct host_request q = {.method = "GET"};
    struct arena *a;

    if (s->closing || s->address_known)
        return;
    a = arena_new(0);
    q.path = ns.n ? arena_printf(a, "/api/v1/namespaces/%.*s/services/%.*s", STR_F(ns),
                                 STR_F(s->config->name))
                  : sync_path(a, s, SYNC_SERVICES, s->config->name, "");
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
