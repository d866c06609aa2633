/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses at which pods reach this API and its DNS: from the configuration, else of the host
 * Services named after the cluster, NAME and NAME-dns. The virtual Services `default/kubernetes`
 * and `kube-system/kube-dns` carry them. Must settle both before any pod goes to the host, since
 * every pod spec contains them. Those that nodes have, of NAME-kubelet-N, come last: the serving
 * certificate names all of them. */

#include "nodes/node_addresses.h"
#include "nodes/nodes.h"
#include "objects/objects.h"
#include <sublet/log.h>

#define RETRY_MS 1000
#define API_PORT 443

static void find_api(void *ctx);
static void find_dns(void *ctx);
static void find_kubelets(void *ctx);

/* --- the host's Services --- */

static void get_service(struct syncer *s, const char *tail, host_done_cb then)
{
    struct str ns = s->config->service_namespace;
    struct host_request q = {.method = "GET"};
    struct arena *a = arena_new(0);
    struct str name = arena_printf(a, "%.*s%s", STR_F(s->config->name), tail);

    q.path = ns.n ? arena_printf(a, "/api/v1/namespaces/%.*s/services/%.*s", STR_F(ns), STR_F(name))
                  : sync_path(a, s, SYNC_SERVICES, name, "");
    host_send(s->host, &q, then, s);
    arena_free(a);
}

/* Final even if there is no such Service, or no permission to read it. */
static bool is_final(const struct err *err)
{
    return !err || err->kind == &ERR_NOT_FOUND || err->kind == &ERR_FORBIDDEN;
}

/* Its cluster IP, or empty; *ret_port is unchanged where it has no port. */
static struct str read_service(struct arena *a, struct str body, int64_t *ret_port)
{
    cJSON *service = NULL;
    struct str ip;

    if (json_parse(a, body, &service, NULL))
        return STR("");
    ip = json_str_at(service, "spec.clusterIP");
    *ret_port = json_i64_at(json_first(json_path(service, "spec.ports")), "port", *ret_port);
    return str_eqc(ip, "None") ? STR("") : ip;
}

/* --- addresses of nodes --- */

static void settle(struct syncer *s)
{
    unsigned port = (unsigned)s->tenant.api_port, own = vapi_port(s->api);
    /* The endpoint is the Service's own address: the host Service knows its real endpoints. */
    struct vapi_address address = {.cluster_ip = s->tenant.api_ip,
                                   .endpoint_ip = s->tenant.api_ip,
                                   .port = port ? port : API_PORT,
                                   .target_port = own ? own : API_PORT,
                                   .endpoint_port = port ? port : API_PORT};

    address.further = sync_node_addresses(sync_nodes_addresses(s->nodes), &address.n_further);
    s->address_known = true;
    vapi_publish_address(s->api, &address);
    sync_service_publish_dns(s);
    sync_runtime_classes_publish(s);
    syncer_rescan_kinds(s);
}

static void on_kubelet_service(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct syncer *s = ctx;
    struct str ip = STR("");
    struct arena *a;
    int64_t port = 0;

    if (syncer_is_closing(s) || s->address_known)
        return;
    if (!is_final(err)) {
        syncer_defer_for(s, find_kubelets, s, RETRY_MS);
        return;
    }
    a = arena_new(0);
    if (!err)
        ip = read_service(a, answer->body, &port);
    sync_node_addresses_found(sync_nodes_addresses(s->nodes), ip);
    arena_free(a);
    find_kubelets(s);
}

static void find_kubelets(void *ctx)
{
    struct syncer *s = ctx;
    struct arena *a = arena_new(0);
    struct str tail;

    if (syncer_is_closing(s) || s->address_known)
        ; /* nothing is waited for any more */
    else if (sync_node_addresses_next(sync_nodes_addresses(s->nodes), a, &tail))
        get_service(s, tail.p, on_kubelet_service);
    else
        settle(s);
    arena_free(a);
}

/* --- DNS --- */

static void dns_found(struct syncer *s, struct str ip)
{
    s->tenant.dns_ip = arena_str(s->arena, ip);
    find_kubelets(s);
}

static void on_dns_service(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct syncer *s = ctx;
    struct arena *a;
    struct str ip = STR("");
    int64_t port = 0;

    if (syncer_is_closing(s) || s->address_known)
        return;
    if (!is_final(err)) {
        syncer_defer_for(s, find_dns, s, RETRY_MS);
        return;
    }
    a = arena_new(0);
    if (!err)
        ip = read_service(a, answer->body, &port);
    if (!ip.n)
        log_warn("syncer: the host has no Service %.*s-dns with an address, and "
                 "network.dns.address is not set: pods resolve with the host's DNS",
                 STR_F(s->config->name));
    dns_found(s, ip);
    arena_free(a);
}

static void find_dns(void *ctx)
{
    struct syncer *s = ctx;

    if (!syncer_is_closing(s) && !s->address_known)
        get_service(s, "-dns", on_dns_service);
}

/* --- the API --- */

static void api_found(struct syncer *s, struct str ip, int64_t port)
{
    s->tenant.api_ip = arena_str(s->arena, ip);
    s->tenant.api_port = port;
    if (s->config->dns_listen.n && !s->config->dns_address.n)
        find_dns(s);
    else
        dns_found(s, s->config->dns_listen.n ? s->config->dns_address : STR(""));
}

static void on_api_service(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct syncer *s = ctx;
    struct arena *a;
    int64_t port = API_PORT;
    struct str ip;

    s->host_tried = true;
    if (syncer_is_closing(s) || s->address_known)
        return;
    if (!is_final(err)) {
        syncer_defer_for(s, find_api, s, RETRY_MS);
        return;
    }
    syncer_host_reached(s);
    if (err) {
        api_found(s, STR(""), (int64_t)vapi_port(s->api));
        return;
    }
    a = arena_new(0);
    ip = read_service(a, answer->body, &port);
    api_found(s, ip, port);
    arena_free(a);
}

static void find_api(void *ctx)
{
    struct syncer *s = ctx;

    if (!syncer_is_closing(s) && !s->address_known)
        get_service(s, "", on_api_service);
}

void sync_address_find(struct syncer *s)
{
    if (s->config->api_address.n)
        api_found(s, s->config->api_address, (int64_t)vapi_port(s->api));
    else
        find_api(s);
}
